// Aurora MySQL: the agent samples by SQL once a second. CloudWatch metrics come
// from YACE or rds_exporter, with one point per minute and minutes late.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { live, meanInRange, ofRunClusters, over, server, serverGauge, serverRate, serverRateOver, worst } from './metrics';
import { closedRow, graph, row, set, stat, states, timeline, unit } from './panel';
import * as run from './panels/run';
import { agent, cloudwatch, now } from './query';
import { limits } from './threshold';

const noAurora = 'No Aurora instance of the selected run is sampled';
/** The agent detects Aurora by SQL: only its instances have this metric. */
const isAurora = 'and on (cluster, target) benchwatch_aurora_writer';
const noCloudWatch = 'No CloudWatch exporter is scraped (job cloudwatch: YACE or rds_exporter)';
const noDisk = 'No CloudWatch exporter is scraped, or the instances are of Aurora, which has no disk';
const late = 'CloudWatch has one point per minute, a few minutes late.';

const rds = (metric: string): string => `max by (dimension_DBInstanceIdentifier) (${ofRunClusters(`${metric}{dimension_DBInstanceIdentifier!=""}`)})`;
/** What the writer reports about the instances of its cluster. */
const instances = (gauge: string): string => `max by (server) (${serverGauge(gauge, '', 'server')})`;
/** CloudWatch's series of the instances that the selected runs' writers report; all of them if no run is selected. */
const recorded = (series: string): string => `${series}{run=~"$run"} or ${series} and on (server) ${instances('benchwatch_aurora_server_cpu_ratio')}`;
const commitTime = (range: string): string =>
  `sum(${serverRateOver(range, 'benchwatch_aurora_commit_latency_seconds_total')}) / (sum(${serverRateOver(range, 'benchwatch_aurora_commits_total')}) > 0)`;

