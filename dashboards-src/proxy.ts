// Proxy: the cost of a connection through a proxy, what its queue and its threads did, and a
// comparison of two otherwise identical runs.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { fromRuns, type Page } from './frame';
import { live, ofRunClusters, over, server, serverGauge, serverRate, serverRateOver } from './metrics';
import { graph, row, set, stat, states, timeline, unit } from './panel';
import { overElapsed } from './panels/elapsed';
import * as host from './panels/host';
import * as panels from './panels/server';
import { agent, now, type Query, exporter as series } from './query';
import { limits } from './threshold';

const choose = 'Choose two finished runs';
const noProxy = 'No proxy of the selected run is sampled, and neither ProxySQL nor HAProxy is scraped';
const noProcess = "No proxy of the selected run is sampled, or it does not run on the agent's host";
const noQueue = 'No proxy of the selected run is sampled, or its kind does not report it';

/** Series of ProxySQL or HAProxy, of the clusters of the selected runs. */
const exporter = (by: string, expr: string, legend: string, f = 'max'): Query => series(`${f} by (${by}) (${ofRunClusters(expr)})`, legend);

/** Share of a core that each thread of a proxy uses. */
const threadLoad = serverRateOver('15s', 'benchwatch_proxy_thread_cpu_seconds_total', '', 'thread');

/** Nothing unless the two runs differ: the selector matches a run that is both. */
const differ = (expr: string): string => `(${expr}) unless on () benchwatch_run_start_timestamp_seconds{run="$direct", run="$proxied"}`;
const ofBoth = (expr: string): string =>
  `(${expr}) and on (run) ${differ('max by (run) (benchwatch_run_start_timestamp_seconds{run=~"$direct|$proxied"})')}`;

const of = (metric: string, run: string): string => `max(${metric.replace('}', `, run="$${run}"}`)})`;
const summaryRate = 'benchwatch_run_summary_operations_per_second{op="transaction"}';
const mean = 'benchwatch_run_summary_latency_seconds{op="transaction", stat="avg"}';
const headline = (run: string): string => `max by (op, stat) (run:benchwatch_run_summary_latency_seconds:headline{run="$${run}"})`;

