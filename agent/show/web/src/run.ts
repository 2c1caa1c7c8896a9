import {
  type Distributions,
  documentOf,
  type Findings,
  fact,
  getAgent,
  getFindings,
  getHistory,
  type History,
  type Marker,
  type Row,
  type Run,
  type RunDetail,
  type Settings,
  type Statements,
  type TableName,
  tableNames,
} from './api';
import { flagsOf, type Phase } from './axis';
import { Charts } from './charts';
import { el } from './dom';
import { badge, drain, failed, generators, live, messages, notice, parameters, summary } from './facts';
import * as format from './format';
import { markForm } from './mark';
import { address, place, remember } from './place';
import { plot, plotWidth } from './plot';
import { settings } from './settings';
import type { Spec } from './specs';
import { numbersTable, statementTable } from './statements';
import { Table } from './table';
import { Tiles } from './tiles';

/** Rows that are requested; a live run may grow to three times that in the page. */
const points = 1200;
const keptRows = 64;
/** Values of servers from which on a run is judged only if the user asks. */
const longRecord = 1_000_000;

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
  private requests = 0; // under way

  private readonly head = el('div', { class: 'head' });
  private readonly first = el('div'); // why a run failed
  private readonly firing = el('div');
  private readonly tiles = new Tiles();
  private readonly team = el('div'); // the generators of a group
  private readonly findings = el('div', { class: 'findings' });
  private findingsOf = ''; // the state that was judged last
  private marking: HTMLElement | null = null;
  private readonly charts: Charts;
  private readonly latencies = el('div'); // their distribution
  private readonly executed = el('div'); // statements
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
      (part) => {
        remember({ from: part ? part[0].toFixed(1) : '', to: part ? part[1].toFixed(1) : '' });
        this.zoomed(part);
      },
      () => this.zero,
      (lines) => remember({ lines: lines.join(',') }),
    );
    this.restore();
    this.root.append(
      this.problem,
      this.head,
      this.first,
      this.firing,
      this.tiles.root,
      this.team,
      this.findings,
      this.charts.root,
      this.latencies,
      this.executed,
      this.marks,
      this.about,
      this.configuration,
    );
    // Markers are set with the token of the webhook; without one nothing is offered.
    getAgent()
      .then(({ health }) => {
        if (!health.token) return;
        this.marking = markForm(this.id);
        this.facts();
      })
      .catch(() => undefined);
  }

  /** Takes from the address which part and which lines are shown. */
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
        else this.judge(h.tables.servers.rows * this.tables.servers.series.size < longRecord);
      })
      .catch((e: unknown) => {
        if (loading.signal.aborted) return;
        if (!this.run) this.fail(e instanceof Error ? e.message : String(e));
        this.reload = window.setTimeout(() => this.load(), 2000);
      });
    void this.busy(shown);
  }

  /** Reads what was observed and how far the numbers can be trusted. Of a live or a very long run only if the user asks: it reads all files. */
  private judge(short: boolean): void {
    const run = this.run;
    if (!run) return;
    const state = `${run.phase} ${run.ended_at ?? ''}`;
    if (this.findingsOf === state) return;
    this.findingsOf = state;
    const read = () => {
      const shown = getFindings(this.id, plotWidth(this.root))
        .then((f) => {
          this.findings.replaceChildren(...findingPanels(f, this.run?.phase === 'over' ? null : ask()));
          this.latencies.replaceChildren(...(f.distributions.plots.length > 0 ? [distributions(f.distributions)] : []));
          this.executed.replaceChildren(...(f.statements.rows.length > 0 || f.statements.notes.length > 0 ? [statements(f.statements)] : []));
        })
        .catch((e: unknown) =>
          this.findings.replaceChildren(el('p', { class: 'hint' }, `Not judged: ${e instanceof Error ? e.message : String(e)}`)),
        );
      void this.busy(shown);
    };
    const ask = () => {
      const button = el('button', { type: 'button' }, 'Judge this run now');
      button.addEventListener('click', read);
      return button;
    };
    if (run.phase === 'over' && short) read();
    else this.findings.replaceChildren(el('p', { class: 'hint' }, ask(), ' What was observed, and how far to trust the numbers so far.'));
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
    this.tiles.update(this.run, this.tables, this.now());
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

  /** The alerts that fire now. After the end nothing says that one still does. */
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
    if (row.table === 'host' && !row.run && run.elsewhere) return;
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
      ...[el('h1', {}, r.title || r.id, ' ', badge(r)), el('p', { class: 'id' }, r.id), links(r, this.marking), parameters(r), notice(r)].filter(
        (e) => e !== null,
      ),
    );
    this.tiles.update(r, this.tables, this.now());
    this.listMarkers();
    this.showFiring();
    const said = messages(r);
    this.first.replaceChildren(...(failed(r) && said ? [said] : []));
    const team = generators(r);
    this.team.replaceChildren(...(team ? [team] : []));
    this.about.replaceChildren(...[summary(r), drain(r), failed(r) ? null : said, this.damaged(), command(r)].filter((e) => e !== null));
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

