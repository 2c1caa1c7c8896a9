// Generated from the Go types by `go test ./agent/show/web -update`. Do not edit.

export interface Line {
  id: string;
  label: string;
}

export interface Chart {
  id: string;
  title: string;
  note: string;
  unit: 'per_second' | 'per_minute' | 'seconds' | 'ratio' | 'bytes' | 'count';
  scope: 'run' | 'server' | 'host';
  summary: 'mean' | 'median' | 'max' | 'last' | 'increase';
  only_changes?: boolean;
  stacked?: boolean;
  measures: Line[];
}

export interface Headline {
  stats: string[];
  not_work: string[];
}

export interface Measures {
  charts: Chart[];
  headline: Headline;
}

export interface Fact {
  name: string;
  value: string;
}

export interface Latency {
  operation: string;
  stat: string;
  seconds: number;
}

export interface Drain {
  seconds?: number;
  resolution_seconds?: number;
  timed_out?: boolean;
}

export interface Generator {
  run?: string;
  log?: string;
  host?: string;
  start_seconds?: number;
  clock_offset_seconds?: number;
  result?: 'succeeded' | 'failed' | 'interrupted' | 'lost';
  reason?: string;
  absent?: boolean;
  state?: string;
  throughput?: number;
}

export interface Run {
  id: string;
  title: string;
  facts: Fact[];
  labels?: Record<string, string>;
  duration_seconds?: number;
  elsewhere?: boolean;
  notice?: string;
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
  latency?: Latency;
  errors?: number;
  failed_share?: number;
  drain?: Record<string, Drain>;
  generators?: Generator[];
}

export interface Runs {
  runs: Run[];
  total: number;
}

export interface Health {
  started: number;
  missed_ticks: number;
  waiting_runs: number;
  queued_markers: number;
  rejected_markers: number;
  grafana: boolean;
  token: boolean;
}

export interface Server {
  name: string;
  engine: string;
  cluster?: string;
  state: string;
  version?: string;
  up: boolean;
  role?: string;
  lag_seconds?: number;
  lag_transactions?: number;
}

export interface Marker {
  id: string;
  kind: 'point' | 'alert';
  text: string;
  tags?: string[];
  start: number;
  end?: number;
}

export interface Alert {
  run: string;
  title: string;
  marker: Marker;
}

export interface Agent {
  health: Health;
  servers: Server[];
  alerts: Alert[];
}

export interface Operation {
  operation: string;
  per_second?: number;
  count?: number;
  latency_seconds?: Record<string, number>;
}

export interface Summary {
  elapsed_seconds?: number;
  from_intervals?: boolean;
  numbers?: Fact[];
  operations: Operation[];
}

export interface RunDetail extends Run {
  command?: string[];
  reconnects: number;
  summary?: Summary;
  messages?: string[];
  message_count: number;
  last_message?: string;
  malformed_lines: number;
  faults: number;
}

export interface Setting {
  name: string;
  values: string[];
  differs?: boolean;
}

export interface ClusterSettings {
  cluster?: string;
  servers: string[];
  settings: Setting[];
}

export interface SettingChange {
  server: string;
  name: string;
  before: string;
  after: string;
  at: number;
}

export interface Unknown {
  server: string;
  why: string;
}

export interface Settings {
  clusters: ClusterSettings[];
  changes: SettingChange[];
  unknown: Unknown[];
}

export interface History {
  run: RunDetail;
  zero: number;
  whole: boolean;
  warmup: [number, number][];
  damage: string[];
  markers: Marker[];
  settings: Settings;
}

export interface Limit {
  limit: string;
  text: string;
}

export interface Finding {
  level: 'good' | 'note' | 'warning' | 'unknown';
  text: string;
}

export interface Table {
  head: string[];
  rows: string[][];
}

export interface Statements {
  head: string[];
  rows: string[][];
  notes: string[];
}

export interface Legend {
  class: string;
  name: string;
}

export interface Plot {
  title: string;
  unit: string;
  svg: string;
  legend: Legend[];
  notes: string[];
}

export interface Distributions {
  plots: Plot[];
  head: string[];
  rows: string[][];
  notes: string[];
}

export interface Findings {
  limits: Limit[];
  observed: string[];
  trust: Finding[];
  balances: Table;
  statements: Statements;
  distributions: Distributions;
}

export interface Group {
  name: string;
  runs: Run[];
}

export interface Difference {
  name: string;
  values: string[];
}

export interface Compare {
  groups: Group[];
  summary: string[];
  head: string[];
  rows: string[][];
  details: string[][];
  folded: string[][];
  folded_line: string;
  notes: string[];
  differs: Difference[];
  settings: Difference[];
  statements: Statements;
}

export interface Change {
  before: string;
  after: string;
  level: string;
  text: string;
}

export interface TrendSeries {
  title: string;
  text: string;
  plot: Plot;
  changes: Change[];
}

export interface Trend {
  measure: string;
  measures: string[];
  names: string[];
  series: TrendSeries[];
  notes: string[];
}

export interface Hello {
  version: string;
  agent: number;
  now: number;
  only?: string;
}
