// Tables of runs: what they are, what their tools reported, what their servers did.

import { TableCellHeight, TableSortByFieldStateBuilder } from '@grafana/grafana-foundation-sdk/common';
import type { DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { inRange, named, recent, runs } from '../metrics';
import { type AnyPanel, set, unit } from '../panel';
import { build, datasource, rows } from '../query';

/** A column of a table of runs. */
export interface Column {
  name: string;
  /** A vector with the label run; columns with the same one share a query. A column without it shows a label of benchwatch_run_info. */
  expr?: string;
  /** The label that is shown instead of the value. */
  label?: string;
  show: DynamicConfigValue[];
}

export const width = (pixels: number): DynamicConfigValue => ({ id: 'custom.width', value: pixels });
export const wrapped: DynamicConfigValue[] = [{ id: 'custom.cellOptions', value: { type: 'auto', wrapText: true } }];

/** Values over a limit in colour. */
export function colored(of: { warning: number; critical?: number }): DynamicConfigValue[] {
  const steps = [
    { value: null, color: 'text' },
    { value: of.warning, color: 'orange' },
    ...(of.critical === undefined ? [] : [{ value: of.critical, color: 'red' }]),
  ];
  return [
    { id: 'thresholds', value: { mode: 'absolute', steps } },
    { id: 'custom.cellOptions', value: { type: 'color-text' } },
  ];
}

/** A fact about runs, from benchwatch_run_info. */
export const fact = (name: string, label: string, pixels: number): Column => ({
  name,
  label,
  show: [width(pixels), ...wrapped],
});

const of = (metric: string, ...labels: string[]): string => `max by (${['run', ...labels].join(', ')}) (${recent(metric)})`;
const ended = of('benchwatch_run_end_timestamp_seconds');
const drained = of('benchwatch_run_drain_seconds');
const active = `group by (run) (${recent('benchwatch_run_active')})`;

/**
 * Time in milliseconds when Prometheus has all series of a run: a few scrapes and
 * rule evaluations after the slowest replica has caught up. A time range that
 * ends with the tool contains no result, no summary and no drain.
 */
const complete = `round((${ended} + (${drained} or 0 * ${ended}) + 10) * 1000)`;

/** Hides a column that only the link uses, in Grafana up to 11 and in newer versions. */
const unseen: DynamicConfigValue[] = [{ id: 'custom.hidden', value: true }, set.hidden()];

/** What the link to Live run needs: a run in progress is open-ended and refreshed, a finished one is neither (Grafana ignores "off"). */
const ofLink = (() => {
  const end = `${named(named(active, 'to', 'now'), 'refresh', '10s')} or on (run) ${named(`count_values by (run) ("to", ${complete})`, 'refresh', '1d')}`;
  return `0 * (${end}) + on (run) group_left () round(${of('benchwatch_run_start_timestamp_seconds')} * 1000)`;
})();
const forLink: Column[] = [
  { name: 'From', expr: ofLink, show: [set.unit(unit.time), ...unseen] },
  { name: 'To', label: 'to', expr: ofLink, show: unseen },
  { name: 'Refresh', label: 'refresh', expr: ofLink, show: unseen },
];

const toLiveRun = {
  title: 'Open this run in Live run, from its start to its end',
  url: '/d/benchwatch-live-run?${datasource:queryparam}&var-run=${__data.fields.Run}&from=${__data.fields.From.numeric}&to=${__data.fields.To}&refresh=${__data.fields.Refresh}',
};

export const title: Column = {
  name: 'Title',
  label: 'title',
  show: [{ id: 'links', value: [toLiveRun] }, { id: 'custom.minWidth', value: 130 }, ...wrapped],
};

export const result: Column = {
  name: 'Result',
  label: 'result',
  expr: `${of('benchwatch_run_result', 'result')} or on (run) ${named(active, 'result', 'running')}`,
  show: [
    width(84),
    {
      id: 'mappings',
      value: [
        {
          type: 'value',
          options: Object.fromEntries(
            Object.entries({ succeeded: 'green', running: 'blue', failed: 'red', lost: 'red', interrupted: 'orange', aborted: 'orange' }).map(
              ([name, color], index) => [name, { color, index }],
            ),
          ),
        },
      ],
    },
    { id: 'custom.cellOptions', value: { type: 'color-text' } },
  ],
};

export const exitStatus: Column = {
  name: 'Exit',
  expr: of('benchwatch_run_exit_code'),
  show: [set.decimals(0), width(48), ...colored({ warning: 1 })],
};

/** Why a run failed, in words. Without a failed run there is no such column. */
export const reason: Column = {
  name: 'Reason',
  label: 'reason',
  expr: of('benchwatch_run_failure_info', 'reason'),
  show: [{ id: 'custom.minWidth', value: 150 }, ...wrapped],
};

export const duration: Column = {
  name: 'Duration',
  expr: `${of('benchwatch_run_summary_duration_seconds')} or on (run) ${of('benchwatch_run_elapsed_seconds')}`,
  show: [set.unit(unit.clock), width(78)],
};

export const planned: Column = {
  name: 'Planned',
  expr: of('benchwatch_run_requested_duration_seconds'),
  show: [set.unit(unit.clock), width(78)],
};

/** Flavour and number of the version of the run's servers; one of them if they differ. */
const versions = `group by (cluster, target, flavour, version) (label_replace(${inRange('benchwatch_db_info')}, "version", "$1", "version", "([0-9.]+).*"))`;
/** As wide as there is room for: the members of a replica set are long. */
export const target: Column = { ...fact('Target', 'target', 0), show: [{ id: 'custom.minWidth', value: 122 }] };

export const serverVersion: Column = {
  name: 'Servers',
  label: 'servers',
  expr: `label_join(topk by (run) (1, group by (run, flavour, version) (group by (run, cluster, target) (${inRange(`benchwatch_run_target_info{${runs}}`)}) * on (cluster, target) group_left (flavour, version) ${versions})), "servers", " ", "flavour", "version")`,
  show: [{ id: 'custom.minWidth', value: 96 }, ...wrapped],
};

export const drainOfRun: Column = { name: 'Drain', expr: drained, show: [set.unit(unit.seconds), set.decimals(1), width(78)] };

export interface Table {
  title: string;
  description: string;
  noData: string;
  span: number;
  height: number;
  columns: Column[];
  /** Restricts each column's vector. */
  only: (expr: string) => string;
}

const letter = (index: number): string => String.fromCharCode('A'.charCodeAt(0) + index);

/** One row per run, the newest first. */
export function table(o: Table): AnyPanel {
  const columns = [...o.columns, ...forLink];
  const facts = columns.filter((c) => c.expr === undefined).map((c) => c.label ?? '');
  const source = (c: Column): string => c.expr ?? of('benchwatch_run_info', ...facts);
  const queries = [...new Set(columns.map(source))];
  const field = (c: Column): string => c.label ?? `Value #${letter(queries.indexOf(source(c)))}`;
  const values = queries.map((_, i) => `Value #${letter(i)}`).filter((value) => !columns.some((c) => field(c) === value));
  const panel = new TableBuilder()
    .title(o.title)
    .description(`${o.description} Columns: ${o.columns.map((c) => c.name).join(', ')}.`)
    .datasource(datasource)
    .targets(queries.map((expr, i) => build(rows(o.only(expr)), i)))
    .unit(unit.none)
    .noValue(o.noData)
    .cellHeight(TableCellHeight.Sm)
    .sortBy([new TableSortByFieldStateBuilder().displayName('From').desc(true)])
    .transformations([
      { id: 'merge', options: {} },
      {
        id: 'organize',
        options: {
          excludeByName: Object.fromEntries(['Time', 'flavour', 'version', 'op', 'stat', ...values].map((name) => [name, true])),
          indexByName: Object.fromEntries([...columns.map(field), 'run'].map((name, i) => [name, i])),
          renameByName: Object.fromEntries([...columns.map((c) => [field(c), c.name]), ['run', 'Run']]),
        },
      },
    ])
    .span(o.span)
    .height(o.height);
  for (const c of columns) panel.overrideByName(c.name, c.show);
  panel.overrideByName('Run', unseen);
  return panel;
}

/** Which run this is, on one line. */
export const facts = (span: number): AnyPanel =>
  table({
    title: 'This run',
    description:
      "What runs: title, tool, workload, client threads, target and the servers' version; its time so far and the planned time; result, and of a failed run the reason. The title links to the run from its start to its end. From benchwatch_run_info, benchwatch_db_info, benchwatch_run_elapsed_seconds, benchwatch_run_requested_duration_seconds and benchwatch_run_failure_info.",
    noData: '–',
    span,
    height: 4,
    only: (expr) => expr,
    columns: [
      title,
      result,
      reason,
      fact('Tool', 'tool', 80),
      { ...fact('Version', 'tool_version', 70) },
      fact('Workload', 'workload', 130),
      fact('Threads', 'threads', 76),
      target,
      serverVersion,
      duration,
      planned,
    ],
  });
