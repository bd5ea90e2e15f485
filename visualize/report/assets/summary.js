// What a run came to: the figures, and what should be known of it.

const totalOf = (usage) => usage == null ? null : sum(usage);
const peaksOf = (run) => run.ranks.map((rank) => totalOf(rank.peak)).filter((peak) => peak != null);
const highestPeak = (run) => { const peaks = peaksOf(run); return peaks.length ? Math.max(...peaks) : null; };
const sentOf = (run) => run.comm == null ? null : sum(Object.values(run.comm).map((op) => op.bytes_sent));
const median = (list) => list.length ? d3.median(list) : null;
const secondsOf = (run) => median(run.steps.list.map((step) => step.seconds).filter((s) => s != null));
const elementsOf = (run) => sum(run.parameters.map(([, numel]) => numel));
/** The first and last step that the log has; nothing without any. */
const ends = (run) => [run.steps.list[0], run.steps.list[run.steps.list.length - 1]];

/** A figure under its name: what it is called in the log helps tests, and readers of the log. */
function figure(name, text, note, {of, value} = {}) {
  return el('div', {}, el('dt', {}, name),
    el('dd', {}, el('span', {'data-of': of, 'data-value': value}, text), note ? el('small', {}, note) : null));
}

function aboutText(run) {
  const {about} = run;
  const parts = [
    `Stage ${run.stage}`, run.world_size === 1 ? '1 rank' : `${run.world_size} ranks`,
    about.model && `${about.model}, ${inCount(elementsOf(run))} parameters`, about.dtype,
    about.transport, about.device,
    about.link && `a link of ${[about.link.bandwidth && `${inBytes(about.link.bandwidth)}/s`, about.link.latency && `latency ${inTime(about.link.latency * 1e6)}`].filter(Boolean).join(', ')}`,
    about.resumed_from && `resumed from ${about.resumed_from} after step ${about.resumed_at}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

function summaryFigures(run) {
  const [first, last] = ends(run);
  const peak = highestPeak(run), seconds = secondsOf(run), sent = sentOf(run);
  const steps = run.steps.every > 1 ? null : run.steps.list.length;
  return el('dl', {class: 'figures'},
    figure('Loss, nats', last ? inLoss(last.loss) : 'no step', last ? `after step ${last.step}; ${inLoss(first.loss)} in step ${first.step}` : null,
      {of: 'loss', value: last && last.loss}),
    figure('Peak memory of a rank', inBytes(peak), run.budget ? `budget ${inBytes(run.budget)}` : 'no budget was set', {of: 'peak', value: peak}),
    figure('Step', seconds == null ? 'none done' : inTime(seconds * 1e6), 'the median'),
    figure('Tokens a second', run.tokens_per_second == null ? 'not logged' : inCount(Math.round(run.tokens_per_second)), 'of all ranks',
      {of: 'tokens_per_second', value: run.tokens_per_second}),
    figure('Sent by rank 0', inBytes(sent == null || !steps ? sent : sent / steps), steps ? 'in a step, on average' : 'in all', {of: 'sent', value: sent}),
    figure('Waiting for collectives', inPercent(run.shares && run.shares.gather_wait + run.shares.reduce_wait + run.shares.other_wait),
      'of a step, all ranks'));
}

function remarkList(run) {
  const titles = {failure: 'It failed.', warning: 'Look here.', hint: 'Good to know.', missing: 'Not in the log.'};
  if (run.remarks.length === 0) return el('p', {}, 'Nothing stands out: no warning applies to this run.');
  return el('ul', {class: 'remarks'}, run.remarks.map(({kind, text}) => el('li', {class: kind}, el('strong', {}, titles[kind]), text)));
}

function summarySection(body) {
  const host = el('div'), choose = runButtons();
  if (choose) body.append(choose);
  body.append(host);
  store.watch(['run'], () => {
    const run = runs[store.run];
    host.replaceChildren(el('p', {class: 'caption'}, aboutText(run)), summaryFigures(run), el('h3', {}, 'What to know'), remarkList(run));
    if (run.about.command) host.append(el('h3', {}, 'How it was run'), el('pre', {}, run.about.command));
  });
}
