// Group: one run from several generators, and what each of them does.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { fromRuns, type Page } from './frame';
import { runs } from './metrics';
import { graph, row, set, stat, states, timeline, unit } from './panel';
import * as run from './panels/run';
import { agent, now } from './query';

const noGroup = 'No group selected';
const labels = 'run, generator_run, number, host';
const generators = `max by (${labels}) (benchwatch_run_generator_info{${runs}})`;
const legend = '{{generator_run}} {{host}}';

/** A value of each generator's own run, by the labels of the generator. Several agents may serve it. */
const ofEach = (expr: string): string =>
  `${generators} * on (generator_run) group_left () label_replace(max by (run) (${expr}), "generator_run", "$1", "run", "(.*)")`;

const throughput = 'benchwatch_run_operations_per_second{op="transaction"}';
const sum = `max by (run) (benchwatch_run_operations_per_second{op="transaction", ${runs}})`;
const delay = `max by (run, generator_run) (benchwatch_run_generator_start_delay_seconds{${runs}})`;
const own = 'A generator has a line if the same Prometheus scrapes an agent that serves its own run.';

const does = (state: string): string =>
  `max by (run, generator_run) (benchwatch_run_generator_state{state="${state}", ${runs}}) * on (run, generator_run) group_left (host) max by (run, generator_run, host) (benchwatch_run_generator_info{${runs}})`;

export const groupPage: Page = {
  name: 'group',
  title: 'Benchmark: group',
  description: 'One run from several generators: their sum, what each of them does, and whether they do equal work.',
  variables: [],
  extraVariables: [
    fromRuns('run', 'Group', 'Groups of generators, running and newest ones first.', { having: 'benchwatch_run_generators' }).multi(true),
  ],
  content: [
    run.state(),
    run.throughput(),
    run.latency(),
    run.errors(),
    stat({
      title: 'Reporting',
      description:
        'Generators that reported the last interval, and how many the group has. All is good: while one that still runs does not report, the group has no throughput and no latency, since those of the others would be too low. From benchwatch_run_generators_reporting and benchwatch_run_generators.',
      unit: unit.none,
      decimals: 0,
      noData: noGroup,
      span: 4,
      stacked: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(`max by (run) (benchwatch_run_generators_reporting{${runs}})`, 'report'),
        now(`max by (run) (benchwatch_run_generators{${runs}})`, 'in the group'),
      ],
      overrides: [{ series: 'in the group', set: [set.color('gray')] }],
    }),
    stat({
      title: 'Start skew',
      description:
        'Largest difference between the starts of two generators, by the clock of the machine that combines them. Under 100 ms is good; GroupGeneratorLate fires over that. From benchwatch_run_generator_start_delay_seconds.',
      unit: unit.seconds,
      noData: 'Not started',
      span: 4,
      limits: { warning: 0.1 },
      queries: [now(`max by (run) (${delay}) - on (run) min by (run) (${delay})`, '{{run}}')],
    }),
    row('Generators'),
    timeline({
      title: 'State of the generators',
      description:
        'What each generator does while its group is active: its tool has not started, it runs, it is silent (no report for more than two intervals while others report), or it has ended. Running to the end of the group is good; GroupGeneratorMissing fires otherwise. From benchwatch_run_generator_state.',
      unit: unit.none,
      noData: 'No group',
      span: 24,
      height: 6,
      mappings: states({
        1: { text: 'waiting', color: 'blue' },
        2: { text: 'running', color: 'green' },
        3: { text: 'silent', color: 'red' },
        4: { text: 'ended', color: 'gray' },
      }),
      queries: [agent(`2 * ${does('running')} or ${does('waiting')} or 3 * ${does('silent')} or 4 * ${does('ended')}`, legend)],
    }),
    graph({
      title: 'Throughput of the generators',
      description: `Transactions per second of each generator, and their sum (bold). Equal and constant rates are good; a gap in the sum is an interval that a generator did not report. ${own} From benchwatch_run_operations_per_second.`,
      unit: unit.transactions,
      noData: noGroup,
      span: 12,
      height: 11,
      queries: [agent(ofEach(throughput), legend), agent(sum, 'sum of {{run}}')],
      overrides: [{ series: /^sum of/, set: [set.bold()] }],
    }),
    graph({
      title: 'Worst percentile',
      description: `The highest of the generators' percentiles in each interval (bold), named as such, and that of each generator. Percentiles of several generators can't be merged, and are never averaged: the group's own lies at or below the worst. Lower is better. ${own} From benchwatch_run_latency_seconds.`,
      unit: unit.seconds,
      noData: 'No group, or its tool prints no percentiles',
      span: 12,
      height: 11,
      log: true,
      percentiles: true,
      queries: [
        agent(
          `label_replace(label_join(${generators} * on (generator_run) group_left (stat) label_replace(max by (run, stat) (benchwatch_run_latency_seconds{op="transaction", stat=~"p[0-9].*"}), "generator_run", "$1", "run", "(.*)"), "name", " ", "generator_run", "host"), "name", "$1", "name", "(.*?) *")`,
          '{{name}} {{stat}}',
        ),
        agent(
          `label_replace(max by (run, stat) (benchwatch_run_latency_seconds{op="transaction", stat=~"p[0-9].*_worst", ${runs}}), "stat", "$1", "stat", "(.*)_worst")`,
          "worst generator's {{stat}} of {{run}}",
        ),
      ],
      overrides: [{ series: /^worst/, set: [set.bold()] }],
    }),
    graph({
      title: 'Share of the mean',
      description: `Throughput of each generator as a share of the mean of its group. 100 % is good; GroupGeneratorsUnequal fires under 70 %. Unequal generators have different machines, networks or parts of the data. ${own} From benchwatch_run_operations_per_second and benchwatch_run_generators.`,
      unit: unit.share,
      noData: noGroup,
      span: 8,
      queries: [
        agent(`(${ofEach(throughput)}) / on (run) group_left () (${sum} / on (run) max by (run) (benchwatch_run_generators{${runs}}) > 0)`, legend),
      ],
    }),
    graph({
      title: 'CPU of the generators',
      description: `CPU use of the machine of each generator. Under 80 % is good: a saturated generator measures itself. ${own} Needs node_exporter on the machines. From run:generator_cpu_utilisation:max.`,
      unit: unit.share,
      noData: 'No node_exporter on the generators',
      span: 8,
      max: 1,
      queries: [agent(ofEach('run:generator_cpu_utilisation:max'), legend)],
    }),
    graph({
      title: 'Errors of the generators',
      description: `Errors per second that the tool of each generator counted. Zero is good. ${own} From benchwatch_run_errors_total.`,
      unit: unit.events,
      noData: noGroup,
      span: 8,
      queries: [agent(ofEach('rate(benchwatch_run_errors_total[$__rate_interval])'), legend)],
    }),
  ],
};
