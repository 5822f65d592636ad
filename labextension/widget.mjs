// The widgets' module, shardnb/static/widgets.*, as anywidget loads it; it holds the same view.
import { build } from 'esbuild';

const outdir = process.argv[2] ?? '../shardnb/static';
await build({
  entryPoints: { widgets: 'src/widget/index.ts' },
  bundle: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: '// Built from labextension/src by `jlpm build`. Do not edit.' },
  outdir,
});
await build({
  entryPoints: { widgets: 'style/widget.css' },
  bundle: true,
  outdir,
  target: 'es2022',
  charset: 'utf8',
});
