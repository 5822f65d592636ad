// The same view as one plain module, for widgets: shardnb/static/report.js and report.css.
import { build } from 'esbuild';

const outdir = process.argv[2] ?? '../shardnb/static';
await build({
  entryPoints: { report: 'src/view/index.ts' },
  bundle: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: '// Built from labextension/src/view by `jlpm build`. Do not edit.' },
  outdir,
});
await build({ entryPoints: ['style/report.css'], outdir, target: 'es2022', charset: 'utf8' });
