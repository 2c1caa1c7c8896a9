import { type Block, type TableName, tableNames } from './api';
import { shown, type TimeAxis } from './axis';
import { Chart, type Group } from './chart';
import { el, setText } from './dom';
import * as format from './format';
import type { Spec } from './specs';
import type { Table } from './table';
import { readTheme } from './theme';

/** How many charts out of sight are drawn between two frames of the screen. */
const chartsAFrame = 3;

/** Charts that are shown together, perhaps folded. */
interface Part {
  ids: string[];
  row: HTMLElement;
  root: HTMLElement;
}

/** All charts of a run: one time axis, one cursor, one zoom. */
export class Charts implements Group {
  readonly root: HTMLElement;
  readonly axis: TimeAxis = { full: [0, 10], view: null, phases: [], flags: [] };
  theme = readTheme();
  live = false;
  /** The shortest time axis in seconds. */
  length = 10;

  private readonly charts = new Map<string, Chart>();
  private readonly servers: string[] = [];
  private parts: Part[] = [];
  private arranged = '';
  private readonly grid = el('div', { class: 'charts' });
  private readonly where = el('output', { class: 'where' });
  private readonly resetButton = el('button', { type: 'button', hidden: '' }, 'Show all');
  private readonly bar: HTMLElement;
  private readonly nothing = el('p', { class: 'hint', hidden: '' }, 'No charts: the run was over before a second sample.');
  private readonly resizer = new ResizeObserver(() => {
    const width = this.width();
    if (width === this.drawn) return;
    if (width > 0) this.charts.forEach((c) => c.resize(width));
    this.drawAll();
  });
  private readonly scheme = matchMedia('(prefers-color-scheme: dark)');
  private cursor: number | null = null;
  /** The next frames of show and of drawAll. */
  private showing = 0;
  private drawing = 0;
  /** The width for which the plots were drawn. */
  private drawn = 0;

  /** zoomed is called when another part is shown, toggled when lines are shown or hidden; zero gives the wall time, if there is one. */
  constructor(
    private readonly specs: readonly Spec[],
    blocks: Block[],
    private readonly zoomed: (part: [number, number] | null) => void,
    private readonly zero: () => number | null,
    private readonly toggled: (all: string[]) => void = () => undefined,
  ) {
    this.resetButton.addEventListener('click', () => this.reset());
    this.grid.tabIndex = 0;
    this.grid.setAttribute('role', 'group');
    this.grid.setAttribute('aria-label', 'Charts. Left and right move the cursor, plus and minus zoom, Escape shows all.');
    this.grid.addEventListener('keydown', (e) => this.key(e));
    this.bar = el(
      'div',
      { class: 'bar', hidden: '' },
      this.where,
      this.resetButton,
      el('span', { class: 'hint' }, 'Drag to zoom, double-click to show all; keys: ← → + − Esc'),
    );
    this.root = el('div', {}, this.bar, this.nothing, this.grid);
    this.arrange(blocks);
    this.resizer.observe(this.grid);
    this.scheme.addEventListener('change', this.repaint);
  }

  destroy(): void {
    this.resizer.disconnect();
    this.scheme.removeEventListener('change', this.repaint);
    cancelAnimationFrame(this.showing);
    cancelAnimationFrame(this.drawing);
    this.charts.forEach((c) => c.destroy());
  }

  private readonly repaint = (): void => {
    this.theme = readTheme();
    this.charts.forEach((c) => c.build());
    this.drawAll();
  };

  /** The lines that are not in their initial state. */
  readonly turned = new Set<string>();

  turn(line: string): void {
    if (!this.turned.delete(line)) this.turned.add(line);
    this.toggled([...this.turned]);
  }

  serverPlace(target: string): number {
    const i = this.servers.indexOf(target);
    return i < 0 ? this.servers.push(target) - 1 : i;
  }

  /** Puts the charts at their places in a document; charts of a folded block are folded. */
  arrange(blocks: Block[]): void {
    const parts = blocks.map((b) => ({ fold: b.fold, ids: (b.drawings ?? []).flatMap((d) => d.chart ?? []) })).filter((p) => p.ids.length > 0);
    const json = JSON.stringify(parts);
    if (json === this.arranged) return;
    this.arranged = json;
    this.parts = parts.map(({ fold, ids }) => {
      const row = el('div', { class: 'row' });
      if (!fold) return { ids, row, root: row };
      const root = el('details', {}, el('summary', {}, fold), row);
      root.addEventListener('toggle', () => this.drawAll());
      return { ids, row, root };
    });
    this.grid.replaceChildren(...this.parts.map((p) => p.root));
    this.place();
    this.drawAll(); // charts that were folded may be visible now
  }

  private place(): void {
    for (const p of this.parts) p.row.replaceChildren(...p.ids.flatMap((id) => this.charts.get(id)?.root ?? []));
    this.hideEmpty();
  }

