// Looks at dashboards in Chromium as a person would.
import { chromium } from 'playwright-core';
import { panelsOf } from './grafana.mjs';

const PANEL = 'section[data-testid^="data-testid Panel header"]';

export class Browser {
  /** Why there is no browser, or false. */
  missing = process.env.CHROMIUM ? false : 'no Chromium in PATH';
  #grafana;
  #browser = null;
  #context = null;

  constructor(grafana) {
    this.#grafana = grafana;
  }

  async close() {
    await this.#browser?.close();
  }

  /** One context for all dashboards, which keeps Grafana's scripts: to load and compile them takes longest. */
  async #open() {
    const { url, headers } = this.#grafana;
    this.#browser = await chromium.launch({
      executablePath: process.env.CHROMIUM,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        // The token is for this Grafana only. Playwright's routes would switch the cache off.
        `--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE ${new URL(url).hostname}`,
      ],
    });
    this.#context = await this.#browser.newContext({ extraHTTPHeaders: headers });
  }

  /**
   * Opens a dashboard once, looks at it in each width, and returns its panels' titles and texts, and what went wrong in
   * them. pictures are files by width. followed: what a link leads to is opened too.
   */
  async look(json, span, { theme, widths, pictures = {}, followed = false }) {
    if (!this.#context) await this.#open();
    const page = await this.#context.newPage();
    try {
      return await this.#look(page, json, span, theme, widths, pictures, followed);
    } finally {
      await page.close();
    }
  }

  async #look(page, json, span, theme, widths, pictures, followed) {
    const { url } = this.#grafana;
    // Grafana draws only what is in sight: everything is.
    const height = 160 + 38 * (json.panels.length + Math.max(...[...json.panels, ...panelsOf(json)].map((p) => p.gridPos.y + p.gridPos.h)));
    await page.setViewportSize({ width: widths[0], height });
    const errors = [];
    page.on('pageerror', (e) => errors.push(`in the page: ${e.message}`));
    page.on('response', async (r) => {
      if (r.url().includes('/api/ds/query') && !r.ok()) errors.push(`query: status ${r.status()}`);
    });
    const form = new URLSearchParams({ theme, from: String(span.from), to: String(span.to), orgId: '1' });
    for (const [name, value] of Object.entries(span.values)) form.append(`var-${name}`, value);
    await page.goto(`${url}/d/${this.#grafana.uidOf(json)}?${form}&kiosk`, { timeout: 120_000 });
    const panels = page.locator(PANEL);
    await panels.first().waitFor({ timeout: 60_000 });
    const closed = page.getByRole('button', { name: 'Expand row' });
    for (let n = await closed.count(); n > 0; n--) await closed.first().click();
    const want = panelsOf(json).length;
    await page
      .waitForFunction(([selector, n]) => document.querySelectorAll(selector).length >= n, [PANEL, want], { timeout: 60_000 })
      .catch(() => {});
    const titles = new Set();
    const texts = {};
    for (const width of widths) {
      await page.setViewportSize({ width, height });
      const wrong = [...(await settled(page)), ...(await read(page, titles, texts))];
      errors.push(...wrong.map((e) => `${width} px: ${e}`));
      if (pictures[width]) await page.screenshot({ path: pictures[width] });
    }
    const link = panels.locator('a[href*="/d/"]').first();
    if (followed && (await link.count())) errors.push(...(await follow(page, link)));
    return { titles: [...titles], texts, errors };
  }
}

/**
 * Waits until the panels have the page's width, each shows an answer, and nothing is loaded, marks on the time axis
 * neither: meanwhile the button says Cancel, and a panel has an icon beside its title. Returns what is not so.
 */
async function settled(page) {
  return page.evaluate(
    async ([selector, limit]) => {
      const unsettled = () => {
        const panels = [...document.querySelectorAll(selector)];
        const right = Math.max(...panels.map((panel) => panel.getBoundingClientRect().right));
        const button = document.querySelector('[data-testid="data-testid RefreshPicker run button"]')?.innerText;
        const loading = panels.filter(
          (panel) =>
            panel.querySelector('[aria-label="Panel loading bar"]') ||
            panel.querySelector('[data-testid="data-testid panel content"]')?.childElementCount === 0,
        );
        return [
          ...(Math.abs(innerWidth - right) < 40 ? [] : [`the panels end at ${right} px`]),
          ...(button === 'Refresh' ? [] : [`the button for a refresh says ${button}`]),
          ...loading.map((panel) => `${panel.dataset.testid}: still loading`),
        ];
      };
      const end = performance.now() + limit;
      while (unsettled().length > 0 && performance.now() < end) await new Promise(requestAnimationFrame);
      return unsettled();
    },
    [PANEL, 120_000],
  );
}

/** Adds what the panels show to titles and texts, and returns what is wrong with it. */
async function read(page, titles, texts) {
  const panels = await page.evaluate(
    (selector) =>
      [...document.querySelectorAll(selector)].map((panel) => {
        const head = panel.querySelector('h2, h6');
        const corner = panel.querySelector('[data-testid="data-testid Panel status error"]');
        return {
          title: panel.dataset.testid.replace('data-testid Panel header ', ''),
          text: panel.innerText,
          // The title's element ends with an ellipsis if its text is wider.
          cut: head !== null && head.scrollWidth > head.clientWidth + 1,
          // A column's name too; a table that is wider than its panel scrolls.
          columns: [...panel.querySelectorAll('[role="columnheader"]')]
            .filter((column) =>
              [column, ...column.querySelectorAll('*')].some(
                (e) => getComputedStyle(e).textOverflow === 'ellipsis' && e.scrollWidth > e.clientWidth + 1,
              ),
            )
            .map((column) => column.innerText),
          // Grafana divides the width of the panel with its two borders among the columns.
          wide: [...panel.querySelectorAll('[role="grid"], [role="table"]')].some((e) => e.scrollWidth > e.clientWidth + 2),
          failed: corner && (corner.getAttribute('aria-label') ?? 'of unknown cause'),
        };
      }),
    PANEL,
  );
  const errors = [];
  for (const { title, text, cut, columns, wide, failed } of panels) {
    titles.add(title);
    texts[title] = `${texts[title] ?? ''}${text}`;
    if (cut) errors.push(`${title}: the title is cut`);
    if (columns.length > 0) errors.push(`${title}: names of columns are cut: ${columns.join(', ')}`);
    if (wide) errors.push(`${title}: columns are out of sight`);
    if (failed) errors.push(`${title}: an error corner: ${failed}`);
    if (/^(No data|Data (is missing|does not have).*)$/m.test(text)) errors.push(`${title}: "No data" without a reason`);
  }
  return errors;
}

/** Opens what a link in a panel leads to and returns what is wrong there. */
async function follow(page, link) {
  const text = await link.innerText();
  await page.goto(new URL(await link.getAttribute('href'), page.url()).href);
  const found = page.locator(PANEL).first();
  return found.waitFor({ timeout: 60_000 }).then(
    () => [],
    () => [`the link "${text}" leads to ${page.url()}, which shows no panel`],
  );
}
