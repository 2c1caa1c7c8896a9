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
      'The busiest host that Prometheus knows, and how much of its cores is busy (20 s; waiting for a disk is idle, stolen time is busy). From 90 % on the host is the limit, and if it is the load generator, the latencies are worth nothing: HostCPUSaturated, GeneratorSaturated. From node_cpu_seconds_total.',
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
const apart = 'The load generator is dashed; if servers run on the same host, the two lines are one host.';

export function cpu(span: number): AnyPanel {
  return graph({
    title: 'CPU by host',
    description: `Share of all cores that is busy. ${apart} A generator near 100 % measures itself. From node_cpu_seconds_total.`,
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
    description: `Requests waiting for or served by each disk, on average. ${apart} Some tens mean that the disk is the limit: over 10 HostDiskSaturated fires. From node_disk_io_time_weighted_seconds_total.`,
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
    description: `Bytes read and written a second, all disks of a host. ${apart} From node_disk_read_bytes_total and node_disk_written_bytes_total.`,
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
    description: `Bytes received and sent a second, loopback included (a benchmark on one machine runs there). ${apart} Compare with what the link can carry. From node_network_receive_bytes_total and node_network_transmit_bytes_total.`,
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
    title: "What the generator's CPU does",
    description:
      'Cores in use on the load generators of the selected runs, by kind of work. Much softirq is the network, iowait is idle time, steal was taken by the hypervisor: a run with steal is not repeatable. From node_cpu_seconds_total.',
    unit: unit.cores,
    decimals: 1,
    noData: noHost,
    span,
    stacked: true,
    queries: [exporter(onGenerators('sum by (instance, mode) (rate(node_cpu_seconds_total{mode!="idle"}[$__rate_interval]))'), '{{mode}}')],
  });
}
