// The ranks side by side.

function ranksSection(body) {
  const host = el('div');
  body.append(host);
  store.watch(['run'], () => {
    const run = runs[store.run];
    host.replaceChildren();
    if (run.ranks.every((rank) => !rank.peak && !rank.typical)) return void host.append(nothing('This log says nothing of single ranks.'));
    const most = Math.max(...peaksOf(run), 1);
    const part = (value, rank) => rank.typical ? inPercent(value(rank.typical) / Math.max(rank.typical.duration, 1)) : 'not logged';
    const stack = (rank) => el('div', {class: 'stack', 'aria-hidden': 'true'}, stacked.map((c) =>
      rank.peak[c] ? el('i', {style: `background:${colour(words.categories[c])};width:${100 * rank.peak[c] / most}%`}) : null));
    host.append(table([
      ['Rank', (rank) => `${run.ranks.indexOf(rank)}`],
      ['Peak', (rank) => rank.peak ? el('span', {'data-of': `peak-${run.ranks.indexOf(rank)}`, 'data-value': totalOf(rank.peak)}, inBytes(totalOf(rank.peak))) : 'not logged'],
      ['', (rank) => rank.peak ? stack(rank) : ''],
      ['Typical step', (rank) => rank.typical ? inTime(rank.typical.duration) : 'not logged'],
      ['Waits for gathers', (rank) => part((t) => t.gather_wait, rank)],
      ['for reductions', (rank) => part((t) => t.reduce_wait, rank)],
      ['for others', (rank) => part((t) => t.other_wait, rank)],
      ['Events', (rank) => rank.there ? inCount(rank.events) : 'no log'],
    ], run.ranks, {label: 'Figures of each rank'}));
  });
}
