// MongoDB: replica sets and sharded clusters. From the agent's samples or, without
// an agent, from percona/mongodb_exporter.

import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import type { Page } from './frame';
import {
  live,
  meanInRange,
  ofRunClusters,
  over,
  perServer,
  server,
  serverGauge,
  serverRate,
  serverRateOver,
  servers,
  withoutAgent,
  worst,
} from './metrics';
import { closedRow, graph, row, set, stat, states, timeline, unit } from './panel';
import * as host from './panels/host';
import { agent, exporter, now, type Query } from './query';

const noData = 'No MongoDB server of the selected run is sampled, and no mongodb_exporter is scraped';
const noSet = 'No member of a replica set is sampled';
const noShards = 'No mongos is sampled, or there are no sharded collections';

/** The agent's series, or the exporter's if there is no agent. */
function either(ofAgent: string, agentLegend: string, ofExporter: string, exporterLegend: string): Query[] {
  return [agent(ofAgent, agentLegend), exporter(withoutAgent(ofExporter), exporterLegend)];
}

const shardRate = `sum by (cluster, shard) (${serverRate('benchwatch_mongodb_shard_operations_total', '', 'shard', 'collection', 'kind')})`;
const ofShards = (range: string): string =>
  `sum by (cluster, shard) (${serverRateOver(range, 'benchwatch_mongodb_shard_operations_total', '', 'shard', 'collection', 'kind')})`;
const shareOfShards = `${ofShards('1m')} / on (cluster) group_left () (sum by (cluster) (${ofShards('1m')}) > 0)`;
const queued = serverGauge('benchwatch_mongodb_queued_operations', '', 'kind');
const dirty = perServer(`benchwatch_mongodb_cache_dirty_bytes{${servers}} / benchwatch_mongodb_cache_limit_bytes{${servers}}`);
/** What members report about each other, as the worst of them sees it. */
const members = (gauge: string): string => `max by (cluster, member) (${serverGauge(gauge, '', 'member')})`;

