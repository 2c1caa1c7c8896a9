// Bundles src into the folder that is named on the command line.
import { build } from 'esbuild';

await build({
  entryPoints: ['src/page.ts', 'src/page.css'],
  outdir: process.argv[2],
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'eof',
  logLevel: 'warning',
});
