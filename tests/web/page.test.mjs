// The live page in a real browser, on a real agent that follows real sysbench runs.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { after, afterEach, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { Agent } from './agent.mjs';
import { findings } from './axe.mjs';

const agent = new Agent();
let browser;
const strangers = []; // requests to anywhere else
const complaints = []; // of the browser: errors and violations of the policy

before(async () => {
  await agent.start();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
});

// A test that fails leaves its page open: what it shows explains the failure.
afterEach(async () => {
  for (const context of browser.contexts()) {
    for (const page of context.pages()) console.log(`left open: ${page.url()}: ${(await page.locator('body').innerText()).slice(0, 1000)}`);
    await context.close();
  }
});

after(async () => {
  await browser?.close();
  await agent.end();
});

async function open(hash = '', options = {}) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, ...options });
  page.setDefaultTimeout(30_000);
  page.on('request', (r) => {
    if (!r.url().startsWith(agent.url) && !r.url().startsWith('data:')) strangers.push(r.url());
  });
  page.on('pageerror', (e) => complaints.push(e.message));
  page.on('console', (m) => {
    if (m.type() === 'error' && !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(m.text()))
      complaints.push(m.text());
  });
  await page.goto(`${agent.url}${hash}`);
  return page;
}

const tile = (page, id) => page.locator(`#tile-${id} dd`).first();
const legend = (page, chart) => page.locator(`#chart-${chart} .legend`);
/** A section of the document of an ended run, or of a comparison. */
const section = (page, id) => page.locator(`[data-section="${id}"]`);
const where = (page) => page.locator('.where');

/** Waits until a run's view has shown all that it requested. */
const complete = (page) => page.locator('.run[aria-busy=false]').waitFor();

/** Opens what is folded among the charts, once the run's document has arranged them. */
async function unfold(page) {
  await complete(page);
  await page.evaluate(() => {
    for (const d of document.querySelectorAll('.charts details')) d.open = true;
  });
}

/** The place of an element once it stays where it is: what loads above it moves it. */
async function settledBox(locator) {
  await complete(locator.page());
  await locator.scrollIntoViewIfNeeded();
  let before = '';
  for (;;) {
    const box = await locator.boundingBox();
    if (JSON.stringify(box) === before) return box;
    before = JSON.stringify(box);
    await locator.page().waitForTimeout(300);
  }
}

const shownEnd = async (page) => (await where(page).innerText()).split(' – ')[1];

/** Waits until a locator's text has changed. */
async function moves(locator) {
  const was = await locator.innerText();
  const handle = await locator.elementHandle();
  await locator.page().waitForFunction(([e, text]) => e.innerText !== text, [handle, was]);
}

/** The cursor at the run's first point, by keyboard alone, and what the charts say there. */
async function firstPoint(page) {
  await page.locator('.charts').focus();
  await page.keyboard.press('Home');
  for (let i = 0; i < 2; i++) await page.keyboard.press('Shift+ArrowRight');
  return legend(page, 'run-transactions').innerText();
}

test('a live run appears, moves, is marked and ends, without a reload', async () => {
  const page = await open();
  await page.getByText('None. Start one').waitFor();
  const run = agent.run('seen live', 30, '--label=via=direct');
  await page.getByRole('link', { name: 'seen live' }).click();
  await page.locator('#chart-run-transactions canvas').waitFor();
  await page.locator('h1', { hasText: /seen live\s*running/ }).waitFor(); // after its first report
  assert.match(await page.locator('.facts').innerText(), /sysbench[\s\S]*threads\s*2[\s\S]*via\s*direct/);
  await page.waitForFunction(() => /^\d/.test(document.querySelector('#tile-throughput dd').innerText));
  await moves(where(page)); // the time axis grows with every second
  await moves(tile(page, 'elapsed'));
  const { value, max } = await page.locator('#tile-elapsed progress').evaluate((bar) => ({ value: bar.value, max: bar.max }));
  assert.ok(value > 0 && value < max && max === 30, `${value} of ${max} s`);
  await agent.mark('buffers doubled');
  await page.locator('.markers').getByText('buffers doubled').waitFor();

  await once(run, 'exit');
  await page.locator('.badge.good').getByText('succeeded').waitFor();
  await page.getByRole('heading', { name: "The tool's summary" }).waitFor();
  assert.match(await section(page, 'operations').innerText(), /transaction/);
  assert.match(await page.locator('.id').innerText(), /started .*, 3\d\.?\d* s, succeeded/);
  assert.match(await section(page, 'time').innerText(), /buffers doubled/);
  assert.equal(await page.locator('.tiles').isVisible(), false);

  // It looks the same when it is opened now.
  await complete(page);
  const live = await firstPoint(page);
  const again = await open(new URL(page.url()).hash);
  await again.locator('#chart-run-transactions canvas').waitFor();
  await complete(again);
  assert.equal(await firstPoint(again), live);
  assert.equal(await section(again, 'result').innerText(), await section(page, 'result').innerText());
  await again.close();
  await page.close();
});

