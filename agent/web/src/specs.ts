import type { Chart, Name, TableName } from './api';

/** What one chart draws: a chart of the catalogue, and how its lines are labelled. */
export interface Spec extends Chart {
  table: TableName;
  label(name: Name): string;
  /** Whether a line is visible at first. */
  visible(name: Name): boolean;
  /** Whether colours belong to servers, the same in all charts. */
  byServer: boolean;
  /** Whether the chart is left out while all its values are 0. */
  hideZero: boolean;
}

const tables: Record<Chart['scope'], TableName> = { run: 'intervals', server: 'servers', host: 'host' };

const spaced = (s: string) => s.replaceAll('_', ' ');

/** The chart of a measure's catalogue entry. */
export function specOf(chart: Chart): Spec {
  const labels = new Map(chart.measures.map((m) => [m.id, m.label]));
  return {
    ...chart,
    table: tables[chart.scope],
    byServer: chart.scope === 'server',
    hideZero: chart.scope === 'server' || (chart.scope === 'run' && chart.id !== 'transactions'),
    label([measure, of, stat]) {
      if (stat) return of === 'transaction' ? stat : `${spaced(of)} ${stat}`;
      return of ? spaced(of) : (labels.get(measure) ?? measure);
    },
    visible: ([, of, stat]) => !stat || of === 'transaction' || stat === 'p95' || stat === 'p99',
  };
}
