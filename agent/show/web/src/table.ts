import type { Name, Row, TableData } from './api';

/** One series of a table and its statistics over the whole run. */
export interface Series {
  name: Name;
  values: (number | null)[];
  min: number | null;
  max: number | null;
  /** While the tool ran; null before the run is read at its end. */
  mean: number | null;
  /** For latencies of an ended run, which have no mean. */
  median?: number | null;
}

/** Columns over one axis of seconds; null is an unknown value. */
export class Table {
  readonly series = new Map<string, Series>();
  x: number[] = [];
  /** The number of rows that the agent has for this part; more than in x if it was thinned. */
  rows = 0;

  constructor(data?: TableData) {
    if (!data) return;
    this.x = data.x;
    this.rows = data.rows;
    for (const s of data.series) this.series.set(JSON.stringify(s.name), s);
  }

  get thinned(): boolean {
    return this.rows > this.x.length;
  }

  get last(): number {
    return this.x[this.x.length - 1] ?? -Infinity;
  }

  /** The usual distance of rows; 0 if it is not known, as in a thinned table. */
  get step(): number {
    if (this.thinned) return 0;
    const x = this.x.slice(-20);
    const steps = x.slice(1).map((at, i) => at - x[i]!);
    return steps.sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  }

  /** Appends a row unless it is known already; a gap if it is far from the last one. True if a series is new. */
  append(x: number, cells: Row['cells'], step: number): boolean {
    if (!(x > this.last)) return false;
    const before = this.series.size;
    if (step > 0 && x - this.last > 1.5 * step && this.x.length > 0) {
      this.x.push(this.last + step);
      this.rows++;
    }
    this.x.push(x);
    this.rows++;
    for (const [name, value] of cells) {
      const key = JSON.stringify(name);
      let s = this.series.get(key);
      if (!s) {
        s = { name, values: [], min: null, max: null, mean: null };
        this.series.set(key, s);
      }
      while (s.values.length < this.x.length - 1) s.values.push(null);
      s.values.push(value);
      if (value == null) continue;
      s.min = s.min == null ? value : Math.min(s.min, value);
      s.max = s.max == null ? value : Math.max(s.max, value);
    }
    for (const s of this.series.values()) while (s.values.length < this.x.length) s.values.push(null);
    return this.series.size > before;
  }

  of(kind: string): Series[] {
    return [...this.series.values()].filter((s) => s.name[0] === kind);
  }
}
