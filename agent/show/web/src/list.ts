import { type Agent, type Alert, fact, getAgent, type Run, type Server } from './api';
import { el, setText } from './dom';
import { badge, lasted, latencyName } from './facts';
import * as format from './format';
import { address, place, remember } from './place';

/** How many runs, in all and of each group, are listed before the user requests all. */
const firstRuns = 30;

interface Column {
  key: string;
  head: string;
  /** The sort key of a run; undefined comes last. */
  order(r: Run): number | string | undefined;
}

const threads = (r: Run): number | undefined => (fact(r, 'threads') === undefined ? undefined : Number(fact(r, 'threads')));
const toolText = (r: Run): string => [fact(r, 'tool'), fact(r, 'workload')].filter(Boolean).join(' ');

const columns: Column[] = [
  { key: 'title', head: 'Run', order: (r) => (r.title || r.id).toLowerCase() },
  { key: 'state', head: 'State', order: (r) => r.result ?? r.phase },
  { key: 'tool', head: 'Tool', order: toolText },
  { key: 'threads', head: 'Threads', order: threads },
  { key: 'tps', head: 'Transactions/s', order: (r) => r.throughput },
  { key: 'latency', head: 'Latency', order: (r) => r.latency?.seconds },
  { key: 'errors', head: 'Errors', order: (r) => r.errors },
  { key: 'started', head: 'Started', order: (r) => r.started_at },
  { key: 'lasted', head: 'Lasted', order: (r) => (r.ended_at === undefined ? undefined : r.ended_at - r.started_at) },
];

/** Columns that begin with the largest value. */
const descending = new Set(['tps', 'errors', 'started', 'lasted', 'latency']);

/** The state of the servers and the agent, and the live and the recent runs. */
export class ListView {
  readonly root = el('div', { class: 'list' });
  private runs: Run[] = [];
  private total = 0;
  private shownAgent = ''; // as JSON
  private readonly health = el('section', { class: 'panel health', 'aria-label': 'Agent' });
  private readonly alerts = el('div');
  private readonly servers = el('div');
  private readonly live = el('div');
  private readonly count = el('p', { class: 'count', role: 'status' });
  private readonly filter = el('input', { type: 'search', placeholder: 'Filter: title, tool, label …', 'aria-label': 'Filter runs' });
  private readonly groupBy = el('select', { 'aria-label': 'Group runs by' });
  private readonly compare = el('a', { class: 'button', role: 'link', 'aria-disabled': 'true' });
  private readonly none = el('button', { type: 'button', hidden: '' }, 'Clear selection');
  private readonly recent = el('div');
  private ticks = 0;
  private drawnGroups = '';
  private telling: string[] = [];

  private sort = '';
  private by = '';
  private all = false;
  private readonly selected = new Set<string>();

  constructor(private readonly now: () => number) {
    this.restore();
    this.filter.addEventListener('input', () => this.changed({ q: this.filter.value }));
    this.groupBy.addEventListener('change', () => {
      this.by = this.groupBy.value;
      this.changed({ by: this.by });
    });
    this.none.addEventListener('click', () => {
      this.selected.clear();
      this.changed({ select: '' });
    });
    this.root.append(
      this.health,
      this.alerts,
      this.servers,
      el('h1', {}, 'Live runs'),
      this.live,
      el('h1', {}, 'Recent runs'),
      el(
        'div',
        { class: 'tools' },
        this.filter,
        el('label', {}, 'Group by ', this.groupBy),
        this.compare,
        this.none,
        el('a', { class: 'button', href: address(['history']) }, 'History'),
        this.count,
      ),
      this.recent,
    );
    this.readAgent();
  }

  /** Takes the state of the view from the address. */
  restore(): void {
    const { query } = place();
    this.filter.value = query.get('q') ?? '';
    this.sort = query.get('sort') ?? '-started';
    this.by = query.get('by') ?? '';
    this.all = query.has('all');
    this.selected.clear();
    for (const id of (query.get('select') ?? '').split(',').filter(Boolean)) this.selected.add(id);
    if (this.runs.length > 0) this.draw();
  }

