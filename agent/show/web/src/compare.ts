import uPlot from 'uplot';
import { type Chosen, type Compare, fact, getComparison, getHistory, type History, type Run } from './api';
import { Charts } from './charts';
import { el } from './dom';
import { badge, headlineName } from './facts';
import * as format from './format';
import { factOrLabel, plural } from './list';
import { address, place, remember } from './place';
import type { Spec } from './specs';
import { statementTable } from './statements';
import { Table } from './table';
import { colour, readTheme } from './theme';

const points = 600;

/** What charts compare: throughput, headline latency, errors. */
const compared = ['transactions', 'latency', 'errors'];

/** Two or more runs beside each other: a table, and their lines over the same seconds. */
export class CompareView {
  readonly root = el('div', { class: 'compare' });
  private readonly problem = el('p', { class: 'problem', role: 'alert', hidden: '' });
  private readonly head = el('div');
  private readonly body = el('div');
  private readonly groupBy = el('select', { 'aria-label': 'Group runs by' });
  private readonly charts: Charts;
  private readonly ids: string[];
  private readonly histories = new Map<string, History>();
  private by: string;
  private shown: Compare | null = null;
  private asked = 0;

  constructor(specs: readonly Spec[]) {
    const { query } = place();
    this.ids = (query.get('runs') ?? '').split(',').filter(Boolean);
    this.by = query.get('by') ?? '';
    const shown = specs.filter((s) => s.scope === 'run' && compared.includes(s.id));
    this.charts = new Charts(
      shown.map((s) => ({ ...s, byServer: true, byOperation: false, label: ([, group, id]) => this.lineName(group, id), visible: (all) => all })),
      (part) => remember({ from: part ? part[0].toFixed(1) : '', to: part ? part[1].toFixed(1) : '' }),
      () => null,
    );
    this.charts.length = 1;
    const [from, to] = [Number(query.get('from') ?? NaN), Number(query.get('to') ?? NaN)];
    if (to > from) this.charts.axis.view = [from, to];
    this.groupBy.addEventListener('change', () => {
      this.by = this.groupBy.value;
      remember({ by: this.by });
      this.draw();
    });
    document.title = 'Comparison – benchwatch';
    this.root.append(el('h1', {}, 'Comparison'), this.problem, this.head, this.charts.root, this.body);
  }

  destroy(): void {
    this.asked = -1;
    this.charts.destroy();
  }

  /** Called once a second; nothing changes by itself. */
  tick(): void {}

  load(): void {
    if (this.ids.length < 2) {
      this.fail('select two runs or more in the list of runs');
      return;
    }
    Promise.all(this.ids.map((id) => getHistory(id, points, { first: true }).then((h) => this.histories.set(id, h))))
      .then(() => this.draw())
      .catch((e: unknown) => this.fail(e instanceof Error ? e.message : String(e)));
  }

  /** A line's name: that of its group, with a number if that has several runs. */
  private lineName(group: string, id: string): string {
    const runs = this.shown?.groups.find((g) => g.name === group)?.runs ?? [];
    return runs.length > 1 ? `${group} ${runs.findIndex((r) => r.id === id) + 1}` : group;
  }

  private fail(text: string): void {
    this.problem.hidden = false;
    this.problem.textContent = `Comparison: ${text}`;
  }

  private get runs(): Run[] {
    return this.ids.flatMap((id) => this.histories.get(id)?.run ?? []);
  }

  /** The groups: the runs themselves, or those that share the value by which they are grouped. */
  private chosen(): Chosen[] {
    if (!this.by) {
      const names = byLabel(this.runs) ?? different(this.runs.map((r) => r.title));
      return this.runs.map((r, i) => ({ name: names[i]!, ids: [r.id] }));
    }
    const groups = new Map<string, string[]>();
    for (const r of this.runs) {
      const name = `${this.by}=${factOrLabel(r, this.by) ?? 'unknown'}`;
      groups.set(name, [...(groups.get(name) ?? []), r.id]);
    }
    return [...groups].map(([name, ids]) => ({ name, ids }));
  }

  private draw(): void {
    if (this.asked < 0) return;
    const mine = ++this.asked;
    this.problem.hidden = true;
    this.fillGroups();
    getComparison(this.chosen())
      .then((c) => {
        if (mine === this.asked) this.show(c);
      })
      .catch((e: unknown) => {
        if (mine === this.asked) this.fail(e instanceof Error ? e.message : String(e));
      });
  }

