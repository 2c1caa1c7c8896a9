// MySQL and MariaDB servers, standalone or as members of a cluster. From the
// agent's samples or, without an agent, from mysqld_exporter.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { serverRate, servers } from './metrics';
import { type Graph, graph, row, set, stat, unit } from './panel';
import * as host from './panels/host';
import * as server from './panels/server';
import { agent, exporter, now, type Query } from './query';
import { limits } from './threshold';

const noData = 'No MySQL or MariaDB server is sampled, and no mysqld_exporter is scraped';
const none = 'Not sampled';
/** The engine of all MySQL servers, including Galera, Aurora and TiDB. */
const kind = 'engine="mysql"';

/** The agent's series, or the exporter's if there is no agent. */
function either(ofAgent: string, ofExporter: string, legend = ''): Query[] {
  const suffix = legend && ` ${legend}`;
  return [agent(ofAgent, `{{target}}${suffix}`), exporter(`(${ofExporter}) unless on () benchwatch_db_up`, `{{instance}}${suffix}`)];
}

const rate = (name: string, matchers = ''): string => `sum by (target) (${serverRate(name, matchers)})`;
const exporterRate = (name: string): string => `sum by (instance) (rate(${name}[$__rate_interval]))`;

const counters = (
  o: Omit<Graph, 'unit' | 'noData' | 'queries'>,
  ofAgent: string,
  ofExporter: string,
  of: string = unit.perSecond,
): ReturnType<typeof graph> => graph({ ...o, unit: of, noData, queries: either(rate(ofAgent), exporterRate(ofExporter)) });