  show(runs: Iterable<Run>, total: number): void {
    this.runs = [...runs];
    this.total = total;
    this.draw();
  }

  tick(): void {
    if (++this.ticks % 3 === 0) this.readAgent();
    for (const r of this.runs) {
      if (r.ended_at !== undefined) continue;
      const clock = this.live.querySelector(`[data-clock="${CSS.escape(r.id)}"]`);
      if (clock) setText(clock, format.elapsed(lasted(r, this.now())));
    }
  }

  private changed(query: Record<string, string>): void {
    remember(query);
    this.draw();
  }

  private readAgent(): void {
    getAgent()
      .then((agent) => {
        const json = JSON.stringify(agent);
        if (json === this.shownAgent) return;
        this.shownAgent = json;
        this.health.replaceChildren(...healthText(agent, this.now()));
        this.alerts.replaceChildren(...firing(agent.alerts));
        const hint = el('p', { class: 'hint' }, 'None. Configure ', el('code', {}, 'targets'), ' in benchwatch.yml.');
        this.servers.replaceChildren(el('h1', {}, 'Servers'), agent.servers.length > 0 ? serverTable(agent.servers) : hint);
      })
      .catch(() => undefined); // tried again
  }

  /** Draws again after a change. Rows that remain are kept, so that a click on one is not lost. */
  private draw(): void {
    document.title = 'benchwatch';
    const focus = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.focus : undefined;
    const going = this.runs.filter((r) => r.phase !== 'over');
    const over = this.runs.filter((r) => r.phase === 'over');
    this.telling = tellingLabels(this.runs);
    const found = this.sorted(over.filter(matcher(this.filter.value)));
    const none = el('p', { class: 'hint' }, 'None. Start one with ', el('code', {}, 'benchwatch run -- sysbench … run'), '.');
    refresh(this.live, [going.length > 0 ? this.table(this.sorted(going), false) : none]);
    this.groups(over);
    const shown = this.drawRecent(over, found);
    this.drawCount(over, found, shown);
    this.drawSelection();
    if (focus && !document.activeElement?.matches('[data-focus]'))
      this.root.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  }

  /** Draws the ended runs and returns their number. */
  private drawRecent(over: Run[], found: Run[]): number {
    if (found.length === 0) {
      refresh(this.recent, [el('p', { class: 'hint' }, over.length > 0 ? 'None that matches.' : 'None.')]);
      return 0;
    }
    const groups = new Map<string, Run[]>();
    for (const r of found) {
      const name = this.by ? (factOrLabel(r, this.by) ?? '') : '';
      groups.set(name, [...(groups.get(name) ?? []), r]);
    }
    let shown = 0;
    const parts: HTMLElement[] = [];
    const room = () => (this.all ? Infinity : this.by ? firstRuns : Math.max(0, firstRuns - shown));
    // Those without the label come last.
    for (const [name, runs] of [...groups].sort(([a], [b]) => Number(a === '') - Number(b === ''))) {
      const some = runs.slice(0, room());
      shown += some.length;
      const title = name ? `${this.by} ${name}` : `without ${this.by}`;
      if (this.by)
        parts.push(
          el(
            'h2',
            { class: 'group' },
            title,
            el('small', {}, some.length < runs.length ? `${some.length} of ${runs.length} runs` : plural(runs.length, 'run')),
          ),
        );
      parts.push(this.table(some, true));
    }
    refresh(this.recent, parts);
    return shown;
  }

  private drawCount(over: Run[], found: Run[], shown: number): void {
    const parts: (Node | string)[] = [];
    if (over.length > 0) {
      const matching = found.length < over.length ? ` that match (of ${over.length})` : '';
      parts.push(shown < found.length ? `${shown} of ${found.length} runs${matching}` : `${plural(found.length, 'run')}${matching}`);
      if (shown < found.length || this.all) {
        const more = el('button', { type: 'button', class: 'link', 'data-focus': 'all' }, this.all ? `show ${firstRuns}` : 'show all');
        more.addEventListener('click', () => {
          this.all = !this.all;
          this.changed({ all: this.all ? '1' : '' });
        });
        parts.push(' ', more);
      }
    }
    const missing = this.total - this.runs.length;
    if (missing > 0) parts.push(` · ${missing} older of ${this.total} are not kept here (runs.max_kept): benchwatch runs lists all`);
    this.count.replaceChildren(...parts);
  }

