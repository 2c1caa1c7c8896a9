// Panels about hosts, from node_exporter. A host that generates load and has
// servers is drawn once, as a server.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import { alternatives, disks, interfaces, live, onGenerators, onGeneratorsOnly, onHosts, onServers, over, runs } from '../metrics';
import { type AnyPanel, graph, set, stat, unit } from '../panel';
import { exporter, now, type Query } from '../query';
import { limits } from '../threshold';

const noHost = "No host of the selected run: node_exporter is not scraped (job node), or the run's servers are not in benchwatch.yml";
const i = '$__rate_interval';

export function hottest(span: number): AnyPanel {
  const utilisation = 'instance:node_cpu_utilisation:rate20s';
  const peak = (recorded: string): string => over(`max by (run) (max_over_time(${recorded}{${runs}}[$__range]))`);
  return stat({
    title: 'Host CPU',
    description:
      "The busiest of the run's hosts and the busy share of its cores over 20 s, and its busiest load generator; of a finished run, the highest values during the run. Waiting for a disk counts as idle, steal as busy. From 90 % the host is the bottleneck and HostCPUSaturated fires. If it is the load generator, the latencies are invalid and GeneratorSaturated fires. From node_cpu_seconds_total.",
    unit: unit.share,
    decimals: 0,
    noData: 'No host',
    span,
    limits: limits.cpu,
    filled: true,
    stacked: true,
    text: BigValueTextMode.ValueAndName,
    queries: [
      now(
        alternatives('name', {
          now: live(`topk(1, ${onServers(utilisation)})`),
          'generator now': live(`topk(1, ${onGeneratorsOnly(utilisation)})`),
          'highest in run': peak('run:node_cpu_utilisation:max'),
          generator: peak('run:generator_cpu_utilisation:max'),
        }),
        '{{nodename}} {{name}}',
      ),
    ],
  });
}

const byHost = (expr: string, legend: string, ...labels: string[]): Query =>
  exporter(onHosts(expr, ...labels), `{{of}}{{nodename}} ${legend}`.trim());
const generatorDashed = [{ series: /^generator .*/, set: [set.dashed(), set.noFill()] }];
const apart = 'Dashed: hosts that only generate load.';

export function cpu(span: number): AnyPanel {
  return graph({
    title: 'CPU by host',
    description: `Busy share of all cores of each host. ${apart} A generator near 100 % measures its own limit. HostCPUSaturated or GeneratorSaturated fires from 90 %. node_exporter is scraped every 5 s, so that the line reacts 10 to 20 s after the tool's. From node_cpu_seconds_total.`,
    unit: unit.share,
    max: 1,
    noData: noHost,
    span,
    limits: limits.cpu,
    queries: [byHost(`1 - avg by (instance, job) (sum by (instance, job, cpu) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[${i}])))`, '')],
    overrides: generatorDashed,
  });
}

export function busiestCore(span: number): AnyPanel {
  return graph({
    title: 'Busiest core',
    description: `Busy share of the busiest core of each host. ${apart} A core at 100 % while the others are idle is a bottleneck of one thread: interrupts of the network card, a single applier, a proxy. From node_cpu_seconds_total.`,
    unit: unit.share,
    max: 1,
    noData: noHost,
    span,
    queries: [byHost(`1 - min by (instance, job) (sum by (instance, job, cpu) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[${i}])))`, '')],
    overrides: generatorDashed,
  });
}

export function pressure(span: number): AnyPanel {
  return graph({
    title: 'Pressure stall',
    description: `Share of time in which some process waited for CPU, disk or memory, by host. ${apart} Near zero is good. It shows saturation that the utilization does not show. The kernel needs PSI (psi=1). From node_pressure_cpu_waiting_seconds_total, node_pressure_io_waiting_seconds_total and node_pressure_memory_waiting_seconds_total.`,
    unit: unit.share,
    noData: `${noHost}, or its kernel has no PSI`,
    span,
    queries: ['cpu', 'io', 'memory'].map((what) => byHost(`rate(node_pressure_${what}_waiting_seconds_total[${i}])`, what)),
    overrides: generatorDashed,
  });
}

export function memory(span: number): AnyPanel {
  return graph({
    title: 'Memory in use',
    description: `Share of the memory that is not available to programs, and swap in use as a share of the memory, by host. ${apart} Swapping during a run makes its latencies meaningless. From node_memory_MemAvailable_bytes, node_memory_MemTotal_bytes and node_memory_SwapFree_bytes.`,
    unit: unit.share,
    max: 1,
    noData: noHost,
    span,
    queries: [
      byHost('1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes', ''),
      byHost('(node_memory_SwapTotal_bytes - node_memory_SwapFree_bytes) / node_memory_MemTotal_bytes', 'swap'),
    ],
    overrides: generatorDashed,
  });
}

