// Runs: results of finished runs, and their comparison.

import { TextBoxVariableBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { fromLabel, fromRuns, type Page } from './frame';
import { runs } from './metrics';
import { row, set, unit } from './panel';
import { distribution, overElapsed, overThreads } from './panels/elapsed';
import {
  type Column,
  colored,
  drainOfRun,
  duration,
  exitStatus,
  fact,
  reason,
  result,
  serverVersion,
  table,
  target,
  title,
  width,
  wrapped,
} from './panels/runs';
import { limits } from './threshold';

const facts = 'tool=~"$tool", workload=~"$workload", group=~"$group", sweep=~"$sweep", ${label:raw}';

/** Restricts a vector with the label run to the selected runs that ended within the time range. */
const ofFinished = (expr: string): string =>
  `(${expr}) and on (run) (max by (run) (benchwatch_run_end_timestamp_seconds{${runs}}) * 1000 >= \${__from}) and on (run) benchwatch_run_info{${runs}, ${facts}}`;

/** Restricts a vector with the label run to the selected runs. */
const ofSelected = (expr: string): string =>
  `(${expr}) and on (run) group by (run) (last_over_time(benchwatch_run_info{${runs}, ${facts}}[$__range:$__interval] @ end()))`;

const throughput = `max by (run) (benchwatch_run_summary_operations_per_second{op="transaction", ${runs}})`;
const latency = `max by (run, op, stat) (run:benchwatch_run_summary_latency_seconds:headline{${runs}})`;
const baseline = 'run="$baseline"';

/** The relative difference to the baseline run. A latency is compared only with the same statistic of the same operation. */
const difference = (expr: string, on = ''): string => `(${expr}) / on (${on}) group_left () (${expr.replaceAll(runs, baseline)}) - 1`;

const started: Column = {
  name: 'Started',
  expr: `max by (run) (benchwatch_run_start_timestamp_seconds{${runs}}) * 1000`,
  // 24 hours in every locale: "05:45:47 PM" does not fit on a line.
  show: [set.unit('time:MM-DD HH:mm'), width(94)],
};
const showDifference = [set.unit(unit.share), set.decimals(1), width(82)];

export const runsPage: Page = {
  name: 'runs',
  title: 'Benchmark: runs',
  description: 'Finished runs: results, comparison over elapsed time, and scaling over threads.',
  variables: ['run'],
  extraVariables: [
    fromLabel('tool', 'Tool', 'Benchmark tools.', 'label_values(benchwatch_run_info, tool)'),
    fromLabel('workload', 'Workload', 'Workloads of the tools.', 'label_values(benchwatch_run_info{tool=~"$tool"}, workload)'),
    fromLabel('sweep', 'Sweep', 'Sweeps (benchwatch sweep).', 'label_values(benchwatch_run_info, sweep)'),
    fromLabel('group', 'Group', 'Groups of runs that form one benchmark.', 'label_values(benchwatch_run_info, group)'),
    new TextBoxVariableBuilder('label')
      .label('Labels')
      .description('Matchers of further labels of the runs, such as via="proxy", tables="8".')
      .defaultValue(''),
    fromRuns('baseline', 'Baseline', 'The run with which the others are compared in the tables.', { none: true }).multi(false).includeAll(false),
  ],
  from: 'now-6h',
  refresh: '1m',
  content: [
    table({
      title: 'Finished runs',
      description:
        "Runs that ended in the time range, with the figures of their tools' summaries, the newest first. The title links to the run in Live run, with the run's time range. The differences are to the run selected as the baseline. The agent keeps the last 256 runs. From benchwatch_run_summary_* and run:benchwatch_run_summary_latency_seconds:headline.",
      noData: '–',
      span: 24,
      height: 11,
      only: ofFinished,
      columns: [
        title,
        result,
        started,
        fact('Tool', 'tool', 78),
        fact('Workload', 'workload', 136),
        fact('Threads', 'threads', 76),
        { name: 'Throughput', expr: throughput, show: [set.unit(unit.transactions), width(98)] },
        { name: 'Δ tps', expr: difference(throughput), show: showDifference },
        { name: 'Latency', expr: latency, show: [set.unit(unit.seconds), width(72)] },
        {
          name: 'of',
          label: 'of',
          expr: `label_replace(label_join(${latency}, "of", " ", "op", "stat"), "of", "$1", "of", "transaction (.*)")`,
          show: [width(82), ...wrapped],
        },
        { name: 'Δ latency', expr: difference(latency, 'op, stat'), show: showDifference },
        {
          name: 'Errors',
          expr: `max by (run) (benchwatch_run_summary_errors_total{${runs}})`,
          show: [set.unit(unit.digits), set.decimals(0), width(58)],
        },
      ],
    }),
    table({
      title: 'Servers of finished runs',
      description:
        'What the servers and hosts of each run did: the highest CPU use of any host and of the load generator, the worst lag of any replica, the share of the time that flow control paused, its worst 15 s, and the slowest drain; tpmC, exit status of the tool and why it failed, and what it ran on. From run:node_cpu_utilisation:max, run:benchwatch_replication_lag_seconds:max and related recording rules.',
      noData: '–',
      span: 24,
      height: 9,
      only: ofFinished,
      columns: [
        title,
        duration,
        exitStatus,
        { name: 'tpmC', expr: `max by (run) (benchwatch_run_summary_tpmc{${runs}})`, show: [set.unit(unit.digits), set.decimals(0), width(60)] },
        {
          name: 'CPU',
          expr: `max by (run) (max_over_time(run:node_cpu_utilisation:max{${runs}}[$__range]))`,
          show: [set.unit(unit.share), set.decimals(0), width(52), ...colored(limits.cpu)],
        },
        {
          name: 'Generator',
          expr: `max by (run) (max_over_time(run:generator_cpu_utilisation:max{${runs}}[$__range]))`,
          show: [set.unit(unit.share), set.decimals(0), width(82), ...colored(limits.cpu)],
        },
        {
          name: 'Lag',
          expr: `max by (run) (max_over_time(run:benchwatch_replication_lag_seconds:max{${runs}}[$__range]))`,
          show: [set.unit(unit.seconds), set.decimals(1), width(84), ...colored(limits.lagSeconds)],
        },
        {
          name: 'Paused',
          expr: `max by (run) (avg_over_time(run:benchwatch_galera_flow_control_paused:ratio_rate15s{${runs}}[$__range]))`,
          show: [set.unit(unit.share), set.decimals(0), width(66), ...colored(limits.flowControl)],
        },
        {
          name: 'worst',
          expr: `max by (run) (max_over_time(run:benchwatch_galera_flow_control_paused:ratio_rate15s{${runs}}[$__range]))`,
          show: [set.unit(unit.share), set.decimals(0), width(58), ...colored(limits.flowControl)],
        },
        { ...drainOfRun, show: [...drainOfRun.show, ...colored(limits.drainSeconds)] },
        target,
        serverVersion,
        reason,
      ],
    }),
    row('Comparison over elapsed time'),
    overElapsed(
      'Throughput over elapsed time',
      unit.transactions,
      `max by (run) (benchwatch_run_operations_per_second{op="transaction", ${runs}})`,
      'Transactions per second of each selected run over the time since its start. Select the runs to compare, and a time range that contains them. Higher is better. From benchwatch_run_operations_per_second and benchwatch_run_elapsed_seconds.',
      ofSelected,
    ),
    overElapsed(
      'Latency over elapsed time',
      unit.seconds,
      `max by (run) (run:benchwatch_run_latency_seconds:headline{${runs}})`,
      'p95 (or the percentile that the tool prints) of each selected run over the time since its start. Compare only runs with the same tool and percentile. Lower is better. From run:benchwatch_run_latency_seconds:headline and benchwatch_run_elapsed_seconds.',
      ofSelected,
    ),
    row('Scaling'),
    overThreads(
      'Throughput over threads',
      unit.transactions,
      throughput,
      'Mean throughput of finished runs by number of client threads, one line per tool, workload and target. Of repeated runs: their mean. The system is saturated where the line becomes flat. ThroughputKneeReached fires between these steps. From benchwatch_run_summary_operations_per_second and the threads in benchwatch_run_info.',
      ofFinished,
      'avg',
    ),
    overThreads(
      'Latency over threads',
      unit.seconds,
      `max by (run) (run:benchwatch_run_summary_latency_seconds:headline{${runs}})`,
      'p95 (or the percentile that the tool prints) of finished runs by number of client threads. Of repeated runs: the worst, because percentiles have no mean. It rises steeply where the throughput becomes flat. From run:benchwatch_run_summary_latency_seconds:headline and the threads in benchwatch_run_info.',
      ofFinished,
      'max',
    ),
    row('Distribution of latencies'),
    distribution(
      'Share of operations by latency',
      'benchwatch_run_summary_latency_distribution_seconds',
      'The share of the operations of each selected run that took no longer than a latency. A line that rises further to the left is better; a step to the right is a group of slow operations. Only of tools that print a histogram (sysbench --histogram, YCSB, HdrHistogram logs). The points are the bounds of the histogram, between which nothing is known. From benchwatch_run_summary_latency_distribution_seconds.',
      ofFinished,
    ),
  ],
};
