// PromQL expressions that several dashboards share, so that a value means the
// same on each of them.
//
// A panel shows only the servers and hosts of the selected runs, and only while the
// runs last or their replicas drain. The sets below select them. They also contain
// metrics without a label `run`, which `run=~"$run"` matches if $run is All (.*) or
// empty: then every server and host is selected, at any time.

/** Label matchers for the selected servers. */
export const servers = 'cluster=~"$cluster", target=~"$target"';

/** Label matchers for the selected runs. */
export const runs = 'run=~"$run"';

/** The series that exist at any time of the time range, as they were last. */
export const inRange = (selector: string): string => `last_over_time(${selector}[$__range:$__interval] @ end())`;

/**
 * A metric of the selected runs as the last scrape of 10 s had it, if the present
 * one failed: a failed scrape ends all series of an agent, but no run. For tiles,
 * tables and regions; graphs show the gap.
 */
export const recent = (metric: string, matchers = ''): string => {
  const selected = `${metric}{${matchers && `${matchers}, `}${runs}}`;
  return `(${selected} or (last_over_time(${selected}[10s]) unless on (run) benchwatch_run_info))`;
};

/** The servers of the selected runs, while these last. */
const runServers = `{__name__=~"run_cluster_target:benchwatch_run_active|benchwatch_db_up", ${runs}}`;

/** Restricts a vector with the labels cluster and target to the servers of the selected runs. */
export const ofRunServers = (expr: string): string => `((${expr}) and on (cluster, target) group by (cluster, target) (${runServers}))`;

/** The same for series in the time range: to the servers that a selected run has at any time in it. */
export const inRangeOfRunServers = (metric: string): string =>
  `(${inRange(metric)} and on (cluster, target) group by (cluster, target) (${inRange(runServers)}))`;

/**
 * One value for each of the selected runs' servers and `labels`. Several agents
 * may sample a server: the largest of their values, never the sum.
 */
export const perServer = (expr: string, ...labels: string[]): string =>
  ofRunServers(`max by (${['cluster', 'target', ...labels].join(', ')}) (${expr})`);

const selector = (metric: string, matchers: string): string => `${metric}{${servers}${matchers && `, ${matchers}`}}`;

/** Values of a gauge by server. */
export const serverGauge = (gauge: string, matchers = '', ...labels: string[]): string => perServer(selector(gauge, matchers), ...labels);

/** Per-second rate of a counter by server. */
export const serverRate = (counter: string, matchers = '', ...labels: string[]): string =>
  perServer(`rate(${selector(counter, matchers)}[$__rate_interval])`, ...labels);

/** Like serverRate, over a fixed time, for tiles that show what an alert compares. */
export const serverRateOver = (range: string, counter: string, matchers = '', ...labels: string[]): string =>
  perServer(`rate(${selector(counter, matchers)}[${range}])`, ...labels);

/** Commits per second by server, from the same metrics as the measure `commits` of the page and of reports. */
export const commitRate = (matchers: string, range = '$__rate_interval'): string => {
  const rate = (counter: string) => `rate(${selector(`benchwatch_${counter}_total`, matchers)}[${range}])`;
  return perServer(`${rate('galera_local_commits')} or ${rate('db_commits')} + ${rate('db_autocommits')} or ${rate('db_commits')}`);
};

/** Legend of a server; several clusters may contain servers of the same name. */
export const server = '{{cluster}} {{target}}';

/**
 * Restricts an exporter's vector to the clusters of the selected runs. Exporters
 * know no run: the label cluster in Prometheus' targets says what they belong to.
 */
export const ofRunClusters = (expr: string): string => `((${expr}) and on (cluster) group by (cluster) (${runClusters}))`;

const runClusters = `{__name__=~"run_cluster_target:benchwatch_run_active|up", ${runs}}`;

/** The same for series in the time range: of the clusters that a selected run has at any time in it. */
export const inRangeOfRunClusters = (metric: string): string => `(${inRange(metric)} and on (cluster) group by (cluster) (${inRange(runClusters)}))`;

/** An exporter's vector, only if no agent samples any server in the whole time range. */
export const withoutAgent = (expr: string): string => `(${expr}) unless on () group(${inRange('benchwatch_db_up')})`;

/** Sets a label to a constant, for legends. */
export const named = (expr: string, label: string, value: string): string => `label_replace(${expr}, "${label}", "${value}", "", "")`;

/** Names the values of several queries of one panel by a label, so that one query has them all. */
export const alternatives = (label: string, of: Record<string, string>): string =>
  Object.entries(of)
    .map(([name, expr]) => named(expr, label, name))
    .join(' or ');

/** The selected runs in the time range as a vector with the labels run and line, once each: the threads of a run may be known later than its title. */
const recordedLines = `group by (run, line) (topk by (run) (1, count_over_time(run:benchwatch_run_info:line{${runs}}[$__range:$__interval] @ end())))`;

