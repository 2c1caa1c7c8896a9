// Agent: the cost of monitoring, and whether it works.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { perServer, runs, server, serverGauge, servers } from './metrics';
import { graph, row, stat, states, timeline, unit } from './panel';
import * as panels from './panels/agent';
import { agent, now } from './query';

const noData = panels.noAgent;
const own = 'job="benchwatch"';

export const agentPage: Page = {
  name: 'agent',
  title: 'Benchmark: agent',
  description: 'Resource use of the agent, which must not disturb what it measures, and the health of sampling and scraping.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Version',
      description: 'Versions of the scraped agents. From benchwatch_build_info.',
      unit: unit.none,
      noData: 'No agent',
      span: 4,
      text: BigValueTextMode.Name,
      queries: [now('group by (version) (benchwatch_build_info)', '{{version}}')],
    }),
    stat({
      title: 'CPU',
      description:
        'CPU time of all agents as a share of one core, over 20 s. The budget is 0.5 % with three servers sampled once a second. From process_cpu_seconds_total.',
      unit: unit.share,
      decimals: 2,
      noData: 'No agent',
      span: 4,
      limits: { warning: 0.05 },
      queries: [now(`sum(rate(process_cpu_seconds_total{${own}}[20s]))`, 'of a core')],
    }),
    stat({
      title: 'Memory',
      description:
        'Resident memory of the largest agent. The budget is 30 MiB with one run and three servers, constant over hours. From process_resident_memory_bytes.',
      unit: unit.bytes,
      noData: 'No agent',
      span: 4,
      limits: { warning: 64 * 1024 * 1024 },
      queries: [now(`max(process_resident_memory_bytes{${own}})`, 'resident')],
    }),
    stat({
      title: 'Slowest',
      description: 'The server with the longest last sample. Milliseconds are good. From benchwatch_db_sample_duration_seconds.',
      unit: unit.seconds,
      noData: 'No server',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      limits: { warning: 0.5 },
      queries: [now(`topk(1, ${serverGauge('benchwatch_db_sample_duration_seconds')})`, server)],
    }),
    stat({
      title: 'Waiting',
      description:
        'Markers that are not sent to Grafana yet. Zero is good. The agent keeps them on disk and sends them when Grafana is available. MarkersNotDelivered fires after five minutes. From benchwatch_marker_queue_length.',
      unit: unit.none,
      decimals: 0,
      noData: 'No Grafana',
      span: 4,
      limits: { warning: 1 },
      queries: [now('sum(benchwatch_marker_queue_length)', 'markers')],
    }),
    stat({
      title: 'Series',
      description: 'Samples in the last scrape of the agent. About 30 per run and about 100 per server is usual. From scrape_samples_scraped.',
      unit: unit.digits,
      decimals: 0,
      noData: 'No agent',
      span: 4,
      queries: [now(`sum(scrape_samples_scraped{${own}})`, 'samples')],
    }),
    row('Cost'),
    panels.cpu(8),
    graph({
      title: 'Memory',
      description:
        'Resident memory and Go heap of each agent. A constant value is good. From process_resident_memory_bytes and go_memstats_heap_inuse_bytes.',
      unit: unit.bytes,
      noData,
      span: 8,
      queries: [
        agent(`max by (instance) (process_resident_memory_bytes{${own}})`, '{{instance}} resident'),
        agent(`max by (instance) (go_memstats_heap_inuse_bytes{${own}})`, '{{instance}} heap'),
      ],
    }),
    graph({
      title: 'Goroutines and open files',
      description: 'Both depend on the number of runs and servers. Growth with a constant number is a leak. From go_goroutines and process_open_fds.',
      unit: unit.count,
      noData,
      span: 8,
      queries: [
        agent(`max by (instance) (go_goroutines{${own}})`, '{{instance}} goroutines'),
        agent(`max by (instance) (process_open_fds{${own}})`, '{{instance}} files'),
      ],
    }),
    row('Sampling and delivery'),
    panels.sampleDuration(8),
    graph({
      title: 'Age of samples',
      description:
        "Time since each server's last sample. Under 1 s is good. An older sample means that the server does not answer in time. From benchwatch_db_sample_timestamp_seconds.",
      unit: unit.seconds,
      noData: 'No server is sampled',
      span: 8,
      queries: [agent(perServer(`time() - benchwatch_db_sample_timestamp_seconds{${servers}}`), server)],
    }),
    graph({
      title: 'Missed ticks',
      description:
        "Ticks per second at which the agent sampled no server, because it or its machine stood still. Zero is good. The servers' series have gaps there, for which the servers are not the cause. From benchwatch_agent_missed_ticks_total.",
      unit: unit.events,
      noData,
      span: 8,
      queries: [agent(`max by (instance) (rate(benchwatch_agent_missed_ticks_total{${own}}[$__rate_interval]))`, '{{instance}}')],
    }),
    graph({
      title: 'Free space for runs',
      description:
        'Free share of the file system with the data directory. Below 64 MiB, or 5 % of a small one, the agent records only the output of tools. From benchwatch_data_free_bytes and benchwatch_data_size_bytes.',
      unit: unit.share,
      noData,
      span: 8,
      queries: [agent(`max by (instance) (benchwatch_data_free_bytes{${own}} / benchwatch_data_size_bytes{${own}})`, '{{instance}}')],
    }),
    graph({
      title: 'Scrape duration',
      description: 'How long a scrape of the agent takes. Milliseconds are good: a scrape reads only stored samples. From scrape_duration_seconds.',
      unit: unit.seconds,
      noData,
      span: 8,
      queries: [agent(`max by (instance) (scrape_duration_seconds{${own}})`, '{{instance}}')],
    }),
    graph({
      title: 'Tool output lines',
      description:
        'Lines per second that the tools printed, by parse result. Zero malformed lines is good. Malformed lines have a format that the agent does not know: please report them. From benchwatch_run_lines_total.',
      unit: unit.events,
      noData: 'No run in this time range',
      span: 8,
      queries: [agent(`sum by (result) (max by (run, result) (rate(benchwatch_run_lines_total{${runs}}[$__rate_interval])))`, '{{result}}')],
    }),
    graph({
      title: 'Markers',
      description:
        'Markers per second by result of the delivery, and markers waiting for delivery. From benchwatch_marker_deliveries_total and benchwatch_marker_queue_length.',
      unit: unit.count,
      noData: 'No Grafana is configured, or no agent is scraped',
      span: 8,
      queries: [
        agent('sum by (result) (rate(benchwatch_marker_deliveries_total[$__rate_interval]))', '{{result}} per second'),
        agent('sum(benchwatch_marker_queue_length)', 'waiting'),
      ],
    }),
    timeline({
      title: 'Scrape targets',
      description: 'Whether the last scrape of each target succeeded. From up.',
      unit: unit.none,
      noData: 'Prometheus has no scrape targets',
      span: 8,
      queries: [
        agent('min by (job, instance) (up{job=~"benchwatch|node|mysqld|postgres|mongodb|tidb|tikv|pd|cloudwatch|proxy"})', '{{job}} {{instance}}'),
      ],
      mappings: states({ '0': { text: 'down', color: 'red' }, '1': { text: 'up', color: 'green' } }),
    }),
  ],
};
