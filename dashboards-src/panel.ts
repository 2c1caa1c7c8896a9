// The kinds of panels that the dashboards use, each with one style. Every panel
// states the source of its values, which values are good, and why there may be
// no data.

import type * as cog from '@grafana/grafana-foundation-sdk/cog';
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  GraphDrawStyle,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  ScaleDistribution,
  ScaleDistributionConfigBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizOrientation,
  VizTextDisplayOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import { type DynamicConfigValue, type Panel, RowBuilder, type ValueMapping } from '@grafana/grafana-foundation-sdk/dashboard';
import type { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimelineBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as GraphBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { inRange, inRangeOfRunClusters, inRangeOfRunServers, isOverRange } from './metrics';
import { build, datasource, type Query } from './query';
import { type Limits, neutral, thresholds } from './threshold';

export type AnyPanel = cog.Builder<Panel>;

/** Grafana's unit ids, by the quantity that they measure. */
export const unit = {
  perSecond: 'ops',
  transactions: 'suffix: tps',
  perMinute: 'suffix: tpmC',
  events: 'cps',
  seconds: 's',
  clock: 'dthms',
  time: 'dateTimeAsIso',
  share: 'percentunit',
  count: 'short',
  /** All digits, for tiles. */
  digits: 'locale',
  bytes: 'bytes',
  bytesPerSecond: 'Bps',
  cores: 'suffix: cores',
  none: 'none',
} as const;

export interface Common {
  title: string;
  /** What the panel shows, which values are good, and the source metric. */
  description: string;
  unit: string;
  /** Shown instead of a bare "No data"; in a chart of a run's values, with the other possible reason (see reasons). */
  noData: string;
  /** Width in columns of 24, height in rows. */
  span: number;
  height?: number;
  limits?: Limits;
  overrides?: { series: string | RegExp; set: DynamicConfigValue[] }[];
}

export interface Stat extends Common {
  queries: Query[];
  decimals?: number;
  mappings?: ValueMapping[];
  /** Fill the tile with the threshold's colour. */
  filled?: boolean;
  /** By default the value with its name, which says whether it is of now or of the whole run. */
  text?: BigValueTextMode;
  /** Arrange the values vertically. */
  stacked?: boolean;
  /** Font size of the value in pixels, for tiles that are large for their text. */
  valueSize?: number;
}

/** A large single value. */
export function stat(o: Stat): AnyPanel {
  const panel = new StatBuilder()
    .title(o.title)
    .description(o.description)
    .datasource(datasource)
    .targets(o.queries.map((q, i) => build(q, i)))
    .unit(o.unit)
    .noValue(o.noData)
    .min(0)
    .thresholds(thresholds(o.limits ?? neutral))
    .colorMode(o.filled ? BigValueColorMode.BackgroundSolid : BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.None)
    .justifyMode(BigValueJustifyMode.Auto)
    .orientation(o.stacked ? VizOrientation.Horizontal : VizOrientation.Auto)
    .text(textSize(o))
    .textMode(o.text ?? BigValueTextMode.ValueAndName)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).fields('').values(false))
    .span(o.span)
    .height(o.height ?? 5);
  if (o.decimals !== undefined) panel.decimals(o.decimals);
  // As many points as Prometheus gives at most: two seconds apart in six hours, so that a total of a short run is right.
  if (o.queries.some((q) => isOverRange(q.expr))) panel.maxDataPoints(11000);
  panel.mappings([...(o.mappings ?? []), nothing(o)]);
  overrides(panel, o);
  return panel;
}

function textSize(o: Stat): VizTextDisplayOptionsBuilder {
  const text = new VizTextDisplayOptionsBuilder().titleSize(13);
  return o.valueSize === undefined ? text : text.valueSize(o.valueSize);
}

/** The no-data text in a neutral colour: an absent value is neither good nor bad. */
function nothing(o: Stat): ValueMapping {
  return { type: 'special', options: { match: 'null', result: { text: o.noData, color: o.filled ? '#6e7077' : 'text' } } } as ValueMapping;
}

