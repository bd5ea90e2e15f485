// Loss and gradient norm of every step.

function curvesSection(body) {
  const host = el('div');
  body.append(host);
  store.watch(['run'], () => {
    const run = runs[store.run], {list, every} = run.steps;
    host.replaceChildren();
    if (!list.length) return void host.append(nothing('No step was finished.'));
    const split = el('div', {class: 'split'});
    host.append(split);
    curve(split, 'Loss, nats', list.map((s) => [s.step, s.loss]), run.validation);
    curve(split, 'Gradient norm, before clipping', list.map((s) => [s.step, s.grad_norm]), []);
    if (run.validation.length) host.append(keys([['gradients', `held-out loss, last ${inLoss(run.validation[run.validation.length - 1][1])}`]]));
    if (every > 1) host.append(el('p', {class: 'caption'}, `One step in ${every} is shown.`));
    const skipped = list.some((s) => s.skipped);
    host.append(el('details', {}, el('summary', {}, 'All steps in figures'), table([
      ['Step', (s) => s.step], ['Loss', (s) => el('span', {'data-of': `loss-${s.step}`, 'data-value': s.loss}, inLoss(s.loss))], ['Gradient norm', (s) => inLoss(s.grad_norm)],
      ['Learning rate', (s) => s.lr == null ? 'not logged' : String(s.lr)], ['Scale', (s) => s.scale == null ? 'not logged' : String(s.scale)],
      ['Time', (s) => inTime(s.seconds == null ? null : s.seconds * 1e6)], ...(skipped ? [['', (s) => s.skipped ? 'skipped' : '']] : []),
    ], list, {label: 'All steps in figures'})));
  });
}

function curve(host, title, points, marks) {
  const box = el('div', {}, el('h3', {}, title));
  host.append(box);
  const known = points.filter(([, value]) => value != null), all = known.concat(marks.filter(([, value]) => value != null));
  if (!all.length) return void box.append(nothing('No value is finite.'));
  const drawing = chart(box, title, (svg, width) => {
    const height = 200, left = 46;
    const [first, last] = d3.extent(all, ([step]) => step);
    const x = d3.scaleLinear().domain(first === last ? [first - 1, last + 1] : [first, last]).range([left, width - 14]);
    const y = d3.scaleLinear().domain(d3.extent(all, ([, value]) => value)).nice().range([height - 4, 10]);
    svg.append('g').attr('class', 'grid').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickSize(-(width - left - 14)).tickFormat(''));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(5));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height})`).call(d3.axisBottom(x).ticks(Math.min(last - first + 1, width / 70)).tickFormat(d3.format('d')));
    const line = d3.line().defined(([, value]) => value != null).x(([step]) => x(step)).y(([, value]) => y(value));
    svg.append('path').attr('class', 'curve').attr('d', line(points));
    const dots = svg.append('g').selectAll('circle').data(known.length <= 60 ? known : []).enter().append('circle').attr('class', 'dot').attr('r', 3).attr('cx', (d) => x(d[0])).attr('cy', (d) => y(d[1]));
    tell(dots, (d) => `step ${d[0]}\n${inLoss(d[1])}`);
    const held = svg.append('g').selectAll('path').data(marks.filter((d) => d[1] != null)).enter().append('path').attr('class', 'mark')
      .attr('d', d3.symbol().type(d3.symbolDiamond).size(70)).attr('transform', (d) => `translate(${x(d[0])},${y(d[1])})`);
    tell(held, (d) => `held-out loss after step ${d[0]}\n${inLoss(d[1])}`);
    return height + 24;
  });
  drawing.measure();
}
