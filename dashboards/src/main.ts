// Writes each dashboard to ../<name>.json: the same bytes from the same code.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboard } from './frame';
import { liveRun } from './live-run';

const pages = [liveRun];

for (const page of pages) {
  const json = JSON.stringify(dashboard(page), null, 2);
  writeFileSync(join(__dirname, '..', `${page.name}.json`), `${json}\n`);
}