test('a live group shows which generator is silent and which is missing', async () => {
  agent.generator('team', 1, 3, 300);
  agent.generator('team', 2, 3, 300); // the third one never comes
  const page = await open('#/runs/team');
  const state = (number) => page.locator('tr', { has: page.getByRole('link', { name: `team-g${number}` }) });
  await state(1).getByText('running').waitFor();
  await state(2).getByText('running').waitFor();
  await state(3).getByText('not started').waitFor();
  await state(1)
    .getByText(/^\d+(\.\d)?$/)
    .waitFor(); // its own throughput
  assert.equal(await tile(page, 'throughput').innerText(), '–'); // the sum of two of three would be too low
  const tool = agent.meta('team-g2').pid;
  process.kill(tool, 'SIGSTOP');
  await state(2).getByText('silent').waitFor();
  await state(1).getByText('running').waitFor();
  await unfold(page);
  assert.match(await legend(page, 'run-generators').innerText(), /generators\s*[12]/);
  process.kill(tool, 'SIGCONT');
  await state(2).getByText('running').waitFor();
  // On a phone the table scrolls by itself, and the page does not.
  await page.setViewportSize({ width: 390, height: 800 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true);
  await page.close();
});

test('the agent is restarted: the page says so, comes back and shows what it missed', async () => {
  const page = await open();
  const begin = Date.now();
  const run = agent.run('over the restart', 300);
  await page.getByRole('link', { name: 'over the restart' }).click();
  await page.locator('#chart-run-transactions canvas').waitFor();
  await page.locator('#chart-host-cpu_busy canvas').waitFor();
  const stopped = (Date.now() - begin) / 1000;
  await agent.stop();
  await page.locator('body.offline').waitFor();
  await page.getByText('no connection to the agent').waitFor();
  await page.waitForTimeout(2500); // seconds of the run that nobody tells the page
  await agent.start();
  await page.locator('body:not(.offline)').waitFor();
  await moves(where(page));
  await complete(page);
  await page.locator('.charts').focus();
  const seconds = await page.evaluate(async () => {
    const id = decodeURIComponent(location.hash.split('/')[2]);
    const h = await (await fetch(`api/runs/${id}/history`)).json();
    return h.tables.intervals.x;
  });
  assert.deepEqual(
    seconds,
    seconds.map((_, i) => i + 1),
    'no second is missing',
  );
  assert.match(await legend(page, 'host-cpu_busy').innerText(), new RegExp(`${hostname()}\\s+[\\d.]+ %`));
  const cpu = await page.evaluate(async () => {
    const id = decodeURIComponent(location.hash.split('/')[2]);
    const h = await (await fetch(`api/runs/${id}/history`)).json();
    return h.tables.host.x;
  });
  assert.ok(cpu[0] < stopped, `CPU from second ${cpu[0]} on: that of before the restart is missing`);
  run.kill('SIGINT');
  await page.locator('.badge.bad').getByText('interrupted').waitFor();
  await page.close();
});

test('a run of ten hours opens, with its extremes, and is zoomed', async (t) => {
  agent.ended('20261120T010000Z-long', 36000, (s) => (s === 20000 ? 9876 : s === 20001 ? 3 : 1000));
  let page;
  for (const which of ['first', 'second', 'third']) {
    // the agent reads it for the first one
    page = await open();
    await page.getByRole('link', { name: '20261120T010000Z-long' }).waitFor();
    const begin = Date.now();
    await page.getByRole('link', { name: '20261120T010000Z-long' }).click();
    await page.locator('#chart-run-transactions canvas').waitFor();
    const first = Date.now() - begin;
    await page.locator('#chart-host-cpu_busy canvas').waitFor();
    t.diagnostic(`opened for the ${which} time: first chart after ${first} ms, all after ${Date.now() - begin} ms`);
    if (which !== 'third') await page.close();
  }
  await unfold(page);
  assert.match(await page.locator('#chart-run-transactions .plot').getAttribute('aria-label'), /transaction: mean [\d,.]+, 3 to 9,876/);
  assert.match(await shownEnd(page), /^10:00:00/);

  // Drag over a part: all charts show it, with what lies between the points.
  const box = await settledBox(page.locator('#chart-run-transactions .u-over'));
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 5 });
  const part = page.waitForResponse((r) => r.url().includes('from='));
  await page.mouse.up();
  await part;
  await page.mouse.move(0, 0);
  await page.getByRole('button', { name: 'Show all' }).waitFor();
  assert.match(await where(page).innerText(), /^(4:5\d|5:0\d):.* – (5:5\d|6:0\d):/);

  await page.locator('#chart-server-queries .u-over').dblclick();
  await page.mouse.move(0, 0);
  await page.waitForFunction(() => / – 10:00:00/.test(document.querySelector('.where').innerText));

  // The same by keyboard.
  await page.locator('.charts').focus();
  await page.keyboard.press('+');
  await page.getByRole('button', { name: 'Show all' }).waitFor();
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => / – 10:00:00/.test(document.querySelector('.where').innerText));
  await page.close();
});

