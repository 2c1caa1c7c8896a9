import { getHistory, type History, type Marker, type Row, type Run, type RunDetail, type Settings, type TableName, tableNames } from './api';
import { flagsOf, type Phase } from './axis';
import { Charts } from './charts';
import { el } from './dom';
import { badge, drain, live, messages, parameters, summary } from './facts';
import * as format from './format';
import { settings } from './settings';
import type { Spec } from './specs';
import { Table } from './table';
import { Tiles } from './tiles';

/** Rows that are requested; a live run may grow to three times that in the page. */
const points = 1200;
const keptRows = 64;

type Tables = Record<TableName, Table>;
const noTables = (): Tables => ({ intervals: new Table(), servers: new Table(), host: new Table() });

/** The view of one run: read once, then kept up to date by events. */
export class RunView {
  readonly root = el('div', { class: 'run' });
  private run: RunDetail | null = null;
  private zero = 0;
  private warmup: [number, number][] = [];
  private markers: Marker[] = [];
  private damage: string[] = [];
  private tables = noTables();
  /** Tables of the part that is shown, if those of the run are too coarse. */
  private detail: Tables | null = null;
  /** The last rows: the history that is being read may lack them. */
  private recent: Row[] = [];
  private loading: AbortController | null = null;
  private zooming: AbortController | null = null;
  private reload = 0;

  private readonly head = el('div', { class: 'head' });
  private readonly tiles = new Tiles();
  private readonly charts: Charts;
  private readonly marks = el('div');
  private readonly about = el('div', { class: 'about' });
  private readonly configuration = el('div');
  private shownSettings = ''; // as JSON
  private readonly problem = el('p', { class: 'problem', role: 'alert', hidden: '' });

  constructor(
    readonly id: string,
    specs: readonly Spec[],
    private readonly now: () => number,
  ) {
    this.charts = new Charts(
      specs,
      (part) => this.zoomed(part),
      () => this.zero,
    );
    this.root.append(this.problem, this.head, this.tiles.root, this.charts.root, this.marks, this.about, this.configuration);
  }

  /** Whether nothing is known of the run yet. */
  get empty(): boolean {
    return this.run === null;
  }

  destroy(): void {
    clearTimeout(this.reload);
    this.loading?.abort();
    this.zooming?.abort();
    this.charts.destroy();
  }

  /** Reads the run as it is now. */
  load(): void {
    clearTimeout(this.reload);
    this.reload = 0;
    this.loading?.abort();
    const loading = new AbortController();
    this.loading = loading;
    getHistory(this.id, points, this.run ? undefined : { first: true }, loading.signal)
      .then((h) => {
        this.take(h);
        if (!h.whole) this.load();
      })
      .catch((e: unknown) => {
        if (loading.signal.aborted) return;
        if (!this.run) this.fail(e instanceof Error ? e.message : String(e));
        this.reload = window.setTimeout(() => this.load(), 2000);
      });
  }

  private loadSoon(): void {
    if (!this.reload) this.reload = window.setTimeout(() => this.load(), 150);
  }

  private fail(text: string): void {
    this.problem.hidden = false;
    this.problem.textContent = `Run ${this.id}: ${text}`;
  }

  private take(h: History): void {
    this.problem.hidden = true;
    this.zero = h.zero;
    this.warmup = h.warmup;
    this.markers = h.markers;
    this.damage = h.damage;
    this.configured(h.settings);
    this.tables = noTables();
    for (const t of tableNames) this.tables[t] = new Table(h.tables[t]);
    const seen = this.recent;
    this.recent = [];
    this.run = h.run;
    for (const row of seen) this.row(row);
    this.detail = null;
    this.facts();
    this.axis();
    this.draw();
    if (this.charts.axis.view) this.zoomed(this.charts.axis.view);
  }

  /** An event reports that this run has changed. */
  changed(r: Run): void {
    const was = this.run;
    if (!was) return;
    this.run = { ...was, ...cleared(r), ...r };
    if (r.phase !== was.phase || r.clock_at !== was.clock_at || r.ended_at !== was.ended_at) this.loadSoon();
    if (r.phase !== was.phase || r.title !== was.title || r.result !== was.result) this.facts();
    this.tiles.update(this.run, this.tables, this.now());
  }

  gone(): void {
    this.fail('it was removed');
  }

  marked(markers: Marker[]): void {
    this.markers = markers;
    this.listMarkers();
    this.axis();
    this.draw();
  }

  /** Shows how the servers are configured, if that has changed. */
  configured(s: Settings): void {
    const json = JSON.stringify([s, this.zero]);
    if (json === this.shownSettings) return;
    this.shownSettings = json;
    const at = (ms: number) => (ms - this.zero) / 1000;
    const panel = settings(s, at, (x) => this.charts.zoom(x - 15, x + 15));
    this.configuration.replaceChildren(...(panel ? [panel] : []));
  }

