// Live run: the dashboard to watch during a run, for any tool and engine.

import type { Page } from './frame';
import { row } from './panel';
import * as agent from './panels/agent';
import * as host from './panels/host';
import * as replication from './panels/replication';
import * as run from './panels/run';
import * as server from './panels/server';

export const liveRun: Page = {
  name: 'live-run',
  title: 'Benchmark: live run',
  description: 'One run in progress: the throughput, latency and errors of the tool, with its servers and hosts.',
  variables: ['run', 'cluster', 'target'],
  content: [
    run.state(),
    run.throughput(),
    run.latency(),
    run.errors(),
    run.clientThreads(),
    replication.worstLag(3),
    replication.flowControlNow(3),
    host.hottest(),
    row('Throughput and latency'),
    run.throughputByOperation(12),
    run.latencyByPercentile(12),
    run.toolAgainstServers(8),
    run.latencyByOperation(8),
    run.errorsOverTime(8),
    row('Servers'),
    server.threads(8),
    server.queries(8),
    server.lockWaits(8),
    run.openLoop(8),
    server.operations(8),
    server.up(8),
    row('Replication'),
    replication.lagSeconds(8),
    replication.flowControlPaused(8),
    replication.flowControlSent(8),
    replication.lagTransactions(8),
    replication.queue(8),
    run.drain(8),
    row('Hosts'),
    host.cpu(8),
    host.disk(8),
    host.network(8),
    host.cpuByMode(8),
    host.diskBytes(8),
    agent.cpu(4),
    agent.sampleDuration(4),
  ],
};
