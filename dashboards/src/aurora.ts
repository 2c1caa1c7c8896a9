// Aurora MySQL: by SQL through the agent, once a second; what only CloudWatch
// knows comes through YACE or rds_exporter, a point a minute and minutes late.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import { serverRate, servers } from './metrics';
import { graph, row, set, stat, states, timeline, unit } from './panel';
import * as run from './panels/run';
import { agent, cloudwatch, now } from './query';
import { limits } from './threshold';

const noAurora = 'No Aurora instance is sampled';
/** Aurora is found out by asking: its instances are those with this metric. */
const isAurora = 'and on (target) benchwatch_aurora_writer';
const noCloudWatch = 'No CloudWatch exporter is scraped (job cloudwatch: YACE or rds_exporter)';
const late = 'CloudWatch has one point a minute, some minutes late.';

const rds = (metric: string): string => `max by (dimension_DBInstanceIdentifier) (${metric}{dimension_DBInstanceIdentifier!=""})`;

export const aurora: Page = {
  name: 'aurora',
  title: 'Benchmark: Aurora',
  description: 'Aurora MySQL: throughput, statement times, replica lag and CPU of all instances by SQL; volume and network from CloudWatch.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Queries',
      description: 'Statements a second from clients on all selected instances. From benchwatch_db_queries_total.',
      unit: unit.perSecond,
      noData: 'No Aurora',
      span: 4,
      queries: [now(`sum(rate(benchwatch_db_queries_total{${servers}}[5s]) ${isAurora})`, 'queries')],
    }),
    stat({
      title: 'Commits',
      description: 'Commits a second on the writer. From benchwatch_aurora_commits_total.',
      unit: unit.perSecond,
      noData: 'No Aurora',
      span: 4,
      queries: [now(`sum(rate(benchwatch_aurora_commits_total{${servers}}[5s]))`, 'commits')],
    }),
    stat({
      title: 'Mean commit',
      description: 'Mean time of a commit: the write to four of six copies of the volume. From benchwatch_aurora_commit_latency_seconds_total.',
      unit: unit.seconds,
      noData: 'No commits',
      span: 4,
      queries: [
        now(
          `sum(rate(benchwatch_aurora_commit_latency_seconds_total{${servers}}[5s])) / (sum(rate(benchwatch_aurora_commits_total{${servers}}[5s])) > 0)`,
          'commit',
        ),
      ],
    }),
    stat({
      title: 'Worst replica lag',
      description:
        'The reader that is furthest behind the writer. Some 20 ms are usual; over 1 s AuroraReplicaLagHigh fires. From benchwatch_aurora_replica_lag_seconds, else CloudWatch.',
      unit: unit.seconds,
      noData: 'No readers',
      span: 4,
      limits: { warning: 1 },
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(
          'topk(1, max by (server) (benchwatch_aurora_replica_lag_seconds{cluster=~"$cluster"}) or server:aws_rds_replica_lag:seconds)',
          '{{server}}',
        ),
      ],
    }),
    stat({
      title: 'Hottest instance',
      description: 'CPU of the busiest instance. From 90 % on AuroraCPUHigh fires. From benchwatch_aurora_server_cpu_ratio, else CloudWatch.',
      unit: unit.share,
      decimals: 0,
      noData: 'No Aurora',
      span: 4,
      limits: limits.cpu,
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [now('topk(1, max by (server) (benchwatch_aurora_server_cpu_ratio{cluster=~"$cluster"}) or server:aws_rds_cpu:ratio)', '{{server}}')],
    }),
    stat({
      title: 'Connections',
      description: 'Client connections on the fullest instance, without those of RDS itself. From benchwatch_aurora_external_connections.',
      unit: unit.digits,
      decimals: 0,
      noData: 'No Aurora',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      queries: [now(`topk(1, max by (target) (benchwatch_aurora_external_connections{${servers}}))`, '{{target}}')],
    }),
    row('By SQL, once a second'),
    run.throughputByOperation(8, 8),
    graph({
      title: 'Queries by instance',
      unit: unit.perSecond,
      noData: noAurora,
      span: 8,
      description: 'Statements a second that clients sent to each instance. From benchwatch_db_queries_total.',
      queries: [agent(`sum by (target) (${serverRate('benchwatch_db_queries_total')} ${isAurora})`, '{{target}}')],
    }),
    graph({
      title: 'Replica lag',
      unit: unit.seconds,
      noData: 'No readers, or the writer is not sampled',
      span: 8,
      limits: { warning: 1 },
      showLimits: false,
      description: 'How far each reader is behind, as the writer sees it. Some 20 ms are usual. From benchwatch_aurora_replica_lag_seconds.',
      queries: [agent(`max by (server) (benchwatch_aurora_replica_lag_seconds{${servers}})`, '{{server}}')],
    }),
    graph({
      title: 'CPU by instance',
      unit: unit.share,
      decimals: 0,
      max: 1,
      noData: 'The writer is not sampled',
      span: 8,
      limits: limits.cpu,
      description: 'CPU use of each instance of the cluster, as the writer knows it. From benchwatch_aurora_server_cpu_ratio.',
      queries: [agent(`max by (server) (benchwatch_aurora_server_cpu_ratio{${servers}})`, '{{server}}')],
    }),
    graph({
      title: 'Mean time of statements',
      unit: unit.seconds,
      noData: noAurora,
      span: 8,
      description:
        'Mean time of statements by kind, in the server. From benchwatch_aurora_statement_duration_seconds_total and benchwatch_db_operations_total.',
      queries: [
        agent(
          `sum by (op) (${serverRate('benchwatch_aurora_statement_duration_seconds_total')}) / (sum by (op) (${serverRate('benchwatch_db_operations_total')} ${isAurora}) > 0)`,
          '{{op}}',
        ),
      ],
    }),
    graph({
      title: 'Statements in work',
      unit: unit.count,
      decimals: 1,
      noData: noAurora,
      span: 8,
      description:
        'Statements in work by kind, on average (seconds spent a second): what AWS calls average active sessions. From benchwatch_aurora_statement_duration_seconds_total.',
      queries: [agent(`sum by (op) (${serverRate('benchwatch_aurora_statement_duration_seconds_total')})`, '{{op}}')],
    }),
    graph({
      title: 'Commits',
      unit: unit.perSecond,
      noData: noAurora,
      span: 8,
      description: 'Commits a second by instance. From benchwatch_aurora_commits_total.',
      queries: [agent(`sum by (target) (${serverRate('benchwatch_aurora_commits_total')})`, '{{target}}')],
    }),
    graph({
      title: 'Mean commit time',
      unit: unit.seconds,
      noData: noAurora,
      span: 8,
      description: 'Mean time of a commit by instance. From benchwatch_aurora_commit_latency_seconds_total.',
      queries: [
        agent(
          `sum by (target) (${serverRate('benchwatch_aurora_commit_latency_seconds_total')}) / (sum by (target) (${serverRate('benchwatch_aurora_commits_total')}) > 0)`,
          '{{target}}',
        ),
      ],
    }),
    timeline({
      title: 'Writer',
      unit: unit.none,
      noData: noAurora,
      span: 8,
      description: 'Which instance is the writer. A change is a failover: counters begin at zero. From benchwatch_aurora_writer.',
      queries: [agent(`max by (target) (benchwatch_aurora_writer{${servers}})`, '{{target}}')],
      mappings: states({ '0': { text: 'reader', color: 'blue' }, '1': { text: 'writer', color: 'green' } }),
    }),
    graph({
      title: 'Threads running',
      unit: unit.count,
      decimals: 0,
      noData: noAurora,
      span: 8,
      description: 'Clients executing a statement at the instant of the sample, by instance. From benchwatch_db_threads_running.',
      queries: [agent(`max by (target) (benchwatch_db_threads_running{${servers}} ${isAurora})`, '{{target}}')],
    }),
    graph({
      title: 'Clients waiting for row locks',
      unit: unit.count,
      decimals: 1,
      noData: noAurora,
      span: 8,
      description: 'How many clients wait for a row lock, on average (seconds waited a second). From benchwatch_db_lock_wait_seconds_total.',
      queries: [agent(`sum by (target) (${serverRate('benchwatch_db_lock_wait_seconds_total')} ${isAurora})`, '{{target}}')],
    }),
    graph({
      title: 'Replicated into readers',
      unit: unit.bytesPerSecond,
      noData: 'No readers are sampled',
      span: 8,
      description: 'Bytes a second that readers received from the writer. From benchwatch_aurora_replication_received_bytes_total.',
      queries: [agent(`sum by (target) (${serverRate('benchwatch_aurora_replication_received_bytes_total')})`, '{{target}}')],
    }),
    row('From CloudWatch, minutes late'),
    graph({
      title: 'CPU (CloudWatch)',
      unit: unit.share,
      decimals: 0,
      max: 1,
      noData: noCloudWatch,
      span: 8,
      limits: limits.cpu,
      description: `CPU use of each instance. ${late} From aws_rds_cpuutilization_average (YACE) or node_cpu_average (rds_exporter).`,
      queries: [cloudwatch('server:aws_rds_cpu:ratio', '{{server}}')],
    }),
    graph({
      title: 'Replica lag (CloudWatch)',
      unit: unit.seconds,
      noData: noCloudWatch,
      span: 8,
      description: `Lag of each reader. ${late} From aws_rds_aurora_replica_lag_average, in seconds.`,
      queries: [cloudwatch('server:aws_rds_replica_lag:seconds', '{{server}}')],
    }),
    graph({
      title: 'Commit latency (CloudWatch)',
      unit: unit.seconds,
      noData: noCloudWatch,
      span: 8,
      description: `Mean time of a commit. ${late} From aws_rds_commit_latency_average, in seconds.`,
      queries: [cloudwatch('server:aws_rds_commit_latency:seconds', '{{server}}')],
    }),
    graph({
      title: 'Queries (CloudWatch)',
      unit: unit.perSecond,
      noData: noCloudWatch,
      span: 8,
      description: `Queries a second. ${late} From aws_rds_queries_average.`,
      queries: [cloudwatch('server:aws_rds_queries:rate', '{{server}}')],
    }),
    graph({
      title: 'Volume operations',
      unit: unit.perSecond,
      noData: noCloudWatch,
      span: 8,
      description:
        "Reads and writes a second of the cluster's volume. CloudWatch counts them over five minutes; shown is that count over 300 s. What reads cost is billed. From aws_rds_volume_read_iops_sum and aws_rds_volume_write_iops_sum.",
      queries: [
        cloudwatch('max by (dimension_DBClusterIdentifier) (aws_rds_volume_read_iops_sum) / 300', '{{dimension_DBClusterIdentifier}} reads'),
        cloudwatch('max by (dimension_DBClusterIdentifier) (aws_rds_volume_write_iops_sum) / 300', '{{dimension_DBClusterIdentifier}} writes'),
      ],
    }),
    graph({
      title: 'Network',
      unit: unit.bytesPerSecond,
      noData: noCloudWatch,
      span: 8,
      description: `Bytes a second from and to clients (solid), and to the volume (dashed). ${late} From aws_rds_network_receive_throughput_average and its sisters.`,
      queries: [
        cloudwatch(rds('aws_rds_network_receive_throughput_average'), '{{dimension_DBInstanceIdentifier}} in'),
        cloudwatch(rds('aws_rds_network_transmit_throughput_average'), '{{dimension_DBInstanceIdentifier}} out'),
        cloudwatch(rds('aws_rds_storage_network_transmit_throughput_average'), '{{dimension_DBInstanceIdentifier}} to volume'),
      ],
      overrides: [{ series: /.* to volume$/, set: [set.dashed(), set.noFill()] }],
    }),
    graph({
      title: 'Memory left',
      unit: unit.bytes,
      noData: noCloudWatch,
      span: 8,
      description: `Memory that each instance could still use. ${late} From aws_rds_freeable_memory_average.`,
      queries: [cloudwatch(rds('aws_rds_freeable_memory_average'), '{{dimension_DBInstanceIdentifier}}')],
    }),
    graph({
      title: 'Buffer cache hits',
      unit: 'percent',
      decimals: 1,
      noData: noCloudWatch,
      span: 8,
      max: 100,
      description: `Share of page reads that memory answered. ${late} From aws_rds_buffer_cache_hit_ratio_average.`,
      queries: [cloudwatch(rds('aws_rds_buffer_cache_hit_ratio_average'), '{{dimension_DBInstanceIdentifier}}')],
    }),
    graph({
      title: 'Serverless capacity',
      unit: unit.none,
      decimals: 1,
      noData: 'No CloudWatch exporter is scraped, or the instances are not serverless',
      span: 8,
      description: `Capacity units of serverless instances. It scales during a run: let it settle first. ${late} From aws_rds_serverless_database_capacity_average.`,
      queries: [cloudwatch(rds('aws_rds_serverless_database_capacity_average'), '{{dimension_DBInstanceIdentifier}} ACU')],
    }),
  ],
};
