// Panels about replication of any kind and about Galera's flow control.

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
      'The replica with the highest current lag, compared with the most advanced member of its cluster. Under 1 s is good. ReplicationLagGrowing fires if the lag is over 2 s and growing, ReplicationLagHigh if it is over 10 s. From benchwatch_replication_lag_seconds.',
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
      "Share of the last 15 s in which Galera's flow control paused replication. Under 1 % is good. GaleraFlowControlHigh fires over 10 %, GaleraFlowControlCritical over 40 %. Unlike wsrep_flow_control_paused, it is not an average since the server started. From benchwatch_galera_flow_control_paused_seconds_total.",
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
      'Time since the most advanced member of the cluster was at the current position of this member. All members are sampled at the same tick. Near zero is good. A member that is down or joining has no value. From benchwatch_replication_lag_seconds.',
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
      'Transactions that the most advanced member of the cluster has and this member lacks, at the same tick. A few are normal, because the members do not answer at exactly the same time. From benchwatch_replication_lag_transactions.',
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
      'Transactions that a replica has received but not applied yet. Zero is good. A queue that does not empty means that the applier is too slow. From benchwatch_replication_queue_transactions.',
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
      'Share of time in which flow control paused replication. A pause affects the whole cluster, so all nodes have the same value. Zero is good. GaleraFlowControlHigh fires over 10 %. A slow node also slows down group communication, which does not count as a pause: compare with throughput. From benchwatch_galera_flow_control_paused_seconds_total.',
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
    title: 'Flow control: who requests pauses',
    description:
      'Pauses per second that each node requested because its receive queue was too long. The node with the most requests is the slow one. GaleraNodeSlow names it. From benchwatch_galera_flow_control_sent_total.',
    unit: 'cps',
    noData: noGalera,
    span,
    queries: [agent(`sum by (target) (${serverRate('benchwatch_galera_flow_control_sent_total')})`, '{{target}}')],
  });
}
