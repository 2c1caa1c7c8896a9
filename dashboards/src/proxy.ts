// Proxy: what going through Atlas, ProxySQL or HAProxy costs against going
// direct. Two runs that differ in nothing else, side by side.

import type * as cog from '@grafana/grafana-foundation-sdk/cog';
import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { QueryVariableBuilder, type VariableModel, VariableRefresh, VariableSort } from '@grafana/grafana-foundation-sdk/dashboard';
import type { Page } from './frame';
import { serverRate, servers } from './metrics';
import { graph, row, set, stat, states, timeline, unit } from './panel';
import { overElapsed } from './panels/elapsed';
import * as host from './panels/host';
import * as server from './panels/server';
import { agent, datasource, exporter, now } from './query';
import { limits } from './threshold';

const choose = 'Choose two finished runs';
const noProxy = 'No proxy is sampled (engine: atlas), and neither ProxySQL nor HAProxy is scraped';
const noAtlas = "No Atlas is sampled, or it does not run on the agent's host";

function oneRun(name: string, label: string, description: string): cog.Builder<VariableModel> {
  const query = 'label_values(benchwatch_run_info, run)';
  return new QueryVariableBuilder(name)
    .label(label)
    .description(description)
    .datasource(datasource)
    .query({ qryType: 1, query, refId: name })
    .definition(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalDesc)
    .multi(false)
    .includeAll(false);
}

const of = (metric: string, run: string): string => `max(${metric.replace('}', `, run="$${run}"}`)})`;
const summaryRate = 'benchwatch_run_summary_operations_per_second{op="transaction"}';
const mean = 'benchwatch_run_summary_latency_seconds{op="transaction", stat="avg"}';
const headline = (run: string): string => `max(run:benchwatch_run_summary_latency_seconds:headline{run="$${run}"})`;

