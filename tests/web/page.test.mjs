// The live page in a real browser, on a real agent that follows real sysbench runs.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { Agent } from './agent.mjs';

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
const where = (page) => page.locator('.where');
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
  const run = agent.run('seen live', 12, '--label=via=direct');
  await page.getByRole('link', { name: 'seen live' }).click();
  await page.locator('#chart-run-transactions canvas').waitFor();
  await page.locator('h1', { hasText: /seen live\s*running/ }).waitFor(); // after its first report
  assert.match(await page.locator('.facts').innerText(), /sysbench[\s\S]*threads\s*2[\s\S]*via\s*direct/);
  await page.waitForFunction(() => /^\d/.test(document.querySelector('#tile-throughput dd').innerText));
  await moves(where(page)); // the time axis grows with every second
  await moves(tile(page, 'elapsed'));
  await agent.mark('buffers doubled');
  await page.locator('.markers').getByText('buffers doubled').waitFor();

  await once(run, 'exit');
  await page.locator('.badge.good').getByText('succeeded').waitFor();
  await page.getByRole('heading', { name: 'Summary' }).waitFor();
  assert.match(await page.locator('.numbers').innerText(), /transaction/);
  assert.match(await tile(page, 'elapsed').innerText(), /^0:1[2-9]$/);

  // It looks the same when it is opened now.
  const live = await firstPoint(page);
  const again = await open(new URL(page.url()).hash);
  await again.locator('#chart-run-transactions canvas').waitFor();
  assert.equal(await firstPoint(again), live);
  assert.equal(await tile(again, 'throughput').innerText(), await tile(page, 'throughput').innerText());
  await again.close();
  await page.close();
});

test('the agent is restarted: the page says so, comes back and shows what it missed', async () => {
  const page = await open();
  const run = agent.run('over the restart', 300);
  await page.getByRole('link', { name: 'over the restart' }).click();
  await page.locator('#chart-run-transactions canvas').waitFor();
  await agent.stop();
  await page.locator('body.offline').waitFor();
  await page.getByText('no connection to the agent').waitFor();
  await page.waitForTimeout(2500); // seconds of the run that nobody tells the page
  await agent.start();
  await page.locator('body:not(.offline)').waitFor();
  await moves(where(page));
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
  assert.match(await legend(page, 'host-cpu_busy').innerText(), /busy/);
  const cpu = await page.evaluate(async () => {
    const id = decodeURIComponent(location.hash.split('/')[2]);
    const h = await (await fetch(`api/runs/${id}/history`)).json();
    return h.tables.host.x;
  });
  assert.ok(cpu[0] < 2.5, `CPU from second ${cpu[0]} on: that of before the restart is missing`);
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
  assert.match(await page.locator('#tile-throughput').innerText(), /best 9,876/);
  assert.match(await shownEnd(page), /^10:00:00/);

  // Drag over a part: all charts show it, with what lies between the points.
  const box = await page.locator('#chart-run-transactions .u-over').boundingBox();
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
  assert.match(await legend(page, 'host-cpu_busy').innerText(), /busy\s*mean 50 %/);
  const panel = page.locator('.settings');
  assert.match(await panel.innerText(), /by\s*1:00\s*n1\s*wsrep_slave_threads: 1 → 8/);
  assert.match(await panel.locator('.differs').innerText(), /wsrep_slave_threads\s+1\s+<b>2<\/b>/);
  await panel.getByText('that are the same on all').click();
  await panel.getByText('1073741824 (1 GiB)').waitFor();
  await panel.getByRole('button', { name: '1:00' }).click();
  await page.getByRole('button', { name: 'Show all' }).waitFor();
  await page.close();
});

test('one cursor is over all charts', async () => {
  const page = await open('#/runs/20261120T010000Z-long');
  await page.locator('#chart-server-queries canvas').waitFor();
  const box = await page.locator('#chart-run-transactions .u-over').boundingBox();
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
  await page.locator('#chart-server-queries canvas').waitFor();
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
  await page.locator('#chart-server-queries canvas').waitFor();
  const series = page.locator('#chart-run-transactions .legend button').first();
  await series.focus();
  await page.keyboard.press('Space');
  assert.equal(await series.getAttribute('aria-pressed'), 'false');
  await page.close();
});

test('the policy is strict, nothing else is asked and nobody complained', async () => {
  const policy = (await fetch(agent.url)).headers.get('content-security-policy');
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:/);
  assert.deepEqual(strangers, []);
  assert.deepEqual(
    complaints.filter((c) => !/status of 400/.test(c)),
    [],
  );
});
