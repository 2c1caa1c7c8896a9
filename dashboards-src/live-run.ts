// Live run: the dashboard to watch during a run, for any tool and engine.

import type { Page } from './frame';
import { closedRow, row, rowPerRun } from './panel';
import * as agent from './panels/agent';
import * as host from './panels/host';
import * as postgresql from './panels/postgresql';
import * as replication from './panels/replication';
import * as run from './panels/run';
import { facts } from './panels/runs';
import * as server from './panels/server';

export const liveRun: Page = {
  name: 'live-run',
  title: 'Benchmark: live run',
  description: 'One run in progress or finished: the throughput, latency and errors of the tool, with its servers and hosts.',
  variables: ['runs', 'cluster', 'target'],
  alerts: true,
  content: [
    rowPerRun(),
    facts(24),
    run.state(),
    run.throughput(),
    run.latency(),
    run.errors(),
    replication.summary(4),
    host.hottest(4),
    row('Throughput and latency'),
    run.throughputOverTime(24),
    run.latencyOverTime(24),
    run.otherOperations(12),
    run.errorsOverTime(12),
    closedRow('Operations and stalls in detail', run.latencyByOperation(12), run.stalls(12)),
    row('Servers'),
    server.sessions(24),
    closedRow(
      'Servers in detail',
      server.threads(12),
      server.queries(12),
      server.lockWaits(12),
      run.toolAgainstServers(12),
      server.operations(12),
      server.up(12),
    ),
    closedRow(
      'PostgreSQL in detail',
      postgresql.blockedBy(8),
      postgresql.standbyWaits(8),
      postgresql.checkpoints(8),
      postgresql.wal(8),
      postgresql.missedBlocks(8),
    ),
    row('Replication'),
    replication.lagSeconds(12),
    replication.flowControlPaused(12),
    replication.flowControlSent(12),
    run.drain(12),
    closedRow('Replication in detail', replication.lagTransactions(12), run.openLoop(12)),
    row('Hosts'),
    host.cpu(24),
    closedRow(
      'Hosts and agent in detail',
      host.busiestCore(8),
      host.pressure(8),
      host.memory(8),
      host.disk(8),
      host.diskWait(8),
      host.diskOperations(8),
      host.diskBytes(8),
      host.network(8),
      host.networkDrops(8),
      host.cpuByMode(8),
      agent.cpu(8),
      agent.sampleDuration(8),
    ),
  ],
};