/** Graphs have no `decimals`: Grafana would drop all ticks that the rounding makes equal. */
export interface Graph extends Common {
  queries: Query[];
  stacked?: boolean;
  /** Maximum of the axis, if the quantity has one. */
  max?: number;
  /** The axis reaches at least to this value, so that noise near zero looks like noise. */
  softMax?: number;
  /** Logarithmic axis, for latencies and queues: one outlier would flatten the rest. */
  log?: boolean;
  /** The values are percentiles, which have no mean. */
  percentiles?: boolean;
  /** Do not start the axis at zero, for values that may be negative. */
  signed?: boolean;
  /** Draw the thresholds, which are the alerts' limits, as lines. */
  showLimits?: boolean;
}

/** Where an axis ends at least, for units whose usual values are near zero. */
const softMax: Record<string, number> = {
  [unit.perSecond]: 1,
  [unit.transactions]: 1,
  [unit.events]: 1,
  [unit.count]: 1,
  [unit.none]: 1,
  [unit.share]: 0.01,
  [unit.bytesPerSecond]: 1000,
};

/** Width of the axis in pixels. It is the same everywhere, so that panels below each other have the same time axis. */
export const axisWidth = 76;

/** A legend with numbers. A mean of percentiles would mean nothing. */
export const numbers = (percentiles = false): VizLegendOptionsBuilder =>
  new VizLegendOptionsBuilder()
    .displayMode(LegendDisplayMode.Table)
    .placement(LegendPlacement.Bottom)
    .showLegend(true)
    .calcs([...(percentiles ? [] : ['mean']), 'max', 'lastNotNull']);

/** Latencies are above zero. What may be zero is linear up to 1; with a lower threshold Grafana would label "-1 ms". */
export const logarithmic = (latencies: boolean): ScaleDistributionConfigBuilder =>
  latencies
    ? new ScaleDistributionConfigBuilder().type(ScaleDistribution.Log).log(10)
    : new ScaleDistributionConfigBuilder().type(ScaleDistribution.Symlog).log(10).linearThreshold(1);

/**
 * Why a chart has no data. In a range of hours its points are minutes apart, and a
 * run may lie between two of them.
 */
const reasons = (o: { noData: string; queries: Query[] }, tooShort: string): string =>
  o.queries.some((q) => q.expr.includes('$run"')) ? o.noData + tooShort : o.noData;

/** Lines over time. */
export function graph(o: Graph): AnyPanel {
  const panel = new GraphBuilder()
    .title(o.title)
    .description(o.description)
    .datasource(datasource)
    .targets(o.queries.map((q, i) => build(q, i)))
    .unit(o.unit)
    .noValue(reasons(o, '; or the run is too short for this time range'))
    .drawStyle(GraphDrawStyle.Line)
    .lineWidth(1)
    .fillOpacity(o.stacked ? 40 : 5)
    .showPoints(VisibilityMode.Auto)
    .pointSize(4)
    .spanNulls(false)
    .axisWidth(axisWidth)
    .legend(numbers(o.percentiles))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .span(o.span)
    .height(o.height ?? 9);
  const latencies = o.log === true && o.percentiles === true;
  if (!o.signed && !latencies) panel.min(0);
  const soft = o.softMax ?? (o.max === undefined ? softMax[o.unit] : undefined);
  if (o.max !== undefined) panel.max(o.max);
  else if (soft !== undefined) panel.axisSoftMax(soft);
  if (o.log) panel.scaleDistribution(logarithmic(latencies));
  if (o.stacked) panel.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'));
  if (o.limits) {
    panel.thresholds(thresholds({ ...o.limits, base: 'transparent' }));
    panel.thresholdsStyle(
      new GraphThresholdsStyleConfigBuilder().mode(o.showLimits === false ? GraphThresholdsStyleMode.Off : GraphThresholdsStyleMode.Dashed),
    );
  }
  overrides(panel, o);
  return panel;
}

export interface Timeline extends Common {
  queries: Query[];
  mappings: ValueMapping[];
}

/** A value that no state uses. */
const NOTHING = -1;

/**
 * A series with the value NOTHING if the queries return no data in the time range.
 * Without it Grafana's state timeline shows "Data does not have a time field"
 * instead of the no-data text. The queries' metrics are looked up anew: Prometheus
 * finds nothing by an @ modifier within another one.
 */
