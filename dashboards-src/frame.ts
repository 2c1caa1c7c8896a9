// The parts that all dashboards share: variables, annotations, links, time ranges.

import type * as cog from '@grafana/grafana-foundation-sdk/cog';
import {
  AnnotationQueryBuilder,
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
import { inRange, named, ofRunClusters, ofRunHosts, ofRunServers, recent, runs } from './metrics';
import { color } from './palette';
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
  variables: ('cluster' | 'target' | 'run' | 'runs')[];
  from?: string;
  refresh?: string;
  extraVariables?: cog.Builder<VariableModel>[];
  /** Draw firing alerts from the beginning. */
  alerts?: boolean;
}

const all = { selected: true, text: 'All', value: '$__all' };

function query(name: string, label: string, description: string, text: string): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(label)
    .description(description)
    .datasource(datasource)
    .query({ qryType: text.startsWith('query_result') ? 3 : 1, query: text, refId: name })
    .definition(text)
    .refresh(VariableRefresh.OnTimeRangeChanged);
}

/** A variable with the values of a label, or All. */
export const fromLabel = (name: string, label: string, description: string, text: string): QueryVariableBuilder =>
  query(name, label, description, text).sort(VariableSort.AlphabeticalAsc).multi(true).includeAll(true).allValue('.*').current(all);

/**
 * A variable with runs, shown by their titles: running ones first, then the
 * newest. `preferred` matches runs that come before all others, `none` adds a
 * first entry for no run, `having` leaves those without a metric out.
 */
export function fromRuns(
  name: string,
  label: string,
  description: string,
  o: { matchers?: string; preferred?: string; none?: boolean; having?: string } = {},
): QueryVariableBuilder {
  const has = o.having ? ` and on (run) last_over_time(${o.having}[$__range])` : '';
  const info = (matchers: string) =>
    has
      ? `(max by (run, title) (last_over_time(benchwatch_run_info{${matchers}}[$__range]))${has})`
      : `max by (run, title) (last_over_time(benchwatch_run_info{${matchers}}[$__range]))`;
  const start = 'max by (run) (last_over_time(benchwatch_run_start_timestamp_seconds[$__range]))';
  const first = (expr: string) => `on (run) group_left () (1e11 * ${expr} or 0 * ${start})`;
  let order = `${info(o.matchers ?? '')} * on (run) group_left () ${start} + ${first('max by (run) (benchwatch_run_active == 1)')}`;
  if (o.preferred) order = `${order} + ${first(`10 * max by (run) (${info(o.preferred)})`)}`;
  if (o.none) order = `${order} or ${named(named('vector(1e13)', 'run', 'none'), 'title', 'none')}`;
  return query(name, label, description, `query_result(sort_desc(${order}))`)
    .regex('/run="(?<value>[^"]+)".*title="(?<text>[^"]+)"/')
    .sort(VariableSort.Disabled);
}

/** The clusters and targets of the selected runs; all of them if no run is selected. */
const ofRuns = '__name__=~"benchwatch_run_target_info|benchwatch_db_up", run=~"$run"';

const variables = {
  cluster: () => fromLabel('cluster', 'Cluster', 'Groups of targets that replicate from each other.', `label_values({${ofRuns}}, cluster)`),
  target: () =>
    fromLabel(
      'target',
      'Target',
      "Servers that the agent samples. With a run selected, only that run's.",
      `label_values({${ofRuns}, cluster=~"$cluster"}, target)`,
    ),
  run: () =>
    fromRuns('run', 'Run', 'Benchmark runs, newest first. Panels show only the servers and hosts of the selected runs.')
      .multi(true)
      .includeAll(true)
      .allValue('.*')
      .current(all),
  /** One run or several, but not all: initially the run in progress, otherwise the newest. */
  runs: () => fromRuns('run', 'Run', 'Benchmark runs, running and newest ones first. Panels show only their servers and hosts.').multi(true),
};

interface Marks {
  name: string;
  color: string;
  expr: string;
  title: string;
  text: string;
  on: boolean;
  /** Without a switch. */
  hidden?: boolean;
  /** The values are times in milliseconds. Otherwise a region extends over the time at which the series has a value. */
  at?: boolean;
}

