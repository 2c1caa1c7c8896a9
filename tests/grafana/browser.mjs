// Looks at dashboards in Chromium as a person would.
import { chromium } from 'playwright-core';
import { panelsOf } from './grafana.mjs';

const PANEL = 'section[data-testid^="data-testid Panel header"]';

export class Browser {
  /** Why there is no browser, or false. */
  missing = process.env.CHROMIUM ? false : 'no Chromium in PATH';
  #grafana;
  #browser = null;

  constructor(grafana) {
    this.#grafana = grafana;
  }

  async close() {
    await this.#browser?.close();
  }

  /** Opens a dashboard and returns its panels' titles and what went wrong in them. */
  async look(json, span, { theme, width }, picture) {
    this.#browser ??= await chromium.launch({
      executablePath: process.env.CHROMIUM,
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
    // Grafana draws only what is in sight: everything is.
    const height = 160 + 38 * Math.max(...json.panels.map((p) => p.gridPos.y + p.gridPos.h));
    const context = await this.#browser.newContext({ viewport: { width, height } });
    try {
      return await this.#look(context, json, span, theme, picture);
    } finally {
      await context.close();
    }
  }

  async #look(context, json, span, theme, picture) {
    const { url, headers } = this.#grafana;
    await context.route('**/*', (route) => {
      // The token is for this Grafana only.
      if (!route.request().url().startsWith(url)) return route.abort();
      return route.continue({ headers: { ...route.request().headers(), ...headers } });
    });
    const page = await context.newPage();
    const errors = [];
    page.on('pageerror', (e) => errors.push(`in the page: ${e.message}`));
    page.on('response', async (r) => {
      if (r.url().includes('/api/ds/query') && !r.ok()) errors.push(`query: status ${r.status()}`);
    });
    const form = new URLSearchParams({ theme, from: String(span.from), to: String(span.to), orgId: '1' });
    for (const [name, value] of Object.entries(span.values)) form.append(`var-${name}`, value);
    await page.goto(`${url}/d/${this.#grafana.uidOf(json)}?${form}&kiosk`, { timeout: 120_000 });
    const panels = page.locator(PANEL);
    const want = panelsOf(json).length;
    await page
      .waitForFunction(([selector, n]) => document.querySelectorAll(selector).length >= n, [PANEL, want], { timeout: 60_000 })
      .catch(() => {});
    // While anything is loaded, marks on the time axis too, the button says Cancel.
    await page
      .locator('[data-testid="data-testid RefreshPicker run button"]', { hasText: 'Refresh' })
      .waitFor({ timeout: 60_000 })
      .catch(() => {});
    await page.waitForLoadState('networkidle');
    const titles = [];
    for (const panel of await panels.all()) {
      const title = (await panel.getAttribute('data-testid')).replace('data-testid Panel header ', '');
      titles.push(title);
      const corner = panel.locator('[data-testid="data-testid Panel status error"]');
      if (await corner.count()) errors.push(`${title}: an error corner: ${await corner.first().getAttribute('aria-label')}`);
      if (/^(No data|Data (is missing|does not have).*)$/m.test(await panel.innerText())) errors.push(`${title}: "No data" without a reason`);
    }
    if (picture) await page.screenshot({ path: picture });
    const link = panels.locator('a[href*="/d/"]').first();
    if (await link.count()) errors.push(...(await follow(page, link)));
    return { titles, errors };
  }
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
