import type { Drawing } from './api';
import { el } from './dom';

/** The width of a drawing if two are side by side on a wide screen; as in page.css. */
export function plotWidth(container: Element): number {
  const whole = container.clientWidth || 520;
  return Math.round(whole > 1000 ? (whole - 16) / 2 - 26 : whole - 26);
}

/** A drawing of the agent with its legend and notes. The agent escapes all foreign text in it. */
export function plot(p: Drawing): HTMLElement {
  const legend = (p.legend ?? []).map((l) =>
    el('li', {}, drawing(`<svg viewBox="0 0 24 8"><path class="line ${l.class}" d="M0 4H24"/></svg>`), l.name),
  );
  return el(
    'figure',
    { class: 'drawn' },
    el('h3', {}, p.title, el('small', {}, p.unit ?? '')),
    drawing(p.svg ?? ''),
    legend.length > 0 && el('ul', { class: 'legend' }, ...legend),
    ...(p.notes ?? []).map((n) => el('p', { class: 'hint' }, n)),
  );
}

/** Scripts in a parsed document never run, and the page's policy forbids them. */
function drawing(svg: string): Node | null {
  const found = new DOMParser().parseFromString(svg, 'text/html').querySelector('svg');
  return found && document.importNode(found, true);
}
