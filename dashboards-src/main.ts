// Writes each dashboard to <name>.json in the given folder (default:
// dashboards/). The output is deterministic.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentPage } from './agent';
import { aurora } from './aurora';
import { dashboard } from './frame';
import { galera } from './galera';
import { groupPage } from './group';
import { liveRun } from './live-run';
import { mongodb } from './mongodb';
import { mysql } from './mysql';
import { postgresql } from './postgresql';
import { proxy } from './proxy';
import { replicationPage } from './replication';
import { runsPage } from './runs';
import { tidb } from './tidb';

const pages = [liveRun, runsPage, groupPage, mysql, galera, replicationPage, mongodb, postgresql, tidb, aurora, proxy, agentPage];

const folder = process.argv[2] ?? join(__dirname, '../../dashboards');
for (const page of pages) {
  const json = JSON.stringify(dashboard(page), null, 1);
  writeFileSync(join(folder, `${page.name}.json`), `${json}\n`);
}
