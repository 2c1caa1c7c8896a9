import uPlot from 'uplot';
import { shown, type TimeAxis } from './axis';
import { el, setText } from './dom';
import * as format from './format';
import type { Spec } from './specs';
import type { Series, Table } from './table';
import { colour, type Theme } from './theme';

/** The group of charts that a chart belongs to. */
export interface Group {
  readonly axis: TimeAxis;
  readonly theme: Theme;
  /** The run is live: its last values are the current ones. */
  readonly live: boolean;
  /** Lines that the user has shown or hidden, unlike their initial state. */
  readonly turned: ReadonlySet<string>;
  turn(line: string): void;
  /** The place of a server, the same in all charts, which decides its colour. */
  serverPlace(target: string): number;
  zoom(from: number, to: number): void;
  reset(): void;
  /** The second of the axis at the cursor; null: the cursor is outside all charts. */
  pointed(x: number | null): void;
}

/** Opacities of areas, in hexadecimal. */
const areas = ['66', 'b0', '38'];

const phaseNames = { before: 'before', warmup: 'warm-up', drain: 'drain' };

/** One chart with its legend. draw draws the current content of its table. */
export class Chart {
  readonly root: HTMLElement;
  private plot: uPlot | null = null;
  private table: Table;
  private series: Series[] = [];
  private readonly hidden = new Set<string>();
  private readonly box: HTMLElement;
  private readonly legend: HTMLElement;
  private values: HTMLElement[] = [];
  private row: number | null = null;
  private described = 0;

  constructor(
    readonly spec: Spec,
    table: Table,
    private readonly group: Group,
  ) {
    this.table = table;
    this.box = el('div', { class: 'plot', role: 'img', 'aria-label': `${spec.title}: ${spec.note}` });
    this.legend = el('div', { class: 'legend', role: 'group', 'aria-label': `Series of ${spec.title}` });
    this.root = el(
      'section',
      { class: 'chart', id: `chart-${spec.scope}-${spec.id}` },
      el('h3', { title: spec.note }, spec.title, el('small', {}, spec.note)),
      this.box,
      this.legend,
    );
    this.choose(table);
  }

  /** Takes a table; false if it has nothing for this chart. */
  choose(table: Table): boolean {
    this.table = table;
    const series = this.spec.measures.flatMap((m) => table.of(m.id)).filter((s) => this.spec.hasTraffic(s));
    const same = series.length === this.series.length && series.every((s, i) => key(s) === key(this.series[i]!));
    if (!same) {
      const known = new Set(this.series.map(key));
      const visible = new Set(this.spec.visible(series.map((s) => s.name)).map((name) => JSON.stringify(name)));
      for (const s of series) if (!known.has(key(s)) && visible.has(key(s)) === this.group.turned.has(this.line(s))) this.hidden.add(key(s));
    }
    this.series = series;
    if (!same) this.build();
    // A single value is not a line; the tables have it.
    if (!this.group.live && !series.some((s) => s.values.filter((v) => v != null).length > 1)) return false;
    if (this.spec.only_changes) return series.some((s) => s.min !== s.max);
    return series.some((s) => s.min != null && (this.spec.even_zero || s.min !== 0 || s.max !== 0));
  }

