// TiDB, TiKV and PD, from the components' metrics (jobs tidb, tikv and pd).

import type { Page } from './frame';
import { live, meanInRange, ofRunClusters, over } from './metrics';
import { closedRow, graph, row, stat, unit } from './panel';
import * as host from './panels/host';
import * as run from './panels/run';
import { exporter, now } from './query';
import { limits } from './threshold';

const noTidb = 'No TiDB server of the selected run is scraped (job tidb, status port 10080, label cluster)';
const noTikv = 'No TiKV server of the selected run is scraped (job tikv, port 20180, label cluster), or the store is embedded';
const noPd = 'No PD server of the selected run is scraped (job pd, port 2379, label cluster), or the store is embedded';
const i = '$__rate_interval';

/** Rate of a component's counter, of the clusters of the selected runs. */
const rate = (selector: string, range = i): string => ofRunClusters(`rate(${selector}[${range}])`);

/** A tile: over 20 s now, or over a finished run. */
const tile = (expr: (range: string) => string) => [now(live(expr('20s')), 'now'), now(over(meanInRange(expr('20s'))), 'mean of the run')];

/** A quantile of a histogram. The first bucket of TiDB's statement histogram is 0.5 ms. */
const quantile = (q: number, histogram: string, matchers: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (le${by && `, ${by}`}) (${rate(`${histogram}_bucket{${matchers}}`)}))`;
const mean = (histogram: string, matchers: string, by: string): string =>
  `sum by (${by}) (${rate(`${histogram}_sum{${matchers}}`)}) / (sum by (${by}) (${rate(`${histogram}_count{${matchers}}`)}) > 0)`;

export const tidb: Page = {
  name: 'tidb',
  title: 'Benchmark: TiDB',
  description: "TiDB servers, TiKV stores and PD, from the components' metrics, because SHOW GLOBAL STATUS of TiDB contains no load.",
  variables: ['run'],
  content: [
    stat({
      title: 'Queries',
      description:
        'Statements per second from clients, now or on average over a finished run: text and prepared statements, without PREPARE commands. From tidb_server_query_total.',
      unit: unit.perSecond,
      noData: 'No TiDB',
      span: 4,
      queries: tile((range) => `sum(${rate('tidb_server_query_total{type=~"Query|StmtExecute"}', range)})`),
    }),
    stat({
      title: 'Commits',
      description:
        'COMMIT statements per second, now or on average over a finished run, without autocommit statements. From tidb_executor_statement_total.',
      unit: unit.perSecond,
      noData: 'No TiDB',
      span: 4,
      queries: tile((range) => `sum(${rate('tidb_executor_statement_total{type="Commit"}', range)})`),
    }),
    stat({
      title: 'Mean time',
      description:
        'Mean time of client statements in the TiDB server over 20 s or over a finished run, including PREPARE. The mean is exact. A percentile under 0.5 ms is not, because the first bucket of the histogram is 0.5 ms. From tidb_server_handle_query_duration_seconds.',
      unit: unit.seconds,
      noData: 'No TiDB',
      span: 4,
      queries: tile(
        (range) =>
          `sum(${rate('tidb_server_handle_query_duration_seconds_sum{sql_type!="internal"}', range)}) / (sum(${rate('tidb_server_handle_query_duration_seconds_count{sql_type!="internal"}', range)}) > 0)`,
      ),
    }),
    stat({
      title: 'Conflicts',
      description:
        'Write conflicts (9007) and deadlocks (1213) relative to commits over 20 s or over a finished run. Zero is good. TiDBConflicts fires over 1 %. The series exist only after the first error. From tidb_server_execute_error_total.',
      unit: unit.share,
      decimals: 1,
      noData: 'No commits',
      span: 4,
      limits: limits.conflicts,
      filled: true,
      queries: tile(
        (range) =>
          `(sum(${rate('tidb_server_execute_error_total{type=~"kv:9007|executor:1213"}', range)}) or vector(0)) / (sum(${rate('tidb_executor_statement_total{type="Commit"}', range)}) > 0)`,
      ),
    }),
    stat({
      title: 'TiDB CPU',
      description:
        'CPU utilization of the busiest TiDB server over 20 s or over a finished run, as a share of its cores. TiDBCPUSaturated fires from 90 %. From process_cpu_seconds_total and tidb_server_maxprocs.',
      unit: unit.share,
      decimals: 0,
      noData: 'No TiDB',
      span: 4,
      limits: limits.cpu,
      filled: true,
      queries: tile((range) => `max(${rate('process_cpu_seconds_total{job="tidb"}', range)} / on (instance) tidb_server_maxprocs)`),
    }),
    stat({
      title: 'TiKV CPU',
      description:
        'CPU utilization of the busiest TiKV store over 20 s or over a finished run, as a share of its cores. TiKVCPUSaturated fires from 90 %. From process_cpu_seconds_total and tikv_server_cpu_cores_quota.',
      unit: unit.share,
      decimals: 0,
      noData: 'No TiKV',
      span: 4,
      limits: limits.cpu,
      filled: true,
      queries: tile((range) => `max(${rate('process_cpu_seconds_total{job="tikv"}', range)} / on (instance) tikv_server_cpu_cores_quota)`),
    }),
    row('TiDB: load and latency'),
    run.throughputOverTime(8, 9),
    graph({
      title: 'Statements by kind',
      unit: unit.perSecond,
      noData: noTidb,
      span: 8,
      description: 'Statements per second by kind, all TiDB servers. From tidb_executor_statement_total.',
      queries: [exporter(`topk(12, sum by (type) (${rate('tidb_executor_statement_total')}) > 0)`, '{{type}}')],
    }),
    graph({
      title: 'Protocol commands',
      unit: unit.perSecond,
      noData: noTidb,
      span: 8,
      description:
        'Protocol commands per second. Prepared statements are StmtExecute, text statements Query. Many StmtPrepare mean that clients prepare statements for each execution. From tidb_server_query_total.',
      queries: [exporter(`topk(12, sum by (type, result) (${rate('tidb_server_query_total')}) > 0)`, '{{type}} {{result}}')],
    }),
    graph({
      title: 'Statement latency',
      unit: unit.seconds,
      noData: noTidb,
      span: 8,
      description:
        'p99, p95 and mean time of client statements in the TiDB servers. Low and constant is good. A percentile below 0.5 ms means only "under 0.5 ms". From tidb_server_handle_query_duration_seconds.',
      queries: [
        exporter(quantile(0.99, 'tidb_server_handle_query_duration_seconds', 'sql_type!="internal"'), 'p99'),
        exporter(quantile(0.95, 'tidb_server_handle_query_duration_seconds', 'sql_type!="internal"'), 'p95'),
        exporter(
          `sum(${rate('tidb_server_handle_query_duration_seconds_sum{sql_type!="internal"}')}) / (sum(${rate('tidb_server_handle_query_duration_seconds_count{sql_type!="internal"}')}) > 0)`,
          'mean',
        ),
      ],
    }),
    graph({
      title: 'Mean latency by kind',
      unit: unit.seconds,
      noData: noTidb,
      span: 8,
      description: 'Mean time of statements by kind. "general" includes PREPARE. From tidb_server_handle_query_duration_seconds.',
      queries: [exporter(mean('tidb_server_handle_query_duration_seconds', 'sql_type!="internal"', 'sql_type'), '{{sql_type}}')],
    }),
    graph({
      title: 'Transaction latency',
      unit: unit.seconds,
      noData: noTidb,
      span: 8,
      description:
        'p99 of whole transactions by their end (commit, rollback), without prepared autocommit reads. From tidb_session_transaction_duration_seconds.',
      queries: [exporter(quantile(0.99, 'tidb_session_transaction_duration_seconds', 'scope="general"', 'type'), '{{type}} p99')],
    }),
    graph({
      title: 'Connections and executing statements',
      unit: unit.count,
      noData: noTidb,
      span: 8,
      description:
        'Client connections and executing statements, by TiDB server. Equal values are good. Different values mean that the clients are not distributed evenly. From tidb_server_connections and tidb_server_tokens.',
      queries: [
        exporter(`sum by (instance) (${ofRunClusters('tidb_server_connections')})`, '{{instance}} connected'),
        exporter(`sum by (instance) (${ofRunClusters('tidb_server_tokens')})`, '{{instance}} executing'),
      ],
    }),
    graph({
      title: 'Parse, compile, execute',
      unit: unit.count,
      noData: noTidb,
      span: 8,
      description:
        'Statements in each stage, on average (seconds spent per second). If parse and compile are high, use prepared statements. From tidb_session_parse_duration_seconds and related metrics.',
      queries: [
        exporter(`sum(${rate('tidb_session_parse_duration_seconds_sum{sql_type="general"}')})`, 'parse'),
        exporter(`sum(${rate('tidb_session_compile_duration_seconds_sum{sql_type="general"}')})`, 'compile'),
        exporter(`sum(${rate('tidb_session_execute_duration_seconds_sum{sql_type="general"}')})`, 'execute'),
      ],
    }),
    graph({
      title: 'Plan cache hits',
      unit: unit.share,
      max: 1,
      noData: 'No prepared statements, or no TiDB is scraped',
      span: 8,
      description:
        'Share of executed prepared statements with a plan in the cache. Near 100 % is good. From tidb_server_plan_cache_total and tidb_server_plan_cache_miss_total.',
      queries: [
        exporter(
          `sum(${rate('tidb_server_plan_cache_total')}) / ((sum(${rate('tidb_server_plan_cache_total')}) + sum(${rate('tidb_server_plan_cache_miss_total')})) > 0)`,
          'hits',
        ),
      ],
    }),
    closedRow(
      'TiDB: conflicts and cost',
      graph({
        title: 'Errors by code',
        unit: unit.perSecond,
        noData: 'No TiDB server is scraped, or no statement has failed',
        span: 8,
        description:
          'Failed statements per second by error. Zero is good. kv:9007 is a write conflict, executor:1213 a deadlock. TiDBConflicts fires over 1 % of the commits. From tidb_server_execute_error_total.',
        queries: [exporter(`topk(12, sum by (type) (${rate('tidb_server_execute_error_total')}) > 0)`, '{{type}}')],
      }),
      graph({
        title: 'Backoff by kind',
        unit: unit.count,
        noData: 'No TiDB server is scraped, or no request was retried',
        span: 8,
        description:
          'Statements waiting to retry a request to TiKV, on average (seconds waited per second). Near zero is good. txnLock is a conflict, regionMiss a moved region, tikvServerBusy a stalled store. TiDBBackoff fires over 25 % of the statement time. From tidb_tikvclient_backoff_seconds.',
        queries: [exporter(`topk(12, sum by (type) (${rate('tidb_tikvclient_backoff_seconds_sum')}) > 0)`, '{{type}}')],
      }),
      graph({
        title: 'Pessimistic retries',
        unit: unit.perSecond,
        noData: noTidb,
        span: 8,
        description:
          'Statements per second that were retried because of a conflict in a pessimistic transaction. Near zero is good. From tidb_session_statement_pessimistic_retry_count.',
        queries: [exporter(`sum by (instance) (${rate('tidb_session_statement_pessimistic_retry_count_sum')})`, '{{instance}}')],
      }),
      graph({
        title: 'TiDB CPU',
        unit: unit.cores,
        noData: noTidb,
        span: 8,
        description: 'Cores that each TiDB server uses, and their limit. From process_cpu_seconds_total and tidb_server_maxprocs.',
        queries: [
          exporter(rate('process_cpu_seconds_total{job="tidb"}'), '{{instance}}'),
          exporter(`max by (instance) (${ofRunClusters('tidb_server_maxprocs')})`, '{{instance}} limit'),
        ],
      }),
      graph({
        title: 'TiDB memory',
        unit: unit.bytes,
        noData: noTidb,
        span: 8,
        description: 'Resident memory of each TiDB server. From process_resident_memory_bytes.',
        queries: [exporter(`max by (instance) (${ofRunClusters('process_resident_memory_bytes{job="tidb"}')})`, '{{instance}}')],
      }),
      graph({
        title: 'Timestamps from PD',
        unit: unit.seconds,
        noData: noPd,
        span: 8,
        description:
          'p99 of the wait for a timestamp, and the mean time in PD. Each transaction waits for one or two timestamps. From pd_client_cmd_handle_cmds_duration_seconds and pd_server_handle_tso_duration_seconds.',
        queries: [
          exporter(quantile(0.99, 'pd_client_cmd_handle_cmds_duration_seconds', 'type="wait"'), 'wait p99'),
          exporter(
            `sum(${rate('pd_server_handle_tso_duration_seconds_sum')}) / (sum(${rate('pd_server_handle_tso_duration_seconds_count')}) > 0)`,
            'in PD, mean',
          ),
        ],
      }),
    ),
    closedRow(
      'TiKV and PD',
      graph({
        title: 'TiKV CPU',
        unit: unit.share,
        max: 1,
        noData: noTikv,
        span: 8,
        limits: limits.cpu,
        description:
          'CPU utilization of each store, as a share of its cores. Equal values are good. A store with a higher value is a hot spot. TiKVCPUSaturated fires from 90 %. From process_cpu_seconds_total and tikv_server_cpu_cores_quota.',
        queries: [exporter(`${rate('process_cpu_seconds_total{job="tikv"}')} / on (instance) tikv_server_cpu_cores_quota`, '{{instance}}')],
      }),
      graph({
        title: 'TiKV CPU by thread pool',
        unit: unit.cores,
        noData: noTikv,
        span: 8,
        description: 'Cores that each thread pool uses, all stores. From tikv_thread_cpu_seconds_total.',
        queries: [
          exporter(`sum(${rate('tikv_thread_cpu_seconds_total{name=~"raftstore_.*"}')})`, 'raftstore'),
          exporter(`sum(${rate('tikv_thread_cpu_seconds_total{name=~"apply_[0-9]+"}')})`, 'apply'),
          exporter(`sum(${rate('tikv_thread_cpu_seconds_total{name=~"sched_.*"}')})`, 'scheduler'),
          exporter(`sum(${rate('tikv_thread_cpu_seconds_total{name=~"unified_read_po.*"}')})`, 'reads'),
          exporter(`sum(${rate('tikv_thread_cpu_seconds_total{name=~"grpc.*"}')})`, 'gRPC'),
          exporter(`sum(${rate('tikv_thread_cpu_seconds_total{name=~"store_writer.*"}')})`, 'store writer'),
        ],
      }),
      graph({
        title: 'TiKV request time',
        unit: unit.seconds,
        noData: noTikv,
        span: 8,
        description: 'Mean time of requests in TiKV, by kind. From tikv_grpc_msg_duration_seconds.',
        queries: [exporter(`topk(12, ${mean('tikv_grpc_msg_duration_seconds', '', 'type')})`, '{{type}}')],
      }),
      graph({
        title: 'Raft write path',
        unit: unit.seconds,
        noData: noTikv,
        span: 8,
        description:
          'Mean time to append, commit and apply a log entry. Append depends on the disk, commit on the network to the followers, apply on the storage engine. From tikv_raftstore_append_log_duration_seconds and related metrics.',
        queries: [
          exporter(
            `sum(${rate('tikv_raftstore_append_log_duration_seconds_sum')}) / (sum(${rate('tikv_raftstore_append_log_duration_seconds_count')}) > 0)`,
            'append',
          ),
          exporter(
            `sum(${rate('tikv_raftstore_commit_log_duration_seconds_sum')}) / (sum(${rate('tikv_raftstore_commit_log_duration_seconds_count')}) > 0)`,
            'commit',
          ),
          exporter(
            `sum(${rate('tikv_raftstore_apply_log_duration_seconds_sum')}) / (sum(${rate('tikv_raftstore_apply_log_duration_seconds_count')}) > 0)`,
            'apply',
          ),
        ],
      }),
      graph({
        title: 'Scheduler too busy',
        unit: unit.perSecond,
        noData: noTikv,
        span: 8,
        description:
          'Writes per second that each store rejected because it was too busy. Zero is good. TiDBWriteStall fires on any rejection. From tikv_scheduler_too_busy_total.',
        queries: [exporter(`sum by (instance) (${rate('tikv_scheduler_too_busy_total')})`, '{{instance}}')],
      }),
      graph({
        title: 'Block cache hits',
        unit: unit.share,
        max: 1,
        noData: noTikv,
        span: 8,
        description: 'Share of block reads served from the block cache. Near 100 % is good. From tikv_engine_cache_efficiency.',
        queries: [
          exporter(
            `sum by (instance) (${rate('tikv_engine_cache_efficiency{db="kv", type="block_cache_hit"}')}) / (sum by (instance) (${rate('tikv_engine_cache_efficiency{db="kv", type=~"block_cache_(hit|miss)"}')}) > 0)`,
            '{{instance}}',
          ),
        ],
      }),
      graph({
        title: 'Leaders by store',
        unit: unit.count,
        noData: noTikv,
        span: 8,
        description: 'Number of leader regions by store, which serve reads and writes. Equal numbers are good. From tikv_raftstore_region_count.',
        queries: [exporter(`max by (instance) (${ofRunClusters('tikv_raftstore_region_count{type="leader"}')})`, '{{instance}}')],
      }),
      graph({
        title: 'Hot regions',
        unit: unit.count,
        noData: noPd,
        span: 8,
        description:
          'Hot leader regions by store, according to PD. If all are on one store, the load is not distributed, for example because of ascending keys. From pd_hotspot_status.',
        queries: [
          exporter(
            `max by (address, type) (${ofRunClusters('pd_hotspot_status{type=~"hot_(read|write)_region_as_leader"}')})`,
            '{{address}} {{type}}',
          ),
        ],
      }),
      graph({
        title: 'Unhealthy regions',
        unit: unit.count,
        noData: noPd,
        span: 8,
        description:
          'Regions with a missing peer or a peer that is down. Zero is good. TiDB has no replication lag: this is the corresponding value. From pd_regions_status.',
        queries: [
          exporter(`max by (type) (${ofRunClusters('pd_regions_status{type=~"miss-peer-region-count|down-peer-region-count"}')})`, '{{type}}'),
        ],
      }),
    ),
    row('Hosts'),
    host.cpu(12),
    host.disk(12),
  ],
};
