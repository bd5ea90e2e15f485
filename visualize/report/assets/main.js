// The page: its sections in their order.

const sections = [
  ['compare', 'The runs side by side', null, compareSection],
  ['summary', 'Summary', null, summarySection],
  ['failure', 'What broke the budget', null, failureSection],
  ['monitor', 'What to watch', 'The figures that practitioners keep an eye on, and where they draw the line.', monitorSection],
  ['cursor', 'A step in full', null, cursorSection],
  ['memory', 'Memory over the step', 'What one rank holds, moment by moment. Look for what rises and falls: activations grow in forward and go in backward; buffers come and go.', memorySection],
  ['timeline', 'Timeline', 'What happens at the same time. A transfer under a wait is time that communication costs; a transfer under compute alone is hidden.', timelineSection],
  ['lifelines', 'Lives of the parameters', 'When each parameter is whole on this rank. In stages 0 to 2 they are always there; in stage 3 they come just before a module reads them, and go right after.', lifelinesSection],
  ['ranks', 'The ranks', 'They should look alike: a rank that waits less than others is the one that they wait for.', ranksSection],
  ['collectives', 'Collectives against theory', 'What rank 0 sent in all optimizer steps, beside the formula of the stage.', collectivesSection],
  ['curves', 'Loss and gradient norm', 'The loss should fall; a norm that jumps says that something does not fit.', curvesSection],
  ['settings', 'How it was run', null, settingsSection],
];

function titles() {
  const run = runs[0];
  const several = runs.length > 1;
  const model = run.about.model || 'A model';
  document.getElementById('title').textContent = several ? `${model}, ${runs.length} runs side by side` : `${model}, stage ${run.stage}, ${run.world_size === 1 ? '1 rank' : `${run.world_size} ranks`}`;
  document.title = `${document.getElementById('title').textContent}: zerolab report`;
  const stages = [...new Set(runs.map((each) => each.stage))].join(', ');
  document.getElementById('subtitle').textContent = several
    ? `What ZeRO stages ${stages} keep in memory, send and wait for, from the logs of the runs themselves.`
    : 'What this run kept in memory, sent and waited for, from its own log.';
}

function themes() {
  const root = document.documentElement, button = document.getElementById('theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const show = (dark) => {
    root.dataset.theme = dark ? 'dark' : 'light';
    button.textContent = dark ? 'Light' : 'Dark';
    button.setAttribute('aria-label', dark ? 'Light colours' : 'Dark colours');
  };
  show(system.matches);
  system.addEventListener('change', (event) => show(event.matches));
  button.addEventListener('click', () => show(root.dataset.theme !== 'dark'));
}

themes();
titles();
const start = runs.findIndex((run) => run.stage === 3 && run.views.length);
store.chooseRun(Math.max(start, 0));
const links = el('ul');
for (const [id, title, caption, fill] of sections) {
  const section = el('section', {id, 'aria-labelledby': `${id}-title`}, el('h2', {id: `${id}-title`}, title), caption ? el('p', {class: 'caption'}, caption) : null);
  document.getElementById('main').append(section);
  fill(section);
  if (section.isConnected && !section.hidden && id !== 'cursor') links.append(el('li', {}, el('a', {href: `#${id}`}, title)));
}
document.getElementById('contents').append(links);
document.documentElement.dataset.ready = 'true';