export const proxy: Page = {
  name: 'proxy',
  title: 'Benchmark: proxy',
  description: "Through a proxy against direct: throughput, latency, the proxy's own CPU, and what its backends get.",
  variables: ['cluster', 'target', 'run'],
  extraVariables: [
    oneRun('direct', 'Direct', 'The run that went straight to the server.'),
    oneRun('proxied', 'Through the proxy', 'The run that went through the proxy, the same in all else.'),
  ],
  from: 'now-1h',
  content: [
    stat({
      title: 'Throughput kept',
      unit: unit.share,
      decimals: 0,
      noData: choose,
      span: 6,
      description:
        "Throughput through the proxy as a share of the direct one, from the tools' summaries. 100 % costs nothing. With read/write splitting it compares several servers with one. From benchwatch_run_summary_operations_per_second.",
      queries: [now(`${of(summaryRate, 'proxied')} / ${of(summaryRate, 'direct')}`, 'of direct')],
    }),
    stat({
      title: 'Added latency',
      unit: unit.seconds,
      noData: choose,
      span: 6,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      description:
        "How much longer a transaction takes through the proxy: mean, and p95 (or the percentile that the tool prints). A proxy's cost is paid once a statement: divide by their number. From benchwatch_run_summary_latency_seconds.",
      queries: [now(`${of(mean, 'proxied')} - ${of(mean, 'direct')}`, 'mean'), now(`${headline('proxied')} - ${headline('direct')}`, 'percentile')],
    }),
    stat({
      title: 'Throughput',
      unit: unit.perSecond,
      noData: choose,
      span: 6,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      description: "Mean throughput of both runs, from the tools' summaries. From benchwatch_run_summary_operations_per_second.",
      queries: [now(of(summaryRate, 'direct'), 'direct'), now(of(summaryRate, 'proxied'), 'proxy')],
    }),
    stat({
      title: 'Busiest thread of the proxy',
      unit: unit.share,
      decimals: 0,
      noData: 'No Atlas',
      span: 6,
      limits: limits.cpu,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      description:
        'Share of a core that the busiest thread of the proxy uses (15 s). One thread serves a client, so it is the limit: over 90 % ProxyCPUBound fires. From benchwatch_proxy_thread_cpu_seconds_total.',
      queries: [
        now(`topk(1, max by (target, thread) (rate(benchwatch_proxy_thread_cpu_seconds_total{${servers}}[15s])))`, '{{target}} thread {{thread}}'),
      ],
    }),
    row('Side by side, each from its own start'),
    overElapsed(
      'Throughput, direct and through the proxy',
      unit.perSecond,
      'max by (run) (benchwatch_run_operations_per_second{op="transaction", run=~"$direct|$proxied"})',
      'Transactions a second of both runs over the seconds since their start. The time range has to hold both. From benchwatch_run_operations_per_second.',
      'run=~"$direct|$proxied"',
    ),
    overElapsed(
      'Latency, direct and through the proxy',
      unit.seconds,
      'max by (run) (run:benchwatch_run_latency_seconds:headline{run=~"$direct|$proxied"})',
      'p95 (or the percentile that the tool prints) of both runs over the seconds since their start. From run:benchwatch_run_latency_seconds:headline.',
      'run=~"$direct|$proxied"',
    ),
    row('The proxy'),
    graph({
      title: 'CPU of the proxy',
      unit: unit.cores,
      decimals: 2,
      noData: noAtlas,
      span: 8,
      description: 'Cores that the proxy uses, user and system. From benchwatch_proxy_cpu_seconds_total.',
      queries: [agent(`sum by (target, mode) (${serverRate('benchwatch_proxy_cpu_seconds_total')})`, '{{target}} {{mode}}')],
    }),
    graph({
      title: "CPU of the proxy's threads",
      unit: unit.share,
      decimals: 0,
      max: 1,
      noData: noAtlas,
      span: 8,
      limits: limits.cpu,
      description:
        'Share of a core that each thread uses, the twelve busiest. One at 100 % is the limit, however idle the others are. From benchwatch_proxy_thread_cpu_seconds_total.',
      queries: [
        agent(`topk(12, max by (target, thread) (${serverRate('benchwatch_proxy_thread_cpu_seconds_total')}))`, '{{target}} thread {{thread}}'),
      ],
    }),
    timeline({
      title: 'Backends',
      unit: unit.none,
      noData: noProxy,
      span: 8,
      description:
        'Whether the proxy uses each of its backends. A proxy without traffic may not notice that one died. From benchwatch_proxy_backend_up (Atlas), haproxy_server_status or proxysql_connpool_conns_status.',
      queries: [
        agent(`min by (target, backend, backend_role) (benchwatch_proxy_backend_up{${servers}})`, '{{target}} {{backend}} {{backend_role}}'),
        exporter('min by (instance, server) (haproxy_server_status{state="UP"})', '{{instance}} {{server}}'),
        exporter(
          'min by (instance, endpoint, hostgroup) (proxysql_connpool_conns_status == bool 1)',
          '{{instance}} {{endpoint}} group {{hostgroup}}',
        ),
      ],
      mappings: states({ '0': { text: 'not used', color: 'red' }, '1': { text: 'used', color: 'green' } }),
    }),
    graph({
      title: 'Connections of clients',
      unit: unit.count,
      decimals: 0,
      noData: noProxy,
      span: 8,
      description:
        'Connections from clients to the proxy. From benchwatch_proxy_client_connections, proxysql_client_connections_connected or haproxy_frontend_current_sessions.',
      queries: [
        agent(`max by (target) (benchwatch_proxy_client_connections{${servers}})`, '{{target}}'),
        exporter('max by (instance) (proxysql_client_connections_connected)', '{{instance}}'),
        exporter('max by (instance, proxy) (haproxy_frontend_current_sessions)', '{{instance}} {{proxy}}'),
      ],
    }),
    graph({
      title: 'Connections to backends',
      unit: unit.count,
      decimals: 0,
      noData: noProxy,
      span: 8,
      description:
        'Connections from the proxy to each backend; they stay pooled after clients have left. From benchwatch_proxy_backend_connections, proxysql_connpool_conns or haproxy_server_current_sessions.',
      queries: [
        agent(`max by (target, backend) (benchwatch_proxy_backend_connections{${servers}})`, '{{target}} {{backend}}'),
        exporter('sum by (instance, endpoint) (proxysql_connpool_conns)', '{{instance}} {{endpoint}}'),
        exporter('max by (instance, server) (haproxy_server_current_sessions)', '{{instance}} {{server}}'),
      ],
    }),
    graph({
      title: 'Memory of the proxy',
      unit: unit.bytes,
      noData: noAtlas,
      span: 8,
      description: 'Resident memory of the proxy. From benchwatch_proxy_resident_bytes.',
      queries: [agent(`max by (target) (benchwatch_proxy_resident_bytes{${servers}})`, '{{target}}')],
    }),
    row('The servers behind it'),
    server.queries(8, 'engine!="atlas"'),
    server.threads(8, 'engine!="atlas"'),
    host.cpu(8),
    graph({
      title: 'Queries that the proxy counted',
      unit: unit.perSecond,
      noData: 'Atlas and HAProxy do not count queries; no ProxySQL is scraped',
      span: 8,
      description: 'Queries a second by backend, where the proxy counts them. From proxysql_connpool_conns_queries_total.',
      queries: [exporter('sum by (instance, endpoint) (rate(proxysql_connpool_conns_queries_total[$__rate_interval]))', '{{instance}} {{endpoint}}')],
    }),
    graph({
      title: 'Ping to backends',
      unit: 'µs',
      noData: 'No ProxySQL is scraped',
      span: 8,
      description: "How long a backend takes to answer ProxySQL's ping. From proxysql_connpool_conns_latency_us.",
      queries: [exporter('max by (instance, endpoint) (proxysql_connpool_conns_latency_us)', '{{instance}} {{endpoint}}')],
    }),
    graph({
      title: 'Traffic of HAProxy',
      unit: unit.bytesPerSecond,
      noData: 'No HAProxy is scraped, or it lacks `option contstats`',
      span: 8,
      description:
        'Bytes a second through HAProxy; in TCP mode they stay zero while sessions live unless `option contstats` is set. From haproxy_backend_bytes_in_total and haproxy_backend_bytes_out_total.',
      queries: [
        exporter('sum by (instance, proxy) (rate(haproxy_backend_bytes_in_total[$__rate_interval]))', '{{instance}} {{proxy}} in'),
        exporter('sum by (instance, proxy) (rate(haproxy_backend_bytes_out_total[$__rate_interval]))', '{{instance}} {{proxy}} out'),
      ],
      overrides: [{ series: / out$/, set: [set.dashed(), set.noFill()] }],
    }),
  ],
};
