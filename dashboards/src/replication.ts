// Group Replication and replicas: MySQL Group Replication, and asynchronous
// replicas of MySQL and MariaDB.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { serverRate, servers } from './metrics';
import { graph, row, set, stat, states, timeline, unit } from './panel';
import * as host from './panels/host';
import * as replication from './panels/replication';
import * as run from './panels/run';
import * as server from './panels/server';
import { agent, exporter, now } from './query';

const noGroup = 'No member of a replication group is sampled';
const noReplica = 'No replica is sampled (a replication group has no receiver and applier of its own)';

export const replicationPage: Page = {
  name: 'replication',
  title: 'Benchmark: Group Replication and replicas',
  description: 'Members, queues, lag and flow control of MySQL Group Replication, and threads and lag of asynchronous replicas.',
  variables: ['cluster', 'target', 'run'],
  content: [
    replication.worstLag(4),
    stat({
      title: 'Lag in transactions',
      description:
        'The replica that lacks most transactions of the most advanced member, at the same moment. A few are only the time between two answers. Known in every state, also when the lag in seconds is not. From benchwatch_replication_lag_transactions.',
      unit: unit.digits,
      decimals: 0,
      noData: 'No replicas',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [now(`topk(1, max by (target) (benchwatch_replication_lag_transactions{${servers}}))`, '{{target}}')],
    }),
    stat({
      title: 'Stopped threads',
      description:
        'Receivers and appliers of asynchronous replicas that do not run. Zero is good; after five seconds ReplicationStopped fires. From benchwatch_replication_running.',
      unit: unit.none,
      decimals: 0,
      noData: 'No replicas',
      span: 4,
      limits: { warning: 1 },
      filled: true,
      queries: [now(`sum(benchwatch_replication_running{${servers}} == bool 0)`, 'stopped')],
    }),
    stat({
      title: 'Members online',
      description:
        'Members of the group that are online, and members in any state, in the view that sees fewest online. From benchwatch_group_replication_members_online and benchwatch_group_replication_group_size.',
      unit: unit.none,
      decimals: 0,
      noData: 'No group',
      span: 4,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(`min(benchwatch_group_replication_members_online{${servers}})`, 'online'),
        now(`max(benchwatch_group_replication_group_size{${servers}})`, 'in the group'),
      ],
    }),
    stat({
      title: 'Applier queue',
      description: 'The member with the most transactions waiting to be applied. Zero is good. From benchwatch_group_replication_applier_queue.',
      unit: unit.digits,
      decimals: 0,
      noData: 'No group',
      span: 4,
      limits: { warning: 100 },
      text: BigValueTextMode.ValueAndName,
      queries: [now(`topk(1, max by (target) (benchwatch_group_replication_applier_queue{${servers}}))`, '{{target}}')],
    }),
    stat({
      title: 'Flow control',
      description:
        'Share of their time that running threads are held back on the member that is throttled most (15 s). Over 10 % GroupReplicationFlowControlHigh fires. From benchwatch_group_replication_flow_control_throttled_seconds_total; only with the component group_replication_flow_control_stats.',
      unit: unit.share,
      decimals: 0,
      noData: 'Not counted',
      span: 4,
      limits: { warning: 0.1 },
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(
          `topk(1, max by (target) (rate(benchwatch_group_replication_flow_control_throttled_seconds_total{${servers}}[15s]) / avg_over_time(benchwatch_db_threads_running{${servers}}[15s])))`,
          '{{target}}',
        ),
      ],
    }),
    row('Lag'),
    replication.lagSeconds(8),
    replication.lagTransactions(8),
    replication.queue(8),
    graph({
      title: 'Apply rate',
      description:
        'By how many transactions a second each server moves on in the common history. All on one line is good; above the line is catching up. From benchwatch_replication_position.',
      unit: unit.perSecond,
      noData: 'No cluster: targets that replicate from each other need the same `cluster` in benchwatch.yml',
      span: 8,
      queries: [agent(`max by (target) (deriv(benchwatch_replication_position{${servers}}[$__rate_interval]))`, '{{target}}')],
    }),
    graph({
      title: 'What the replicas say of their lag',
      description:
        "Seconds_Behind_Source: whole seconds, a configured delay included (dashed: that delay). Zero while the source hangs, since a replica knows only what it has received; no line while a thread is stopped. From benchwatch_replication_seconds_behind_source, or mysqld_exporter's mysql_slave_status_seconds_behind_source.",
      unit: unit.seconds,
      decimals: 0,
      noData: noReplica,
      span: 8,
      queries: [
        agent(`max by (target, channel) (benchwatch_replication_seconds_behind_source{${servers}})`, '{{target}} {{channel}}'),
        agent(`max by (target, channel) (benchwatch_replication_configured_delay_seconds{${servers}} > 0)`, '{{target}} {{channel}} delay'),
        exporter(
          'max by (instance, channel_name) ({__name__=~"mysql_slave_status_seconds_behind_(source|master)"}) unless on () benchwatch_db_up',
          '{{instance}} {{channel_name}}',
        ),
      ],
      overrides: [{ series: /.* delay$/, set: [set.dashed(), set.noFill()] }],
    }),
    run.drain(8),
    row('Asynchronous replicas'),
    timeline({
      title: 'Receiver and applier',
      description: 'Whether the two parts of replication run, by server and channel. From benchwatch_replication_running.',
      unit: unit.none,
      noData: noReplica,
      span: 12,
      queries: [agent(`min by (target, channel, thread) (benchwatch_replication_running{${servers}})`, '{{target}} {{thread}} {{channel}}')],
      mappings: states({ '0': { text: 'stopped', color: 'red' }, '1': { text: 'runs', color: 'green' } }),
    }),
    graph({
      title: 'Relay logs',
      description: 'Bytes of relay logs: what was received and is not applied and purged yet. From benchwatch_replication_relay_log_bytes.',
      unit: unit.bytes,
      noData: noReplica,
      span: 12,
      queries: [agent(`max by (target, channel) (benchwatch_replication_relay_log_bytes{${servers}})`, '{{target}} {{channel}}')],
    }),
    row('Group Replication'),
    timeline({
      title: 'State of each member',
      description: 'What each member says of itself. Online is good. From benchwatch_group_replication_member_state.',
      unit: unit.none,
      noData: noGroup,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_group_replication_member_state{${servers}})`, '{{target}}')],
      mappings: states({
        '0': { text: 'offline', color: 'red' },
        '1': { text: 'recovering', color: 'orange' },
        '2': { text: 'online', color: 'green' },
        '3': { text: 'error', color: 'red' },
        '4': { text: 'unreachable', color: 'red' },
      }),
    }),
    timeline({
      title: 'Primary',
      description:
        'Which member is a primary. Exactly one in single-primary mode; none for about 20 s after the primary was killed. From benchwatch_group_replication_primary.',
      unit: unit.none,
      noData: noGroup,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_group_replication_primary{${servers}})`, '{{target}}')],
      mappings: states({ '0': { text: 'secondary', color: 'blue' }, '1': { text: 'primary', color: 'green' } }),
    }),
    graph({
      title: 'Applier queue',
      description:
        "Certified transactions of other members waiting to be applied, each member's own count. Growing fires GroupReplicationApplierQueueGrowing. From benchwatch_group_replication_applier_queue.",
      unit: unit.count,
      decimals: 0,
      noData: noGroup,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_group_replication_applier_queue{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Certification queue',
      description:
        'Transactions waiting for certification. Up to some tens is usual, hundreds on a member that recovers. From benchwatch_group_replication_certification_queue.',
      unit: unit.count,
      decimals: 0,
      noData: noGroup,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_group_replication_certification_queue{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Certified and refused',
      description:
        'Transactions certified a second by member (solid), and those refused because of a conflict (dashed). From benchwatch_group_replication_certified_transactions_total and benchwatch_group_replication_conflicts_total.',
      unit: unit.perSecond,
      noData: noGroup,
      span: 8,
      queries: [
        agent(`sum by (target) (${serverRate('benchwatch_group_replication_certified_transactions_total')})`, '{{target}} certified'),
        agent(`sum by (target) (${serverRate('benchwatch_group_replication_conflicts_total')})`, '{{target}} refused'),
      ],
      overrides: [{ series: /.* refused$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Flow control',
      description:
        'Sessions held back, on average (seconds held back a second). As many as there are clients means that all wait all the time. From benchwatch_group_replication_flow_control_throttled_seconds_total; only with the component group_replication_flow_control_stats.',
      unit: unit.count,
      decimals: 1,
      noData: 'No group, or no such component',
      span: 8,
      queries: [agent(`sum by (target) (${serverRate('benchwatch_group_replication_flow_control_throttled_seconds_total')})`, '{{target}}')],
    }),
    graph({
      title: 'Round trip in the group',
      description:
        'Mean time until the group has agreed on a message of this member: each commit pays it once. From benchwatch_group_replication_message_roundtrip_seconds_total and benchwatch_group_replication_messages_sent_total.',
      unit: unit.seconds,
      noData: 'No group, or a version without these counters (before 8.1)',
      span: 8,
      queries: [
        agent(
          `sum by (target) (${serverRate('benchwatch_group_replication_message_roundtrip_seconds_total')}) / (sum by (target) (${serverRate('benchwatch_group_replication_messages_sent_total')}) > 0)`,
          '{{target}}',
        ),
      ],
    }),
    graph({
      title: 'Certification table',
      description: 'Rows remembered to find conflicts; swept about once a minute. From benchwatch_group_replication_certification_rows.',
      unit: unit.count,
      decimals: 0,
      noData: noGroup,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_group_replication_certification_rows{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Online members by view',
      description:
        'Members that each member sees online. One line below the others is a member that is cut off. From benchwatch_group_replication_members_online.',
      unit: unit.none,
      decimals: 0,
      noData: noGroup,
      span: 8,
      queries: [agent(`max by (target) (benchwatch_group_replication_members_online{${servers}})`, '{{target}}')],
    }),
    row('Servers and hosts'),
    server.queries(8, 'engine="mysql"'),
    server.threads(8, 'engine="mysql"'),
    host.cpu(8),
  ],
};