export const mysql: Page = {
  name: 'mysql',
  title: 'Benchmark: MySQL and MariaDB',
  description: 'Load, locks, transactions and InnoDB of each MySQL or MariaDB server.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Queries',
      description:
        "Statements per second from clients, all selected servers (Questions, which include the agent's samples but not replicated statements). From benchwatch_db_queries_total.",
      unit: unit.perSecond,
      noData: none,
      span: 4,
      queries: [now(`sum(rate(benchwatch_db_queries_total{${servers}, ${kind}}[5s]))`, 'queries')],
    }),
    stat({
      title: 'Commits',
      description:
        'COMMIT statements per second on all selected servers except replicas, without autocommit statements. From benchwatch_db_commits_total.',
      unit: unit.perSecond,
      noData: none,
      span: 4,
      queries: [now(`sum(rate(benchwatch_db_commits_total{${servers}, ${kind}, role!~"replica|secondary"}[5s]))`, 'commits')],
    }),
    stat({
      title: 'Threads running',
      description: 'Clients executing a statement on the busiest server (mean of 5 s), including the agent. From benchwatch_db_threads_running.',
      unit: unit.digits,
      decimals: 0,
      noData: none,
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [now(`topk(1, max by (target) (avg_over_time(benchwatch_db_threads_running{${servers}, ${kind}}[5s])))`, '{{target}}')],
    }),
    stat({
      title: 'Connections in use',
      description:
        'Connections in use as a share of max_connections, on the server with the highest share. DatabaseConnectionsNearLimit fires over 90 %. From benchwatch_db_connections and benchwatch_db_connections_limit.',
      unit: unit.share,
      decimals: 0,
      noData: none,
      span: 4,
      limits: limits.connections,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(
          `topk(1, max by (target) (benchwatch_db_connections{${servers}, ${kind}} / benchwatch_db_connections_limit{${servers}, ${kind}}))`,
          '{{target}}',
        ),
      ],
    }),
    stat({
      title: 'Waiting for row locks',
      description:
        'Clients waiting for a row lock as a share of running threads over 15 s, on the worst server. Near zero is good. DatabaseLockWaits fires over 25 %. From benchwatch_db_lock_wait_seconds_total.',
      unit: unit.share,
      decimals: 0,
      noData: none,
      span: 4,
      limits: limits.lockWaits,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(
          `topk(1, max by (target) (rate(benchwatch_db_lock_wait_seconds_total{${servers}, ${kind}}[15s]) / avg_over_time(benchwatch_db_threads_running{${servers}, ${kind}}[15s])))`,
          '{{target}}',
        ),
      ],
    }),
    stat({
      title: 'Buffer pool hits',
      description:
        'Share of page reads served from the buffer pool, on the worst server. Near 100 % means that the data fit into memory, so the benchmark tests CPU and locks, not the disk. From benchwatch_mysql_innodb_buffer_pool_reads_total.',
      unit: unit.share,
      decimals: 2,
      noData: none,
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(
          `bottomk(1, max by (target) (1 - rate(benchwatch_mysql_innodb_buffer_pool_reads_total{${servers}, ${kind}}[15s]) / (rate(benchwatch_mysql_innodb_buffer_pool_read_requests_total{${servers}, ${kind}}[15s]) > 0)))`,
          '{{target}}',
        ),
      ],
    }),
    row('Load'),
    graph({
      title: 'Queries by server',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Statements per second that clients sent to each server (Questions). From benchwatch_db_queries_total or mysql_global_status_questions.',
      queries: either(rate('benchwatch_db_queries_total', kind), exporterRate('mysql_global_status_questions')),
    }),
    server.operations(8, kind),
    server.commits(8, kind),
    server.threads(8, kind),
    graph({
      title: 'Connections in use',
      unit: unit.share,
      decimals: 0,
      max: 1,
      noData,
      span: 8,
      limits: limits.connections,
      description:
        'Connections in use as a share of max_connections, by server. DatabaseConnectionsNearLimit fires over 90 %. From benchwatch_db_connections and its limit, or mysql_global_status_threads_connected and mysql_global_variables_max_connections.',
      queries: either(
        `max by (target) (benchwatch_db_connections{${servers}, ${kind}} / benchwatch_db_connections_limit{${servers}, ${kind}})`,
        'max by (instance) (mysql_global_status_threads_connected / mysql_global_variables_max_connections)',
      ),
    }),
    server.bytes(8, kind),
    row('Locks and transactions'),
    server.lockWaits(8, kind),
    counters(
      {
        title: 'Row lock waits',
        span: 8,
        description:
          'Started row lock waits per second. Near zero is good. From benchwatch_mysql_innodb_row_lock_waits_total or mysql_global_status_innodb_row_lock_waits.',
      },
      'benchwatch_mysql_innodb_row_lock_waits_total',
      'mysql_global_status_innodb_row_lock_waits',
    ),
    counters(
      {
        title: 'Deadlocks',
        span: 8,
        description:
          'Deadlocks per second. Zero is good. Only MariaDB and Percona Server count them. From benchwatch_mysql_innodb_deadlocks_total or mysql_global_status_innodb_deadlocks.',
      },
      'benchwatch_mysql_innodb_deadlocks_total',
      'mysql_global_status_innodb_deadlocks',
    ),
    graph({
      title: 'Storage engine calls',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Handler calls to the storage engines per second, all selected servers. One transaction causes a commit call for each participating engine. From benchwatch_mysql_handler_operations_total.',
      queries: [agent(`sum by (op) (${serverRate('benchwatch_mysql_handler_operations_total')})`, '{{op}}')],
    }),
    graph({
      title: 'History list',
      unit: unit.count,
      decimals: 0,
      noData: 'These servers do not report the length of the history list',
      span: 8,
      description:
        'Undo log entries that are not purged yet. Growth during a run means that purge does not keep up, which slows down later reads. From benchwatch_mysql_innodb_history_list_length or mysql_global_status_innodb_history_list_length.',
      queries: either(
        `max by (target) (benchwatch_mysql_innodb_history_list_length{${servers}})`,
        'max by (instance) (mysql_global_status_innodb_history_list_length)',
      ),
    }),
    graph({
      title: 'Prepared statements',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Prepared statement commands per second. Zero means that the benchmark does not use prepared statements. From benchwatch_mysql_prepared_statement_commands_total.',
      queries: [agent(`sum by (command) (${serverRate('benchwatch_mysql_prepared_statement_commands_total')})`, '{{command}}')],
    }),
    row('InnoDB'),
    graph({
      title: 'Buffer pool misses',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Page reads per second from disk. Zero means that the data fit into memory. From benchwatch_mysql_innodb_buffer_pool_reads_total or mysql_global_status_innodb_buffer_pool_reads.',
      queries: either(rate('benchwatch_mysql_innodb_buffer_pool_reads_total'), exporterRate('mysql_global_status_innodb_buffer_pool_reads')),
    }),
    graph({
      title: 'Dirty pages',
      unit: unit.share,
      decimals: 0,
      max: 1,
      noData,
      span: 8,
      description:
        'Share of buffer pool pages that are not flushed yet. A rise to the limit (innodb_max_dirty_pages_pct, default 90 %) means that flushing is too slow. From benchwatch_mysql_innodb_buffer_pool_pages.',
      queries: [
        agent(
          `max by (target) (benchwatch_mysql_innodb_buffer_pool_pages{${servers}, state="dirty"} / ignoring (state) benchwatch_mysql_innodb_buffer_pool_pages{${servers}, state="total"})`,
          '{{target}}',
        ),
      ],
    }),
    graph({
      title: 'Redo log not checkpointed',
      unit: unit.bytes,
      noData: 'These servers do not report the checkpoint age',
      span: 8,
      description:
        'Redo log written since the last checkpoint. Near the size of the redo log writers wait for flushing, which shows as a sawtooth in write benchmarks. From benchwatch_mysql_innodb_checkpoint_age_bytes or mysql_global_status_innodb_checkpoint_age.',
      queries: either(
        `max by (target) (benchwatch_mysql_innodb_checkpoint_age_bytes{${servers}})`,
        'max by (instance) (mysql_global_status_innodb_checkpoint_age)',
      ),
    }),
    counters(
      {
        title: 'Redo log written',
        span: 8,
        description:
          'Bytes of redo log written per second. From benchwatch_mysql_innodb_log_written_bytes_total or mysql_global_status_innodb_os_log_written.',
      },
      'benchwatch_mysql_innodb_log_written_bytes_total',
      'mysql_global_status_innodb_os_log_written',
      unit.bytesPerSecond,
    ),
    graph({
      title: 'InnoDB file I/O',
      unit: unit.bytesPerSecond,
      noData,
      span: 8,
      description: 'Bytes per second that InnoDB read and wrote, all files. From benchwatch_mysql_innodb_data_bytes_total.',
      queries: [agent(`sum by (target, op) (${serverRate('benchwatch_mysql_innodb_data_bytes_total')})`, '{{target}} {{op}}')],
    }),
    graph({
      title: 'Stalls',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Waits per second for a free page and for space in the log buffer. Zero is good. Any wait delays writers. From benchwatch_mysql_innodb_buffer_pool_wait_free_total and benchwatch_mysql_innodb_log_waits_total.',
      queries: [
        agent(rate('benchwatch_mysql_innodb_buffer_pool_wait_free_total'), '{{target}} free page'),
        agent(rate('benchwatch_mysql_innodb_log_waits_total'), '{{target}} log buffer'),
      ],
    }),
    row('Other'),
    graph({
      title: 'Temporary tables',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Internal temporary tables created per second, in total (solid) and on disk (dashed). No tables on disk is good. From benchwatch_mysql_temporary_tables_total.',
      queries: [agent(`sum by (target, where) (${serverRate('benchwatch_mysql_temporary_tables_total')})`, '{{target}} {{where}}')],
      overrides: [{ series: /.* disk$/, set: [set.dashed(), set.noFill()] }],
    }),
    counters(
      {
        title: 'Slow queries',
        span: 8,
        description:
          'Statements per second that took longer than long_query_time. Near zero is good. From benchwatch_mysql_slow_queries_total or mysql_global_status_slow_queries.',
      },
      'benchwatch_mysql_slow_queries_total',
      'mysql_global_status_slow_queries',
    ),
    graph({
      title: 'Table cache misses',
      unit: unit.perSecond,
      noData: 'No mysqld_exporter is scraped',
      span: 8,
      description:
        'Table cache misses per second. Zero is good after the warmup; otherwise raise table_open_cache. From mysql_global_status_table_open_cache_misses.',
      queries: [exporter(exporterRate('mysql_global_status_table_open_cache_misses'), '{{instance}}')],
    }),
    row('Hosts'),
    host.cpu(12),
    host.disk(12),
  ],
};