  private drawSelection(): void {
    const chosen = this.runs.filter((r) => this.selected.has(r.id)).sort((a, b) => a.started_at - b.started_at || (a.id < b.id ? -1 : 1));
    const ready = chosen.length >= 2;
    setText(this.compare, chosen.length > 0 ? `Compare ${chosen.length} selected` : 'Select runs to compare');
    this.compare.setAttribute('aria-disabled', String(!ready));
    if (ready) this.compare.href = address(['compare'], { runs: chosen.map((r) => r.id).join(','), by: commonGroup(chosen, this.by) });
    else this.compare.removeAttribute('href');
    this.none.hidden = chosen.length === 0;
    for (const box of this.recent.querySelectorAll<HTMLInputElement>('.choose input')) box.checked = this.selected.has(box.dataset.run ?? '');
  }

  /** The names by which runs can be grouped: their labels, and some facts. */
  private groups(over: Run[]): void {
    const labels = new Set(over.flatMap((r) => Object.keys(r.labels ?? {})));
    const names = ['workload', 'tool', 'threads', 'target'].filter((name) => over.some((r) => fact(r, name) !== undefined));
    const series = (name: string) => Number(name === 'sweep' || name === 'ab');
    const own = [...labels].sort((a, b) => series(b) - series(a) || a.localeCompare(b));
    const all = ['', ...own, ...names];
    if (this.by && !all.includes(this.by)) all.push(this.by);
    const json = JSON.stringify([all, this.by]);
    if (json === this.drawnGroups) return;
    this.drawnGroups = json;
    this.groupBy.replaceChildren(
      ...all.map((name) => el('option', { value: name, ...(name === this.by ? { selected: '' } : {}) }, name || 'nothing')),
    );
  }

  private sorted(runs: Run[]): Run[] {
    const column = columns.find((c) => c.key === this.sort.replace(/^-/, '')) ?? columns.find((c) => c.key === 'started')!;
    const sign = this.sort.startsWith('-') ? -1 : 1;
    return [...runs].sort((a, b) => {
      const [x, y] = [column.order(a), column.order(b)];
      if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined) || b.started_at - a.started_at;
      return (x < y ? -1 : x > y ? 1 : 0) * sign || b.started_at - a.started_at || (a.id < b.id ? 1 : -1);
    });
  }

  private table(runs: Run[], selectable: boolean): HTMLElement {
    const key = this.sort.replace(/^-/, '');
    const latency = commonLatency(runs);
    const head = columns.map((c) => {
      const title = c.key === 'latency' && latency ? `${c.head}, ${latency}` : c.head;
      const button = el('button', { type: 'button', class: 'sort', 'data-focus': `${selectable}-${c.key}` }, title);
      button.addEventListener('click', () => {
        const first = descending.has(c.key) ? `-${c.key}` : c.key;
        this.sort = this.sort === first ? (first.startsWith('-') ? c.key : `-${c.key}`) : first;
        this.changed({ sort: this.sort === '-started' ? '' : this.sort });
      });
      const order: Record<string, string> = c.key !== key ? {} : { 'aria-sort': this.sort.startsWith('-') ? 'descending' : 'ascending' };
      return el('th', { scope: 'col', ...order }, button);
    });
    const choose = selectable ? [el('th', { scope: 'col', class: 'choose' }, el('span', { class: 'unseen' }, 'Compare'))] : [];
    return el(
      'div',
      { class: 'wide panel' },
      el(
        'table',
        { class: `runs${selectable ? ' selectable' : ''}` },
        el('thead', {}, el('tr', {}, ...choose, ...head)),
        el('tbody', {}, ...runs.map((r) => this.row(r, selectable, latency))),
      ),
    );
  }

  /** latency is the name in the head of the column, empty if the runs have several. */
  private row(r: Run, selectable: boolean, latency: string): HTMLElement {
    const clock = el('td', { 'data-name': 'lasted', 'data-clock': r.id }, format.elapsed(lasted(r, this.now())));
    const cell = (name: string, text: string) => el('td', { 'data-name': name }, text);
    const name = r.title || r.id;
    return el(
      'tr',
      {},
      selectable && el('td', { class: 'choose' }, this.chooser(r, name)),
      el('th', { scope: 'row' }, el('a', { href: address(['runs', r.id]) }, name), ...labelsOf(r, this.telling)),
      el('td', { 'data-name': '' }, badge(r)),
      cell('tool', toolText(r)),
      cell('threads', fact(r, 'threads') ?? '–'),
      cell('transactions/s', format.number(r.throughput)),
      cell(latency || 'latency', r.latency ? `${format.seconds(r.latency.seconds)}${latency ? '' : ` ${latencyName(r.latency)}`}` : '–'),
      cell('errors', format.number(r.errors)),
      cell('started', format.dateTime(r.started_at)),
      clock,
    );
  }

  private chooser(r: Run, name: string): HTMLElement {
    const box = el('input', { type: 'checkbox', 'aria-label': `Select ${name}`, 'data-focus': `run-${r.id}`, 'data-run': r.id });
    box.addEventListener('change', () => {
      if (box.checked) this.selected.add(r.id);
      else this.selected.delete(r.id);
      remember({ select: [...this.selected].join(',') });
      this.drawSelection();
    });
    return box;
  }
}

