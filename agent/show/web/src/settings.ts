import type { Settings } from './api';
import { el } from './dom';
import * as format from './format';

/** How the servers are configured; null if nothing is known. at gives the second of an instant, go shows it. */
export function settings(s: Settings, at: (ms: number) => number, go: (x: number) => void): HTMLElement | null {
  if (s.clusters.length === 0 && s.unknown.length === 0) return null;
  const change = (c: Settings['changes'][number]) => {
    const x = at(c.at);
    const button = el('button', { type: 'button', class: 'link', title: 'Zoom to it' }, format.elapsed(x));
    button.addEventListener('click', () => go(x));
    return el('li', {}, 'by ', button, ' ', el('b', {}, c.server), ` ${c.name}: ${c.before || '–'} → ${c.after || '–'}`);
  };
  return el(
    'section',
    { class: 'panel settings' },
    el('h2', {}, 'Settings of the servers'),
    s.changes.length > 0 && el('p', { class: 'hint' }, 'Changed while the run was going on:'),
    s.changes.length > 0 && el('ul', { class: 'changes' }, ...s.changes.map(change)),
    ...s.clusters.flatMap(cluster),
    ...s.unknown.map((u) => el('p', { class: 'hint' }, `${u.server}: not known, ${u.why}`)),
  );
}

function cluster(c: Settings['clusters'][number]): HTMLElement[] {
  const differing = c.settings.filter((s) => s.differs);
  const same = c.settings.filter((s) => !s.differs);
  const title = [c.servers.length > 1 ? c.cluster : '', c.servers.join(', ')].filter(Boolean).join(': ');
  const parts: HTMLElement[] = [el('h3', {}, title)];
  if (differing.length > 0) {
    const head = ['differs', ...c.servers].map((t) => el('th', { scope: 'col' }, t));
    const rows = differing.map((s) => el('tr', {}, el('th', { scope: 'row' }, s.name), ...s.values.map((v) => el('td', {}, format.setting(v)))));
    parts.push(
      el('div', { class: 'wide differs' }, el('table', { class: 'numbers' }, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows))),
    );
  }
  const rows = same.map((s) => el('div', {}, el('dt', {}, s.name), el('dd', {}, format.setting(s.values[0]!))));
  const count = `${same.length} settings${c.servers.length > 1 ? ' that are the same on all' : ''}`;
  parts.push(el('details', {}, el('summary', {}, count), el('dl', {}, ...rows)));
  return parts;
}
