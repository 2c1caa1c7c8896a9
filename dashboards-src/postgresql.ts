// PostgreSQL: load, WAL, checkpoints, buffers, vacuum and standbys. From the agent's samples or, for the load, from
// postgres_exporter.

import { either, exporterSum } from './exporters';
import type { Page } from './frame';
import {
  alternatives,
  live,
  meanInRange,
  ofRunClusters,
  over,
  perServer,
  server,
  serverGauge,
  serverRate,
  serverRateOver,
  servers,
  withoutAgent,
} from './metrics';
import { closedRow, graph, row, stat, unit } from './panel';
import * as host from './panels/host';
import * as panel from './panels/postgresql';
import { gauge, rate, sum } from './panels/postgresql';
import * as panels from './panels/server';
import { agent, exporter, now } from './query';

const noData = 'No PostgreSQL server of the selected run is sampled, and no postgres_exporter is scraped';
const noStandby = 'No standby or subscriber is connected to a sampled server';
const noTiming = 'track_io_timing is off on the servers, or none is sampled';
const of = 'engine="postgresql"';

const syncs = rate('wal_syncs');

export const postgresql: Page = {
  name: 'postgresql',
  title: 'Benchmark: PostgreSQL',
  description: 'Load, write-ahead log, checkpoints, buffers, vacuum and standbys of PostgreSQL servers.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Commits',
      description:
        'Transactions committed per second, all selected servers, now or on average over a finished run. A session adds its commits to the counter about once a second. From benchwatch_db_commits_total.',
      unit: unit.perSecond,
      noData: 'Not sampled',
      span: 6,
      queries: [
        now(live(`sum(${serverRateOver('5s', 'benchwatch_db_commits_total', of)})`), 'now'),
        now(over(`sum(${meanInRange(serverRateOver('5s', 'benchwatch_db_commits_total', of))})`), 'mean of the run'),
      ],
    }),
    stat({
      title: 'WAL rate',
      description:
        'Bytes of write-ahead log per second, all selected servers, now or on average over a finished run. From benchwatch_postgresql_wal_bytes_total.',
      unit: unit.bytesPerSecond,
      noData: 'Not sampled',
      span: 6,
      queries: [
        now(live(`sum(${serverRateOver('5s', 'benchwatch_postgresql_wal_bytes_total')})`), 'now'),
        now(over(`sum(${meanInRange(serverRateOver('5s', 'benchwatch_postgresql_wal_bytes_total'))})`), 'mean of the run'),
      ],
    }),
    stat({
      title: 'Idle in transaction',
      description:
        'Sessions that are idle in a transaction, all selected servers, now. They keep locks and snapshots. From benchwatch_postgresql_sessions.',
      unit: unit.digits,
      decimals: 0,
      noData: 'Not sampled',
      span: 6,
      queries: [now(live(`sum(${serverGauge('benchwatch_postgresql_sessions', 'state=~"idle in transaction.*"', 'state')})`), 'now')],
    }),
    stat({
      title: 'Oldest snapshot',
      description:
        'Transactions since the oldest snapshot, on the server with the oldest. Rows that became dead since are not removed. PostgreSQLSnapshotOld fires over 1 million. From benchwatch_postgresql_oldest_snapshot_transactions.',
      unit: unit.digits,
      decimals: 0,
      noData: 'Not sampled',
      span: 6,
      limits: { warning: 1e6 },
      queries: [now(live(`max(${gauge('oldest_snapshot_transactions', 'holder')})`), 'now')],
    }),
    row('Load'),
    graph({
      title: 'Commits and rollbacks',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Transactions per second by server, without those of the agent. From benchwatch_db_commits_total and benchwatch_db_rollbacks_total, or pg_stat_database_xact_commit and _rollback.',
      queries: [
        ...either(serverRate('benchwatch_db_commits_total', of), exporterSum('pg_stat_database_xact_commit'), 'commits'),
        ...either(serverRate('benchwatch_db_rollbacks_total', of), exporterSum('pg_stat_database_xact_rollback'), 'rollbacks'),
      ],
    }),
    panels.sessions(8, of),
    panels.threads(8, of),
    graph({
      title: 'Rows',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Rows per second that scans returned, and that were inserted, updated or deleted. Many returned rows for few transactions are scans without an index. From benchwatch_postgresql_rows_total or pg_stat_database_tup_*.',
      queries: [
        agent(`sum by (op) (${rate('rows', 'databases', 'op')})`, '{{op}}'),
        exporter(
          withoutAgent(
            alternatives(
              'op',
              Object.fromEntries(
                ['returned', 'inserted', 'updated', 'deleted'].map((op) => [
                  op,
                  `sum(${ofRunClusters(`rate(pg_stat_database_tup_${op}[$__rate_interval])`)})`,
                ]),
              ),
            ),
          ),
          '{{op}}',
        ),
      ],
    }),
    graph({
      title: 'Sessions by state',
      unit: unit.count,
      noData,
      span: 8,
      description:
        'Sessions of clients by state, all selected servers, without the one of the agent. From benchwatch_postgresql_sessions or pg_stat_activity_count.',
      queries: [
        agent(`sum by (state) (${gauge('sessions', 'state')})`, '{{state}}'),
        exporter(withoutAgent(`sum by (state) (${ofRunClusters('pg_stat_activity_count')}) > 0`), '{{state}}'),
      ],
    }),
    panel.blockedBy(8),
    row('Write-ahead log and checkpoints'),
    panel.wal(8),
    graph({
      title: 'Full-page images',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Pages per second that changed the first time after a checkpoint: the WAL has all of each. From benchwatch_postgresql_wal_full_page_images_total.',
      queries: [agent(rate('wal_full_page_images'), server)],
    }),
    graph({
      title: 'Time of a WAL synchronisation',
      unit: unit.seconds,
      noData: 'track_wal_io_timing is off on the servers, or none is sampled',
      span: 8,
      description:
        'Mean time of a synchronisation of a WAL file. Each commit waits for one, and several share it. From benchwatch_postgresql_wal_sync_seconds_total.',
      queries: [agent(`${rate('wal_sync_seconds')} / (${syncs} > 0)`, server)],
    }),
    graph({
      title: 'Commits per WAL synchronisation',
      unit: unit.count,
      noData,
      span: 8,
      description:
        'How many commits share one synchronisation of the WAL. From benchwatch_db_commits_total and benchwatch_postgresql_wal_syncs_total.',
      queries: [agent(`${serverRate('benchwatch_db_commits_total', of)} / (${syncs} > 0)`, server)],
    }),
    panel.checkpoints(8),
    graph({
      title: 'Buffers written',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Buffers written per second by checkpoints, the background writer and sessions (before version 17). From benchwatch_postgresql_buffers_written_total.',
      queries: [agent(`sum by (backend) (${rate('buffers_written', 'backend')})`, '{{backend}}')],
    }),
    row('Buffers, files and vacuum'),
    panel.missedBlocks(8),
    graph({
      title: 'Sessions reading blocks',
      unit: unit.count,
      noData: noTiming,
      span: 8,
      description:
        'Sessions that wait for a block to be read, on average. From benchwatch_postgresql_blocks_read_seconds_total or pg_stat_database_blk_read_time.',
      queries: either(sum('', rate('blocks_read_seconds', 'databases')), `${exporterSum('pg_stat_database_blk_read_time')} / 1000`),
    }),
    graph({
      title: 'Temporary files',
      unit: unit.bytesPerSecond,
      noData,
      span: 8,
      description:
        'Bytes per second that sorts and hashes wrote to temporary files, since work_mem was too small. From benchwatch_postgresql_temporary_bytes_total or pg_stat_database_temp_bytes.',
      queries: either(sum('', rate('temporary_bytes', 'databases')), exporterSum('pg_stat_database_temp_bytes')),
    }),
    graph({
      title: 'Dead rows',
      unit: unit.share,
      noData: 'The connected database has too many tables, or no server is sampled',
      span: 8,
      description:
        'Share of dead rows in the tables of the connected database, as the server estimates. Autovacuum starts at 20 %. From benchwatch_postgresql_dead_rows.',
      queries: [
        agent(
          perServer(
            `benchwatch_postgresql_dead_rows{${servers}} / (benchwatch_postgresql_dead_rows{${servers}} + benchwatch_postgresql_live_rows{${servers}} > 0)`,
          ),
          server,
        ),
      ],
    }),
    graph({
      title: 'Oldest snapshot',
      unit: unit.count,
      noData,
      span: 8,
      description:
        'Transactions since the oldest snapshot, by what holds it: a session, a standby, a slot, a prepared transaction, a vacuum. PostgreSQLSnapshotOld fires over 1 million. From benchwatch_postgresql_oldest_snapshot_transactions.',
      queries: [agent(gauge('oldest_snapshot_transactions', 'holder'), `${server} {{holder}}`)],
    }),
    graph({
      title: 'Vacuum',
      unit: unit.count,
      noData,
      span: 8,
      description: 'Autovacuum workers, and VACUUMs in progress. From benchwatch_postgresql_processes and benchwatch_postgresql_vacuums_running.',
      queries: [
        agent(serverGauge('benchwatch_postgresql_processes', 'backend="autovacuum worker"', 'backend'), `${server} autovacuum workers`),
        agent(gauge('vacuums_running'), `${server} vacuums`),
      ],
    }),
    closedRow(
      'Replication',
      graph({
        title: 'Standbys',
        unit: unit.bytes,
        noData: noStandby,
        span: 8,
        description: 'WAL that each standby and subscriber has not replayed, as its sender reports it. From benchwatch_postgresql_standby_lag_bytes.',
        queries: [
          agent(`max by (standby) (${serverGauge('benchwatch_postgresql_standby_lag_bytes', 'stage="replay"', 'standby', 'stage')})`, '{{standby}}'),
        ],
      }),
      panel.standbyWaits(8),
      graph({
        title: 'WAL retained by slots',
        unit: unit.bytes,
        noData: 'No server has a replication slot',
        span: 8,
        description:
          'WAL that each replication slot retains. PostgreSQLSlotLost fires if it is removed. From benchwatch_postgresql_slot_retained_bytes.',
        queries: [agent(gauge('slot_retained_bytes', 'slot'), `${server} {{slot}}`)],
      }),
    ),
    row('Hosts'),
    host.cpu(12),
    host.disk(12),
  ],
};
