// The parts that all dashboards share: variables, annotations, links, time ranges.

import type * as cog from '@grafana/grafana-foundation-sdk/cog';
import {
  AnnotationQueryBuilder,
  AnnotationTargetBuilder,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { AnyPanel } from './panel';
import { datasource } from './query';

export interface Page {
  /** File name without .json; the uid is benchwatch-<name>. */
  name: string;
  title: string;
  description: string;
  /** A row starts a section. Its panels follow in reading order. */
  content: (AnyPanel | RowBuilder)[];
  /** The page's variables, in addition to the data source. */
  variables: ('cluster' | 'target' | 'run')[];
  from?: string;
  refresh?: string;
  extraVariables?: cog.Builder<VariableModel>[];
}

const all = { selected: true, text: 'All', value: '$__all' };

function fromLabel(name: string, label: string, description: string, query: string, sort: VariableSort): cog.Builder<VariableModel> {
  return new QueryVariableBuilder(name)
    .label(label)
    .description(description)
    .datasource(datasource)
    .query({ qryType: 1, query, refId: name })
    .definition(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(sort)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current(all);
}

const variables = {
  cluster: () =>
    fromLabel(
      'cluster',
      'Cluster',
      'Groups of targets that replicate from each other.',
      'label_values(benchwatch_db_up, cluster)',
      VariableSort.AlphabeticalAsc,
    ),
  target: () =>
    fromLabel(
      'target',
      'Target',
      'Servers that the agent samples.',
      'label_values(benchwatch_db_up{cluster=~"$cluster"}, target)',
      VariableSort.AlphabeticalAsc,
    ),
  run: () => fromLabel('run', 'Run', 'Benchmark runs, newest first.', 'label_values(benchwatch_run_info, run)', VariableSort.AlphabeticalDesc),
};

/** Annotations at the times that the series have as values, in milliseconds. `shown` adds a toggle. */
function seriesAnnotation(name: string, color: string, expr: string, title: string, text: string, shown: boolean): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(datasource)
    .enable(true)
    .hide(!shown)
    .iconColor(color)
    .expr(expr)
    .step('5s')
    .titleFormat(title)
    .textFormat(text)
    .useValueForTime(true);
}

const at = (metric: string, edge: string): string => `label_replace(${metric}{run=~"$run"} * 1000, "edge", "${edge}", "", "")`;

/** Annotations of one kind that the agent sent to Grafana. `shown` adds a toggle with the initial state `on`. */
function grafanaAnnotation(name: string, color: string, kind: 'run' | 'point' | 'alert', shown: boolean, on = true): AnnotationQueryBuilder {
  // The SDK types an annotation's target as a query of a data source; Grafana's
  // own annotations are selected by tags instead.
  const tagged = new AnnotationTargetBuilder()
    .type('tags')
    .tags(['benchwatch', `kind:${kind}`])
    .matchAny(false)
    .limit(200);
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource({ type: 'grafana', uid: '-- Grafana --' })
    .enable(on)
    .hide(!shown)
    .iconColor(color)
    .target(tagged as unknown as cog.Builder<cog.Dataquery>);
}

/** Matchers for series that may lack the label: an alert of a cluster has no run. */
const ifPresent = (labels: Page['variables']): string => labels.map((label) => `, ${label}=~"$${label}|"`).join('');

const annotations = (page: Page): AnnotationQueryBuilder[] => [
  grafanaAnnotation('Runs (Grafana)', 'blue', 'run', true),
  grafanaAnnotation('Markers (Grafana)', 'purple', 'point', false),
  // Grafana fills these regions, and several at once would hide the curves: off by default.
  grafanaAnnotation('Alerts (Grafana)', 'red', 'alert', true, false),
  seriesAnnotation(
    'Run start and end',
    'semi-dark-blue',
    `${at('benchwatch_run_start_timestamp_seconds', 'started')} or ${at('benchwatch_run_end_timestamp_seconds', 'ended')}`,
    '{{run}} {{edge}}',
    '',
    false,
  ),
  // A marker without a run has an empty label.
  seriesAnnotation('Markers', 'purple', 'benchwatch_marker_timestamp_seconds{run=~"$run|"} * 1000', '{{text}}', '{{run}}', true),
  // A line at the time when the condition of a firing alert became true.
  seriesAnnotation(
    'Firing alerts',
    'red',
    `max by (alertname, severity, run, cluster, target, instance) ((ALERTS_FOR_STATE{source="benchwatch", severity=~"critical|warning"${ifPresent(page.variables)}} and ignoring (alertstate) ALERTS{alertstate="firing"}) * 1000)`,
    '{{alertname}}',
    '{{severity}} {{run}} {{cluster}} {{target}} {{instance}}',
    true,
  ),
];

export function dashboard(page: Page): Dashboard {
  const builder = new DashboardBuilder(page.title)
    .uid(`benchwatch-${page.name}`)
    .description(page.description)
    .tags(['benchwatch'])
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .time({ from: page.from ?? 'now-15m', to: 'now' })
    .refresh(page.refresh ?? '5s')
    .timezone('browser')
    .link(
      new DashboardLinkBuilder('benchwatch')
        .type(DashboardLinkType.Dashboards)
        .tags(['benchwatch'])
        .asDropdown(true)
        .includeVars(true)
        .keepTime(true)
        .icon('external link')
        .tooltip('Other benchwatch dashboards, with the same time range and variables.'),
    )
    .withVariable(new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'));
  for (const name of page.variables) builder.withVariable(variables[name]());
  for (const variable of page.extraVariables ?? []) builder.withVariable(variable);
  for (const annotation of annotations(page)) builder.annotation(annotation);
  for (const item of page.content) {
    if (item instanceof RowBuilder) builder.withRow(item);
    else builder.withPanel(item);
  }
  const built = builder.build();
  // The schema of the oldest supported Grafana version (11, 12, 13). Newer
  // versions migrate it on load.
  built.schemaVersion = 39;
  (built.panels ?? []).forEach((panel, index) => {
    panel.id = index + 1;
  });
  return built;
}
