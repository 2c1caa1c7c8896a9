// Panels about PostgreSQL, on its own page and on Live run.

import { either, exporterSum } from '../exporters';
import { perServer, server, serverGauge, serverRate, servers } from '../metrics';
import { type AnyPanel, graph, unit } from '../panel';
import { agent } from '../query';

const noData = 'No PostgreSQL server of the selected run is sampled';
const noStandby = 'No standby or subscriber is connected to a sampled server';

export const rate = (name: string, ...labels: string[]): string => serverRate(`benchwatch_postgresql_${name}_total`, '', ...labels);
export const gauge = (name: string, ...labels: string[]): string => serverGauge(`benchwatch_postgresql_${name}`, '', ...labels);
export const sum = (by: string, query: string): string => `sum by (cluster, target${by && `, ${by}`}) (${query})`;

const reads = sum('', rate('blocks_read', 'databases'));
const hits = sum('', rate('blocks_hit', 'databases'));

export function blockedBy(span: number): AnyPanel {
  return graph({
    title: 'Blocked by',
    unit: unit.count,
    noData: 'No session waited for a lock for more than a second',
    span,
    description:
      'Sessions that wait for a lock for more than a second, on average, by what holds it: its program, its state, and its last statement. From benchwatch_postgresql_blocked_seconds_total.',
    queries: [agent(`topk(8, sum by (holder) (${rate('blocked_seconds', 'holder')}) > 0)`, '{{holder}}')],
  });
}

export function wal(span: number): AnyPanel {
  return graph({
    title: 'WAL',
    unit: unit.bytesPerSecond,
    noData,
    span,
    description: 'Bytes of write-ahead log per second by server. From benchwatch_postgresql_wal_bytes_total.',
    queries: [agent(rate('wal_bytes'), server)],
  });
}

export function checkpoints(span: number): AnyPanel {
  return graph({
    title: 'Checkpoints',
    unit: unit.share,
    noData,
    span,
    description:
      'WAL since the last checkpoint as a share of max_wal_size. The next one is requested at about half of it. Many requested checkpoints write the same pages again and again. From benchwatch_postgresql_checkpoint_distance_bytes.',
    queries: [
      agent(perServer(`benchwatch_postgresql_checkpoint_distance_bytes{${servers}} / benchwatch_postgresql_max_wal_size_bytes{${servers}}`), server),
    ],
  });
}

export function missedBlocks(span: number): AnyPanel {
  return graph({
    title: 'Blocks not in shared buffers',
    unit: unit.share,
    noData,
    span,
    description:
      'Share of the blocks that were not in shared buffers: from the cache of the operating system or from disk. From benchwatch_postgresql_blocks_read_total or pg_stat_database_blks_read.',
    queries: either(
      `${reads} / (${reads} + ${hits} > 0)`,
      `${exporterSum('pg_stat_database_blks_read')} / (${exporterSum('pg_stat_database_blks_read')} + ${exporterSum('pg_stat_database_blks_hit')} > 0)`,
    ),
  });
}

export function standbyWaits(span: number): AnyPanel {
  return graph({
    title: 'Waiting for a synchronous standby',
    unit: unit.count,
    noData: noStandby,
    span,
    description:
      'Sessions that wait in commit, on average, for the synchronous standby that lacks the most WAL. From benchwatch_postgresql_standby_wait_seconds_total.',
    queries: [agent(`sum by (standby) (${rate('standby_wait_seconds', 'standby')})`, '{{standby}}')],
  });
}
