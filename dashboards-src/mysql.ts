// MySQL and MariaDB servers, standalone or as members of a cluster. From the
// agent's samples or, without an agent, from mysqld_exporter.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { either, exporterGauge, exporterRate } from './exporters';
import type { Page } from './frame';
import { commitRate, live, meanInRange, over, perServer, server, serverGauge, serverRate, serverRateOver, servers, worst } from './metrics';
import { closedRow, type Graph, graph, row, set, stat, unit } from './panel';
import * as host from './panels/host';
import * as panels from './panels/server';
import { agent, exporter, now } from './query';
import { limits } from './threshold';

const noData = 'No MySQL or MariaDB server of the selected run is sampled, and no mysqld_exporter is scraped';
const none = 'Not sampled';
/** The engine of all MySQL servers, including Galera, Aurora and TiDB. */
const kind = 'engine="mysql"';

const writers = `${kind}, role!~"replica|secondary"`;
const meanOfRun = (counter: string, matchers: string): string => meanInRange(serverRateOver('5s', counter, matchers));
const connectionsInUse = perServer(`benchwatch_db_connections{${servers}, ${kind}} / benchwatch_db_connections_limit{${servers}, ${kind}}`);
const lockWaits = perServer(
  `rate(benchwatch_db_lock_wait_seconds_total{${servers}, ${kind}}[15s]) / avg_over_time(benchwatch_db_threads_running{${servers}, ${kind}}[15s])`,
);
const bufferPoolHits = perServer(
  `1 - rate(benchwatch_mysql_innodb_buffer_pool_reads_total{${servers}, ${kind}}[15s]) / (rate(benchwatch_mysql_innodb_buffer_pool_read_requests_total{${servers}, ${kind}}[15s]) > 0)`,
);
const rate = serverRate;

const counters = (
  o: Omit<Graph, 'unit' | 'noData' | 'queries'> & { noData?: string },
  ofAgent: string,
  ofExporter: string,
  of: string = unit.perSecond,
): ReturnType<typeof graph> => graph({ noData, ...o, unit: of, queries: either(rate(ofAgent), exporterRate(ofExporter)) });

