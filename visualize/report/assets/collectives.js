// What was sent, beside what theory says.

function collectivesSection(body) {
  const host = el('div');
  body.append(host);
  store.watch(['run'], () => {
    const run = runs[store.run];
    host.replaceChildren();
    if (!run.comm) return void host.append(nothing('Traffic is counted in summary.json, which a run writes at its end: this one did not get there.'));
    const steps = run.steps.every > 1 ? null : run.steps.list.length;
    const expected = (op) => steps && run.theory.sent[op] != null ? run.theory.sent[op] * steps : null;
    const ops = [...new Set([...Object.keys(run.comm), ...Object.keys(run.theory.sent)])];
    const rows = ops.map((op) => ({op, ...(run.comm[op] || {calls: 0, elements: 0, bytes_sent: 0}), theory: expected(op)}));
    const all = {op: null, calls: sum(rows.map((r) => r.calls)), elements: sum(rows.map((r) => r.elements)), bytes_sent: sum(rows.map((r) => r.bytes_sent)), theory: null};
    const shade = (op) => op in run.theory.sent || words.ops.includes(op) ? opColour(words.ops.indexOf(op)) : 'workspace';
    host.append(table([
      ['Collective', (r) => r.op ? keyed(shade(r.op), spoken(r.op)) : 'All'],
      ['Calls', (r) => inCount(r.calls)],
      ['Elements', (r) => inCount(r.elements)],
      ['Sent', (r) => el('span', {'data-of': r.op ? `sent-${r.op}` : 'sent-all', 'data-value': r.bytes_sent}, inBytes(r.bytes_sent))],
      ['In a step', (r) => steps ? inBytes(r.bytes_sent / steps) : 'not known'],
      ['Theory, a step', (r) => r.theory == null ? r.op ? 'none' : '' : inBytes(r.theory / steps)],
      ['Measured / theory', (r) => r.theory ? `${(r.bytes_sent / r.theory * 100).toFixed(r.bytes_sent === r.theory ? 0 : 1)}%` : ''],
    ], rows, {label: 'Collectives of rank 0', foot: [all]}));
    host.append(el('p', {class: 'caption'}, `Theory: a rank sends ${run.theory.sent_formula} bytes in a step, of Ψ elements with padding and s bytes each, with N = ${run.world_size} ranks${run.stage >= 2 ? ' and G micro-steps' : ''}. Control (norm, loss, checks) is not part of it.`));
    if (!run.theory.exact) host.append(el('p', {class: 'caption'}, 'k modules read a parameter; one that stays whole is gathered once a step. Stage 3 sends less where a parameter is still whole when the next module reads it, and more where blocks run again in backward, or in the first step, which gathers everything once more.'));
  });
}
