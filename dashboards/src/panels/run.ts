// Panels about the values that the benchmark tool reports.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { named, newestRun, ofNewestRun, runs } from '../metrics';
import { type AnyPanel, graph, set, stat, unit } from '../panel';
import { agent, now } from '../query';
import { limits } from '../threshold';

const noRun = 'No run yet';
const silent = 'The tool printed nothing in this time range';

/** Phase of an active run, result of an ended one, as a name with a duration in seconds. */
export function state(): AnyPanel {
  const stalled = `(time() - max by (run) (benchwatch_run_last_report_timestamp_seconds{${runs}}) > 3 * max by (run) (benchwatch_run_report_interval_seconds{${runs}})) and on (run) benchwatch_run_active == 1`;
  const live = `max by (run, phase) (benchwatch_run_phase{${runs}} == 1)`;
  const elapsed = `max by (run) (benchwatch_run_elapsed_seconds{${runs}})`;
  const stalledLive = named(`(${live}) and on (run) (${stalled})`, 'phase', 'stalled');
  const phases = `((${live}) unless on (run) (${stalled}) or ${stalledLive})`;
  const results = `label_replace(max by (run, result) (benchwatch_run_result{${runs}} == 1), "phase", "$1", "result", "(.*)")`;
  return stat({
    title: 'State',
    description:
      'Phase and elapsed time of the newest selected run, or result and duration if it has ended. Green: warming up, measuring, succeeded. Red: stalled (no report for three intervals; RunStalled fires), failed or lost (RunFailed fires). Start a run with `benchwatch run -- COMMAND`. From benchwatch_run_phase and benchwatch_run_result.',
    unit: unit.clock,
    noData: noRun,
    span: 3,
    filled: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(ofNewestRun(`${phases} * on (run) group_left () ${elapsed}`), '{{phase}}'),
      now(ofNewestRun(`${results} * on (run) group_left () max by (run) (benchwatch_run_summary_duration_seconds{${runs}})`), '{{phase}}'),
    ],
    overrides: [
      { series: /^(warmup|measure|succeeded)$/, set: [set.color('green')] },
      { series: /^(starting|draining)$/, set: [set.color('blue')] },
      { series: 'interrupted', set: [set.color('orange')] },
      { series: /^(stalled|failed|lost)$/, set: [set.color('red')] },
    ],
  });
}

export function throughput(): AnyPanel {
  const live = named(`max by (run) (benchwatch_run_operations_per_second{op="transaction", ${runs}})`, 'of', 'now');
  const ended = named(`max by (run) (benchwatch_run_summary_operations_per_second{op="transaction", ${runs}})`, 'of', 'whole run');
  return stat({
    title: 'Throughput',
    description:
      "Transactions per second in the last interval, or the mean from the tool's summary if the run has ended. Gray: the best interval of the run in the time range. Higher is better. RunThroughputCollapsed fires if the throughput is under half of the run's median. From benchwatch_run_operations_per_second and benchwatch_run_summary_operations_per_second.",
    unit: unit.perSecond,
    noData: noRun,
    span: 3,
    stacked: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(ofNewestRun(`(${live}) or on (run) (${ended})`), '{{of}}'),
      now(ofNewestRun(`max by (run) (max_over_time(benchwatch_run_operations_per_second{op="transaction", ${runs}}[$__range]))`), 'best'),
    ],
    overrides: [{ series: 'best', set: [set.color('gray')] }],
  });
}