// All marks are from Prometheus, which always exists and can select them by run.
// Grafana's own annotations would draw each of them once more.
const marks = (o: Marks): AnnotationQueryBuilder =>
  new AnnotationQueryBuilder()
    .name(o.name)
    .datasource(datasource)
    .enable(o.on)
    .hide(o.hidden ?? false)
    .iconColor(o.color)
    .expr(o.expr)
    .step('1s')
    .titleFormat(o.title)
    .textFormat(o.text)
    .useValueForTime(o.at ?? false);

/**
 * Joins labels to one, "about". Grafana prints the name of a label that is
 * missing, and labels without a value are missing.
 */
const about = (expr: string, ...labels: string[]): string => `label_join(${expr}, "about", " ", ${labels.map((l) => `"${l}"`).join(', ')})`;

const described = (expr: string): string =>
  about(
    `(${expr}) * on (run) group_left (title, tool, workload, target) group by (run, title, tool, workload, target) (${recent('benchwatch_run_info')})`,
    'tool',
    'workload',
    'target',
    'run',
  );

const firing = (matchers: string): string =>
  `(ALERTS_FOR_STATE{source="benchwatch", severity=~"critical|warning"${matchers && `, ${matchers}`}} and ignoring (alertstate) ALERTS{alertstate="firing"})`;

/** Alerts that another one with the same cause makes superfluous, and the labels that both have. */
const consequences: { alert: string; cause: string; on: string }[] = [
  { alert: 'ReplicationLagGrowing', cause: 'alertname="ReplicationLagHigh"', on: ', cluster, target' },
  { alert: 'GaleraFlowControlHigh', cause: 'alertname="GaleraFlowControlCritical"', on: ', cluster' },
  { alert: 'HostCPUSaturated', cause: 'alertname="GeneratorSaturated"', on: ', run, nodename' },
];

/** The firing alerts of the selected runs, of their clusters, servers and hosts; with All also those of nothing that is sampled. */
const alerts = (() => {
  const own = [
    firing(runs),
    ofRunServers(firing('run="", target!=""')),
    ofRunClusters(firing('run="", cluster!="", target=""')),
    ofRunHosts(firing('run="", nodename!=""')),
  ].join(' or ');
  const superfluous = consequences.map(
    ({ alert, cause, on }) => ` unless on (alertname${on}) ${named(inRange(`ALERTS{alertstate="firing", ${cause}}`), 'alertname', alert)}`,
  );
  const labels = ['severity', 'run', 'cluster', 'target', 'nodename'];
  return about(`max by (alertname, ${labels.join(', ')}) ((${own})${superfluous.join('')})`, ...labels);
})();

const annotations = (page: Page): AnnotationQueryBuilder[] => [
  marks({
    name: 'Runs',
    color: 'green',
    expr: described(`max by (run) (${recent('benchwatch_run_active')} == 1)`),
    title: '{{title}}',
    text: '{{about}}',
    on: true,
    hidden: true,
  }),
  marks({
    name: 'Drain',
    color: color('drain'),
    expr: described(`1 + max by (run) (${recent('benchwatch_run_active')} == 0)`),
    title: 'Drain: {{title}}',
    text: 'Replicas catch up after the end. {{about}}',
    on: true,
    hidden: true,
  }),
  // A marker without a run has an empty label.
  marks({
    name: 'Markers',
    color: color('marker'),
    expr: about('max by (text, run) (benchwatch_marker_timestamp_seconds{run=~"$run|"}) * 1000', 'run'),
    title: '{{text}}',
    text: '{{about}}',
    on: true,
    at: true,
  }),
  // A line at the time when the condition of a firing alert became true.
  marks({ name: 'Alerts', color: 'red', expr: `${alerts} * 1000`, title: '{{alertname}}', text: '{{about}}', on: page.alerts ?? false, at: true }),
];

export function dashboard(page: Page): Dashboard {
  const builder = new DashboardBuilder(page.title)
    .uid(`benchwatch-${page.name}`)
    .description(page.description)
    .tags(['benchwatch'])
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .time({ from: page.from ?? 'now-15m', to: 'now' })
    .refresh(page.refresh ?? '10s')
    .timezone('browser')
    .link(
      new DashboardLinkBuilder('Dashboards')
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
  const every = (built.panels ?? []).flatMap((panel) => ('panels' in panel ? [panel, ...(panel.panels ?? [])] : [panel]));
  every.forEach((panel, index) => {
    panel.id = index + 1;
  });
  return built;
}
