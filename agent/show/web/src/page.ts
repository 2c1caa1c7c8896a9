import { type Block, getMeasures, getRuns, type Hello, type Marker, type Row, type Run, type Section } from './api';
import { CompareView } from './compare';
import { setText } from './dom';
import { ListView } from './list';
import { place } from './place';
import { printReports } from './print';
import { RunView } from './run';
import { type Spec, specOf } from './specs';
import { type Listener, Stream } from './stream';
import { TrendView } from './trend';

const main = document.getElementById('main')!;
const connection = document.getElementById('connection')!;

/** Owns the data of all runs, and the open view. */
class Page implements Listener {
  private readonly runs = new Map<string, Run>();
  private total = 0;
  private view: ListView | RunView | CompareView | TrendView | null = null;
  private version: string | null = null;
  private offset = 0; // of the agent's clock from the browser's
  private redraw = 0;
  private connected = false;

  constructor(
    private readonly specs: readonly Spec[],
    private readonly live: Block[],
  ) {
    window.addEventListener('hashchange', () => this.route());
    this.route();
    window.setInterval(() => this.view?.tick(), 1000);
    new Stream(this);
  }

  private readonly now = (): number => Date.now() + this.offset;

  private route(): void {
    const [kind, id] = place().path;
    if (this.view instanceof RunView) {
      if (kind === 'runs' && this.view.id === id) {
        this.view.restore();
        return;
      }
      this.view.destroy();
    } else if (this.view instanceof TrendView) {
      if (kind === 'history') {
        this.view.restore();
        return;
      }
      this.view.destroy();
    } else if (this.view instanceof CompareView) {
      this.view.destroy();
    } else if (this.view && kind === undefined) {
      this.view.restore();
      return;
    }
    if (kind === 'runs' && id !== undefined) {
      this.view = new RunView(id, this.specs, this.live, this.now);
      // Otherwise the stream's first event does it, so that no row is missed.
      if (this.connected) this.view.load();
    } else if (kind === 'compare') {
      this.view = new CompareView(this.specs);
      this.view.load();
    } else if (kind === 'history') {
      const view = new TrendView();
      this.view = view;
      requestAnimationFrame(() => view.load()); // its width is known then
    } else {
      const list = new ListView(this.now);
      list.show(this.runs.values(), this.total);
      this.view = list;
    }
    main.replaceChildren(this.view.root);
    scrollTo(0, 0);
  }

  state(connected: boolean): void {
    this.connected = connected;
    // The agent may have no stream left and still answer.
    if (!connected && this.view instanceof RunView && this.view.empty) this.view.load();
    document.body.classList.toggle('offline', !connected);
    setText(connection, connected ? 'connected' : 'no connection to the agent, trying again');
  }

  /** Reads data that may have been missed while there was no stream. */
  hello(h: Hello): void {
    if (this.version !== null && this.version !== h.version) location.reload();
    this.version = h.version;
    this.offset = h.now - Date.now();
    setText(document.getElementById('version')!, h.version);
    if (h.only && !location.hash) location.replace(`#/runs/${encodeURIComponent(h.only)}`);
    this.read();
    if (this.view instanceof RunView) this.view.load();
  }

  /** Reads all runs, again while it fails and there is a stream: a browser ends requests when its network changes. */
  private read(): void {
    getRuns()
      .then(({ runs, total }) => {
        this.runs.clear();
        this.total = total;
        for (const r of runs) this.runs.set(r.id, r);
        this.list();
      })
      .catch(() => {
        if (this.connected) window.setTimeout(() => this.read(), 1000);
      });
  }

  run(r: Run): void {
    if (!this.runs.has(r.id)) this.total++;
    this.runs.set(r.id, r);
    if (this.view instanceof RunView && this.view.id === r.id) this.view.changed(r);
    this.list();
  }

  gone(id: string): void {
    if (this.runs.delete(id)) this.total--;
    if (this.view instanceof RunView && this.view.id === id) this.view.gone();
    this.list();
  }

  row(row: Row): void {
    if (this.view instanceof RunView) this.view.row(row);
  }

  markers(id: string, markers: Marker[]): void {
    if (this.view instanceof RunView && this.view.id === id) this.view.marked(markers);
  }

  settings(id: string, settings: Section[]): void {
    if (this.view instanceof RunView && this.view.id === id) this.view.configured(settings);
  }

  comparison(id: string): void {
    if (this.view instanceof RunView) this.view.compared(id);
  }

  private list(): void {
    cancelAnimationFrame(this.redraw);
    this.redraw = requestAnimationFrame(() => {
      if (this.view instanceof ListView) this.view.show(this.runs.values(), this.total);
    });
  }
}

/** The charts come from the agent; it may be starting or restarting. */
async function start(): Promise<void> {
  for (;;) {
    try {
      const { charts, live, headline } = await getMeasures();
      new Page(
        charts.map((chart) => specOf(chart, headline)),
        live,
      );
      return;
    } catch (e) {
      setText(connection, `no answer from the agent: ${e instanceof Error ? e.message : String(e)}`);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

printReports();
void start();