/** What else there is of a run. */
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

/** How the latencies are distributed: drawings, and the percentiles with their bounds. */
function distributions(d: Distributions): HTMLElement {
  const row = (cells: string[]) => el('tr', {}, ...cells.map((c, i) => el(i === 0 ? 'th' : 'td', i === 0 ? { scope: 'row' } : {}, c)));
  return el(
    'section',
    { class: 'latencies' },
    el('h2', {}, 'Distribution of the latencies'),
    el('div', { class: 'drawings' }, ...d.plots.map((p) => el('section', { class: 'panel' }, plot(p)))),
    el(
      'details',
      { class: 'panel' },
      el('summary', {}, 'Percentiles, with the bounds between which each is known'),
      ...d.notes.map((n) => el('p', { class: 'hint' }, n)),
      el(
        'div',
        { class: 'wide', tabindex: '0' },
        el(
          'table',
          { class: 'numbers' },
          el('thead', {}, el('tr', {}, ...d.head.map((h) => el('th', { scope: 'col' }, h)))),
          el('tbody', {}, ...d.rows.map(row)),
        ),
      ),
    ),
  );
}

/** What distinguishes runs of this kind, as the history takes it. */
const kind = (r: Run): string =>
  ['tool', 'workload', 'threads']
    .filter((name) => /^\S+$/.test(fact(r, name) ?? ''))
    .map((name) => `${name}=${fact(r, name)}`)
    .join(' ');

/** What was observed, and how far to trust the numbers: what limits them first, the rest folded. */
function findingPanels(f: Findings, again: HTMLElement | null): HTMLElement[] {
  const item = (t: Findings['trust'][number]) => el('li', { class: t.level }, el('b', {}, t.level), ' ', el('span', {}, t.text));
  const serious = f.trust.filter((t) => t.level === 'warning' || t.level === 'unknown');
  const rest = f.trust.filter((t) => t.level !== 'warning' && t.level !== 'unknown');
  const limits = f.limits.map((l) => el('li', {}, el('b', {}, l.limit), l.text));
  return [
    ...(limits.length > 0 ? [el('section', { class: 'panel limits' }, el('h2', {}, 'What limited this run'), el('ul', {}, ...limits))] : []),
    el(
      'section',
      { class: 'panel' },
      el('h2', {}, 'What was observed'),
      f.observed.length > 0 ? el('ul', {}, ...f.observed.map((o) => el('li', {}, o))) : el('p', { class: 'hint' }, 'Nothing stood out.'),
    ),
    ...(f.balances.rows.length > 0
      ? [el('section', { class: 'panel' }, el('h2', {}, 'Who took the load'), numbersTable(f.balances.head, f.balances.rows, 'Who took the load'))]
      : []),
    el(
      'section',
      { class: 'panel trust' },
      el('h2', {}, 'How far to trust this'),
      serious.length > 0 ? el('ul', {}, ...serious.map(item)) : el('p', { class: 'hint' }, 'No warnings.'),
      rest.length > 0 && el('details', {}, el('summary', {}, `${rest.length} note${rest.length === 1 ? '' : 's'}`), el('ul', {}, ...rest.map(item))),
      again,
    ),
  ];
}

/** What the servers executed, the statements that took the most time first. */
function statements(s: Statements): HTMLElement {
  return el(
    'section',
    { class: 'panel statements' },
    el('h2', {}, 'Statements', el('small', {}, 'by their time in the servers')),
    s.rows.length > 0 && statementTable(s, 10),
    s.notes.length > 0 && el('ul', { class: 'notes' }, ...s.notes.map((n) => el('li', {}, n))),
  );
}

function command(r: RunDetail): HTMLElement | null {
  if (!r.command?.length) return null;
  return el('section', { class: 'panel' }, el('h2', {}, 'Command'), el('pre', {}, r.command.join(' ')));
}

/** Values that a newer view lacks are no longer known. */
const cleared = (r: Run): Partial<Run> => ({
  ...(r.throughput === undefined ? { throughput: undefined } : {}),
  ...(r.latency === undefined ? { latency: undefined } : {}),
  ...(r.notice === undefined ? { notice: undefined } : {}),
});
