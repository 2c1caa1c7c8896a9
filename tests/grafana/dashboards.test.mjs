// The dashboards in a real Grafana: taken as they are, every query answered, and
// drawn in a browser without an error corner.
//
// All of it for the last 15 minutes and for the newest finished run. Panels without
// data are listed: which may have none depends on what is measured here, and the
// page must give the reason in place of Grafana's "No data". With GRAFANA_PICTURES (a
// folder) set every dashboard is photographed there, light and dark, narrow and wide.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Browser } from './browser.mjs';
import { dashboards, Grafana, panelsOf } from './grafana.mjs';

const grafana = new Grafana();
const browser = new Browser(grafana);
const only = process.env.GRAFANA_DASHBOARDS?.split(',') ?? [];
const all = dashboards().filter((d) => only.length === 0 || only.includes(d.name));
// What every run that came to its end has shown.
const always = ['live-run: Throughput', 'live-run: Latency', 'live-run: Throughput by operation'];
const pictures = process.env.GRAFANA_PICTURES;
let spans; // [{ name, from, to, values }], times in ms

before(async () => {
  await grafana.findSource();
  const to = Date.now();
  spans = [{ name: 'the last 15 minutes', from: to - 15 * 60_000, to, values: {} }];
  const ended = await grafana.vector('topk(1, max by (run) (max_over_time(benchwatch_run_end_timestamp_seconds[7d])))', to);
  if (ended.length === 1) {
    const { run } = ended[0].metric;
    // As the link of Runs opens it: until the slowest replica had caught up and
    // Prometheus knew.
    const [drain] = await grafana.vector(`max(max_over_time(benchwatch_run_drain_seconds{run="${run}"}[7d]))`, to);
    const end = (Number(ended[0].value[1]) + Number(drain?.value[1] ?? 0) + 10) * 1000;
    const [start] = await grafana.vector(`max(max_over_time(benchwatch_run_start_timestamp_seconds{run="${run}"}[7d]))`, to);
    spans.push({ name: `run ${run}`, from: Math.floor(Number(start.value[1]) * 1000), to: Math.ceil(end), values: { run } });
  }
});

after(async () => {
  await browser.close();
  await grafana.end();
});

/** Fails with all complaints at once. */
function none(complaints) {
  assert.equal(complaints.length, 0, `\n${complaints.join('\n')}`);
}

test('Grafana takes every dashboard and keeps all of its panels', async () => {
  const complaints = [];
  for (const d of all) {
    const uid = await grafana.load(d);
    const { dashboard } = await grafana.api('GET', `/api/dashboards/uid/${uid}`);
    const want = panelsOf(d.json).map((p) => p.title);
    const have = panelsOf(dashboard).map((p) => p.title);
    if (want.join('\n') !== have.join('\n')) complaints.push(`${d.name}: has ${have.join(', ')}; want ${want.join(', ')}`);
  }
  none(complaints);
});

test("Grafana answers every panel's queries", async (t) => {
  const complaints = [];
  for (const span of spans) {
    const empty = [];
    for (const d of all) {
      for (const panel of panelsOf(d.json)) {
        let frames = 0;
        for (const target of panel.targets ?? []) {
          try {
            const n = await grafana.frames(target, span.values, span.from, span.to);
            if (target.refId !== 'Reason') frames += n; // which says why there are no others
          } catch (error) {
            complaints.push(`${d.name}: ${panel.title}, query ${target.refId}, ${span.name}: ${error.message}`);
          }
        }
        const name = `${d.name}: ${panel.title}`;
        if (frames > 0 || !panel.targets?.length) continue;
        empty.push(name);
        if (span.values.run && always.includes(name)) complaints.push(`${name} has no data for ${span.name}`);
      }
    }
    t.diagnostic(`${span.name}: ${empty.length} panels without data: ${empty.join('; ')}`);
  }
  none(complaints);
});

test('Grafana answers the queries of variables and annotations', async () => {
  const complaints = [];
  const [{ from, to }] = spans;
  for (const d of all) {
    for (const v of d.json.templating.list.filter((v) => v.type === 'query')) {
      const query = typeof v.query === 'string' ? v.query : v.query.query;
      await grafana.labelValues(query, from, to).catch((error) => complaints.push(`${d.name}: variable ${v.name}: ${error.message}`));
    }
    for (const a of d.json.annotations.list.filter((a) => a.expr)) {
      await grafana
        .frames({ refId: 'Anno', expr: a.expr, range: true }, {}, from, to)
        .catch((error) => complaints.push(`${d.name}: annotation ${a.name}: ${error.message}`));
    }
  }
  none(complaints);
});

const looks = pictures ? ['light', 'dark'].flatMap((theme) => [1400, 3000].map((width) => ({ theme, width }))) : [{ theme: 'dark', width: 1400 }];

test('every panel is drawn in a browser, without an error', { skip: browser.missing }, async () => {
  const complaints = [];
  if (pictures) mkdirSync(pictures, { recursive: true });
  for (const d of all) {
    for (const [i, span] of spans.entries()) {
      for (const look of looks) {
        const picture = pictures && join(pictures, `${d.name}-${i === 0 ? 'recent' : 'run'}-${look.theme}-${look.width}.png`);
        const seen = await browser.look(d.json, span, look, picture);
        const place = `${d.name}, ${span.name}, ${look.theme}, ${look.width} px`;
        for (const error of seen.errors) complaints.push(`${place}: ${error}`);
        const missing = panelsOf(d.json)
          .map((p) => p.title)
          .filter((title) => !seen.titles.includes(title));
        if (missing.length > 0) complaints.push(`${place}: not drawn: ${missing.join(', ')}`);
      }
    }
  }
  none(complaints);
});
