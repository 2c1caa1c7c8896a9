import { fact, type Run } from './api';
import { el, setText } from './dom';
import { badge, lasted, latencyName } from './facts';
import * as format from './format';

/** The live and the recent runs. */
export class ListView {
  readonly root = el('div', { class: 'list' });
  private runs: Run[] = [];
  private readonly filter = el('input', { type: 'search', placeholder: 'Filter by title, tool, label …', 'aria-label': 'Filter runs' });
  private readonly live = el('div');
  private readonly recent = el('div');
  private clocks: [Run, HTMLElement][] = [];

  constructor(private readonly now: () => number) {
    this.filter.addEventListener('input', () => this.draw());
    this.root.append(el('h1', {}, 'Live runs'), this.live, el('div', { class: 'recent' }, el('h1', {}, 'Recent runs'), this.filter), this.recent);
  }

  show(runs: Iterable<Run>): void {
    this.runs = [...runs].sort((a, b) => b.started_at - a.started_at || (a.id < b.id ? 1 : -1));
    this.draw();
  }

  tick(): void {
    for (const [r, e] of this.clocks) setText(e, format.elapsed(Math.floor(lasted(r, this.now()))));
  }

  private draw(): void {
    document.title = 'benchwatch';
    this.clocks = [];
    const wanted = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (r: Run) => {
      const text = [r.id, r.title, ...r.facts.map((f) => f.value), r.result, ...Object.entries(r.labels ?? {}).map(([k, v]) => `${k}=${v}`)]
        .join(' ')
        .toLowerCase();
      return wanted.every((w) => text.includes(w));
    };
    const going = this.runs.filter((r) => r.phase !== 'over');
    const over = this.runs.filter((r) => r.phase === 'over');
    const found = over.filter(matches);
    const none = el('p', { class: 'hint' }, 'None. Start one with ', el('code', {}, 'benchwatch run -- sysbench … run'), '.');
    this.live.replaceChildren(going.length > 0 ? this.table(going) : none);
    this.recent.replaceChildren(found.length > 0 ? this.table(found) : el('p', { class: 'hint' }, over.length > 0 ? 'None that matches.' : 'None.'));
  }

  private table(runs: Run[]): HTMLElement {
    const head = ['Run', 'State', 'Tool', 'Threads', 'Transactions/s', 'Latency', 'Errors', 'Started', 'Lasted'];
    return el(
      'div',
      { class: 'wide panel' },
      el(
        'table',
        { class: 'runs' },
        el('thead', {}, el('tr', {}, ...head.map((t) => el('th', { scope: 'col' }, t)))),
        el('tbody', {}, ...runs.map((r) => this.row(r))),
      ),
    );
  }

  private row(r: Run): HTMLElement {
    const clock = el('td', { 'data-name': 'lasted' }, format.elapsed(Math.floor(lasted(r, this.now()))));
    if (r.ended_at === undefined) this.clocks.push([r, clock]);
    const cell = (name: string, text: string) => el('td', { 'data-name': name }, text);
    const labels = Object.entries(r.labels ?? {}).map(([k, v]) => el('span', { class: 'tag' }, `${k}=${v}`));
    return el(
      'tr',
      {},
      el('th', { scope: 'row' }, el('a', { href: `#/runs/${encodeURIComponent(r.id)}` }, r.title || r.id), ' ', ...labels),
      el('td', { 'data-name': '' }, badge(r)),
      cell('tool', [fact(r, 'tool'), fact(r, 'workload')].filter(Boolean).join(' ')),
      cell('threads', fact(r, 'threads') ?? '–'),
      cell('transactions/s', format.number(r.throughput)),
      cell('latency', r.latency ? `${format.seconds(r.latency.seconds)} ${latencyName(r.latency)}` : '–'),
      cell('errors', format.number(r.errors)),
      cell('started', format.dateTime(r.started_at)),
      clock,
    );
  }
}