/** The name of the runs' headline latency, empty if they have none or several. */
function commonLatency(runs: Run[]): string {
  const names = new Set(runs.flatMap((r) => (r.latency ? latencyName(r.latency) : [])));
  return names.size === 1 ? [...names][0]! : '';
}

/** Replaces the children of an element by others where they differ, down to the cells of tables. */
function refresh(old: Element, next: Element[]): void {
  const had = [...old.children];
  const alike = (a: Element, b: Element) => a.tagName === b.tagName && a.className === b.className;
  if (had.length !== next.length || !had.every((e, i) => alike(e, next[i]!))) {
    old.replaceChildren(...next);
    return;
  }
  had.forEach((e, i) => {
    const n = next[i]!;
    if (e.isEqualNode(n)) return;
    if (['DIV', 'TABLE', 'TBODY', 'TR'].includes(e.tagName)) refresh(e, [...n.children]);
    else e.replaceWith(n);
  });
}

/** How many labels of a run are in its row, and how long each may be. */
const shownLabels = 3;
const longestLabel = 40;

/** The labels by which runs differ, the most different first, without the bookkeeping of sweeps and A/B comparisons, which groups show. */
function tellingLabels(runs: Run[]): string[] {
  const values = new Map<string, Set<string>>();
  for (const r of runs) for (const [k, v] of Object.entries(r.labels ?? {})) values.set(k, (values.get(k) ?? new Set()).add(v));
  const single = (k: string) => runs.filter((r) => r.labels?.[k] !== undefined).length === 1;
  const differ = [...values].filter(([k, v]) => (v.size > 1 || single(k)) && !['sweep', 'step', 'ab', 'block'].includes(k));
  return differ.sort(([a, x], [b, y]) => y.size - x.size || a.localeCompare(b)).map(([k]) => k);
}

/** A run's labels that distinguish it from others. */
function labelsOf(r: Run, telling: string[]): HTMLElement[] {
  const own = telling.filter((k) => r.labels?.[k] !== undefined).slice(0, shownLabels);
  return own.map((k) => {
    const text = `${k}=${r.labels![k]}`;
    return el('span', { class: 'tag', title: text }, text.length > longestLabel ? `${text.slice(0, longestLabel)}…` : text);
  });
}

