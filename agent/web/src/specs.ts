import type { Name, TableName } from './api';
import type { Unit } from './format';

/** What one chart draws, in the order of the page. */
export interface Spec {
  id: string;
  title: string;
  unit: Unit;
  /** Behind the title: what the numbers are. */
  says: string;
  table: TableName;
  kinds: string[];
  label(name: Name): string;
  /** Colours are a server's own, the same in all charts. */
  byServer?: boolean;
  /** Drawn at first; all are if left out. */
  drawn?(name: Name): boolean;
}

const server = (n: Name) => n[1];
const spaced = (s: string) => s.replaceAll('_', ' ');

export const specs: Spec[] = [
  {
    id: 'throughput',
    title: 'Throughput',
    says: 'operations per second, as the tool reports them',
    unit: 'per_second',
    table: 'intervals',
    kinds: ['rate'],
    label: (n) => spaced(n[1]),
  },
  {
    id: 'latency',
    title: 'Latency',
    says: 'of each interval, as the tool reports it',
    unit: 'seconds',
    table: 'intervals',
    kinds: ['latency'],
    label: (n) => (n[1] === 'transaction' ? n[2] : `${spaced(n[1])} ${n[2]}`),
    drawn: (n) => n[1] === 'transaction' || n[2] === 'p95' || n[2] === 'p99',
  },
  {
    id: 'errors',
    title: 'Errors',
    says: 'errors and reconnects per second',
    unit: 'per_second',
    table: 'intervals',
    kinds: ['errors', 'reconnects'],
    label: (n) => n[0],
  },
  {
    id: 'queue',
    title: 'Queue',
    says: 'transactions waiting and being worked on in the tool',
    unit: 'count',
    table: 'intervals',
    kinds: ['queue_length', 'concurrency'],
    label: (n) => (n[0] === 'queue_length' ? 'waiting' : 'in work'),
  },
  {
    id: 'queries',
    title: 'Queries',
    says: 'per second, by server',
    unit: 'per_second',
    table: 'servers',
    kinds: ['queries'],
    label: server,
    byServer: true,
  },
  {
    id: 'commits',
    title: 'Commits',
    says: 'per second, by server',
    unit: 'per_second',
    table: 'servers',
    kinds: ['commits'],
    label: server,
    byServer: true,
  },
  {
    id: 'threads',
    title: 'Running threads',
    says: 'clients executing a statement, by server',
    unit: 'count',
    table: 'servers',
    kinds: ['threads_running'],
    label: server,
    byServer: true,
  },
  {
    id: 'flow',
    title: 'Flow control',
    says: 'share of the time in which replication was paused',
    unit: 'share',
    table: 'servers',
    kinds: ['flow_control'],
    label: server,
    byServer: true,
  },
  {
    id: 'lag',
    title: 'Replication lag',
    says: 'seconds behind the most advanced server',
    unit: 'seconds',
    table: 'servers',
    kinds: ['lag_seconds'],
    label: server,
    byServer: true,
  },
  {
    id: 'behind',
    title: 'Transactions behind',
    says: 'the most advanced server, at the same instant',
    unit: 'count',
    table: 'servers',
    kinds: ['lag_transactions'],
    label: server,
    byServer: true,
  },
  {
    id: 'received',
    title: 'Replication queue',
    says: 'transactions received and not yet applied',
    unit: 'count',
    table: 'servers',
    kinds: ['replication_queue'],
    label: server,
    byServer: true,
  },
  {
    id: 'cpu',
    title: 'CPU of this machine',
    says: 'all cores; the machine that the agent runs on',
    unit: 'share',
    table: 'host',
    kinds: ['cpu'],
    label: (n) => (n[1] === 'iowait' ? 'waiting for disks' : n[1] === 'steal' ? 'taken by the hypervisor' : n[1]),
    drawn: (n) => n[1] !== 'steal',
  },
];
