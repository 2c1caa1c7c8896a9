// Panels about the benchmark tool's own numbers.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { named, newestRun, ofNewestRun, runs } from '../metrics';
import { type AnyPanel, graph, set, stat, unit } from '../panel';
import { agent, now } from '../query';
import { limits } from '../threshold';

const noRun = 'No run yet';
const silent = 'The tool printed nothing in this time range';

/** Phase while the run lives, result afterwards; both as a name and a number of seconds. */
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
      'Phase of the newest selected run and for how long it has been running; of an ended run its result and duration. Green: warming up, measuring, succeeded. Red: stalled (no report for three intervals), failed or lost. Start a run with `benchwatch run -- COMMAND`. From benchwatch_run_phase and benchwatch_run_result.',
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
      'Transactions a second as the tool printed them last; of an ended run the mean that the tool printed in its summary. Beside it the best interval of the run within the time range. Higher is better; a live value far below the best one deserves a look. From benchwatch_run_operations_per_second and benchwatch_run_summary_operations_per_second.',
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
      'The p95 that the tool printed last. Tools that print no p95: p99, else the highest percentile they print, else the mean; the name says which. Of an ended run that of the whole run. Beside it the median of the run within the time range. The tool measures it in a closed loop unless it was given a rate: waiting that the tool itself caused is not in it. From run:benchwatch_run_latency_seconds:headline.',
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
      'Errors that the tool counted, as a share of its transactions over the last 15 s, and in total. Zero is good; over 1 % RunErrors fires. From benchwatch_run_errors_total; of an ended run from its summary.',
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
      'Operations a second as the tool printed them, for each of its intervals. "transaction" is what the tool counts as one unit of work. A gap means that it printed nothing. Steady is good. From benchwatch_run_operations_per_second.',
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
      'Latency of transactions in each interval of the tool, under the name of the percentile that it printed. Percentiles of intervals are not averaged: with several runs the worst is drawn. Low and flat is good. From benchwatch_run_latency_seconds.',
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
      'p99 of each kind of operation (p95 or p90 where the tool prints no p99), for tools that tell them apart: YCSB, go-ycsb, TPC-C. Low and flat is good. From benchwatch_run_latency_seconds.',
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
      'Errors and reconnects a second as the tool counted them. Zero is good. Errors that the tool was told to ignore (deadlocks, conflicts) are in it. From benchwatch_run_errors_total and benchwatch_run_reconnects_total.',
    unit: 'cps',
    noData: 'This tool counts no errors',
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
      'With a fixed rate (sysbench --rate): events that wait for a thread, and events in work. A queue that grows means that the database is slower than the rate; RunQueueGrowing fires. From benchwatch_run_queue_length and benchwatch_run_concurrency.',
    unit: unit.count,
    noData: 'Closed loop: the tool was given no rate, so there is no queue',
    span,
    queries: [agent(`max(benchwatch_run_queue_length{${runs}})`, 'queue'), agent(`max(benchwatch_run_concurrency{${runs}})`, 'in work')],
  });
}

export function drain(span: number): AnyPanel {
  return stat({
    title: 'Drain after the end',
    description:
      'How long each replica of the newest selected run needed, after the load had ended, to reach the position that the most advanced node had then. Near zero is good; over a minute RunDrainSlow fires. From benchwatch_run_drain_seconds.',
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
    title: 'The tool against the servers',
    description:
      'What the tool says it did (solid) and what the servers counted themselves (dashed). They should lie on each other: queries with queries, transactions with commits. Servers also count the statements of monitoring, and a tool without BEGIN/COMMIT has no commits. From benchwatch_run_operations_per_second, benchwatch_db_queries_total and benchwatch_db_commits_total (replicas left out, whose commits are the same transactions again).',
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
      'Clients that execute a statement now on the busiest of the selected servers (mean of 5 s; the agent itself is one), and the number of client threads of the run. As many running as there are clients: the server, not the client, is what is waited for. From benchwatch_db_threads_running and benchwatch_run_threads.',
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
