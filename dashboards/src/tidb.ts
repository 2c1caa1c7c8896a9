// TiDB, TiKV and PD, from their own metrics (jobs tidb, tikv and pd).

import type { Page } from './frame';
import { graph, row, stat, unit } from './panel';
import * as host from './panels/host';
import * as run from './panels/run';
import { exporter, now } from './query';
import { limits } from './threshold';

const noTidb = 'No TiDB server is scraped (job tidb, status port 10080)';
const noTikv = 'No TiKV server is scraped (job tikv, port 20180); an embedded store has none';
const noPd = 'No PD server is scraped (job pd, port 2379); an embedded store has none';
const i = '$__rate_interval';

/** Percentiles of a histogram; TiDB's first bucket of statements is 0.5 ms. */
const quantile = (q: number, histogram: string, matchers: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (le${by && `, ${by}`}) (rate(${histogram}_bucket{${matchers}}[${i}])))`;
const mean = (histogram: string, matchers: string, by: string): string =>
  `sum by (${by}) (rate(${histogram}_sum{${matchers}}[${i}])) / (sum by (${by}) (rate(${histogram}_count{${matchers}}[${i}])) > 0)`;

export const tidb: Page = {
  name: 'tidb',
  title: 'Benchmark: TiDB',
  description:
    "TiDB servers, TiKV stores and PD. SHOW GLOBAL STATUS of TiDB knows nothing of load, so all numbers are from the components' own metrics.",
  variables: ['run'],
  content: [
    stat({
      title: 'Queries',
      description: 'Statements a second as clients see them: text and prepared ones, without the preparing. From tidb_server_query_total.',
      unit: unit.perSecond,
      noData: 'No TiDB',
      span: 4,
      queries: [now('sum(rate(tidb_server_query_total{type=~"Query|StmtExecute"}[20s]))', 'queries')],
    }),
    stat({
      title: 'Commits',
      description: 'COMMIT statements a second. Autocommit statements are not in it. From tidb_executor_statement_total.',
      unit: unit.perSecond,
      noData: 'No TiDB',
      span: 4,
      queries: [now('sum(rate(tidb_executor_statement_total{type="Commit"}[20s]))', 'commits')],
    }),
    stat({
      title: 'Mean statement',
      description:
        "Mean time of clients' statements in the TiDB server, preparing included. Percentiles below 0.5 ms would be invented, for that is the histogram's first bucket; the mean is exact. From tidb_server_handle_query_duration_seconds.",
      unit: unit.seconds,
      noData: 'No TiDB',
      span: 4,
      queries: [
        now(
          'sum(rate(tidb_server_handle_query_duration_seconds_sum{sql_type!="internal"}[20s])) / (sum(rate(tidb_server_handle_query_duration_seconds_count{sql_type!="internal"}[20s])) > 0)',
          'mean',
        ),
      ],
    }),
    stat({
      title: 'Conflicts',
      description:
        'Write conflicts (9007) and deadlocks (1213) as a share of commits (20 s). Over 1 % TiDBConflicts fires. From tidb_server_execute_error_total; the rows exist only after the first error.',
      unit: unit.share,
      decimals: 1,
      noData: 'No commits',
      span: 4,
      limits: limits.conflicts,
      filled: true,
      queries: [
        now(
          '(sum(rate(tidb_server_execute_error_total{type=~"kv:9007|executor:1213"}[20s])) or vector(0)) / (sum(rate(tidb_executor_statement_total{type="Commit"}[20s])) > 0)',
          'conflicts',
        ),
      ],
    }),
    stat({
      title: 'TiDB CPU',
      description:
        'Share of its cores that the busiest TiDB server uses. From 90 % on TiDBCPUSaturated fires. From process_cpu_seconds_total and tidb_server_maxprocs.',
      unit: unit.share,
      decimals: 0,
      noData: 'No TiDB',
      span: 4,
      limits: limits.cpu,
      filled: true,
      queries: [now('max(rate(process_cpu_seconds_total{job="tidb"}[20s]) / on (instance) tidb_server_maxprocs)', 'TiDB')],
    }),
    stat({
      title: 'TiKV CPU',
      description:
        'Share of its cores that the busiest TiKV store uses. From 90 % on TiKVCPUSaturated fires. From process_cpu_seconds_total and tikv_server_cpu_cores_quota.',
      unit: unit.share,
      decimals: 0,
      noData: 'No TiKV',
      span: 4,
      limits: limits.cpu,
      filled: true,
      queries: [now('max(rate(process_cpu_seconds_total{job="tikv"}[20s]) / on (instance) tikv_server_cpu_cores_quota)', 'TiKV')],
    }),
    row('TiDB: what clients see'),
    run.throughputByOperation(8, 8),
    graph({
      title: 'Statements by kind',
      unit: unit.perSecond,
      noData: noTidb,
      span: 8,
      description: 'Statements a second by kind, all TiDB servers. From tidb_executor_statement_total.',
      queries: [exporter(`topk(12, sum by (type) (rate(tidb_executor_statement_total[${i}])) > 0)`, '{{type}}')],
    }),
    graph({
      title: 'Commands of the protocol',
      unit: unit.perSecond,
      noData: noTidb,
      span: 8,
      description:
        'Commands a second: prepared statements are StmtExecute, text ones Query. Many StmtPrepare mean that statements are prepared each time. From tidb_server_query_total.',
      queries: [exporter(`topk(12, sum by (type, result) (rate(tidb_server_query_total[${i}])) > 0)`, '{{type}} {{result}}')],
    }),
    graph({
      title: 'Statement latency',
      unit: unit.seconds,
      noData: noTidb,
      span: 8,
      description:
        'p99, p95 and mean time of clients\' statements in the TiDB servers. A percentile below 0.5 ms only means "under 0.5 ms". From tidb_server_handle_query_duration_seconds.',
      queries: [
        exporter(quantile(0.99, 'tidb_server_handle_query_duration_seconds', 'sql_type!="internal"'), 'p99'),
        exporter(quantile(0.95, 'tidb_server_handle_query_duration_seconds', 'sql_type!="internal"'), 'p95'),
        exporter(
          `sum(rate(tidb_server_handle_query_duration_seconds_sum{sql_type!="internal"}[${i}])) / (sum(rate(tidb_server_handle_query_duration_seconds_count{sql_type!="internal"}[${i}])) > 0)`,
          'mean',
        ),
      ],
    }),
    graph({
      title: 'Mean latency by kind',
      unit: unit.seconds,
      noData: noTidb,
      span: 8,
      description: 'Mean time of statements by kind; "general" holds the preparing. From tidb_server_handle_query_duration_seconds.',
      queries: [exporter(mean('tidb_server_handle_query_duration_seconds', 'sql_type!="internal"', 'sql_type'), '{{sql_type}}')],
    }),
    graph({
      title: 'Transaction latency',
      unit: unit.seconds,
      noData: noTidb,
      span: 8,
      description:
        'p99 of whole transactions, by how they ended. Prepared autocommit reads are not in it. From tidb_session_transaction_duration_seconds.',
      queries: [exporter(quantile(0.99, 'tidb_session_transaction_duration_seconds', 'scope="general"', 'type'), '{{type}} p99')],
    }),
    graph({
      title: 'Connections and statements in work',
      unit: unit.count,
      decimals: 0,
      noData: noTidb,
      span: 8,
      description:
        'Client connections and statements in work, by TiDB server. Uneven: clients are not spread. From tidb_server_connections and tidb_server_tokens.',
      queries: [
        exporter('sum by (instance) (tidb_server_connections)', '{{instance}} connected'),
        exporter('sum by (instance) (tidb_server_tokens)', '{{instance}} in work'),
      ],
    }),
    graph({
      title: 'Parse, compile, execute',
      unit: unit.count,
      decimals: 2,
      noData: noTidb,
      span: 8,
      description:
        'Statements in each stage, on average (seconds spent a second). Much parsing and compiling: use prepared statements. From tidb_session_parse_duration_seconds and its sisters.',
      queries: [
        exporter(`sum(rate(tidb_session_parse_duration_seconds_sum{sql_type="general"}[${i}]))`, 'parse'),
        exporter(`sum(rate(tidb_session_compile_duration_seconds_sum{sql_type="general"}[${i}]))`, 'compile'),
        exporter(`sum(rate(tidb_session_execute_duration_seconds_sum{sql_type="general"}[${i}]))`, 'execute'),
      ],
    }),
    graph({
      title: 'Plan cache hits',
      unit: unit.share,
      decimals: 0,
      max: 1,
      noData: 'No prepared statements, or no TiDB is scraped',
      span: 8,
      description:
        'Share of executed prepared statements whose plan was in the cache. Near 100 % is good. From tidb_server_plan_cache_total and tidb_server_plan_cache_miss_total.',
      queries: [
        exporter(
          `sum(rate(tidb_server_plan_cache_total[${i}])) / ((sum(rate(tidb_server_plan_cache_total[${i}])) + sum(rate(tidb_server_plan_cache_miss_total[${i}]))) > 0)`,
          'hits',
        ),
      ],
    }),
    row('TiDB: conflicts and cost'),
    graph({
      title: 'Errors by code',
      unit: unit.perSecond,
      noData: 'No statement has failed',
      span: 8,
      description:
        'Failed statements a second by error: kv:9007 is a write conflict, executor:1213 a deadlock. From tidb_server_execute_error_total.',
      queries: [exporter(`topk(12, sum by (type) (rate(tidb_server_execute_error_total[${i}])) > 0)`, '{{type}}')],
    }),
    graph({
      title: 'Backoff by kind',
      unit: unit.count,
      decimals: 2,
      noData: 'No request had to be repeated',
      span: 8,
      description:
        'Statements that wait before a request to TiKV is tried again, on average (seconds waited a second). txnLock is a conflict, regionMiss a moved region, tikvServerBusy a stalled store. From tidb_tikvclient_backoff_seconds.',
      queries: [exporter(`topk(12, sum by (type) (rate(tidb_tikvclient_backoff_seconds_sum[${i}])) > 0)`, '{{type}}')],
    }),
    graph({
      title: 'Pessimistic retries',
      unit: unit.perSecond,
      noData: noTidb,
      span: 8,
      description:
        'Statements a second that were repeated because of a conflict inside a pessimistic transaction. From tidb_session_statement_pessimistic_retry_count.',
      queries: [exporter(`sum by (instance) (rate(tidb_session_statement_pessimistic_retry_count_sum[${i}]))`, '{{instance}}')],
    }),
    graph({
      title: 'TiDB CPU',
      unit: unit.cores,
      decimals: 1,
      noData: noTidb,
      span: 8,
      description: 'Cores that each TiDB server uses, and may use. From process_cpu_seconds_total and tidb_server_maxprocs.',
      queries: [
        exporter(`rate(process_cpu_seconds_total{job="tidb"}[${i}])`, '{{instance}}'),
        exporter('max by (instance) (tidb_server_maxprocs)', '{{instance}} limit'),
      ],
    }),
    graph({
      title: 'TiDB memory',
      unit: unit.bytes,
      noData: noTidb,
      span: 8,
      description: 'Resident memory of each TiDB server. From process_resident_memory_bytes.',
      queries: [exporter('max by (instance) (process_resident_memory_bytes{job="tidb"})', '{{instance}}')],
    }),
    graph({
      title: 'Time stamps from PD',
      unit: unit.seconds,
      noData: noPd,
      span: 8,
      description:
        'p99 of the wait for a time stamp, which each transaction needs once or twice, and the mean in PD itself. From pd_client_cmd_handle_cmds_duration_seconds and pd_server_handle_tso_duration_seconds.',
      queries: [
        exporter(quantile(0.99, 'pd_client_cmd_handle_cmds_duration_seconds', 'type="wait"'), 'wait p99'),
        exporter(
          `sum(rate(pd_server_handle_tso_duration_seconds_sum[${i}])) / (sum(rate(pd_server_handle_tso_duration_seconds_count[${i}])) > 0)`,
          'in PD, mean',
        ),
      ],
    }),
    row('TiKV and PD'),
    graph({
      title: 'TiKV CPU',
      unit: unit.share,
      decimals: 0,
      max: 1,
      noData: noTikv,
      span: 8,
      limits: limits.cpu,
      description:
        'Share of its cores that each store uses. One above the others is a hot spot. From process_cpu_seconds_total and tikv_server_cpu_cores_quota.',
      queries: [exporter(`rate(process_cpu_seconds_total{job="tikv"}[${i}]) / on (instance) tikv_server_cpu_cores_quota`, '{{instance}}')],
    }),
    graph({
      title: 'TiKV CPU by thread pool',
      unit: unit.cores,
      decimals: 1,
      noData: noTikv,
      span: 8,
      description: 'Cores used by each pool, all stores. From tikv_thread_cpu_seconds_total (names are cut at 15 characters).',
      queries: [
        exporter(`sum(rate(tikv_thread_cpu_seconds_total{name=~"raftstore_.*"}[${i}]))`, 'raftstore'),
        exporter(`sum(rate(tikv_thread_cpu_seconds_total{name=~"apply_[0-9]+"}[${i}]))`, 'apply'),
        exporter(`sum(rate(tikv_thread_cpu_seconds_total{name=~"sched_.*"}[${i}]))`, 'scheduler'),
        exporter(`sum(rate(tikv_thread_cpu_seconds_total{name=~"unified_read_po.*"}[${i}]))`, 'reads'),
        exporter(`sum(rate(tikv_thread_cpu_seconds_total{name=~"grpc.*"}[${i}]))`, 'gRPC'),
        exporter(`sum(rate(tikv_thread_cpu_seconds_total{name=~"store_writer.*"}[${i}]))`, 'store writer'),
      ],
    }),
    graph({
      title: 'Requests to TiKV',
      unit: unit.seconds,
      noData: noTikv,
      span: 8,
      description: 'Mean time of requests that TiKV answered, by kind. From tikv_grpc_msg_duration_seconds.',
      queries: [exporter(`topk(12, ${mean('tikv_grpc_msg_duration_seconds', '', 'type')})`, '{{type}}')],
    }),
    graph({
      title: 'Raft write path',
      unit: unit.seconds,
      noData: noTikv,
      span: 8,
      description:
        'Mean time to append, commit and apply a log entry: the disk, the network to the followers, and the storage engine. From tikv_raftstore_append_log_duration_seconds and its sisters.',
      queries: [
        exporter(
          `sum(rate(tikv_raftstore_append_log_duration_seconds_sum[${i}])) / (sum(rate(tikv_raftstore_append_log_duration_seconds_count[${i}])) > 0)`,
          'append',
        ),
        exporter(
          `sum(rate(tikv_raftstore_commit_log_duration_seconds_sum[${i}])) / (sum(rate(tikv_raftstore_commit_log_duration_seconds_count[${i}])) > 0)`,
          'commit',
        ),
        exporter(
          `sum(rate(tikv_raftstore_apply_log_duration_seconds_sum[${i}])) / (sum(rate(tikv_raftstore_apply_log_duration_seconds_count[${i}])) > 0)`,
          'apply',
        ),
      ],
    }),
    graph({
      title: 'Scheduler',
      unit: unit.perSecond,
      noData: noTikv,
      span: 8,
      description: 'Writes a second that a store refused as too busy. Zero is good; else TiDBWriteStall fires. From tikv_scheduler_too_busy_total.',
      queries: [exporter(`sum by (instance) (rate(tikv_scheduler_too_busy_total[${i}]))`, '{{instance}}')],
    }),
    graph({
      title: 'Block cache hits',
      unit: unit.share,
      decimals: 1,
      max: 1,
      noData: noTikv,
      span: 8,
      description: 'Share of block reads that the cache answered. From tikv_engine_cache_efficiency.',
      queries: [
        exporter(
          `sum by (instance) (rate(tikv_engine_cache_efficiency{db="kv", type="block_cache_hit"}[${i}])) / (sum by (instance) (rate(tikv_engine_cache_efficiency{db="kv", type=~"block_cache_(hit|miss)"}[${i}])) > 0)`,
          '{{instance}}',
        ),
      ],
    }),
    graph({
      title: 'Leaders by store',
      unit: unit.count,
      decimals: 0,
      noData: noTikv,
      span: 8,
      description: 'Regions that each store leads: reads and writes go there. Equal is good. From tikv_raftstore_region_count.',
      queries: [exporter('max by (instance) (tikv_raftstore_region_count{type="leader"})', '{{instance}}')],
    }),
    graph({
      title: 'Hot regions',
      unit: unit.count,
      decimals: 0,
      noData: noPd,
      span: 8,
      description:
        'Hot regions that each store leads, as PD sees them. All on one store: the load does not spread (ascending keys). From pd_hotspot_status.',
      queries: [exporter('max by (address, type) (pd_hotspot_status{type=~"hot_(read|write)_region_as_leader"})', '{{address}} {{type}}')],
    }),
    graph({
      title: 'Regions in trouble',
      unit: unit.count,
      decimals: 0,
      noData: noPd,
      span: 8,
      description: 'Regions with a missing or a down peer. Zero is good; this is what TiDB has instead of replication lag. From pd_regions_status.',
      queries: [exporter('max by (type) (pd_regions_status{type=~"miss-peer-region-count|down-peer-region-count"})', '{{type}}')],
    }),
    row('Hosts'),
    host.cpu(12),
    host.disk(12),
  ],
};
