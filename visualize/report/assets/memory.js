// Live memory by category over a step, the budget, and what theory says.

/** From the ground up: what stays, then what comes and goes. */
const stacking = ['parameters', 'gradients', 'optimizer', 'gather_buffers', 'reduce_buffers', 'activations', 'workspace', 'checkpoint'];
const stacked = stacking.map((name) => words.categories.indexOf(name));

function memorySection(body) {
  const missing = nothing('This log has no memory over a step. Run with --log-level events to see it.');
  const host = el('div');
  body.append(missing, host);
  timeChart(host, 'Memory of the rank over the step by category', drawMemory);
  const legend = el('div'), theory = el('div');
  body.append(el('div', {class: 'split'}, legend, theory));
  store.watch(['run', 'step', 'rank'], () => {
    const view = store.view();
    missing.hidden = !!view;
    host.hidden = legend.hidden = !view;
    theory.replaceChildren(el('h3', {}, 'Between steps: measured beside theory'), statesTable(runs[store.run]));
  });
  store.watch(['run', 'step', 'rank', 't'], () => {
    const view = store.view();
    if (view) legend.replaceChildren(memoryTable(view));
  });
}

function drawMemory(svg, at, width, view, clip) {
  const run = runs[store.run], height = width < 600 ? 210 : 300;
  const {left, right} = timeMargin(width);
  const {times, live, peak} = memoryOf(view);
  const high = Math.max(peak, 1);
  const budgetShown = run.budget && run.budget < 1.6 * high;
  const broke = brokenIn(run, view);
  const top = Math.max(high, budgetShown ? run.budget : 0, broke ? broke.live + broke.requested : 0) * 1.08;
  const y = d3.scaleLinear().domain([0, top]).range([height, 8]);
  const ticks = unitTicks(0, top, 5);
  svg.append('g').attr('class', 'grid').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).tickValues(ticks).tickSize(-(width - left - right)).tickFormat(''));
  const points = d3.range(times.length);
  const floor = points.map(() => 0);
  const group = svg.append('g').attr('clip-path', clip);
  for (const category of stacked) {
    if (live.every((usage) => !usage[category])) continue;
    const low = floor.slice();
    points.forEach((i) => { floor[i] += live[i][category]; });
    const area = d3.area().curve(d3.curveStepAfter).x((i) => at(times[i])).y0((i) => y(low[i])).y1((i) => y(floor[i]));
    group.append('path').datum(points).attr('d', area).attr('fill', colour(words.categories[category]));
  }
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).tickValues(ticks).tickFormat(inUnitOf(top)));
  const line = (value, kind, text) => {
    svg.append('line').attr('class', kind).attr('x1', left).attr('x2', width - right).attr('y1', y(value)).attr('y2', y(value));
    const room = text.length * 6.3 + 10;
    svg.append('rect').attr('class', 'plate').attr('x', width - right - room).attr('y', y(value) - 19).attr('width', room).attr('height', 17).attr('rx', 3);
    svg.append('text').attr('x', width - right - room / 2).attr('y', y(value) - 6).attr('text-anchor', 'middle').text(text);
  };
  if (run.theory.states) {
    const {parameters, gradients, optimizer, whole} = run.theory.states;
    line(parameters + gradients + optimizer + whole, 'expected', `model states by theory, ${inBytes(parameters + gradients + optimizer + whole)}`);
  }
  if (budgetShown) line(run.budget, 'limit', `budget ${inBytes(run.budget)}`);
  if (broke) {
    group.append('rect').attr('x', at(broke.t) - 3).attr('width', 7).attr('y', y(broke.live + broke.requested)).attr('height', y(broke.live) - y(broke.live + broke.requested))
      .attr('fill', 'none').attr('stroke', 'var(--bad)').attr('stroke-width', 2.5);
  }
  return height;
}
const unitTicks = (low, high, count) => d3.ticks(low / unitOf(high), high / unitOf(high), count).map((tick) => tick * unitOf(high));
/** Ticks in one unit: 0.5 MiB, not 512 KiB. */
const inUnitOf = (top) => (value) => value === 0 ? '0' : `${+(value / unitOf(top)).toFixed(3)} ${inBytes(unitOf(top)).replace(/.* /, '')}`;
const unitOf = (value) => 1024 ** clamp(Math.floor(Math.log2(Math.max(value, 1)) / 10), 0, 4);

