// Panels about replication of any kind and about Galera's flow control.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { alternatives, live, over, perServer, runs, server, serverGauge, serverRate } from '../metrics';
import { type AnyPanel, graph, set, stat, unit } from '../panel';
import { agent, now } from '../query';
import { limits } from '../threshold';

const noReplication = 'No replica of the selected run: targets that replicate from each other need the same `cluster` in benchwatch.yml';
export const noGalera = 'No Galera node is sampled';

const lagNow = live(`topk(1, ${serverGauge('benchwatch_replication_lag_seconds')})`);
const pausedNow = live(`max(${perServer('target:benchwatch_galera_flow_control_paused:ratio_rate15s{cluster=~"$cluster"}')})`);
/** Of several runs, the worst: a tile has no room for their names. */
const lagOfRun = over(`max(max_over_time(run:benchwatch_replication_lag_seconds:max{${runs}}[$__range]))`);
const pausedOfRun = (f: 'avg' | 'max') => over(`max(${f}_over_time(run:benchwatch_galera_flow_control_paused:ratio_rate15s{${runs}}[$__range]))`);

export function worstLag(span: number): AnyPanel {
  return stat({
    title: 'Worst lag',
    description:
      'The replica with the highest lag now, compared with the most advanced member of its cluster; of finished runs, the worst lag during a run and its drain. Under 1 s is good. ReplicationLagGrowing fires if the lag is over 2 s and growing, ReplicationLagHigh if it is over 10 s. From benchwatch_replication_lag_seconds.',
    unit: unit.seconds,
    decimals: 1,
    noData: 'No replicas',
    span,
    limits: limits.lagSeconds,
    filled: true,
    text: BigValueTextMode.ValueAndName,
    queries: [now(alternatives('name', { now: lagNow, 'worst in run': lagOfRun }), `${server} {{name}}`)],
  });
}

const paused = 'Unlike wsrep_flow_control_paused, it is not an average since the server started.';

export function flowControlNow(span: number): AnyPanel {
  return stat({
    title: 'Flow control',
    description: `Share of the last 15 s in which Galera's flow control paused replication; of finished runs, the highest mean and the worst 15 s. Under 1 % is good. GaleraFlowControlHigh fires over 10 %, GaleraFlowControlCritical over 40 %. ${paused} From benchwatch_galera_flow_control_paused_seconds_total.`,
    unit: unit.share,
    decimals: 0,
    noData: 'No Galera',
    span,
    limits: limits.flowControl,
    filled: true,
    text: BigValueTextMode.ValueAndName,
    queries: [now(alternatives('name', { 'last 15 s': pausedNow, 'mean of run': pausedOfRun('avg'), 'worst 15 s': pausedOfRun('max') }), '{{name}}')],
  });
}

/** Lag and flow control of the run's cluster in one tile. */
export function summary(span: number): AnyPanel {
  return stat({
    title: 'Replication',
    description: `The replica with the highest lag now, and the share of the last 15 s in which Galera's flow control paused replication; of a finished run, the worst lag during the run and its drain, and the mean and worst pause. Under 1 s and 1 % is good. ReplicationLagGrowing fires over 2 s, ReplicationLagHigh over 10 s, GaleraFlowControlHigh over 10 %, GaleraFlowControlCritical over 40 %. ${paused} From benchwatch_replication_lag_seconds and benchwatch_galera_flow_control_paused_seconds_total.`,
    unit: unit.seconds,
    decimals: 1,
    noData: 'No replicas',
    span,
    limits: limits.lagSeconds,
    filled: true,
    stacked: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(
        alternatives('name', {
          lag: lagNow,
          'worst lag': lagOfRun,
          'paused, last 15 s': pausedNow,
          'paused, mean': pausedOfRun('avg'),
          'paused, worst 15 s': pausedOfRun('max'),
        }),
        `{{name}} ${server}`,
      ),
    ],
    overrides: [{ series: /^paused.*/, set: [set.unit(unit.share), set.decimals(0), set.limits(limits.flowControl)] }],
  });
}

export function lagSeconds(span: number): AnyPanel {
  return graph({
    title: 'Lag in seconds',
    description:
      'Time since the most advanced member of the cluster was at the current position of this member. All members are sampled at the same tick. Near zero is good. A member that is down or joining has no value. From benchwatch_replication_lag_seconds.',
    unit: unit.seconds,
    softMax: 1,
    log: true,
    noData: noReplication,
    span,
    limits: limits.lagSeconds,
    showLimits: false,
    queries: [agent(serverGauge('benchwatch_replication_lag_seconds'), server)],
  });
}

export function lagTransactions(span: number): AnyPanel {
  return graph({
    title: 'Lag in transactions',
    description:
      'Transactions that the most advanced member of the cluster has and this member lacks, at the same tick. A few are normal, because the members do not answer at exactly the same time. From benchwatch_replication_lag_transactions.',
    unit: unit.count,
    log: true,
    noData: noReplication,
    span,
    queries: [agent(serverGauge('benchwatch_replication_lag_transactions'), server)],
  });
}

export function queue(span: number): AnyPanel {
  return graph({
    title: 'Waiting to be applied',
    description:
      'Transactions that a replica has received but not applied yet. Zero is good. A queue that does not empty means that the applier is too slow. From benchwatch_replication_queue_transactions.',
    unit: unit.count,
    log: true,
    noData: noReplication,
    span,
    queries: [agent(serverGauge('benchwatch_replication_queue_transactions'), server)],
  });
}

export function flowControlPaused(span: number): AnyPanel {
  return graph({
    title: 'Flow control: time paused',
    description:
      'Share of time in which flow control paused replication. A pause affects the whole cluster, so all nodes have the same value. Zero is good. GaleraFlowControlHigh fires over 10 %. A slow node also slows down group communication, which does not count as a pause: compare with throughput. From benchwatch_galera_flow_control_paused_seconds_total.',
    unit: unit.share,
    max: 1,
    noData: noGalera,
    span,
    limits: limits.flowControl,
    queries: [agent(`clamp_max(${serverRate('benchwatch_galera_flow_control_paused_seconds_total')}, 1)`, server)],
  });
}

export function flowControlSent(span: number): AnyPanel {
  return graph({
    title: 'Flow control: who requests pauses',
    description:
      'Pauses per second that each node requested because its receive queue was too long. The node with the most requests is the slow one. GaleraNodeSlow names it. From benchwatch_galera_flow_control_sent_total.',
    unit: unit.events,
    noData: noGalera,
    span,
    queries: [agent(serverRate('benchwatch_galera_flow_control_sent_total'), server)],
  });
}
