// The colours that the dashboards share with the live page and the reports. Grafana gives lines without a fixed colour
// those of its own theme.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The compiled files are in out/. */
const sheet = readFileSync(join(__dirname, '../../agent/show/document/palette.css'), 'utf8');

/** The first value of each property: the light theme's, in the order of the sheet. */
const colors = new Map([...sheet.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].reverse().map(([, name, color]) => [name!, color!]));

/** A colour of the palette. */
export function color(name: string): string {
  const found = colors.get(name);
  if (!found) throw new Error(`palette.css has no ${name}`);
  return found;
}

/** The classes of sessions, each with its colour. */
export const sessionClasses: [string, string][] = [...colors]
  .reverse()
  .flatMap(([name, value]) => (name.startsWith('m-sessions_') ? [[name.replace('m-sessions_', ''), value]] : []));
