// Small things that every view uses.

const page = JSON.parse(document.getElementById('data').textContent);
const {words, names, runs} = page;

/** An element with attributes (`on` holds listeners) and children; texts become text, never HTML. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false && value != null) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

const colour = (name) => `var(--${name})`;
const spoken = (name) => name.replace(/_/g, ' ');
const sum = (list) => list.reduce((a, b) => a + b, 0);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** Three significant digits. */
function short(value) {
  if (value === 0) return '0';
  const digits = clamp(2 - Math.floor(Math.log10(Math.abs(value))), 0, 6);
  return value.toFixed(digits);
}
function inBytes(value) {
  if (value == null) return 'not logged';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) value /= 1024, ++unit;
  return `${unit === 0 ? Math.round(value) : short(value)} ${units[unit]}`;
}
/** From microseconds. */
function inTime(value) {
  if (value == null) return 'not logged';
  if (Math.abs(value) >= 1e6) return `${short(value / 1e6)} s`;
  return Math.abs(value) >= 1e3 ? `${short(value / 1e3)} ms` : `${Math.round(value)} µs`;
}
function inPercent(share) {
  return share == null ? 'not logged' : `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)}%`;
}
const inCount = (value) => value == null ? 'not logged' : d3.format(',')(value);
const inLoss = (value) => value == null ? 'not finite' : value.toFixed(4);

/** A list of columns [heading, how a row's cell comes about], and of rows. */
function table(columns, rows, {caption, label, foot, chosen} = {}) {
  const cell = (tag, [, value, kind], row) => {
    const content = value(row);
    return el(tag, {class: kind, scope: tag === 'th' ? 'row' : null}, content instanceof Node ? content : String(content));
  };
  const line = (row) => el('tr', {class: chosen && chosen(row) ? 'chosen' : null},
    columns.map((column, i) => cell(i === 0 ? 'th' : 'td', column, row)));
  return el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label || caption},
    el('table', {},
      el('thead', {}, el('tr', {}, columns.map(([heading, , kind]) => el('th', {class: kind, scope: 'col'}, heading)))),
      el('tbody', {}, rows.map(line)),
      foot ? el('tfoot', {}, foot.map(line)) : null));
}

const swatch = (name) => el('span', {class: 'swatch', style: `background:${colour(name)}`});
const keyed = (name, text = spoken(name)) => el('span', {}, swatch(name), text);
const keys = (entries) => el('ul', {class: 'keys'}, entries.map(([name, text]) => el('li', {}, keyed(name, text))));
const nothing = (text) => el('p', {class: 'nothing'}, text);

/** A drawing that is made anew when its room changes. draw(group, width) returns its height; both are in
 * pixels of a text of 16, and the drawing grows with the text of the page. */
function chart(parent, label, draw) {
  const box = el('div', {class: 'chart'});
  parent.append(box);
  const svg = d3.select(box).append('svg').attr('role', 'img').attr('aria-label', label);
  let width = 0, scale = 1;
  const redraw = () => {
    if (width < 50) return;
    scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    svg.selectAll('*').remove();
    const height = draw(svg.append('g').attr('transform', `scale(${scale})`), width / scale);
    svg.attr('width', width).attr('height', height * scale);
  };
  const measure = () => {
    if (Math.abs(box.clientWidth - width) < 1) return;
    width = box.clientWidth;
    redraw();
  };
  new ResizeObserver(() => requestAnimationFrame(measure)).observe(box);
  const x = (event) => (event.clientX - svg.node().getBoundingClientRect().left) / scale;
  return {redraw, measure, svg, x};
}

/** A text beside the pointer. The same is said at the cursor, for those without one. */
const tip = document.getElementById('tip');
function tell(selection, text) {
  selection
    .on('pointermove', (d) => {
      tip.textContent = text(d);
      tip.hidden = false;
      const {clientX: x, clientY: y} = d3.event;
      tip.style.left = `${clamp(x + 14, 4, innerWidth - tip.offsetWidth - 4)}px`;
      tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
    })
    .on('pointerleave', () => { tip.hidden = true; });
}