/** What is live at the cursor, beside the highest moment of the step. */
function memoryTable(view) {
  const {times, live, peakAt} = memoryOf(view);
  const here = live[before(times, store.t) - 1], highest = live[before(times, peakAt) - 1];
  const used = stacked.filter((category) => live.some((usage) => usage[category]));
  const rows = used.map((category) => ({category, here: here[category], highest: highest[category]})).reverse();
  const run = runs[store.run];
  const beyond = run.budget && run.budget >= 1.6 * sum(highest) ? el('p', {class: 'caption'}, `The budget of ${inBytes(run.budget)} lies above the picture.`) : null;
  const last = [];
  const at = before(view.memory.t, store.t) - 1;
  if (at >= 0) last.push(el('p', {class: 'caption'}, `Last change: ${inBytes(Math.abs(view.memory.bytes[at]))} ${view.memory.bytes[at] < 0 ? 'given back' : 'taken'}, ${names[view.memory.owner[at]]} (${spoken(words.categories[view.memory.category[at]])}).`));
  if (view.left_out) last.push(el('p', {class: 'caption'}, `${inCount(view.left_out)} events of this step are drawn together or left out, to keep the page small; the highest moments are all there.`));
  return el('div', {}, el('h3', {}, `At the cursor, and at the peak of this step (${inTime(peakAt)})`), beyond, table([
    ['Category', (row) => row.category == null ? 'Total' : keyed(words.categories[row.category])],
    ['Cursor', (row) => inBytes(row.here)],
    ['Peak', (row) => inBytes(row.highest)]],
  rows, {label: 'Memory at the cursor', foot: [{category: null, here: sum(here), highest: sum(highest)}]}), last);
}

function statesTable(run) {
  const steady = run.ranks[0].steady, {states} = run.theory;
  if (!steady) return nothing('No step was finished and logged in full, so nothing was live between two of them.');
  const measured = (category) => steady[words.categories.indexOf(category)];
  const row = (category, theory, name = spoken(category)) => ({category, name, measured: measured(category), theory});
  const rows = [row('parameters', states && states.parameters), row('gradients', states && states.gradients), row('optimizer', states && states.optimizer),
    ...(run.stage === 3 ? [row('gather_buffers', states && states.whole, 'whole between steps')] : [])];
  const all = {category: null, name: 'Total', measured: sum(rows.map((r) => r.measured)), theory: states ? sum(rows.map((r) => r.theory)) : null};
  const difference = (r) => r.theory == null ? 'not known' : r.measured === r.theory ? 'equal' : `${r.measured < r.theory ? '−' : '+'}${inBytes(Math.abs(r.measured - r.theory))}`;
  return el('div', {}, el('p', {class: 'caption'}, states
    ? `Stage ${run.stage} holds ${states.formula} bytes a parameter${run.stage ? `; with N = ${run.world_size} that is ${short(states.per_parameter)}` : ''}. Theory here counts the padding; equal is equal to the byte.`
    : 'The settings in the log do not say what the optimizer keeps, so there is no theory to hold this against.'),
  table([['Rank 0', (r) => r.category ? keyed(r.category, r.name) : r.name], ['Measured', (r) => inBytes(r.measured)],
    ['Theory', (r) => r.theory == null ? 'not known' : inBytes(r.theory)], ['Difference', difference]], rows, {label: 'Model states, measured and in theory', foot: [all]}));
}
