// The agent's API. types.ts has what it sends; tables and their rows, which the
// agent writes by hand, are here. Times are milliseconds since 1970.

import type { History as HistoryHead, Measures, Run, RunDetail, Runs } from './types';

export type * from './types';

/** The measure, what it is about (an operation, a target), and which statistic. */
export type Name = [measure: string, of: string, stat: string];

export interface TableData {
  rows: number;
  x: number[];
  series: { name: Name; values: (number | null)[]; min: number | null; max: number | null; sum: number; count: number }[];
}

export const tableNames = ['intervals', 'servers', 'host'] as const;
export type TableName = (typeof tableNames)[number];

export interface History extends HistoryHead {
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

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal: signal ?? null, credentials: 'same-origin' });
  const body = (await response.json()) as T & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `${response.status} ${response.statusText}`);
  return body;
}

export const getMeasures = (): Promise<Measures> => get('api/measures');

export const getRuns = (signal?: AbortSignal): Promise<Runs> => get('api/runs', signal);

export const getRun = (id: string): Promise<RunDetail> => get(`api/runs/${encodeURIComponent(id)}`);

/** Part of a history in seconds on the run's axis, or with first what is available at once. */
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

/** The value of one of a run's facts, undefined if it is unknown. */
export const fact = (r: Run, name: string): string | undefined => r.facts.find((f) => f.name === name)?.value;