test('an ended run shows the CPU and the settings that were recorded', async () => {
  const page = await open('#/runs/20261120T010000Z-long');
  await page.locator('#chart-host-cpu_busy canvas').waitFor();
  await complete(page);
  assert.match(await legend(page, 'host-cpu_busy').innerText(), /test\s*mean 50 %/);
  const panel = section(page, 'settings');
  assert.match(await panel.innerText(), /n1: wsrep_slave_threads was changed from 1 to 8 by 1:00/);
  assert.match(await panel.locator('table').innerText(), /wsrep_slave_threads\s+1\s+<b>2<\/b>/);
  await panel.getByText('equal setting').click();
  await panel.getByText('1073741824 (1 GiB)').waitFor();
  await panel.getByRole('button', { name: 'Zoom to 1:00' }).click();
  await page.getByRole('button', { name: 'Show all' }).waitFor();
  await page.close();
});

test('one cursor is over all charts', async () => {
  const page = await open('#/runs/20261120T010000Z-long');
  await unfold(page);
  await page.locator('#chart-server-queries canvas').waitFor();
  const box = await settledBox(page.locator('#chart-run-transactions .u-over'));
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await page.waitForFunction(
    () =>
      document.querySelector('#chart-server-queries .legend').innerText.trim() === 'n1\n500' ||
      /n1\s*500/.test(document.querySelector('#chart-server-queries .legend').innerText),
  );
  const lefts = await page.locator('.u-cursor-x').evaluateAll((lines) => lines.map((l) => new DOMMatrix(getComputedStyle(l).transform).e));
  assert.ok(lefts.length >= 3 && lefts.every((x) => Math.abs(x - lefts[0]) < 3), `cursors at ${lefts}`);
  await page.close();
});