/** The same with the run's id in lines that would not be unique. */
const lines = `(${recordedLines} unless on (line) (count by (line) (${recordedLines}) > 1) or on (run) label_join(${recordedLines}, "line", " ", "line", "run"))`;

/** Adds the label `line`, which names a run in legends, to a vector with the label `run`. */
export const lined = (expr: string): string => `(${expr}) * on (run) group_left (line) ${lines}`;

/** Adds the label `of`, which names a run at the end of a legend, only if several runs are selected in the time range. */
export const ofSeveral = (expr: string): string => {
  const several = `on () (count(${recordedLines}) > 1)`;
  return `(${expr}) * on (run) group_left (of) label_replace(${lines}, "of", " of $1", "line", "(.*)") and ${several} or (${expr}) unless ${several}`;
};

const isOver = `(group(${recent('benchwatch_run_result')}) unless on () group(${recent('benchwatch_run_active')}) unless on () group(up{${runs}}))`;

/** A tile's value now: unless the selected run is over. */
export const live = (expr: string): string => `(${expr}) unless on () ${isOver}`;

/** A tile's value of a selected run that is over: the mean, worst or total of that run, never the last instant. */
export const over = (expr: string): string => `(${expr}) and on () ${isOver}`;

/**
 * A tile's largest value of a run that is over, with its server. The series is recorded
 * by server while the run lasts or drains (prometheus/rules/run.yml), so that no range
 * of points misses a peak or has one of the next run.
 */
export const worst = (series: string, matchers = ''): string =>
  over(`topk(1, max_over_time(${selector(`run_cluster_target:benchwatch_${series}`, `${runs}${matchers && `, ${matchers}`}`)}[$__range]))`);

/** The mean in the time range of an expression, which has the servers of a run only while it lasts. */
export const meanInRange = (expr: string): string => `avg_over_time((${expr})[$__range:$__interval])`;

/**
 * Whether an expression is one over points of the time range, such as the mean above. By the width of a tile $__interval would be
 * minutes in a range of hours, so that none of its points would be within a short run.
 */
export const isOverRange = (expr: string): boolean => expr.includes(')[$__range:$__interval])');

/** A gauge by server and `labels` now or, of a run that is over, at its end. */
export const lately = (gauge: string, ...labels: string[]): string => {
  const byServer = serverGauge(gauge, '', ...labels);
  return `(${live(byServer)} or ${over(`last_over_time((${byServer})[$__range:$__interval])`)})`;
};

// Hosts

const hosts = `group by (nodename) ({__name__=~"run_nodename_role:benchwatch_run_active|node_uname_info", ${runs}})`;
const generators = `group by (nodename) (${inRange(`benchwatch_run_host_info{${runs}, role="generator"}`)})`;
const others = `group by (nodename) (${inRange(`benchwatch_run_host_info{${runs}, role!="generator"}`)})`;
const onlyGenerators = `(${generators} unless on (nodename) ${others})`;

/** One value for each host and `labels`, named by its host name; several exporters may run on a host. */
const perHost = (expr: string, labels: string[]): string =>
  `max by (${['nodename', ...labels].join(', ')}) ((${expr}) * on (instance, job) group_left (nodename) group by (instance, job, nodename) (node_uname_info))`;

/** Restricts a vector with the label nodename to the hosts of the selected runs. */
export const ofRunHosts = (expr: string): string => `((${expr}) and on (nodename) ${hosts})`;

/** Of the hosts that generate load. */
export const onGenerators = (expr: string, ...labels: string[]): string => `${perHost(expr, labels)} and on (nodename) ${generators}`;

/** Of the hosts that only generate load: a host with a generator and servers is drawn once, as a server. */
export const onGeneratorsOnly = (expr: string, ...labels: string[]): string => `${perHost(expr, labels)} and on (nodename) ${onlyGenerators}`;

/** Of the other hosts. */
export const onServers = (expr: string, ...labels: string[]): string =>
  `${perHost(expr, labels)} and on (nodename) (${hosts} unless on (nodename) ${onlyGenerators})`;

/** Of all hosts. Those that only generate load have a label `of`, for legends. */
export const onHosts = (expr: string, ...labels: string[]): string =>
  `${onServers(expr, ...labels)} or ${named(onGeneratorsOnly(expr, ...labels), 'of', 'generator ')}`;

/** Physical disks. */
export const disks = 'device!~"(loop|ram|zram|fd|sr|dm-).*"';

/** Network interfaces that carry benchmark traffic. Some versions of node_exporter omit loopback. */
export const interfaces = 'device!~"(veth|docker|br-|virbr|cali|flannel|cni).*"';
