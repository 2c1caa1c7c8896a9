// Panels about the values that the benchmark tool reports.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { alternatives, commitRate, live, named, ofSeveral, over, perServer, recent, runs, serverRate, servers } from '../metrics';
import { color } from '../palette';
import { type AnyPanel, graph, set, stat, unit } from '../panel';
import { agent, now } from '../query';
import { limits } from '../threshold';

const noRun = 'No run selected';
const noReport = 'No run, or its tool prints no interval reports';

/** Phase of an active run, result of an ended one, as a name with a duration in seconds. */
export function state(): AnyPanel {
  const of = (metric: string, ...labels: string[]): string => `max by (${['run', ...labels].join(', ')}) (${recent(metric)})`;
  const stalled = `(time() - ${of('benchwatch_run_last_report_timestamp_seconds')} > 3 * ${of('benchwatch_run_report_interval_seconds')}) and on (run) benchwatch_run_active == 1`;
  const phase = `(${of('benchwatch_run_phase', 'phase')} == 1)`;
  const phases = `(${phase} unless on (run) (${stalled}) or ${named(`${phase} and on (run) (${stalled})`, 'phase', 'stalled')})`;
  const result = `(${of('benchwatch_run_result', 'result')} == 1) unless on (run) ${phase}`;
  const status = `count_values by (run) ("status", ${of('benchwatch_run_exit_code')} != 0)`;
  const withStatus = `label_replace((${result}) * on (run) group_left (status) ${status}, "status", ", exit status $1", "status", "(.+)")`;
  const called = (expr: string, ...labels: string[]): string => `label_join(${expr}, "name", "", ${labels.map((label) => `"${label}"`).join(', ')})`;
  return stat({
    title: 'State',
    description:
      'Phase and elapsed time of the run, or result, exit status other than 0, and duration if it has ended. Green: warming up, measuring, succeeded. Red: stalled (no report for three intervals; RunStalled fires), failed or lost (RunFailed fires). Start a run with `benchwatch run -- COMMAND`. From benchwatch_run_phase, benchwatch_run_result and benchwatch_run_exit_code.',
    unit: unit.clock,
    noData: noRun,
    span: 4,
    filled: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(
        [
          called(`${phases} * on (run) group_left () ${of('benchwatch_run_elapsed_seconds')}`, 'phase'),
          called(
            `(${withStatus} or on (run) (${result})) * on (run) group_left () ${of('benchwatch_run_summary_duration_seconds')}`,
            'result',
            'status',
          ),
        ].join(' or '),
        '{{name}}',
      ),
    ],
    overrides: [
      { series: /^(warmup|measure|succeeded).*/, set: [set.color('green')] },
      { series: /^(starting|draining).*/, set: [set.color(color('drain'))] },
      { series: /^(interrupted|aborted).*/, set: [set.color('orange')] },
      { series: /^(stalled|failed|lost).*/, set: [set.color('red')] },
    ],
  });
}

export function throughput(): AnyPanel {
  const rate = 'op="transaction"';
  return stat({
    title: 'Throughput',
    description:
      "Transactions per second in the last interval and in the best one. After the end: the mean of the run from the tool's summary, the best interval, and tpmC if the tool prints it. Higher is better. RunThroughputCollapsed fires if the throughput is under half of the run's median. From benchwatch_run_operations_per_second, benchwatch_run_summary_operations_per_second and benchwatch_run_summary_tpmc.",
    unit: unit.transactions,
    noData: 'No report yet',
    span: 4,
    stacked: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(
        alternatives('name', {
          now: live(`max by (run) (${recent('benchwatch_run_operations_per_second', rate)})`),
          'mean of run': over(`max by (run) (${recent('benchwatch_run_summary_operations_per_second', rate)})`),
          'best interval': `max by (run) (max_over_time(benchwatch_run_operations_per_second{${rate}, ${runs}}[$__range]))`,
          tpmC: `max by (run) (${recent('benchwatch_run_summary_tpmc')})`,
        }),
        '{{name}}',
      ),
    ],
    overrides: [
      { series: 'best interval', set: [set.color('gray')] },
      { series: 'tpmC', set: [set.unit(unit.digits), set.decimals(0)] },
    ],
  });
}