  row(row: Row): void {
    if (row.run !== undefined && row.run !== this.id) return;
    this.recent.push(row);
    if (this.recent.length > keptRows) this.recent.shift();
    const run = this.run;
    if (!run || run.phase === 'over') return;
    if (row.at !== undefined && row.at < run.started_at) return;
    if (row.table === 'host' && run.log) return;
    const x = row.x ?? ((row.at ?? 0) - this.zero) / 1000;
    const table = this.tables[row.table];
    table.append(x, row.cells);
    const view = this.charts.axis.view;
    if (this.detail && view && x <= view[1]) this.detail[row.table].append(x, row.cells);
    if (row.warmup !== undefined) this.warm(x - row.warmup, x);
    if (table.x.length > 3 * points) this.loadSoon();
    this.axis();
    this.draw();
    this.tiles.update(run, this.tables, this.now());
  }

  private warm(from: number, to: number): void {
    const last = this.warmup[this.warmup.length - 1];
    if (last && last[1] >= from - 0.01) last[1] = Math.max(last[1], to);
    else this.warmup.push([from, to]);
  }

  /** Called once a second. */
  tick(): void {
    if (this.run) this.tiles.clock(this.run, this.now());
  }

  private draw(): void {
    this.charts.show(this.detail ?? this.tables);
  }

  private axis(): void {
    const run = this.run;
    if (!run) return;
    const at = (ms: number) => (ms - this.zero) / 1000;
    const phases: Phase[] = this.warmup.map(([from, to]) => ({ kind: 'warmup', from, to }));
    if (run.started_at < this.zero) phases.push({ kind: 'before', from: -86400, to: 0 });
    if (run.ended_at !== undefined) phases.push({ kind: 'drain', from: at(run.ended_at), to: run.closed_at === undefined ? 1e9 : at(run.closed_at) });
    this.charts.live = live(run);
    this.charts.axis.phases = phases;
    this.charts.axis.flags = flagsOf(this.markers, this.zero);
  }

  /** Fetches the rows between the points that the page has of a part. */
  private zoomed(part: [number, number] | null): void {
    this.zooming?.abort();
    if (!part || !tableNames.some((t) => this.tables[t].thinned)) {
      this.detail = null;
      this.draw();
      return;
    }
    const zooming = new AbortController();
    this.zooming = zooming;
    getHistory(this.id, points, { from: part[0], to: part[1] }, zooming.signal)
      .then((h) => {
        this.detail = noTables();
        for (const t of tableNames) this.detail[t] = new Table(h.tables[t]);
        this.draw();
      })
      .catch(() => undefined); // the coarse tables stay
  }

  private facts(): void {
    const r = this.run;
    if (!r) return;
    document.title = `${r.title || r.id} – benchwatch`;
    this.head.replaceChildren(el('h1', {}, r.title || r.id, ' ', badge(r)), el('p', { class: 'id' }, r.id), parameters(r));
    this.tiles.update(r, this.tables, this.now());
    this.listMarkers();
    this.about.replaceChildren(...[summary(r), drain(r), messages(r), this.damaged(), command(r)].filter((e) => e !== null));
  }

  private damaged(): HTMLElement | null {
    if (this.damage.length === 0) return null;
    return el('section', { class: 'panel' }, el('h2', {}, 'Damage'), el('ul', {}, ...this.damage.map((d) => el('li', {}, d))));
  }

  private listMarkers(): void {
    if (this.markers.length === 0) {
      this.marks.replaceChildren();
      return;
    }
    const item = (m: Marker) => {
      const x = (m.start - this.zero) / 1000;
      const go = el('button', { type: 'button', class: 'link', title: 'Zoom to it' }, format.elapsed(x));
      go.addEventListener('click', () => this.charts.zoom(x - 15, x + 15));
      return el(
        'li',
        { class: m.kind },
        go,
        ' ',
        el('span', { class: 'text' }, m.text),
        ...(m.tags ?? []).map((t) => el('span', { class: 'tag' }, t)),
      );
    };
    this.marks.replaceChildren(el('section', { class: 'panel markers' }, el('h2', {}, 'Markers'), el('ol', {}, ...this.markers.map(item))));
  }
}

function command(r: RunDetail): HTMLElement | null {
  if (!r.command?.length) return null;
  return el('section', { class: 'panel' }, el('h2', {}, 'Command'), el('pre', {}, r.command.join(' ')));
}

/** Values that a newer view lacks are no longer known. */
const cleared = (r: Run): Partial<Run> => ({
  ...(r.throughput === undefined ? { throughput: undefined } : {}),
  ...(r.latency === undefined ? { latency: undefined } : {}),
});
