import type { Block, Section, Sentence } from './api';
import { el } from './dom';
import * as format from './format';
import { address } from './place';
import { plot } from './plot';

/** Shows a second of the run's axis. */
type Go = (second: number) => void;

/** Sections of a document as the agent sends them. Charts over time, which it leaves to the page, are left out. */
export const sections = (all: Section[], go?: Go): HTMLElement[] =>
  all.map((s) => el('section', { class: 'panel', 'data-section': s.id }, el('h2', {}, s.title), ...sectionBlocks(s, go)));

export const sectionBlocks = (s: Section, go?: Go): HTMLElement[] => s.blocks.flatMap((b) => block(b, s.title, go));

function block(b: Block, section: string, go?: Go): HTMLElement[] {
  const inner = content(b, b.title ?? section, go);
  if (!inner) return [];
  if (b.marked) inner.classList.add('marked');
  return [...(b.title ? [el('h3', {}, b.title)] : []), b.fold ? el('details', {}, el('summary', {}, b.fold), inner) : inner];
}

function content(b: Block, label: string, go?: Go): HTMLElement | null {
  if (b.rows) return tableOf(b, label);
  if (b.facts)
    return el('dl', { class: b.large ? 'figures' : 'terms' }, ...b.facts.map((f) => el('div', {}, el('dt', {}, f.name), el('dd', {}, f.value))));
  if (b.drawings) {
    const drawn = b.drawings.filter((d) => d.svg);
    return drawn.length > 0 ? el('div', { class: 'drawings' }, ...drawn.map(plot)) : null;
  }
  if (b.code) return el('pre', {}, ...b.code.split(/(\s+)/).map((word, i) => (i % 2 ? word : el('span', {}, word))));
  const lines = b.lines ?? [];
  return b.prose ? el('div', { class: 'prose' }, ...lines.map((l) => el('p', {}, ...text(l, go)))) : el('ul', {}, ...lines.map((l) => item(l, go)));
}

const item = (l: Sentence, go?: Go): HTMLElement =>
  l.level ? el('li', { class: `level ${l.level}` }, el('b', {}, l.level), ' ', el('span', {}, ...text(l, go))) : el('li', {}, ...text(l, go));

/** A line; if it is about a moment, it links to it. */
export function text(l: Sentence, go?: Go): (Node | string)[] {
  const whole = (words = '') => words.replaceAll(' %', '\u00a0%'); // a share stays on one line
  const parts: (Node | string)[] = [whole(l.text), ...(l.strong ? [el('b', {}, whole(l.strong))] : []), whole(l.rest)];
  const at = l.at_seconds;
  if (at === undefined || !go) return parts;
  const button = el('button', { type: 'button', class: 'link', 'aria-label': `Zoom to ${format.elapsed(at)}` }, 'zoom');
  button.addEventListener('click', () => go(at));
  return [...parts, ' ', button];
}

/** A table whose first cells name the rows. */
function tableOf(b: Block, label: string): HTMLElement {
  const name = (cell: string) => (b.runs?.includes(cell) ? el('a', { href: address(['runs', cell]) }, cell) : cell);
  const row = (cells: string[]) => el('tr', {}, el('th', { scope: 'row' }, name(cells[0]!)), ...cells.slice(1).map((c) => el('td', {}, c)));
  return el(
    'div',
    { class: 'wide', role: 'region', tabindex: '0', 'aria-label': label },
    el(
      'table',
      { class: 'numbers' },
      el('thead', {}, el('tr', {}, ...(b.head ?? []).map((h) => el('th', { scope: 'col' }, h)))),
      el('tbody', {}, ...(b.rows ?? []).map(row)),
    ),
  );
}
