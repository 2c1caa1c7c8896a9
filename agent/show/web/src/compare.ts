import uPlot from 'uplot';
import { type Chosen, type Compare, getComparison, getHistory, type History, type Run } from './api';
import { sections } from './blocks';
import { Charts } from './charts';
import { el } from './dom';
import { badge, headlineName } from './facts';
import { factOrLabel } from './list';
import { address, place, remember } from './place';
import { plotWidth } from './plot';
import type { Spec } from './specs';
import { Table } from './table';
import { colour } from './theme';

const points = 600;

/** What charts compare: throughput, headline latency, errors. */
const compared = ['transactions', 'latency', 'errors'];

/** Two or more runs beside each other: a table, and their lines over the same seconds. */
export class CompareView {
  readonly root = el('div', { class: 'compare' });
  private readonly problem = el('p', { class: 'problem', role: 'alert', hidden: '' });
  private readonly head = el('div');
  private readonly upper = el('div', { class: 'document' });
  private readonly lower = el('div', { class: 'document' });
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
    this.root.append(el('h1', {}, 'Comparison'), this.problem, this.head, this.upper, this.charts.root, this.lower);
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
    getComparison(this.chosen(), plotWidth(this.root))
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
      el('ul', { class: 'plain groups' }, ...legend),
      el(
        'div',
        { class: 'tools' },
        el('label', {}, 'Group by ', this.groupBy),
        el('span', { class: 'hint' }, `Ratios and differences are to ${c.groups[0]!.name}.`),
      ),
    );
    this.showCharts(c);
    const i = c.sections.findIndex((s) => s.id === 'time');
    this.upper.replaceChildren(...sections(c.sections.slice(0, i + 1)));
    this.lower.replaceChildren(...sections(c.sections.slice(i + 1)));
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