export function latency(): AnyPanel {
  return stat({
    title: 'Latency',
    description:
      "p95 of the last interval, or of the whole run if it has ended. If the tool prints no p95: p99, otherwise its highest percentile, otherwise the mean. The name shows which. Gray: the median over the run's intervals in the time range. Without a configured rate the tool measures in a closed loop, and the latency does not include waiting that the tool caused. RunLatencyHigh fires over three times the run's median. From run:benchwatch_run_latency_seconds:headline.",
    unit: unit.seconds,
    noData: noRun,
    span: 3,
    stacked: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(
        ofNewestRun(
          `run:benchwatch_run_latency_seconds:headline{${runs}} or on (run) ${named(`run:benchwatch_run_summary_latency_seconds:headline{${runs}}`, 'of', ' whole run')}`,
        ),
        '{{stat}}{{of}}',
      ),
      now(ofNewestRun(`quantile_over_time(0.5, run:benchwatch_run_latency_seconds:measured{${runs}}[$__range])`), 'median'),
    ],
    overrides: [{ series: 'median', set: [set.color('gray')] }],
  });
}

export function errors(): AnyPanel {
  const share = `sum by (run) (rate(benchwatch_run_errors_total{${runs}}[15s])) / on (run) max by (run) (benchwatch_run_operations_per_second{op="transaction", ${runs}})`;
  return stat({
    title: 'Errors',
    description:
      'Errors that the tool counted, as a share of its transactions over the last 15 s, and in total. Zero is good. RunErrors fires over 1 %. From benchwatch_run_errors_total, or from the summary of an ended run.',
    unit: unit.share,
    decimals: 1,
    noData: 'Not counted',
    span: 3,
    stacked: true,
    limits: limits.errorShare,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(ofNewestRun(share), 'of transactions'),
      now(
        ofNewestRun(`max by (run) (benchwatch_run_errors_total{${runs}}) or on (run) max by (run) (benchwatch_run_summary_errors_total{${runs}})`),
        'in total',
      ),
    ],
    overrides: [
      {
        series: 'in total',
        set: [
          set.unit(unit.digits),
          set.decimals(0),
          {
            id: 'thresholds',
            value: {
              mode: 'absolute',
              steps: [
                { value: null, color: 'green' },
                { value: 1, color: 'orange' },
              ],
            },
          },
        ],
      },
    ],
  });
}

export function throughputByOperation(span: number, height = 9): AnyPanel {
  return graph({
    title: 'Throughput by operation',
    description:
      'Operations per second in each interval. "transaction" is one unit of work of the tool. A constant rate is good. A gap means that the tool printed no report. From benchwatch_run_operations_per_second.',
    unit: unit.perSecond,
    noData: silent,
    span,
    height,
    queries: [agent(`sum by (op) (max by (run, op) (benchwatch_run_operations_per_second{${runs}}))`, '{{op}}')],
  });
}

export function latencyByPercentile(span: number): AnyPanel {
  return graph({
    title: 'Latency by percentile',
    description:
      'Latency of transactions in each interval of the tool, by percentile. Percentiles are not averaged: with several runs the panel shows the highest. Low and constant is good. From benchwatch_run_latency_seconds.',
    unit: unit.seconds,
    noData: silent,
    span,
    height: 9,
    queries: [agent(`max by (stat) (benchwatch_run_latency_seconds{op="transaction", ${runs}})`, '{{stat}}')],
  });
}

export function latencyByOperation(span: number): AnyPanel {
  return graph({
    title: 'Latency by operation',
    description:
      'p99 of each kind of operation, or p95 or p90 if the tool prints no p99. Only for tools that report operations separately: YCSB, go-ycsb, TPC-C. Low and constant is good. From benchwatch_run_latency_seconds.',
    unit: unit.seconds,
    noData: 'This tool prints one latency for all operations',
    span,
    queries: [
      agent(
        `max by (op, stat) (benchwatch_run_latency_seconds{op!="transaction", stat="p99", ${runs}}) or ignoring (stat) max by (op, stat) (benchwatch_run_latency_seconds{op!="transaction", stat="p95", ${runs}}) or ignoring (stat) max by (op, stat) (benchwatch_run_latency_seconds{op!="transaction", stat="p90", ${runs}})`,
        '{{op}} {{stat}}',
      ),
    ],
  });
}