test('titles, labels, markers and commands are text', async () => {
  const evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>';
  const run = agent.run(evil, 300, `--label=note=${evil}`);
  const page = await open();
  await page.getByRole('link', { name: '<img src=x' }).waitFor();
  assert.match(await page.locator('.list').innerText(), /note=<img src=x/);
  await page.getByRole('link', { name: '<img src=x' }).click();
  await page.locator('#chart-run-transactions canvas').waitFor();
  await agent.mark(evil);
  await page.locator('.markers .text').getByText('<img src=x').waitFor();
  assert.match(await page.locator('h1').innerText(), /<script>/);
  assert.equal(await page.locator('main img, main script').count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  run.kill('SIGINT');
  await once(run, 'exit');
  await page.goto(`${agent.url}#/runs/${encodeURIComponent(evil)}`);
  await page.locator('.problem').getByText('run id').waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.close();
});

test('it fits a phone, in the dark too', async () => {
  const page = await open('#/runs/20261120T010000Z-long', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
  await unfold(page);
  await page.locator('#chart-server-queries canvas').waitFor();
  await complete(page);
  const fits = () => page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth);
  assert.ok(await fits(), 'the run is wider than the screen');
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(18, 21, 27)');
  await page.goto(agent.url);
  await page.locator('.runs').first().waitFor();
  assert.ok(await fits(), 'the list is wider than the screen');
  await page.close();
});

test('the keyboard reaches run, charts and series', async () => {
  const page = await open();
  const link = page.getByRole('link', { name: '20261120T010000Z-long' });
  await link.focus();
  await page.keyboard.press('Enter');
  await unfold(page);
  await page.locator('#chart-server-queries canvas').waitFor();
  await complete(page);
  const series = page.locator('#chart-run-transactions .legend button').first();
  await series.focus();
  await page.keyboard.press('Space');
  assert.equal(await series.getAttribute('aria-pressed'), 'false');
  await page.close();
});

test('the result of an ended run is of the whole run, and percentiles have no mean', async () => {
  agent.ended('20261120T020000Z-tiles', 20, () => 100);
  const page = await open('#/runs/20261120T020000Z-tiles');
  await page.locator('#chart-run-latency canvas').waitFor();
  await complete(page);
  assert.match(await section(page, 'result').innerText(), /threads\s+8[\s\S]*tps\s+100\.0[\s\S]*errors\s+0/);
  assert.match(await legend(page, 'run-latency').innerText(), /p95\s*median 1\.04 ms/);
  assert.match(await legend(page, 'run-transactions').innerText(), /^\s*transaction\s*mean 100/);
  await legend(page, 'run-transactions').getByRole('button', { name: /more/ }).click();
  assert.match(await legend(page, 'run-transactions').innerText(), /read\s*mean 100/);
  await page.close();
});

test('a failed run starts with the reason, and its axis is as short as the run', async () => {
  const failed = {
    result: 'failed',
    exit_code: 3,
    reason: 'exit status 3: FATAL: no server',
    ended_at: '2026-11-20T01:00:00.100Z',
    closed_at: '2026-11-20T01:00:00.100Z',
  };
  agent.ended('20261120T030000Z-failed', 0, () => 0, failed);
  const page = await open('#/runs/20261120T030000Z-failed');
  await complete(page);
  assert.match(await page.locator('.document section').first().innerText(), /Result\s+reason: exit status 3: FATAL: no server/);
  assert.match(await where(page).innerText(), /0:00\.5 /);
  // Charts are drawn, or there are none: a line that unfolds nothing is no chart.
  const folds = await page.locator('.charts details:visible').evaluateAll((all) => all.map((d) => d.querySelectorAll('.chart:not([hidden])').length));
  assert.ok(!folds.includes(0), `${folds}`);
  await page.close();
});

test('the list is sorted, filtered, grouped and cut, says so, and is in the address', async () => {
  for (let i = 0; i < 40; i++) {
    agent.ended(`20261101T0100${String(i).padStart(2, '0')}Z-many`, 3, () => 10 * (i + 1), {
      title: `many ${i}`,
      threads: i + 1,
      labels: { via: i % 2 ? 'direct' : 'proxy' },
    });
  }
  const page = await open('#/?q=many');
  await page.getByText('30 of 40 runs that match').waitFor();
  const titles = () => page.locator('.selectable tbody th a').allInnerTexts();
  await page.getByRole('button', { name: 'Transactions/s' }).last().click();
  assert.equal((await titles())[0], 'many 39');
  await page.getByRole('button', { name: 'Transactions/s' }).last().click();
  assert.equal((await titles())[0], 'many 0');
  assert.equal(await page.locator('.selectable th[aria-sort]').getAttribute('aria-sort'), 'ascending');
  await page.getByLabel('Group runs by').selectOption('via');
  assert.deepEqual((await page.locator('.group').allInnerTexts()).sort(), ['via direct20 runs', 'via proxy20 runs']);
  await page.getByLabel('Group runs by').selectOption('');
  await page.getByRole('button', { name: 'show all' }).click();
  assert.equal((await titles()).length, 40);
  await page.getByLabel('Select many 0', { exact: true }).check();
  await page.getByLabel('Select many 1', { exact: true }).check();

  const again = await open(new URL(page.url()).hash); // the address has all of it
  await again.getByRole('link', { name: 'Compare 2 selected' }).waitFor();
  assert.equal((await again.locator('.selectable tbody th a').allInnerTexts()).length, 40);
  assert.equal((await again.locator('.selectable tbody th a').allInnerTexts())[0], 'many 0');
  await again.getByLabel('Filter runs').fill('many via=direct');
  await again.getByText('20 runs that match').waitFor();
  await again.close();
  await page.getByRole('link', { name: 'Compare 2 selected' }).click();
  await page.locator('#chart-run-transactions canvas').waitFor();
  assert.match(await section(page, 'measures').innerText(), /tps\s+10\.00\s+20\.00\s+2\.000\s+\+100\.0 %, too short to tell/);
  await page.getByRole('heading', { name: 'What differs' }).waitFor();
  await page.close();
});

test('the agent and its servers are shown at once; runs that are not kept are counted', async () => {
  const page = await open();
  await page.locator('.health').getByText('agent up').waitFor();
  await page.locator('.servers').getByText('127.0.0.1:1').waitFor({ state: 'attached' });
  assert.match(await page.locator('.health').innerText(), /look here[\s\S]*1 of 1 server down/);
  await page.close();
});

test('zoom and lines are in the address', async () => {
  const page = await open('#/runs/20261120T010000Z-long?from=100&to=200&lines=transactions.read');
  await page.locator('#chart-run-transactions canvas').waitFor();
  await complete(page);
  assert.match(await where(page).innerText(), /^1:40 .* – 3:20 /);
  const read = page.locator('#chart-run-transactions .legend button', { hasText: 'read' });
  assert.equal(await read.getAttribute('aria-pressed'), 'true');
  await page.locator('#chart-run-transactions .legend button', { hasText: 'transaction' }).click();
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.waitForFunction(() => location.hash === '#/runs/20261120T010000Z-long?lines=transactions.read%2Ctransactions.transaction');
  await page.close();
});

test('a gap in what the tool and the servers report is a gap on the page', async () => {
  agent.ended('20261120T040000Z-gap', 30, (s) => (s > 10 && s < 16 ? null : 100));
  const page = await open('#/runs/20261120T040000Z-gap');
  await page.locator('#chart-run-transactions canvas').waitFor();
  await complete(page);
  const gaps = await page.evaluate(async () => {
    const h = await (await fetch('api/runs/20261120T040000Z-gap/history')).json();
    return ['intervals', 'servers', 'host'].map((t) => h.tables[t].series.some((s) => s.values.slice(1, -1).includes(null)));
  });
  assert.deepEqual(gaps, [true, true, true]);
  // No pixel of the curve is drawn in the middle of the gap.
  const drawn = await page.evaluate(() => {
    const canvas = document.querySelector('#chart-run-transactions canvas');
    const over = document.querySelector('#chart-run-transactions .u-over');
    const ratio = canvas.width / canvas.clientWidth;
    const column = (second) => {
      const x = Math.round((over.offsetLeft + (over.clientWidth * second) / 30) * ratio);
      const pixels = canvas.getContext('2d').getImageData(x, over.offsetTop * ratio, 1, over.clientHeight * ratio).data;
      let blue = 0;
      for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 2] > pixels[i] + 60) blue++;
      return blue;
    };
    return [column(5.5), column(13.3), column(20.5)].map((n) => n > 0);
  });
  assert.deepEqual(drawn, [true, false, true]);
  await page.close();
});