/** The value of a label or a fact. */
export const factOrLabel = (r: Run, name: string): string | undefined => r.labels?.[name] ?? fact(r, name);

/** A name that divides runs into two groups or more; empty if it does not distinguish them. */
const commonGroup = (runs: Run[], by: string): string => (by && new Set(runs.map((r) => factOrLabel(r, by))).size > 1 ? by : '');

function matcher(text: string): (r: Run) => boolean {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (r) => {
    const all = [
      r.id,
      r.title,
      ...r.facts.flatMap((f) => [f.value, `${f.name}=${f.value}`]),
      r.result,
      ...Object.entries(r.labels ?? {}).map(([k, v]) => `${k}=${v}`),
    ]
      .join(' ')
      .toLowerCase();
    return wanted.every((w) => all.includes(w));
  };
}

export const plural = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

/** The state of the agent: problems first. */
function healthText({ health: h, servers, alerts }: Agent, now: number): HTMLElement[] {
  const down = servers.filter((s) => !s.up).length;
  const bad = [
    down > 0 && `${down} of ${plural(servers.length, 'server')} down`,
    h.waiting_runs > 0 && `${plural(h.waiting_runs, 'live run')} not followed: runs.max_live is reached`,
    h.missed_ticks > 0 && `${plural(h.missed_ticks, 'tick')} missed since the agent started`,
    h.rejected_markers > 0 && `Grafana refused ${plural(h.rejected_markers, 'marker')}`,
    alerts.length > 0 && `${plural(alerts.length, 'alert')} firing`,
  ].filter((text) => text !== false);
  const up = servers.length - down;
  const good = [
    `agent up ${format.elapsed(Math.max(0, Math.floor((now - h.started) / 1000)))}`,
    servers.length > 0 && down === 0 && `${plural(up, 'server')} up`,
    h.queued_markers > 0 && `${plural(h.queued_markers, 'marker')} waiting for Grafana`,
    !h.grafana && 'no Grafana configured',
    !h.token && 'accepts no alerts: webhook_token_file is not set',
  ].filter((text) => text !== false);
  const state = bad.length > 0 ? 'wait' : 'good';
  return [
    el('span', { class: `badge ${state}` }, bad.length > 0 ? 'look here' : 'healthy'),
    ...bad.map((t) => el('b', {}, t)),
    ...good.map((t) => el('span', {}, t)),
  ];
}

function firing(alerts: Alert[]): HTMLElement[] {
  if (alerts.length === 0) return [];
  const item = (a: Alert) =>
    el('li', {}, el('a', { href: address(['runs', a.run]) }, a.title || a.run), ' ', el('span', { class: 'text' }, a.marker.text));
  return [el('section', { class: 'panel firing' }, el('h2', {}, 'Firing alerts'), el('ul', {}, ...alerts.map(item)))];
}

function serverTable(servers: Server[]): HTMLElement {
  const lag = (s: Server) =>
    [
      s.lag_seconds === undefined ? '' : format.seconds(s.lag_seconds),
      s.lag_transactions === undefined ? '' : `${format.number(s.lag_transactions)} tx`,
    ]
      .filter(Boolean)
      .join(' / ');
  const row = (s: Server) =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, s.name),
      el('td', {}, el('span', { class: `badge ${s.up ? 'good' : 'bad'}` }, s.up ? 'up' : 'down'), s.up ? '' : ` ${s.state.replace(/^down:? ?/, '')}`),
      el('td', { 'data-name': s.role ? 'role' : '' }, s.role ?? ''),
      el('td', { 'data-name': lag(s) ? 'lag' : '' }, lag(s)),
      el('td', {}, s.cluster ?? ''),
      el('td', {}, [s.engine, s.version].filter(Boolean).join(' ')),
    );
  const head = ['Target', 'State', 'Role', 'Lag', 'Cluster', 'Version'].map((t) => el('th', { scope: 'col' }, t));
  return el(
    'div',
    { class: 'wide panel' },
    el('table', { class: 'runs servers' }, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...servers.map(row))),
  );
}
