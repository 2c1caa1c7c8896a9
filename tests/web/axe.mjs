// What axe-core finds wrong with a page: https://github.com/dequelabs/axe-core.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The serious and critical findings, a line each. The page's policy forbids foreign scripts, so axe comes through the debugger. */
export async function findings(page) {
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter((v) => ['serious', 'critical'].includes(v.impact))
    .flatMap((v) => v.nodes.map((n) => `${v.id} (${v.impact}): ${n.target.join(' ')}: ${n.failureSummary.replaceAll(/\s+/g, ' ')}`));
}
