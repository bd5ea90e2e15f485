// What the three drawings over a step share: the same axis, the cursor, zoom and keys.

const timeMargin = (width) => ({left: width < 600 ? 88 : width < 1000 ? 168 : 210, right: 14});

/** A drawing over the step in view. draw(svg, x, width, view) returns its height. */
function timeChart(parent, label, draw, {axis = true} = {}) {
  let x = null, height = 0;
  const drawing = chart(parent, label, (svg, width) => {
    const view = store.view();
    if (!view) return 0;
    const {left, right} = timeMargin(width);
    x = d3.scaleLinear().domain(store.domain.map((t) => t / 1e3)).range([left, width - right]);
    const at = (t) => x(t / 1e3);
    svg.append('clipPath').attr('id', `clip-${label.replace(/\W/g, '')}`).append('rect')
      .attr('x', left).attr('width', width - left - right).attr('height', 10000);
    height = draw(svg, at, width, view, `url(#clip-${label.replace(/\W/g, '')})`);
    if (axis) {
      svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height})`)
        .call(d3.axisBottom(x).ticks(Math.max(2, (width - left) / 90)).tickFormat((v) => `${+v.toFixed(6)} ms`));
    }
    svg.append('line').attr('class', 'now').attr('y1', 0).attr('y2', height);
    moveCursor();
    return height + (axis ? 24 : 0);
  });
  const moveCursor = () => {
    if (!x) return;
    const t = store.t / 1e3, [begin, end] = x.domain();
    drawing.svg.select('line.now').attr('x1', x(t)).attr('x2', x(t)).attr('opacity', t < begin || t > end ? 0 : 1);
  };
  const node = drawing.svg.node();
  const pointTo = (event) => {
    if (!x) return;
    const [begin, end] = store.domain;
    store.set({t: clamp(x.invert(drawing.x(event)) * 1e3, begin, end)});
  };
  let held = false;
  node.addEventListener('pointerdown', (event) => { held = event.button === 0; if (held) pointTo(event); });
  node.addEventListener('pointermove', (event) => { if (held) pointTo(event); });
  for (const end of ['pointerup', 'pointerleave', 'pointercancel']) node.addEventListener(end, () => { held = false; });
  node.addEventListener('wheel', (event) => {  // without Ctrl the page scrolls
    if (!event.ctrlKey || !x) return;
    event.preventDefault();
    store.zoom(event.deltaY > 0 ? 1.25 : 0.8, x.invert(drawing.x(event)) * 1e3);
  }, {passive: false});
  node.setAttribute('tabindex', '0');
  node.addEventListener('keydown', (event) => {
    const moves = {'+': () => store.zoom(0.5), '=': () => store.zoom(0.5), '-': () => store.zoom(2), '0': () => store.zoom(1e9),
      ArrowLeft: () => moveBy(-1), ArrowRight: () => moveBy(1), PageUp: () => store.pan(-0.5), PageDown: () => store.pan(0.5),
      Home: () => store.set({t: store.domain[0]}), End: () => store.set({t: store.domain[1]})};
    const move = event.ctrlKey || event.metaKey || event.altKey ? null : moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  });
  store.watch(['run', 'step', 'rank', 'domain'], drawing.redraw);
  store.watch(['t'], moveCursor);
  return drawing;
}

/** A hundredth of what is in view. */
function moveBy(parts) {
  const view = store.view();
  if (view) store.set({t: clamp(store.t + parts * (store.domain[1] - store.domain[0]) / 100, 0, view.length)});
}

function zoomButtons() {
  const button = (text, label, act, kind) => el('button', {type: 'button', class: kind, 'aria-label': label, title: label, on: {click: act}}, text);
  return el('div', {class: 'group zoom', role: 'group', 'aria-label': 'Zoom'},
    el('span', {}, 'Zoom'), button('+', 'Zoom in at the cursor', () => store.zoom(0.5)), button('−', 'Zoom out', () => store.zoom(2)),
    button('«', 'Earlier', () => store.pan(-0.5), 'pan'), button('»', 'Later', () => store.pan(0.5), 'pan'),
    button('all', 'Show the whole step', () => store.zoom(1e9)));
}
