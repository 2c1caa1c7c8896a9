import { getTrend, type Trend, type TrendSeries } from './api';
import { el } from './dom';
import { address, place, remember } from './place';
import { plot, plotWidth } from './plot';

/** A measure of all recorded runs over months, with the places where its level changed. */
export class TrendView {
  readonly root = el('div', { class: 'trend', 'aria-busy': 'true' });
  private readonly measure = el('select', { 'aria-label': 'Measure' });
  private readonly by = el('select', { 'aria-label': 'A series for each' });
  private readonly where = el('input', {
    type: 'search',
    placeholder: 'Only runs with: workload=oltp_read_write cluster=blue …',
    'aria-label': 'Only runs with these labels and facts',
  });
  private readonly problem = el('p', { class: 'problem', role: 'alert', hidden: '' });
  private readonly body = el('div');
  private loading: AbortController | null = null;
  private waiting = 0;
  private width = 0;
  private readonly resizer = new ResizeObserver(() => {
    if (this.width > 0 && plotWidth(this.body) !== this.width) this.loadSoon(200);
  });

  constructor() {
    document.title = 'History – benchwatch';
    this.measure.addEventListener('change', () => this.changed({ measure: this.measure.value === 'tps' ? '' : this.measure.value }));
    this.by.addEventListener('change', () => this.changed({ by: this.by.value }));
    this.where.addEventListener('input', () => {
      remember({ where: this.where.value.trim() });
      this.loadSoon(300);
    });
    this.where.value = place().query.get('where') ?? '';
    this.root.append(
      el('h1', {}, 'History'),
      el(
        'p',
        { class: 'hint' },
        'Succeeded runs, one series for each tool, workload, number of threads and verb. Dashed lines are levels; a number marks where one changed.',
      ),
      el('div', { class: 'tools' }, el('label', {}, 'Measure ', this.measure), el('label', {}, 'and for each ', this.by), this.where),
      this.problem,
      this.body,
    );
    this.resizer.observe(this.body);
  }

  destroy(): void {
    clearTimeout(this.waiting);
    this.loading?.abort();
    this.resizer.disconnect();
  }

  /** Called once a second; new runs are shown when the view is opened again. */
  tick(): void {}

  /** Takes the state of the view from the address. */
  restore(): void {
    this.where.value = place().query.get('where') ?? '';
    this.load();
  }

  private changed(query: Record<string, string>): void {
    remember(query);
    this.load();
  }

  private loadSoon(after: number): void {
    clearTimeout(this.waiting);
    this.waiting = window.setTimeout(() => this.load(), after);
  }

  load(): void {
    clearTimeout(this.waiting);
    this.loading?.abort();
    const loading = new AbortController();
    this.loading = loading;
    this.width = plotWidth(this.body);
    this.root.setAttribute('aria-busy', 'true');
    const { query } = place();
    const where = (query.get('where') ?? '').split(/\s+/).filter((w) => w.includes('='));
    getTrend(query.get('measure') ?? '', query.get('by') ?? '', where, this.width, loading.signal)
      .then((t) => {
        this.problem.hidden = true;
        this.show(t);
      })
      .catch((e: unknown) => {
        if (loading.signal.aborted) return;
        this.problem.hidden = false;
        this.problem.textContent = `History: ${e instanceof Error ? e.message : String(e)}`;
      })
      .finally(() => {
        if (!loading.signal.aborted) this.root.setAttribute('aria-busy', 'false');
      });
  }

  private show(t: Trend): void {
    const fill = (select: HTMLSelectElement, values: string[], chosen: string, empty: string) => {
      const all = values.includes(chosen) ? values : [...values, chosen];
      select.replaceChildren(...all.map((v) => el('option', { value: v, ...(v === chosen ? { selected: '' } : {}) }, v || empty)));
    };
    fill(this.measure, t.measures, t.measure, '');
    fill(
      this.by,
      ['', ...t.names.filter((n) => !['tool', 'workload', 'threads', 'verb'].includes(n))],
      place().query.get('by') ?? '',
      'nothing else',
    );
    const single = t.series.filter((s) => s.run);
    const none = el('p', { class: 'hint' }, 'No run that succeeded has this measure.');
    this.body.replaceChildren(
      ...(t.notes.length > 0 ? [el('ul', { class: 'notes' }, ...t.notes.map((n) => el('li', {}, n)))] : []),
      ...(t.series.length > 0 ? [el('div', { class: 'drawings' }, ...t.series.filter((s) => s.plot).map(series))] : [none]),
      ...(single.length > 0
        ? [el('details', { class: 'panel' }, el('summary', {}, `${single.length} series of one run`), el('ul', {}, ...single.map(only)))]
        : []),
    );
    if (single.length === t.series.length) this.body.querySelector('details')?.setAttribute('open', '');
  }
}

const only = (s: TrendSeries): HTMLElement => el('li', {}, el('a', { href: address(['runs', s.run!]) }, s.title), ` ${s.text}`);

function series(s: TrendSeries): HTMLElement {
  const item = (c: TrendSeries['changes'][number]) =>
    el(
      'li',
      {},
      el('b', {}, c.level),
      ' ',
      el('span', { class: 'text' }, c.text),
      ' ',
      el('a', { href: address(['runs', c.after]) }, 'first run'),
      ' ',
      el('a', { href: address(['compare'], { runs: `${c.before},${c.after}` }) }, 'compare with the previous run'),
    );
  return el(
    'section',
    { class: 'panel' },
    s.plot && plot(s.plot),
    el('p', {}, s.text),
    s.changes.length > 0 && el('ol', { class: 'changes' }, ...s.changes.map(item)),
  );
}