test('a report fits four printed pages, has two charts in a row and no table that is cut', async () => {
  const page = await open('runs/20261120T020000Z-tiles/report', { viewport: { width: 1200, height: 900 } });
  const boxes = await page
    .locator('figure')
    .evaluateAll((all) => all.map((f) => f.getBoundingClientRect()).map((b) => [Math.round(b.left), Math.round(b.top)]));
  assert.ok(boxes.length >= 3 && boxes[0][1] === boxes[1][1] && boxes[0][0] < boxes[1][0], `charts at ${JSON.stringify(boxes)}`);
  const cut = await page.locator('.scroll').evaluateAll((all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText));
  assert.deepEqual(cut, []);
  assert.deepEqual(await findings(page), []);
  const pdf = (await page.pdf({ format: 'A4' })).toString('latin1');
  const pages = pdf.match(/\/Type \/Page\b/g).length;
  assert.ok(pages <= 4, `${pages} pages`);
  await page.close();
});

test('a run begins with what limited it and the charts that show it; all others are folded, and printing gives the report', async () => {
  const id = agent.recorded();
  const page = await open(`#/runs/${id}`);
  await complete(page);
  const order = () =>
    page.evaluate(() => {
      const first = document.querySelector('.charts > .row');
      const all = [
        ...document.querySelectorAll('[data-section=result], [data-section=limits], .charts > .row, [data-section=trust], .charts details'),
      ];
      return [
        all.map((e) => e.dataset.section ?? e.className),
        [...first.querySelectorAll('.chart:not([hidden])')].map((e) => e.id.replace('chart-', '')),
      ];
    });
  const [places, charts] = await order();
  assert.deepEqual(places.slice(0, 3), ['result', 'limits', 'row']);
  assert.equal(places.at(-1), 'trust');
  assert.deepEqual(charts.slice(0, 2), ['server-flow_control', 'server-flow_control_sent']);
  assert.deepEqual(charts.slice(3), ['run-transactions', 'run-latency', 'host-cpu_busy']);
  // The third one was behind a line until the verdict came.
  await page.locator(`#chart-${charts[2]} canvas`).waitFor();
  const fold = page.locator('.charts summary', { hasText: 'charts of the servers' });
  assert.match(await fold.innerText(), /^\d+ charts of the servers: Queries/);
  assert.equal(await page.locator('#chart-server-queries canvas').count(), 0, 'a folded chart is not drawn');
  await fold.click();
  await page.locator('#chart-server-queries canvas').waitFor();
  // The first screen has the verdict and its charts.
  assert.ok((await page.locator('#chart-server-flow_control').boundingBox()).y < 700);

  const pages = async () => (await page.pdf({ format: 'A4' })).toString('latin1').match(/\/Type \/Page\b/g).length;
  const printed = await pages();
  assert.ok(printed <= 4, `${printed} pages`);
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  assert.deepEqual(
    await page.evaluate(() => [document.querySelectorAll('article figure svg').length > 3, document.querySelectorAll('canvas').length]),
    [true, 0],
  );
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  await page.locator('#chart-server-flow_control canvas').waitFor();
  assert.equal(await page.locator('article').count(), 0);
  await page.goto(`${agent.url}runs/${id}/report`);
  assert.equal(await pages(), printed);

  // In the list, what all latencies are is in the head and not in each row.
  await page.goto(`${agent.url}#/?q=${id}`);
  await page.locator('.selectable thead', { hasText: 'Latency, transaction p95' }).waitFor();
  assert.match(await page.locator('.selectable tbody').innerText(), /\t\d[\d.]* ms\t/);
  await page.close();
});

