// What is looked at: a run, one of its steps, a rank, a moment, and the part of the step in view.

const store = {
  run: 0, step: 0, rank: 0, t: 0, domain: [0, 1], parameter: 0, listeners: [],

  /** Calls `listener` now and whenever one of `what` changes. */
  watch(what, listener) {
    this.listeners.push({what, listener});
    listener();
  },
  set(changes) {
    const changed = Object.keys(changes).filter((key) => this[key] !== changes[key]);
    if (changed.length === 0) return;
    Object.assign(this, changes);
    for (const {what, listener} of this.listeners) {
      if (changed.some((key) => what.includes(key))) listener();
    }
  },

  chooseRun(run) {
    const {shown_step: step, failure} = runs[run];
    const rank = failure && failure.rank != null ? failure.rank : 0;
    this.choose({run, step, rank: rank < runs[run].world_size ? rank : 0});
  },
  chooseStep(step) { this.choose({run: this.run, step, rank: this.rank}); },
  chooseRank(rank) { this.choose({run: this.run, step: this.step, rank}, this.t); },
  choose(place, t) {
    const view = viewOf(place.run, place.step, place.rank);
    const length = view ? Math.max(view.length, 1) : 1;
    const sameStep = t != null;
    const parameters = runs[place.run].parameters.length;
    this.set({
      ...place,
      parameter: this.parameter < parameters ? this.parameter : 0,
      t: sameStep ? clamp(t, 0, length) : startOf(place, view),
      domain: [0, length],
    });
  },
  zoom(factor, centre = this.t) {
    const view = this.view();
    if (!view) return;
    const [begin, end] = this.domain;
    const width = clamp((end - begin) * factor, Math.min(20, view.length), view.length);
    const left = clamp(centre - (centre - begin) * width / (end - begin), 0, view.length - width);
    this.set({domain: [left, left + width]});
  },
  pan(share) {
    const view = this.view();
    if (!view) return;
    const [begin, end] = this.domain;
    const left = clamp(begin + share * (end - begin), 0, view.length - (end - begin));
    this.set({domain: [left, left + end - begin]});
  },
  view() { return viewOf(this.run, this.step, this.rank); },
};

/** A step of a rank in full, or null. */
function viewOf(run, step, rank) {
  const found = runs[run].views.find((view) => view.step === step);
  return found ? found.ranks[rank] : null;
}

/** The cursor begins at the allocation that broke the budget, or else where most memory is live. */
function startOf({run}, view) {
  if (!view) return 0;
  const broke = brokenIn(runs[run], view);
  return clamp(broke ? broke.t : memoryOf(view).peakAt, 0, Math.max(view.length, 1));
}

/** The allocation that did not fit, with its moment, if it is of this view: it is not in the log, but
 * what was live then is. */
function brokenIn(run, view) {
  const memory = run.failure && run.failure.out_of_memory;
  if (!memory || view.ended) return null;
  const {times, live} = memoryOf(view);
  for (let i = live.length - 1; i >= 0; --i) {
    if (sum(live[i]) === memory.live && memory.pool === 'device') return {...memory, t: times[i]};
  }
  return null;
}

/** How many entries of an ascending list lie at or before t. */
const before = d3.bisectRight;

/** Live bytes by category after each change; made once for each view. */
const memories = new Map();
function memoryOf(view) {
  if (memories.has(view)) return memories.get(view);
  const times = [0], live = [view.live];
  let peak = sum(view.live), peakAt = 0;
  view.memory.t.forEach((t, i) => {
    const next = live[live.length - 1].slice();
    next[view.memory.category[i]] += view.memory.bytes[i];
    times.push(t);
    live.push(next);
    if (sum(next) > peak) peak = sum(next), peakAt = t;
  });
  times.push(Math.max(view.length, times[times.length - 1]));
  live.push(live[live.length - 1]);
  const result = {times, live, peak, peakAt};
  memories.set(view, result);
  return result;
}

/** The state of every parameter from when to when: [begin, end, state, transition or null]. */
const lives = new Map();
function lifelinesOf(view) {
  if (lives.has(view)) return lives.get(view);
  const lines = view.states.map((state) => [[0, view.length, state, null]]);
  for (const move of view.transitions) {
    const line = lines[move[1]];
    line[line.length - 1][1] = move[0];
    line.push([move[0], view.length, move[3], move]);
  }
  lives.set(view, lines);
  return lines;
}
const stateAt = (line, t) => line[Math.max(0, before(line.map((part) => part[0]), t) - 1)];

/** The phase at t, as in "backward, micro-step 1". */
function phaseAt(view, t) {
  const phase = view.phases[Math.max(0, before(view.phases.map(([begin]) => begin), t) - 1)];
  return phase ? {name: words.phases[phase[1]], micro: phase[2]} : null;
}
/** The innermost module that runs at t, or null. */
function spanAt(view, t) {
  let best = null;
  for (const span of view.spans) {
    if (span[2] <= t && t <= span[3] && (!best || span[4] >= best[4])) best = span;
  }
  return best;
}
const waitAt = (view, t) => view.transfers.find((each) => each[6] <= t && t <= each[7] && each[7] > each[6]);
const transfersAt = (view, t) => view.transfers.filter((each) => each[4] <= t && t <= each[5]);

function runName(run) {
  const {stage, world_size: ranks, folder} = run;
  const twins = runs.filter((other) => other.stage === stage && other.world_size === ranks);
  return twins.length > 1 ? `stage ${stage}, ${folder}` : `stage ${stage}`;
}
