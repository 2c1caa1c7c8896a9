import type { Hello, Marker, Row, Run, Section } from './api';

export interface Listener {
  /** Connected, perhaps again: the view may be out of date. */
  hello(hello: Hello): void;
  run(run: Run): void;
  gone(id: string): void;
  row(row: Row): void;
  markers(id: string, markers: Marker[]): void;
  settings(id: string, settings: Section[]): void;
  /** The state of an A/B comparison has changed. */
  comparison(id: string): void;
  state(connected: boolean): void;
}

const silence = 15_000; // the agent sends an event every 5 s
const hiddenFor = 60_000;

/** Keeps a stream of the agent's events open, whatever happens to the agent. */
export class Stream {
  private source: EventSource | null = null;
  private watchdog = 0;
  private retry = 0;
  private hidden = 0;

  constructor(private readonly listener: Listener) {
    document.addEventListener('visibilitychange', () => {
      clearTimeout(this.hidden);
      if (document.hidden) this.hidden = window.setTimeout(() => this.close(), hiddenFor);
      else if (!this.source) this.open();
    });
    window.addEventListener('online', () => this.open());
    this.open();
  }

  private open(): void {
    this.close();
    const source = new EventSource('api/events');
    this.source = source;
    const on = <T>(type: string, use: (data: T) => void) =>
      source.addEventListener(type, (e) => {
        this.heard();
        use(JSON.parse((e as MessageEvent<string>).data) as T);
      });
    on<Hello>('hello', (h) => {
      this.listener.state(true);
      this.listener.hello(h);
    });
    on<Hello>('beat', () => undefined);
    on<Run>('run', (r) => this.listener.run(r));
    on<{ run: string }>('gone', (g) => this.listener.gone(g.run));
    on<Row>('row', (r) => this.listener.row(r));
    on<{ run: string; markers: Marker[] }>('markers', (m) => this.listener.markers(m.run, m.markers));
    on<{ run: string; settings: Section[] }>('settings', (s) => this.listener.settings(s.run, s.settings));
    on<{ id: string }>('comparison', (c) => this.listener.comparison(c.id));
    source.onerror = () => this.again();
    this.heard();
  }

  /** EventSource itself gives up on an answer like 503, so it is made anew. */
  private again(): void {
    this.close();
    if (!document.hidden) this.retry = window.setTimeout(() => this.open(), 1000);
  }

  private heard(): void {
    clearTimeout(this.watchdog);
    this.watchdog = window.setTimeout(() => this.again(), silence);
  }

  private close(): void {
    clearTimeout(this.watchdog);
    clearTimeout(this.retry);
    if (!this.source) return;
    this.source.close();
    this.source = null;
    this.listener.state(false);
  }
}
