// Values that the agent samples or, where no agent does, an exporter has.

import { ofRunClusters, server, withoutAgent } from './metrics';
import { agent, exporter, type Query } from './query';

/** The agent's series, or the exporter's if no agent samples any server in the time range. */
export function either(ofAgent: string, ofExporter: string, legend = ''): Query[] {
  const suffix = legend && ` ${legend}`;
  return [agent(ofAgent, `${server}${suffix}`), exporter(withoutAgent(ofExporter), `{{instance}}${suffix}`)];
}

/** An exporter's gauge by server. */
export const exporterGauge = (expr: string): string => `max by (instance) (${ofRunClusters(expr)})`;

/** Per-second rate of an exporter's counter by server. */
export const exporterRate = (name: string): string => exporterGauge(`rate(${name}[$__rate_interval])`);

/** The same of a counter with a series for each database. */
export const exporterSum = (name: string): string => `sum by (instance) (${ofRunClusters(`rate(${name}[$__rate_interval])`)})`;