export const aurora: Page = {
  name: 'aurora',
  title: 'Benchmark: Aurora',
  description: 'Throughput, statement times, replica lag and CPU of Aurora MySQL instances by SQL. Volume, network and memory from CloudWatch.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Queries',
      description: 'Statements per second from clients, all selected instances. From benchwatch_db_queries_total.',
      unit: unit.perSecond,
      noData: 'No Aurora',
      span: 4,
      queries: [
        now(live(`sum(${serverRateOver('5s', 'benchwatch_db_queries_total')} ${isAurora})`), 'now'),
        now(over(`sum(${meanInRange(`${serverRateOver('5s', 'benchwatch_db_queries_total')} ${isAurora}`)})`), 'mean of the run'),
      ],
    }),
    stat({
      title: 'Commits',
      description: 'Commits per second on the writer. From benchwatch_aurora_commits_total.',
      unit: unit.perSecond,
      noData: 'No Aurora',
      span: 4,
      queries: [
        now(live(`sum(${serverRateOver('5s', 'benchwatch_aurora_commits_total')})`), 'now'),
        now(over(`sum(${meanInRange(serverRateOver('5s', 'benchwatch_aurora_commits_total'))})`), 'mean of the run'),
      ],
    }),
    stat({
      title: 'Commit time',
      description:
        'Mean time of a commit, which waits for four of the six copies of the volume. From benchwatch_aurora_commit_latency_seconds_total.',
      unit: unit.seconds,
      noData: 'No commits',
      span: 4,
      queries: [now(live(commitTime('5s')), 'now'), now(over(meanInRange(commitTime('5s'))), 'mean of the run')],
    }),
    stat({
      title: 'Worst lag',
      description:
        'The reader with the highest lag. About 20 ms is usual. AuroraReplicaLagHigh fires over 1 s. From benchwatch_aurora_replica_lag_seconds, otherwise CloudWatch.',
      unit: unit.seconds,
      noData: 'No readers',
      span: 4,
      limits: { warning: 1 },
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(
          live(`topk(1, ${instances('benchwatch_aurora_replica_lag_seconds')} or ${recorded('server:aws_rds_replica_lag:seconds')})`),
          '{{server}} now',
        ),
        now(worst('aurora_replica_lag_seconds:max'), '{{server}} worst'),
      ],
    }),
    stat({
      title: 'Busiest',
      description:
        'CPU utilization of the busiest instance. AuroraCPUHigh fires from 90 %. From benchwatch_aurora_server_cpu_ratio, otherwise CloudWatch.',
      unit: unit.share,
      decimals: 0,
      noData: 'No Aurora',
      span: 4,
      limits: limits.cpu,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`topk(1, ${instances('benchwatch_aurora_server_cpu_ratio')} or ${recorded('server:aws_rds_cpu:ratio')})`), '{{server}} now'),
        now(worst('aurora_server_cpu_ratio:max'), '{{server}} highest'),
      ],
    }),
    stat({
      title: 'Connections',
      description:
        'Client connections on the instance with the most, without internal connections of RDS. From benchwatch_aurora_external_connections.',
      unit: unit.digits,
      decimals: 0,
      noData: 'No Aurora',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`topk(1, ${serverGauge('benchwatch_aurora_external_connections')})`), `${server} now`),
        now(worst('aurora_external_connections:max'), `${server} most`),
      ],
    }),
    row('By SQL, once a second'),
    run.throughputOverTime(8, 9),
    graph({
      title: 'Queries by instance',
      unit: unit.perSecond,
      noData: noAurora,
      span: 8,
      description: 'Statements per second that clients sent to each instance. From benchwatch_db_queries_total.',
      queries: [agent(`${serverRate('benchwatch_db_queries_total')} ${isAurora}`, server)],
    }),
    graph({
      title: 'Replica lag',
      unit: unit.seconds,
      noData: 'No readers, or the writer is not sampled',
      span: 8,
      limits: { warning: 1 },
      showLimits: false,
      description:
        'Lag of each reader, according to the writer. About 20 ms is usual. AuroraReplicaLagHigh fires over 1 s. From benchwatch_aurora_replica_lag_seconds.',
      queries: [agent(instances('benchwatch_aurora_replica_lag_seconds'), '{{server}}')],
    }),
    graph({
      title: 'CPU by instance',
      unit: unit.share,
      max: 1,
      noData: 'The writer is not sampled',
      span: 8,
      limits: limits.cpu,
      description:
        'CPU utilization of each instance of the cluster, according to the writer. AuroraCPUHigh fires from 90 %. From benchwatch_aurora_server_cpu_ratio.',
      queries: [agent(instances('benchwatch_aurora_server_cpu_ratio'), '{{server}}')],
    }),
    graph({
      title: 'Mean time of statements',
      unit: unit.seconds,
      noData: noAurora,
      span: 8,
      description:
        'Mean time of statements in the server, by kind. From benchwatch_aurora_statement_duration_seconds_total and benchwatch_db_operations_total.',
      queries: [
        agent(
          `sum by (op) (${serverRate('benchwatch_aurora_statement_duration_seconds_total', '', 'op')}) / (sum by (op) (${serverRate('benchwatch_db_operations_total', '', 'op')} ${isAurora}) > 0)`,
          '{{op}}',
        ),
      ],
    }),
    graph({
      title: 'Statements executing',
      unit: unit.count,
      noData: noAurora,
      span: 8,
      description:
        'Statements executing by kind, on average (seconds spent per second). AWS calls this value average active sessions. From benchwatch_aurora_statement_duration_seconds_total.',
      queries: [agent(`sum by (op) (${serverRate('benchwatch_aurora_statement_duration_seconds_total', '', 'op')})`, '{{op}}')],
    }),
    graph({
      title: 'Commits',
      unit: unit.perSecond,
      noData: noAurora,
      span: 8,
      description: 'Commits per second by instance. From benchwatch_aurora_commits_total.',
      queries: [agent(serverRate('benchwatch_aurora_commits_total'), server)],
    }),
    graph({
      title: 'Mean commit time',
      unit: unit.seconds,
      noData: noAurora,
      span: 8,
      description: 'Mean time of a commit by instance. From benchwatch_aurora_commit_latency_seconds_total.',
      queries: [
        agent(
          `${serverRate('benchwatch_aurora_commit_latency_seconds_total')} / on (cluster, target) (${serverRate('benchwatch_aurora_commits_total')} > 0)`,
          server,
        ),
      ],
    }),
    timeline({
      title: 'Writer',
      unit: unit.none,
      noData: 'No Aurora',
      span: 8,
      description: 'Role of each instance. A change is a failover, which resets counters. From benchwatch_aurora_writer.',
      queries: [agent(serverGauge('benchwatch_aurora_writer'), server)],
      mappings: states({ '0': { text: 'reader', color: 'blue' }, '1': { text: 'writer', color: 'green' } }),
    }),
    graph({
      title: 'Threads running',
      unit: unit.count,
      noData: noAurora,
      span: 8,
      description: 'Clients executing a statement at the time of the sample, by instance. From benchwatch_db_threads_running.',
      queries: [agent(`${serverGauge('benchwatch_db_threads_running')} ${isAurora}`, server)],
    }),
    graph({
      title: 'Clients waiting for row locks',
      unit: unit.count,
      noData: noAurora,
      span: 8,
      description:
        'Number of clients waiting for a row lock, on average (seconds waited per second). Near zero is good. DatabaseLockWaits fires over 25 % of the running threads. From benchwatch_db_lock_wait_seconds_total.',
      queries: [agent(`${serverRate('benchwatch_db_lock_wait_seconds_total')} ${isAurora}`, server)],
    }),
    graph({
      title: 'Replication traffic to readers',
      unit: unit.bytesPerSecond,
      noData: 'No readers are sampled',
      span: 8,
      description: 'Bytes per second that readers received from the writer. From benchwatch_aurora_replication_received_bytes_total.',
      queries: [agent(serverRate('benchwatch_aurora_replication_received_bytes_total'), server)],
    }),
    closedRow(
      'From CloudWatch, minutes late',
      graph({
        title: 'CPU (CloudWatch)',
        unit: unit.share,
        max: 1,
        noData: noCloudWatch,
        span: 8,
        limits: limits.cpu,
        description: `CPU utilization of each instance. ${late} From aws_rds_cpuutilization_average (YACE) or node_cpu_average (rds_exporter).`,
        queries: [cloudwatch(recorded('server:aws_rds_cpu:ratio'), '{{server}}')],
      }),
      graph({
        title: 'Replica lag (CloudWatch)',
        unit: unit.seconds,
        noData: noCloudWatch,
        span: 8,
        description: `Lag of each reader. ${late} From aws_rds_aurora_replica_lag_average, converted to seconds.`,
        queries: [cloudwatch(recorded('server:aws_rds_replica_lag:seconds'), '{{server}}')],
      }),
      graph({
        title: 'Commit latency (CloudWatch)',
        unit: unit.seconds,
        noData: noCloudWatch,
        span: 8,
        description: `Mean time of a commit. ${late} From aws_rds_commit_latency_average, converted to seconds.`,
        queries: [cloudwatch(recorded('server:aws_rds_commit_latency:seconds'), '{{server}}')],
      }),
      graph({
        title: 'Queries (CloudWatch)',
        unit: unit.perSecond,
        noData: noCloudWatch,
        span: 8,
        description: `Queries per second. ${late} From aws_rds_queries_average.`,
        queries: [cloudwatch(recorded('server:aws_rds_queries:rate'), '{{server}}')],
      }),
      graph({
        title: 'Freeable memory',
        unit: unit.bytes,
        noData: noCloudWatch,
        span: 8,
        description: `Memory available on each instance. ${late} From aws_rds_freeable_memory_average.`,
        queries: [cloudwatch(rds('aws_rds_freeable_memory_average'), '{{dimension_DBInstanceIdentifier}}')],
      }),
      graph({
        title: 'Buffer cache hits',
        unit: 'percent',
        noData: noCloudWatch,
        span: 8,
        max: 100,
        description: `Percentage of page reads served from memory. Near 100 % means that the data fit into memory. ${late} From aws_rds_buffer_cache_hit_ratio_average.`,
        queries: [cloudwatch(rds('aws_rds_buffer_cache_hit_ratio_average'), '{{dimension_DBInstanceIdentifier}}')],
      }),
      graph({
        title: 'Volume operations',
        unit: unit.perSecond,
        noData: noCloudWatch,
        span: 12,
        description:
          "Reads and writes per second on the cluster's volume, the mean of five minutes (CloudWatch's count divided by 300 s). AWS bills them. From aws_rds_volume_read_iops_sum and aws_rds_volume_write_iops_sum.",
        queries: [
          cloudwatch(
            `max by (dimension_DBClusterIdentifier) (${ofRunClusters('aws_rds_volume_read_iops_sum')}) / 300`,
            '{{dimension_DBClusterIdentifier}} reads',
          ),
          cloudwatch(
            `max by (dimension_DBClusterIdentifier) (${ofRunClusters('aws_rds_volume_write_iops_sum')}) / 300`,
            '{{dimension_DBClusterIdentifier}} writes',
          ),
        ],
      }),
      graph({
        title: 'Network',
        unit: unit.bytesPerSecond,
        noData: noCloudWatch,
        span: 12,
        description: `Bytes per second from and to clients (solid), and to the volume (dashed). ${late} From aws_rds_network_receive_throughput_average and related metrics.`,
        queries: [
          cloudwatch(rds('aws_rds_network_receive_throughput_average'), '{{dimension_DBInstanceIdentifier}} in'),
          cloudwatch(rds('aws_rds_network_transmit_throughput_average'), '{{dimension_DBInstanceIdentifier}} out'),
          cloudwatch(rds('aws_rds_storage_network_transmit_throughput_average'), '{{dimension_DBInstanceIdentifier}} to volume'),
        ],
        overrides: [{ series: /.* to volume$/, set: [set.dashed(), set.noFill()] }],
      }),
      graph({
        title: 'Disk operations of RDS MySQL',
        unit: unit.perSecond,
        noData: noDisk,
        span: 12,
        description: `Reads and writes per second on the disk of each instance. Compare them with its provisioned IOPS. ${late} From aws_rds_read_iops_average and aws_rds_write_iops_average.`,
        queries: [
          cloudwatch(rds('aws_rds_read_iops_average'), '{{dimension_DBInstanceIdentifier}} reads'),
          cloudwatch(rds('aws_rds_write_iops_average'), '{{dimension_DBInstanceIdentifier}} writes'),
        ],
      }),
      graph({
        title: 'Disk latency of RDS MySQL',
        unit: unit.seconds,
        noData: noDisk,
        span: 12,
        description: `Mean time of a read and of a write. ${late} From aws_rds_read_latency_average and aws_rds_write_latency_average.`,
        queries: [
          cloudwatch(rds('aws_rds_read_latency_average'), '{{dimension_DBInstanceIdentifier}} reads'),
          cloudwatch(rds('aws_rds_write_latency_average'), '{{dimension_DBInstanceIdentifier}} writes'),
        ],
      }),
      graph({
        title: 'Disk queue of RDS MySQL',
        unit: unit.none,
        noData: noDisk,
        span: 12,
        description: `Reads and writes that wait for the disk. ${late} From aws_rds_disk_queue_depth_average.`,
        queries: [cloudwatch(rds('aws_rds_disk_queue_depth_average'), '{{dimension_DBInstanceIdentifier}}')],
      }),
      graph({
        title: 'Serverless capacity',
        unit: unit.none,
        noData: 'No CloudWatch exporter is scraped, or the instances are not serverless',
        span: 12,
        description: `Capacity units (ACU) of serverless instances. Capacity scales with the load: wait until it is constant before you measure. ${late} From aws_rds_serverless_database_capacity_average.`,
        queries: [cloudwatch(rds('aws_rds_serverless_database_capacity_average'), '{{dimension_DBInstanceIdentifier}} ACU')],
      }),
    ),
  ],
};
