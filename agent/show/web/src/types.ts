// Generated from the Go types by `go test ./agent/show/web -update`. Do not edit.

/** The measures that the page shows in a way of its own. */
export const ids = {
  throughput: 'transactions',
  latency: 'latency',
  errorRate: 'errors_per_second',
  lagSeconds: 'lag_seconds',
  lagTransactions: 'lag_transactions',
  flowControl: 'flow_control',
  flowControlSent: 'flow_control_sent',
};

export interface ChartLine {
  id: string;
  label: string;
}

export interface Chart {
  id: string;
  title: string;
  note: string;
  unit: 'per_second' | 'per_minute' | 'seconds' | 'ratio' | 'bytes' | 'count';
  scope: 'run' | 'server' | 'host' | 'cluster';
  summary: 'mean' | 'max' | 'median' | 'last' | 'increase' | 'cost';
  only_changes?: boolean;
  even_zero?: boolean;
  stacked?: boolean;
  measures: ChartLine[];
}

export interface Sentence {
  level?: 'good' | 'note' | 'warning' | 'unknown';
  text?: string;
  strong?: string;
  rest?: string;
  at_seconds?: number;
}

export interface Term {
  name: string;
  value: string;
}

export interface Entry {
  class: string;
  name: string;
  values?: string;
}

export interface Drawing {
  title: string;
  unit?: string;
  chart?: string;
  svg?: string;
  legend?: Entry[];
  notes?: string[];
}

export interface Block {
  title?: string;
  fold?: string;
  prose?: boolean;
  large?: boolean;
  marked?: boolean;
  lines?: Sentence[];
  facts?: Term[];
  head?: string[];
  rows?: string[][];
  runs?: string[];
  drawings?: Drawing[];
  code?: string;
}

export interface Headline {
  stats: string[];
  not_work: string[];
}

export interface Measures {
  charts: Chart[];
  live: Block[];
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
  result?: 'succeeded' | 'failed' | 'interrupted' | 'aborted' | 'lost';
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
  notice?: string;
  started_at: number;
  ended_at?: number;
  closed_at?: number;
  clock_at?: number;
  phase: 'starting' | 'warmup' | 'measure' | 'draining' | 'over';
  result?: 'succeeded' | 'failed' | 'interrupted' | 'aborted' | 'lost';
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
  kind: 'run' | 'point' | 'alert';
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

export interface RunDetail extends Run {
  requires?: boolean;
  reconnects: number;
  messages?: string[];
  message_count: number;
  last_message?: string;
  malformed_lines: number;
  faults: number;
}

export interface Section {
  id: string;
  title: string;
  blocks: Block[];
}

export interface History {
  run: RunDetail;
  zero: number;
  whole: boolean;
  warmup: [number, number][];
  damage: string[];
  markers: Marker[];
  settings: Section[];
}

export interface Document {
  note: Sentence;
  sections: Section[];
}

export interface Group {
  name: string;
  runs: Run[];
}

export interface Compare {
  groups: Group[];
  sections: Section[];
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
  run?: string;
  plot?: Drawing;
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
