// The same view as plain modules: shardnb/static/report.* shows a report, widgets.* are the widgets.
import { build } from 'esbuild';

const outdir = process.argv[2] ?? '../shardnb/static';
await build({
  entryPoints: { report: 'src/view/index.ts', widgets: 'src/widget/index.ts' },
  bundle: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: '// Built from labextension/src by `jlpm build`. Do not edit.' },
  outdir,
});
await build({
  entryPoints: { report: 'style/report.css', widgets: 'style/widget.css' },
  bundle: true,
  outdir,
  target: 'es2022',
  charset: 'utf8',
});
