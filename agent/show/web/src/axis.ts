import type { Marker } from './api';

/** A shaded stretch of the time axis. */
export interface Phase {
  kind: 'before' | 'warmup' | 'drain';
  from: number;
  to: number;
}

/** A marker and its number on the charts. */
export interface Flag {
  number: number;
  text: string;
  from: number;
  to: number | null;
  alert: boolean;
}

/** The time axis that all charts of a run share; seconds. */
export interface TimeAxis {
  /** The whole axis. */
  full: [number, number];
  /** The visible part; null: all. */
  view: [number, number] | null;
  phases: Phase[];
  flags: Flag[];
}

export const shown = (a: TimeAxis): [number, number] => a.view ?? a.full;

export function flagsOf(markers: Marker[], zero: number): Flag[] {
  return markers.map((m, i) => ({
    number: i + 1,
    text: m.text.split('\n', 1)[0]!,
    from: (m.start - zero) / 1000,
    to: m.kind === 'alert' ? (m.end === undefined ? Infinity : (m.end - zero) / 1000) : null,
    alert: m.kind === 'alert',
  }));
}