  private fillGroups(): void {
    const names = new Set(this.runs.flatMap((r) => [...Object.keys(r.labels ?? {}), ...r.facts.map((f) => f.name)]));
    const useful = [...names].filter((name) => {
      const n = new Set(this.runs.map((r) => factOrLabel(r, name))).size;
      return name === this.by || (n > 1 && n < this.ids.length);
    });
    this.groupBy.replaceChildren(
      ...['', ...useful].map((name) => el('option', { value: name, ...(name === this.by ? { selected: '' } : {}) }, name || 'nothing')),
    );
  }

  private show(c: Compare): void {
    this.shown = c;
    const legend = c.groups.map((g, i) => {
      const swatch = el('i', { 'aria-hidden': 'true' });
      swatch.style.background = colour(this.charts.theme, i);
      const runs = g.runs.map((r) => el('a', { href: address(['runs', r.id]) }, r.title && !g.name.startsWith(r.title) ? r.title : r.id));
      return el('li', {}, swatch, el('b', {}, g.name), ' ', ...runs.flatMap((a, k) => [a, ' ', badge(g.runs[k]!), ' ']));
    });
    this.head.replaceChildren(
      el('div', { class: 'summary' }, ...c.summary.map((sentence) => el('p', {}, sentence))),
      el('ul', { class: 'plain groups' }, ...legend),
      el(
        'div',
        { class: 'tools' },
        el('label', {}, 'Group by ', this.groupBy),
        el('span', { class: 'hint' }, `Ratios and differences are to ${c.groups[0]!.name}.`),
      ),
    );
    this.showCharts(c);
    const difference = (d: Compare['differs'][number]) =>
      el('tr', {}, el('th', { scope: 'row' }, d.name), ...d.values.map((v) => el('td', {}, v || '–')));
    const differences = (title: string, all: Compare['differs']) =>
      all.length > 0 && el('section', { class: 'panel' }, el('h2', {}, title), table(['', ...c.groups.map((g) => g.name)], all.map(difference)));
    const lines = (rows: string[][]) =>
      table(
        c.head,
        rows.map((row) => el('tr', {}, el('th', { scope: 'row' }, row[0]!), ...row.slice(1).map((v) => el('td', {}, v)))),
      );
    const folded = (summary: string, rows: string[][]) => rows.length > 0 && el('details', {}, el('summary', {}, summary), lines(rows));
    this.body.replaceChildren(
      ...[
        this.scaling(c),
        el(
          'section',
          { class: 'panel' },
          el('h2', {}, 'Measures'),
          lines(c.rows),
          folded(`Cost per transaction, and each server: ${plural(c.details.length, 'row')}`, c.details),
          folded(c.folded_line, c.folded),
          el('ul', { class: 'notes' }, ...c.notes.map((n) => el('li', {}, n))),
        ),
        c.statements.rows.length > 0 &&
          el(
            'section',
            { class: 'panel statements' },
            el('h2', {}, 'Statements', el('small', {}, 'by the difference of their time in the servers per transaction')),
            statementTable(c.statements, 10),
          ),
        differences('What differs', c.differs),
        differences('Settings of the servers that differ', c.settings),
      ].filter((e): e is HTMLElement => e instanceof HTMLElement),
    );
  }

  /** Lines of all runs over the seconds of their own axes. */
  private showCharts(c: Compare): void {
    const tables: uPlot.AlignedData[] = [];
    const series: Table['series'] = new Map();
    c.groups.forEach((g) => {
      this.charts.serverColour(g.name); // in the order of the groups
      g.runs.forEach((r) => {
        const h = this.histories.get(r.id);
        if (!h) return;
        const t = new Table(h.tables.intervals);
        const values: (number | null)[][] = [];
        for (const measure of compared) {
          const s = t
            .of(measure)
            .find(({ name: [, of, stat] }) =>
              measure === 'transactions' ? of === 'transaction' : measure === 'latency' ? headlineName(h.run, t) === `${of} ${stat}` : true,
            );
          if (!s) continue;
          const name: [string, string, string] = [measure, g.name, r.id];
          series.set(JSON.stringify(name), { ...s, name });
          values.push(s.values);
        }
        tables.push([t.x, ...values] as uPlot.AlignedData);
      });
    });
    const joined = new Table();
    if (tables.length > 0) {
      // A value that a run has no row for is undefined and no gap; null is one.
      const [x, ...columns] = uPlot.join(
        tables,
        tables.map((t) => t.map(() => 2)),
      );
      joined.x = x as number[];
      [...series.values()].forEach((s, i) => {
        s.values = columns[i] as (number | null)[];
      });
      for (const [key, s] of series) joined.series.set(key, s);
    }
    this.charts.show({ intervals: joined, servers: new Table(), host: new Table() });
  }

