// The dashboards in a real Grafana: taken as they are, every query answered, and
// drawn in a browser without an error corner.
//
// All of it for the last 15 minutes and for the newest finished run. Panels without
// data are listed: which may have none depends on what is measured here, and the
// page must give the reason in place of Grafana's "No data". With GRAFANA_PICTURES (a
// folder) set every dashboard is photographed there, light and dark, wide and as narrow
// as a window of 1400 pixels with the menu docked.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Browser } from './browser.mjs';
import { dashboards, Grafana, panelsOf, printsLatencyOfIntervals } from './grafana.mjs';

const grafana = new Grafana();
const browser = new Browser(grafana);
const only = process.env.GRAFANA_DASHBOARDS?.split(',') ?? [];
const all = dashboards().filter((d) => only.length === 0 || only.includes(d.name));
// What every run that came to its end has shown.
const always = ['live-run: Throughput', 'live-run: Latency', 'live-run: Throughput over time'];
const pictures = process.env.GRAFANA_PICTURES;
let spans; // [{ name, from, to, values }], times in ms

before(async () => {
  await grafana.findSource();
  const to = Date.now();
  spans = [{ name: 'the last 15 minutes', from: to - 15 * 60_000, to, values: {} }];
  const ended = await grafana.vector('topk(1, max by (run) (max_over_time(benchwatch_run_end_timestamp_seconds[7d])))', to);
  if (ended.length === 1) {
    spans.push(await spanOf(ended[0].metric.run, ended[0].value[1], to));
  }
});

after(async () => {
  await browser.close();
  await grafana.end();
});

/** The time range in which the dashboard Runs opens a run: until the slowest replica had caught up and Prometheus knew. */
async function spanOf(run, end, to) {
  const [drain] = await grafana.vector(`max(max_over_time(benchwatch_run_drain_seconds{run="${run}"}[7d]))`, to);
  const [start] = await grafana.vector(`max(max_over_time(benchwatch_run_start_timestamp_seconds{run="${run}"}[7d]))`, to);
  const until = (Number(end) + Number(drain?.value[1] ?? 0) + 10) * 1000;
  return { name: `run ${run}`, from: Math.floor(Number(start.value[1]) * 1000), to: Math.ceil(until), values: { run } };
}

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
            if (!['Reason', 'Empty'].includes(target.refId)) frames += n; // those two say why there are no others
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

test('every tool has a latency in Live run', async (t) => {
  const { json } = dashboards().find((d) => d.name === 'live-run');
  const to = Date.now();
  const ended = 'max by (run) (max_over_time(benchwatch_run_end_timestamp_seconds[7d]))';
  const newest = await grafana.vector(
    `topk by (tool) (1, ${ended} * on (run) group_left (tool) max by (run, tool) (last_over_time(benchwatch_run_info{workload!="cpu"}[7d])) and on (run) max_over_time(benchwatch_run_result{result="succeeded"}[7d]))`,
    to,
  );
  const complaints = [];
  for (const { metric, value } of newest) {
    const span = await spanOf(metric.run, value[1], to);
    for (const title of printsLatencyOfIntervals(metric.tool) ? ['Latency', 'Latency over time'] : ['Latency']) {
      let frames = 0;
      for (const target of panelsOf(json).find((p) => p.title === title).targets)
        frames += await grafana.frames(target, span.values, span.from, span.to);
      if (frames === 0) complaints.push(`${title} has no data for ${metric.tool}, run ${metric.run}`);
    }
  }
  t.diagnostic(`tools: ${newest.map((n) => n.metric.tool).join(', ')}`);
  none(complaints);
});

test('no alert is marked on a run that began after it', async () => {
  const marked = await grafana.api('GET', '/api/annotations?limit=1000&tags=benchwatch');
  const runOf = (a) => a.tags.find((tag) => tag.startsWith('run:'));
  const starts = new Map(marked.filter((a) => a.tags.includes('kind:run')).map((a) => [runOf(a), a.time]));
  none(
    marked
      // One that still fires has no end: it is marked at its beginning.
      .filter((a) => a.tags.includes('kind:alert') && a.timeEnd > a.time && a.timeEnd < (starts.get(runOf(a)) ?? 0))
      .map((a) => `${a.text} ended before ${runOf(a)} began`),
  );
});

test('Grafana answers the queries of variables and annotations', async () => {
  const complaints = [];
  const [{ from, to }] = spans;
  for (const d of all) {
    for (const v of d.json.templating.list.filter((v) => v.type === 'query')) {
      const query = typeof v.query === 'string' ? v.query : v.query.query;
      await grafana.values(query, from, to).catch((error) => complaints.push(`${d.name}: variable ${v.name}: ${error.message}`));
    }
    for (const a of d.json.annotations.list.filter((a) => a.expr)) {
      await grafana
        .frames({ refId: 'Anno', expr: a.expr, range: true }, {}, from, to)
        .catch((error) => complaints.push(`${d.name}: annotation ${a.name}: ${error.message}`));
    }
  }
  none(complaints);
});

const themes = pictures ? ['light', 'dark'] : ['dark'];
const widths = pictures ? [1120, 3000] : [1120];

test('every panel is drawn in a browser, without an error', { skip: browser.missing }, async () => {
  const complaints = [];
  if (pictures) mkdirSync(pictures, { recursive: true });
  for (const d of all) {
    for (const [i, span] of spans.entries()) {
      for (const theme of themes) {
        const file = (width) => [width, pictures && join(pictures, `${d.name}-${i === 0 ? 'recent' : 'run'}-${theme}-${width}.png`)];
        const followed = i === spans.length - 1 && theme === themes[0];
        const seen = await browser.look(d.json, span, { theme, widths, pictures: Object.fromEntries(widths.map(file)), followed });
        const place = `${d.name}, ${span.name}, ${theme}`;
        for (const error of seen.errors) complaints.push(`${place}: ${error}`);
        for (const [title, text] of Object.entries(seen.texts)) {
          if (span.values.run && /No run (selected|yet)|printed nothing/.test(text)) complaints.push(`${place}: ${title} denies that there is a run`);
        }
        const missing = panelsOf(d.json)
          .map((p) => p.title)
          .filter((title) => !seen.titles.includes(title));
        if (missing.length > 0) complaints.push(`${place}: not drawn: ${missing.join(', ')}`);
      }
    }
  }
  none(complaints);
});
