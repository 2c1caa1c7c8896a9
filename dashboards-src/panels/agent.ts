// Panels about the agent itself.

import { server, serverGauge } from '../metrics';
import { type AnyPanel, graph, unit } from '../panel';
import { agent } from '../query';

const noAgent = 'No agent is scraped (job benchwatch in prometheus.yml)';

export function cpu(span: number): AnyPanel {
  return graph({
    title: 'Agent CPU',
    description:
      'CPU time of the agent as a share of one core. The budget is 0.5 % with three servers sampled once a second. From process_cpu_seconds_total.',
    unit: unit.share,
    noData: noAgent,
    span,
    queries: [agent('sum by (instance) (rate(process_cpu_seconds_total{job="benchwatch"}[$__rate_interval]))', '{{instance}}')],
  });
}

export function sampleDuration(span: number): AnyPanel {
  return graph({
    title: 'Sample duration',
    description:
      'Time from the query to the complete answer of a server. A few milliseconds is usual on an idle server. A server that is slow here is also slow for its clients. From benchwatch_db_sample_duration_seconds.',
    unit: unit.seconds,
    noData: 'No server is sampled',
    span,
    queries: [agent(serverGauge('benchwatch_db_sample_duration_seconds'), server)],
  });
}

export { noAgent };