export function errorsOverTime(span: number): AnyPanel {
  return graph({
    title: 'Errors and reconnects',
    description:
      'Errors and reconnects per second that the tool counted. They include errors that the tool is configured to ignore, such as deadlocks. Zero is good. RunErrors fires over 1 % of the transactions. From benchwatch_run_errors_total and benchwatch_run_reconnects_total.',
    unit: 'cps',
    noData: 'This tool does not count errors',
    span,
    queries: [
      agent(`sum(rate(benchwatch_run_errors_total{${runs}}[$__rate_interval]))`, 'errors'),
      agent(`sum(rate(benchwatch_run_reconnects_total{${runs}}[$__rate_interval]))`, 'reconnects'),
    ],
  });
}

export function openLoop(span: number): AnyPanel {
  return graph({
    title: 'Open loop: queue and concurrency',
    description:
      'With a fixed rate (sysbench --rate): events waiting for a thread, and events executing. A growing queue means that the database cannot serve the rate, and RunQueueGrowing fires. From benchwatch_run_queue_length and benchwatch_run_concurrency.',
    unit: unit.count,
    noData: 'Closed loop: the tool has no configured rate, so there is no queue',
    span,
    queries: [agent(`max(benchwatch_run_queue_length{${runs}})`, 'queue'), agent(`max(benchwatch_run_concurrency{${runs}})`, 'executing')],
  });
}

export function drain(span: number): AnyPanel {
  return stat({
    title: 'Drain after the end',
    description:
      'Time that each replica needed after the end of the newest selected run to reach the position that the most advanced member had at that moment. Near zero is good. RunDrainSlow fires over 1 min. From benchwatch_run_drain_seconds.',
    unit: unit.seconds,
    decimals: 1,
    noData: 'No drain measured',
    span,
    height: 8,
    valueSize: 30,
    limits: limits.drainSeconds,
    queries: [now(`max by (run, target) (benchwatch_run_drain_seconds{${runs}}) and on (run) ${newestRun}`, '{{target}}')],
    text: BigValueTextMode.ValueAndName,
  });
}

export function toolAgainstServers(span: number): AnyPanel {
  return graph({
    title: 'Tool and server rates',
    description:
      'Rates that the tool reports (solid) and that the servers count (dashed). Queries should match queries, and transactions should match commits. Servers also count the statements of monitoring. A tool that does not use BEGIN and COMMIT causes no commits. Commits of replicas are excluded, because they are the same transactions. From benchwatch_run_operations_per_second, benchwatch_db_queries_total and benchwatch_db_commits_total.',
    unit: unit.perSecond,
    noData: silent,
    span,
    queries: [
      agent(`sum by (op) (max by (run, op) (benchwatch_run_operations_per_second{op=~"query|transaction", ${runs}}))`, 'tool: {{op}}'),
      agent('sum(rate(benchwatch_db_queries_total{cluster=~"$cluster", target=~"$target"}[$__rate_interval]))', 'servers: queries'),
      agent(
        'sum(rate(benchwatch_db_commits_total{cluster=~"$cluster", target=~"$target", role!~"replica|secondary"}[$__rate_interval]))',
        'servers: commits',
      ),
    ],
    overrides: [{ series: /^servers: .*/, set: [set.dashed(), set.noFill()] }],
  });
}

export function clientThreads(): AnyPanel {
  return stat({
    title: 'Threads',
    description:
      'Clients executing a statement on the busiest of the selected servers (mean of 5 s, including the agent), and the number of client threads of the run. If all clients are running, the server is the bottleneck, not the client. From benchwatch_db_threads_running and benchwatch_run_threads.',
    unit: unit.digits,
    decimals: 0,
    noData: 'No server',
    span: 3,
    stacked: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now('max(avg_over_time(benchwatch_db_threads_running{cluster=~"$cluster", target=~"$target"}[5s]))', 'running'),
      now(ofNewestRun(`max by (run) (benchwatch_run_threads{${runs}})`), 'clients'),
    ],
    overrides: [{ series: 'clients', set: [set.color('gray')] }],
  });
}
