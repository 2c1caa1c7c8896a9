// Runs: what came out of the finished ones, and how they compare.

import { TableCellHeight, TableSortByFieldStateBuilder } from '@grafana/grafana-foundation-sdk/common';
import type { DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import type { Page } from './frame';
import { runs } from './metrics';
import { type AnyPanel, row, set, unit } from './panel';
import { overElapsed, overThreads } from './panels/elapsed';
import { build, datasource, type Query, rows } from './query';
import { limits } from './threshold';

/** Runs that ended within the time range. */
const finished = `(max by (run) (benchwatch_run_end_timestamp_seconds{${runs}}) * 1000 >= \${__from})`;
const ofFinished = (expr: string): string => `(${expr}) and on (run) ${finished}`;

const ended = `max by (run) (benchwatch_run_end_timestamp_seconds{${runs}})`;
const drained = `max by (run) (benchwatch_run_drain_seconds{${runs}})`;

/**
 * When Prometheus had everything of a run, in milliseconds: some scrapes and
 * evaluations of rules after the slowest replica had caught up. A time range
 * that ends with the tool itself shows no result, no summary and no drain.
 */
const complete = `round((${ended} + (${drained} or 0 * ${ended}) + 10) * 1000)`;

/** For a column that only the link needs: Grafana up to 11, and newer ones. */
const unseen: DynamicConfigValue[] = [{ id: 'custom.hidden', value: true }, set.hidden()];

/** The columns of the table: name, query, how to show it. */
const columns: { name: string; expr: string; show: DynamicConfigValue[] }[] = [
  { name: 'Started', expr: `max by (run) (benchwatch_run_start_timestamp_seconds{${runs}}) * 1000`, show: [set.unit(unit.time), width(165)] },
  { name: 'Ended', expr: `${ended} * 1000`, show: [set.unit(unit.time), width(165)] },
  { name: 'Duration', expr: `max by (run) (benchwatch_run_summary_duration_seconds{${runs}})`, show: [set.unit(unit.clock), width(80)] },
  {
    name: 'Throughput',
    expr: `max by (run) (benchwatch_run_summary_operations_per_second{op="transaction", ${runs}})`,
    show: [set.unit(unit.perSecond), width(100)],
  },
  {
    name: 'Latency',
    expr: `max by (run, stat) (run:benchwatch_run_summary_latency_seconds:headline{${runs}})`,
    show: [set.unit(unit.seconds), width(80)],
  },
  { name: 'Errors', expr: `max by (run) (benchwatch_run_summary_errors_total{${runs}})`, show: [set.unit(unit.count), set.decimals(0), width(75)] },
  {
    name: 'Peak CPU',
    expr: `max_over_time(run:node_cpu_utilisation:max{${runs}}[$__range])`,
    show: [set.unit(unit.share), set.decimals(0), colored(limits.cpu.warning), width(92)],
  },
  {
    name: 'Worst lag',
    expr: `max_over_time(run:benchwatch_replication_lag_seconds:max{${runs}}[$__range])`,
    show: [set.unit(unit.seconds), set.decimals(1), colored(limits.lagSeconds.warning, limits.lagSeconds.critical), width(85)],
  },
  {
    name: 'Flow control',
    expr: `avg_over_time(run:benchwatch_galera_flow_control_paused:ratio_rate15s{${runs}}[$__range])`,
    show: [set.unit(unit.share), set.decimals(0), colored(limits.flowControl.warning, limits.flowControl.critical), width(98)],
  },
  { name: 'Drain', expr: drained, show: [set.unit(unit.seconds), set.decimals(1), colored(limits.drainSeconds.warning), width(80)] },
  { name: 'Complete', expr: complete, show: [set.unit(unit.time), ...unseen] },
];

function width(pixels: number): DynamicConfigValue {
  return { id: 'custom.width', value: pixels };
}

function colored(warning: number, critical?: number): DynamicConfigValue {
  const steps = [
    { value: null, color: 'text' },
    { value: warning, color: 'orange' },
  ];
  if (critical !== undefined) steps.push({ value: critical as unknown as null, color: 'red' });
  return { id: 'thresholds', value: { mode: 'absolute', steps } };
}

const toLiveRun = {
  title: 'Open this run in Live run',
  url: '/d/benchwatch-live-run?${datasource:queryparam}&var-run=${__data.fields.Run}&from=${__data.fields.Started.numeric}&to=${__data.fields.Complete.numeric}',
};

function table(): AnyPanel {
  const facts = 'run, title, tool, workload, threads, target';
  const queries: Query[] = [
    rows(ofFinished(`max by (${facts}) (benchwatch_run_info{${runs}})`)),
    rows(ofFinished(`max by (run, result) (benchwatch_run_result{${runs}})`)),
    ...columns.map((c) => rows(ofFinished(c.expr))),
  ];
  const names = ['Run', 'Title', 'Result', 'Tool', 'Workload', 'Threads', 'Target', ...columns.slice(0, -1).map((c) => c.name)];
  const rename: Record<string, string> = {
    run: 'Run',
    title: 'Title',
    tool: 'Tool',
    workload: 'Workload',
    threads: 'Threads',
    target: 'Target',
    result: 'Result',
    stat: 'Statistic',
  };
  columns.forEach((c, i) => {
    rename[`Value #${letter(i + 2)}`] = c.name;
  });
  const order = [
    'title',
    'result',
    'tool',
    'workload',
    'threads',
    ...columns.slice(2).flatMap((c, i) => [`Value #${letter(i + 4)}`, ...(c.name === 'Latency' ? ['stat'] : [])]),
    'target',
    'Value #C',
    'Value #D',
    'run',
  ];
  const panel = new TableBuilder()
    .title('Finished runs')
    .description(
      `The runs that ended in the time range, as their tools summed them up, with what the servers and hosts did meanwhile: highest CPU of any host, worst lag of any replica, mean share of flow control, slowest drain. A click on the title opens the run with exactly its time range. Columns: ${names.join(', ')}. From benchwatch_run_summary_* and recording rules of the same run; the agent keeps the last 256 runs.`,
    )
    .datasource(datasource)
    .targets(queries.map((q, i) => build(q, i)))
    .unit(unit.none)
    .noValue('–')
    .cellHeight(TableCellHeight.Sm)
    .cellOptions({ type: 'auto' } as never)
    .sortBy([new TableSortByFieldStateBuilder().displayName('Started').desc(true)])
    .transformations([
      { id: 'merge', options: {} },
      {
        id: 'organize',
        options: {
          excludeByName: { Time: true, 'Value #A': true, 'Value #B': true },
          indexByName: Object.fromEntries(order.map((name, i) => [name, i])),
          renameByName: rename,
        },
      },
    ])
    .span(24)
    .height(11);
  for (const c of columns) {
    const coloring = c.show.some((p) => p.id === 'thresholds') ? [{ id: 'custom.cellOptions', value: { type: 'color-text' } }] : [];
    panel.overrideByName(c.name, [...c.show, ...coloring]);
  }
  panel.overrideByName('Title', [
    { id: 'links', value: [toLiveRun] },
    { id: 'custom.minWidth', value: 150 },
  ]);
  panel.overrideByName('Result', [
    {
      id: 'mappings',
      value: [
        {
          type: 'value',
          options: {
            succeeded: { color: 'green', index: 0 },
            failed: { color: 'red', index: 1 },
            lost: { color: 'red', index: 2 },
            interrupted: { color: 'orange', index: 3 },
          },
        },
      ],
    },
    { id: 'custom.cellOptions', value: { type: 'color-text' } },
    width(88),
  ]);
  panel.overrideByName('Threads', [width(70)]);
  panel.overrideByName('Tool', [width(78)]);
  panel.overrideByName('Workload', [width(120)]);
  panel.overrideByName('Target', [width(130)]);
  panel.overrideByName('Statistic', [width(72)]);
  return panel;
}

const letter = (index: number): string => String.fromCharCode('A'.charCodeAt(0) + index);

export const runsPage: Page = {
  name: 'runs',
  title: 'Benchmark: runs',
  description: 'Finished runs: results, comparison on one axis of elapsed time, and scaling over threads.',
  variables: ['run'],
  from: 'now-6h',
  refresh: '1m',
  content: [
    table(),
    row('Comparison: every run from its own start'),
    overElapsed(
      'Throughput over elapsed time',
      unit.perSecond,
      `max by (run) (benchwatch_run_operations_per_second{op="transaction", ${runs}})`,
      'Transactions a second of each selected run over the seconds since its start, so that runs lie on top of each other. Select the runs to compare above, and a time range that holds them. From benchwatch_run_operations_per_second and benchwatch_run_elapsed_seconds.',
    ),
    overElapsed(
      'Latency over elapsed time',
      unit.seconds,
      `max by (run) (run:benchwatch_run_latency_seconds:headline{${runs}})`,
      'p95 (or the percentile that the tool prints) of each selected run over the seconds since its start. Compare only runs of one tool and percentile. From run:benchwatch_run_latency_seconds:headline and benchwatch_run_elapsed_seconds.',
    ),
    row('Scaling'),
    overThreads(
      'Throughput over threads',
      unit.perSecond,
      `max by (run) (benchwatch_run_summary_operations_per_second{op="transaction", ${runs}})`,
      'Mean throughput of finished runs over their client threads (of several runs alike their mean), one line for each tool, workload and target. Where the line becomes flat, the system is saturated: ThroughputKneeReached says between which steps. From benchwatch_run_summary_operations_per_second and the threads in benchwatch_run_info.',
      ofFinished,
    ),
    overThreads(
      'Latency over threads',
      unit.seconds,
      `max by (run) (run:benchwatch_run_summary_latency_seconds:headline{${runs}})`,
      'p95 (or the percentile that the tool prints) of finished runs over their client threads. It bends upwards where throughput becomes flat. From benchwatch_run_summary_latency_seconds and the threads in benchwatch_run_info.',
      ofFinished,
    ),
  ],
};
