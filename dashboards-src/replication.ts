// MySQL Group Replication, and asynchronous replicas of MySQL and MariaDB.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { lately, live, meanInRange, ofRunClusters, over, perServer, server, serverGauge, serverRate, servers, withoutAgent, worst } from './metrics';
import { closedRow, graph, row, set, stat, states, timeline, unit } from './panel';
import * as host from './panels/host';
import * as replication from './panels/replication';
import * as run from './panels/run';
import * as panels from './panels/server';
import { agent, exporter, now } from './query';

const noGroup = 'No member of a replication group is sampled';
const noReplica = 'No asynchronous replica is sampled';

export const replicationPage: Page = {
  name: 'replication',
  title: 'Benchmark: Group Replication and replicas',
  description: 'Members, queues, lag and flow control of MySQL Group Replication, and threads and lag of asynchronous replicas.',
  variables: ['cluster', 'target', 'run'],
  content: [
    replication.worstLag(4),
    stat({
      title: 'Missing',
      description:
        'The replica that lacks the most transactions of the most advanced member, at the same tick, now or at most in a finished run. A few are normal, because the members do not answer at exactly the same time. It has a value in every state, even if the lag in seconds is unknown. From benchwatch_replication_lag_transactions.',
      unit: unit.digits,
      decimals: 0,
      noData: 'No replicas',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`topk(1, ${serverGauge('benchwatch_replication_lag_transactions')})`), `${server} now`),
        now(worst('replication_lag_transactions:max'), `${server} most`),
      ],
    }),
    stat({
      title: 'Stopped',
      description:
        'Receivers and appliers of asynchronous replicas that are not running, now or at the end of a finished run. Zero is good. ReplicationStopped fires after 5 s. From benchwatch_replication_running.',
      unit: unit.none,
      decimals: 0,
      noData: 'No replicas',
      span: 4,
      limits: { warning: 1 },
      filled: true,
      queries: [now(`sum(${lately('benchwatch_replication_running', 'channel', 'thread')} == bool 0)`, 'stopped')],
    }),
    stat({
      title: 'Members',
      description:
        'Online members and members in any state, now or at the end of a finished run. Online is the lowest number that any member reports, and the group size the highest. Equal values are good. From benchwatch_group_replication_members_online and benchwatch_group_replication_group_size.',
      unit: unit.none,
      decimals: 0,
      noData: 'No group',
      span: 4,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(`min(${lately('benchwatch_group_replication_members_online')})`, 'online'),
        now(`max(${lately('benchwatch_group_replication_group_size')})`, 'in the group'),
      ],
    }),
    stat({
      title: 'Queue',
      description:
        'The member with the most transactions waiting to be applied, now or at most in a finished run. Zero is good. GroupReplicationApplierQueueGrowing fires if the queue is over 100 and growing. From benchwatch_group_replication_applier_queue.',
      unit: unit.digits,
      decimals: 0,
      noData: 'No group',
      span: 4,
      limits: { warning: 100 },
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`topk(1, ${serverGauge('benchwatch_group_replication_applier_queue')})`), `${server} now`),
        now(worst('group_replication_applier_queue:max'), `${server} most`),
      ],
    }),
    stat({
      title: 'Flow control',
      description:
        'Throttled share of the time of running threads over 15 s or over a finished run, on the most throttled member. Zero is good. GroupReplicationFlowControlHigh fires over 10 %. From benchwatch_group_replication_flow_control_throttled_seconds_total, which requires the component group_replication_flow_control_stats (MySQL Enterprise from 9.1, all editions from 9.7).',
      unit: unit.share,
      decimals: 0,
      noData: 'Not counted',
      span: 4,
      limits: { warning: 0.1 },
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(
          live(
            `topk(1, ${perServer(`rate(benchwatch_group_replication_flow_control_throttled_seconds_total{${servers}}[15s]) / avg_over_time(benchwatch_db_threads_running{${servers}}[15s])`)})`,
          ),
          `${server} now`,
        ),
        now(
          over(
            `topk(1, ${meanInRange(perServer(`rate(benchwatch_group_replication_flow_control_throttled_seconds_total{${servers}}[15s]) / avg_over_time(benchwatch_db_threads_running{${servers}}[15s])`))})`,
          ),
          `${server} mean`,
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
        'Transactions per second that each server committed or applied. Equal rates are good. A replica with a higher rate is catching up. From benchwatch_replication_position.',
      unit: unit.perSecond,
      noData: 'No cluster: targets that replicate from each other need the same `cluster` in benchwatch.yml',
      span: 8,
      queries: [agent(perServer(`deriv(benchwatch_replication_position{${servers}}[$__rate_interval])`), server)],
    }),
    graph({
      title: 'Lag reported by replicas',
      description:
        "Seconds_Behind_Source in whole seconds, including a configured delay (dashed). Near the delay is good. It is zero while the source hangs, because it considers only received transactions. It has no value while a thread is stopped. From benchwatch_replication_seconds_behind_source, or mysqld_exporter's mysql_slave_status_seconds_behind_source.",
      unit: unit.seconds,
      noData: noReplica,
      span: 8,
      queries: [
        agent(serverGauge('benchwatch_replication_seconds_behind_source', '', 'channel'), `${server} {{channel}}`),
        agent(`${serverGauge('benchwatch_replication_configured_delay_seconds', '', 'channel')} > 0`, `${server} {{channel}} delay`),
        exporter(
          withoutAgent(`max by (instance, channel_name) (${ofRunClusters('{__name__=~"mysql_slave_status_seconds_behind_(source|master)"}')})`),
          '{{instance}} {{channel_name}}',
        ),
      ],
      overrides: [{ series: /.* delay$/, set: [set.dashed(), set.noFill()] }],
    }),
    run.drain(8),
    closedRow(
      'Asynchronous replicas',
      graph({
        title: 'Replication errors',
        description:
          'Number of the error that the receiver or the applier has now, 0 if none (Last_IO_Errno, Last_SQL_Errno). Any number means that replication has stopped or retries. From benchwatch_replication_last_error_number.',
        unit: unit.none,
        noData: noReplica,
        span: 8,
        queries: [agent(serverGauge('benchwatch_replication_last_error_number', '', 'channel', 'thread'), `${server} {{thread}} {{channel}}`)],
      }),
      timeline({
        title: 'Receiver and applier',
        description:
          'Whether the receiver and the applier are running, by server and channel. ReplicationStopped fires after 5 s without one of them. From benchwatch_replication_running.',
        unit: unit.none,
        noData: 'No replica',
        span: 8,
        queries: [agent(serverGauge('benchwatch_replication_running', '', 'channel', 'thread'), `${server} {{thread}} {{channel}}`)],
        mappings: states({ '0': { text: 'stopped', color: 'red' }, '1': { text: 'running', color: 'green' } }),
      }),
      graph({
        title: 'Relay logs',
        description:
          'Size of the relay logs: transactions that are received but not applied and purged yet. Constant growth means that the applier is too slow. From benchwatch_replication_relay_log_bytes.',
        unit: unit.bytes,
        noData: noReplica,
        span: 8,
        queries: [agent(serverGauge('benchwatch_replication_relay_log_bytes', '', 'channel'), `${server} {{channel}}`)],
      }),
    ),
    closedRow(
      'Group Replication',
      timeline({
        title: 'State of each member',
        description:
          'State that each member reports. Online is good. GroupReplicationMemberNotOnline fires after 10 s in another state. From benchwatch_group_replication_member_state.',
        unit: unit.none,
        noData: 'No group',
        span: 8,
        queries: [agent(serverGauge('benchwatch_group_replication_member_state'), server)],
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
          'Role of each member. Single-primary mode has exactly one primary, and none for about 20 s after the primary was killed. GroupReplicationNoPrimary fires after 5 s without a primary. From benchwatch_group_replication_primary.',
        unit: unit.none,
        noData: 'No group',
        span: 8,
        queries: [agent(serverGauge('benchwatch_group_replication_primary'), server)],
        mappings: states({ '0': { text: 'secondary', color: 'blue' }, '1': { text: 'primary', color: 'green' } }),
      }),
      graph({
        title: 'Applier queue',
        description:
          'Certified transactions of other members waiting to be applied, as each member reports. Zero is good. GroupReplicationApplierQueueGrowing fires if the queue is over 100 and growing. From benchwatch_group_replication_applier_queue.',
        unit: unit.count,
        noData: noGroup,
        span: 8,
        queries: [agent(serverGauge('benchwatch_group_replication_applier_queue'), server)],
      }),
      graph({
        title: 'Certification queue',
        description:
          'Transactions waiting for certification. A few tens are usual, hundreds on a recovering member. GroupReplicationCertificationQueueGrowing fires if the queue is over 100 and growing. From benchwatch_group_replication_certification_queue.',
        unit: unit.count,
        noData: noGroup,
        span: 8,
        queries: [agent(serverGauge('benchwatch_group_replication_certification_queue'), server)],
      }),
      graph({
        title: 'Certified and rejected transactions',
        description:
          'Transactions per second that passed certification (solid) and that were rejected because of a conflict (dashed), by member. No rejected transactions is good. From benchwatch_group_replication_certified_transactions_total and benchwatch_group_replication_conflicts_total.',
        unit: unit.perSecond,
        noData: noGroup,
        span: 8,
        queries: [
          agent(serverRate('benchwatch_group_replication_certified_transactions_total'), `${server} certified`),
          agent(serverRate('benchwatch_group_replication_conflicts_total'), `${server} rejected`),
        ],
        overrides: [{ series: /.* rejected$/, set: [set.dashed(), set.noFill()] }],
      }),
      graph({
        title: 'Flow control',
        description:
          'Throttled sessions, on average (seconds throttled per second). Zero is good. The number of clients means that all of them wait all the time. From benchwatch_group_replication_flow_control_throttled_seconds_total, which requires the component group_replication_flow_control_stats (MySQL Enterprise from 9.1, all editions from 9.7).',
        unit: unit.count,
        noData: 'No group, or the component is not installed',
        span: 8,
        queries: [agent(serverRate('benchwatch_group_replication_flow_control_throttled_seconds_total'), server)],
      }),
      graph({
        title: 'Group message round trip',
        description:
          'Mean time until the group agrees on a message of this member. Each commit waits for one round trip. From benchwatch_group_replication_message_roundtrip_seconds_total and benchwatch_group_replication_messages_sent_total.',
        unit: unit.seconds,
        noData: 'No group, or a version before 8.1, which has no such counters',
        span: 8,
        queries: [
          agent(
            `${serverRate('benchwatch_group_replication_message_roundtrip_seconds_total')} / on (cluster, target) (${serverRate('benchwatch_group_replication_messages_sent_total')} > 0)`,
            server,
          ),
        ],
      }),
      graph({
        title: 'Certification table',
        description:
          'Rows in the certification database, which detects conflicts. The server purges it about once a minute. From benchwatch_group_replication_certification_rows.',
        unit: unit.count,
        noData: noGroup,
        span: 8,
        queries: [agent(serverGauge('benchwatch_group_replication_certification_rows'), server)],
      }),
      graph({
        title: 'Online members by view',
        description:
          'Number of online members according to each member. Equal values are good. A member with a lower value is disconnected from the group. From benchwatch_group_replication_members_online.',
        unit: unit.none,
        noData: noGroup,
        span: 8,
        queries: [agent(serverGauge('benchwatch_group_replication_members_online'), server)],
      }),
    ),
    row('Servers and hosts'),
    panels.queries(8, 'engine="mysql"'),
    panels.threads(8, 'engine="mysql"'),
    host.cpu(8),
  ],
};
