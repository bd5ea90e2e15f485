// The life of every parameter over the step, and the state machine it moves in.

const stateColour = (state) => ['away', 'inflight', 'available'][state];
const stateText = (state) => ({NOT_AVAILABLE: 'not here', INFLIGHT: 'on its way', AVAILABLE: 'here, whole'})[words.statuses[state]];
const fewRows = 48;

function lifelinesSection(body) {
  const missing = nothing('This log has no transitions of parameters. Run with --log-level events to see them.');
  const host = el('div');
  body.append(missing, host);
  let all = false;
  const choose = el('div', {class: 'controls'});
  const drawing = timeChart(host, 'Lines of the parameters, coloured by state', (...args) => drawLives(...args, all ? Infinity : fewRows));
  host.append(keys([['away', 'not here'], ['inflight', 'on its way'], ['available', 'here, whole']]));
  host.append(choose);
  const story = el('p', {}), diagram = el('div', {class: 'diagram'});
  host.append(story, diagram);
  store.watch(['run', 'step', 'rank', 'parameter'], () => {
    const view = store.view(), run = runs[store.run];
    missing.hidden = !!view;
    host.hidden = !view;
    if (!view) return;
    const more = run.parameters.length > fewRows ? el('button', {type: 'button', 'aria-pressed': String(all), on: {click: () => { all = !all; drawing.redraw(); }}}, `All ${run.parameters.length}`) : null;
    choose.replaceChildren(choice('Parameter', run.parameters.map(([name], i) => [i, names[name]]), store.parameter, (parameter) => store.set({parameter})), ...(more ? [more] : []));
    drawing.redraw();
  });
  store.watch(['run'], () => showDiagram(diagram));
  store.watch(['run', 'step', 'rank', 't', 'parameter'], () => {
    const view = store.view();
    if (view) tellState(view, story, diagram);
  });
}

function drawLives(svg, at, width, view, clip, most) {
  const run = runs[store.run], line = 14, {left} = timeMargin(width);
  const lines = lifelinesOf(view).slice(0, most);
  const group = svg.append('g').attr('clip-path', clip);
  const [begin, end] = store.domain;
  lines.forEach((parts, p) => {
    const name = names[run.parameters[p][0]], y = p * line;
    svg.append('text').attr('class', p === store.parameter ? '' : 'soft').attr('x', left - 8).attr('y', y + 11).attr('text-anchor', 'end').attr('font-weight', p === store.parameter ? 700 : null)
      .style('font-size', width < 600 ? '10px' : '11px').text(fit(name, left - 8, width < 600 ? 5.4 : 5.9)).style('cursor', 'pointer').on('click', () => store.set({parameter: p}));
    const row = group.append('g').selectAll('rect').data(parts.filter((part) => part[1] >= begin && part[0] <= end && part[1] > part[0])).enter().append('rect')
      .attr('x', (d) => at(d[0])).attr('width', (d) => Math.max(0.75, at(d[1]) - at(d[0])))
      .attr('y', (d) => y + (d[2] === 0 ? 6 : 2)).attr('height', (d) => d[2] === 0 ? 2 : line - 4).attr('fill', (d) => colour(stateColour(d[2])))
      .on('click', () => store.set({parameter: p}));
    tell(row, (d) => `${name}\n${stateText(d[2])} for ${inTime(d[1] - d[0])}${d[3] ? `, by ${spoken(words.causes[d[3][4]])}` : ''}`);
  });
  return lines.length * line + 2;
}

function tellState(view, story, diagram) {
  const run = runs[store.run], line = lifelinesOf(view)[store.parameter];
  if (!line) return;
  const [from, to, state, move] = stateAt(line, store.t);
  const [name, numel, trainable, persistent] = run.parameters[store.parameter];
  const counts = [0, 0, 0];
  for (const each of lifelinesOf(view)) ++counts[stateAt(each, store.t)[2]];
  story.textContent = `At ${inTime(store.t)} ${names[name]} (${inCount(numel)} elements${persistent ? ', stays whole between steps' : ''}${trainable ? '' : ', frozen'}) is ${stateText(state)}, `
    + `${move ? `since ${inTime(from)} by ${spoken(words.causes[move[4]])}${names[move[5]] ? ` for ${names[move[5]]}` : ''}` : 'since the step began'}${to < view.length ? `, until ${inTime(to)}` : ''}. `
    + `Of all parameters ${counts[2]} are here, ${counts[1]} on their way, ${counts[0]} not here.`;
  for (const node of diagram.querySelectorAll('.lit')) node.classList.remove('lit');
  const lit = diagram.querySelector(`#state-${words.statuses[state]}`);
  if (lit) lit.classList.add('lit');
}

/** The state machine, drawn by Graphviz when the page was made. */
function showDiagram(host) {
  host.replaceChildren();
  const text = runs[store.run].diagram;
  if (!text) return;
  const drawing = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  if (drawing.nodeName !== 'svg') return;
  for (const unsafe of drawing.querySelectorAll('script, foreignObject, a, image, use')) unsafe.remove();
  host.append(document.importNode(drawing, true));
}
