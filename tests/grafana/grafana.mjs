// The user's Grafana, by GRAFANA_URL and GRAFANA_TOKEN: what the tests give it and
// take back again.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const dashboardsDir = new URL('../../dashboards/', import.meta.url).pathname;

/** All dashboards of the repository: { name, json }. */
export function dashboards() {
  return readdirSync(dashboardsDir)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ name: basename(file, '.json'), json: JSON.parse(readFileSync(join(dashboardsDir, file), 'utf8')) }))
    .filter(({ json }) => json.panels && json.uid);
}

const toolsDir = new URL('../../agent/model/tool/', import.meta.url).pathname;

/** Whether any recorded output of a tool has an interval with a latency. Some tools print only totals. */
export function printsLatencyOfIntervals(tool) {
  const recordings = join(toolsDir, tool.replaceAll(/[-_]/g, ''), 'testdata');
  return readdirSync(recordings, { recursive: true })
    .filter((file) => /(^golden\.txt|\.golden)$/.test(basename(file)))
    .some((file) => /"kind":"interval".*"latency_seconds"/.test(readFileSync(join(recordings, file), 'utf8')));
}

/** A dashboard's panels, those of rows too, but not the rows. */
export function panelsOf(json) {
  return json.panels.flatMap((p) => (p.type === 'row' ? (p.panels ?? []) : [p]));
}

export class Grafana {
  url = process.env.GRAFANA_URL.replace(/\/+$/, '');
  headers = { Authorization: `Bearer ${process.env.GRAFANA_TOKEN}` };
  /** Of the folder and what is in it: several tests may use one Grafana. */
  id = `bwtest${randomBytes(4).toString('hex')}`;
  source = null;
  #ownSource = false;
  #ownFolder = false;

  /** Asks Grafana; an answer other than success is an error with Grafana's own words. */
  async api(method, path, body) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { ...this.headers, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: status ${answer.status}: ${text.slice(0, 300)}`);
    return text ? JSON.parse(text) : {};
  }

  /** Finds the data source: GRAFANA_DATASOURCE (uid), a new one for PROMETHEUS_URL, or Grafana's first Prometheus. */
  async findSource() {
    if (process.env.GRAFANA_DATASOURCE) {
      this.source = process.env.GRAFANA_DATASOURCE;
    } else if (process.env.PROMETHEUS_URL) {
      await this.api('POST', '/api/datasources', {
        uid: this.id,
        name: this.id,
        type: 'prometheus',
        access: 'proxy',
        url: process.env.PROMETHEUS_URL,
        jsonData: { timeInterval: '1s', httpMethod: 'POST' },
      });
      this.source = this.id;
      this.#ownSource = true;
    } else {
      const known = (await this.api('GET', '/api/datasources')).filter((s) => s.type === 'prometheus');
      const chosen = known.find((s) => s.isDefault) ?? known[0];
      if (!chosen) throw new Error('this Grafana has no Prometheus: set PROMETHEUS_URL, as Grafana reaches it');
      this.source = chosen.uid;
    }
  }

  /** Puts a dashboard into a folder of the tests' own and returns its new uid. */
  async load({ json }) {
    if (!this.#ownFolder) {
      await this.api('POST', '/api/folders', { uid: this.id, title: `benchwatch test ${this.id}` });
      this.#ownFolder = true;
    }
    // Links among the dashboards lead to the copies.
    const copy = JSON.parse(JSON.stringify(json).replace(/\/d\/(benchwatch-[a-z-]+)/g, (_, uid) => `/d/${this.uidOf({ uid })}`));
    copy.id = null;
    copy.uid = this.uidOf(json);
    copy.title += ` (${this.id})`;
    copy.refresh = ''; // it cancels what is not answered yet: a page on a busy machine would never be complete
    for (const v of copy.templating.list) {
      if (v.type === 'datasource') v.current = { text: this.source, value: this.source };
    }
    await this.api('POST', '/api/dashboards/db', { folderUid: this.id, overwrite: true, dashboard: copy });
    return copy.uid;
  }

  uidOf(json) {
    return `${this.id}-${json.uid}`.slice(0, 40);
  }

  /** Takes everything back. */
  async end() {
    if (this.#ownFolder) await this.api('DELETE', `/api/folders/${this.id}`);
    if (this.#ownSource) await this.api('DELETE', `/api/datasources/uid/${this.id}`);
  }

  /** The number of frames with values that a query has between two times (ms). */
  async frames(target, values, from, to) {
    const expr = expand(target.expr, { ...values, __from: from, __to: to });
    const answer = await this.api('POST', '/api/ds/query', {
      from: String(from),
      to: String(to),
      queries: [
        {
          refId: target.refId,
          datasource: { uid: this.source, type: 'prometheus' },
          expr,
          format: target.format,
          instant: target.instant ?? false,
          range: target.range ?? !target.instant,
          interval: target.interval,
          intervalMs: Math.max(1000, Math.round((to - from) / 800)),
          maxDataPoints: 800,
        },
      ],
    });
    const { error, frames = [] } = answer.results[target.refId];
    if (error) throw new Error(`${error}\n${expr}`);
    return frames.filter((f) => (f.data?.values?.[0]?.length ?? 0) > 0).length;
  }

  /** What a variable offers: label_values(SELECTOR, LABEL) or query_result(QUERY). */
  async values(query, from, to) {
    const [, result] = /^query_result\((.+)\)$/s.exec(query) ?? [];
    if (result) return this.vector(expand(result, {}).replaceAll('$__range', `${Math.round((to - from) / 1000)}s`), to);
    const [, selector, label] = /^label_values\((.+), *(\w+)\)$/s.exec(query) ?? [];
    if (!label) throw new Error(`${query} is neither label_values(SELECTOR, LABEL) nor query_result(QUERY)`);
    const form = new URLSearchParams({ 'match[]': expand(selector, {}), start: String(from / 1000), end: String(to / 1000) });
    const answer = await this.api('GET', `/api/datasources/uid/${this.source}/resources/api/v1/label/${label}/values?${form}`);
    if (answer.status !== 'success') throw new Error(`${query}: ${answer.error}`);
    return answer.data;
  }

  /** The vector of an instant query, as Prometheus' API says it. */
  async vector(expr, at) {
    const form = new URLSearchParams({ query: expr, time: String(at / 1000) });
    const answer = await this.api('GET', `/api/datasources/uid/${this.source}/resources/api/v1/query?${form}`);
    return answer.data.result;
  }
}

/** Puts values in place of a dashboard's variables; those not given are "All". Grafana's server replaces its own ($__…). */
function expand(expr, values) {
  return expr
    .replace(/\$\{(__from|__to)\}/g, (_, name) => values[name])
    .replace(/\$\{([a-z]+):raw\}/g, (_, name) => values[name] ?? '')
    .replace(/\$\{?([a-z]+)\}?/g, (_, name) => values[name] ?? '.*');
}
