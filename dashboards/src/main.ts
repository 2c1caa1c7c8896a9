// Writes each dashboard to ../<name>.json: the same bytes from the same code.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboard } from './frame';
import { agentPage } from './agent';
import { galera } from './galera';
import { liveRun } from './live-run';
import { mysql } from './mysql';
import { runsPage } from './runs';

const pages = [liveRun, runsPage, galera, mysql, agentPage];

for (const page of pages) {
  const json = JSON.stringify(dashboard(page), null, 2);
  writeFileSync(join(__dirname, '..', `${page.name}.json`), `${json}\n`);
}