test('the list is read again if its request is lost', async () => {
  agent.ended('20261120T060000Z-lost', 20, () => 100, { title: 'lost request' });
  const page = await open();
  const link = page.getByRole('link', { name: 'lost request' });
  await link.waitFor(); // the stream announces a run that the agent finds later
  let lost = 0;
  await page.route('**/api/runs', (route) => (lost++ ? route.continue() : route.abort('connectionreset')));
  await page.reload();
  await link.waitFor();
  assert.ok(lost >= 2, `${lost} requests`);
  await page.close();
});

test('what the user required is at the top, met or not', async () => {
  agent.ended('20261120T060000Z-required', 20, () => 100, { required: ['tps>50', 'tps>1000', 'lag<5s'] });
  const page = await open('#/runs/20261120T060000Z-required');
  await page.locator('.id', { hasText: '1 of 3 requirements not met' }).waitFor();
  assert.equal(await page.locator('.id.warning').count(), 1);
  const result = await section(page, 'result').innerText();
  assert.match(result, /good\s+tps>50 is met: 100\.00/);
  assert.match(result, /unknown\s+lag<5s is not known/);
  await page.close();
});

test('what the user requires is on the page of a live run from the start, with its value now', async () => {
  const requires = ['tps>1', 'tps>1000000', 'drain<10s'].map((condition) => `--require=${condition}`);
  const run = agent.run('required', 12, ...requires);
  const page = await open();
  await page.getByRole('link', { name: 'required', exact: true }).click();
  const required = page.locator('[data-section="required"]');
  await required.waitFor();
  assert.match(await required.innerText(), /drain<10s has no value yet/);
  await required.getByText(/tps>1 is met now: \d/).waitFor(); // it is read again
  assert.match(await required.innerText(), /warning\s+tps>1000000 is not met now: \d/);
  const [status] = await once(run, 'exit');
  assert.equal(status, 3);
  await page.locator('.id', { hasText: '1 of 3 requirements not met' }).waitFor();
  assert.equal(await required.isVisible(), false);
  await page.close();
});