export const mysql: Page = {
  name: 'mysql',
  title: 'Benchmark: MySQL and MariaDB',
  description: 'Load, locks, transactions and InnoDB of each MySQL or MariaDB server.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Queries',
      description:
        "Statements per second from clients, all selected servers, now or on average over a finished run (Questions, which include the agent's samples but not replicated statements). From benchwatch_db_queries_total.",
      unit: unit.perSecond,
      noData: none,
      span: 4,
      queries: [
        now(live(`sum(${serverRateOver('5s', 'benchwatch_db_queries_total', kind)})`), 'now'),
        now(over(`sum(${meanOfRun('benchwatch_db_queries_total', kind)})`), 'mean of the run'),
      ],
    }),
    stat({
      title: 'Commits',
      description:
        'Transactions committed per second on all selected servers except replicas, by COMMIT or autocommit, now or on average over a finished run. From benchwatch_galera_local_commits_total, or benchwatch_db_commits_total and benchwatch_db_autocommits_total.',
      unit: unit.perSecond,
      noData: none,
      span: 4,
      queries: [
        now(live(`sum(${commitRate(writers, '5s')})`), 'now'),
        now(over(`sum(${meanInRange(commitRate(writers, '5s'))})`), 'mean of the run'),
      ],
    }),
    stat({
      title: 'Running',
      description:
        'Clients executing a statement on the busiest server (mean of 5 s; at most in a finished run), including the agent. From benchwatch_db_threads_running.',
      unit: unit.digits,
      decimals: 0,
      noData: none,
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`topk(1, ${perServer(`avg_over_time(benchwatch_db_threads_running{${servers}, ${kind}}[5s])`)})`), `${server} now`),
        now(worst('db_threads_running:max', kind), `${server} most`),
      ],
    }),
    stat({
      title: 'Connections',
      description:
        'Connections in use as a share of max_connections, on the server with the highest share, now or at most in a finished run. DatabaseConnectionsNearLimit fires over 90 %. From benchwatch_db_connections and benchwatch_db_connections_limit.',
      unit: unit.share,
      decimals: 0,
      noData: none,
      span: 4,
      limits: limits.connections,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [now(live(`topk(1, ${connectionsInUse})`), `${server} now`), now(worst('db_connections:ratio', kind), `${server} most`)],
    }),
    stat({
      title: 'Lock waits',
      description:
        'Clients waiting for a row lock as a share of running threads over 15 s or over a finished run, on the worst server. Near zero is good. DatabaseLockWaits fires over 25 %. From benchwatch_db_lock_wait_seconds_total.',
      unit: unit.share,
      decimals: 0,
      noData: none,
      span: 4,
      limits: limits.lockWaits,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [now(live(`topk(1, ${lockWaits})`), `${server} now`), now(over(`topk(1, ${meanInRange(lockWaits)})`), `${server} mean of the run`)],
    }),
    stat({
      title: 'Cache hits',
      description:
        'Share of page reads served from the buffer pool over 15 s or over a finished run, on the worst server. Near 100 % means that the data fit into memory, so the benchmark tests CPU and locks, not the disk. From benchwatch_mysql_innodb_buffer_pool_reads_total.',
      unit: unit.share,
      decimals: 2,
      noData: none,
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`bottomk(1, ${bufferPoolHits})`), `${server} now`),
        now(over(`bottomk(1, ${meanInRange(bufferPoolHits)})`), `${server} mean of the run`),
      ],
    }),
    row('Load'),
    panels.sessions(24, kind),
    graph({
      title: 'Queries by server',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Statements per second that clients sent to each server (Questions). From benchwatch_db_queries_total or mysql_global_status_questions.',
      queries: either(rate('benchwatch_db_queries_total', kind), exporterRate('mysql_global_status_questions')),
    }),
    panels.operations(8, kind),
    panels.commits(8, kind),
    panels.threads(8, kind),
    graph({
      title: 'Connections in use',
      unit: unit.share,
      max: 1,
      noData,
      span: 8,
      limits: limits.connections,
      description:
        'Connections in use as a share of max_connections, by server. DatabaseConnectionsNearLimit fires over 90 %. From benchwatch_db_connections and its limit, or mysql_global_status_threads_connected and mysql_global_variables_max_connections.',
      queries: either(connectionsInUse, exporterGauge('mysql_global_status_threads_connected / mysql_global_variables_max_connections')),
    }),
    panels.bytes(8, kind),
    row('Locks and transactions'),
    panels.lockWaits(8, kind),
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
        noData: 'These servers do not count deadlocks',
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
      queries: [agent(`sum by (op) (${serverRate('benchwatch_mysql_handler_operations_total', '', 'op')}) > 0`, '{{op}}')],
    }),
    graph({
      title: 'History list',
      unit: unit.count,
      noData: 'These servers do not report the length of the history list',
      span: 8,
      description:
        'Undo log entries that are not purged yet. Growth during a run means that purge does not keep up, which slows down later reads. From benchwatch_mysql_innodb_history_list_length or mysql_global_status_innodb_history_list_length.',
      queries: either(serverGauge('benchwatch_mysql_innodb_history_list_length'), exporterGauge('mysql_global_status_innodb_history_list_length')),
    }),
    graph({
      title: 'Prepared statements',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Prepared statement commands per second. Zero means that the benchmark does not use prepared statements. From benchwatch_mysql_prepared_statement_commands_total.',
      queries: [agent(`sum by (command) (${serverRate('benchwatch_mysql_prepared_statement_commands_total', '', 'command')}) > 0`, '{{command}}')],
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
      max: 1,
      noData,
      span: 8,
      description:
        'Share of buffer pool pages that are not flushed yet. A rise to the limit (innodb_max_dirty_pages_pct, default 90 %) means that flushing is too slow. From benchwatch_mysql_innodb_buffer_pool_pages.',
      queries: [
        agent(
          perServer(
            `benchwatch_mysql_innodb_buffer_pool_pages{${servers}, state="dirty"} / ignoring (state) benchwatch_mysql_innodb_buffer_pool_pages{${servers}, state="total"}`,
          ),
          server,
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
      queries: either(serverGauge('benchwatch_mysql_innodb_checkpoint_age_bytes'), exporterGauge('mysql_global_status_innodb_checkpoint_age')),
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
      queries: [agent(serverRate('benchwatch_mysql_innodb_data_bytes_total', '', 'op'), `${server} {{op}}`)],
    }),
    graph({
      title: 'Stalls',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Waits per second for a free page and for space in the log buffer. Zero is good. Any wait delays writers. From benchwatch_mysql_innodb_buffer_pool_wait_free_total and benchwatch_mysql_innodb_log_waits_total.',
      queries: [
        agent(rate('benchwatch_mysql_innodb_buffer_pool_wait_free_total'), `${server} free page`),
        agent(rate('benchwatch_mysql_innodb_log_waits_total'), `${server} log buffer`),
      ],
    }),
    row('Commits and disk'),
    graph({
      title: 'Flushes to disk',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'fsyncs per second of the redo log (solid) and of all InnoDB files (dashed). With innodb_flush_log_at_trx_commit=1 each group of commits waits for a flush of the redo log. From benchwatch_mysql_innodb_log_fsyncs_total and benchwatch_mysql_innodb_data_operations_total.',
      queries: [
        agent(rate('benchwatch_mysql_innodb_log_fsyncs_total'), `${server} redo log`),
        agent(rate('benchwatch_mysql_innodb_data_operations_total', 'op=~"fsyncs?"'), `${server} all files`),
      ],
      overrides: [{ series: /.* all files$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Commits per group',
      unit: unit.count,
      noData: 'No MariaDB server with a binary log is sampled, or nothing is committed',
      span: 8,
      description:
        'Transactions per group commit to the binary log, on average. Each group needs one flush. A larger group means that more commits share it: it grows with the number of clients. From benchwatch_mysql_binlog_commits_total and benchwatch_mysql_binlog_group_commits_total (MariaDB).',
      queries: [
        agent(
          `${rate('benchwatch_mysql_binlog_commits_total')} / on (cluster, target) (${rate('benchwatch_mysql_binlog_group_commits_total')} > 0)`,
          server,
        ),
      ],
    }),
    graph({
      title: 'InnoDB reads and writes',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Reads (solid) and writes (dashed) per second of InnoDB, all files. Zero reads mean that the data fit into memory. From benchwatch_mysql_innodb_data_operations_total.',
      queries: [agent(serverRate('benchwatch_mysql_innodb_data_operations_total', 'op!~"fsyncs?"', 'op'), `${server} {{op}}`)],
      overrides: [{ series: /.* writes?$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Pending I/O',
      unit: unit.count,
      noData: 'No mysqld_exporter is scraped, or its target has another cluster than the run',
      span: 8,
      description:
        'Reads, writes and fsyncs of InnoDB that wait for the disk at the time of the scrape. Near zero is good. From mysql_global_status_innodb_data_pending_reads, mysql_global_status_innodb_data_pending_writes and mysql_global_status_innodb_data_pending_fsyncs.',
      queries: ['reads', 'writes', 'fsyncs'].map((what) =>
        exporter(exporterGauge(`mysql_global_status_innodb_data_pending_${what}`), `{{instance}} ${what}`),
      ),
    }),
    graph({
      title: 'Rows',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Rows per second that were read, sent to clients, inserted, updated and deleted, all selected servers. Many rows read per row sent mean that an index is missing. From benchwatch_mysql_rows_total (MariaDB) or benchwatch_mysql_innodb_rows_total.',
      queries: [
        agent(`sum by (op) (${serverRate('benchwatch_mysql_rows_total', '', 'op')})`, '{{op}}'),
        agent(`sum by (op) (${serverRate('benchwatch_mysql_innodb_rows_total', '', 'op')})`, 'InnoDB {{op}}'),
      ],
    }),
    graph({
      title: 'New and failed connections',
      unit: unit.events,
      noData,
      span: 8,
      description:
        'Attempts to connect (solid), and failed ones or ones that max_connections refused (dashed), per second. Many attempts mean that the tool reconnects for each transaction. From benchwatch_mysql_connection_attempts_total, benchwatch_mysql_aborted_connects_total and benchwatch_mysql_connection_errors_max_connections_total.',
      queries: [
        agent(rate('benchwatch_mysql_connection_attempts_total'), server),
        agent(rate('benchwatch_mysql_aborted_connects_total'), `${server} failed`),
        agent(rate('benchwatch_mysql_connection_errors_max_connections_total'), `${server} refused`),
      ],
      overrides: [{ series: /.* (failed|refused)$/, set: [set.dashed(), set.noFill()] }],
    }),
    row('Other'),
    graph({
      title: 'Temporary tables',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Internal temporary tables created per second, in total (solid) and on disk (dashed). No tables on disk is good. From benchwatch_mysql_temporary_tables_total.',
      queries: [agent(serverRate('benchwatch_mysql_temporary_tables_total', '', 'where'), `${server} {{where}}`)],
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
    closedRow('Hosts in detail', ...host.all(8)),
  ],
};