export function disk(span: number): AnyPanel {
  return graph({
    title: 'Disk requests in flight',
    description: `Requests in each disk's queue or being served, on average. ${apart} Tens of requests mean that the disk is the bottleneck. HostDiskSaturated fires over 10. From node_disk_io_time_weighted_seconds_total.`,
    unit: unit.count,
    noData: noHost,
    span,
    limits: limits.diskQueue,
    showLimits: false,
    queries: [byHost(`rate(node_disk_io_time_weighted_seconds_total{${disks}}[${i}])`, '{{device}}', 'device')],
    overrides: generatorDashed,
  });
}

export function diskWait(span: number): AnyPanel {
  const wait = (op: 'read' | 'write'): string =>
    `rate(node_disk_${op}_time_seconds_total{${disks}}[${i}]) / (rate(node_disk_${op}s_completed_total{${disks}}[${i}]) > 0)`;
  return graph({
    title: 'Disk wait',
    description: `Mean time of reads and writes, in the queue and in the disk. ${apart} Under 1 ms is usual for flash memory, 5 to 10 ms for rotating disks. Each commit with a flush waits for at least one write. From node_disk_read_time_seconds_total and node_disk_write_time_seconds_total.`,
    unit: unit.seconds,
    noData: noHost,
    span,
    queries: [byHost(wait('read'), '{{device}} read', 'device'), byHost(wait('write'), '{{device}} write', 'device')],
    overrides: generatorDashed,
  });
}

export function diskOperations(span: number): AnyPanel {
  const rate = (op: 'read' | 'write'): string => `rate(node_disk_${op}s_completed_total{${disks}}[${i}])`;
  return graph({
    title: 'Disk operations',
    description: `Reads and writes per second of each disk (IOPS). ${apart} Compare with the limit of the disk or the volume. From node_disk_reads_completed_total and node_disk_writes_completed_total.`,
    unit: unit.perSecond,
    noData: noHost,
    span,
    queries: [byHost(rate('read'), '{{device}} read', 'device'), byHost(rate('write'), '{{device}} write', 'device')],
    overrides: generatorDashed,
  });
}

export function diskBytes(span: number): AnyPanel {
  const rate = (op: 'read' | 'written'): string => `sum by (instance, job) (rate(node_disk_${op}_bytes_total{${disks}}[${i}]))`;
  return graph({
    title: 'Disk traffic',
    description: `Bytes read and written per second, all disks of a host. ${apart} From node_disk_read_bytes_total and node_disk_written_bytes_total.`,
    unit: unit.bytesPerSecond,
    noData: noHost,
    span,
    queries: [byHost(rate('read'), 'read'), byHost(rate('written'), 'written')],
    overrides: generatorDashed,
  });
}

export function network(span: number): AnyPanel {
  const rate = (direction: 'receive' | 'transmit'): string =>
    `sum by (instance, job) (rate(node_network_${direction}_bytes_total{${interfaces}}[${i}]))`;
  return graph({
    title: 'Network traffic',
    description: `Bytes received and sent per second, all interfaces of a host. ${apart} Compare with the capacity of the link. Traffic on one machine passes through loopback, which some versions of node_exporter do not report. From node_network_receive_bytes_total and node_network_transmit_bytes_total.`,
    unit: unit.bytesPerSecond,
    noData: noHost,
    span,
    queries: [byHost(rate('receive'), 'in'), byHost(rate('transmit'), 'out')],
    overrides: generatorDashed,
  });
}

export function networkDrops(span: number): AnyPanel {
  const rate = (direction: 'receive' | 'transmit'): string =>
    `sum by (instance, job) (rate(node_network_${direction}_drop_total{${interfaces}}[${i}]) + rate(node_network_${direction}_errs_total{${interfaces}}[${i}]))`;
  return graph({
    title: 'Network drops and retransmits',
    description: `Dropped and damaged packets, and TCP segments sent again, per second and host. ${apart} Zero is good: each retransmit delays a statement by 200 ms or more. From node_network_receive_drop_total, node_network_receive_errs_total and node_netstat_Tcp_RetransSegs.`,
    unit: unit.events,
    noData: noHost,
    span,
    queries: [
      byHost(rate('receive'), 'drops in'),
      byHost(rate('transmit'), 'drops out'),
      byHost(`rate(node_netstat_Tcp_RetransSegs[${i}])`, 'retransmits'),
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
    noData: noHost,
    span,
    stacked: true,
    queries: [
      exporter(onGenerators(`sum by (instance, job, mode) (rate(node_cpu_seconds_total{mode!="idle"}[${i}]))`, 'mode'), '{{nodename}} {{mode}}'),
    ],
  });
}

/** The panels about hosts that every page about servers ends with. */
export const all = (span: number): AnyPanel[] => [
  cpu(span),
  busiestCore(span),
  pressure(span),
  memory(span),
  disk(span),
  diskWait(span),
  diskOperations(span),
  diskBytes(span),
  network(span),
  networkDrops(span),
  cpuByMode(span),
];
