// What the agent's API says. Times are milliseconds since 1970.

export interface Run {
  id: string;
  title: string;
  labels?: Record<string, string>;
  tool?: string;
  tool_version?: string;
  verb?: string;
  workload?: string;
  threads?: number;
  target?: string;
  database?: string;
  duration_seconds?: number;
  generator?: string;
  /** It stands in a file that a tool wrote by itself, perhaps on another machine. */
  log?: boolean;
  started_at: number;
  ended_at?: number;
  closed_at?: number;
  clock_at?: number;
  phase: 'starting' | 'warmup' | 'measure' | 'draining' | 'over';
  result?: 'succeeded' | 'failed' | 'interrupted' | 'lost';
  reason?: string;
  exit_code?: number;
  signal?: string;
  throughput?: number;
  latency_seconds?: number;
  latency_stat?: string;
  errors: number;
  drain?: Record<string, { seconds?: number; timed_out?: boolean }>;
}

export interface Operation {
  operation: string;
  per_second?: number;
  count?: number;
  latency_seconds?: Record<string, number>;
}

export interface RunDetail extends Run {
  command?: string[];
  reconnects: number;
  summary?: { elapsed_seconds?: number; from_intervals?: boolean; tpmc?: number; operations: Operation[] | null };
  messages?: string[];
  message_count: number;
  last_message?: string;
  malformed_lines: number;
  faults: number;
}

export interface Marker {
  id: string;
  kind: 'point' | 'alert';
  text: string;
  tags?: string[];
  start: number;
  end?: number;
}

/** How the servers are configured. Values are in the order of the cluster's servers. */
export interface Settings {
  clusters: { cluster?: string; servers: string[]; settings: { name: string; values: string[]; differs?: boolean }[] }[];
  changes: { server: string; name: string; before: string; after: string; at: number }[];
  unknown: { server: string; why: string }[];
}

/** What is measured, of whom (an operation, a target), which statistic. */
export type Name = [kind: string, of: string, stat: string];

export interface TableData {
  rows: number;
  x: number[];
  series: { name: Name; values: (number | null)[]; min: number | null; max: number | null; sum: number; count: number }[];
}

export const tableNames = ['intervals', 'servers', 'host'] as const;
export type TableName = (typeof tableNames)[number];

export interface History {
  run: RunDetail;
  zero: number;
  /** False: the servers were left out, to be asked for next. */
  whole: boolean;
  warmup: [number, number][] | null;
  damage: string[] | null;
  markers: Marker[];
  settings: Settings;
  tables: Record<TableName, TableData>;
}

export interface Row {
  table: TableName;
  run?: string;
  x?: number;
  at?: number;
  warmup?: number;
  cells: [Name, number | null][];
}

export interface Hello {
  version: string;
  agent: number;
  now: number;
  /** The one run that this agent serves, if it is one run's own. */
  only?: string;
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal: signal ?? null, credentials: 'same-origin' });
  const body = (await response.json()) as T & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `${response.status} ${response.statusText}`);
  return body;
}

export const getRuns = (signal?: AbortSignal): Promise<{ runs: Run[] }> => get('api/runs', signal);

export const getRun = (id: string): Promise<RunDetail> => get(`api/runs/${encodeURIComponent(id)}`);

/** Which part of a history; seconds on the run's axis. first: what can be had at once. */
export type Part = { from: number; to: number } | { first: true };

/** A run's history, thinned to about points rows. */
export function getHistory(id: string, points: number, part?: Part, signal?: AbortSignal): Promise<History> {
  const query = new URLSearchParams({ points: String(points) });
  if (part && 'first' in part) query.set('first', '1');
  if (part && 'from' in part) {
    query.set('from', String(part.from));
    query.set('to', String(part.to));
  }
  return get(`api/runs/${encodeURIComponent(id)}/history?${query}`, signal);
}