  /** Drops the plot, so that it is drawn again with other series or colours. */
  build(): void {
    this.plot?.destroy();
    this.plot = null;
    const rest = el('span', { class: 'rest', hidden: '' });
    const more = el('button', { type: 'button', class: 'more', 'aria-expanded': 'false' });
    more.addEventListener('click', () => {
      rest.hidden = !rest.hidden;
      more.setAttribute('aria-expanded', String(!rest.hidden));
    });
    const first = new Set(this.spec.visible(this.series.map((s) => s.name)).map((name) => JSON.stringify(name)));
    const folded = (s: Series) => this.hidden.has(key(s)) && !first.has(key(s));
    const hidden = this.series.filter(folded).length;
    setText(more, `${hidden} more`);
    this.legend.replaceChildren();
    // Latencies of several operations stand together by operation.
    const operations = new Set(this.series.map((s) => s.name[1]));
    const grouped = this.spec.byOperation && operations.size > 1 && this.series.some((s) => s.name[2] !== '');
    const places = new Map<string, HTMLElement>();
    const place = (s: Series): HTMLElement => {
      const outer = folded(s) ? rest : this.legend;
      if (!grouped) return outer;
      const name = `${folded(s)} ${s.name[1]}`;
      let group = places.get(name);
      if (!group) {
        group = el('span', { class: 'operation' }, el('em', {}, s.name[1].replaceAll('_', ' ')));
        places.set(name, group);
        outer.append(group);
      }
      return group;
    };
    this.values = this.series.map((s, i) => {
      const text = el('b', {}, '–');
      const swatch = el('i', { 'aria-hidden': 'true' });
      swatch.style.background = this.colourOf(s, i);
      const button = el(
        'button',
        { type: 'button', 'aria-pressed': String(!this.hidden.has(key(s))) },
        swatch,
        grouped ? s.name[2] : this.spec.label(s.name),
        text,
      );
      button.addEventListener('click', () => this.toggle(i, button));
      place(s).append(button);
      return text;
    });
    if (hidden > 0) this.legend.append(more, rest);
  }

  /** A line's name in the address. */
  private line(s: Series): string {
    return [this.spec.id, ...s.name.slice(1)].filter(Boolean).join('.');
  }

  private toggle(i: number, button: HTMLElement): void {
    const k = key(this.series[i]!);
    const show = this.hidden.delete(k);
    if (!show) this.hidden.add(k);
    button.setAttribute('aria-pressed', String(show));
    if (this.spec.stacked) {
      this.plot?.destroy();
      this.plot = null;
      this.draw(this.width);
    } else this.plot?.setSeries(i + 1, { show });
    this.group.turn(this.line(this.series[i]!));
  }

  private colourOf(s: Series, i: number): string {
    const { theme } = this.group;
    return theme.own(s.name[0]) || colour(theme, this.spec.byServer ? this.group.serverPlace(s.name[1]) : this.rank(i));
  }

  /** The area of a stacked line. Further servers have the same colours in other strengths. */
  private areaOf(s: Series, i: number): string {
    return this.colourOf(s, i) + areas[this.group.serverPlace(s.name[1]) % areas.length]!;
  }

  /** A line's place for its colour: the visible ones first, so that their colours differ. */
  private rank(i: number): number {
    const hidden = this.series.map((s) => !this.spec.visible(this.series.map((x) => x.name)).some((name) => JSON.stringify(name) === key(s)));
    const before = hidden.slice(0, i).filter((h) => h === hidden[i]).length;
    return hidden[i] ? hidden.filter((h) => !h).length + before : before;
  }

  /** The width of a plot in pixels, 0 while it is not shown. */
  get width(): number {
    return this.box.clientWidth;
  }

  /** Draws the current table and axis. */
  draw(width: number): void {
    if (width === 0 || this.series.length === 0) return;
    const values = this.spec.stacked ? this.stack() : this.series.map((s) => s.values);
    const data = [this.table.x, ...values] as uPlot.AlignedData;
    if (this.plot) this.plot.setData(data, true);
    else this.plot = new uPlot(this.options(width), data, this.box);
    this.legendAt(this.row);
    this.describe();
  }

  /** The values of each line with those of the visible lines below it. */
  private stack(): (number | null)[][] {
    const sum: (number | null)[] = this.table.x.map(() => null);
    return this.series.map((s) => {
      if (!this.hidden.has(key(s))) {
        s.values.forEach((v, row) => {
          if (v != null) sum[row] = (sum[row] ?? 0) + v;
        });
      }
      return [...sum];
    });
  }

  /** The areas between the visible lines of a stack, and their lines. */
  private bands(): uPlot.Band[] {
    const visible = this.series.flatMap((s, i) => (this.hidden.has(key(s)) ? [] : [i + 1]));
    return visible.slice(1).map((upper, i) => ({ series: [upper, visible[i]!] }));
  }

