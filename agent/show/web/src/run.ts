import {
  type Block,
  comparisonOf,
  type Document,
  documentOf,
  fact,
  getAgent,
  getDocument,
  getHistory,
  getProgress,
  getRequirements,
  type History,
  type Marker,
  type Row,
  type Run,
  type RunDetail,
  type Section,
  type TableName,
  tableNames,
} from './api';
import { flagsOf, type Phase } from './axis';
import { sections as panels, sectionBlocks, text } from './blocks';
import { Charts } from './charts';
import { el } from './dom';
import { badge, generators, live, messages, notice, parameters } from './facts';
import * as format from './format';
import { markForm } from './mark';
import { address, place, remember } from './place';
import { plotWidth } from './plot';
import type { Spec } from './specs';
import { Table } from './table';
import { Tiles } from './tiles';

/** Rows that are requested; a live run may grow to three times that in the page. */
const points = 1200;
const keptRows = 64;
/** Milliseconds between two looks at what is required of an active run. */
const judged = 5000;
/** The section of a document that the page replaces by its own charts. */
const chartSection = 'time';
const moreCharts = 'more';

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
  /** Tables of the visible part, if the run's tables are too coarse. */
  private detail: Tables | null = null;
  /** The last rows: the history that is being read may lack them. */
  private recent: Row[] = [];
  private loading: AbortController | null = null;
  private zooming: AbortController | null = null;
  private reload = 0;
  private requests = 0; // under way

  private readonly head = el('div', { class: 'head' });
  private readonly firing = el('div');
  private readonly comparison = el('div', { class: 'document' }); // the A/B comparison of the run
  private readonly required = el('div', { class: 'document' }); // of an active run; later it is in the document
  private judging = 0;
  private readonly tiles = new Tiles();
  private readonly team = el('div'); // the generators of a group
  private readonly asked = el('p', { class: 'hint' });
  private documentOf = ''; // the state for which the document was last read
  private marking: HTMLElement | null = null;
  private readonly charts: Charts;
  private readonly marks = el('div');
  private readonly about = el('div', { class: 'about' });
  private readonly configuration = el('div', { class: 'document' });
  private readonly note = el('p', { class: 'id' });
  /** What an active run shows besides its charts. */
  private readonly before = el('div', {}, this.tiles.root, this.required, this.team, this.asked);
  private readonly after = el('div', {}, this.marks, this.about, this.configuration);
  /** The sections of the document before and after the charts. */
  private readonly upper = el('div', { class: 'document' });
  private readonly lower = el('div', { class: 'document' });
  private shownSettings = ''; // as JSON
  private readonly problem = el('p', { class: 'problem', role: 'alert', hidden: '' });

  constructor(
    readonly id: string,
    specs: readonly Spec[],
    live: Block[],
    private readonly now: () => number,
  ) {
    this.charts = new Charts(
      specs,
      live,
      (part) => {
        remember({ from: part ? part[0].toFixed(1) : '', to: part ? part[1].toFixed(1) : '' });
        this.zoomed(part);
      },
      () => this.zero,
      (lines) => remember({ lines: lines.join(',') }),
    );
    this.note.textContent = id;
    this.restore();
    this.root.append(this.problem, this.head, this.firing, this.comparison, this.before, this.upper, this.charts.root, this.lower, this.after);
    // Markers are set with the token of the webhook; without a token there is no form.
    getAgent()
      .then(({ health }) => {
        if (!health.token) return;
        this.marking = markForm(this.id);
        this.facts();
      })
      .catch(() => undefined);
  }

  /** Takes the visible part and the visible lines from the address. */
  restore(): void {
    const { query } = place();
    const [from, to] = [Number(query.get('from') ?? NaN), Number(query.get('to') ?? NaN)];
    this.charts.axis.view = to > from ? [from, to] : null;
    if (this.run) {
      this.draw();
      this.zoomed(this.charts.axis.view);
      return;
    }
    for (const line of (query.get('lines') ?? '').split(',').filter(Boolean)) this.charts.turned.add(line);
  }

  /** Whether nothing is known about the run yet. */
  get empty(): boolean {
    return this.run === null;
  }

  destroy(): void {
    clearTimeout(this.reload);
    clearTimeout(this.judging);
    this.loading?.abort();
    this.zooming?.abort();
    this.charts.destroy();
  }

  /** Marks the view as incomplete until an answer is shown: for screen readers, which wait for it. */
  private async busy(request: Promise<void>): Promise<void> {
    this.requests++;
    this.root.setAttribute('aria-busy', 'true');
    await request.finally(() => {
      if (--this.requests === 0) this.root.setAttribute('aria-busy', 'false');
    });
  }

  /** Reads the run as it is now. */
  load(): void {
    clearTimeout(this.reload);
    this.reload = 0;
    this.loading?.abort();
    const loading = new AbortController();
    this.loading = loading;
    const shown = getHistory(this.id, points, this.run ? undefined : { first: true }, loading.signal)
      .then((h) => {
        this.take(h);
        if (!h.whole) this.load();
        else this.describe();
      })
      .catch((e: unknown) => {
        if (loading.signal.aborted) return;
        if (!this.run) this.fail(e instanceof Error ? e.message : String(e));
        this.reload = window.setTimeout(() => this.load(), 2000);
      });
    void this.busy(shown);
  }

  /** Shows the document of an ended run. The document of an active run is only read on request, since it needs all files. */
  private describe(): void {
    const run = this.run;
    if (!run) return;
    const over = run.phase === 'over';
    const state = `${run.phase} ${run.ended_at ?? ''}`;
    if (this.documentOf === state) return;
    this.documentOf = state;
    const read = () => {
      const shown = getDocument(this.id, plotWidth(this.root))
        .then((d) => this.showDocument(d))
        .catch((e: unknown) => this.upper.replaceChildren(el('p', { class: 'hint' }, `No report: ${e instanceof Error ? e.message : String(e)}`)));
      void this.busy(shown);
    };
    if (over) {
      read();
      return;
    }
    const button = el('button', { type: 'button' }, 'Judge this run now');
    button.addEventListener('click', read);
    this.asked.replaceChildren(button, ' What was observed, and how far to trust the numbers so far.');
  }

  /** Puts the sections around the charts. */
  private showDocument({ note, sections }: Document): void {
    const all = sections.filter((s) => s.id !== moreCharts);
    this.note.className = `id ${note.level ?? ''}`;
    this.note.replaceChildren(...text(note));
    const zoom = (x: number) => this.charts.zoom(x - 15, x + 15);
    const over = this.run?.phase === 'over';
    const i = all.findIndex((s) => s.id === chartSection);
    const time = all[i];
    if (over) this.charts.arrange(sections.filter((s) => s === time || s.id === moreCharts).flatMap((s) => s.blocks));
    this.upper.replaceChildren(...(over ? [...panels(all.slice(0, Math.max(i, 0)), zoom), ...notes(time, zoom)] : []));
    this.lower.replaceChildren(...panels(over ? all.slice(i + 1) : all.filter((s) => s !== time), zoom));
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
    this.tables = noTables();
    for (const t of tableNames) this.tables[t] = new Table(h.tables[t]);
    const seen = this.recent;
    this.recent = [];
    this.run = h.run;
    this.compared();
    this.judge();
    this.configured(h.run.phase === 'over' ? [] : h.settings); // the document of an ended run has them
    for (const row of seen) this.row(row);
    this.detail = null;
    this.facts();
    this.axis();
    this.draw();
    if (this.charts.axis.view) this.zoomed(this.charts.axis.view);
    this.showFiring();
  }

  /** An event reports that this run has changed. */
  changed(r: Run): void {
    const was = this.run;
    if (!was) return;
    this.run = { ...was, ...cleared(r), ...r };
    if (r.phase !== was.phase || r.clock_at !== was.clock_at || r.ended_at !== was.ended_at) this.loadSoon();
    if (
      r.phase !== was.phase ||
      r.title !== was.title ||
      r.result !== was.result ||
      r.notice !== was.notice ||
      JSON.stringify(r.generators) !== JSON.stringify(was.generators)
    )
      this.facts();
    this.tiles.update(this.run, this.tables, this.now(), this.end);
  }

  gone(): void {
    this.fail('it was removed, or is not kept any longer');
  }

  marked(markers: Marker[]): void {
    this.markers = markers;
    this.listMarkers();
    this.showFiring();
    this.axis();
    this.draw();
  }

  /** The alerts that fire now. After the end of the run, their state is unknown. */
  private showFiring(): void {
    const all = this.run && this.run.phase !== 'over' ? this.markers.filter((m) => m.kind === 'alert' && m.end === undefined) : [];
    if (all.length === 0) {
      this.firing.replaceChildren();
      return;
    }
    const item = (m: Marker) =>
      el('li', {}, `since ${format.elapsed(Math.floor((m.start - this.zero) / 1000))}: `, el('span', { class: 'text' }, m.text));
    this.firing.replaceChildren(
      el('section', { class: 'panel firing', role: 'status' }, el('h2', {}, 'Firing alerts'), el('ul', {}, ...all.map(item))),
    );
  }

  /** The state of an A/B comparison has changed; without a name, this run's comparison is shown for the first time. */
  compared(id?: string): void {
    const own = this.run && comparisonOf(this.run);
    if (!own || (id !== undefined && id !== own)) return;
    const shown = getProgress(this.id, plotWidth(this.root))
      .then((s) => this.comparison.replaceChildren(...panels([s])))
      .catch(() => undefined); // it is not on this machine
    void this.busy(shown);
  }

  /** Shows what is required of the run, again every few seconds until it is over. */
  private judge(): void {
    clearTimeout(this.judging);
    if (!this.root.isConnected || !this.run?.requires || this.run.phase === 'over') return;
    const shown = getRequirements(this.id)
      .then((s) => this.required.replaceChildren(...panels([s])))
      .catch(() => undefined) // it is asked again
      .finally(() => {
        this.judging = window.setTimeout(() => this.judge(), judged);
      });
    if (!this.required.firstChild) void this.busy(shown);
  }

  /** Shows how the servers are configured, if that has changed. */
  configured(all: Section[]): void {
    const json = JSON.stringify(all);
    if (json === this.shownSettings) return;
    this.shownSettings = json;
    this.configuration.replaceChildren(...panels(all, (x) => this.charts.zoom(x - 15, x + 15)));
  }

  row(row: Row): void {
    if (row.run !== undefined && row.run !== this.id) return;
    this.recent.push(row);
    if (this.recent.length > keptRows) this.recent.shift();
    const run = this.run;
    if (!run || run.phase === 'over') return;
    if (row.at !== undefined && row.at < run.started_at) return;
    const x = row.x ?? ((row.at ?? 0) - this.zero) / 1000;
    const table = this.tables[row.table];
    const step = row.step ?? table.step;
    table.append(x, row.cells, step);
    const view = this.charts.axis.view;
    if (this.detail && view && x <= view[1]) this.detail[row.table].append(x, row.cells, step);
    if (row.warmup !== undefined) this.warm(x - row.warmup, x);
    if (table.x.length > 3 * points) this.loadSoon();
    this.axis();
    this.draw();
    this.tiles.update(run, this.tables, this.now(), this.end);
  }

  private warm(from: number, to: number): void {
    const last = this.warmup[this.warmup.length - 1];
    if (last && last[1] >= from - 0.01) last[1] = Math.max(last[1], to);
    else this.warmup.push([from, to]);
  }

  /** When the tool ended, in seconds of the axis. */
  private get end(): number {
    return this.run?.ended_at === undefined ? Infinity : (this.run.ended_at - this.zero) / 1000;
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
    this.charts.length = run.ended_at === undefined ? 10 : Math.max(0.5, at(run.ended_at));
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
    const shown = getHistory(this.id, points, { from: part[0], to: part[1] }, zooming.signal)
      .then((h) => {
        this.detail = noTables();
        for (const t of tableNames) this.detail[t] = new Table(h.tables[t]);
        this.draw();
      })
      .catch(() => undefined); // the coarse tables stay
    void this.busy(shown);
  }

  private facts(): void {
    const r = this.run;
    if (!r) return;
    document.title = `${r.title || r.id} – benchwatch`;
    this.head.replaceChildren(
      ...[
        el('h1', {}, r.title || r.id, ' ', badge(r)),
        this.note,
        links(r, this.marking),
        ...(r.phase === 'over' ? [] : [parameters(r), notice(r)]),
      ].filter((e) => e !== null),
    );
    this.tiles.update(r, this.tables, this.now(), this.end);
    this.before.hidden = this.after.hidden = r.phase === 'over';
    this.listMarkers();
    this.showFiring();
    const team = generators(r);
    this.team.replaceChildren(...(team ? [team] : []));
    this.about.replaceChildren(...[messages(r), this.damaged()].filter((e) => e !== null));
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

/** The list of a section beside its charts, without the notes on reading drawings, which only the report needs. */
const notes = (s: Section | undefined, zoom: (x: number) => void): HTMLElement[] =>
  s
    ? [el('div', { class: 'notes', 'data-section': s.id }, ...sectionBlocks({ ...s, blocks: s.blocks.filter((b) => b.lines && !b.prose) }, zoom))]
    : [];

/** Links to the other views and files of a run. */
function links(r: RunDetail, marking: HTMLElement | null): HTMLElement {
  const link = (text: string, path: string) => el('a', { href: documentOf(r.id, path) }, text);
  return el(
    'nav',
    { class: 'links', 'aria-label': 'Documents' },
    link('Report', 'report'),
    link('as Markdown', 'report?format=markdown'),
    el('span', { class: 'hint' }, 'Export:'),
    link('CSV', 'export?format=csv'),
    link('CSV of the servers', 'export?format=servers'),
    link('JSON', 'export?format=json'),
    el('a', { href: address([], { select: r.id }) }, 'Compare with …'),
    el('a', { href: address(['history'], { where: kind(r) }) }, 'History of such runs'),
    marking,
  );
}

/** The facts that distinguish runs of this kind, as conditions of the history. */
const kind = (r: Run): string =>
  ['tool', 'workload', 'threads']
    .filter((name) => /^\S+$/.test(fact(r, name) ?? ''))
    .map((name) => `${name}=${fact(r, name)}`)
    .join(' ');

/** Values that a newer view lacks are no longer known. */
const cleared = (r: Run): Partial<Run> => ({
  ...(r.throughput === undefined ? { throughput: undefined } : {}),
  ...(r.latency === undefined ? { latency: undefined } : {}),
  ...(r.notice === undefined ? { notice: undefined } : {}),
});
