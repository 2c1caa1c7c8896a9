import type { Statements } from './api';
import { el } from './dom';

/** A table whose first cells name the rows. */
export function numbersTable(head: string[], rows: string[][], label: string): HTMLElement {
  const row = (cells: string[]) => el('tr', {}, el('th', { scope: 'row' }, cells[0]!), ...cells.slice(1).map((c) => el('td', {}, c)));
  return el(
    'div',
    { class: 'wide', role: 'region', tabindex: '0', 'aria-label': label },
    el(
      'table',
      { class: 'numbers' },
      el('thead', {}, el('tr', {}, ...head.map((h) => el('th', { scope: 'col' }, h)))),
      el('tbody', {}, ...rows.map(row)),
    ),
  );
}

/** A table of statements: the first ones, and the others folded. */
export function statementTable(s: Statements, first: number): HTMLElement {
  const table = (rows: string[][], label: string) => numbersTable(s.head, rows, label);
  if (s.rows.length <= first + 2) return table(s.rows, 'Statements');
  return el(
    'div',
    {},
    table(s.rows.slice(0, first), 'First statements'),
    el('details', {}, el('summary', {}, `${s.rows.length - first} more`), table(s.rows.slice(first), 'Other statements')),
  );
}
