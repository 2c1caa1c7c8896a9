// Agent: what watching costs, and whether it works.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { runs, servers } from './metrics';
import { graph, row, stat, states, timeline, unit } from './panel';
import * as panels from './panels/agent';
import { agent, now } from './query';

const noData = panels.noAgent;
const own = 'job="benchwatch"';

export const agentPage: Page = {
  name: 'agent',
  title: 'Benchmark: agent',
  description: 'What the agent itself costs: it must not disturb what it measures.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Version',
      description: 'Version of each agent that is scraped. From benchwatch_build_info.',
      unit: unit.none,
      noData: 'No agent',
      span: 4,
      text: BigValueTextMode.Name,
      queries: [now('group by (version) (benchwatch_build_info)', '{{version}}')],
    }),
    stat({
      title: 'CPU',
      description:
        'Share of one core that all agents use (20 s). The budget is 0.5 % with three servers at one sample a second. From process_cpu_seconds_total.',
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
        'Resident memory of the largest agent. The budget is 30 MiB with one run and three servers, flat over hours. From process_resident_memory_bytes.',
      unit: unit.bytes,
      noData: 'No agent',
      span: 4,
      limits: { warning: 64 * 1024 * 1024 },
      queries: [now(`max(process_resident_memory_bytes{${own}})`, 'resident')],
    }),
    stat({
      title: 'Slowest sample',
      description: 'The server that took longest to answer its last sample. From benchwatch_db_sample_duration_seconds.',
      unit: unit.seconds,
      noData: 'No server',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      limits: { warning: 0.5 },
      queries: [now(`topk(1, max by (target) (benchwatch_db_sample_duration_seconds{${servers}}))`, '{{target}}')],
    }),
    stat({
      title: 'Markers waiting',
      description:
        'Markers that wait to be sent to Grafana. Zero is good; they are kept on disk and sent when Grafana is back. MarkersNotDelivered fires after five minutes. From benchwatch_marker_queue_length.',
      unit: unit.none,
      decimals: 0,
      noData: 'No Grafana',
      span: 4,
      limits: { warning: 1 },
      queries: [now('sum(benchwatch_marker_queue_length)', 'markers')],
    }),
    stat({
      title: 'Series',
      description:
        "Samples in the agent's last answer to Prometheus. Some 30 for each run and some 100 for each server. From scrape_samples_scraped.",
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
      description: 'Resident memory and Go heap of each agent. Flat is good. From process_resident_memory_bytes and go_memstats_heap_inuse_bytes.',
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
      description: 'Both follow the number of runs and servers. Growing without them would be a leak. From go_goroutines and process_open_fds.',
      unit: unit.count,
      decimals: 0,
      noData,
      span: 8,
      queries: [
        agent(`max by (instance) (go_goroutines{${own}})`, '{{instance}} goroutines'),
        agent(`max by (instance) (process_open_fds{${own}})`, '{{instance}} files'),
      ],
    }),
    row('Work'),
    panels.sampleDuration(8),
    graph({
      title: 'Age of samples',
      description:
        "How old each server's last answer is. Under a second is good; older means that the server does not answer in time. From benchwatch_db_sample_timestamp_seconds.",
      unit: unit.seconds,
      decimals: 1,
      noData: 'No server is sampled',
      span: 8,
      queries: [agent(`time() - max by (target) (benchwatch_db_sample_timestamp_seconds{${servers}})`, '{{target}}')],
    }),
    graph({
      title: 'Time a scrape takes',
      description:
        'How long Prometheus waits for the agent. Milliseconds are good: a scrape reads only what was sampled before. From scrape_duration_seconds.',
      unit: unit.seconds,
      noData,
      span: 8,
      queries: [agent(`max by (instance) (scrape_duration_seconds{${own}})`, '{{instance}}')],
    }),
    graph({
      title: 'Lines of the tools',
      description:
        'Lines a second that the tools printed, by what the agent made of them. Malformed lines are a format that the agent does not know: please report them. From benchwatch_run_lines_total.',
      unit: 'cps',
      noData: 'No run in this time range',
      span: 8,
      queries: [agent(`sum by (result) (rate(benchwatch_run_lines_total{${runs}}[$__rate_interval]))`, '{{result}}')],
    }),
    graph({
      title: 'Markers',
      description:
        'Markers a second by what became of sending them, and those that wait. From benchwatch_marker_deliveries_total and benchwatch_marker_queue_length.',
      unit: unit.count,
      noData: 'No Grafana is configured, or no agent is scraped',
      span: 8,
      queries: [
        agent('sum by (result) (rate(benchwatch_marker_deliveries_total[$__rate_interval]))', '{{result}} a second'),
        agent('sum(benchwatch_marker_queue_length)', 'waiting'),
      ],
    }),
    timeline({
      title: 'Scrape targets',
      description: 'Whether Prometheus reaches each of its targets. From up.',
      unit: unit.none,
      noData: 'Prometheus scrapes nothing',
      span: 8,
      queries: [agent('min by (job, instance) (up{job=~"benchwatch|node|mysqld|mongodb|tidb|tikv|pd|cloudwatch|proxy"})', '{{job}} {{instance}}')],
      mappings: states({ '0': { text: 'down', color: 'red' }, '1': { text: 'up', color: 'green' } }),
    }),
  ],
};
