// Panels about hosts, from node_exporter.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { cpuBusy, disks, interfaces, onGenerators, onServers } from '../metrics';
import { type AnyPanel, graph, set, stat, unit } from '../panel';
import { exporter, now, type Query } from '../query';
import { limits } from '../threshold';

const noHost = 'No node_exporter is scraped (job node in prometheus.yml)';

export function hottest(): AnyPanel {
  return stat({
    title: 'Host CPU',
    description:
      'The busiest host and the busy share of its cores over 20 s. Waiting for a disk counts as idle, steal as busy. From 90 % the host is the bottleneck and HostCPUSaturated fires. If it is the load generator, the latencies are invalid and GeneratorSaturated fires. From node_cpu_seconds_total.',
    unit: unit.share,
    decimals: 0,
    noData: 'No host',
    span: 3,
    limits: limits.cpu,
    filled: true,
    text: BigValueTextMode.ValueAndName,
    queries: [now('topk(1, instance:node_cpu_utilisation:rate20s * on (instance) group_left (nodename) node_uname_info)', '{{nodename}}')],
  });
}

const both = (expr: string, legend: string): Query[] => [
  exporter(onGenerators(expr), `generator {{nodename}} ${legend}`.trim()),
  exporter(onServers(expr), `server {{nodename}} ${legend}`.trim()),
];
const generatorDashed = [{ series: /^generator .*/, set: [set.dashed(), set.noFill()] }];
const apart = 'Dashed: load generator. If servers run on the generator, both lines show the same host.';

export function cpu(span: number): AnyPanel {
  return graph({
    title: 'CPU by host',
    description: `Busy share of all cores. ${apart} A generator near 100 % measures its own limit. HostCPUSaturated or GeneratorSaturated fires from 90 %. From node_cpu_seconds_total.`,
    unit: unit.share,
    decimals: 0,
    max: 1,
    noData: noHost,
    span,
    limits: limits.cpu,
    queries: both(cpuBusy, ''),
    overrides: generatorDashed,
  });
}

export function disk(span: number): AnyPanel {
  return graph({
    title: 'Disk requests in flight',
    description: `Requests in each disk's queue or being served, on average. ${apart} Tens of requests mean that the disk is the bottleneck. HostDiskSaturated fires over 10. From node_disk_io_time_weighted_seconds_total.`,
    unit: unit.count,
    decimals: 1,
    noData: noHost,
    span,
    limits: limits.diskQueue,
    showLimits: false,
    queries: both(`rate(node_disk_io_time_weighted_seconds_total{${disks}}[$__rate_interval])`, '{{device}}'),
    overrides: generatorDashed,
  });
}

export function diskBytes(span: number): AnyPanel {
  return graph({
    title: 'Disk traffic',
    description: `Bytes read and written per second, all disks of a host. ${apart} From node_disk_read_bytes_total and node_disk_written_bytes_total.`,
    unit: unit.bytesPerSecond,
    noData: noHost,
    span,
    queries: [
      exporter(onServers(`sum by (instance) (rate(node_disk_read_bytes_total{${disks}}[$__rate_interval]))`), 'server {{nodename}} read'),
      exporter(onServers(`sum by (instance) (rate(node_disk_written_bytes_total{${disks}}[$__rate_interval]))`), 'server {{nodename}} written'),
      exporter(onGenerators(`sum by (instance) (rate(node_disk_written_bytes_total{${disks}}[$__rate_interval]))`), 'generator {{nodename}} written'),
    ],
    overrides: generatorDashed,
  });
}

export function network(span: number): AnyPanel {
  return graph({
    title: 'Network traffic',
    description: `Bytes received and sent per second, including loopback, which a benchmark on one machine uses. ${apart} Compare with the capacity of the link. From node_network_receive_bytes_total and node_network_transmit_bytes_total.`,
    unit: unit.bytesPerSecond,
    noData: noHost,
    span,
    queries: [
      ...both(`sum by (instance) (rate(node_network_receive_bytes_total{${interfaces}}[$__rate_interval]))`, 'in'),
      ...both(`sum by (instance) (rate(node_network_transmit_bytes_total{${interfaces}}[$__rate_interval]))`, 'out'),
    ],
    overrides: generatorDashed,
  });
}

export function cpuByMode(span: number): AnyPanel {
  return graph({
    title: 'Generator CPU by mode',
    description:
      'Cores used on the load generators of the selected runs, by mode. softirq is mostly the network, iowait is idle time, and steal is time that the hypervisor gave to other guests. A run with steal is not repeatable. From node_cpu_seconds_total.',
    unit: unit.cores,
    decimals: 1,
    noData: noHost,
    span,
    stacked: true,
    queries: [exporter(onGenerators('sum by (instance, mode) (rate(node_cpu_seconds_total{mode!="idle"}[$__rate_interval]))'), '{{mode}}')],
  });
}
