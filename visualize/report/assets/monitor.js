// The figures that people watch while models train, with the lines that they watch for.

function meter(share, {bands = [], lines = [], over = false} = {}) {
  const place = (value) => `${clamp(100 * value, 0, 100)}%`;
  return el('div', {class: over ? 'meter over' : 'meter', 'aria-hidden': 'true'},
    bands.map(([low, high]) => el('i', {class: 'band', style: `left:${place(low)};width:${100 * (high - low)}%`})),
    el('i', {class: 'fill', style: `width:${place(share)};opacity:0.85`}),
    lines.map((value) => el('i', {class: 'line', style: `left:${place(value)}`})));
}

function watched(title, value, drawing, text) {
  return el('li', {}, el('h3', {}, title), el('b', {}, value), drawing, el('p', {}, text));
}

function memoryWatched(run) {
  const peak = highestPeak(run);
  if (peak == null) return watched('Peak over budget', 'not logged', null, 'The log has no memory.');
  if (!run.budget) return watched('Peak over budget', 'no budget', null, 'No budget was set (--device-memory), so there is nothing to hold the peak against.');
  const share = peak / run.budget;
  const text = run.failure && run.failure.out_of_memory ? 'The next allocation went over the budget.'
    : share > 0.9 ? 'Above the band of 70 to 90%: the next longer sequence may not fit.'
      : share < 0.7 ? 'Below the band of 70 to 90%: memory is left unused.' : 'In the band of 70 to 90%: memory is used, and there is room for a surprise.';
  return watched('Peak over budget', inPercent(share), meter(share, {bands: [[0.7, 0.9]], lines: [0.7, 0.9], over: share > 0.9}), text);
}

function exposedWatched(run) {
  const time = sum(run.steps.list.map((step) => step.seconds || 0));
  if (run.exposed_comm_seconds == null || !time || run.steps.every > 1) return watched('Exposed communication', 'not logged', null, 'summary.json would say it; the run did not end.');
  const share = run.exposed_comm_seconds / time;
  return watched('Exposed communication', inPercent(share), meter(share, {lines: [0.1], over: share > 0.1}),
    `Of the steps, rank 0 stood waiting for collectives; the line is at 10%. ${run.world_size === 1 ? 'One rank talks to nobody.' : share > 0.1 ? 'Above it, the step is bound by communication.' : 'Below it, communication is hidden well.'}`);
}

function overlapWatched(run) {
  if (run.overlap_fraction == null) return watched('Overlap', 'none to have', null, run.world_size === 1 ? 'There are no collectives to hide.' : 'summary.json says nothing of it.');
  return watched('Overlap', inPercent(run.overlap_fraction), meter(run.overlap_fraction), 'Of the time in collectives, hidden behind compute.');
}

function flopsWatched(run) {
  if (run.tokens_per_second == null) return watched('FLOP/s over the peak', 'not logged', null, 'Without a summary there is no throughput.');
  const flops = 6 * elementsOf(run) * run.tokens_per_second;
  return watched('FLOP/s over the peak', `${short(flops / 1e9)} GFLOP/s`, null,
    'By the rule of 6 operations a parameter and token, all ranks together, attention not counted. The log has no measured peak of this machine, so a share of it cannot be said; lab/bench/run products measures one.');
}

function prefetchWatched(run) {
  if (run.stage !== 3) return null;
  const {hits, misses, unused} = run.prefetch || {};
  if (hits == null) return watched('Prefetched in time', 'not logged', null, 'summary.json would say it; the run did not end.');
  const share = hits + misses > 0 ? hits / (hits + misses) : null;
  return watched('Gathers begun ahead', share == null ? 'none' : inPercent(share), meter(share || 0),
    `${inCount(hits)} parameters were prefetched when their module came, ${inCount(misses)} were not (the first step learns the order), ${inCount(unused || 0)} were let go unread.`);
}

function balanceWatched(run) {
  const peaks = peaksOf(run);
  if (peaks.length < 2) return null;
  const spread = Math.max(...peaks) / Math.min(...peaks) - 1;
  return watched('Balance of the ranks', `${inPercent(spread)} apart`, meter(spread), 'The highest peak of a rank, against the lowest.');
}

function skippedWatched(run) {
  const skipped = run.steps.list.filter((step) => step.skipped).length, all = run.steps.list.length;
  if (!all) return null;
  return watched('Skipped steps', `${skipped} of ${all}`, meter(skipped / all, {over: skipped > 0}),
    skipped ? 'Their gradients were not finite, and they changed nothing. A few at the beginning of fp16 are normal.' : 'Every step changed the weights.');
}

function monitorSection(body) {
  const list = el('ul', {class: 'watch'});
  body.append(list);
  store.watch(['run'], () => {
    const run = runs[store.run];
    const all = [memoryWatched, exposedWatched, overlapWatched, flopsWatched, prefetchWatched, balanceWatched, skippedWatched];
    list.replaceChildren(...all.map((make) => make(run)).filter(Boolean));
  });
}