function reasonQuery(queries: Query[]): DataqueryBuilder {
  const any = queries.map((q) => {
    const [metric = ''] = /\b(benchwatch|haproxy|proxysql|up)[a-z_]*(\{[^}]*\})?/.exec(q.expr) ?? [];
    const found = inRange(metric);
    if (metric.startsWith('up')) return found;
    if (metric.startsWith('benchwatch_run_')) return found; // it has the label of the run
    return metric.startsWith('benchwatch_') ? inRangeOfRunServers(metric) : inRangeOfRunClusters(metric);
  });
  return build(
    { expr: `vector(${NOTHING}) unless on () group(${any.join(' or ')})`, legend: '–', source: queries[0]?.source ?? 'agent', kind: 'range' },
    0,
  ).refId('Reason');
}

/** States over time, one line per server. */
export function timeline(o: Timeline): AnyPanel {
  const noData = reasons(o, ', or too short a run');
  const panel = new TimelineBuilder()
    .title(o.title)
    .description(o.description)
    .datasource(datasource)
    .targets([...o.queries.map((q, i) => build(q, i)), reasonQuery(o.queries)])
    .unit(o.unit)
    .noValue(noData)
    .min(0)
    .decimals(0)
    .mappings([...o.mappings, ...states({ [NOTHING]: { text: noData, color: 'transparent' } })])
    .thresholds(thresholds(o.limits ?? neutral))
    .showValue(VisibilityMode.Auto)
    .mergeValues(true)
    .rowHeight(0.8)
    .disablePagination()
    .lineWidth(0)
    .fillOpacity(75)
    .legend(new VizLegendOptionsBuilder().displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).showLegend(false).calcs([]))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Single).sort(SortOrder.None))
    .span(o.span)
    .height(o.height ?? 9);
  overrides(panel, o);
  return panel;
}

export const row = (title: string): RowBuilder => new RowBuilder(title);

/** A row that is closed until it is opened, for what only some systems have. Its panels are not queried until then. */
export const closedRow = (title: string, ...panels: AnyPanel[]): RowBuilder => {
  const closed = new RowBuilder(title).collapsed(true);
  for (const panel of panels) closed.withPanel(panel);
  return closed;
};

/** A row for each selected run, named by its title. Within it $run is that run alone. */
export const rowPerRun = (): RowBuilder => new RowBuilder('${run:text}').repeat('run');

/** Maps the values of an expression to names and colours. */
export function states(of: Record<string, { text: string; color: string }>): ValueMapping[] {
  const options = Object.fromEntries(Object.entries(of).map(([value, shown], index) => [value, { ...shown, index }]));
  return [{ type: 'value', options } as ValueMapping];
}

interface Overridable {
  overrideByName(name: string, properties: DynamicConfigValue[]): unknown;
  overrideByRegexp(regexp: string, properties: DynamicConfigValue[]): unknown;
}

export function overrides(panel: Overridable, o: Common): void {
  for (const { series, set } of o.overrides ?? []) {
    if (typeof series === 'string') panel.overrideByName(series, set);
    else panel.overrideByRegexp(String(series), set);
  }
}

/** Field properties, for overrides. */
export const set = {
  unit: (value: string): DynamicConfigValue => ({ id: 'unit', value }),
  decimals: (value: number): DynamicConfigValue => ({ id: 'decimals', value }),
  bold: (): DynamicConfigValue => ({ id: 'custom.lineWidth', value: 2 }),
  steps: (): DynamicConfigValue => ({ id: 'custom.lineInterpolation', value: 'stepAfter' }),
  limits: (of: { warning?: number; critical?: number }): DynamicConfigValue => ({
    id: 'thresholds',
    value: {
      mode: 'absolute',
      steps: [
        { value: null, color: 'green' },
        ...(of.warning === undefined ? [] : [{ value: of.warning, color: 'orange' }]),
        ...(of.critical === undefined ? [] : [{ value: of.critical, color: 'red' }]),
      ],
    },
  }),
  color: (fixedColor: string): DynamicConfigValue => ({ id: 'color', value: { mode: 'fixed', fixedColor } }),
  dashed: (): DynamicConfigValue => ({ id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 6] } }),
  hiddenAxis: (): DynamicConfigValue => ({ id: 'custom.axisPlacement', value: 'hidden' }),
  noFill: (): DynamicConfigValue => ({ id: 'custom.fillOpacity', value: 0 }),
  hidden: (): DynamicConfigValue => ({ id: 'custom.hideFrom', value: { legend: true, tooltip: true, viz: true } }),
};
