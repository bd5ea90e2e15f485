// An allocation that did not fit.

function failureSection(body) {
  const host = el('div');
  body.append(host);
  const draw = () => {
    host.replaceChildren();
    const memory = runs[store.run].failure && runs[store.run].failure.out_of_memory;
    body.hidden = !memory;
    if (!memory) return;
    host.append(
      el('p', {}, `Rank ${runs[store.run].failure.rank ?? '?'} asked for `, el('b', {}, inBytes(memory.requested)), ` for `, el('b', {}, memory.owner),
        ` (${spoken(memory.category)}) in ${memory.where}. ${inBytes(memory.live)} of the budget of ${inBytes(memory.budget)} were taken: it is short by `,
        el('b', {}, inBytes(memory.short_by)), '.'));
    waterfall(host, memory);
    host.append(el('h3', {}, 'Who holds most'));
    host.append(table([
      ['Owner', (row) => row.owner, 'text'],
      ['Category', (row) => keyed(words.categories.includes(row.category) ? row.category : 'workspace', spoken(row.category)), 'text'],
      ['Bytes', (row) => inBytes(row.bytes)],
      ['Of the budget', (row) => inPercent(row.bytes / memory.budget)]], memory.holders, {label: 'The largest holders'}));
  };
  store.watch(['run'], draw);
}

/** The last allocations before it, and the one that broke the budget: live bytes as bars. */
function waterfall(host, memory) {
  const rows = [...memory.last, {...memory, bytes: memory.requested, live: memory.live + memory.requested, broke: true}];
  const low = Math.max(0, Math.min(...rows.map((row) => row.live - Math.max(row.bytes, 0))) - memory.requested);
  const drawing = chart(host, 'The last allocations and the one that broke the budget', (svg, width) => {
    const line = 24, narrow = width < 600, left = narrow ? 8 : 260;
    const height = rows.length * line * (narrow ? 1.7 : 1);
    const step = height / rows.length;
    const x = d3.scaleLinear().domain([low, Math.max(memory.budget, memory.live + memory.requested)]).range([left, width - 84]);
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height + 6})`)
      .call(d3.axisBottom(x).tickValues(unitTicks(low, x.domain()[1], width < 600 ? 3 : 6)).tickFormat(inUnitOf(memory.budget)));
    const row = svg.selectAll('g.row').data(rows).enter().append('g').attr('transform', (d, i) => `translate(0,${i * step})`);
    row.append('text').attr('x', narrow ? left : left - 10).attr('y', narrow ? 12 : line / 2 + 5).attr('text-anchor', narrow ? 'start' : 'end')
      .attr('font-weight', (d) => d.broke ? 700 : null)
      .text((d) => fit(d.owner, narrow ? width - 20 : left - 20));
    const bar = row.append('g').attr('transform', `translate(0,${narrow ? 16 : 0})`);
    bar.append('rect').attr('x', x(low)).attr('y', 4).attr('height', line - 8).attr('width', (d) => x(Math.min(d.live, d.live - d.bytes)) - x(low)).attr('fill', 'var(--away)');
    bar.append('rect').attr('x', (d) => x(Math.min(d.live, d.live - d.bytes))).attr('y', 4).attr('height', line - 8)
      .attr('width', (d) => Math.max(2, x(Math.max(d.live, d.live - d.bytes)) - x(Math.min(d.live, d.live - d.bytes))))
      .attr('fill', (d) => d.bytes < 0 ? 'none' : colour(words.categories.includes(d.category) ? d.category : 'workspace'))
      .attr('stroke', (d) => d.broke ? 'var(--bad)' : d.bytes < 0 ? 'var(--soft)' : 'none').attr('stroke-width', (d) => d.broke ? 3 : 1)
      .attr('stroke-dasharray', (d) => d.bytes < 0 ? '3 2' : null);
    bar.append('text').attr('class', 'soft').attr('x', (d) => x(Math.max(d.live, d.live - d.bytes)) + 6).attr('y', line / 2 + 4)
      .text((d) => `${d.bytes < 0 ? '−' : '+'}${inBytes(Math.abs(d.bytes))}`);
    svg.append('line').attr('class', 'limit').attr('x1', x(memory.budget)).attr('x2', x(memory.budget)).attr('y1', 0).attr('y2', height + 6);
    return height + 34;
  });
  host.append(el('p', {class: 'caption'}, 'From top to bottom: what was live (grey), what was taken (filled) or given back (dashed), and last what broke the budget (the dashed line).'));
  drawing.measure();
}

/** A text that is about so wide in pixels; its end says more than its beginning. */
function fit(text, width, letter = 6.6) {
  const most = Math.max(3, Math.floor(width / letter));
  return text.length <= most ? text : `…${text.slice(text.length - most + 1).replace(/^\./, '')}`;
}
