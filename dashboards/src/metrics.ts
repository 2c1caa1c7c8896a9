// PromQL expressions that several dashboards share, so that a value means the
// same on each of them.

/** Label matchers for the selected servers. */
export const servers = 'cluster=~"$cluster", target=~"$target"';

/** Label matchers for the selected runs. */
export const runs = 'run=~"$run"';

/**
 * The newest of the selected runs, as a vector with the label `run`. The agent
 * keeps the start times of ended runs.
 */
export const newestRun = `topk(1, max by (run) (benchwatch_run_start_timestamp_seconds{${runs}}))`;

/** Restricts an expression with the label `run` to the newest selected run. */
export const ofNewestRun = (expr: string): string => `(${expr}) and on (run) ${newestRun}`;

/** Sets a label to a constant, for legends. */
export const named = (expr: string, label: string, value: string): string => `label_replace(${expr}, "${label}", "${value}", "", "")`;

/** Per-second rate of a counter of the selected servers. */
export const serverRate = (counter: string, matchers = ''): string => `rate(${counter}{${servers}${matchers && `, ${matchers}`}}[$__rate_interval])`;

const generators = 'label_replace(group by (generator) (benchwatch_run_info{run=~"$run"}), "nodename", "$1", "generator", "(.+)")';

/** A node_exporter vector with the host name as the label `nodename`. */
const withHostName = (expr: string): string => `(${expr}) * on (instance) group_left (nodename) group by (instance, nodename) (node_uname_info)`;

/** Restricts a node_exporter vector to the load generators of the selected runs. */
export const onGenerators = (expr: string): string => `${withHostName(expr)} and on (nodename) ${generators}`;

/**
 * Restricts a node_exporter vector to the hosts that are not load generators.
 * If there are none, the servers run on the generator, and its series remain.
 */
export const onServers = (expr: string): string => {
  const all = withHostName(expr);
  const others = `(${all}) unless on (nodename) ${generators}`;
  return `(${others}) or (${all}) unless on () (${others})`;
};

/** Busy share of all cores, by host. */
export const cpuBusy = '1 - avg by (instance) (sum by (instance, cpu) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[$__rate_interval])))';

/** Physical disks. */
export const disks = 'device!~"(loop|ram|zram|fd|sr|dm-).*"';

/** Network interfaces that carry benchmark traffic, including loopback. */
export const interfaces = 'device!~"(veth|docker|br-|virbr|cali|flannel|cni).*"';