  /** The chart's text for screen readers: its lines in words. For a live run, it changes only now and then. */
  private describe(): void {
    const now = Date.now();
    if (this.group.live && now - this.described < 10_000) return;
    this.described = now;
    const text = (v: number | null | undefined) => format.value(this.spec.unit, v);
    const drawn = this.series.filter((s) => !this.hidden.has(key(s)));
    const lines = drawn.slice(0, 8).map((s) => {
      const typical =
        this.spec.summary === 'median' && s.median != null ? `median ${text(s.median)}, ` : s.mean != null ? `mean ${text(s.mean)}, ` : '';
      return `${this.spec.label(s.name)}: ${typical}${text(s.min)} to ${text(s.max)}`;
    });
    const more = drawn.length > lines.length ? ` And ${drawn.length - lines.length} more lines.` : '';
    this.box.setAttribute('aria-label', `${this.spec.title}, ${this.spec.note}. ${lines.join('; ')}.${more}`);
  }

  resize(width: number): void {
    if (width > 0 && this.plot && width !== this.plot.width) this.plot.setSize({ width, height: this.height() });
  }

  /** As in page.css. */
  private height(): number {
    return window.innerWidth <= 700 ? 150 : 190;
  }

  destroy(): void {
    this.plot?.destroy();
    this.plot = null;
  }

  /** Moves the cursor to a second of the axis. */
  point(x: number | null): void {
    if (!this.plot) return;
    if (x == null) this.plot.setCursor({ left: -10, top: -10 });
    else this.plot.setCursor({ left: this.plot.valToPos(x, 'x'), top: 1 });
  }

  /** Values in the legend: at a row or, without a cursor, the current ones or the run's mean or median. */
  private legendAt(row: number | null): void {
    this.row = row;
    const at = row ?? this.table.x.length - 1;
    const whole = row == null && !this.group.live;
    this.series.forEach((s, i) => {
      const text = (v: number | null | undefined) => format.value(this.spec.unit, v);
      const typical = this.spec.summary === 'median' ? `median ${text(s.median)}` : `mean ${text(s.mean)}`;
      setText(this.values[i]!, whole ? typical : text(s.values[at]));
    });
  }

