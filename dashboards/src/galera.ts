// Galera: who is slow, who pays for it, and is the cluster whole.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { serverRate, servers } from './metrics';
import { graph, row, set, stat, states, timeline, unit } from './panel';
import * as host from './panels/host';
import * as replication from './panels/replication';
import { noGalera } from './panels/replication';
import * as run from './panels/run';
import * as server from './panels/server';
import { agent, now } from './query';
import { limits } from './threshold';

const noData = noGalera;
const none = 'No Galera';

export const galera: Page = {
  name: 'galera',
  title: 'Benchmark: Galera',
  description: 'Flow control, certification, queues and membership of Galera clusters (MariaDB, Percona XtraDB Cluster).',
  variables: ['cluster', 'target', 'run'],
  content: [
    replication.flowControlNow(3),
    stat({
      title: 'Slow node',
      description:
        'The node that sent most of the pauses of the last 30 s, and its part of them: the slow one. No value means that nobody asked. From benchwatch_galera_flow_control_sent_total.',
      unit: unit.share,
      decimals: 0,
      noData: 'Nobody',
      span: 3,
      text: BigValueTextMode.ValueAndName,
      queries: [now('topk(1, target:benchwatch_galera_flow_control_sent:share_rate30s{cluster=~"$cluster"})', '{{target}}')],
    }),
    stat({
      title: 'Cluster size',
      description:
        'Nodes in the view of the node that sees fewest and of the one that sees most. They differ while the membership changes, and after a node has died both are wrong for 5 to 7 s. From benchwatch_galera_cluster_size.',
      unit: unit.none,
      decimals: 0,
      noData: none,
      span: 3,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(`min(benchwatch_galera_cluster_size{${servers}})`, 'smallest view'),
        now(`max(benchwatch_galera_cluster_size{${servers}})`, 'largest view'),
      ],
    }),
    stat({
      title: 'Not synced',
      description:
        'Selected nodes that are up but in another state than synced (joining, donor or desynced, joined). Zero is good; after ten seconds GaleraNodeNotSynced fires. From benchwatch_galera_local_state.',
      unit: unit.none,
      decimals: 0,
      noData: none,
      span: 3,
      filled: true,
      limits: { warning: 1 },
      queries: [now(`sum(benchwatch_galera_local_state{${servers}} != bool 4)`, 'nodes')],
    }),
    replication.worstLag(3),
    stat({
      title: 'Queue',
      description:
        'The node with the most write sets waiting to be applied. With default limits a pause comes at some tens, so hundreds mean a desynced node or a raised gcs.fc_limit. From benchwatch_galera_receive_queue.',
      unit: unit.digits,
      decimals: 0,
      noData: none,
      span: 3,
      text: BigValueTextMode.ValueAndName,
      limits: { warning: 100 },
      queries: [now(`topk(1, max by (target) (benchwatch_galera_receive_queue{${servers}}))`, '{{target}}')],
    }),
    stat({
      title: 'Commits',
      description: 'Transactions a second that clients committed on all selected nodes together. From benchwatch_galera_local_commits_total.',
      unit: unit.perSecond,
      noData: none,
      span: 3,
      queries: [now(`sum(rate(benchwatch_galera_local_commits_total{${servers}}[5s]))`, 'commits')],
    }),
    stat({
      title: 'Conflicts',
      description:
        'Transactions that lost against another node, as a share of those that committed. Zero is good; over 1 % GaleraCertificationFailures fires. From benchwatch_galera_certification_failures_total and benchwatch_galera_brute_force_aborts_total.',
      unit: unit.share,
      decimals: 1,
      noData: 'No commits',
      span: 3,
      limits: limits.conflicts,
      filled: true,
      queries: [
        now(
          `sum(rate(benchwatch_galera_certification_failures_total{${servers}}[15s]) + rate(benchwatch_galera_brute_force_aborts_total{${servers}}[15s])) / (sum(rate(benchwatch_galera_local_commits_total{${servers}}[15s])) > 0)`,
          'conflicts',
        ),
      ],
    }),
    row('Flow control'),
    replication.flowControlPaused(12),
    replication.flowControlSent(12),
    graph({
      title: 'Receive queue',
      description:
        'Write sets received and waiting to be applied. The node with the longest queue is the slow one. Zero on most samples is normal, since pauses last milliseconds; thousands mean a desynced node. From benchwatch_galera_receive_queue.',
      unit: unit.count,
      decimals: 0,
      noData,
      span: 8,
      queries: [
        agent(`max by (target) (benchwatch_galera_receive_queue{${servers}})`, '{{target}}'),
        agent(`max by (target) (benchwatch_galera_flow_control_limit{${servers}})`, '{{target}} limit'),
      ],
      overrides: [{ series: /.* limit$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Send queue',
      description:
        'Write sets waiting to be sent. It is as long as there are client threads when the cluster stalls or is paused. From benchwatch_galera_send_queue.',
      unit: unit.count,
      decimals: 0,
      noData,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_galera_send_queue{${servers}})`, '{{target}}')],
    }),
    run.throughputByOperation(8, 8),
    row('Applying'),
    replication.lagTransactions(8),
    replication.lagSeconds(8),
    graph({
      title: 'Commit and apply rate',
      description:
        "By how many transactions a second each node moves on in the cluster's history, whether its own clients wrote them or others. All nodes on one line is good; the one below falls behind. From benchwatch_galera_last_committed.",
      unit: unit.perSecond,
      noData,
      span: 8,
      queries: [agent(`max by (target) (deriv(benchwatch_galera_last_committed{${servers}}[$__rate_interval]))`, '{{target}}')],
    }),
    graph({
      title: 'Commits of own clients',
      description:
        "Transactions a second that each node's own clients committed: shows who is written to. From benchwatch_galera_local_commits_total.",
      unit: unit.perSecond,
      noData,
      span: 8,
      queries: [agent(`sum by (target) (${serverRate('benchwatch_galera_local_commits_total')})`, '{{target}}')],
    }),
    graph({
      title: 'Conflicts between nodes',
      description:
        'Transactions a second that failed certification, and that an applier aborted (dashed), by the node whose client lost. Zero with one writer; with several it depends on how often they want the same rows. Com_rollback does not count them. From benchwatch_galera_certification_failures_total and benchwatch_galera_brute_force_aborts_total.',
      unit: unit.perSecond,
      noData,
      span: 8,
      queries: [
        agent(`sum by (target) (${serverRate('benchwatch_galera_certification_failures_total')})`, '{{target}} failed certification'),
        agent(`sum by (target) (${serverRate('benchwatch_galera_brute_force_aborts_total')})`, '{{target}} aborted'),
      ],
      overrides: [{ series: /.* aborted$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Parallelism: dependency distance and appliers',
      description:
        'How many write sets could be applied in parallel on average since the server started or FLUSH STATUS: an upper limit for useful wsrep_slave_threads. Dashed: applier threads there are. From benchwatch_galera_certification_dependency_distance and benchwatch_galera_applier_threads.',
      unit: unit.count,
      noData,
      span: 8,
      queries: [
        agent(`max by (target) (benchwatch_galera_certification_dependency_distance{${servers}})`, '{{target}} distance'),
        agent(`max by (target) (benchwatch_galera_applier_threads{${servers}})`, '{{target}} appliers'),
      ],
      overrides: [{ series: /.* appliers$/, set: [set.dashed(), set.noFill()] }],
    }),
    row('Membership'),
    timeline({
      title: 'State of each node',
      description:
        'The state that each node says it is in. Synced is good. A node that was stopped and goes on says "synced" for some seconds although it is not: compare the configuration beside it. From benchwatch_galera_local_state.',
      unit: unit.none,
      noData,
      span: 12,
      height: 7,
      queries: [agent(`max by (target) (benchwatch_galera_local_state{${servers}})`, '{{target}}')],
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
      description: 'Whether each node is part of the primary component. Outside it a node refuses queries. From benchwatch_galera_primary.',
      unit: unit.none,
      noData,
      span: 12,
      height: 7,
      queries: [agent(`min by (target) (benchwatch_galera_primary{${servers}})`, '{{target}}')],
      mappings: states({ '0': { text: 'non-primary', color: 'red' }, '1': { text: 'primary', color: 'green' } }),
    }),
    graph({
      title: 'Cluster size by node',
      description: "Nodes in each node's view of the cluster. All lines on the same number is good. From benchwatch_galera_cluster_size.",
      unit: unit.none,
      decimals: 0,
      noData,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_galera_cluster_size{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Configuration by node',
      description:
        'Number of the membership change that each node has seen last; it grows with each join and leave. A node on another line lives in the past: GaleraMembersDisagree. From benchwatch_galera_cluster_configuration_id.',
      unit: unit.none,
      decimals: 0,
      noData,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_galera_cluster_configuration_id{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Write sets in the cache',
      description:
        'How many transactions back each node keeps write sets. A node that was away for fewer can rejoin with an incremental transfer instead of a full one. From benchwatch_galera_last_committed and benchwatch_galera_cached_down_to.',
      unit: unit.count,
      noData,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_galera_last_committed{${servers}} - benchwatch_galera_cached_down_to{${servers}})`, '{{target}}')],
    }),
    row('Servers and hosts'),
    server.threads(8, 'engine="mysql"'),
    graph({
      title: 'Replication traffic',
      description:
        'Bytes of write sets a second that each node sent (solid) and received (dashed). From benchwatch_galera_replicated_bytes_total and benchwatch_galera_received_bytes_total.',
      unit: unit.bytesPerSecond,
      noData,
      span: 8,
      queries: [
        agent(`sum by (target) (${serverRate('benchwatch_galera_replicated_bytes_total')})`, '{{target}} sent'),
        agent(`sum by (target) (${serverRate('benchwatch_galera_received_bytes_total')})`, '{{target}} received'),
      ],
      overrides: [{ series: /.* received$/, set: [set.dashed(), set.noFill()] }],
    }),
    host.cpu(8),
  ],
};
