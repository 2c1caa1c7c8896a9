import { ids, type Run, type RunDetail, type TableName } from './api';
import { el, setText } from './dom';
import { drainText, failed, lasted, latencyName, live } from './facts';
import * as format from './format';
import { plural } from './list';
import type { Series, Table } from './table';

interface Tile {
  root: HTMLElement;
  name: HTMLElement;
  value: HTMLElement;
  note: HTMLElement;
}

/** The few big numbers of an active run. */
export class Tiles {
  readonly root = el('div', { class: 'tiles' });
  private readonly tiles = new Map<string, Tile>();
  private readonly progress = el('progress', { 'aria-label': 'Share of the planned time' });

  /** Shows a run whose tool ended at a second of the axis: later values are not from the load. */
  update(r: RunDetail, tables: Record<TableName, Table>, now: number, end: number): void {
    const going = live(r);
    const loaded = (name: string) => tables.servers.of(name).map((s) => during(s, tables.servers.x, end));
    const best = top(
      tables.intervals.of(ids.throughput).filter((s) => s.name[1] === 'transaction'),
      (s) => s.max,
    );
    this.set(
      'throughput',
      going ? 'transactions/s now' : 'transactions/s, whole run',
      format.number(r.throughput),
      best ? `best interval ${format.number(best.of)}` : '',
    );
    this.set(
      'latency',
      (r.latency ? latencyName(r.latency) : 'latency') + (going ? ' now' : ', whole run'),
      format.seconds(r.latency?.seconds),
      worstLatency(r, tables.intervals),
    );
    if (failed(r)) this.set('result', 'result', r.result!, r.exit_code === undefined ? (r.signal ?? '') : `exit status ${r.exit_code}`, true);
    const share = r.failed_share ? `${format.share(r.failed_share)} of transactions` : '';
    const reconnects = r.reconnects > 0 ? `${format.number(r.reconnects)} reconnects` : '';
    const said = r.message_count > 0 ? `${format.number(r.message_count)} error message${r.message_count === 1 ? '' : 's'}` : '';
    const notes = [share, reconnects, said].filter(Boolean).join(', ');
    this.set('errors', going ? 'errors so far' : 'errors, whole run', format.number(r.errors), notes, (r.errors ?? 0) > 0);
    this.clock(r, now);
    const lags = loaded(ids.lagSeconds);
    const behind = loaded(ids.lagTransactions);
    const [all, unit] = lags.length > 0 ? [lags, format.seconds] : [behind, (v: number) => `${format.number(v)} tx`];
    const worst = top(all, (s) => s.max);
    const most = top(all, lastOf);
    if (worst && most)
      this.set(
        'lag',
        going ? 'worst lag now' : 'worst lag at the end',
        unit(most.of),
        `${most.of > 0 ? most.series.name[1] : 'on all servers'}; ${unit(worst.of)} at most`,
      );
    const paused = top(loaded(ids.flowControl), lastOf);
    if (paused) {
      const asking = top(loaded(ids.flowControlSent), lastOf);
      const by = asking && asking.of > 0 ? `asked for by ${asking.series.name[1]}; ` : '';
      const value = going ? paused.of : (paused.series.mean ?? paused.of);
      this.set(
        'flow',
        going ? 'flow control now' : 'flow control, whole run',
        format.share(value),
        `${by}${format.share(paused.series.max)} at most`,
      );
    }
    const drained = Object.values(r.drain ?? {});
    if (drained.length > 0) {
      const late = drained.filter((d) => d.timed_out).length;
      const longest = drained.reduce((a, b) => ((b.seconds ?? 0) > (a.seconds ?? 0) ? b : a));
      const note = late > 0 ? 'did not catch up in time' : `${plural(drained.length, 'replica')} caught up`; // others may still be behind
      this.set('drain', 'drain so far', late > 0 ? `${late} late` : drainText(longest), note, late > 0);
    }
  }

  /** The one number that changes without an event. */
  clock(r: Run, now: number): void {
    this.set(
      'elapsed',
      live(r) ? 'elapsed' : 'lasted',
      format.elapsed(lasted(r, now)),
      r.duration_seconds ? `of ${format.elapsed(r.duration_seconds)}` : '',
    );
    this.progress.hidden = !live(r) || !r.duration_seconds;
    this.progress.max = r.duration_seconds || 1;
    this.progress.value = lasted(r, now);
    if (!this.progress.parentElement) this.tiles.get('elapsed')?.root.append(el('dd', { class: 'progress' }, this.progress));
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
  const s = t.of(ids.latency).find((x) => x.name[1] === r.latency?.operation && x.name[2] === r.latency.stat);
  return s?.max != null ? `worst interval ${format.seconds(s.max)}` : '';
}

const lastOf = (s: Series): number | null => s.values[s.values.length - 1] ?? null;

/** A series up to a second, with the extremes from the run's begin on. */
function during(s: Series, x: number[], end: number): Series {
  const n = x.findIndex((at) => at > end);
  const values = n < 0 ? s.values : s.values.slice(0, n);
  const known = values.filter((v, row): v is number => v != null && x[row]! >= 0);
  return { ...s, values, min: known.length > 0 ? Math.min(...known) : null, max: known.length > 0 ? Math.max(...known) : null };
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
