// PromQL that several dashboards share. One function a fact, so that a number
// means the same wherever it is shown.

/** Label matchers for the servers that the variables select. */
export const servers = 'cluster=~"$cluster", target=~"$target"';

/** Label matchers for the runs that the variable selects. */
export const runs = 'run=~"$run"';

/**
 * The newest of the selected runs, as a vector with the label `run`. A run in
 * progress is the newest; of ended runs the agent keeps the start, too.
 */
export const newestRun = `topk(1, max by (run) (benchwatch_run_start_timestamp_seconds{${runs}}))`;

/** Limits an expression with the label `run` to the newest selected run. */
export const ofNewestRun = (expr: string): string => `(${expr}) and on (run) ${newestRun}`;

/** Sets a label to a constant, for legends. */
export const named = (expr: string, label: string, value: string): string => `label_replace(${expr}, "${label}", "${value}", "", "")`;

/** Per-second rate of a counter of the selected servers. */
export const serverRate = (counter: string, matchers = ''): string => `rate(${counter}{${servers}${matchers && `, ${matchers}`}}[$__rate_interval])`;

const generators = 'label_replace(group by (generator) (benchwatch_run_info{run=~"$run"}), "nodename", "$1", "generator", "(.+)")';

/** A vector of node_exporter with the host's name added. */
const withHostName = (expr: string): string => `(${expr}) * on (instance) group_left (nodename) group by (instance, nodename) (node_uname_info)`;

/** Limits a vector of node_exporter to the load generators of the selected runs. */
export const onGenerators = (expr: string): string => `${withHostName(expr)} and on (nodename) ${generators}`;

/**
 * Limits a vector of node_exporter to the hosts that are no load generators.
 * If there is no such host, everything runs on the generator: then that one.
 */
export const onServers = (expr: string): string => {
  const all = withHostName(expr);
  const others = `(${all}) unless on (nodename) ${generators}`;
  return `(${others}) or (${all}) unless on () (${others})`;
};

/** Share of all cores that is busy, by host. */
export const cpuBusy = '1 - avg by (instance) (sum by (instance, cpu) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[$__rate_interval])))';

/** Devices that are real disks. */
export const disks = 'device!~"(loop|ram|zram|fd|sr|dm-).*"';

/** Network interfaces that carry benchmark traffic, loopback included. */
export const interfaces = 'device!~"(veth|docker|br-|virbr|cali|flannel|cni).*"';
