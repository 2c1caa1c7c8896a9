// Runs: results of finished runs, and their comparison.

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
 * Time in milliseconds when Prometheus has all series of a run: a few scrapes and
 * rule evaluations after the slowest replica has caught up. A time range that
 * ends with the tool contains no result, no summary and no drain.
 */
const complete = `round((${ended} + (${drained} or 0 * ${ended}) + 10) * 1000)`;

/** Hides a column that only the link uses, in Grafana up to 11 and in newer versions. */
const unseen: DynamicConfigValue[] = [{ id: 'custom.hidden', value: true }, set.hidden()];

/** The columns of the table: name, query, field properties. */
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
      `Runs that ended in the time range, with the figures of their tools' summaries, and with the highest CPU use of any host, the worst lag of any replica, the mean share of flow control and the slowest drain. The title links to the run in Live run, with the run's time range. Columns: ${names.join(', ')}. The agent keeps the last 256 runs. From benchwatch_run_summary_* and recording rules.`,
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
  description: 'Finished runs: results, comparison over elapsed time, and scaling over threads.',
  variables: ['run'],
  from: 'now-6h',
  refresh: '1m',
  content: [
    table(),
    row('Comparison over elapsed time'),
    overElapsed(
      'Throughput over elapsed time',
      unit.perSecond,
      `max by (run) (benchwatch_run_operations_per_second{op="transaction", ${runs}})`,
      'Transactions per second of each selected run over the time since its start. Select the runs to compare, and a time range that contains them. Higher is better. From benchwatch_run_operations_per_second and benchwatch_run_elapsed_seconds.',
    ),
    overElapsed(
      'Latency over elapsed time',
      unit.seconds,
      `max by (run) (run:benchwatch_run_latency_seconds:headline{${runs}})`,
      'p95 (or the percentile that the tool prints) of each selected run over the time since its start. Compare only runs with the same tool and percentile. Lower is better. From run:benchwatch_run_latency_seconds:headline and benchwatch_run_elapsed_seconds.',
    ),
    row('Scaling'),
    overThreads(
      'Throughput over threads',
      unit.perSecond,
      `max by (run) (benchwatch_run_summary_operations_per_second{op="transaction", ${runs}})`,
      'Mean throughput of finished runs by number of client threads, one line per tool, workload and target. Repeated runs are averaged. The system is saturated where the line becomes flat. ThroughputKneeReached fires between these steps. From benchwatch_run_summary_operations_per_second and the threads in benchwatch_run_info.',
      ofFinished,
    ),
    overThreads(
      'Latency over threads',
      unit.seconds,
      `max by (run) (run:benchwatch_run_summary_latency_seconds:headline{${runs}})`,
      'p95 (or the percentile that the tool prints) of finished runs by number of client threads. It rises steeply where the throughput becomes flat. From benchwatch_run_summary_latency_seconds and the threads in benchwatch_run_info.',
      ofFinished,
    ),
  ],
};
