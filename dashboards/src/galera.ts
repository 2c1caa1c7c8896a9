// Galera: which node is slow, which nodes wait for it, and is the cluster complete.

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
        'The node that requested most of the pauses of the last 30 s, and its share of them: the slow node. No value means that no node requested a pause. GaleraNodeSlow fires over 50 % while the cluster is paused. From benchwatch_galera_flow_control_sent_total.',
      unit: unit.share,
      decimals: 0,
      noData: 'No pauses',
      span: 3,
      text: BigValueTextMode.ValueAndName,
      queries: [now('topk(1, target:benchwatch_galera_flow_control_sent:share_rate30s{cluster=~"$cluster"})', '{{target}}')],
    }),
    stat({
      title: 'Cluster size',
      description:
        'Cluster size according to the nodes with the smallest and the largest view. Equal values are good. They differ during a membership change. Both are wrong for 5 to 7 s after a node has died. GaleraClusterSizeChanged fires after a change. From benchwatch_galera_cluster_size.',
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
        'Selected nodes that are up but not synced (joining, donor or desynced, joined). Zero is good. GaleraNodeNotSynced fires after 10 s. From benchwatch_galera_local_state.',
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
        'The node with the most write sets waiting to be applied. Near zero is good. With the default limits a pause starts at a few tens, so hundreds mean a desynced node or a raised gcs.fc_limit. GaleraReceiveQueueGrowing fires if the queue is over 100 and growing. From benchwatch_galera_receive_queue.',
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
      description: 'Transactions per second that clients committed, all selected nodes. From benchwatch_galera_local_commits_total.',
      unit: unit.perSecond,
      noData: none,
      span: 3,
      queries: [now(`sum(rate(benchwatch_galera_local_commits_total{${servers}}[5s]))`, 'commits')],
    }),
    stat({
      title: 'Conflicts',
      description:
        'Transactions aborted by a conflict with another node, relative to committed ones. Zero is good. GaleraCertificationFailures fires over 1 %. From benchwatch_galera_certification_failures_total and benchwatch_galera_brute_force_aborts_total.',
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
        'Write sets received and waiting to be applied. Dashed: flow control limit. The node with the longest queue is the slow one. Zero in most samples is normal, because pauses last milliseconds. Thousands mean a desynced node. From benchwatch_galera_receive_queue.',
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
        'Write sets waiting to be sent. Zero is good. While the cluster stalls or is paused, it is as long as the number of client threads. From benchwatch_galera_send_queue.',
      unit: unit.count,
      decimals: 0,
      noData,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_galera_send_queue{${servers}})`, '{{target}}')],
    }),
    run.throughputByOperation(8, 8),
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
      queries: [agent(`max by (target) (deriv(benchwatch_galera_last_committed{${servers}}[$__rate_interval]))`, '{{target}}')],
    }),
    graph({
      title: 'Commits by local clients',
      description:
        "Transactions per second that each node's own clients committed. Shows which nodes receive writes. From benchwatch_galera_local_commits_total.",
      unit: unit.perSecond,
      noData,
      span: 8,
      queries: [agent(`sum by (target) (${serverRate('benchwatch_galera_local_commits_total')})`, '{{target}}')],
    }),
    graph({
      title: 'Conflicts between nodes',
      description:
        'Transactions per second that failed certification (solid) and that an applier aborted (dashed), by the node of the aborted client. Zero with one writer. With several it depends on how often they write the same rows. Com_rollback does not count them. From benchwatch_galera_certification_failures_total and benchwatch_galera_brute_force_aborts_total.',
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
        'Number of write sets that can be applied in parallel, on average since the server start or FLUSH STATUS. More wsrep_slave_threads than that are useless. Dashed: applier threads. From benchwatch_galera_certification_dependency_distance and benchwatch_galera_applier_threads.',
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
        'State that each node reports. Synced is good. GaleraNodeNotSynced fires after 10 s in another state. A node that was suspended and resumes reports "synced" for a few seconds although it is not: compare the configuration. From benchwatch_galera_local_state.',
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
      description:
        'Whether each node is part of the primary component. A non-primary node refuses queries, and GaleraNodeNotPrimary fires. From benchwatch_galera_primary.',
      unit: unit.none,
      noData,
      span: 12,
      height: 7,
      queries: [agent(`min by (target) (benchwatch_galera_primary{${servers}})`, '{{target}}')],
      mappings: states({ '0': { text: 'non-primary', color: 'red' }, '1': { text: 'primary', color: 'green' } }),
    }),
    graph({
      title: 'Cluster size by node',
      description: 'Cluster size according to each node. Equal values are good. From benchwatch_galera_cluster_size.',
      unit: unit.none,
      decimals: 0,
      noData,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_galera_cluster_size{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Configuration by node',
      description:
        'Number of the last membership change that each node has seen. Each join and leave increments it. Equal values are good. A node with another value has an outdated view, and GaleraMembersDisagree fires. From benchwatch_galera_cluster_configuration_id.',
      unit: unit.none,
      decimals: 0,
      noData,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_galera_cluster_configuration_id{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Write sets in the cache',
      description:
        'Number of recent transactions whose write sets each node keeps. A node that missed fewer can rejoin with an incremental transfer (IST) instead of a full one (SST). From benchwatch_galera_last_committed and benchwatch_galera_cached_down_to.',
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
        'Bytes of write sets per second that each node sent (solid) and received (dashed). From benchwatch_galera_replicated_bytes_total and benchwatch_galera_received_bytes_total.',
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