test('what was observed and how far to trust it is shown; report and export open', async () => {
  const page = await open('#/runs/20261120T020000Z-tiles');
  await section(page, 'trust').getByText('the run is short').waitFor();
  await page.getByRole('heading', { name: 'What was observed' }).waitFor();
  for (const [name, text] of [
    ['Report', '<!DOCTYPE html>'],
    ['as Markdown', '## 20261120T020000Z-tiles'],
    ['CSV', 'run,time,elapsed_seconds'],
    ['CSV of the servers', 'run,time,elapsed_seconds,target'],
    ['JSON', '{'],
  ]) {
    const href = await page.getByRole('link', { name, exact: true }).getAttribute('href');
    const body = await (await fetch(new URL(href, agent.url))).text();
    assert.ok(body.startsWith(text), `${name}: ${body.slice(0, 60)}`);
  }
  await page.close();
});

test('the statements of a run are shown and compared', async () => {
  const executed = (slow) => ({
    'SELECT `c` FROM `sbtest1` WHERE `id` = ? AND "<b>" < ?': slow,
    ...Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [`UPDATE \`sbtest${i}\` SET \`k\` = \`k\` + ? WHERE \`id\` IN (...) AND \`other_long_name\` = ?`, 0.1]),
    ),
  });
  for (const [id, slow] of [
    ['20261120T050000Z-fast', 2],
    ['20261120T050001Z-slow', 50],
  ]) {
    agent.ended(id, 20, () => 100, { title: id });
    agent.executed(id, executed(slow));
  }
  const page = await open('#/runs/20261120T050001Z-slow', { viewport: { width: 1200, height: 900 } });
  const panel = section(page, 'statements');
  await panel.getByText('21 statements').click();
  await panel.getByText('AND "<b>" < ?').waitFor();
  assert.match(await panel.innerText(), /AND "<b>" < \?\s+1000\s+96\s+50\.00\s+5\.00\s+1\.00/);
  assert.match(await panel.innerText(), /n1 counted 21000 executions from 0:01 to 0:20, 100\s% of the statements/);
  assert.deepEqual(await findings(page), []);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/statements.png`, fullPage: true });
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(await page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), 'the run is wider than the screen');
  await page.goto(`${agent.url}runs/20261120T050001Z-slow/report`);
  await page.setViewportSize({ width: 1200, height: 900 });
  const cut = await page.locator('.scroll').evaluateAll((all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText));
  assert.deepEqual(cut, []);
  await page.close();

  const comparison = await open('#/compare?runs=20261120T050000Z-fast,20261120T050001Z-slow');
  await comparison.setViewportSize({ width: 390, height: 844 });
  const narrow = await comparison.locator('[data-section=measures] tbody td:last-child').first().boundingBox();
  assert.ok(narrow.x >= 0 && narrow.x + narrow.width <= 390, `the difference is at ${JSON.stringify(narrow)}`);
  await comparison.setViewportSize({ width: 1400, height: 900 });
  const difference = section(comparison, 'statements').locator('tbody tr').first();
  await difference.waitFor();
  assert.match(await difference.innerText(), /AND "<b>" < \?\s+1\.05\s+26\.32\s+\+25\.26\s+2\.00 → 50\.00/);
  if (process.env.PICTURES) await comparison.screenshot({ path: `${process.env.PICTURES}/compare.png`, fullPage: true });
  await comparison.close();
});

test('alerts fire on the page until they are resolved, and a marker is set with the token', async () => {
  const run = agent.run('with alerts', 300);
  const page = await open();
  await page.getByRole('link', { name: 'with alerts' }).click();
  await page.locator('#chart-run-transactions canvas').waitFor();
  const id = decodeURIComponent(new URL(page.url()).hash.split('/')[2]);
  const alert = (status, endsAt) =>
    agent.post('api/v1/alerts', {
      version: '4',
      alerts: [
        {
          status,
          labels: { alertname: 'Slow <b>node</b>', severity: 'critical', run: id },
          annotations: { summary: 'n3 is slow' },
          startsAt: new Date().toISOString(),
          endsAt,
          fingerprint: 'f',
        },
      ],
    });
  assert.equal(await alert('firing', '0001-01-01T00:00:00Z'), 200);
  await page.locator('.firing').getByText('Slow <b>node</b> (critical)').waitFor();
  const list = await open();
  await list.locator('.firing').getByText('n3 is slow').waitFor();
  assert.deepEqual(await findings(list), []);
  assert.deepEqual(await findings(page), []);
  assert.equal(await alert('resolved', new Date().toISOString()), 200);
  await page.locator('.firing').waitFor({ state: 'detached' });
  await list.locator('.firing').waitFor({ state: 'detached' });
  await list.close();

  await page.getByText('Set a marker').click();
  await page.getByLabel('Text of the marker').fill('buffers <i>halved</i>');
  await page.getByLabel('Token').fill('wrong');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  await page.getByText('the token is wrong').waitFor();
  await page.getByLabel('Token').fill('secret-token');
  await page.keyboard.press('Enter');
  await page.locator('.markers .text').getByText('buffers <i>halved</i>').waitFor();
  assert.deepEqual(await page.evaluate(() => [sessionStorage.length, localStorage.length, document.cookie]), [1, 0, '']);
  run.kill('SIGINT');
  await once(run, 'exit');
  await page.close();
});

test('the history shows where a level changed, is in the address and leads to the runs', async () => {
  for (let i = 0; i < 20; i++) {
    const start = new Date(Date.UTC(2026, 0, 1 + i)).toISOString();
    const end = new Date(Date.UTC(2026, 0, 1 + i, 0, 0, 5)).toISOString();
    const labels = { build: i < 10 ? 'old' : '<b>new</b>' };
    const more = { workload: 'months', labels, started_at: start, clock_started_at: start, ended_at: end, closed_at: end };
    agent.ended(`202601${String(i + 1).padStart(2, '0')}T000000Z-months`, 5, (s) => (i < 10 ? 1000 : 700) + ((i + s) % 3), more);
  }
  const page = await open();
  await page.getByRole('link', { name: 'History' }).click();
  await page.getByLabel('Only runs with').fill('workload=months');
  await page.locator('.trend[aria-busy=false] .changes li').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.drawn').length === 1);
  assert.match(await page.locator('.changes').innerText(), /-30\.\d %[\s\S]*build old → <b>new<\/b>/);
  assert.equal(await page.locator('.drawn a').count(), 20);
  assert.match(page.url(), /#\/history\?where=workload%3Dmonths$/);
  await page.getByLabel('A series for each').selectOption('build');
  await page.waitForFunction(() => document.querySelectorAll('.drawn').length === 2);
  assert.match(page.url(), /by=build/);
  await page.goBack();
  await page.goForward();
  await page.waitForFunction(() => document.querySelectorAll('.drawn').length === 2);
  await page.setViewportSize({ width: 390, height: 800 });
  await page.waitForFunction(() => Number(document.querySelector('.drawn > svg')?.getAttribute('viewBox').split(' ')[2]) < 390);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true);
  await page.locator('.drawn a').first().click();
  await page.locator('.run h1').waitFor();
  assert.match(page.url(), /#\/runs\/202601/);
  await page.close();
});

test('axe-core finds nothing serious, and each chart says in words what it shows', async () => {
  for (const hash of [
    '',
    '#/?by=via&select=20261101T010000Z-many',
    '#/runs/20261120T010000Z-long',
    '#/runs/20261120T030000Z-failed',
    '#/compare?runs=20261101T010000Z-many,20261101T010001Z-many,20261101T010002Z-many&by=via',
    '#/history?where=workload%3Dmonths',
    '#/runs/none',
  ]) {
    for (const colorScheme of ['light', 'dark']) {
      const page = await open(hash, { colorScheme });
      await page
        .locator(hash.includes('none') ? '.problem:not([hidden])' : 'main table, main .panel')
        .first()
        .waitFor();
      if (hash.includes('runs/2')) await complete(page);
      else await page.waitForTimeout(300); // late parts
      assert.deepEqual(await findings(page), [], `${hash || 'list'}, ${colorScheme}`);
      await page.close();
    }
  }
  const page = await open('#/runs/20261120T020000Z-tiles');
  await page.locator('#chart-run-transactions canvas').waitFor();
  await complete(page);
  assert.match(await page.locator('#chart-run-transactions .plot').getAttribute('aria-label'), /Throughput, .*transaction: mean 100, 100 to 100/);
  await page.close();
});

test('the policy is strict, nothing else is asked and nobody complained', async () => {
  const policy = (await fetch(agent.url)).headers.get('content-security-policy');
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:/);
  assert.deepEqual(strangers, []);
  assert.deepEqual(
    complaints.filter((c) => !/status of 40[014]/.test(c)),
    [],
  );
});
