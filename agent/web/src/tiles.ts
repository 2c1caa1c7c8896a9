import type { Run, RunDetail, TableName } from './api';
import { el, setText } from './dom';
import { lasted, latencyName, live } from './facts';
import * as format from './format';
import type { Series, Table } from './table';

interface Tile {
  root: HTMLElement;
  name: HTMLElement;
  value: HTMLElement;
  note: HTMLElement;
}

/** The few big numbers of a run. */
export class Tiles {
  readonly root = el('div', { class: 'tiles' });
  private readonly tiles = new Map<string, Tile>();

  update(r: RunDetail, tables: Record<TableName, Table>, now: number): void {
    const going = live(r);
    const best = top(
      tables.intervals.of('transactions').filter((s) => s.name[1] === 'transaction'),
      (s) => s.max,
    );
    this.set(
      'throughput',
      going ? 'transactions/s now' : 'transactions/s',
      format.number(r.throughput),
      best ? `best ${format.number(best.of)}` : '',
    );
    this.set(
      'latency',
      r.latency ? `latency ${latencyName(r.latency)}` : 'latency',
      format.seconds(r.latency?.seconds),
      worstLatency(r, tables.intervals),
    );
    this.set('errors', 'errors', format.number(r.errors), r.reconnects > 0 ? `${format.number(r.reconnects)} reconnects` : '', r.errors > 0);
    const lag = top(tables.servers.of('lag_seconds'), (s) => s.max);
    if (lag) this.set('lag', 'worst lag', format.seconds(lag.of), lag.of > 0 ? lag.series.name[1] : 'on all servers');
    const behind = top(tables.servers.of('lag_transactions'), (s) => s.max);
    if (!lag && behind) this.set('lag', 'worst lag', `${format.number(behind.of)} tx`, behind.series.name[1]);
    const paused = top(tables.servers.of('flow_control'), (s) => (s.count > 0 ? s.sum / s.count : null));
    if (paused) this.set('flow', 'flow control', format.share(paused.of), `paused, at most ${format.share(paused.series.max)}`);
    const drained = Object.values(r.drain ?? {});
    if (drained.length > 0) {
      const late = drained.filter((d) => d.timed_out).length;
      const longest = Math.max(...drained.map((d) => d.seconds ?? 0));
      this.set(
        'drain',
        'drain',
        late > 0 ? `${late} late` : format.seconds(longest),
        late > 0 ? 'did not catch up in time' : 'until all replicas had caught up',
        late > 0,
      );
    }
    this.clock(r, now);
  }

  /** The one number that changes without an event. */
  clock(r: Run, now: number): void {
    const s = lasted(r, now);
    this.set(
      'elapsed',
      live(r) ? 'elapsed' : 'lasted',
      format.elapsed(Math.floor(s)),
      r.duration_seconds ? `of ${format.elapsed(r.duration_seconds)}` : '',
    );
  }

  private set(id: string, name: string, value: string, note: string, bad = false): void {
    let t = this.tiles.get(id);
    if (!t) {
      const parts = { name: el('dt'), value: el('dd'), note: el('dd', { class: 'note' }) };
      t = { ...parts, root: el('dl', { class: 'tile', id: `tile-${id}` }, parts.name, parts.value, parts.note) };
      this.tiles.set(id, t);
      this.root.append(t.root);
    }
    setText(t.name, name);
    setText(t.value, value);
    setText(t.note, note);
    t.root.classList.toggle('bad', bad);
  }
}

function worstLatency(r: Run, t: Table): string {
  const s = t.of('latency').find((x) => x.name[1] === r.latency?.operation && x.name[2] === r.latency.stat);
  return s?.max != null ? `worst interval ${format.seconds(s.max)}` : '';
}

/** The series with the largest of a value. */
function top(all: Series[], value: (s: Series) => number | null): { series: Series; of: number } | null {
  let best: { series: Series; of: number } | null = null;
  for (const series of all) {
    const of = value(series);
    if (of != null && (!best || of > best.of)) best = { series, of };
  }
  return best;
}