/** The tool's transaction needs no name in a tile; of a group the percentile is the worst generator's. */
const tileOp = (expr: string): string =>
  `label_replace(label_replace(${expr}, "op", "", "op", "transaction"), "stat", "worst generator's $1", "stat", "(.*)_worst")`;

export function latency(): AnyPanel {
  const headline = 'run:benchwatch_run_latency_seconds:headline';
  const summary = (recorded: string): string => `max by (run, op, stat) (${recent(`run:benchwatch_run_summary_latency_seconds:${recorded}`)})`;
  // The statistic that the intervals had, if the summary has it: the tile would show another one after the end.
  const sameStat = `${summary('by_stat')} and on (run, stat) max by (run, stat) (max_over_time(${headline}{${runs}}[$__range]))`;
  return stat({
    title: 'Latency',
    description:
      "p95 of the last interval, or of the whole run if it has ended. If the tool prints no p95: p99, otherwise its highest percentile below p99, otherwise the mean. The name shows which, and of which operation: the tool's transaction, otherwise TPC-C's New-Order, otherwise the slowest operation with traffic. Gray: the worst interval. Without a configured rate the tool measures in a closed loop, and the latency does not include waiting that the tool caused. RunLatencyHigh fires over three times the run's median. From run:benchwatch_run_latency_seconds:headline.",
    unit: unit.seconds,
    noData: 'Not printed',
    span: 4,
    stacked: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(
        alternatives('when', {
          now: live(tileOp(`max by (run, op, stat) (${recent(headline)})`)),
          'of run': over(tileOp(`(${sameStat} or on (run) ${summary('headline')})`)),
          'worst interval': `max by (run) (max_over_time(${headline}{${runs}}[$__range]))`,
        }),
        '{{op}} {{stat}} {{when}}',
      ),
    ],
    overrides: [{ series: /worst interval$/, set: [set.color('gray')] }],
  });
}

export function errors(): AnyPanel {
  const of = (metric: string, matchers = ''): string => `max by (run) (${recent(metric, matchers)})`;
  const share = `max by (run) (rate(benchwatch_run_errors_total{${runs}}[15s])) / on (run) ${of('benchwatch_run_operations_per_second', 'op="transaction"')}`;
  const total = of('benchwatch_run_summary_errors_total');
  const shareOfRun = `${total} / on (run) (${of('benchwatch_run_summary_operations_total', 'op="transaction"')} > 0)`;
  return stat({
    title: 'Errors',
    description:
      'Errors that the tool counted, as a share of its transactions over the last 15 s or, after the end, over the whole run; in total; and error messages that it printed. Zero is good. RunErrors fires over 1 %. From benchwatch_run_errors_total, benchwatch_run_summary_errors_total and benchwatch_run_error_messages_total.',
    unit: unit.share,
    decimals: 1,
    noData: 'Not counted',
    span: 4,
    stacked: true,
    limits: limits.errorShare,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(
        alternatives('name', {
          'share now': live(share),
          'share of run': over(shareOfRun),
          'in total': `${of('benchwatch_run_errors_total')} or on (run) ${total}`,
          messages: `max by (run) (max_over_time(benchwatch_run_error_messages_total{${runs}}[$__range])) > 0`,
        }),
        '{{name}}',
      ),
    ],
    overrides: [{ series: /^(in total|messages)$/, set: [set.unit(unit.digits), set.decimals(0), set.limits({ warning: 1 })] }],
  });
}

/** Transactions alone, with the client threads and the configured rate. */
export function throughputOverTime(span: number, height = 10): AnyPanel {
  return graph({
    title: 'Throughput over time',
    description:
      'Transactions per second in each interval of the tool (bold), the configured rate (dashed), and the number of client threads (on a scale of its own, see the legend). A constant rate is good. A gap means that the tool printed no report. Each selected run is a line of its own. From benchwatch_run_operations_per_second, benchwatch_run_requested_operations_per_second and benchwatch_run_threads.',
    unit: unit.transactions,
    noData: noReport,
    span,
    height,
    queries: [
      agent(
        ofSeveral(
          alternatives('name', {
            // Prometheus orders series by their labels: this one is the first of the legend.
            transactions: named(`max by (run) (benchwatch_run_operations_per_second{op="transaction", ${runs}})`, 'first', 'yes'),
            rate: `max by (run) (benchwatch_run_requested_operations_per_second{${runs}}) and on (run) benchwatch_run_active == 1`,
            'client threads': `max by (run) (benchwatch_run_threads{${runs}})`,
          }),
        ),
        '{{name}}{{of}}',
      ),
    ],
    overrides: [
      { series: /^transactions.*/, set: [set.bold()] },
      { series: /^rate.*/, set: [set.dashed(), set.noFill()] },
      {
        series: /^client threads.*/,
        set: [set.unit(unit.count), set.hiddenAxis(), set.noFill(), set.steps(), set.color('gray')],
      },
    ],
  });
}

