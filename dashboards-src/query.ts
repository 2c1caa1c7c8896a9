// Queries. Each query's interval is the scrape interval of its source. Grafana
// sets $__rate_interval to four times that.

import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';

/** How often Prometheus scrapes a kind of source (prometheus/prometheus.yml). */
export const scrapeInterval = { agent: '1s', exporter: '5s', cloudwatch: '1m' } as const;
export type Source = keyof typeof scrapeInterval;

export const datasource = { type: 'prometheus', uid: '${datasource}' };

export interface Query {
  expr: string;
  /** Legend, with {{label}} placeholders. */
  legend: string;
  source: Source;
  kind: 'range' | 'instant' | 'rows' | 'samples';
}

/** Time series from the agent's metrics. */
export const agent = (expr: string, legend: string): Query => ({ expr, legend, source: 'agent', kind: 'range' });

/** Time series from an exporter's metrics or from recording rules. */
export const exporter = (expr: string, legend: string): Query => ({ expr, legend, source: 'exporter', kind: 'range' });

/** Time series from CloudWatch metrics. */
export const cloudwatch = (expr: string, legend: string): Query => ({ expr, legend, source: 'cloudwatch', kind: 'range' });

/** The value at the end of the time range. */
export const now = (expr: string, legend: string): Query => ({ expr, legend, source: 'agent', kind: 'instant' });

/** Labels and values at the end of the time range, as table rows. */
export const rows = (expr: string): Query => ({ expr, legend: '', source: 'agent', kind: 'rows' });

/** One row per sample, for panels whose x axis is not time. */
export const samples = (expr: string): Query => ({ expr, legend: '', source: 'agent', kind: 'samples' });

export function build(query: Query, index: number): DataqueryBuilder {
  const builder = new DataqueryBuilder()
    .refId(String.fromCharCode('A'.charCodeAt(0) + index))
    .datasource(datasource)
    .expr(query.expr)
    .interval(scrapeInterval[query.source])
    .legendFormat(query.legend);
  switch (query.kind) {
    case 'range':
      return builder.range();
    case 'instant':
      return builder.instant();
    case 'samples':
      return builder.range().format(PromQueryFormat.Table);
    case 'rows':
      return builder.instant().format(PromQueryFormat.Table);
  }
}
