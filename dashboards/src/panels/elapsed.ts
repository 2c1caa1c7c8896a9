// Charts whose x axis is not time: elapsed seconds, threads.

import {
  GraphDrawStyle,
  LegendDisplayMode,
  LegendPlacement,
  SortOrder,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import type { DataTransformerConfig } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as TrendBuilder } from '@grafana/grafana-foundation-sdk/trend';
import { runs } from '../metrics';
import { type AnyPanel, set, unit } from '../panel';
import { build, datasource, type Query, rows, samples } from '../query';

interface Chart {
  title: string;
  description: string;
  queries: Query[];
  transformations: DataTransformerConfig[];
  /**
   * Name of the field on the x axis. Without data Grafana shows "Unable to find
   * field: …", so the name describes what is missing.
   */
  x: string;
  xUnit: string;
  xLabel: string;
  yUnit: string;
  points: VisibilityMode;
}

/** Lines over an x axis that is not time. */
function chart(o: Chart): AnyPanel {
  return new TrendBuilder()
    .title(o.title)
    .description(o.description)
    .datasource(datasource)
    .targets(o.queries.map((q, i) => build(q, i)))
    .maxDataPoints(11000)
    .transformations(o.transformations)
    .unit(o.yUnit)
    .noValue(`Unable to find field: ${o.x}`)
    .min(0)
    .xField(o.x)
    .drawStyle(GraphDrawStyle.Line)
    .lineWidth(1)
    .fillOpacity(0)
    .showPoints(o.points)
    .pointSize(7)
    .spanNulls(true)
    .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(true).calcs([]))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .overrideByName(o.x, [set.unit(o.xUnit), { id: 'custom.axisLabel', value: o.xLabel }])
    .span(12)
    .height(10);
}

/** Turns rows of x, y and the name of a line into one column per line. */
function columnPerLine(x: string, xColumn: string, yColumn: string, lineColumn: string): DataTransformerConfig[] {
  return [
    { id: 'groupingToMatrix', options: { columnField: lineColumn, rowField: xColumn, valueField: yColumn, emptyValue: 'null' } },
    { id: 'convertFieldType', options: { conversions: [{ targetField: `${xColumn}\\${lineColumn}`, destinationType: 'number' }], fields: {} } },
    { id: 'organize', options: { excludeByName: {}, indexByName: {}, renameByName: { [`${xColumn}\\${lineColumn}`]: x } } },
    { id: 'sortBy', options: { fields: {}, sort: [{ field: x }] } },
  ];
}

/** One line per run over elapsed seconds, which are samples themselves: no time shift is needed. */
export function overElapsed(title: string, yUnit: string, expr: string, description: string, matchers = runs): AnyPanel {
  const x = 'Elapsed time of a run in this time range';
  return chart({
    title,
    description,
    yUnit,
    x,
    xUnit: unit.seconds,
    xLabel: 'elapsed',
    queries: [samples(`floor(max by (run) (benchwatch_run_elapsed_seconds{${matchers}}))`), samples(expr)],
    transformations: [{ id: 'merge', options: {} }, ...columnPerLine(x, 'Value #A', 'Value #B', 'run')],
    points: VisibilityMode.Never,
  });
}

/** One line per workload, tool and target: the scaling chart of benchmark reports. */
export function overThreads(title: string, yUnit: string, expr: string, description: string, ofFinished: (expr: string) => string): AnyPanel {
  const facts = 'threads, tool, workload, target';
  const x = 'Threads of a finished run in this time range';
  const named = `label_join((${expr}) * on (run) group_left (${facts}) max by (run, ${facts}) (benchwatch_run_info{threads!="", ${runs}}), "line", " ", "tool", "workload", "target")`;
  return chart({
    title,
    description,
    yUnit,
    x,
    xUnit: unit.none,
    xLabel: 'threads',
    queries: [rows(`avg by (threads, line) (${ofFinished(named)})`)],
    transformations: columnPerLine(x, 'threads', 'Value', 'line'),
    points: VisibilityMode.Always,
  });
}
