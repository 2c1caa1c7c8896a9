// Galera: which node is slow, which nodes wait for it, and is the cluster complete.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { lately, live, over, perServer, server, serverGauge, serverRate, serverRateOver, servers, worst } from './metrics';
import { closedRow, graph, row, set, stat, states, timeline, unit } from './panel';
import * as host from './panels/host';
import * as replication from './panels/replication';
import { noGalera } from './panels/replication';
import * as run from './panels/run';
import * as panels from './panels/server';
import { agent, now } from './query';
import { limits } from './threshold';

const noData = noGalera;
const none = 'No Galera';

/** The increase of a counter during the run, by server. */
const increase = (counter: string): string => `increase((${serverGauge(counter)})[$__range:$__interval])`;
/** Conflicts relative to commits. */
const conflicts = (grown: (counter: string) => string): string =>
  `(sum(${grown('benchwatch_galera_certification_failures_total')}) + sum(${grown('benchwatch_galera_brute_force_aborts_total')})) / (sum(${grown('benchwatch_galera_local_commits_total')}) > 0)`;
/** Mean size of write sets. */
const size = (bytes: string, writeSets: string): string => `${serverRate(bytes)} / on (cluster, target) (${serverRate(writeSets)} > 0)`;

export const galera: Page = {
  name: 'galera',
  title: 'Benchmark: Galera',
  description: 'Flow control, certification, queues and membership of Galera clusters (MariaDB, Percona XtraDB Cluster).',
  variables: ['cluster', 'target', 'run'],
  content: [
    replication.flowControlNow(4),
    stat({
      title: 'Slow node',
      description:
        'The node that requested most of the pauses of the last 30 s, and its share of them: the slow node. Of a finished run: the node with the most pauses in the run, and their number. No value means that no node requested a pause. GaleraNodeSlow fires over 50 % while the cluster is paused. From benchwatch_galera_flow_control_sent_total.',
      unit: unit.share,
      decimals: 0,
      noData: 'No pauses',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`topk(1, ${perServer('target:benchwatch_galera_flow_control_sent:share_rate30s{cluster=~"$cluster"}')})`), `${server} now`),
        now(over(`topk(1, round(${increase('benchwatch_galera_flow_control_sent_total')}) > 0)`), `${server}, pauses in the run`),
      ],
      overrides: [{ series: /.*pauses in the run$/, set: [set.unit(unit.digits)] }],
    }),
    stat({
      title: 'Cluster',
      description:
        'Cluster size according to the nodes with the smallest and the largest view, and selected nodes that are up but not synced (joining, donor or desynced, joined); of a finished run, at its end. Equal sizes and no node that is not synced are good. The sizes are wrong for 5 to 7 s after a node has died. GaleraClusterSizeChanged fires after a change, GaleraNodeNotSynced after 10 s. From benchwatch_galera_cluster_size and benchwatch_galera_local_state.',
      unit: unit.none,
      decimals: 0,
      noData: none,
      span: 4,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(`min(${lately('benchwatch_galera_cluster_size')})`, 'smallest view'),
        now(`max(${lately('benchwatch_galera_cluster_size')})`, 'largest view'),
        now(`sum(${lately('benchwatch_galera_local_state')} != bool 4)`, 'not synced'),
      ],
      overrides: [{ series: 'not synced', set: [set.limits({ warning: 1 })] }],
    }),
    replication.worstLag(4),
    stat({
      title: 'Queue',
      description:
        'The node with the most write sets waiting to be applied, now or at most in a finished run. Near zero is good. With the default limits a pause starts at a few tens, so hundreds mean a desynced node or a raised gcs.fc_limit. GaleraReceiveQueueGrowing fires if the queue is over 100 and growing. From benchwatch_galera_receive_queue.',
      unit: unit.digits,
      decimals: 0,
      noData: none,
      span: 4,
      text: BigValueTextMode.ValueAndName,
      limits: { warning: 100 },
      queries: [
        now(live(`topk(1, ${serverGauge('benchwatch_galera_receive_queue')})`), `${server} now`),
        now(worst('galera_receive_queue:max'), `${server} most`),
      ],
    }),
    stat({
      title: 'Commits',
      description:
        'Transactions per second that clients committed, all selected nodes, and transactions aborted by a conflict with another node, relative to committed ones; of a finished run, their number and share in the run. No conflicts is good. GaleraCertificationFailures fires over 1 %. From benchwatch_galera_local_commits_total, benchwatch_galera_certification_failures_total and benchwatch_galera_brute_force_aborts_total.',
      unit: unit.share,
      decimals: 1,
      noData: none,
      span: 4,
      stacked: true,
      limits: limits.conflicts,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`sum(${serverRateOver('5s', 'benchwatch_galera_local_commits_total')})`), 'commits now'),
        now(live(conflicts((counter) => serverRateOver('15s', counter))), 'conflicts now'),
        now(over(`sum(${increase('benchwatch_galera_local_commits_total')})`), 'commits of the run'),
        now(over(conflicts(increase)), 'conflicts of the run'),
      ],
      overrides: [
        { series: 'commits now', set: [set.unit(unit.perSecond), set.color('text')] },
        { series: 'commits of the run', set: [set.unit(unit.digits), set.decimals(0), set.color('text')] },
      ],
    }),
    row('Flow control'),
    replication.flowControlPaused(12),
    replication.flowControlSent(12),
    graph({
      title: 'Receive queue',
      description:
        'Write sets received and waiting to be applied. Dashed: flow control limit. The node with the longest queue is the slow one. Zero in most samples is normal, because pauses last milliseconds. Thousands mean a desynced node. From benchwatch_galera_receive_queue.',
      unit: unit.count,
      log: true,
      noData,
      span: 8,
      queries: [
        agent(serverGauge('benchwatch_galera_receive_queue'), server),
        agent(serverGauge('benchwatch_galera_flow_control_limit'), `${server} limit`),
      ],
      overrides: [{ series: /.* limit$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Send queue',
      description:
        'Write sets waiting to be sent. Zero is good. While the cluster stalls or is paused, it is as long as the number of client threads. From benchwatch_galera_send_queue.',
      unit: unit.count,
      noData,
      span: 8,
      queries: [agent(serverGauge('benchwatch_galera_send_queue'), server)],
    }),
    run.throughputOverTime(8, 9),
    row('Apply'),
    replication.lagTransactions(8),
    replication.lagSeconds(8),
    graph({
      title: 'Commit and apply rate',
      description:
        'Transactions per second that each node committed or applied, from any client of the cluster. Equal rates are good. A node with a lower rate falls behind. From benchwatch_galera_last_committed.',
      unit: unit.perSecond,
      noData,
      span: 8,
      queries: [agent(perServer(`deriv(benchwatch_galera_last_committed{${servers}}[$__rate_interval])`), server)],
    }),
    graph({
      title: 'Commits by local clients',
      description:
        "Transactions per second that each node's own clients committed. Shows which nodes receive writes. From benchwatch_galera_local_commits_total.",
      unit: unit.perSecond,
      noData,
      span: 8,
      queries: [agent(serverRate('benchwatch_galera_local_commits_total'), server)],
    }),
    graph({
      title: 'Conflicts between nodes',
      description:
        'Transactions per second that failed certification (solid) and that an applier aborted (dashed), by the node of the aborted client. Zero with one writer. With several it depends on how often they write the same rows. Com_rollback does not count them. From benchwatch_galera_certification_failures_total and benchwatch_galera_brute_force_aborts_total.',
      unit: unit.perSecond,
      noData,
      span: 8,
      queries: [
        agent(serverRate('benchwatch_galera_certification_failures_total'), `${server} failed certification`),
        agent(serverRate('benchwatch_galera_brute_force_aborts_total'), `${server} aborted`),
      ],
      overrides: [{ series: /.* aborted$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Parallelism and appliers',
      description:
        'Number of write sets that can be applied in parallel, on average since the server start or FLUSH STATUS. More wsrep_slave_threads than that are useless. Dashed: applier threads. From benchwatch_galera_certification_dependency_distance and benchwatch_galera_applier_threads.',
      unit: unit.count,
      noData,
      span: 8,
      queries: [
        agent(serverGauge('benchwatch_galera_certification_dependency_distance'), `${server} distance`),
        agent(serverGauge('benchwatch_galera_applier_threads'), `${server} appliers`),
      ],
      overrides: [{ series: /.* appliers$/, set: [set.dashed(), set.noFill()] }],
    }),
    row('Membership'),
    timeline({
      title: 'State of each node',
      description:
        'State that each node reports. Synced is good. GaleraNodeNotSynced fires after 10 s in another state. A node that was suspended and resumes reports "synced" for a few seconds although it is not: compare the configuration. From benchwatch_galera_local_state.',
      unit: unit.none,
      noData: 'No node',
      span: 12,
      height: 7,
      queries: [agent(serverGauge('benchwatch_galera_local_state'), server)],
      mappings: states({
        '0': { text: 'initialized', color: 'red' },
        '1': { text: 'joining', color: 'orange' },
        '2': { text: 'donor/desynced', color: 'orange' },
        '3': { text: 'joined', color: 'yellow' },
        '4': { text: 'synced', color: 'green' },
      }),
    }),
    timeline({
      title: 'Primary component',
      description:
        'Whether each node is part of the primary component. A non-primary node refuses queries, and GaleraNodeNotPrimary fires. From benchwatch_galera_primary.',
      unit: unit.none,
      noData: 'No node',
      span: 12,
      height: 7,
      queries: [agent(serverGauge('benchwatch_galera_primary'), server)],
      mappings: states({ '0': { text: 'non-primary', color: 'red' }, '1': { text: 'primary', color: 'green' } }),
    }),
    graph({
      title: 'Cluster size by node',
      description: 'Cluster size according to each node. Equal values are good. From benchwatch_galera_cluster_size.',
      unit: unit.none,
      noData,
      span: 8,
      queries: [agent(serverGauge('benchwatch_galera_cluster_size'), server)],
    }),
    graph({
      title: 'Configuration by node',
      description:
        'Number of the last membership change that each node has seen. Each join and leave increments it. Equal values are good. A node with another value has an outdated view, and GaleraMembersDisagree fires. From benchwatch_galera_cluster_configuration_id.',
      unit: unit.none,
      noData,
      span: 8,
      queries: [agent(serverGauge('benchwatch_galera_cluster_configuration_id'), server)],
    }),
    graph({
      title: 'Time until a full transfer',
      description:
        'How long each node could be away, at the present rate of commits, and rejoin with an incremental transfer (IST) instead of a full one (SST): the write sets in the cache divided by the commit rate. From benchwatch_galera_last_committed and benchwatch_galera_cached_down_to.',
      unit: unit.clock,
      noData: `${noData}, or nothing is committed`,
      span: 8,
      queries: [
        agent(
          perServer(
            `(benchwatch_galera_last_committed{${servers}} - benchwatch_galera_cached_down_to{${servers}}) / (deriv(benchwatch_galera_last_committed{${servers}}[$__rate_interval]) > 0)`,
          ),
          server,
        ),
      ],
    }),
    timeline({
      title: 'Ready',
      description: 'Whether each node accepts queries (wsrep_ready). A node that does not refuses all clients. From benchwatch_galera_ready.',
      unit: unit.none,
      noData: 'No node',
      span: 8,
      queries: [agent(serverGauge('benchwatch_galera_ready'), server)],
      mappings: states({ '0': { text: 'refuses queries', color: 'red' }, '1': { text: 'ready', color: 'green' } }),
    }),
    timeline({
      title: 'Desynced',
      description:
        'Whether each node is excluded from flow control: backup, FLUSH TABLES WITH READ LOCK, state transfer, or wsrep_desync. A desynced node may fall behind without limit. From benchwatch_galera_desync_count.',
      unit: unit.none,
      noData: 'No node',
      span: 8,
      queries: [agent(`${serverGauge('benchwatch_galera_desync_count')} > bool 0`, server)],
      mappings: states({ '0': { text: 'in sync', color: 'green' }, '1': { text: 'desynced', color: 'orange' } }),
    }),
    row('Write sets and servers'),
    graph({
      title: 'Write set size',
      description:
        'Mean size of the write sets that each node sent (solid) and received (dashed). A few kB are usual for OLTP. Large transactions delay all nodes, because they are certified and applied as a whole. From benchwatch_galera_replicated_bytes_total, benchwatch_galera_replicated_writesets_total and their counterparts for received ones.',
      unit: unit.bytes,
      noData: `${noData}, or nothing is written`,
      span: 8,
      queries: [
        agent(size('benchwatch_galera_replicated_bytes_total', 'benchwatch_galera_replicated_writesets_total'), `${server} sent`),
        agent(size('benchwatch_galera_received_bytes_total', 'benchwatch_galera_received_writesets_total'), `${server} received`),
      ],
      overrides: [{ series: /.* received$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Open transactions and replays',
      description:
        'Transactions that the replication provider knows now (solid), and transactions per second that were replayed after a lock conflict with an applier (dashed). Replays near zero are good. From benchwatch_galera_open_transactions and benchwatch_galera_local_replays_total.',
      unit: unit.count,
      noData,
      span: 8,
      queries: [
        agent(serverGauge('benchwatch_galera_open_transactions'), `${server} open`),
        agent(serverRate('benchwatch_galera_local_replays_total'), `${server} replays/s`),
      ],
      overrides: [{ series: /.* replays\/s$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Certification index',
      description:
        'Entries of the certification index, which detects conflicts. It grows with the number of keys in write sets that not all nodes have committed. From benchwatch_galera_certification_index_entries.',
      unit: unit.count,
      noData,
      span: 8,
      queries: [agent(serverGauge('benchwatch_galera_certification_index_entries'), server)],
    }),
    panels.threads(8, 'engine="mysql"'),
    graph({
      title: 'Replication traffic',
      description:
        'Bytes of write sets per second that each node sent (solid) and received (dashed). From benchwatch_galera_replicated_bytes_total and benchwatch_galera_received_bytes_total.',
      unit: unit.bytesPerSecond,
      noData,
      span: 8,
      queries: [
        agent(serverRate('benchwatch_galera_replicated_bytes_total'), `${server} sent`),
        agent(serverRate('benchwatch_galera_received_bytes_total'), `${server} received`),
      ],
      overrides: [{ series: /.* received$/, set: [set.dashed(), set.noFill()] }],
    }),
    host.cpu(8),
    closedRow('Hosts in detail', ...host.all(8)),
  ],
};
