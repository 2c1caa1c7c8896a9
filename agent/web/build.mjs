// Bundles src into dist, which the Go binary embeds.
import { copyFile } from 'node:fs/promises';
import { build } from 'esbuild';

await build({
  entryPoints: ['src/page.ts', 'src/page.css'],
  outdir: 'dist',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'eof',
  logLevel: 'warning',
});
await copyFile('src/index.html', 'dist/index.html');