/** p99 of each kind of operation in the intervals of the selected runs; p95 or p90 if the tool prints no p99. */
const operations = (() => {
  const of = (stat: string): string =>
    `max by (run, op, stat) (benchwatch_run_latency_seconds{op!~"transaction|(.+_)?(cleanup|failed|error)", stat="${stat}", ${runs}})`;
  return `(${of('p99')} or on (run, op) ${of('p95')} or on (run, op) ${of('p90')})`;
})();

/** Latency over time, as wide as throughput and below it. */
export function latencyOverTime(span: number): AnyPanel {
  const transactions = `max by (run, stat) (benchwatch_run_latency_seconds{op="transaction", ${runs}})`;
  return graph({
    title: 'Latency over time',
    description:
      'Latency in each interval of the tool, by percentile: of transactions or, if the tool prints none, of each operation with p99 (p95, p90). Low and constant is good. A gap means that the tool printed no latency. The axis is logarithmic. Percentiles have no mean. From benchwatch_run_latency_seconds.',
    unit: unit.seconds,
    noData: 'No run, or its tool prints no latency of intervals',
    span,
    height: 10,
    log: true,
    percentiles: true,
    queries: [agent(ofSeveral(`${transactions} or on (run) ${operations}`), '{{op}} {{stat}}{{of}}')],
    overrides: [{ series: /(^| )(p95|p99)( |$)/, set: [set.bold()] }],
  });
}

export function otherOperations(span: number): AnyPanel {
  return graph({
    title: 'Throughput by operation',
    description:
      'Operations per second in each interval by kind: statements of sysbench, operations of YCSB, transactions of TPC-C. Kinds without traffic are left out. From benchwatch_run_operations_per_second.',
    unit: unit.perSecond,
    noData: noReport,
    span,
    queries: [agent(ofSeveral(`max by (run, op) (benchwatch_run_operations_per_second{op!="transaction", ${runs}}) > 0`), '{{op}}{{of}}')],
  });
}

export function latencyByOperation(span: number): AnyPanel {
  return graph({
    title: 'Latency by operation',
    description:
      'p99 of each kind of operation, or p95 or p90 if the tool prints no p99. Only for tools that report operations separately: YCSB, TPC-C. go-ycsb prints totals, from which no latency of an interval can be computed. Low and constant is good. The axis is logarithmic. From benchwatch_run_latency_seconds.',
    unit: unit.seconds,
    noData: 'The tool prints no latency of single operations in its intervals',
    span,
    log: true,
    percentiles: true,
    queries: [agent(ofSeveral(operations), '{{op}} {{stat}}{{of}}')],
  });
}

export function errorsOverTime(span: number): AnyPanel {
  const rate = (counter: string): string => `max by (run) (rate(${counter}{${runs}}[$__rate_interval]))`;
  return graph({
    title: 'Errors and reconnects',
    description:
      'Errors and reconnects per second that the tool counted. They include errors that the tool is configured to ignore, such as deadlocks. Zero is good. RunErrors fires over 1 % of the transactions. From benchwatch_run_errors_total and benchwatch_run_reconnects_total.',
    unit: unit.events,
    noData: 'No run in this time range',
    span,
    queries: [
      agent(
        ofSeveral(alternatives('name', { errors: rate('benchwatch_run_errors_total'), reconnects: rate('benchwatch_run_reconnects_total') })),
        '{{name}}{{of}}',
      ),
    ],
  });
}

