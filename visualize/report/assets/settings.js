// With what it was run.

function settingsSection(body) {
  const host = el('div');
  body.append(host);
  store.watch(['run'], () => {
    const {about} = runs[store.run];
    const active = about.settings.filter((setting) => setting.active), chosen = active.filter(({origin}) => origin !== 'default');
    const columns = [['Setting', (s) => el('code', {}, s.key)], ['Value', (s) => s.value], ['From', (s) => s.origin]];
    const facts = [['Folder', runs[store.run].folder], ['Started', about.started], ['zerolab', about.version], ['Device', about.device], ['Ranks are', about.transport], ['Data', about.data]].filter(([, value]) => value);
    host.replaceChildren(table([['Run', ([name]) => name], ['', ([, value]) => value, 'text']], facts, {label: 'The run'}));
    if (!active.length) return void host.append(nothing('run.json has no settings.'));
    host.append(el('h3', {}, 'Settings that are not the default'), table(columns, chosen, {label: 'Settings that are not the default'}),
      el('details', {}, el('summary', {}, `All ${active.length} settings in use`), table(columns, active, {label: 'All settings in use'})));
  });
}
