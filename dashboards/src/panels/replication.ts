// Panels about replication in general and Galera's flow control.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { serverRate, servers } from '../metrics';
import { type AnyPanel, graph, stat, unit } from '../panel';
import { agent, now } from '../query';
import { limits } from '../threshold';

const noReplication = 'No cluster: targets that replicate from each other need the same `cluster` in benchwatch.yml';
export const noGalera = 'No Galera node is sampled';

export function worstLag(span: number): AnyPanel {
  return stat({
    title: 'Worst lag',
    description:
      'The replica that is furthest behind the most advanced member of its cluster, now, in seconds. Under a second is good; growing over 2 s ReplicationLagGrowing fires, over 10 s ReplicationLagHigh. From benchwatch_replication_lag_seconds.',
    unit: unit.seconds,
    decimals: 1,
    noData: 'No replicas',
    span,
    limits: limits.lagSeconds,
    filled: true,
    text: BigValueTextMode.ValueAndName,
    queries: [now(`topk(1, max by (target) (benchwatch_replication_lag_seconds{${servers}}))`, '{{target}}')],
  });
}

export function flowControlNow(span: number): AnyPanel {
  return stat({
    title: 'Flow control',
    description:
      "Share of the last 15 s in which Galera's flow control paused replication. Under 1 % is good; over 10 % GaleraFlowControlHigh fires, over 40 % GaleraFlowControlCritical. From benchwatch_galera_flow_control_paused_seconds_total, not from the average since start that wsrep_flow_control_paused is.",
    unit: unit.share,
    decimals: 0,
    noData: 'No Galera',
    span,
    limits: limits.flowControl,
    filled: true,
    queries: [now('max(cluster:benchwatch_galera_flow_control_paused:ratio_rate15s{cluster=~"$cluster"})', 'paused')],
  });
}

export function lagSeconds(span: number): AnyPanel {
  return graph({
    title: 'Lag in seconds',
    description:
      'How long ago the most advanced member of the cluster was where this one is now, all sampled at the same tick. Near zero is good. A member that is down or joining has no line. From benchwatch_replication_lag_seconds.',
    unit: unit.seconds,
    noData: noReplication,
    span,
    limits: limits.lagSeconds,
    showLimits: false,
    queries: [agent(`max by (target) (benchwatch_replication_lag_seconds{${servers}})`, '{{target}}')],
  });
}

export function lagTransactions(span: number): AnyPanel {
  return graph({
    title: 'Lag in transactions',
    description:
      'Transactions that the most advanced member of the cluster had at the same tick and this one had not. A few are only the time between two answers. From benchwatch_replication_lag_transactions.',
    unit: unit.count,
    noData: noReplication,
    span,
    queries: [agent(`max by (target) (benchwatch_replication_lag_transactions{${servers}})`, '{{target}}')],
  });
}

export function queue(span: number): AnyPanel {
  return graph({
    title: 'Waiting to be applied',
    description:
      'Transactions that a replica has received and not applied yet. Zero is good; a queue that stays means that the applier is too slow. From benchwatch_replication_queue_transactions.',
    unit: unit.count,
    decimals: 0,
    noData: noReplication,
    span,
    queries: [agent(`max by (target) (benchwatch_replication_queue_transactions{${servers}})`, '{{target}}')],
  });
}

export function flowControlPaused(span: number): AnyPanel {
  return graph({
    title: 'Flow control: time paused',
    description:
      "Share of the time in which replication was paused. The same on all nodes, since a pause is the whole cluster's. Zero is good. A slow node also slows the group's communication, which no pause shows: read it together with throughput. From benchwatch_galera_flow_control_paused_seconds_total.",
    unit: unit.share,
    decimals: 0,
    max: 1,
    noData: noGalera,
    span,
    limits: limits.flowControl,
    queries: [agent(`clamp_max(max by (target) (${serverRate('benchwatch_galera_flow_control_paused_seconds_total')}), 1)`, '{{target}}')],
  });
}

export function flowControlSent(span: number): AnyPanel {
  return graph({
    title: 'Flow control: who asks for pauses',
    description:
      'Pauses a second that each node asked for because its receive queue was too long. The node with the most is the slow one; GaleraNodeSlow names it. From benchwatch_galera_flow_control_sent_total.',
    unit: 'cps',
    noData: noGalera,
    span,
    queries: [agent(`sum by (target) (${serverRate('benchwatch_galera_flow_control_sent_total')})`, '{{target}}')],
  });
}
