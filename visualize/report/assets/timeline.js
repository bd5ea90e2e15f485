// The step as lanes: what the compute thread does, when it stands, what is on its way.

const opColour = (op) => ({all_gather: 'gather_buffers', reduce_scatter: 'reduce_buffers', all_reduce: 'reduce_buffers'})[words.ops[op]] || 'workspace';
const kindColour = (kind) => ({backward: 'backward', recompute: 'recompute'})[words.kinds[kind]] || 'forward';

function timelineSection(body) {
  const missing = nothing('This log has no timeline. Run with --log-level events to see it.');
  const host = el('div');
  body.append(missing, host);
  timeChart(host, 'Timeline of the rank: phases, compute, waiting, communication', drawLanes);
  host.append(keys([['forward', 'forward'], ['backward', 'backward'], ['recompute', 'run again in backward'], ['wait', 'the compute thread waits (hatched)'],
    ['gather_buffers', 'gathers'], ['reduce_buffers', 'reductions'], ['workspace', 'other collectives']]));
  const here = el('p', {class: 'caption'}), copies = el('p', {class: 'caption'}, 'There is no copy lane: nothing in this log was copied between memories.');
  host.append(here, copies);
  store.watch(['run', 'step', 'rank'], () => { const view = store.view(); missing.hidden = !!view; host.hidden = !view; });
  store.watch(['run', 'step', 'rank', 't'], () => {
    const view = store.view();
    if (!view) return;
    const span = spanAt(view, store.t), wait = waitAt(view, store.t), moving = transfersAt(view, store.t);
    here.textContent = `At the cursor: ${span ? spanText(span) : 'no module runs'}; ${wait ? 'the compute thread waits' : 'the compute thread does not wait'}; ${moving.length ? moving.map(transferText).join('; ') : 'nothing is on its way'}.`;
  });
}

const spanText = (span) => `${words.kinds[span[1]]} of ${names[span[0]]}, ${inTime(span[3] - span[2])}`;
const transferText = (each) => `${spoken(words.ops[each[0]])} of ${names[each[8]]}, ${inTime(each[5] - each[4])}, ${inBytes(each[2])} sent`;

/** The first row of which the last entry ends before this one begins. */
function rowFor(rows, begin, end) {
  let row = rows.findIndex((free) => free <= begin);
  if (row < 0) row = rows.length;
  rows[row] = end;
  return row;
}

function drawLanes(svg, at, width, view, clip) {
  const line = 17, {left} = timeMargin(width);
  const [begin, end] = store.domain;
  hatch(svg);
  const group = svg.append('g').attr('clip-path', clip);
  const lane = (y, text) => svg.append('text').attr('class', 'soft').attr('x', left - 10).attr('y', y + 12).attr('text-anchor', 'end').text(text);
  const narrow = width < 600;
  const seen = (from, to) => to >= begin && from <= end;
  let y = 0;

  lane(y, 'phase');
  view.phases.forEach(([from, phase, micro], i) => {
    const to = i + 1 < view.phases.length ? view.phases[i + 1][0] : view.length;
    if (!seen(from, to)) return;
    const x0 = Math.max(at(from), left), x1 = Math.min(at(to), width);
    const box = group.append('rect').attr('class', 'phase').attr('x', x0).attr('y', y + 1).attr('width', Math.max(0, x1 - x0)).attr('height', line - 2).attr('fill', 'var(--paper)');
    const text = `${spoken(words.phases[phase])}${micro ? ` ${micro}` : ''}`;
    tell(box, () => `${text}, ${inTime(to - from)}`);
    if (x1 - x0 > text.length * 6.5 + 8) group.append('text').attr('class', 'soft under').attr('x', x0 + 5).attr('y', y + 13).text(text);
  });
  y += line + 8;

  lane(y, 'compute');
  const depths = view.spans.length ? Math.max(...view.spans.map((span) => span[4])) + 1 : 1;
  boxes(group, view.spans.filter((span) => seen(span[2], span[3])), {at, from: 2, to: 3, y: (span) => y + span[4] * line, height: line - 1,
    fill: (span) => colour(kindColour(span[1])), text: spanText, label: (span) => lastPart(names[span[0]])});
  y += depths * line + 6;

  lane(y, narrow ? 'waits' : 'compute waits');
  boxes(group, view.transfers.filter((each) => seen(each[6], each[7])), {at, from: 6, to: 7, y: () => y, height: line - 1, fill: () => 'url(#hatch)',
    text: (each) => `waits ${inTime(each[7] - each[6])} for\n${transferText(each)}`});
  y += line + 6;

  lane(y, narrow ? 'comm.' : 'communication');
  const rows = [], rowOf = new Map();
  for (const each of view.transfers.slice().sort((a, b) => a[4] - b[4])) rowOf.set(each, rowFor(rows, each[4], each[5]));
  boxes(group, view.transfers.filter((each) => seen(each[3], each[7])), {at, from: 4, to: 5, y: (each) => y + rowOf.get(each) * line, height: line - 1, fill: (each) => colour(opColour(each[0])),
    text: (each) => `${transferText(each)}\nasked for at ${inTime(each[3])}, waited for from ${inTime(each[6])}`, label: (each) => names[each[8]], ink: 'under on-bright'});
  y += Math.max(rows.length, 1) * line + 6;
  return y;
}

function boxes(group, entries, {at, from, to, y, height, fill, text, label, ink = 'under'}) {
  const all = group.append('g').selectAll('rect').data(entries).enter().append('rect').attr('class', 'item')
    .attr('x', (d) => at(d[from])).attr('width', (d) => Math.max(0.75, at(d[to]) - at(d[from]))).attr('y', y).attr('height', height).attr('fill', fill);
  tell(all, text);
  if (!label) return;
  const roomy = entries.filter((d) => at(d[to]) - Math.max(at(d[from]), at(store.domain[0])) > label(d).length * 7 + 8);
  group.append('g').selectAll('text').data(roomy).enter().append('text').attr('class', ink).attr('x', (d) => Math.max(at(d[from]), at(store.domain[0])) + 4).attr('y', (d) => y(d) + 12).text(label);
}

/** mlp.up becomes up, blocks.0 stays. */
const lastPart = (name) => name.replace(/^.*\.(?=[^.]*[^.\d][^.]*$)/, '');

function hatch(svg) {
  const pattern = svg.append('pattern').attr('id', 'hatch').attr('width', 5).attr('height', 5).attr('patternUnits', 'userSpaceOnUse').attr('patternTransform', 'rotate(45)');
  pattern.append('rect').attr('width', 5).attr('height', 5).attr('fill', 'var(--card)');
  pattern.append('rect').attr('width', 2).attr('height', 5).attr('fill', 'var(--wait)');
}