export const proxy: Page = {
  name: 'proxy',
  title: 'Benchmark: proxy',
  description: "Comparison of a direct run with a run through a proxy: throughput, latency, the proxy's CPU, and the load on its backends.",
  variables: ['cluster', 'target', 'run'],
  extraVariables: [
    fromRuns('direct', 'Direct', 'The run with a direct connection to the server; initially the newest with the label via=direct.', {
      preferred: 'via="direct"',
    }),
    fromRuns('proxied', 'Through the proxy', 'The run through the proxy, otherwise identical; initially the newest with another label via.', {
      preferred: 'via!~"direct|"',
    }),
  ],
  from: 'now-1h',
  content: [
    stat({
      title: 'Relative throughput',
      unit: unit.share,
      decimals: 0,
      noData: choose,
      span: 6,
      description:
        "Throughput through the proxy as a share of the direct throughput, from the tools' summaries. Near 100 % is good. With read/write splitting it compares several servers with one. From benchwatch_run_summary_operations_per_second.",
      queries: [now(differ(`${of(summaryRate, 'proxied')} / ${of(summaryRate, 'direct')}`), 'of direct')],
    }),
    stat({
      title: 'Added latency',
      unit: unit.seconds,
      noData: choose,
      span: 6,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      description:
        'Difference of the transaction latency through the proxy and direct: mean, and p95 (or the percentile that the tool prints). Near zero is good. Each statement passes the proxy once: divide by the statements per transaction. From benchwatch_run_summary_latency_seconds.',
      queries: [
        now(differ(`${of(mean, 'proxied')} - ${of(mean, 'direct')}`), 'mean'),
        now(differ(`${headline('proxied')} - on (op, stat) ${headline('direct')}`), '{{op}} {{stat}}'),
      ],
    }),
    stat({
      title: 'Throughput',
      unit: unit.transactions,
      noData: choose,
      span: 6,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      description: "Mean throughput of both runs, from the tools' summaries. From benchwatch_run_summary_operations_per_second.",
      queries: [now(differ(of(summaryRate, 'direct')), 'direct'), now(differ(of(summaryRate, 'proxied')), 'proxy')],
    }),
    stat({
      title: 'Busiest proxy thread',
      unit: unit.share,
      decimals: 0,
      noData: 'No proxy',
      span: 6,
      limits: limits.cpu,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      description:
        'Share of a core that the busiest thread of the proxy uses, over 15 s; of a run that is over, the highest. A client uses only one thread, so the busiest thread is the bottleneck. ProxyCPUBound fires over 90 %. From benchwatch_proxy_thread_cpu_seconds_total.',
      queries: [
        now(live(`topk(1, ${threadLoad})`), `${server} thread {{thread}} now`),
        now(over(`topk(1, max_over_time((${threadLoad})[$__range:$__interval]))`), `${server} thread {{thread}} highest`),
      ],
    }),
    row('Comparison over elapsed time'),
    overElapsed(
      'Throughput, direct and through the proxy',
      unit.transactions,
      'max by (run) (benchwatch_run_operations_per_second{op="transaction", run=~"$direct|$proxied"})',
      'Transactions per second of both runs over the time since their start. The time range must contain both runs. From benchwatch_run_operations_per_second.',
      ofBoth,
    ),
    overElapsed(
      'Latency, direct and through the proxy',
      unit.seconds,
      'max by (run) (run:benchwatch_run_latency_seconds:headline{run=~"$direct|$proxied"})',
      'p95 (or the percentile that the tool prints) of both runs over the time since their start. Lower is better. From run:benchwatch_run_latency_seconds:headline.',
      ofBoth,
    ),
    row('Proxy'),
    graph({
      title: 'Proxy CPU',
      unit: unit.cores,
      noData: noProcess,
      span: 8,
      description: 'Cores that the proxy uses, user and system. From benchwatch_proxy_cpu_seconds_total.',
      queries: [agent(serverRate('benchwatch_proxy_cpu_seconds_total', '', 'mode'), `${server} {{mode}}`)],
    }),
    graph({
      title: 'Proxy CPU by thread',
      unit: unit.share,
      max: 1,
      noData: noProcess,
      span: 8,
      limits: limits.cpu,
      description:
        'Share of a core that each of the twelve busiest threads uses. A thread at 100 % is the bottleneck, even if the others are idle. ProxyCPUBound fires over 90 %. From benchwatch_proxy_thread_cpu_seconds_total.',
      queries: [agent(`topk(12, ${serverRate('benchwatch_proxy_thread_cpu_seconds_total', '', 'thread')})`, `${server} thread {{thread}}`)],
    }),
    graph({
      title: 'Proxy memory',
      unit: unit.bytes,
      noData: noProcess,
      span: 8,
      description: 'Resident memory of the proxy. From benchwatch_proxy_resident_bytes.',
      queries: [agent(serverGauge('benchwatch_proxy_resident_bytes'), server)],
    }),
    graph({
      title: 'Queue of the proxy',
      unit: unit.count,
      noData: noQueue,
      span: 12,
      description:
        'Clients that wait in the proxy for a connection to a server. Zero is good: a client that waits is in no server. ProxyQueueGrowing fires from one client on. From benchwatch_proxy_queue_length.',
      queries: [agent(serverGauge('benchwatch_proxy_queue_length', '', 'backend_role'), `${server} {{backend_role}}`)],
    }),
    graph({
      title: 'Connections to servers and their limit',
      unit: unit.count,
      noData: noQueue,
      span: 12,
      description:
        'Connections in use to the servers of each group, and how many the proxy allows (dashed). Clients wait while the limit is reached. From benchwatch_proxy_backend_connections and benchwatch_proxy_pool_limit.',
      queries: [
        agent(serverGauge('benchwatch_proxy_backend_connections', '', 'backend'), `${server} {{backend}}`),
        agent(serverGauge('benchwatch_proxy_pool_limit', '', 'backend_role'), `${server} {{backend_role}} limit`),
      ],
      overrides: [{ series: / limit$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Sessions by server',
      unit: unit.perSecond,
      noData: noQueue,
      span: 8,
      description:
        'Sessions, transactions or queries per second that each server gets, as the proxy counts its work. Unequal lines are an unequal distribution. From benchwatch_proxy_backend_sessions_total.',
      queries: [
        agent(serverRate('benchwatch_proxy_backend_sessions_total', '', 'backend', 'backend_role'), `${server} {{backend}} {{backend_role}}`),
      ],
    }),
    graph({
      title: 'Errors and retries',
      unit: unit.perSecond,
      noData: noQueue,
      span: 8,
      description:
        'Errors with servers by kind, and connections that were tried again, per second. ProxyRetries fires for retries. From benchwatch_proxy_backend_errors_total and benchwatch_proxy_backend_retries_total.',
      queries: [
        agent(serverRate('benchwatch_proxy_backend_errors_total', '', 'backend', 'kind'), `${server} {{backend}} {{kind}}`),
        agent(serverRate('benchwatch_proxy_backend_retries_total', '', 'backend'), `${server} {{backend}} retries`),
      ],
    }),
    graph({
      title: 'Connecting to servers',
      unit: unit.seconds,
      noData: 'No sampled proxy measures it (HAProxy and ProxySQL do)',
      span: 8,
      description:
        'Mean time that the proxy needs to connect to each server: mostly the network between them. From benchwatch_proxy_backend_connect_seconds.',
      queries: [agent(serverGauge('benchwatch_proxy_backend_connect_seconds', '', 'backend'), `${server} {{backend}}`)],
    }),
    timeline({
      title: 'Backends',
      unit: unit.none,
      noData: 'No proxy',
      span: 24,
      height: 7,
      description:
        'Whether the proxy uses each of its backends. ProxyBackendDown fires for an unused one. A proxy without traffic may not detect a failed backend. From benchwatch_proxy_backend_up, haproxy_server_status or proxysql_connpool_conns_status.',
      queries: [
        agent(serverGauge('benchwatch_proxy_backend_up', '', 'backend', 'backend_role'), `${server} {{backend}} {{backend_role}}`),
        exporter('instance, server', 'haproxy_server_status{state="UP"}', '{{instance}} {{server}}', 'min'),
        exporter('instance, endpoint, hostgroup', 'proxysql_connpool_conns_status == bool 1', '{{instance}} {{endpoint}} group {{hostgroup}}', 'min'),
      ],
      mappings: states({ '0': { text: 'not used', color: 'red' }, '1': { text: 'used', color: 'green' } }),
    }),
    graph({
      title: 'Client connections',
      unit: unit.count,
      noData: noProxy,
      span: 12,
      description:
        'Connections from clients to the proxy. From benchwatch_proxy_client_connections, proxysql_client_connections_connected or haproxy_frontend_current_sessions.',
      queries: [
        agent(serverGauge('benchwatch_proxy_client_connections'), server),
        exporter('instance', 'proxysql_client_connections_connected', '{{instance}}'),
        exporter('instance, proxy', 'haproxy_frontend_current_sessions', '{{instance}} {{proxy}}'),
      ],
    }),
    graph({
      title: 'Backend connections',
      unit: unit.count,
      noData: noProxy,
      span: 12,
      description:
        'Connections from the proxy to each backend. They stay in the pool after clients disconnect. From benchwatch_proxy_backend_connections, proxysql_connpool_conns or haproxy_server_current_sessions.',
      queries: [
        agent(serverGauge('benchwatch_proxy_backend_connections', '', 'backend'), `${server} {{backend}}`),
        exporter('instance, endpoint', 'proxysql_connpool_conns', '{{instance}} {{endpoint}}', 'sum'),
        exporter('instance, server', 'haproxy_server_current_sessions', '{{instance}} {{server}}'),
      ],
    }),
    row('Servers behind the proxy'),
    panels.queries(8, 'role!="proxy"'),
    panels.threads(8, 'role!="proxy"'),
    host.cpu(8),
    graph({
      title: 'Queries by backend (ProxySQL)',
      unit: unit.perSecond,
      noData: 'No ProxySQL is scraped, and Atlas and HAProxy do not count queries',
      span: 8,
      description: 'Queries per second by backend. Only ProxySQL counts them. From proxysql_connpool_conns_queries_total.',
      queries: [exporter('instance, endpoint', 'rate(proxysql_connpool_conns_queries_total[$__rate_interval])', '{{instance}} {{endpoint}}', 'sum')],
    }),
    graph({
      title: 'Backend ping time',
      unit: 'µs',
      noData: 'No ProxySQL is scraped',
      span: 8,
      description: 'Time until each backend answers the ping of ProxySQL. From proxysql_connpool_conns_latency_us.',
      queries: [exporter('instance, endpoint', 'proxysql_connpool_conns_latency_us', '{{instance}} {{endpoint}}')],
    }),
    graph({
      title: 'HAProxy traffic',
      unit: unit.bytesPerSecond,
      noData: 'No HAProxy is scraped, or it lacks `option contstats`',
      span: 8,
      description:
        'Bytes per second through HAProxy, in (solid) and out (dashed). In TCP mode HAProxy counts them at the end of a session unless `option contstats` is set. From haproxy_backend_bytes_in_total and haproxy_backend_bytes_out_total.',
      queries: [
        exporter('instance, proxy', 'rate(haproxy_backend_bytes_in_total[$__rate_interval])', '{{instance}} {{proxy}} in', 'sum'),
        exporter('instance, proxy', 'rate(haproxy_backend_bytes_out_total[$__rate_interval])', '{{instance}} {{proxy}} out', 'sum'),
      ],
      overrides: [{ series: / out$/, set: [set.dashed(), set.noFill()] }],
    }),
  ],
};
