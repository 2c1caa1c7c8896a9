import uPlot from 'uplot';
import { type Chosen, type Compare, getComparison, getHistory, type History, ids, type Run, type TableName, tableNames } from './api';
import { sections } from './blocks';
import { Charts } from './charts';
import { el } from './dom';
import { badge, headlineName } from './facts';
import { factOrLabel } from './list';
import { address, place, remember } from './place';
import { plotWidth } from './plot';
import type { Spec } from './specs';
import { type Series, Table } from './table';
import { colour } from './theme';

const points = 600;

/** Two or more runs beside each other: a table, and their lines over the same seconds. */
export class CompareView {
  readonly root = el('div', { class: 'compare' });
  private readonly problem = el('p', { class: 'problem', role: 'alert', hidden: '' });
  private readonly head = el('div');
  private readonly upper = el('div', { class: 'document' });
  private readonly lower = el('div', { class: 'document' });
  private readonly groupBy = el('select', { 'aria-label': 'Group runs by' });
  private readonly charts: Charts;
  private readonly specs: Spec[];
  private readonly ids: string[];
  private readonly histories = new Map<string, History>();
  private by: string;
  private shown: Compare | null = null;
  private asked = 0;

  constructor(specs: readonly Spec[]) {
    const { query } = place();
    this.ids = (query.get('runs') ?? '').split(',').filter(Boolean);
    this.by = query.get('by') ?? '';
    this.specs = specs.map((s) => ({
      ...s,
      byServer: true,
      byOperation: false,
      stacked: false,
      label: ([, group, id]) => this.lineName(group, id),
      visible: (all) => all,
    }));
    this.charts = new Charts(
      this.specs,
      [],
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

  /** A line's name: the name of its group, with a number if the group has several runs. */
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

  /** The groups: single runs, or runs with the same value of the grouping label. */
  private chosen(): Chosen[] {
    if (!this.by) {
      return this.runs.map((r) => ({ name: '', ids: [r.id] })); // the agent names them
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
      el('div', { class: 'tools' }, el('label', {}, 'Group by ', this.groupBy)),
    );
    const i = c.sections.findIndex((s) => s.id === 'time');
    this.upper.replaceChildren(...sections(c.sections.slice(0, i < 0 ? undefined : i)));
    this.lower.replaceChildren(...sections(i < 0 ? [] : c.sections.slice(i + 1)));
    this.charts.arrange(c.sections[i]?.blocks ?? []);
    const ids = new Set(c.sections[i]?.blocks.flatMap((b) => (b.drawings ?? []).flatMap((d) => d.chart ?? [])));
    const drawn = this.specs.filter((s) => ids.has(`${s.scope}-${s.id}`));
    this.showCharts(c, drawn);
    if (drawn.every((s) => s.scope === 'run')) return;
    const late = [...this.histories].filter(([, h]) => !h.whole); // without its servers at first
    void Promise.all(late.map(([id]) => getHistory(id, points).then((h) => this.histories.set(id, h))))
      .then(() => late.length > 0 && this.shown === c && this.showCharts(c, drawn))
      .catch(() => undefined); // the tool's charts stay
  }

  /** Lines of all runs over the seconds of their own axes. */
  private showCharts(c: Compare, drawn: Spec[]): void {
    const shown = Object.fromEntries(tableNames.map((t) => [t, new Joined()])) as Record<TableName, Joined>;
    for (const g of c.groups) {
      this.charts.serverPlace(g.name); // in the order of the groups
      for (const r of g.runs) {
        const h = this.histories.get(r.id);
        if (!h) continue;
        const end = r.ended_at === undefined ? Infinity : (r.ended_at - h.zero) / 1000;
        for (const name of tableNames) {
          const table = new Table(h.tables[name]);
          const lines = drawn.filter((s) => s.table === name).flatMap((s) => this.line(s, table, h.run, g.name) ?? []);
          const n = table.x.findIndex((x) => x > end); // what follows is no load
          const load = <T>(rows: T[]) => (n < 0 ? rows : rows.slice(0, n));
          shown[name].add(
            load(table.x),
            lines.map((l) => ({ ...l, values: load(l.values) })),
          );
        }
      }
    }
    this.charts.show({ intervals: shown.intervals.table(), servers: shown.servers.table(), host: shown.host.table() });
  }

  /** A run's line in a chart; for servers and machines, the largest value of all. */
  private line(spec: Spec, table: Table, run: Run, group: string): Series | null {
    const all = table.of(spec.id);
    const name: [string, string, string] = [spec.id, group, run.id];
    if (spec.scope === 'run') {
      const own = all.find(({ name: [, of, stat] }) =>
        spec.id === ids.latency ? headlineName(run, table) === `${of} ${stat}` : of === '' || of === 'transaction',
      );
      return own ? { ...own, name } : null;
    }
    if (all.length === 0) return null;
    const known = (row: number) => all.flatMap((s) => s.values[row] ?? []);
    const values = table.x.map((_, row) => (known(row).length > 0 ? Math.max(...known(row)) : null));
    const most = (of: (s: Series) => number | null) => all.reduce<number | null>((a, s) => Math.max(a ?? -Infinity, of(s) ?? -Infinity), null);
    return { name, values, min: most((s) => s.min), max: most((s) => s.max), mean: most((s) => s.mean) };
  }
}

/** Lines of several runs over one axis. */
class Joined {
  private readonly tables: uPlot.AlignedData[] = [];
  private readonly series: Series[] = [];

  add(x: number[], lines: Series[]): void {
    if (lines.length === 0) return;
    this.tables.push([x, ...lines.map((l) => l.values)] as uPlot.AlignedData);
    this.series.push(...lines);
  }

  table(): Table {
    const joined = new Table();
    if (this.tables.length === 0) return joined;
    // A value for which a run has no row is undefined, which is not a gap; null is a gap.
    const [x, ...columns] = uPlot.join(
      this.tables,
      this.tables.map((t) => t.map(() => 2)),
    );
    joined.x = x as number[];
    this.series.forEach((s, i) => joined.series.set(JSON.stringify(s.name), { ...s, values: columns[i] as (number | null)[] }));
    return joined;
  }
}