  /** Throughput over threads, if the runs have at least three different numbers of them. */
  private scaling(c: Compare): HTMLElement | null {
    const at = (r: Run) => Number(fact(r, 'threads') ?? NaN);
    const all = c.groups.flatMap((g) => g.runs).filter((r) => r.throughput !== undefined && at(r) > 0);
    const x = [...new Set(all.map(at))].sort((a, b) => a - b);
    if (x.length < 3) return null;
    const groups = this.by && this.by !== 'threads' ? c.groups.map((g) => ({ name: g.name, runs: g.runs })) : [{ name: 'transactions/s', runs: all }];
    const values = groups.map((g) => x.map((n) => middle(g.runs.filter((r) => at(r) === n).flatMap((r) => r.throughput ?? []))));
    const theme = readTheme();
    const box = el('div', {
      class: 'plot',
      role: 'img',
      'aria-label': `Throughput by threads: ${x.map((n, i) => `${n} threads ${values.map((v) => format.number(v[i])).join(', ')}`).join('; ')}`,
    });
    const axis = {
      stroke: theme.text,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { stroke: theme.grid, width: 1 },
      font: '11px system-ui, sans-serif',
    };
    requestAnimationFrame(() => {
      if (box.clientWidth === 0) return;
      new uPlot(
        {
          width: box.clientWidth,
          height: 190,
          padding: [10, 26, 0, 0],
          legend: { show: false },
          cursor: { show: false },
          scales: { x: { time: false, distr: 3, log: 2 }, y: { range: (_u, _min, max) => [0, max * 1.1] } },
          axes: [
            { ...axis, splits: () => x, values: (_u, all) => all.map(String) },
            { ...axis, size: 62, values: (_u, all) => all.map((v) => format.tick('per_second', v)) },
          ],
          series: [{}, ...groups.map((_, i) => ({ stroke: colour(theme, i), width: 2, points: { show: true, size: 7 }, spanGaps: true }))],
        },
        [x, ...values] as uPlot.AlignedData,
        box,
      );
    });
    const note = groups.length > 1 ? 'transactions per second, the median of each group' : 'transactions per second';
    return el('section', { class: 'chart' }, el('h3', {}, 'Throughput by threads', el('small', {}, `${note}, of ${plural(all.length, 'run')}`)), box);
  }
}

/** Labels that number runs and do not say how they were made. */
const bookkeeping = ['sweep', 'step', 'repeat'];

/** The runs by a label that is another one in each of them, such as "fc_limit=16"; null if there is none. */
function byLabel(runs: Run[]): string[] | null {
  for (const name of Object.keys(runs[0]?.labels ?? {})) {
    const values = runs.map((r) => r.labels?.[name]);
    if (!bookkeeping.includes(name) && values.every((v) => v) && new Set(values).size === runs.length) return values.map((v) => `${name}=${v}`);
  }
  return null;
}

/** What distinguishes titles: their words without those that all have; empty if that says nothing. */
function different(titles: string[]): string[] {
  const words = titles.map((t) => t.split(/\s+/));
  const own = words.map((all) => all.filter((w) => !words.every((others) => others.includes(w))).join(' '));
  return own.some((text) => text === '' || /^[0-9]+$/.test(text)) ? titles : own;
}

/** The median; null of nothing. */
function middle(values: number[]): number | null {
  if (values.length === 0) return null;
  const v = [...values].sort((a, b) => a - b);
  const half = v.length >> 1;
  return v.length % 2 ? v[half]! : (v[half - 1]! + v[half]!) / 2;
}

function table(head: string[], rows: HTMLElement[]): HTMLElement {
  return el(
    'div',
    { class: 'wide' },
    el('table', { class: 'numbers' }, el('thead', {}, el('tr', {}, ...head.map((t) => el('th', { scope: 'col' }, t)))), el('tbody', {}, ...rows)),
  );
}
