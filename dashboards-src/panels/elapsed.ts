// Charts whose x axis is not time: elapsed seconds, threads.

import {
  GraphDrawStyle,
  LegendDisplayMode,
  LegendPlacement,
  ScaleDistribution,
  SortOrder,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import type { DataTransformerConfig, DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import type { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as TrendBuilder } from '@grafana/grafana-foundation-sdk/trend';
import { lined, runs } from '../metrics';
import { type AnyPanel, axisWidth, logarithmic, numbers, set, unit } from '../panel';
import { build, datasource, type Query, rows, samples } from '../query';

interface Chart {
  title: string;
  description: string;
  queries: Query[];
  /** What is missing, if there is nothing to draw. */
  noData: string;
  /** Name of the field on the x axis, and the column that it is made of. */
  x: string;
  xColumn: string;
  yColumn: string;
  xProperties: DynamicConfigValue[];
  yUnit: string;
  points: VisibilityMode;
}

/** Lines over an x axis that is not time. Seconds are latencies: percentiles on a logarithmic axis. */
function chart(o: Chart): TrendBuilder {
  const latency = o.yUnit === unit.seconds;
  const panel = new TrendBuilder()
    .title(o.title)
    .description(o.description)
    .datasource(datasource)
    .targets([...o.queries.map((q, i) => build(q, i)), emptyRow(o.xColumn)])
    .maxDataPoints(1000)
    .transformations(columnPerLine(o.x, o.xColumn, o.yColumn))
    .unit(o.yUnit)
    .noValue(o.noData)
    .axisWidth(axisWidth)
    .xField(o.x)
    .drawStyle(GraphDrawStyle.Line)
    .lineWidth(1)
    .fillOpacity(0)
    .showPoints(o.points)
    .pointSize(7)
    .spanNulls(true)
    .legend(numbers(latency))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .overrideByName(o.x, o.xProperties)
    .span(12)
    .height(12);
  if (latency) panel.scaleDistribution(logarithmic(true));
  else panel.min(0);
  return panel;
}

/** The line of the row that emptyRow adds. */
const NO_LINE = 'none';

/**
 * A row that is removed again. Without any row there is no field for the x axis, and Grafana's trend panel
 * shows "Unable to find field" instead of the no-data text.
 */
function emptyRow(xColumn: string): DataqueryBuilder {
  const row = `label_replace(vector(0), "line", "${NO_LINE}", "", "")`;
  return build(rows(/^\w+$/.test(xColumn) ? `label_replace(${row}, "${xColumn}", "1", "", "")` : row), 0).refId('Empty');
}

/** Turns rows of x, y and the name of a line into one column per line. */
function columnPerLine(x: string, xColumn: string, yColumn: string): DataTransformerConfig[] {
  const none = { fieldName: 'line', config: { id: 'equal', options: { value: NO_LINE } } };
  return [
    { id: 'merge', options: {} },
    { id: 'filterByValue', options: { filters: [none], type: 'exclude', match: 'any' } },
    { id: 'groupingToMatrix', options: { columnField: 'line', rowField: xColumn, valueField: yColumn, emptyValue: 'null' } },
    { id: 'convertFieldType', options: { conversions: [{ targetField: `${xColumn}\\line`, destinationType: 'number' }], fields: {} } },
    { id: 'organize', options: { excludeByName: {}, indexByName: {}, renameByName: { [`${xColumn}\\line`]: x } } },
    { id: 'sortBy', options: { fields: {}, sort: [{ field: x }] } },
  ];
}

const label = (value: string): DynamicConfigValue => ({ id: 'custom.axisLabel', value });

/** One line per run over elapsed seconds, which are samples themselves: no time shift is needed. */
export function overElapsed(title: string, yUnit: string, expr: string, description: string, only: (expr: string) => string): AnyPanel {
  return chart({
    title,
    description: `${description} Lines are named by title and threads.`,
    yUnit,
    noData: 'No selected run has values in this time range',
    x: 'elapsed',
    xColumn: 'Value #A',
    yColumn: 'Value #B',
    // From zero: with a single point Grafana would write NaN on the axis.
    xProperties: [
      set.unit(unit.clock),
      label('elapsed'),
      { id: 'min', value: 0 },
      { id: 'custom.scaleDistribution', value: { type: ScaleDistribution.Linear } },
    ],
    // A line without a value would fill the legend with the text for a missing field. A row
    // without a place on the axis, which a recorded series has after the run's last second,
    // would make Grafana draw no line at all.
    queries: [
      samples(lined(only(`floor(max by (run) (benchwatch_run_elapsed_seconds{${runs}})) and on (run) (${expr})`))),
      samples(lined(only(`(${expr}) and on (run) benchwatch_run_elapsed_seconds{${runs}}`))),
    ],
    // A short run may have a single point in a range of hours.
    points: VisibilityMode.Auto,
  }).pointSize(4);
}

/** One line per workload, tool and target: the scaling chart of benchmark reports. */
export function overThreads(
  title: string,
  yUnit: string,
  expr: string,
  description: string,
  only: (expr: string) => string,
  of: 'avg' | 'max',
): AnyPanel {
  const facts = 'threads, tool, workload, target';
  const named = `label_join((${expr}) * on (run) group_left (${facts}) max by (run, ${facts}) (benchwatch_run_info{threads!="", ${runs}}), "line", " ", "tool", "workload", "target")`;
  return chart({
    title,
    description,
    yUnit,
    noData: 'No selected run finished in this time range with a known number of threads',
    x: 'threads',
    xColumn: 'threads',
    yColumn: 'Value #A',
    xProperties: [
      set.unit(unit.none),
      set.decimals(0),
      label('threads, logarithmic'),
      { id: 'custom.scaleDistribution', value: { type: ScaleDistribution.Log, log: 2 } },
    ],
    queries: [rows(`${of} by (threads, line) (${only(named)})`)],
    points: VisibilityMode.Always,
  });
}

/** One line per run and operation: the share of its operations that took no longer than each bound of the histogram. Nothing is interpolated. */
export function distribution(title: string, histogram: string, description: string, only: (expr: string) => string): AnyPanel {
  const share = `max by (run, op, le) (${histogram}_bucket{le!="+Inf", ${runs}}) / on (run, op) group_left () max by (run, op) (${histogram}_count{${runs}})`;
  return chart({
    title,
    description: `${description} Lines are named by title, threads and operation.`,
    yUnit: unit.share,
    noData: 'No run that finished in this time range has a histogram: sysbench --histogram, YCSB and HdrHistogram logs have one',
    x: 'latency',
    xColumn: 'le',
    yColumn: 'Value #A',
    xProperties: [
      set.unit(unit.seconds),
      label('latency, logarithmic'),
      { id: 'custom.scaleDistribution', value: { type: ScaleDistribution.Log, log: 10 } },
    ],
    queries: [rows(`label_join(${lined(only(share))}, "line", " ", "line", "op")`)],
    points: VisibilityMode.Always,
  })
    .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(true).calcs([]))
    .span(24);
}
