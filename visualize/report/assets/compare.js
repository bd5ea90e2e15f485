// Several runs side by side: where memory is, what it needs, what it costs, what it saves.

const places = {
  0: 'every rank holds everything',
  1: 'optimizer states are shared out, the rest is whole',
  2: 'gradients and optimizer states are shared out',
  3: 'parameters, gradients and optimizer states are shared out',
};
const perStep = (run) => { const sent = sentOf(run); return sent == null || run.steps.every > 1 || !run.steps.list.length ? null : sent / run.steps.list.length; };

/** Bytes a second with which what a step sends would hide behind what it computes. */
function linkNeeded(run) {
  const sent = perStep(run), seconds = secondsOf(run);
  if (!sent || !seconds || !run.shares) return null;
  const compute = seconds * (1 - run.shares.gather_wait - run.shares.reduce_wait - run.shares.other_wait);
  return compute > 0 ? sent / compute : null;
}

function compareSection(body) {
  if (runs.length < 2) return void body.remove();
  const base = runs[0];
  const against = (value, of) => value == null || of == null || of === 0 ? '' : value === of ? '' : ` (${value < of ? '−' : '+'}${inPercent(Math.abs(value / of - 1))})`;
  body.append(el('p', {class: 'caption'}, `Measured in these runs, rank 0 where nothing else is said. Changes in brackets are against ${runName(base)}. Choose a run to see it below.`));
  for (const comparison of page.comparisons) {
    body.append(el('p', {}, comparison.bitwise_equal
      ? `${comparison.folder}: loss, gradient norm and parameter hash of these runs are equal, bit for bit, in every step.`
      : `${comparison.folder}: the runs are not bit-identical; losses differ by up to ${comparison.max_ulp} units in the last place.`));
  }
  peakBars(body);
  const steady = (run, category) => run.ranks[0].steady && run.ranks[0].steady[words.categories.indexOf(category)];
  const both = (value, of) => `${inBytes(value)}${against(value, of)}`;
  const button = (run, i) => el('button', {type: 'button', class: 'run', on: {click: () => store.chooseRun(i)}}, runName(run));
  body.append(el('h3', {}, 'Memory: where it is'));
  body.append(table([
    ['Run', (run) => button(run, runs.indexOf(run))],
    ['What is shared out', (run) => places[run.stage], 'text'],
    ['Parameters', (run) => inBytes(steady(run, 'parameters'))],
    ['Gradients', (run) => inBytes(steady(run, 'gradients'))],
    ['Optimizer', (run) => inBytes(steady(run, 'optimizer'))],
    ['Bytes a parameter, theory', (run) => run.theory.states ? run.stage ? `${run.theory.states.formula} = ${short(run.theory.states.per_parameter)}` : run.theory.states.formula : 'not known'],
  ], runs, {label: 'Where the memory is'}));
  body.append(el('h3', {}, 'What it needs, costs and saves'));
  body.append(table([
    ['Run', (run) => runName(run)],
    ['Memory a device needs', (run) => both(highestPeak(run), highestPeak(base))],
    ['Sent in a step', (run) => both(perStep(run), perStep(base))],
    ['Link that would hide it', (run) => run.world_size === 1 ? 'none' : linkNeeded(run) ? `${inBytes(linkNeeded(run))}/s` : 'not known'],
    ['Step', (run) => `${inTime(secondsOf(run) * 1e6)}${against(secondsOf(run), secondsOf(base))}`],
    ['Waiting', (run) => inPercent(run.shares && run.shares.gather_wait + run.shares.reduce_wait + run.shares.other_wait)],
    ['Last loss', (run) => { const last = ends(run)[1]; return last ? inLoss(last.loss) : run.failure ? run.failure.code : 'no step'; }],
  ], runs, {label: 'What the runs need, cost and save'}));
  body.append(el('p', {class: 'caption'}, 'The link is what the bytes of a step need to be sent in the time that a step computes. On a machine with fewer cores than ranks, steps and waits say more of the machine than of the stage; bytes are exact.'));
}

function peakBars(body) {
  const most = Math.max(...runs.map((run) => highestPeak(run) || 0), 1);
  const drawing = chart(body, 'Peak memory of rank 0 by category, a bar for each run', (svg, width) => {
    const line = 34, left = width < 600 ? 64 : 100, right = 74;
    const x = d3.scaleLinear().domain([0, most]).range([left, width - right]);
    runs.forEach((run, i) => {
      const g = svg.append('g').attr('transform', `translate(0,${i * line})`);
      g.append('text').attr('x', left - 10).attr('y', line / 2 + 4).attr('text-anchor', 'end').text(fit(runName(run), left - 14));
      const peak = run.ranks[0].peak;
      if (!peak) return void g.append('text').attr('class', 'soft').attr('x', left).attr('y', line / 2 + 4).text('not logged');
      let from = 0;
      for (const c of stacked) {
        if (!peak[c]) continue;
        const category = words.categories[c];
        const box = g.append('rect').attr('x', x(from)).attr('y', 5).attr('height', line - 10).attr('width', Math.max(0.5, x(from + peak[c]) - x(from)))
          .attr('fill', colour(category)).attr('class', 'item');
        tell(box, () => `${runName(run)}: ${spoken(category)}\n${inBytes(peak[c])} (${inCount(peak[c])} bytes)`);
        from += peak[c];
      }
      g.append('text').attr('x', x(from) + 7).attr('y', line / 2 + 4).text(inBytes(from));
    });
    return runs.length * line;
  });
  const used = stacked.filter((c) => runs.some((run) => run.ranks[0].peak && run.ranks[0].peak[c]));
  body.append(keys(used.map((c) => [words.categories[c], spoken(words.categories[c])])));
  drawing.measure();
}
