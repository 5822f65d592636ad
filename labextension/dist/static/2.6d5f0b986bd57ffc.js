"use strict";(self.rspackChunkshardnb=self.rspackChunkshardnb||[]).push([[2],{29(r,a,n){var e=n(30),t=n.n(e),d=n(31),s=n.n(d),i=n(32),o=n(33),p=s()(t());p.i(i.A),p.i(o.A),p.push([r.id,`
`,""]),n.d(a,{},{A:p})},33(r,a,n){var e=n(30),t=n.n(e),d=n(31),s=(n.n(d))()(t());s.push([r.id,`/* What JupyterLab adds: badges and types in editors, and the panel. */

.shardnb-marks {
  margin-left: 24px;
  white-space: nowrap;
}

.shardnb-mark {
  background: #dcdcdc;
  border: 0;
  border-radius: 3px;
  color: #222;
  cursor: pointer;
  font-family: var(--jp-ui-font-family, system-ui, sans-serif);
  font-size: 12px;
  line-height: 16px;
  margin-right: 6px;
  padding: 0 7px;
}

.shardnb-mark:hover,
.shardnb-mark:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #1976d2);
}

.shardnb-type {
  color: var(--jp-ui-font-color2, #666);
  font-size: 0.92em;
  opacity: 0.9;
}

/* Not compiled: a preview of an edited line. */
.shardnb-type[data-state] {
  border-bottom: 1px dashed currentcolor;
  font-style: italic;
}

.shardnb-type[data-state][data-changed] {
  color: var(--jp-brand-color1, #1976d2);
}

.shardnb-type[data-state='pending'],
.shardnb-sign[data-kind='pending'] {
  opacity: 0.45;
}

.shardnb-sign {
  /* The editor is as wide as its longest line: this one wraps instead. */
  contain: inline-size;
  border-left: 3px solid var(--jp-border-color1, #bbb);
  color: var(--jp-ui-font-color1, #333);
  font-family: var(--jp-ui-font-family, system-ui, sans-serif);
  font-size: 12px;
  line-height: 16px;
  margin: 2px 4px;
  overflow-wrap: anywhere;
  padding: 0 8px;
  white-space: normal;
}

.shardnb-sign[data-kind='hint'] {
  border-color: var(--jp-warn-color1, #b26a00);
}

.shardnb-panel {
  background: var(--jp-layout-color0, Canvas);
  overflow: auto;
  padding: 0 12px;
}

/* Of a widget's output, what was kept is shown until the live one is there. */
.shardnb-kept:has(.shardnb-alive .shardnb-widget) > .shardnb-still,
.shardnb-kept:not(:has(.shardnb-alive .shardnb-widget)) > .shardnb-alive {
  display: none;
}
`,""]),n.d(a,{},{A:s})},32(r,a,n){var e=n(30),t=n.n(e),d=n(31),s=(n.n(d))()(t());s.push([r.id,`/* The live view of a report. Colours lean on the text's own, so that any theme is served. */

.shardnb-report {
  --shardnb-text: var(--jp-content-font-color1, inherit);
  --shardnb-faint: color-mix(in srgb, currentColor 68%, transparent);
  --shardnb-edge: color-mix(in srgb, currentColor 18%, transparent);
  --shardnb-soft: color-mix(in srgb, currentColor 6%, transparent);
  --shardnb-warm: color-mix(in srgb, #e0a030 24%, transparent);
  --shardnb-focus: var(--jp-brand-color1, #1976d2);
  --shardnb-mono: var(--jp-code-font-family, ui-monospace, 'DejaVu Sans Mono', monospace);

  box-sizing: border-box;
  color: var(--shardnb-text);
  container-type: inline-size;
  font: 14px/1.45 var(--jp-ui-font-family, system-ui, sans-serif);
  max-width: 1200px;
  overflow-wrap: anywhere;
  padding: 8px 4px;
}

.shardnb-report *,
.shardnb-report *::before {
  box-sizing: border-box;
}

.shardnb-report [hidden] {
  display: none;
}

.shardnb-report p {
  margin: 4px 0;
}

.shardnb-mono,
.shardnb-text,
.shardnb-raw {
  background: none;
  color: inherit;
  font-family: var(--shardnb-mono);
  font-size: 13px;
  padding: 0;
}

.shardnb-faint {
  color: var(--shardnb-faint);
}

.shardnb-heading {
  font-weight: 600;
  margin: 0 0 6px;
}

.shardnb-error {
  border-left: 3px solid #d04040;
  padding: 4px 10px;
}

.shardnb-header {
  display: flex;
  flex-wrap: wrap;
  font-size: 13px;
  gap: 2px 18px;
}

.shardnb-header span {
  color: var(--shardnb-faint);
}

.shardnb-main {
  display: grid;
  border: 1px solid var(--shardnb-edge);
  border-radius: 4px;
  gap: 12px 24px;
  grid-template-columns: minmax(0, 1fr) 320px;
  margin-top: 10px;
  padding: 10px 12px;
}

/* The code */

.shardnb-code {
  border: 1px solid var(--shardnb-edge);
  border-radius: 4px;
  padding: 4px 0;
}

.shardnb-code > .shardnb-faint {
  padding: 4px 12px 0;
}

.shardnb-report .shardnb-lines {
  list-style: none;
  margin: 0;
  padding: 0;
}

.shardnb-line {
  align-items: baseline;
  border-left: 3px solid transparent;
  contain-intrinsic-size: auto 21px;
  content-visibility: auto;
  display: flex;
  gap: 0 14px;
  padding: 1px 10px 1px 4px;
}

.shardnb-line[data-marked] {
  background: var(--shardnb-warm);
  border-left-color: #e0a030;
}

.shardnb-number {
  color: var(--shardnb-faint);
  flex: none;
  font-family: var(--shardnb-mono);
  font-size: 12px;
  min-width: 3ch;
  text-align: right;
  user-select: none;
}

.shardnb-text {
  flex: 1 1 0;
  white-space: pre-wrap;
}

.shardnb-gap,
.shardnb-line.shardnb-faint {
  padding-left: calc(3ch + 14px);
}

.shardnb-badges {
  align-items: flex-start;
  display: flex;
  flex: 0 0 64%;
  flex-direction: column;
  gap: 2px;
}

.shardnb-badges:empty {
  display: none;
}

.shardnb-report button,
.shardnb-report select {
  background: transparent;
  border: 1px solid var(--shardnb-edge);
  border-radius: 4px;
  color: inherit;
  cursor: pointer;
  font: inherit;
  font-size: 13px;
  padding: 1px 8px;
}

.shardnb-report select option {
  background: var(--jp-layout-color1, Canvas);
  color: var(--jp-ui-font-color1, CanvasText);
}

.shardnb-report .shardnb-badge {
  background: var(--shardnb-soft);
  padding: 0 3px 0 8px;
  text-align: left;
}

.shardnb-report .shardnb-badge,
.shardnb-report .shardnb-badge .shardnb-mono {
  font-size: 12px;
}

.shardnb-report button:hover {
  border-color: currentColor;
}

.shardnb-report .shardnb-pick {
  border: 0;
  font-size: inherit;
  font-weight: bold;
  padding: 0;
}

.shardnb-report .shardnb-pick.shardnb-number {
  color: var(--shardnb-faint);
  font-family: var(--shardnb-mono);
  font-size: 12px;
  font-weight: inherit;
}

.shardnb-report .shardnb-pick:hover,
.shardnb-report .shardnb-toggle[aria-pressed='true'] {
  text-decoration: underline;
}

.shardnb-report :is(button, select, input, summary, canvas, [tabindex]):focus-visible {
  outline: 2px solid var(--shardnb-focus);
  outline-offset: 1px;
}

.shardnb-chip {
  background: #dcdcdc;
  border-radius: 3px;
  color: #222;
  display: inline-block;
  font-size: 12px;
  line-height: 18px;
  padding: 0 6px;
}

/* The first screen */

.shardnb-report .shardnb-open {
  font-size: 12px;
  margin-left: auto;
}

.shardnb-verdict {
  font-size: 15px;
  font-weight: 600;
  margin: 2px 0 4px;
}

.shardnb-report .shardnb-points {
  margin: 5px 0;
  padding: 0 0 0 22px;
}

.shardnb-points > li {
  margin: 0 0 4px;
  padding: 0;
}

.shardnb-points > [data-out],
.shardnb-card[data-out],
.shardnb-line[data-out] {
  opacity: 0.45;
}

.shardnb-point {
  align-items: baseline;
  display: flex;
  gap: 4px 14px;
  justify-content: space-between;
}

.shardnb-point > :first-child {
  flex: 1 1 0;
}

.shardnb-report .shardnb-pointed {
  border: 0;
  font-size: 14px;
  font-weight: 600;
  padding: 0;
  text-align: left;
}

.shardnb-report .shardnb-pointed:hover {
  text-decoration: underline;
}

.shardnb-point .shardnb-chip {
  flex: none;
  white-space: nowrap;
}

/* What is sent */

.shardnb-sends {
  margin: 8px 0;
}

.shardnb-sends .shardnb-row {
  align-items: baseline;
  border: 0;
  border-bottom: 1px solid var(--shardnb-edge);
  border-radius: 0;
  display: grid;
  gap: 2px 14px;
  grid-template-columns: minmax(0, 1.1fr) minmax(0, 2.4fr) 48px 84px minmax(0, 1.6fr);
  padding: 2px 6px;
  text-align: left;
  width: 100%;
}

.shardnb-timed .shardnb-row {
  grid-template-columns: minmax(0, 1.1fr) minmax(0, 2.2fr) 44px 84px 92px minmax(0, 1.5fr);
}

.shardnb-timed .shardnb-row > :nth-child(5) {
  text-align: right;
}

.shardnb-report .shardnb-sort {
  border: 0;
  color: inherit;
  padding: 0;
}

.shardnb-sort[aria-pressed='true'] {
  text-decoration: underline;
}

.shardnb-sends .shardnb-row > :nth-child(3),
.shardnb-sends .shardnb-row > :nth-child(4) {
  text-align: right;
}

.shardnb-sends .shardnb-head {
  color: var(--shardnb-faint);
  font-size: 13px;
}

.shardnb-sends .shardnb-head b {
  color: var(--shardnb-text);
}

.shardnb-rows > .shardnb-row:hover {
  background: var(--shardnb-soft);
}

.shardnb-rows > .shardnb-row[aria-expanded='true'] {
  background: var(--shardnb-warm);
}

.shardnb-report .shardnb-more {
  border: 0;
  color: var(--shardnb-faint);
  padding: 2px 6px;
}

.shardnb-legend {
  display: flex;
  flex-wrap: wrap;
  gap: 2px 8px;
  margin-top: 4px;
}

.shardnb-legend .shardnb-chip {
  font-size: 11px;
  line-height: 16px;
}

.shardnb-filtered:empty {
  display: none;
}

.shardnb-filtered {
  margin-top: 4px;
}

/* What is folded */

.shardnb-report > details,
.shardnb-report > details > details,
.shardnb-fact {
  margin: 1px 0;
}

.shardnb-report details > summary b {
  color: var(--shardnb-text);
}

.shardnb-report .shardnb-notes {
  margin: 2px 0;
  padding-left: 20px;
}

.shardnb-about {
  font-size: 12px;
  margin-top: 4px;
}

.shardnb-held {
  margin-right: 14px;
}

/* Grids */

.shardnb-plot {
  position: relative;
}

.shardnb-edges {
  color: var(--shardnb-faint);
  display: flex;
  flex-wrap: wrap;
  font-size: 12px;
  gap: 0 8px;
  line-height: 16px;
  margin-bottom: 2px;
}

.shardnb-canvas {
  border-radius: 2px;
  cursor: crosshair;
  display: block;
}

.shardnb-caption {
  font-size: 13px;
  margin-top: 6px;
}

/* Dark in every theme: a note on top of what it speaks of. */
.shardnb-readout {
  background: #26292e;
  border: 1px solid #5a5f66;
  border-radius: 4px;
  color: #f2f2f2;
  font-size: 13px;
  left: 0;
  margin-top: 4px;
  max-width: 320px;
  padding: 3px 8px;
  pointer-events: none;
  position: absolute;
  top: 100%;
  z-index: 2;
}

.shardnb-readout:empty {
  display: none;
}

.shardnb-cards {
  display: flex;
  flex-wrap: wrap;
  gap: 14px;
}

.shardnb-cards > .shardnb-mesh {
  width: 222px;
}

.shardnb-card {
  border-left: 2px solid var(--shardnb-edge);
  contain-intrinsic-size: auto 250px auto 220px;
  content-visibility: auto;
  /* Where there is room, what runs down and what runs across stand on one line. */
  flex: 1 1 222px;
  max-width: 290px;
  padding-left: 10px;
}

.shardnb-card .shardnb-plot {
  margin-top: 2px;
}

.shardnb-card .shardnb-faint {
  font-size: 13px;
}

.shardnb-arrays {
  margin-top: 14px;
}

.shardnb-stepper {
  align-items: center;
  display: flex;
  flex-wrap: wrap;
  gap: 4px 8px;
  margin-bottom: 8px;
}

.shardnb-stepper .shardnb-caption {
  flex: 1 0 100%;
  margin: 0;
}

.shardnb-slider {
  accent-color: #c07f10;
  flex: 1 1 0;
  max-width: 420px;
}

.shardnb-main.shardnb-spread {
  border: 0;
  grid-template-columns: minmax(0, 1fr) 320px;
  margin: 0;
  padding: 0;
}

.shardnb-values {
  align-content: start;
  display: grid;
}

.shardnb-report .shardnb-value {
  align-items: baseline;
  border: 0;
  border-left: 3px solid transparent;
  border-radius: 0;
  display: grid;
  gap: 10px;
  grid-template-columns: minmax(0, 1fr) minmax(0, 1.4fr) minmax(0, 0.7fr);
  padding: 2px 8px;
  text-align: left;
}

.shardnb-report .shardnb-value[hidden] {
  display: none;
}

.shardnb-report .shardnb-value[data-marked] {
  background: var(--shardnb-warm);
  border-left-color: #e0a030;
}

.shardnb-report .shardnb-value[aria-pressed='true'] {
  outline: 1px solid var(--shardnb-edge);
  outline-offset: -1px;
}

/* One collective at length */

.shardnb-detail {
  min-width: 0;
}

.shardnb-title .shardnb-mono {
  font-weight: 600;
}

.shardnb-report .shardnb-chain {
  border-left: 2px solid var(--shardnb-edge);
  list-style: none;
  margin: 6px 0;
  padding: 0;
}

.shardnb-chain li {
  padding: 1px 0 1px 16px;
  position: relative;
}

.shardnb-chain li::before {
  background: currentColor;
  border-radius: 50%;
  content: '';
  height: 6px;
  left: -4px;
  opacity: 0.6;
  position: absolute;
  top: 9px;
  width: 6px;
}

.shardnb-fix {
  border-left: 3px solid #40a060;
  margin: 2px 0;
  padding: 0 8px;
}

.shardnb-report .shardnb-copy {
  font-size: 12px;
  padding: 0 6px;
}

.shardnb-report .shardnb-calls {
  list-style: none;
  margin: 2px 0;
  padding-left: 14px;
}

.shardnb-report summary {
  color: var(--shardnb-faint);
  cursor: pointer;
}

.shardnb-raw {
  background: var(--shardnb-soft);
  font-size: 12px;
  margin: 4px 0;
  padding: 6px 8px;
  white-space: pre-wrap;
}

/* A collective that is played */

.shardnb-player {
  border-left: 2px solid var(--shardnb-edge);
  margin: 6px 0 10px;
  padding-left: 12px;
}

.shardnb-player .shardnb-faint {
  font-size: 13px;
}

.shardnb-still {
  cursor: default;
  max-width: 100%;
}

.shardnb-bar {
  display: flex;
  height: 8px;
  margin-top: 4px;
  max-width: 420px;
}

.shardnb-part {
  flex: 0 1 0;
}

.shardnb-swatch {
  display: inline-block;
  height: 10px;
  margin-right: 5px;
  width: 10px;
}

.shardnb-arguments {
  background: #8ecae6;
}

.shardnb-outputs {
  background: #ffc75f;
}

.shardnb-temporaries {
  background: repeating-linear-gradient(45deg, #b8b8a0 0 4px, #d8d8c8 4px 7px);
}

/* What is held at the peak: wide where it must be, without widening the page */

.shardnb-peak {
  font-size: 13px;
  margin-top: 8px;
  overflow-x: auto;
}

.shardnb-peak table {
  border-collapse: collapse;
  color: inherit;
  font-size: 13px;
  margin: 4px 0;
}

.shardnb-peak :is(th, td) {
  background: none;
  border: 0;
  border-bottom: 1px solid var(--shardnb-edge);
  padding: 2px 14px 2px 0;
  text-align: left;
  vertical-align: top;
}

.shardnb-peak th {
  color: var(--shardnb-faint);
  font-weight: 400;
}

.shardnb-peak .shardnb-number {
  text-align: right;
  white-space: nowrap;
}

/* One run of the selected devices */

.shardnb-timeline .shardnb-picks {
  display: flex;
  flex-wrap: wrap;
  gap: 2px;
  margin: 4px 0;
}

.shardnb-timeline .shardnb-device {
  align-items: center;
  display: grid;
  gap: 8px;
  grid-template-columns: 120px minmax(0, 1fr);
}

.shardnb-timeline .shardnb-here {
  background: var(--shardnb-soft);
}

.shardnb-timeline .shardnb-device > span {
  font-size: 12px;
  overflow-wrap: anywhere;
}

.shardnb-timeline svg {
  background: var(--shardnb-soft);
  display: block;
  height: 18px;
  margin: 1px 0;
  width: 100%;
}

.shardnb-timeline .shardnb-span {
  cursor: pointer;
  stroke-width: 1px;
  vector-effect: non-scaling-stroke;
}

.shardnb-timeline .shardnb-other {
  opacity: 0.35;
}

.shardnb-timeline path.shardnb-computing {
  fill: var(--shardnb-faint);
}

.shardnb-timeline .shardnb-swatch.shardnb-computing {
  background: var(--shardnb-faint);
}

/* Narrow places */

@container (max-width: 760px) {
  .shardnb-main,
  .shardnb-main.shardnb-spread {
    grid-template-columns: minmax(0, 1fr);
  }

  .shardnb-sends .shardnb-row {
    gap: 0 10px;
    grid-template-columns: minmax(0, 1fr) 56px 136px;
  }

  .shardnb-sends .shardnb-row > :nth-child(1) {
    order: 1;
  }

  .shardnb-sends .shardnb-row > :nth-child(3) {
    order: 2;
  }

  .shardnb-sends .shardnb-row > :nth-child(4) {
    order: 3;
  }

  .shardnb-sends .shardnb-row > :nth-child(2) {
    align-self: start;
    grid-column: 1 / 2;
    order: 4;
  }

  .shardnb-sends .shardnb-row > :nth-child(5) {
    grid-column: 2 / 4;
    order: 5;
    text-align: right;
  }

  .shardnb-sends .shardnb-head > :is(:nth-child(2), :nth-child(5)) {
    display: none;
  }

  .shardnb-timed .shardnb-row {
    grid-template-columns: minmax(0, 1fr) 40px 76px 92px;
  }

  .shardnb-timed .shardnb-row > :nth-child(5) {
    display: block;
    grid-column: auto;
    order: 3;
  }

  .shardnb-timed .shardnb-row > :nth-child(6) {
    grid-column: 2 / 5;
    order: 5;
    text-align: right;
  }

  .shardnb-timed .shardnb-head > :nth-child(6) {
    display: none;
  }

  /* The card of the chosen array stays in sight above the list. */
  .shardnb-spread > :last-child {
    order: -1;
  }

  .shardnb-line {
    flex-wrap: wrap;
  }

  .shardnb-text,
  .shardnb-badges {
    flex-basis: calc(100% - 60px);
  }
}

@container (max-width: 520px) {
  .shardnb-point {
    flex-wrap: wrap;
  }

  .shardnb-point > :first-child {
    flex: 1 0 100%;
  }
}
`,""]),n.d(a,{},{A:s})},31(r){r.exports=function(r){var a=[];return a.toString=function(){return this.map(function(a){var n="",e=void 0!==a[5];return a[4]&&(n+="@supports (".concat(a[4],") {")),a[2]&&(n+="@media ".concat(a[2]," {")),e&&(n+="@layer".concat(a[5].length>0?" ".concat(a[5]):""," {")),n+=r(a),e&&(n+="}"),a[2]&&(n+="}"),a[4]&&(n+="}"),n}).join("")},a.i=function(r,n,e,t,d){"string"==typeof r&&(r=[[null,r,void 0]]);var s={};if(e)for(var i=0;i<this.length;i++){var o=this[i][0];null!=o&&(s[o]=!0)}for(var p=0;p<r.length;p++){var h=[].concat(r[p]);e&&s[h[0]]||(void 0!==d&&(void 0===h[5]||(h[1]="@layer".concat(h[5].length>0?" ".concat(h[5]):""," {").concat(h[1],"}")),h[5]=d),n&&(h[2]&&(h[1]="@media ".concat(h[2]," {").concat(h[1],"}")),h[2]=n),t&&(h[4]?(h[1]="@supports (".concat(h[4],") {").concat(h[1],"}"),h[4]=t):h[4]="".concat(t)),a.push(h))}},a}},30(r){r.exports=function(r){return r[1]}},23(r){var a=[];function n(r){for(var n=-1,e=0;e<a.length;e++)if(a[e].identifier===r){n=e;break}return n}function e(r,e){for(var t={},d=[],s=0;s<r.length;s++){var i=r[s],o=e.base?i[0]+e.base:i[0],p=t[o]||0,h="".concat(o," ").concat(p);t[o]=p+1;var l=n(h),b={css:i[1],media:i[2],sourceMap:i[3],supports:i[4],layer:i[5]};if(-1!==l)a[l].references++,a[l].updater(b);else{var c=function(r,a){var n=a.domAPI(a);return n.update(r),function(a){a?(a.css!==r.css||a.media!==r.media||a.sourceMap!==r.sourceMap||a.supports!==r.supports||a.layer!==r.layer)&&n.update(r=a):n.remove()}}(b,e);e.byIndex=s,a.splice(s,0,{identifier:h,updater:c,references:1})}d.push(h)}return d}r.exports=function(r,t){var d=e(r=r||[],t=t||{});return function(r){r=r||[];for(var s=0;s<d.length;s++){var i=n(d[s]);a[i].references--}for(var o=e(r,t),p=0;p<d.length;p++){var h=n(d[p]);0===a[h].references&&(a[h].updater(),a.splice(h,1))}d=o}}},25(r){var a={};r.exports=function(r,n){var e=function(r){if(void 0===a[r]){var n=document.querySelector(r);if(window.HTMLIFrameElement&&n instanceof window.HTMLIFrameElement)try{n=n.contentDocument.head}catch(r){n=null}a[r]=n}return a[r]}(r);if(!e)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");e.appendChild(n)}},27(r){r.exports=function(r){var a=document.createElement("style");return r.setAttributes(a,r.attributes),r.insert(a,r.options),a}},26(r,a,n){r.exports=function(r){var a=n.nc;a&&r.setAttribute("nonce",a)}},24(r){r.exports=function(r){if("u"<typeof document)return{update:function(){},remove:function(){}};var a=r.insertStyleElement(r);return{update:function(n){var e,t,d;e="",n.supports&&(e+="@supports (".concat(n.supports,") {")),n.media&&(e+="@media ".concat(n.media," {")),(t=void 0!==n.layer)&&(e+="@layer".concat(n.layer.length>0?" ".concat(n.layer):""," {")),e+=n.css,t&&(e+="}"),n.media&&(e+="}"),n.supports&&(e+="}"),(d=n.sourceMap)&&"u">typeof btoa&&(e+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(d))))," */")),r.styleTagTransform(e,a,r.options)},remove:function(){var r;null===(r=a).parentNode||r.parentNode.removeChild(r)}}}},28(r){r.exports=function(r,a){if(a.styleSheet)a.styleSheet.cssText=r;else{for(;a.firstChild;)a.removeChild(a.firstChild);a.appendChild(document.createTextNode(r))}}},22(r,a,n){var e=n(23),t=n.n(e),d=n(24),s=n.n(d),i=n(25),o=n.n(i),p=n(26),h=n.n(p),l=n(27),b=n.n(l),c=n(28),x=n.n(c),f=n(29),g={};g.styleTagTransform=x(),g.setAttributes=h(),g.insert=o().bind(null,"head"),g.domAPI=s(),g.insertStyleElement=b(),t()(f.A,g),f.A&&f.A.locals&&f.A.locals}}]);