// The scrubber: which run, step and rank is looked at, and which moment.

function cursorSection(body) {
  const choices = el('div', {class: 'controls'});
  const controls = el('div', {class: 'controls'}, runButtons(), choices, zoomButtons());
  const slider = el('input', {type: 'range', id: 'scrubber', min: 0, step: 1, 'aria-label': 'Moment of the step'});
  const now = el('p', {id: 'now', 'aria-live': 'off'});
  const jump = (text, label, way) => el('button', {type: 'button', 'aria-label': label, title: label, on: {click: () => nextChange(way)}}, text);
  const scrub = el('div', {class: 'scrub'}, jump('‹', 'The change of memory before', -1), slider, jump('›', 'The next change of memory', 1));
  body.append(controls, scrub, now);
  slider.addEventListener('input', () => store.set({t: +slider.value}));

  store.watch(['run', 'step', 'rank'], () => {
    const run = runs[store.run], view = store.view();
    choices.replaceChildren(...[stepChoice(run), rankChoice(run)].filter(Boolean));
    scrub.hidden = !view;
    if (view) slider.max = view.length;
  });
  store.watch(['run', 'step', 'rank', 't'], () => {
    const view = store.view();
    now.textContent = view ? momentText(view) : 'This log has no step in full: what is below comes from its summary.';
    slider.value = store.t;
    slider.setAttribute('aria-valuetext', now.textContent);
  });
}

/** A button for each run; nothing where there is one. */
function runButtons() {
  if (runs.length < 2) return null;
  const buttons = runs.map((run, i) => el('button', {type: 'button', on: {click: () => store.chooseRun(i)}}, runName(run)));
  store.watch(['run'], () => buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(i === store.run))));
  return el('div', {class: 'group choose', role: 'group', 'aria-label': 'Run'}, buttons);
}

function choice(label, options, chosen, choose) {
  return el('label', {}, label, el('select', {on: {change: (event) => choose(+event.target.value)}},
    options.map(([value, text]) => el('option', {value, selected: value === chosen}, text))));
}
function stepChoice(run) {
  if (!run.views.length) return null;
  return choice('Step', run.views.map(({step}) => [step, step === 0 ? 'set-up' : String(step)]), store.step, (step) => store.chooseStep(step));
}
function rankChoice(run) {
  const view = run.views.find(({step}) => step === store.step);
  if (!view) return null;
  return choice('Rank', view.ranks.map((rank, i) => [i, rank]).filter(([, rank]) => rank).map(([i]) => [i, String(i)]), store.rank, (rank) => store.chooseRank(rank));
}

function momentText(view) {
  const phase = phaseAt(view, store.t), span = spanAt(view, store.t), wait = waitAt(view, store.t);
  const {times, live} = memoryOf(view);
  return [
    inTime(store.t),
    phase && spoken(phase.name),
    phase && phase.micro > 0 && `micro-step ${phase.micro}`,
    `${inBytes(sum(live[before(times, store.t) - 1]))} live`,
    wait ? `waits for ${spoken(words.ops[wait[0]])} of ${names[wait[8]]}` : span && `${names[span[0]]} runs`,
  ].filter(Boolean).join(' · ');
}

function nextChange(way) {
  const view = store.view();
  if (!view) return;
  const {times} = memoryOf(view);
  const at = way > 0 ? before(times, store.t) : d3.bisectLeft(times, store.t) - 1;
  store.set({t: times[clamp(at, 0, times.length - 1)]});
}