export function stalls(span: number): AnyPanel {
  const seconds = `max by (run) (increase(benchwatch_run_stall_seconds_total{${runs}}[1m]))`;
  const reason = `max by (run, reason) (benchwatch_run_stall_info{${runs}})`;
  return graph({
    title: 'Stalls',
    description:
      'How long the run stalled, for a minute after the end of each stall, with the reason that was captured: intervals in which the tool did far less than before. Zero is good. RunStallOver fires meanwhile. The section Stalls of `benchwatch report` has who waited for whom. From benchwatch_run_stall_seconds_total and benchwatch_run_stall_info.',
    unit: unit.seconds,
    noData: 'No stall in this time range',
    span,
    queries: [agent(ofSeveral(`${reason} * on (run) group_left () ${seconds}`), '{{reason}}{{of}}')],
  });
}

export function openLoop(span: number): AnyPanel {
  return graph({
    title: 'Open loop: queue and concurrency',
    description:
      'With a fixed rate (sysbench --rate): events waiting for a thread, and events executing. A growing queue means that the database cannot serve the rate, and RunQueueGrowing fires. The axis is logarithmic. From benchwatch_run_queue_length and benchwatch_run_concurrency.',
    unit: unit.count,
    noData: 'No run with a configured rate',
    span,
    log: true,
    queries: [
      agent(
        ofSeveral(
          alternatives('name', {
            queue: `max by (run) (benchwatch_run_queue_length{${runs}})`,
            executing: `max by (run) (benchwatch_run_concurrency{${runs}})`,
          }),
        ),
        '{{name}}{{of}}',
      ),
    ],
  });
}

/** Seconds that replicas have needed so far, until benchwatch_run_drain_seconds has the result. */
export function drain(span: number): AnyPanel {
  const result = `max by (run, target) (benchwatch_run_drain_seconds{${runs}})`;
  const soFar = `(time() - max by (run) (benchwatch_run_end_timestamp_seconds{${runs}}) and on (run) benchwatch_run_active{${runs}} == 0)`;
  const waiting = `${perServer(`benchwatch_replication_lag_transactions{${servers}} > 0`)}`;
  const pending = `0 * max by (run, target) (benchwatch_run_target_info{${runs}} and on (cluster, target) (${waiting})) + on (run) group_left () ${soFar}`;
  return stat({
    title: 'Drain after the end',
    description:
      'Time that each replica needed after the end of the run to reach the position that the most advanced member had at that moment, and the time so far of those that have not reached it. Near zero is good. RunDrainSlow fires over 1 min. From benchwatch_run_drain_seconds.',
    unit: unit.seconds,
    decimals: 1,
    noData: 'No drain measured',
    span,
    height: 9,
    valueSize: 30,
    limits: limits.drainSeconds,
    queries: [now(`${ofSeveral(result)} or ${named(`${pending} unless on (run, target) ${result}`, 'yet', ' so far')}`, '{{target}}{{of}}{{yet}}')],
    text: BigValueTextMode.ValueAndName,
  });
}

export function toolAgainstServers(span: number): AnyPanel {
  const commits = commitRate('role!~"replica|secondary"');
  return graph({
    title: 'Tool and server rates',
    description:
      'Rates that the tools of the selected runs report (solid) and that their servers count (dashed). Queries should match queries, and transactions should match commits. Servers also count the statements of monitoring. Commits include autocommit where the server counts it. Commits of replicas are excluded, because they are the same transactions. From benchwatch_run_operations_per_second, benchwatch_db_queries_total, and benchwatch_galera_local_commits_total or benchwatch_db_commits_total and benchwatch_db_autocommits_total.',
    unit: unit.perSecond,
    noData: noReport,
    span,
    queries: [
      agent(
        `sum by (op) (max by (run, op) (benchwatch_run_operations_per_second{op=~"query|transaction", ${runs}}) and on (run) max by (run) (benchwatch_run_active == 1) unless on (run) label_replace(max by (generator_run) (benchwatch_run_generator_info), "run", "$1", "generator_run", "(.*)"))`,
        'tool: {{op}}',
      ),
      agent(`sum(${serverRate('benchwatch_db_queries_total')})`, 'servers: queries'),
      agent(`sum(${commits})`, 'servers: commits'),
    ],
    overrides: [{ series: /^servers: .*/, set: [set.dashed(), set.noFill()] }],
  });
}