  private options(width: number): uPlot.Options {
    const { theme, axis } = this.group;
    const grid = { stroke: theme.grid, width: 1 };
    const font = '11px system-ui, sans-serif';
    return {
      width,
      height: this.height(),
      padding: [16, 26, 0, 0], // half of a label of the time axis: 1:00:00
      legend: { show: false },
      scales: {
        x: { time: false, range: () => shown(axis) },
        y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      axes: [
        {
          stroke: theme.text,
          grid,
          ticks: grid,
          font,
          space: 64,
          size: 26,
          incrs: steps,
          values: (_u, ticks) => ticks.map((t) => format.elapsed(t)),
        },
        {
          stroke: theme.text,
          grid,
          ticks: grid,
          font,
          size: 62,
          space: 30,
          ...(this.spec.unit === 'count' ? { incrs: (_u, _axis, _min, max) => (max > 1 ? wholeSteps : fractions) } : {}),
          ...(this.spec.unit === 'bytes' ? { incrs: binarySteps } : {}),
          values: (_u, ticks) => ticks.map((t) => format.tick(this.spec.unit, t)),
        },
      ],
      series: [
        {},
        ...this.series.map((s, i) => ({
          label: this.spec.label(s.name),
          stroke: this.colourOf(s, i),
          // Transactions stand out from the statements that they consist of.
          width: s.name[0] === 'transactions' && s.name[1] === 'transaction' ? 2.5 : 1.5,
          show: !this.hidden.has(key(s)),
          ...(this.spec.stacked ? { fill: this.areaOf(s, i) } : {}),
          points: { size: 4 },
        })),
      ],
      ...(this.spec.stacked ? { bands: this.bands() } : {}),
      cursor: {
        sync: { key: 'benchwatch', setSeries: false },
        drag: { x: true, y: false, setScale: false, dist: 6 },
        bind: {
          dblclick: () => () => {
            this.group.reset();
            return null;
          },
        },
      },
      hooks: {
        drawClear: [(u) => this.shade(u)],
        draw: [(u) => this.flag(u)],
        setSelect: [
          (u) => {
            if (u.select.width < 6) return;
            const from = u.posToVal(u.select.left, 'x');
            const to = u.posToVal(u.select.left + u.select.width, 'x');
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            this.group.zoom(from, to);
          },
        ],
        setCursor: [
          (u) => {
            const at = u.cursor.idx ?? null;
            this.legendAt(at);
            this.group.pointed(at == null || (u.cursor.left ?? -1) < 0 ? null : u.posToVal(u.cursor.left!, 'x'));
          },
        ],
      },
    };
  }

  /** Draws the phases below the curves. */
  private shade(u: uPlot): void {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'alphabetic';
    for (const p of this.group.axis.phases) {
      const left = u.valToPos(p.from, 'x', true);
      const right = u.valToPos(p.to, 'x', true);
      if (right - left < 1) continue;
      ctx.fillStyle = this.group.theme[p.kind];
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      const name = phaseNames[p.kind];
      // A phase that has not ended extends beyond the chart.
      if (Math.min(right, bbox.left + bbox.width) - left > ctx.measureText(name).width + 8) {
        ctx.fillStyle = this.group.theme.text;
        ctx.fillText(name, left + 4, bbox.top + 11 * devicePixelRatio);
      }
    }
    for (const f of this.group.axis.flags) {
      if (f.to == null) continue;
      const left = u.valToPos(f.from, 'x', true);
      const right = f.to === Infinity ? bbox.left + bbox.width : u.valToPos(f.to, 'x', true);
      ctx.fillStyle = this.group.theme.alertArea;
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.restore();
  }

  /** Draws the markers above the curves, each with its number and as much of its text as fits. */
  private flag(u: uPlot): void {
    const { ctx, bbox } = u;
    const unit = devicePixelRatio;
    const texts: [string, number, number][] = [];
    ctx.save();
    ctx.font = `bold ${10 * unit}px system-ui, sans-serif`;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'alphabetic';
    ctx.lineWidth = unit;
    for (const f of this.group.axis.flags) {
      const x = u.valToPos(f.from, 'x', true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const ink = f.alert ? this.group.theme.alert : this.group.theme.marker;
      ctx.strokeStyle = ink;
      ctx.setLineDash([4 * unit, 3 * unit]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const half = (ctx.measureText(String(f.number)).width + 6 * unit) / 2;
      ctx.fillStyle = ink;
      ctx.fillRect(x - half, bbox.top - 13 * unit, 2 * half, 13 * unit);
      ctx.fillStyle = this.group.theme.back;
      ctx.fillText(String(f.number), x, bbox.top - 3 * unit);
      const next = Math.min(
        ...this.group.axis.flags.map((o) => u.valToPos(o.from, 'x', true)).filter((at) => at > x),
        bbox.left + bbox.width + 34 * unit,
      );
      texts.push([f.text, x + half + 3 * unit, next - x - 2 * half - 6 * unit]);
    }
    ctx.font = `${10 * unit}px system-ui, sans-serif`;
    ctx.textAlign = 'left';
    ctx.fillStyle = this.group.theme.text;
    for (const [text, x, room] of texts) ctx.fillText(fitted(ctx, text, room), x, bbox.top - 3 * unit);
    ctx.restore();
  }
}

/** A text that is cut to the available width; empty if little would be left. */
function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let n = text.length;
  while (n > 3 && ctx.measureText(`${text.slice(0, n)}…`).width > room) n--;
  return n > 3 ? `${text.slice(0, n).trimEnd()}…` : '';
}

const key = (s: Series): string => JSON.stringify(s.name);

/** Steps of the time axis, in units in which people count time. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const wholeSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 1e8, 1e9];
/** Steps of a mean of counts that is less than one. */
const fractions = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const binarySteps = Array.from({ length: 50 }, (_, i) => 2 ** i);