export const mongodb: Page = {
  name: 'mongodb',
  title: 'Benchmark: MongoDB',
  description: 'Load, tickets, cache, replication and shards of MongoDB servers.',
  variables: ['cluster', 'target', 'run'],
  content: [
    stat({
      title: 'Operations',
      description:
        'Operations per second that clients requested, all selected servers, now or on average over a finished run. A mongos and its shards both count an operation: select only one kind. From benchwatch_db_queries_total.',
      unit: unit.perSecond,
      noData: 'Not sampled',
      span: 4,
      queries: [
        now(live(`sum(${serverRateOver('5s', 'benchwatch_db_queries_total', 'engine="mongodb"')})`), 'now'),
        now(over(`sum(${meanInRange(serverRateOver('5s', 'benchwatch_db_queries_total', 'engine="mongodb"'))})`), 'mean of the run'),
      ],
    }),
    stat({
      title: 'Worst lag',
      description:
        'The member with the highest lag behind its primary, now or in a finished run, according to the heartbeats. An idle replica set writes every 10 s, so ignore a lag under 10 s. MongoDBReplicationLagHigh fires over 15 s. From benchwatch_mongodb_member_lag_seconds.',
      unit: unit.seconds,
      decimals: 0,
      noData: 'No replica set',
      span: 4,
      limits: { warning: 15 },
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [
        now(live(`topk(1, ${members('benchwatch_mongodb_member_lag_seconds')})`), '{{member}} now'),
        now(worst('mongodb_member_lag_seconds:max'), '{{member}} worst'),
      ],
    }),
    stat({
      title: 'Queued',
      description:
        'Operations waiting for a lock or a ticket, on the server with the most, now or in a finished run. Zero is good. From benchwatch_mongodb_queued_operations.',
      unit: unit.digits,
      decimals: 0,
      noData: 'Not sampled',
      span: 4,
      text: BigValueTextMode.ValueAndName,
      limits: { warning: 1 },
      queries: [
        now(live(`topk(1, sum by (cluster, target) (${queued}))`), `${server} now`),
        now(worst('mongodb_queued_operations:max'), `${server} most`),
      ],
    }),
    stat({
      title: 'Dirty cache',
      description:
        'Dirty share of the cache, on the worst server, now or in a finished run. Under 5 % is good: eviction starts there. From 20 % client threads must evict dirty pages. MongoDBCacheDirty fires over 15 %. From benchwatch_mongodb_cache_dirty_bytes.',
      unit: unit.share,
      decimals: 1,
      noData: 'Not sampled',
      span: 4,
      limits: { warning: 0.15, critical: 0.2 },
      filled: true,
      text: BigValueTextMode.ValueAndName,
      queries: [now(live(`topk(1, ${dirty})`), `${server} now`), now(worst('mongodb_cache_dirty:ratio'), `${server} most`)],
    }),
    stat({
      title: 'Flow control',
      description:
        'Whether a primary throttles writes, or did in a finished run, because the majority lags. Off is good. MongoDBFlowControl fires after 5 s. From benchwatch_mongodb_flow_control_lagged.',
      unit: unit.none,
      decimals: 0,
      noData: 'No replica set',
      span: 4,
      limits: { warning: 1 },
      filled: true,
      mappings: states({ '0': { text: 'off', color: 'green' }, '1': { text: 'throttling', color: 'orange' } }),
      queries: [
        now(live(`max(${serverGauge('benchwatch_mongodb_flow_control_lagged')})`), 'now'),
        now(worst('mongodb_flow_control_lagged:max'), 'at any time in the run'),
      ],
    }),
    stat({
      title: 'Busy shard',
      description:
        'The shard with the largest share of operations on sharded collections over 1 min or over a finished run. Equal shares are good. MongoDBShardImbalance fires over 80 %. From benchwatch_mongodb_shard_operations_total.',
      unit: unit.share,
      decimals: 0,
      noData: 'No shards',
      span: 4,
      limits: { warning: 0.8 },
      text: BigValueTextMode.ValueAndName,
      queries: [now(live(`topk(1, ${shareOfShards})`), '{{shard}} now'), now(over(`topk(1, ${meanInRange(shareOfShards)})`), '{{shard}} of the run')],
    }),
    row('Load'),
    graph({
      title: 'Operations by kind',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Operations per second by kind, all selected servers. getmore and command include internal operations of the members. From benchwatch_db_operations_total or mongodb_ss_opcounters.',
      queries: either(
        `sum by (op) (${serverRate('benchwatch_db_operations_total', 'engine="mongodb"', 'op')})`,
        '{{op}}',
        `sum by (legacy_op_type) (${ofRunClusters('rate(mongodb_ss_opcounters[$__rate_interval])')})`,
        '{{legacy_op_type}}',
      ),
    }),
    graph({
      title: 'Operations by server',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Operations of clients per second by server. Shows the distribution of the load. From benchwatch_db_queries_total or mongodb_ss_opcounters, there without getmore and command, which include internal operations of the members.',
      queries: either(
        serverRate('benchwatch_db_queries_total', 'engine="mongodb"'),
        server,
        `sum by (instance) (${ofRunClusters('rate(mongodb_ss_opcounters{legacy_op_type!~"getmore|command"}[$__rate_interval])')})`,
        '{{instance}}',
      ),
    }),
    graph({
      title: 'Mean latency',
      unit: unit.seconds,
      noData,
      span: 8,
      description:
        'Mean time in the server by kind of operation, all selected servers, without time in the client and the network. Reads of mongodb_ss_opLatencies include those of the oplog by secondaries. Low and constant is good. From benchwatch_mongodb_latency_seconds_total or mongodb_ss_opLatencies_latency.',
      queries: either(
        `sum by (kind) (${serverRate('benchwatch_mongodb_latency_seconds_total', '', 'kind')}) / (sum by (kind) (${serverRate('benchwatch_mongodb_latency_operations_total', '', 'kind')}) > 0)`,
        '{{kind}}',
        'sum by (op_type) (rate(mongodb_ss_opLatencies_latency[$__rate_interval])) / (sum by (op_type) (rate(mongodb_ss_opLatencies_ops[$__rate_interval])) > 0) / 1e6',
        '{{op_type}}',
      ),
    }),
    graph({
      title: 'Connections',
      unit: unit.count,
      noData,
      span: 8,
      description: 'Client connections by server, including connections of other members. From benchwatch_db_connections or mongodb_ss_connections.',
      queries: either(
        serverGauge('benchwatch_db_connections', 'engine="mongodb"'),
        server,
        `max by (instance) (${ofRunClusters('mongodb_ss_connections{conn_type="current"}')})`,
        '{{instance}}',
      ),
    }),
    graph({
      title: 'Queued operations',
      unit: unit.count,
      noData,
      span: 8,
      description:
        'Operations waiting for a lock or a ticket, by server. Zero is good. A queue that does not empty means saturation. From benchwatch_mongodb_queued_operations or mongodb_ss_globalLock_currentQueue.',
      queries: either(
        queued,
        `${server} {{kind}}`,
        `sum by (instance, count_type) (${ofRunClusters('mongodb_ss_globalLock_currentQueue{count_type!="total"}')})`,
        '{{instance}} {{count_type}}',
      ),
    }),
    graph({
      title: 'Tickets in use',
      unit: unit.count,
      noData,
      span: 8,
      description:
        'Storage engine tickets in use by server (solid), and their limit (dashed). MongoDBTicketsExhausted fires if none is available while operations are queued. Since 7.0 the server adjusts the limit. From benchwatch_mongodb_tickets_in_use and benchwatch_mongodb_tickets_limit, or mongodb_ss_wt_concurrentTransactions_out.',
      queries: [
        ...either(
          serverGauge('benchwatch_mongodb_tickets_in_use', '', 'kind'),
          `${server} {{kind}}`,
          `max by (instance, txn_rw) (${ofRunClusters('mongodb_ss_wt_concurrentTransactions_out')})`,
          '{{instance}} {{txn_rw}}',
        ),
        agent(`max by (kind) (${serverGauge('benchwatch_mongodb_tickets_limit', '', 'kind')})`, '{{kind}} limit'),
      ],
      overrides: [{ series: /.* limit$/, set: [set.dashed(), set.noFill()] }],
    }),
    row('Cache and storage'),
    graph({
      title: 'Cache',
      unit: unit.share,
      max: 1,
      noData,
      span: 8,
      limits: { warning: 0.8, critical: 0.95 },
      description:
        'Share of the cache in use. Eviction starts at 80 %. From 95 % client threads must evict pages. From benchwatch_mongodb_cache_bytes or mongodb_ss_wt_cache_bytes_currently_in_the_cache.',
      queries: either(
        perServer(`benchwatch_mongodb_cache_bytes{${servers}} / benchwatch_mongodb_cache_limit_bytes{${servers}}`),
        server,
        `max by (instance) (${ofRunClusters('mongodb_ss_wt_cache_bytes_currently_in_the_cache / mongodb_ss_wt_cache_maximum_bytes_configured')})`,
        '{{instance}}',
      ),
    }),
    graph({
      title: 'Dirty cache',
      unit: unit.share,
      noData,
      span: 8,
      limits: { warning: 0.15, critical: 0.2 },
      description:
        'Dirty share of the cache. Under 5 % is good. From 20 % writers stall. MongoDBCacheDirty fires over 15 %. From benchwatch_mongodb_cache_dirty_bytes or mongodb_ss_wt_cache_tracked_dirty_bytes_in_the_cache.',
      queries: either(
        dirty,
        server,
        `max by (instance) (${ofRunClusters('mongodb_ss_wt_cache_tracked_dirty_bytes_in_the_cache / mongodb_ss_wt_cache_maximum_bytes_configured')})`,
        '{{instance}}',
      ),
    }),
    graph({
      title: 'Evictions by clients',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Pages per second that client threads evicted. Zero is good. Any eviction increases the latency of clients. From benchwatch_mongodb_cache_application_evictions_total.',
      queries: [agent(serverRate('benchwatch_mongodb_cache_application_evictions_total'), server)],
    }),
    graph({
      title: 'Cache traffic',
      unit: unit.bytesPerSecond,
      noData,
      span: 8,
      description:
        'Bytes per second read into and written from the cache. Reads mean that the data do not fit into the cache. From benchwatch_mongodb_cache_traffic_bytes_total or mongodb_ss_wt_cache_bytes_read_into_cache.',
      queries: [
        ...either(
          serverRate('benchwatch_mongodb_cache_traffic_bytes_total', '', 'direction'),
          `${server} {{direction}}`,
          `sum by (instance) (${ofRunClusters('rate(mongodb_ss_wt_cache_bytes_read_into_cache[$__rate_interval])')})`,
          '{{instance}} read',
        ),
      ],
    }),
    graph({
      title: 'Write conflicts and scans',
      unit: unit.perSecond,
      noData,
      span: 8,
      description:
        'Writes per second that were retried because of a conflict, and collection scans per second. Near zero is good. From benchwatch_mongodb_write_conflicts_total and benchwatch_mongodb_collection_scans_total.',
      queries: [
        agent(`sum(${serverRate('benchwatch_mongodb_write_conflicts_total')})`, 'write conflicts'),
        agent(`sum(${serverRate('benchwatch_mongodb_collection_scans_total')})`, 'collection scans'),
      ],
    }),
    graph({
      title: 'Last checkpoint',
      unit: unit.seconds,
      noData,
      span: 8,
      description:
        'Duration of the last checkpoint. A few seconds are good. A long checkpoint means that the disk is too slow for the writes. From benchwatch_mongodb_checkpoint_last_duration_seconds.',
      queries: [agent(serverGauge('benchwatch_mongodb_checkpoint_last_duration_seconds'), server)],
    }),
    closedRow(
      'Replica set',
      graph({
        title: 'Replication lag',
        unit: unit.seconds,
        noData: noSet,
        span: 8,
        limits: { warning: 15 },
        description:
          'Lag of each member behind the primary, according to the heartbeats. Up to 10 s is usual on an idle replica set. MongoDBReplicationLagHigh fires over 15 s. From benchwatch_mongodb_member_lag_seconds or mongodb_mongod_replset_member_replication_lag.',
        queries: either(
          members('benchwatch_mongodb_member_lag_seconds'),
          '{{member}}',
          `max by (name) (${ofRunClusters('mongodb_mongod_replset_member_replication_lag')})`,
          '{{name}}',
        ),
      }),
      timeline({
        title: 'Member states',
        unit: unit.none,
        noData: 'No set',
        span: 8,
        description:
          'State of each member, as other members report it. One primary is good. MongoDBNoPrimary fires after 5 s without one. From benchwatch_mongodb_member_state.',
        queries: [agent(members('benchwatch_mongodb_member_state'), '{{member}}')],
        mappings: states({
          '1': { text: 'primary', color: 'green' },
          '2': { text: 'secondary', color: 'blue' },
          '3': { text: 'recovering', color: 'orange' },
          '5': { text: 'startup', color: 'orange' },
          '6': { text: 'unknown', color: 'red' },
          '7': { text: 'arbiter', color: 'purple' },
          '8': { text: 'down', color: 'red' },
          '9': { text: 'rollback', color: 'red' },
        }),
      }),
      graph({
        title: 'Oplog window',
        unit: unit.seconds,
        noData: "No member of a replica set is sampled, or the agent's user may not read the oplog (role read on local)",
        span: 8,
        description:
          'Time range that the oplog covers. A member that is down for longer needs a new initial sync. A write benchmark shortens the window. MongoDBOplogWindowShort fires if a lag is over 25 % of it. From benchwatch_mongodb_oplog_window_seconds.',
        queries: [agent(serverGauge('benchwatch_mongodb_oplog_window_seconds'), server)],
      }),
      graph({
        title: 'Oplog entries applied',
        unit: unit.perSecond,
        noData: noSet,
        span: 8,
        description:
          'Oplog entries per second that each member applied. Equal rates are good. From benchwatch_mongodb_replication_applied_operations_total.',
        queries: [agent(serverRate('benchwatch_mongodb_replication_applied_operations_total'), server)],
      }),
      graph({
        title: 'Apply buffer',
        unit: unit.count,
        noData: noSet,
        span: 8,
        description:
          'Replicated operations that are received but not applied yet. Near zero is good. From benchwatch_mongodb_replication_buffer_operations.',
        queries: [agent(serverGauge('benchwatch_mongodb_replication_buffer_operations', '', 'stage'), `${server} {{stage}}`)],
      }),
      graph({
        title: 'Flow control',
        unit: unit.count,
        noData: noSet,
        span: 8,
        description:
          'Writes waiting for a flow control ticket on the primary, on average (seconds waited per second). Zero is good. From benchwatch_mongodb_flow_control_wait_seconds_total.',
        queries: [agent(serverRate('benchwatch_mongodb_flow_control_wait_seconds_total'), server)],
      }),
    ),
    closedRow(
      'Shards',
      graph({
        title: 'Operations by shard',
        unit: unit.share,
        max: 1,
        noData: noShards,
        span: 8,
        limits: { warning: 0.8 },
        description:
          "Each shard's share of the operations on sharded collections. Equal shares are good, because the busiest shard limits the cluster. MongoDBShardImbalance fires over 80 %. From benchwatch_mongodb_shard_operations_total.",
        queries: [agent(`${shardRate} / on (cluster) group_left () (sum by (cluster) (${shardRate}) > 0)`, '{{shard}}')],
      }),
      graph({
        title: 'Mean latency by shard',
        unit: unit.seconds,
        noData: noShards,
        span: 8,
        description:
          'Mean time of operations on sharded collections, by shard. Equal values are good. From benchwatch_mongodb_shard_latency_seconds_total.',
        queries: [
          agent(
            `sum by (shard) (${serverRate('benchwatch_mongodb_shard_latency_seconds_total', '', 'shard', 'collection', 'kind')}) / (sum by (shard) (${shardRate}) > 0)`,
            '{{shard}}',
          ),
        ],
      }),
      graph({
        title: 'Chunks by shard',
        unit: unit.count,
        noData: noShards,
        span: 8,
        description:
          'Number of chunks on each shard. Equal numbers are good. Wait until the balancer has finished before you start a run. From benchwatch_mongodb_shard_chunks or mongodb_mongos_sharding_shard_chunks_total.',
        queries: either(
          `max by (shard) (${serverGauge('benchwatch_mongodb_shard_chunks', '', 'shard')})`,
          '{{shard}}',
          `max by (shard) (${ofRunClusters('mongodb_mongos_sharding_shard_chunks_total')})`,
          '{{shard}}',
        ),
      }),
      graph({
        title: 'Operations by number of shards',
        unit: unit.perSecond,
        noData: noShards,
        span: 8,
        description:
          'Operations per second of the mongos by number of targeted shards. One shard is good. Operations on all shards are slow, because the query lacks the shard key. From benchwatch_mongodb_targeted_operations_total.',
        queries: [agent(`sum by (shards) (${serverRate('benchwatch_mongodb_targeted_operations_total', '', 'op', 'shards')})`, '{{shards}}')],
      }),
      graph({
        title: 'Data by shard',
        unit: unit.bytes,
        noData: noShards,
        span: 8,
        description: 'Uncompressed size of the sharded collections, by shard. From benchwatch_mongodb_shard_data_bytes.',
        queries: [
          agent(
            `sum by (shard) (max by (cluster, shard, collection) (${serverGauge('benchwatch_mongodb_shard_data_bytes', '', 'shard', 'collection')}))`,
            '{{shard}}',
          ),
        ],
      }),
      timeline({
        title: 'Balancer',
        unit: unit.none,
        noData: 'No mongos',
        span: 8,
        description:
          'Whether the balancer is moving chunks. Idle is good. Moving chunks reduces throughput: stop the balancer during a run. From benchwatch_mongodb_balancer_running.',
        queries: [agent(serverGauge('benchwatch_mongodb_balancer_running'), server)],
        mappings: states({ '0': { text: 'idle', color: 'green' }, '1': { text: 'moving chunks', color: 'orange' } }),
      }),
    ),
    row('Hosts'),
    host.cpu(12),
    host.disk(12),
  ],
};
