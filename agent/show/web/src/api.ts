// The agent's API. types.ts has the types that it sends; tables and their rows, which the
// agent writes by hand, are here. Times are milliseconds since 1970.

import type { Agent, Compare, Document, History as HistoryHead, Measures, Run, Runs, Section, Trend } from './types';

export type * from './types';
export { ids } from './types';

/** The measure, its operation or target, and its statistic. */
export type Name = [measure: string, of: string, stat: string];

export interface TableData {
  rows: number;
  x: number[];
  series: { name: Name; values: (number | null)[]; min: number | null; max: number | null; mean: number | null; median?: number | null }[];
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
  /** The usual distance from the previous row, in seconds. */
  step?: number;
  cells: [Name, number | null][];
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal: signal ?? null, credentials: 'same-origin' });
  const body = (await response.json()) as T & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `${response.status} ${response.statusText}`);
  return body;
}

export const getMeasures = (): Promise<Measures> => get('api/measures');

export const getAgent = (): Promise<Agent> => get('api/agent');

export const getRuns = (signal?: AbortSignal): Promise<Runs> => get('api/runs', signal);

export const getDocument = (id: string, width: number): Promise<Document> => get(`api/runs/${encodeURIComponent(id)}/findings?width=${width}`);

/** The A/B comparison to which a run belongs; undefined without one. */
export const comparisonOf = (r: Run): string | undefined => r.labels?.ab ?? r.labels?.ab_warmup;

/** The progress of a run's A/B comparison. */
export const getProgress = (id: string, width: number): Promise<Section> => get(`api/runs/${encodeURIComponent(id)}/comparison?width=${width}`);

/** What is required of a run that has not ended, and whether it is met now. */
export const getRequirements = (id: string): Promise<Section> => get(`api/runs/${encodeURIComponent(id)}/requirements`);

/** A group of runs to compare. */
export interface Chosen {
  name: string;
  ids: string[];
}

export function getComparison(groups: Chosen[], width: number): Promise<Compare> {
  const query = new URLSearchParams({ width: String(width) });
  for (const g of groups) {
    query.append('group', g.ids.join(','));
    query.append('name', g.name);
  }
  return get(`api/compare?${query}`);
}

/** A measure of all runs over months; where has name=value each. */
export function getTrend(measure: string, by: string, where: string[], width: number, signal: AbortSignal): Promise<Trend> {
  const query = new URLSearchParams({ measure, by, width: String(width) });
  for (const w of where) query.append('where', w);
  return get(`api/trend?${query}`, signal);
}

/** The address of a document about a run. */
export const documentOf = (id: string, path: string): string => `runs/${encodeURIComponent(id)}/${path}`;

/** Sets a marker now. The error's text is 'token' if the token is wrong. */
export async function setMarker(id: string, text: string, token: string): Promise<void> {
  const response = await fetch(`api/runs/${encodeURIComponent(id)}/markers`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ text }),
    credentials: 'same-origin',
  });
  if (response.ok) return;
  if (response.status === 401) throw new Error('token');
  throw new Error(((await response.json()) as { error?: string }).error ?? response.statusText);
}

/** Part of a history in seconds on the run's axis or, with first, what is available immediately. */
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