  private hideEmpty(): void {
    for (const p of this.parts) p.root.hidden = p.ids.every((id) => this.charts.get(id)?.root.hidden ?? true);
  }

  /** Draws tables with the next frame of the screen. */
  show(tables: Record<TableName, Table>): void {
    cancelAnimationFrame(this.showing);
    this.showing = requestAnimationFrame(() => {
      const ends = tableNames.map((t) => tables[t].last).filter((x) => Number.isFinite(x));
      const begins = tableNames.map((t) => tables[t].x[0]).filter((x) => x !== undefined);
      // The first tick lies up to a second before the tool's clock begins.
      const first = Math.min(0, ...begins);
      const from = first > -1.5 ? 0 : first;
      this.axis.full = [from, Math.max(from + this.length, ...ends)];
      let added = false;
      for (const spec of this.specs) {
        const table = tables[spec.table];
        let chart = this.charts.get(key(spec));
        if (!chart) {
          if (!spec.measures.some((m) => table.of(m.id).length > 0)) continue;
          chart = new Chart(spec, table, this);
          this.charts.set(key(spec), chart);
          added = true;
        }
        chart.root.hidden = !chart.choose(table);
      }
      if (added) this.place();
      this.hideEmpty();
      const none = [...this.charts.values()].every((c) => c.root.hidden);
      this.bar.hidden = none;
      this.nothing.hidden = !none || this.live;
      this.drawAll();
      this.showPosition();
    });
  }

  /** The charts that are not folded. */
  private visible(): Chart[] {
    return [...this.charts.values()].filter((c) => c.root.checkVisibility());
  }

  /** All plots have one width. */
  private width(): number {
    for (const c of this.visible()) return c.width;
    return 0;
  }

  /** Draws the visible charts immediately, then a few with each frame. */
  private drawAll(): void {
    cancelAnimationFrame(this.drawing);
    const width = this.width();
    this.drawn = width;
    const all = this.visible();
    const tops = all.map((c) => c.root.getBoundingClientRect());
    const seen = (_: Chart, i: number) => tops[i]!.bottom > 0 && tops[i]!.top < window.innerHeight;
    all.filter(seen).forEach((c) => c.draw(width));
    const later = all.filter((c, i) => !seen(c, i));
    const next = () => {
      later.splice(0, chartsAFrame).forEach((c) => c.draw(width));
      if (later.length > 0) this.drawing = requestAnimationFrame(next);
    };
    if (later.length > 0) this.drawing = requestAnimationFrame(next);
  }

  zoom(from: number, to: number): void {
    if (!(to - from > 0.5)) return;
    const [low, high] = this.axis.full;
    this.axis.view = from <= low && to >= high ? null : [Math.max(from, low), Math.min(to, high)];
    this.viewChanged();
  }

  reset(): void {
    if (!this.axis.view) return;
    this.axis.view = null;
    this.viewChanged();
  }

  private viewChanged(): void {
    this.drawAll();
    this.showPosition();
    this.zoomed(this.axis.view);
  }

  pointed(x: number | null): void {
    this.cursor = x;
    this.showPosition();
  }

  private showPosition(): void {
    const zero = this.zero();
    const at = (x: number) => format.elapsed(x) + (zero === null ? '' : ` (${format.timeOfDay(zero + x * 1000)})`);
    const [from, to] = shown(this.axis);
    this.resetButton.hidden = !this.axis.view;
    setText(this.where, this.cursor == null ? `${at(from)} – ${at(to)}` : at(this.cursor));
  }

  private key(e: KeyboardEvent): void {
    if (e.target !== this.grid || e.ctrlKey || e.altKey || e.metaKey) return;
    const [from, to] = shown(this.axis);
    const length = to - from;
    const step = e.shiftKey ? length / 10 : Math.max(1, length / 200);
    const at = this.cursor ?? to;
    const point = (x: number) => {
      const inside = Math.min(to, Math.max(from, x));
      this.charts.forEach((c) => c.point(inside));
      this.pointed(inside);
    };
    const zoom = (factor: number) => {
      const half = (length * factor) / 2;
      const middle = this.cursor ?? (from + to) / 2;
      this.zoom(middle - half, middle + half);
    };
    switch (e.key) {
      case 'ArrowLeft':
        point(at - step);
        break;
      case 'ArrowRight':
        point(at + step);
        break;
      case 'Home':
        point(from);
        break;
      case 'End':
        point(to);
        break;
      case '+':
      case '=':
        zoom(0.5);
        break;
      case '-':
        zoom(2);
        break;
      case 'Escape':
      case '0':
        this.charts.forEach((c) => c.point(null));
        this.pointed(null);
        this.reset();
        break;
      default:
        return;
    }
    e.preventDefault();
  }
}

const key = (s: Spec): string => `${s.scope}-${s.id}`;
