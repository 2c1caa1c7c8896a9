import type { Chart, Headline, Name, TableName } from './api';
import { stat as statName } from './format';
import type { Series } from './table';

/** What one chart draws: a chart of the catalogue, and how its lines are labelled. */
export interface Spec extends Chart {
  table: TableName;
  label(name: Name): string;
  /** Selects the existing lines that are visible at first. */
  visible(all: Name[]): Name[];
  /** Whether a line has anything to show: an operation that the tool did not execute has nothing. */
  hasTraffic(s: Series): boolean;
  /** Whether the legend puts the statistics of an operation together. */
  byOperation: boolean;
  /** Whether colours belong to servers, the same in all charts. */
  byServer: boolean;
}

const tables: Record<Chart['scope'], TableName> = { run: 'intervals', server: 'servers', host: 'host', cluster: 'servers' };

const spaced = (s: string) => s.replaceAll('_', ' ');

/** The chart of a measure's catalogue entry. */
export function specOf(chart: Chart, headline: Headline): Spec {
  const labels = new Map(chart.measures.map((m) => [m.id, m.label]));
  return {
    ...chart,
    table: tables[chart.scope],
    byOperation: chart.scope === 'run',
    byServer: chart.scope === 'server' && !chart.stacked,
    label([measure, of, stat]) {
      if (stat) return of === 'transaction' ? statName(stat) : `${spaced(of)} ${statName(stat)}`;
      const label = labels.get(measure) ?? measure;
      if (of && (chart.stacked || (chart.scope === 'host' && measure !== chart.id))) return `${of} ${label}`;
      return of ? spaced(of) : label;
    },
    hasTraffic: ({ name: [, of], min, max }) =>
      chart.stacked
        ? min != null && (min !== 0 || max !== 0)
        : chart.scope !== 'run' || of === '' || of === 'transaction' || (min != null && (min !== 0 || max !== 0)),
    visible: chart.scope === 'run' ? (all) => mainLines(all, headline) : (all) => all,
  };
}

/** For the tool's values: throughput of the transactions; latency of the operations that are its work, with one statistic. */
function mainLines(all: Name[], { stats, not_work: notWork }: Headline): Name[] {
  const work = all.filter(([, of]) => !notWork.some((end) => of === end || of.endsWith(`_${end}`)));
  const transactions = work.filter(([, of]) => of === 'transaction');
  const operations = transactions.length > 0 ? transactions : work;
  const stat = stats.find((s) => operations.some((name) => name[2] === s));
  return stat ? operations.filter((name) => name[2] === stat) : operations;
}
