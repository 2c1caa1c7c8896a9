import type { Name, Row, TableData } from './api';

/** One series of a table and what it was over the whole run. */
export interface Series {
  name: Name;
  values: (number | null)[];
  min: number | null;
  max: number | null;
  sum: number;
  count: number;
}

/** Columns over one axis of seconds; null is what was not told. */
export class Table {
  readonly series = new Map<string, Series>();
  x: number[] = [];
  /** Rows that the agent has of this part; more than x has if it was thinned. */
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

  /** Appends a row unless it is known already. True if a series is new. */
  append(x: number, cells: Row['cells']): boolean {
    if (!(x > this.last)) return false;
    const before = this.series.size;
    this.x.push(x);
    this.rows++;
    for (const [name, value] of cells) {
      const key = JSON.stringify(name);
      let s = this.series.get(key);
      if (!s) {
        s = { name, values: [], min: null, max: null, sum: 0, count: 0 };
        this.series.set(key, s);
      }
      while (s.values.length < this.x.length - 1) s.values.push(null);
      s.values.push(value);
      if (value == null) continue;
      s.min = s.min == null ? value : Math.min(s.min, value);
      s.max = s.max == null ? value : Math.max(s.max, value);
      s.sum += value;
      s.count++;
    }
    for (const s of this.series.values()) while (s.values.length < this.x.length) s.values.push(null);
    return this.series.size > before;
  }

  of(kind: string): Series[] {
    return [...this.series.values()].filter((s) => s.name[0] === kind);
  }
}
