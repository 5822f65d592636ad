// Built from labextension/src by `jlpm build`. Do not edit.

// src/view/dom.ts
var OWN_KEYS = { "data-lm-suppress-shortcuts": true };
function h(tag, props = null, ...children) {
  const element = document.createElement(tag);
  for (const [name, value2] of Object.entries(props ?? {})) {
    set(element, name, value2);
  }
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
}
function set(element, name, value2) {
  if (name === "on") {
    for (const [type, handler] of Object.entries(value2)) {
      element.addEventListener(type, handler);
    }
  } else if (name === "class") {
    element.className = classes(String(value2));
  } else if (value2 !== null && value2 !== void 0 && value2 !== false) {
    element.setAttribute(name, value2 === true ? "" : String(value2));
  }
}
function classes(names) {
  return names.split(" ").filter(Boolean).map((name) => `shardnb-${name}`).join(" ");
}
function heading(title) {
  return h("div", { class: "heading", role: "heading", "aria-level": 4 }, title);
}
function mono(text) {
  return h("code", { class: "mono" }, text);
}
function whenSeen(element, call) {
  if (typeof IntersectionObserver === "undefined") {
    call();
    return;
  }
  const observer = new IntersectionObserver((seen) => {
    if (seen.some((entry2) => entry2.isIntersecting)) {
      observer.disconnect();
      call();
    }
  });
  observer.observe(element);
}

// src/view/units.ts
var UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
var HIDDEN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
var NAMED = { "\n": "\\n", "\r": "\\r", "	": "\\t", " ": " " };
function size(bytes) {
  let value2 = bytes;
  let unit = 0;
  while (unit < UNITS.length - 1 && Number(digits(value2, unit)) >= 1024) {
    value2 /= 1024;
    unit += 1;
  }
  return `${digits(value2, unit)} ${UNITS[unit]}`;
}
function digits(value2, unit) {
  const whole = unit === 0 || value2 >= 99.95 || value2 >= 10 && Number.isInteger(value2);
  return fixed(value2, whole ? 0 : 1);
}
function fixed(value2, decimals) {
  const scale = 10 ** decimals;
  const floor = Math.floor(value2 * scale);
  const tie = value2 * scale - floor === 0.5;
  return tie ? ((floor + floor % 2) / scale).toFixed(decimals) : value2.toFixed(decimals);
}
function change(bytes) {
  return (bytes < 0 ? "-" : "+") + size(Math.abs(bytes));
}
function seconds(value2) {
  if (value2 >= 999.5) {
    return `${grouped(Math.round(value2))} s`;
  }
  if (value2 >= 0.0995) {
    return `${three(value2)} s`;
  }
  return value2 >= 9995e-7 ? `${three(value2 * 1e3)} ms` : `${three(value2 * 1e6)} us`;
}
function three(value2) {
  const decimals = value2 < 0.9995 ? 3 : value2 < 9.995 ? 2 : value2 < 99.95 ? 1 : 0;
  return fixed(value2, decimals);
}
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}
function count(number, noun) {
  return `${grouped(number)} ${number === 1 ? noun : plural(noun)}`;
}
function plural(noun) {
  if (noun.endsWith("y")) {
    return `${noun.slice(0, -1)}ies`;
  }
  return /(s|x|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`;
}
function dims(shape) {
  return shape.join(" x ") || "scalar";
}
function numbers(values, limit2 = 8) {
  const run = values.length > 2 && values.every((value2, i) => value2 === values[0] + i);
  if (run) {
    return `${values[0]}-${values[values.length - 1]}`;
  }
  if (values.length <= limit2) {
    return values.join(" ");
  }
  const last = values[values.length - 1];
  return `${values.slice(0, 3).join(" ")} ... ${last} (${values.length})`;
}
function clean(text) {
  HIDDEN.lastIndex = 0;
  return HIDDEN.test(text) ? untabbed(text).replace(HIDDEN, escaped) : text;
}
function escaped(char) {
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  const long = code > 65535 ? `\\U${hex.padStart(8, "0")}` : `\\u${hex.padStart(4, "0")}`;
  return NAMED[char] ?? (code < 256 ? `\\x${hex.padStart(2, "0")}` : long);
}
function untabbed(text) {
  let column = 0;
  let result = "";
  for (const char of text) {
    const piece = char === "	" ? " ".repeat(4 - column % 4) : char;
    column = char === "\n" || char === "\r" ? 0 : column + piece.length;
    result += piece;
  }
  return result;
}

// src/view/spec.ts
function specText(spec, unreduced = []) {
  if (spec === null) {
    return "no mesh axes";
  }
  const entries = spec.map(entryText);
  while (entries[entries.length - 1] === "None") {
    entries.pop();
  }
  if (unreduced.length) {
    entries.push(`unreduced={${unreduced.map(quoted).join(", ")}}`);
  }
  return `P(${entries.join(", ")})`;
}
function entryText(axes) {
  if (!axes.length) {
    return "None";
  }
  return axes.length === 1 ? quoted(axes[0]) : `(${axes.map(quoted).join(", ")})`;
}
function quoted(name) {
  const quote = name.includes("'") && !name.includes('"') ? '"' : "'";
  return quote + name.replace(/\\/g, "\\\\").replaceAll(quote, `\\${quote}`) + quote;
}
function typeText(value2) {
  if (value2.spec === null) {
    return `${value2.dtype}[${value2.shape.join(", ")}] (in no mesh axes)`;
  }
  const { spec } = value2;
  const dims3 = value2.shape.map((size2, dim) => dimText(size2, spec[dim]));
  const pending = value2.unreduced.length ? `{U:${value2.unreduced.join(",")}}` : "";
  return `${value2.dtype}[${dims3.join(", ")}]${pending}`;
}
function dimText(size2, axes) {
  if (!axes.length) {
    return String(size2);
  }
  return axes.length === 1 ? `${size2}@${axes[0]}` : `${size2}@(${axes.join(",")})`;
}
function gridOf(value2, mesh2) {
  if (value2.spec === null) {
    return value2.grid ?? value2.shape.map(() => 1);
  }
  return value2.spec.map((axes) => axes.reduce((product2, axis) => product2 * sizeOf(axis, mesh2), 1));
}
function blocksOf(value2, mesh2) {
  const positions = mesh2.device_ids.map((_, position) => position);
  const { spec } = value2;
  if (spec === null) {
    return value2.blocks ?? positions.map(() => 0);
  }
  const digits2 = spec.flat().map((axis) => digitOf(axis, mesh2));
  return positions.map(
    (position) => digits2.reduce((block, { size: size2, after }) => {
      return block * size2 + Math.floor(position / after) % size2;
    }, 0)
  );
}
function digitOf(name, mesh2) {
  const [whole, before, size2] = partOf(name) ?? [name, 1, meshAxis(name, mesh2).size];
  const axis = meshAxis(whole, mesh2);
  const behind = mesh2.axes.slice(mesh2.axes.indexOf(axis) + 1);
  const minor = behind.reduce((product2, one) => product2 * one.size, 1);
  return { size: size2, after: minor * Math.max(1, Math.floor(axis.size / (before * size2))) };
}
function coordinates(position, mesh2) {
  const result = [];
  let rest2 = position;
  for (const axis of [...mesh2.axes].reverse()) {
    result.unshift(rest2 % axis.size);
    rest2 = Math.floor(rest2 / axis.size);
  }
  return result;
}
function partOf(axis) {
  const found = /^(.*):\((\d+)\)(\d+)$/s.exec(axis);
  return found && [found[1], Number(found[2]), Number(found[3])];
}
function wholeAxis(axis) {
  return partOf(axis)?.[0] ?? axis;
}
function sizeOf(axis, mesh2) {
  return partOf(axis)?.[2] ?? meshAxis(axis, mesh2).size;
}
function meshAxis(name, mesh2) {
  const axis = mesh2.axes.find((one) => one.name === name);
  if (!axis) {
    throw new Error(`this is no report: its mesh has no axis ${name}`);
  }
  return axis;
}

// src/view/words.ts
var MADE = "made by the partitioner";
var UNASKED = "asker unknown";
var REASONS = {
  "partial-sum": "each device holds a partial sum, and these are added up",
  conflict: "two placements disagree, so one side is moved",
  "output-spec": "a stated placement wants the data elsewhere",
  "whole-axis": "the operation needs the whole dimension on one device",
  reshape: "the reshape joins or cuts a dimension that is split",
  uneven: "the sizes do not divide by the devices",
  halo: "devices exchange elements with others along a split dimension",
  unknown: "why it is there is not known"
};
var DERIVED = "JAX calls it in the derivative of what the program calls.";
var ASKED = {
  called: "The program calls it.",
  requested: "A sharding that you wrote asks for it.",
  inferred: "Asked by nobody.",
  [MADE]: "The partitioner made it; who asked for it is not known.",
  [UNASKED]: "Who asked for it is not known."
};
function asked(collective2) {
  if (collective2.generated === null && !collective2.asked_by) {
    return UNASKED;
  }
  return collective2.asked_by ?? (collective2.generated ? MADE : "called");
}
function askedSentence(collective2) {
  if (asked(collective2) === "called" && collective2.phase === "backward") {
    return DERIVED;
  }
  return ASKED[asked(collective2)] ?? "";
}
function cause(collective2) {
  const flag = collective2.full_remat ? "full rematerialisation" : null;
  return clean([asked(collective2), collective2.reason, flag].filter(Boolean).join(", "));
}
function over(collective2) {
  if (collective2.axes?.length) {
    return clean(`[${collective2.axes.join(", ")}]`);
  }
  return collective2.axes ? "" : `[${grouping(collective2)}]`;
}
function grouping(collective2) {
  const { groups } = collective2;
  if (collective2.kind === "collective-permute") {
    return count(groups.length, "pair");
  }
  const sizes = groups.map((group) => group.length).sort((a, b) => a - b);
  if (!sizes.length) {
    return "no groups";
  }
  const [least, most] = [sizes[0], sizes[sizes.length - 1]];
  return `${count(groups.length, "group")} of ${least === most ? least : `${least} to ${most}`}`;
}
function array(collective2) {
  return clean(`${collective2.dtype}[${collective2.shape.join(", ")}]`);
}
function trips(collective2) {
  if (collective2.trips === null) {
    const least = collective2.least_trips;
    return least ? ` x${grouped(least)} or more` : " x unknown";
  }
  return collective2.trips === 1 ? "" : ` x${grouped(collective2.trips)}`;
}
function total(collective2) {
  return collective2.trips === null ? null : collective2.wire_bytes * collective2.trips;
}
function weight(collective2) {
  return total(collective2) || collective2.wire_bytes;
}
function sends(collectives) {
  if (collectives.length === 1) {
    return `sends ${size(collectives[0].wire_bytes)}${trips(collectives[0])}`;
  }
  const least = unknown(collectives) ? "at least " : "";
  return `sends ${least}${size(sent(collectives))} in all`;
}
function sent(collectives) {
  const least = (one) => one.wire_bytes * one.least_trips;
  return collectives.reduce((sum, one) => sum + (total(one) ?? least(one)), 0);
}
function unknown(collectives) {
  return collectives.filter((collective2) => collective2.trips === null).length;
}
function home(collective2, report) {
  const frames = collective2.frames.filter((frame) => isShown(frame, report));
  return frames.find((frame) => frame.source === 0) ?? frames[0] ?? null;
}
function isShown(place3, report) {
  return place3.source === 0 || Boolean(report.sources[place3.source]?.text);
}
function at(place3, report) {
  if (place3 === null) {
    return "at no known line";
  }
  const source2 = place3.source > 0 ? report.sources[place3.source] : void 0;
  return `at line ${place3.line}${source2 ? ` of ${clean(source2.name)}` : ""}`;
}
function because(collective2) {
  const { why, reason } = collective2;
  if (why) {
    const sentence2 = clean(why.trim());
    return /[.!?)]$/.test(sentence2) ? sentence2 : `${sentence2}.`;
  }
  if (reason !== null) {
    const detail = collective2.detail ? ` (${clean(collective2.detail)})` : "";
    return `${REASONS[reason] ?? clean(reason)}${detail}${moved(collective2)}.`;
  }
  if (asked(collective2) === "called") {
    return ASKED.called.toLowerCase();
  }
  return `why it is there is not known${moved(collective2)}.`;
}
function moved(collective2) {
  const parts = [made(collective2), used(collective2)].filter(Boolean);
  return parts.length ? `: ${parts.join(", ")}` : "";
}
function made(collective2) {
  const { producer, producer_spec: spec } = collective2;
  return producer ? clean(producer) + (spec ? ` lies as ${clean(specText(spec))}` : "") : "";
}
function used(collective2) {
  const { consumer, needed_spec: spec, producer } = collective2;
  if (!consumer || !spec && producer?.startsWith(`result of ${consumer}`)) {
    return "";
  }
  return clean(consumer) + (spec ? ` needs it as ${clean(specText(spec))}` : " uses it");
}
function atLeast(collective2) {
  const least = collective2.least_trips;
  return least ? `at least ${least === 1 ? "once" : `${grouped(least)} times`} ` : "";
}
function further(collective2) {
  const asker = askedSentence(collective2);
  const said = because(collective2).endsWith(asker.toLowerCase()) ? [] : [asker];
  if (collective2.full_remat) {
    said.push("Full rematerialisation: the whole array is gathered, then cut again.");
  }
  if (collective2.trips === null) {
    said.push(`It runs ${atLeast(collective2)}in a loop whose trip count is not known.`);
  }
  if (collective2.within.includes("conditional")) {
    said.push("It stands in a branch: it runs only where that is taken.");
  }
  if (collective2.combined_with.length) {
    const others = count(collective2.combined_with.length, "other collective");
    said.push(`Sent together with ${others}, as one exchange.`);
  }
  said.push(...sending(collective2));
  if (collective2.seconds !== null) {
    said.push(`About ${seconds(collective2.seconds)} for one execution, by a formula.`);
  }
  if (collective2.fixes && !collective2.fixes.length) {
    said.push("No edit that was tried removes it.");
  }
  return said.filter(Boolean);
}
function sending(collective2) {
  const said = [];
  if (collective2.made_as) {
    const made2 = `the compiler changed the partitioner's ${collective2.made_as}`;
    said.push(clean(`Sent as ${collective2.kind}: ${made2}.`));
  }
  if (collective2.algorithm) {
    said.push(clean(`The compiler's way of sending it: ${collective2.algorithm}.`));
  }
  if (collective2.overlap) {
    const { ops, names } = collective2.overlap;
    const listed = names.length ? ` (${names.join(", ")})` : "";
    said.push(
      clean(`Asynchronous: ${count(ops, "operation")} scheduled while it runs${listed}.`)
    );
  }
  return said;
}
function effect(fix) {
  const [before, after] = fix.collectives;
  const sending3 = `sends ${size(fix.wire_bytes[1])}, not ${size(fix.wire_bytes[0])}`;
  const fewer = after === before ? "" : `, not ${grouped(before)}`;
  const left = after ? `${count(after, "collective")}${fewer}, ${sending3}` : "no collective";
  return `${left}, ${change(fix.memory_bytes[1] - fix.memory_bytes[0])} a device; compiled`;
}
function bound(cost) {
  const known = [
    ["compute", cost.compute_seconds],
    ["memory", cost.memory_seconds],
    ["communication", cost.communication_seconds]
  ];
  const parts = known.filter(([, took]) => took).map(([name, took]) => `${seconds(took ?? 0)} ${PARTS[name]}`);
  const left = [
    cost.unpriced ? `; ${count(cost.unpriced, "collective")} without seconds` : "",
    cost.uncounted ? `; ${count(cost.uncounted, "custom call")} not counted` : ""
  ].join("");
  const by = Object.entries(cost.by_axis);
  const axes = by.length > 1 ? ` (${by.map(([axis, took]) => `${axis} ${seconds(took)}`).join(", ")})` : "";
  const on = cost.assumed ? "as if on" : "on";
  const said = `${on} ${cost.hardware}: ${limit(cost, known)}: ${parts.join(", ")}${axes}`;
  return clean(`${said}, by formulas${left}`);
}
function limit(cost, parts) {
  if (cost.unpriced || cost.uncounted || parts.some(([, took]) => took === null)) {
    return "what bounds it is not known";
  }
  const most = parts.reduce((one, other) => (other[1] ?? 0) > (one[1] ?? 0) ? other : one);
  return `${most[0]}-bound`;
}
var PARTS = {
  compute: "to compute at least",
  memory: "for memory at most",
  communication: "to communicate"
};

// src/view/entries.ts
function tell(collectives, report, single = 4, limit2 = 2) {
  if (collectives.length <= single) {
    return { shown: collectives.map((one) => entry([one])), left: [] };
  }
  const groups = gather(collectives, report);
  const order = groups.map((_, i) => i).sort((a, b) => weight2(groups[b]) - weight2(groups[a]));
  const kept = order.slice(0, limit2).sort((a, b) => a - b);
  return {
    shown: kept.map((i) => entry(groups[i])),
    left: order.slice(limit2).flatMap((i) => groups[i])
  };
}
function restText(left) {
  return `and ${count(left.length, "more collective")}, ${size(sent(left))}`;
}
function gather(collectives, report) {
  const groups = /* @__PURE__ */ new Map();
  for (const one of collectives) {
    const place3 = home(one, report);
    const where2 = place3 && [place3.source, place3.line];
    const what = [one.kind, over(one), asked(one), one.reason, one.full_remat];
    const key = JSON.stringify([where2, what]);
    const found = groups.get(key);
    found ? found.push(one) : groups.set(key, [one]);
  }
  return [...groups.values()];
}
function weight2(group) {
  return group.reduce((sum, one) => sum + weight(one), 0);
}
function entry(members2) {
  const [first] = members2;
  const many = members2.length > 1;
  const kind = many ? `${grouped(members2.length)} ${plural(first.kind)}` : first.kind;
  const arrays2 = new Set(members2.map(array));
  return {
    members: members2,
    name: kind + over(first),
    array: arrays2.size === 1 ? array(first) : `of ${grouped(arrays2.size)} shapes`,
    sends: sends(members2),
    cause: cause(first)
  };
}

// src/view/badge.ts
function badge(entry2, store) {
  const first = entry2.members[0];
  return h(
    "button",
    { class: "badge", type: "button", on: leads(first, store) },
    h("code", { class: "mono" }, `${entry2.name} ${entry2.array}`),
    ` ${entry2.sends} `,
    chip(first)
  );
}
function restBadge(left, store) {
  return h("button", { class: "badge", type: "button", on: leads(left[0], store) }, restText(left));
}
function chip(collective2) {
  const asker = collective2.asked_by ?? "other";
  const cause2 = cause(collective2);
  return h("span", { class: "chip", "data-asked": asker, title: cause2 }, cause2);
}
function leads(collective2, store) {
  return {
    click: () => store.set({ chosen: collective2 }),
    pointerenter: () => store.set({ pointed: collective2 }),
    pointerleave: () => store.set({ pointed: null })
  };
}

// src/view/colours.ts
var INK = "#1b1b1b";
var EMPTY = "#c8c8c8";
var HUES = [
  "#8ecae6",
  "#ffc75f",
  "#a8d98a",
  "#f2a0a0",
  "#cdb4f0",
  "#f7b6d9",
  "#b8b8a0",
  "#7fd6c2"
];
var PATTERNS = ["", "dots", "plus", "rings"];
var NOBODY = { ground: EMPTY, pattern: "" };
function tint(rank2, total3, down = 0, across = 0) {
  if (total3 <= HUES.length * PATTERNS.length) {
    const pattern2 = PATTERNS[Math.floor(rank2 / HUES.length)];
    return { ground: HUES[rank2 % HUES.length], pattern: pattern2 };
  }
  const hue = (306 * down).toFixed(1);
  return { ground: `hsl(${hue}, 60%, ${(66 + 24 * across).toFixed(1)}%)`, pattern: "" };
}
function letter(number) {
  let name = "";
  for (let rest2 = number + 1; rest2 > 0; rest2 = Math.floor((rest2 - 1) / 26)) {
    name = String.fromCharCode(65 + (rest2 - 1) % 26) + name;
  }
  return name;
}

// src/view/player.ts
var STEP = 900;
var STILL = 1400;
var SIDE = 34;
var NAME = 74;
var GAP = 4;
var ROOM = 480;
var Player = class {
  constructor(play, one, mesh2) {
    this.play = play;
    this.one = one;
    this.mesh = mesh2;
    this._still = window.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
    const columns = play.frames[0][0].length;
    this._side = Math.max(14, Math.min(SIDE, Math.floor((ROOM - NAME) / columns) - GAP));
    this._width = NAME + columns * (this._side + GAP);
    this._height = play.members.length * (this._side + GAP);
    this._canvas = h("canvas", { class: "canvas still", role: "img" });
    this._said = h("div", { class: "caption", "aria-live": "polite" });
    this._toggle = button("pause", () => this._running ? this.pause() : this.start());
    this._slider = h("input", {
      type: "range",
      ...OWN_KEYS,
      class: "slider",
      min: 0,
      max: this._steps,
      "aria-label": "Step of the exchange",
      on: {
        input: () => {
          this.pause();
          this.go(Number(this._slider.value));
        }
      }
    });
    this.element = h(
      "div",
      { class: "player" },
      h(
        "div",
        { class: "stepper" },
        button("←", () => this._by(-1), "step back"),
        this._toggle,
        button("→", () => this._by(1), "step on"),
        this._slider,
        this._said
      ),
      this._canvas,
      h("p", { class: "faint" }, this._about())
    );
    this._resize();
    this.go(0);
  }
  play;
  one;
  mesh;
  element;
  /** Play from here; from the beginning once the end is reached. */
  start() {
    if (this._at >= this._steps) {
      this.go(0);
    }
    this._running = true;
    this._tell();
    this._toggle.textContent = "pause";
    this._began = performance.now();
    this._frame = requestAnimationFrame((now) => this._tick(now));
  }
  pause() {
    this._running = false;
    this._toggle.textContent = "play";
    cancelAnimationFrame(this._frame);
    this._tell();
    this._draw(0);
  }
  /** Show what devices hold after so many steps. */
  go(step2) {
    this._at = Math.max(0, Math.min(this._steps, step2));
    this._slider.value = String(this._at);
    this._tell();
    this._draw(0);
  }
  dispose() {
    cancelAnimationFrame(this._frame);
    this._running = false;
  }
  get _steps() {
    return this.play.moves.length;
  }
  _by(steps2) {
    this.pause();
    this.go(this._at + steps2);
  }
  _tick(now) {
    if (!this._running || !this.element.isConnected) {
      return;
    }
    const part = (now - this._began) / (this._still ? STILL : STEP);
    if (part >= 1) {
      this._began = now;
      this.go(this._at + 1);
      if (this._at >= this._steps) {
        this.pause();
        return;
      }
    } else if (!this._still) {
      this._draw(part);
    }
    this._frame = requestAnimationFrame((later) => this._tick(later));
  }
  /** Say the step that was made last, or the one that is being made. */
  _tell() {
    const moving = this._running && !this._still && this._at < this._steps;
    const text = this._text(this._at + (moving ? 1 : 0));
    this._said.textContent = text;
    this._canvas.setAttribute("aria-label", text);
  }
  _text(made2) {
    if (made2 === 0) {
      const partial = this.play.whole > 1 && this.play.frames[0][0].every(Boolean);
      return partial ? "before: each device holds a partial sum of every block" : "before the exchange";
    }
    const step2 = `step ${made2} of ${this._steps}: ${this.play.said[made2 - 1]}`;
    return this._at === this._steps ? `${step2}; that is all` : step2;
  }
  _about() {
    const { play, one } = this;
    const permute2 = one.kind === "collective-permute";
    const each = size(Math.ceil(one.wire_bytes / play.sends));
    const stand = `${count(play.members.length, "device")} stand for the ${play.all} of a group. `;
    const said = `${permute2 ? "A" : "Each"} device sends ${count(play.sends, "block")} of ${each}. `;
    const groups = permute2 || one.groups.length < 2 ? "" : "All groups do the same at once. ";
    return (play.all > play.members.length ? stand : "") + said + groups + "This is the way that the numbers assume; the hardware may take another.";
  }
  _resize() {
    const scale = window.devicePixelRatio || 1;
    this._canvas.style.width = `${this._width}px`;
    this._canvas.style.height = `${this._height}px`;
    this._canvas.width = Math.ceil(this._width * scale);
    this._canvas.height = Math.ceil(this._height * scale);
  }
  /** Draw the present step, its blocks on their way by the given part. */
  _draw(part) {
    const pen = this._canvas.getContext("2d");
    if (!pen) {
      return;
    }
    const scale = window.devicePixelRatio || 1;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this._width, this._height);
    this._names(pen);
    const moves = part > 0 && this.play.moves[this._at] || [];
    const gone = new Set(moves.map((move) => `${move.from}:${move.slot}`));
    const gives = this.play.frames[this._at + 1];
    this.play.frames[this._at].forEach(
      (row2, device) => row2.forEach((cell, slot) => {
        const leaves = gone.has(`${device}:${slot}`) && gives && !gives[device][slot];
        this._cell(pen, leaves ? null : cell, this._x(slot), this._y(device));
      })
    );
    const eased = part * part * (3 - 2 * part);
    for (const { from, to, slot, target, cell } of moves) {
      const x = this._x(slot) + (this._x(target) - this._x(slot)) * eased;
      const y = this._y(from) + (this._y(to) - this._y(from)) * eased;
      this._cell(pen, cell, x, y);
    }
  }
  _names(pen) {
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillStyle = getComputedStyle(this._canvas).color;
    this.play.members.forEach((position, i) => {
      const text = `device ${this.mesh.device_ids[position]}`;
      pen.fillText(text, 0, this._y(i) + this._side / 2);
    });
  }
  _cell(pen, cell, x, y) {
    const side = this._side;
    if (!cell) {
      pen.strokeStyle = "rgba(128, 128, 128, 0.45)";
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      return;
    }
    const { ground } = tint(cell.block, this.play.blocks);
    pen.fillStyle = ground;
    pen.fillRect(x, y, side, side);
    if (cell.parts < this.play.whole) {
      stripes(pen, x, y, side);
    }
    this._label(pen, cell, x + side / 2, y + side / 2, ground);
  }
  /** Say of how many devices a block is the sum, or which block it is. */
  _label(pen, cell, x, y, ground) {
    const sums = this.play.whole > 1;
    const text = sums ? `${cell.parts}/${this.play.whole}` : String(cell.block);
    pen.font = `${this._side < 24 ? 9 : 11}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const width = pen.measureText(text).width;
    if (width > this._side) {
      return;
    }
    if (sums && cell.parts < this.play.whole) {
      pen.fillStyle = ground;
      pen.fillRect(x - width / 2 - 1, y - 6, width + 2, 12);
    }
    pen.fillStyle = INK;
    pen.fillText(text, x, y);
  }
  _x(slot) {
    return NAME + slot * (this._side + GAP);
  }
  _y(device) {
    return device * (this._side + GAP);
  }
  _still;
  _canvas;
  _said;
  _toggle;
  _slider;
  _side;
  _width;
  _height;
  _at = 0;
  _running = false;
  _began = 0;
  _frame = 0;
};
function button(text, click, name = text) {
  return h("button", { type: "button", "aria-label": name === text ? null : name, on: { click } }, text);
}
function stripes(pen, x, y, side) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, side, side);
  pen.clip();
  pen.strokeStyle = "rgba(0, 0, 0, 0.3)";
  pen.lineWidth = 2;
  pen.beginPath();
  for (let at3 = -side; at3 < side; at3 += 7) {
    pen.moveTo(x + at3, y + side);
    pen.lineTo(x + at3 + side, y);
  }
  pen.stroke();
  pen.restore();
}

// src/view/ring.ts
var DRAWN = 16;
function ring(one, mesh2) {
  if (one.kind === "collective-permute") {
    return permute(one, mesh2);
  }
  const group = one.groups.find((members3) => members3.length > 1);
  const steps2 = group && STEPS.get(one.kind);
  if (!group || !steps2) {
    return null;
  }
  const members2 = group.slice(0, DRAWN);
  const twice = one.kind === "all-reduce" ? 2 : 1;
  const sends2 = one.kind === "collective-broadcast" ? 1 : twice * (group.length - 1);
  return { members: members2, ...steps2(members2.length), all: group.length, sends: sends2 };
}
var STEPS = new Map(Object.entries({
  "all-gather": (n) => {
    const stage = new Stage(table(n, n, (device, slot) => device === slot ? 1 : 0));
    gather2(stage, n, 1);
    return stage.done(n, 1);
  },
  "reduce-scatter": (n) => {
    const stage = new Stage(table(n, n, () => 1));
    scatter(stage, n);
    return stage.done(n, n);
  },
  "all-reduce": (n) => {
    const stage = new Stage(table(n, n, () => 1));
    scatter(stage, n);
    gather2(stage, n, n);
    return stage.done(n, n);
  },
  "all-to-all": (n) => {
    const cells = table(n, n, () => 1).map((row2, device) => row2.map(() => ({ block: device, parts: 1 })));
    const stage = new Stage(cells);
    for (let step2 = 0; step2 < n; step2++) {
      const said = "pairs of devices swap the blocks that they have for each other";
      stage.step(said, true, n, (device) => {
        const to = partner(device, step2, n);
        return to === device ? null : { to, slot: to, target: device };
      });
    }
    return stage.done(n, 1);
  },
  "collective-broadcast": (n) => {
    const stage = new Stage(table(n, 1, (device) => device ? 0 : 1));
    for (let step2 = 0; step2 < n - 1; step2++) {
      const only = (device) => device === step2 ? { to: step2 + 1, slot: 0, target: 0 } : null;
      stage.step("the block goes on to the next device", false, n, only);
    }
    return stage.done(1, 1);
  }
}));
function partner(device, step2, n) {
  return n & n - 1 ? (step2 - device + n) % n : device ^ step2;
}
function scatter(stage, n) {
  for (let step2 = 0; step2 < n - 1; step2++) {
    stage.step("each device sends a block to the next, which adds its own part", true, n, (device) => {
      const slot = (device - step2 - 1 + 2 * n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}
function gather2(stage, n, whole) {
  const what = whole > 1 ? "finished block" : "block";
  for (let step2 = 0; step2 < n - 1; step2++) {
    stage.step(`each device sends a copy of a ${what} to the next`, false, n, (device) => {
      const slot = (device - step2 + n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}
function permute(one, mesh2) {
  const positions = [...new Set(one.groups.flat())].sort((a, b) => a - b);
  const members2 = positions.slice(0, DRAWN);
  const pairs = one.groups.map(([from, to]) => [members2.indexOf(from), members2.indexOf(to)]).filter(([from, to]) => from >= 0 && to >= 0 && from !== to);
  if (!pairs.length || positions.length > mesh2.device_ids.length) {
    return null;
  }
  const target = new Map(pairs);
  const first = members2.map((_, block) => [{ block, parts: 1 }]);
  const stage = new Stage(first);
  stage.step("each device sends its block to its partner", true, members2.length, (device) => {
    const to = target.get(device);
    return to === void 0 ? null : { to, slot: 0, target: 0 };
  });
  return { members: members2, ...stage.done(members2.length, 1), all: positions.length, sends: 1 };
}
function table(n, slots, parts) {
  return Array.from(
    { length: n },
    (_, device) => Array.from({ length: slots }, (_2, slot) => {
      const held = parts(device, slot);
      return held ? { block: slot, parts: held } : null;
    })
  );
}
var Stage = class {
  constructor(first) {
    this._frames = [first];
  }
  /** All devices send at once; `gives` says whether what is sent is gone from its sender. */
  step(said, gives, n, sends2) {
    const now = this._frames[this._frames.length - 1];
    const next = now.map((row2) => [...row2]);
    const moves = [];
    for (let from = 0; from < n; from++) {
      const sent2 = sends2(from);
      const cell = sent2 && now[from][sent2.slot];
      if (sent2 && cell) {
        moves.push({ from, ...sent2, cell });
        if (gives) {
          next[from][sent2.slot] = null;
        }
      }
    }
    moves.forEach(({ to, target, cell }) => {
      const own2 = next[to][target];
      const parts = own2 && own2.block === cell.block && gives ? own2.parts + cell.parts : cell.parts;
      next[to][target] = { block: cell.block, parts };
    });
    if (moves.length) {
      this._frames.push(next);
      this._moves.push(moves);
      this._said.push(said);
    }
  }
  done(blocks, whole) {
    return { frames: this._frames, moves: this._moves, said: this._said, blocks, whole };
  }
  _frames;
  _moves = [];
  _said = [];
};

// src/view/detail.ts
var HINT = "Point at an array: the mesh shows which block of it each device holds.";
var Detail = class {
  constructor(report, store) {
    this.report = report;
    store.subscribe(({ chosen }, changed) => {
      if (changed.has("chosen")) {
        this.element.replaceChildren(...chosen ? this._parts(chosen) : []);
      }
    });
    if (!report.collectives.length) {
      this.element.append(h("p", { class: "faint" }, HINT));
    }
  }
  report;
  element = h("div", { class: "detail", "aria-live": "polite" });
  _parts(one) {
    const place3 = at(home(one, this.report), this.report);
    const phase = one.phase ? `, ${clean(one.phase)}` : "";
    return [
      h(
        "div",
        { class: "title" },
        mono(one.kind + over(one)),
        ` ${place3}${phase} `,
        chip(one)
      ),
      h("p", { class: "because" }, sentence(because(one))),
      chain(one),
      ...playing(one, this.report.mesh),
      h("p", null, further(one).join(" ")),
      ...(one.fixes ?? []).map((fix) => tried(fix)),
      this._calls(one),
      raw(one)
    ];
  }
  /** The lines that led to it, innermost first. */
  _calls(one) {
    const lines = one.frames.map((frame) => {
      const source2 = this.report.sources[frame.source];
      const text = source2?.text.split("\n")[frame.line - source2.first_line] ?? "";
      const name = frame.function ? ` in ${clean(frame.function)}` : "";
      return h(
        "li",
        null,
        `${at(frame, this.report).replace(/^at /, "")}${name} `,
        text && mono(clean(text.trim()))
      );
    });
    const within = one.within.map((part) => h("li", null, `inside ${clean(part)}`));
    return h(
      "details",
      { hidden: !lines.length && !within.length },
      h("summary", null, "How the program gets there"),
      h("ol", { class: "calls" }, ...lines, ...within)
    );
  }
};
function chain(one) {
  const sends2 = `${array(one)} on each device, sends ${size(one.wire_bytes)}`;
  const exchange = `${grouping(one)}: ${sends2}${trips(one)}`;
  const steps2 = [made(one), exchange, used(one)].filter(Boolean);
  return h("ol", { class: "chain" }, ...steps2.map((step2) => h("li", null, step2)));
}
function playing(one, mesh2) {
  const play = ring(one, mesh2);
  if (!play) {
    return [];
  }
  const stage = h("div", { class: "played" });
  const label3 = `Play ${clean(one.kind)}`;
  const button2 = h("button", { type: "button", class: "play", "aria-expanded": "false" }, label3);
  let player = null;
  button2.addEventListener("click", () => {
    player?.dispose();
    player = player ? null : new Player(play, one, mesh2);
    stage.replaceChildren(...player ? [player.element] : []);
    button2.textContent = player ? "Close" : label3;
    button2.setAttribute("aria-expanded", String(player !== null));
    player?.start();
  });
  return [button2, stage];
}
function tried(fix) {
  const edit = clean(fix.edit);
  return h("div", { class: "fix" }, "Try: ", mono(edit), ` (${effect(fix)}) `, copier(edit));
}
function copier(text) {
  const button2 = h("button", { type: "button", class: "copy" }, "copy");
  button2.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(
      () => button2.textContent = "copied",
      () => button2.textContent = "not allowed"
    );
  });
  return button2;
}
function raw(one) {
  const text = [one.op_name && `operation ${one.op_name}`, one.instruction].filter(Boolean);
  return h(
    "details",
    { hidden: !text.length },
    h("summary", null, "As the compiler writes it"),
    h("pre", { class: "raw" }, text.map(clean).join("\n"))
  );
}
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// src/view/layout.ts
function layoutOf(value2, mesh2) {
  if (value2.spec === null && (value2.grid === null || value2.blocks === null)) {
    return null;
  }
  const blocks = blocksOf(value2, mesh2);
  const holders = /* @__PURE__ */ new Map();
  blocks.forEach((block, position) => {
    const found = holders.get(block);
    found ? found.push(position) : holders.set(block, [position]);
  });
  return { grid: gridOf(value2, mesh2), blocks, holders };
}
function copies(value2, mesh2) {
  if (value2.spec === null) {
    const layout = layoutOf(value2, mesh2);
    const counts = new Set([...layout?.holders.values() ?? []].map((found) => found.length));
    const sorted2 = [...counts].sort((a, b) => a - b);
    return !layout || sorted2.join() === "1" ? "" : `x${sorted2.join(" or x")} copies`;
  }
  const pending = value2.unreduced.reduce((product2, axis) => product2 * sizeOf(axis, mesh2), 1);
  const blocks = gridOf(value2, mesh2).reduce((product2, size2) => product2 * size2, 1);
  const number = Math.floor(mesh2.device_ids.length / (blocks * pending));
  return number > 1 ? `x${number} copies over ${free(value2, mesh2).join(", ")}` : "";
}
function free(value2, mesh2) {
  const used2 = /* @__PURE__ */ new Set([...value2.unreduced, ...(value2.spec ?? []).flat()]);
  const parts = new Set([...used2].filter((axis) => wholeAxis(axis) !== axis).map(wholeAxis));
  return mesh2.axes.filter((axis) => axis.size > 1 && !used2.has(axis.name)).map((axis) => parts.has(axis.name) ? `the rest of ${axis.name}` : axis.name);
}
function indexOf(grid, number) {
  const index = [];
  let rest2 = number;
  for (const size2 of [...grid].reverse()) {
    index.unshift(rest2 % size2);
    rest2 = Math.floor(rest2 / size2);
  }
  return index;
}
function numberOf(grid, index) {
  return grid.reduce((number, size2, dim) => number * size2 + index[dim], 0);
}
function sliceText(value2, layout, block) {
  const parts = indexOf(layout.grid, block).map((place3, dim) => {
    const end = value2.shape[dim];
    const start = Math.min(end, place3 * value2.shard_shape[dim]);
    return `${start}:${Math.min(end, start + value2.shard_shape[dim])}`;
  });
  return `[${parts.join(", ")}]`;
}
function neighbours(grid, number) {
  const index = indexOf(grid, number);
  const beside = (dim, step2) => {
    const place3 = index[dim] + step2;
    return place3 < 0 || place3 >= grid[dim] ? null : numberOf(grid, [...index.slice(0, dim), place3, ...index.slice(dim + 1)]);
  };
  return grid.flatMap(
    (size2, dim) => size2 > 1 ? [[dim, beside(dim, -1), beside(dim, 1)]] : []
  );
}
function plane(grid) {
  if (grid.length < 2) {
    return [null, grid.length ? 0 : null];
  }
  const dims3 = grid.map((_, dim) => dim);
  const split = dims3.filter((dim) => grid[dim] > 1).slice(-2);
  const whole = dims3.filter((dim) => !split.includes(dim)).reverse();
  const [down, across] = [...split, ...whole.slice(0, 2 - split.length)].sort((a, b) => a - b);
  return [down, across];
}

// src/view/content.ts
var NOTHING = "no communication";
var UNUSED = "not used by the program";
function header(report) {
  const { run, versions } = report;
  const parts = [meshText(report.mesh), devicesText(report.mesh)];
  if (versions.jax) {
    parts.push(`jax ${clean(versions.jax)}`);
  }
  if (run.compile_seconds !== null) {
    parts.push(`compiled ${seconds(run.compile_seconds)}`);
  }
  if (run.run_seconds !== null) {
    parts.push(`ran ${seconds(run.run_seconds)}`);
  }
  return parts;
}
function meshText(mesh2) {
  if (!mesh2.axes.length) {
    return "no mesh";
  }
  const sizes = mesh2.axes.map((axis) => `${axis.name}=${axis.size}`).join(" x ");
  return clean(`mesh ${sizes} (${mesh2.axes.map((axis) => axis.type).join(", ")})`);
}
function devicesText(mesh2) {
  const kind = `${mesh2.emulated ? "emulated " : ""}${mesh2.kind}`;
  const plain = ["cpu", "attached", mesh2.kind].includes(mesh2.target);
  const target = plain ? "" : ` (${mesh2.target})`;
  return clean(`${count(mesh2.device_ids.length, `${kind} device`)}${target}`);
}
function summary(report) {
  const { collectives } = report;
  if (!collectives.length) {
    return NOTHING;
  }
  const unknown2 = unknown(collectives);
  const who = /* @__PURE__ */ new Map();
  collectives.forEach((one) => who.set(asked(one), (who.get(asked(one)) ?? 0) + 1));
  const made2 = [MADE, UNASKED].filter((word) => who.has(word));
  const askers = ["called", "requested", "inferred", ...made2];
  const parts = askers.map((asker) => `${grouped(who.get(asker) ?? 0)} ${asker}`);
  const branched = collectives.filter((one) => one.within.includes("conditional")).length;
  const least = unknown2 ? "at least " : branched ? "at most " : "";
  const sent2 = `${least}${size(sent(collectives))}`;
  const loops = [
    unknown2 ? `; ${grouped(unknown2)} in loops whose trip count is not known` : "",
    branched ? `; ${grouped(branched)} in branches of which one runs, each counted` : ""
  ].join("");
  const number = count(collectives.length, "collective");
  return `${number}: ${sent2} sent by each device a run; ${parts.join(", ")}${loops}`;
}
function valueType(value2) {
  return clean(typeText(value2));
}
function shard(value2) {
  return `${dims(value2.shard_shape)} a device`;
}
function remarks(value2, mesh2) {
  const said = [copies(value2, mesh2)];
  if (value2.unreduced.length) {
    said.push(`partial sums over ${value2.unreduced.join(", ")}`);
  }
  if (value2.spec === null) {
    const known = layoutOf(value2, mesh2) !== null;
    said.push(known ? "no mesh axes say where it lies" : "where it lies is not known");
  }
  if (value2.requested && JSON.stringify(value2.requested) !== JSON.stringify(value2.spec)) {
    said.push(`you asked for ${specText(value2.requested)}`);
  }
  if (value2.closed_over) {
    said.push("closed over");
  }
  if (value2.details === UNUSED) {
    said.push(UNUSED);
  }
  return said.filter(Boolean).map(clean);
}
function memoryText(memory2, outputs) {
  if (memory2 === null) {
    return "not known: the compiler gave no analysis";
  }
  const parts = [
    `${size(memory2.arguments)} arguments`,
    `${size(memory2.outputs)} ${outputs === 1 ? "output" : "outputs"}`,
    `${size(memory2.temporaries)} temporaries a device`
  ];
  const reused = memory2.aliased ? `; ${size(memory2.aliased)} of it reused from donated inputs` : "";
  return parts.join(", ") + reused;
}
function about(report) {
  const said = [];
  if (report.collectives.length) {
    said.push("Bytes sent are by the ring formula; what the hardware does may differ.");
  }
  if (report.mesh.emulated) {
    said.push("Emulated on CPU: the compiler for another device may choose otherwise.");
  }
  if (report.mesh.device_ids.some((id, position) => id !== position)) {
    said.push("Pictures show device ids; HLO counts the positions of the mesh.");
  }
  return said;
}

// src/view/report.ts
var VERSION = 1;
var AXIS = { type: "auto" };
var MESH = { target: "cpu", platform: "cpu", kind: "cpu", emulated: false, coords: null };
var PLACE = { function: "" };
var SOURCE = { text: "", first_line: 1, cell_id: null };
var VALUE = {
  unreduced: [],
  grid: null,
  blocks: null,
  requested: null,
  closed_over: false,
  location: null,
  details: "",
  op: "",
  manual: [],
  propagated: null,
  origins: [],
  blocked: []
};
var ORIGIN = { name: "", location: null, steps: [], after: null };
var STEP2 = { location: null, number: 0 };
var FIX = { location: null };
var COLLECTIVE = {
  trips: 1,
  least_trips: 0,
  generated: false,
  asked_by: null,
  reason: null,
  why: "",
  detail: null,
  full_remat: false,
  producer: null,
  producer_spec: null,
  consumer: null,
  needed_spec: null,
  phase: null,
  seconds: null,
  fixes: null,
  combined_with: [],
  frames: [],
  within: [],
  op_name: "",
  instruction: "",
  channel: null,
  made_as: null,
  algorithm: null,
  overlap: null
};
var OVERLAP = { ops: 0, names: [], cycles: null };
var FINDING = { location: null, wasted_bytes: null, details: "", values: [] };
var TYPED = { operands: [], parameters: "", within: [], inserted: false, location: null };
var COST = {
  compute_seconds: null,
  memory_seconds: null,
  by_axis: {},
  assumptions: [],
  assumed: false,
  unpriced: 0,
  uncounted: 0
};
var MEMORY = { aliased: 0, code: 0 };
var RUN = { trace_seconds: null, compile_seconds: null, explain_seconds: null, run_seconds: null };
function readReport(data) {
  const whole = record(data, "the data");
  if (typeof whole.version !== "number") {
    throw new Error("this is no report: it has no version number");
  }
  if (whole.version > VERSION) {
    throw new Error(
      `the report has version ${whole.version}, and this view reads up to ${VERSION}: update shardnb to see it`
    );
  }
  const table3 = list(whole, "group_table");
  return {
    title: String(whole.title ?? ""),
    mesh: mesh(record(whole.mesh, "mesh")),
    inputs: list(whole, "inputs").map(value),
    outputs: list(whole, "outputs").map(value),
    values: list(whole, "values").map(value),
    collectives: list(whole, "collectives").map((item) => collective(item, table3)),
    findings: list(whole, "findings").map(finding),
    memory: whole.memory ? filled(whole.memory, MEMORY) : null,
    cost: whole.cost ? filled(whole.cost, COST) : null,
    sources: list(whole, "sources").map((item) => filled(item, SOURCE)),
    versions: whole.versions ?? {},
    notes: list(whole, "notes"),
    typed: list(whole, "typed").map(typedLine),
    run: filled(whole.run ?? {}, RUN),
    texts: whole.texts ?? {},
    version: whole.version
  };
}
function mesh(data) {
  const axes = list(data, "axes").map((axis) => filled(axis, AXIS));
  const size2 = axes.reduce((product2, axis) => product2 * axis.size, 1);
  if (axes.length && list(data, "device_ids").length !== size2) {
    throw new Error(`this is no report: its mesh of ${size2} places has other devices`);
  }
  return { ...filled(data, MESH), axes };
}
function value(item) {
  const read = filled(item, VALUE);
  if (read.spec === void 0) {
    read.spec = null;
  }
  const dims3 = read.shape.length;
  if (read.shard_shape.length !== dims3 || read.spec !== null && read.spec.length !== dims3) {
    throw new Error(`this is no report: the array ${read.name} has parts of another rank`);
  }
  const origins = read.origins.map(origin);
  return { ...read, location: place(read.location), origins };
}
function origin(item) {
  const read = filled(item, ORIGIN);
  const steps2 = read.steps && read.steps.map((step2) => filled(step2, STEP2));
  return { ...read, steps: steps2 };
}
function collective(item, table3) {
  const read = filled(item, COLLECTIVE);
  const groups = table3[read.groups];
  if (!Array.isArray(groups)) {
    throw new Error(`this is no report: collective ${read.id} has no groups`);
  }
  const fixes = read.fixes && read.fixes.map((fix) => filled(fix, FIX));
  const frames = read.frames.map((frame) => filled(frame, PLACE));
  const overlap = read.overlap && filled(read.overlap, OVERLAP);
  return { ...read, axes: read.axes ?? null, groups, fixes, frames, overlap };
}
function finding(item) {
  const read = filled(item, FINDING);
  return { ...read, location: place(read.location), values: read.values.map(value) };
}
function typedLine(item) {
  const read = filled(item, TYPED);
  return { ...read, location: place(read.location) };
}
function place(item) {
  return item ? filled(item, PLACE) : null;
}
function filled(item, defaults) {
  return { ...defaults, ...record(item, "a part of it") };
}
function record(item, name) {
  if (typeof item !== "object" || item === null || Array.isArray(item)) {
    throw new Error(`this is no report: ${name} is not an object`);
  }
  return item;
}
function list(data, name) {
  const items = data[name] ?? [];
  if (!Array.isArray(items)) {
    throw new Error(`this is no report: ${name} is not a list`);
  }
  return items;
}

// src/view/pictures.ts
var LINKED = 64;
function valuePicture(value2, mesh2, layout) {
  const [down, across] = plane(layout.grid);
  const title = clean(`${value2.name} ${valueType(value2)}`);
  return {
    grid: layout.grid,
    down: edge(value2, mesh2, layout, down),
    across: edge(value2, mesh2, layout, across),
    title: `${title}: ${layout.holders.size} blocks`,
    tint: blockTint(layout),
    labels: (block) => blockLabels(block, value2, mesh2, layout),
    caption: (dim, place3) => `dim ${dim}: ${place3}`,
    striped: value2.unreduced.length > 0
  };
}
function edge(value2, mesh2, layout, dim) {
  if (dim === null) {
    return "";
  }
  if (value2.spec === null || !value2.spec[dim].length) {
    return layout.grid[dim] > 1 ? `dim ${dim} in ${layout.grid[dim]}` : `dim ${dim} whole`;
  }
  const axes = value2.spec[dim].map((axis) => {
    const whole = mesh2.axes.find((one) => one.name === axis);
    return whole ? `${axis}=${whole.size}` : axis;
  });
  return clean(`dim ${dim} over ${axes.join(" x ")}`);
}
function blockTint(layout) {
  const { grid, holders } = layout;
  const ranks = new Map([...holders.keys()].sort((a, b) => a - b).map((block, i) => [block, i]));
  const [down, across] = plane(grid);
  const high = down === null ? 1 : grid[down];
  const wide = across === null ? 1 : grid[across];
  return (block) => {
    const rank2 = ranks.get(block);
    if (rank2 === void 0) {
      return NOBODY;
    }
    const index = indexOf(grid, block);
    const y = down === null ? 0 : index[down] / Math.max(1, high - 1);
    const x = across === null ? 0 : index[across] / Math.max(1, wide - 1);
    return high > 1 ? tint(rank2, ranks.size, y, x) : tint(rank2, ranks.size, x, 0.5);
  };
}
function blockLabels(block, value2, mesh2, layout) {
  const holders = (layout.holders.get(block) ?? []).map((position) => mesh2.device_ids[position]);
  if (!holders.length) {
    return ["none"];
  }
  const listed = numbers(holders, 4).replace(/ \(\d+\)$/, "");
  if (holders.length === 1) {
    return [listed];
  }
  const times = `x${holders.length}`;
  return value2.unreduced.length ? [listed, times] : [`${listed} (${times})`, listed, times];
}
function groupsPicture(collective2, mesh2) {
  const permute2 = collective2.kind === "collective-permute";
  const group = groupOf(collective2, mesh2);
  const { groups } = collective2;
  const shade2 = (place3) => {
    const rank2 = group[place3];
    const turn = rank2 / Math.max(1, groups.length - 1);
    return rank2 < 0 ? NOBODY : tint(rank2, groups.length, turn, 0.8 * (rank2 % 2));
  };
  const marked = (place3) => {
    const device = String(mesh2.device_ids[place3]);
    return group[place3] < 0 ? [device] : [`${letter(group[place3])} ${device}`, device];
  };
  return {
    ...meshEdges(mesh2),
    title: `${groupsText(collective2)}`,
    tint: permute2 ? (place3) => group[place3] < 0 ? NOBODY : tint(0, 1) : shade2,
    labels: permute2 ? (place3) => [String(mesh2.device_ids[place3])] : marked,
    links: links(collective2, mesh2)
  };
}
function groupOf(collective2, mesh2) {
  const group = new Int32Array(mesh2.device_ids.length).fill(-1);
  collective2.groups.forEach((members2, i) => members2.forEach((place3) => group[place3] = i));
  return group;
}
function groupsText(collective2) {
  const along = collective2.axes?.length ? ` along ${collective2.axes.join(", ")}` : "";
  return clean(`${collective2.kind}${over(collective2)}: ${grouping(collective2)}${along}`);
}
function links({ kind, groups }, mesh2) {
  if (mesh2.device_ids.length > LINKED) {
    return [];
  }
  const arrow = kind === "collective-permute";
  const pairs = groups.flatMap((group) => group.slice(1).map((to, i) => [group[i], to]));
  return pairs.filter(([from, to]) => from !== to && (arrow || besides(from, to, mesh2))).map(([from, to]) => ({ from, to, arrow }));
}
function besides(one, other, mesh2) {
  const grid = mesh2.axes.map((axis) => axis.size);
  return neighbours(grid, one).some(([, before, after]) => other === before || other === after);
}
function holdersPicture(value2, mesh2, layout) {
  const shade2 = blockTint(layout);
  return {
    ...meshEdges(mesh2),
    title: `Each device by the block of ${clean(value2.name)} that it holds`,
    tint: (place3) => shade2(layout.blocks[place3]),
    labels: (place3) => [String(mesh2.device_ids[place3])],
    striped: value2.unreduced.length > 0
  };
}
function meshPicture(mesh2) {
  return {
    ...meshEdges(mesh2),
    title: "The devices of the mesh",
    tint: () => tint(6, 8),
    labels: (place3) => [String(mesh2.device_ids[place3])]
  };
}
function meshEdges(mesh2) {
  const grid = mesh2.axes.map((axis) => axis.size);
  const name = (dim) => dim === null ? "" : clean(`${mesh2.axes[dim].name}=${mesh2.axes[dim].size}`);
  const [down, across] = plane(grid).map(name);
  const caption = (dim, place3) => clean(`${mesh2.axes[dim].name} ${place3}`);
  return { grid, down, across, caption };
}
function deviceText(position, mesh2) {
  const along = coordinates(position, mesh2).map((at3, dim) => `${mesh2.axes[dim].name} ${at3}`);
  const physical = mesh2.coords?.[position];
  const chip2 = physical ? `, at (${physical.join(", ")})` : "";
  const place3 = along.length ? ` (${along.join(", ")}${chip2})` : "";
  return clean(`device ${mesh2.device_ids[position]}${place3}`);
}
function besideText(position, mesh2) {
  const grid = mesh2.axes.map((axis) => axis.size);
  const parts = neighbours(grid, position).map(([dim, before, after]) => {
    const found = [before, after].filter((place3) => place3 !== null);
    const ids = found.map((place3) => mesh2.device_ids[place3]).join(" and ");
    return `${ids} along ${mesh2.axes[dim].name}`;
  });
  return parts.length ? clean(`next to it: ${parts.join(", ")}`) : "";
}
function exchangeText(position, collective2, mesh2) {
  const ids = (places) => numbers(places.map((place3) => mesh2.device_ids[place3]));
  if (collective2.kind === "collective-permute") {
    const to = collective2.groups.filter(([from2]) => from2 === position).map((pair) => pair[1]);
    const from = collective2.groups.filter((pair) => pair[1] === position).map((pair) => pair[0]);
    const said = [to.length && `sends to ${ids(to)}`, from.length && `receives from ${ids(from)}`];
    return said.filter(Boolean).join(", ") || "takes no part";
  }
  const number = groupOf(collective2, mesh2)[position];
  const name = number >= 0 && `in group ${letter(number)}`;
  return name ? `${name}: ${ids(collective2.groups[number])}` : "takes no part";
}
function blockText(block, value2, mesh2, layout) {
  const holders = (layout.holders.get(block) ?? []).map((position) => mesh2.device_ids[position]);
  const noun = holders.length === 1 ? "device" : "devices";
  const where2 = holders.length ? `on ${noun} ${numbers(holders)}` : "on no device";
  const what = value2.unreduced.length ? "partial sums of " : "";
  return clean(`${what}${value2.name}${sliceText(value2, layout, block)} ${where2}`);
}
function blocksBesideText(block, mesh2, layout) {
  const parts = neighbours(layout.grid, block).map(([dim, before, after]) => {
    const found = [before, after].flatMap((place3) => layout.holders.get(place3 ?? -1) ?? []);
    return `${numbers(found.map((position) => mesh2.device_ids[position]))} along dim ${dim}`;
  });
  return parts.length ? `next to it: ${parts.join(", ")}` : "";
}

// src/view/geometry.ts
var CAPTION = 16;
var CAPTIONED = 32;
var WIDEST = 110;
var HIGHEST = 34;
var LEAST = 3;
var READABLE = 10;
function gapsOf({ rows: rows2, columns, deep }) {
  const head3 = deep > 1 && deep <= CAPTIONED ? CAPTION : 0;
  return { strip: Math.min(rows2, columns) > 2 ? 8 : 2, sheet: deep > CAPTIONED ? 4 : 8, head: head3 };
}
function arrange(grid, box) {
  const [down, across] = plane(grid);
  const others = grid.map((_, dim) => dim).filter((dim) => dim !== down && dim !== across);
  const depths = others.map((dim) => grid[dim]);
  const shape = {
    rows: down === null ? 1 : grid[down],
    columns: across === null ? 1 : grid[across],
    deep: product(depths)
  };
  const folding = best(shape, box);
  const folded2 = folding.strips * folding.bands > 1;
  const tile = tileOf(shape, folding, box, folded2);
  const size2 = sheetSize(shape, folding, tile);
  const gaps = gapsOf(shape);
  const sheets = Array.from({ length: shape.deep }, (_, depth) => ({
    x: depth % folding.abreast * (size2.width + gaps.sheet),
    y: Math.floor(depth / folding.abreast) * (size2.height + gaps.sheet + gaps.head) + gaps.head,
    at: indexOf(depths, depth).map((place3, i) => [others[i], place3])
  }));
  const corners = place2(grid, { shape, folding, tile, sheets, down, across });
  const width = Math.max(...sheets.map((sheet) => sheet.x)) + size2.width;
  const height = Math.max(...sheets.map((sheet) => sheet.y)) + size2.height;
  return { width, height, tile, ...corners, sheets, down, across, folded: folded2 };
}
function placeAt(drawn, x, y) {
  const { width, height } = drawn.tile;
  for (let number = 0; number < drawn.x.length; number++) {
    const right = x - drawn.x[number];
    const below = y - drawn.y[number];
    if (right >= 0 && right < width && below >= 0 && below < height) {
      return number;
    }
  }
  return null;
}
function best(shape, box) {
  let found = { strips: 1, bands: 1, abreast: 1 };
  let most = 0;
  for (const folding of foldings(shape)) {
    const { width, height } = room(shape, folding, box);
    const side = Math.min(width, height);
    const folded2 = folding.strips * folding.bands > 1;
    if (folded2 ? 0.6 * side > most && most < READABLE : side > most) {
      [found, most] = [folding, folded2 ? 0.6 * side : side];
    }
  }
  return found;
}
function* foldings({ rows: rows2, columns, deep }) {
  const most = Math.min(64, Math.max(rows2, columns));
  const tall = rows2 >= columns;
  for (let folds = 1; folds <= most; folds++) {
    for (let abreast = 1; abreast <= deep; abreast += abreast < 64 ? 1 : abreast) {
      yield { strips: tall ? folds : 1, bands: tall ? 1 : folds, abreast };
    }
  }
}
function room(shape, { strips, bands, abreast }, box) {
  const below = Math.ceil(shape.deep / abreast);
  const columns = abreast * strips * Math.ceil(shape.columns / bands);
  const rows2 = below * bands * Math.ceil(shape.rows / strips);
  const { strip, sheet, head: head3 } = gapsOf(shape);
  const aside = abreast * (strips - 1) * strip + (abreast - 1) * sheet;
  const between = below * (bands - 1) * strip + (below - 1) * sheet + below * head3;
  return { width: (box.width - aside) / columns, height: (box.height - between) / rows2 };
}
function tileOf(shape, folding, box, folded2) {
  const { width, height } = room(shape, folding, box);
  const wide = Math.floor(Math.min(width, WIDEST));
  const high = Math.floor(Math.min(height, HIGHEST, wide));
  const side = Math.max(LEAST, high);
  return folded2 || side < READABLE ? { width: side, height: side } : { width: wide, height: side };
}
function sheetSize(shape, { strips, bands }, tile) {
  const { strip } = gapsOf(shape);
  return {
    width: strips * (Math.ceil(shape.columns / bands) * tile.width + strip) - strip,
    height: bands * (Math.ceil(shape.rows / strips) * tile.height + strip) - strip
  };
}
function place2(grid, plan) {
  const total3 = product(grid);
  const x = new Float32Array(total3);
  const y = new Float32Array(total3);
  const { tile, folding, shape } = plan;
  const gap = gapsOf(shape).strip;
  const high = Math.ceil(shape.rows / folding.strips);
  const wide = Math.ceil(shape.columns / folding.bands);
  const others = grid.map((_, dim) => dim).filter((dim) => dim !== plan.down && dim !== plan.across);
  for (let number = 0; number < total3; number++) {
    const index = indexOf(grid, number);
    const row2 = plan.down === null ? 0 : index[plan.down];
    const column = plan.across === null ? 0 : index[plan.across];
    const sheet = plan.sheets[others.reduce((depth, dim) => depth * grid[dim] + index[dim], 0)];
    const strip = Math.floor(row2 / high);
    const band = Math.floor(column / wide);
    x[number] = sheet.x + strip * (wide * tile.width + gap) + column % wide * tile.width;
    y[number] = sheet.y + band * (high * tile.height + gap) + row2 % high * tile.height;
  }
  return { x, y };
}
function product(sizes) {
  return sizes.reduce((result, size2) => result * size2, 1);
}

// src/view/tiles.ts
var LABELLED = 12;
var SPACING = 1;
var Tiles = class {
  /** `point` hears which place the pointer or the keys are at, or null. */
  constructor(box, point) {
    this.box = box;
    this.point = point;
    this._canvas = h("canvas", {
      class: "canvas",
      role: "img",
      tabindex: 0,
      ...OWN_KEYS,
      on: {
        pointermove: (event) => this._move(event),
        pointerleave: () => this._go(null),
        blur: () => this._go(null),
        keydown: (event) => this._key(event)
      }
    });
    this._edges = h("div", { class: "edges" });
    this._readout = h("div", { class: "readout", "aria-live": "polite" });
    this.element = h("div", { class: "plot" }, this._edges, this._canvas, this._readout);
  }
  box;
  point;
  element;
  /** Draw a picture in place of the last one. */
  show(picture2) {
    this.layOut(picture2);
    this.paint();
  }
  /** Take the room that a picture needs; it is painted later. */
  layOut(picture2) {
    this._picture = picture2;
    this._drawn = arrange(picture2.grid, this.box);
    this._marks = [];
    this._lit = null;
    const edges = [
      picture2.down && `↓ ${picture2.down}`,
      picture2.across && `→ ${picture2.across}`
    ];
    this._edges.replaceChildren(...edges.filter(Boolean).map((edge2) => h("span", null, edge2)));
    this._canvas.setAttribute("aria-label", `${picture2.title}. Arrow keys move between tiles.`);
    const { width, height } = this._drawn;
    const scale = window.devicePixelRatio || 1;
    this._canvas.style.width = `${width}px`;
    this._canvas.style.height = `${height}px`;
    this._canvas.width = Math.ceil(width * scale);
    this._canvas.height = Math.ceil(height * scale);
  }
  /** Paint the picture that was laid out. */
  paint() {
    const scale = window.devicePixelRatio || 1;
    this._ground = document.createElement("canvas");
    this._ground.width = this._canvas.width;
    this._ground.height = this._canvas.height;
    const pen = this._ground.getContext("2d");
    if (pen && this._picture && this._drawn) {
      pen.scale(scale, scale);
      paint(pen, this._picture, this._drawn);
    }
    this._compose();
  }
  /** Mark places: `marks` by an outline, all but `lit` (if given) by shade. */
  mark(marks, lit = null) {
    this._marks = marks;
    this._lit = lit;
    this._compose();
  }
  /** Say what is at the pointer; "" for nothing. */
  say(text) {
    this._readout.textContent = text;
  }
  _compose() {
    const pen = this._canvas.getContext("2d");
    if (!pen || !this._ground || !this._drawn) {
      return;
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this._canvas.width, this._canvas.height);
    pen.drawImage(this._ground, 0, 0);
    const scale = window.devicePixelRatio || 1;
    pen.scale(scale, scale);
    shade(pen, this._drawn, this._lit);
    this._marks.forEach((place3) => outline(pen, this._drawn, place3));
  }
  _move(event) {
    if (this._drawn) {
      this._go(placeAt(this._drawn, event.offsetX, event.offsetY));
    }
  }
  _go(place3) {
    if (place3 !== this._at) {
      this._at = place3;
      this.point(place3);
    }
  }
  _key(event) {
    const next = this._drawn && step(this._drawn, this._at, event.key);
    if (next !== null && next !== void 0) {
      event.preventDefault();
      event.stopPropagation();
      this._go(next);
    }
  }
  _canvas;
  _edges;
  _readout;
  _picture = null;
  _ground = null;
  _drawn = null;
  _marks = [];
  _lit = null;
  _at = null;
};
function step(drawn, at3, key) {
  const last = drawn.x.length - 1;
  if (key === "Home" || at3 === null && key.startsWith("Arrow")) {
    return 0;
  }
  if (key === "End") {
    return last;
  }
  const ways = {
    ArrowRight: [1, 0],
    ArrowLeft: [-1, 0],
    ArrowDown: [0, 1],
    ArrowUp: [0, -1]
  };
  const way = ways[key];
  return way && at3 !== null ? nearest(drawn, at3, way) : null;
}
function nearest(drawn, at3, [right, below]) {
  let found = at3;
  let least = Infinity;
  for (let place3 = 0; place3 < drawn.x.length; place3++) {
    const x = (drawn.x[place3] - drawn.x[at3]) * (right || 1);
    const y = (drawn.y[place3] - drawn.y[at3]) * (below || 1);
    const [along, aside] = right ? [x, Math.abs(y)] : [y, Math.abs(x)];
    const distance = along + 3 * aside;
    if (along > 0.5 && distance < least) {
      [found, least] = [place3, distance];
    }
  }
  return found;
}
function paint(pen, picture2, drawn) {
  const { width, height } = drawn.tile;
  const inset = width >= 8 ? SPACING : 0;
  for (let place3 = 0; place3 < drawn.x.length; place3++) {
    const tint2 = picture2.tint(place3);
    pen.fillStyle = tint2.ground;
    pen.fillRect(drawn.x[place3], drawn.y[place3], width - inset, height - inset);
    if (tint2.pattern && width >= 8) {
      pattern(pen, tint2, drawn, place3);
    }
  }
  if (picture2.striped) {
    stripe(pen, drawn, inset);
  }
  if (height >= LABELLED) {
    label(pen, picture2, drawn);
    (picture2.links ?? []).forEach((link) => line(pen, drawn, link));
  }
  captions(pen, picture2, drawn);
}
function pattern(pen, tint2, drawn, place3) {
  const { width, height } = drawn.tile;
  pen.fillStyle = pen.strokeStyle = "rgba(0, 0, 0, 0.32)";
  pen.lineWidth = 1;
  const pitch = Math.min(9, width / 2, height / 2);
  for (let x = pitch / 2; x < width - 2; x += pitch) {
    for (let y = pitch / 2; y < height - 2; y += pitch) {
      dot(pen, tint2.pattern, drawn.x[place3] + x, drawn.y[place3] + y);
    }
  }
}
function dot(pen, shape, x, y) {
  if (shape === "dots") {
    pen.fillRect(x - 0.75, y - 0.75, 1.5, 1.5);
  } else if (shape === "plus") {
    pen.fillRect(x - 2, y - 0.5, 4, 1);
    pen.fillRect(x - 0.5, y - 2, 1, 4);
  } else {
    pen.beginPath();
    pen.arc(x, y, 2, 0, 2 * Math.PI);
    pen.stroke();
  }
}
function stripe(pen, drawn, inset) {
  pen.save();
  pen.beginPath();
  for (let place3 = 0; place3 < drawn.x.length; place3++) {
    const { width, height } = drawn.tile;
    pen.rect(drawn.x[place3], drawn.y[place3], width - inset, height - inset);
  }
  pen.clip();
  pen.strokeStyle = "rgba(0, 0, 0, 0.26)";
  pen.lineWidth = 2;
  pen.beginPath();
  for (let x = -drawn.height; x < drawn.width; x += 7) {
    pen.moveTo(x, drawn.height);
    pen.lineTo(x + drawn.height, 0);
  }
  pen.stroke();
  pen.restore();
}
function label(pen, picture2, drawn) {
  const { width, height } = drawn.tile;
  pen.font = `${height < 16 ? 10 : 12}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let place3 = 0; place3 < drawn.x.length; place3++) {
    const room2 = width - 6;
    const text = picture2.labels(place3).find((words) => pen.measureText(words).width <= room2);
    if (text) {
      const x = drawn.x[place3] + width / 2;
      const y = drawn.y[place3] + height / 2;
      if (picture2.striped || picture2.tint(place3).pattern) {
        const half = pen.measureText(text).width / 2 + 3;
        pen.fillStyle = picture2.tint(place3).ground;
        pen.fillRect(x - half, y - Math.min(8, height / 2 - 1), 2 * half, Math.min(16, height - 2));
      }
      pen.fillStyle = INK;
      pen.fillText(text, x, y);
    }
  }
}
function line(pen, drawn, link) {
  const [from, to] = [centre(drawn, link.from), centre(drawn, link.to)];
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const along = { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
  const aside = link.arrow ? 10 + 8 * Math.abs(along.y) : 0;
  const cut = edgeAt(drawn.tile, along);
  const start = shifted(from, along, cut, aside);
  const end = shifted(to, along, -cut, aside);
  const middle = shifted(from, along, length / 2, aside * (length > 120 ? 1.8 : 1));
  pen.strokeStyle = pen.fillStyle = INK;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(start.x, start.y);
  pen.quadraticCurveTo(middle.x, middle.y, end.x, end.y);
  pen.stroke();
  if (link.arrow) {
    head(pen, end, Math.atan2(end.y - middle.y, end.x - middle.x));
  }
}
function edgeAt({ width, height }, along) {
  const across = Math.abs(along.x) > 1e-6 ? (width / 2 - 7) / Math.abs(along.x) : Infinity;
  const down = Math.abs(along.y) > 1e-6 ? (height / 2 - 6) / Math.abs(along.y) : Infinity;
  return Math.min(across, down);
}
function shifted(from, along, far, aside) {
  return {
    x: from.x + along.x * far - along.y * aside,
    y: from.y + along.y * far + along.x * aside
  };
}
function head(pen, tip, angle) {
  pen.beginPath();
  pen.moveTo(tip.x, tip.y);
  for (const turn of [2.6, -2.6]) {
    pen.lineTo(tip.x + 7 * Math.cos(angle + turn), tip.y + 7 * Math.sin(angle + turn));
  }
  pen.fill();
}
function centre(drawn, place3) {
  const { width, height } = drawn.tile;
  return { x: drawn.x[place3] + width / 2, y: drawn.y[place3] + height / 2 };
}
function captions(pen, picture2, drawn) {
  if (drawn.sheets.length < 2 || drawn.sheets[0].y === 0) {
    return;
  }
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = "#888";
  const room2 = drawn.sheets[1].x > 0 ? drawn.sheets[1].x - 4 : drawn.width;
  for (const sheet of drawn.sheets) {
    const full = sheet.at.map(([dim, place3]) => picture2.caption(dim, place3)).join(", ");
    const short = sheet.at.map(([, place3]) => place3).join(", ");
    const text = [full, short].find((words) => pen.measureText(words).width <= room2);
    pen.fillText(text ?? "", sheet.x, sheet.y - 4);
  }
}
function shade(pen, drawn, lit) {
  if (!lit) {
    return;
  }
  pen.fillStyle = "rgba(128, 128, 128, 0.6)";
  for (let place3 = 0; place3 < drawn.x.length; place3++) {
    if (!lit.has(place3)) {
      pen.fillRect(drawn.x[place3], drawn.y[place3], drawn.tile.width, drawn.tile.height);
    }
  }
}
function outline(pen, drawn, place3) {
  const { width, height } = drawn.tile;
  const thick = width >= 12 ? 2 : 1;
  pen.lineWidth = thick;
  pen.strokeStyle = "#fff";
  const inner = thick * 1.5;
  const [x, y] = [drawn.x[place3], drawn.y[place3]];
  pen.strokeRect(x + inner, y + inner, width - 2 * inner - 1, height - 2 * inner - 1);
  pen.strokeStyle = "#000";
  pen.strokeRect(x + thick / 2, y + thick / 2, width - thick - 1, height - thick - 1);
}

// src/view/weights.ts
var BITS = {
  pred: 8,
  token: 0,
  opaque: 0,
  "key<fry>": 64,
  "key<rbg>": 128,
  "key<unsafe_rbg>": 128
};
function sizeInBytes(dtype, shape) {
  const bits = BITS[dtype] ?? Number(/\d+/.exec(dtype)?.[0] ?? 0);
  return Math.ceil(bits * shape.reduce((product2, dim) => product2 * dim, 1) / 8);
}
function shardBytes(value2) {
  return sizeInBytes(value2.dtype, value2.shard_shape);
}

// src/view/arrays.ts
var BOX = { width: 222, height: 208 };
var MOST = 40;
function arrays(report, store) {
  const cards = h("div", { class: "cards" });
  for (const [role, values] of [
    ["input", report.inputs],
    ["output", report.outputs]
  ]) {
    const draw2 = (i) => new Card(role, values[i], report, store).element;
    const order = values.map((_, i) => i);
    order.sort((a, b) => shardBytes(values[b]) - shardBytes(values[a]));
    const kept = order.slice(0, MOST).sort((a, b) => a - b);
    cards.append(...kept.map(draw2));
    if (order.length > MOST) {
      cards.append(rest(order.slice(MOST), role, values, draw2));
    }
  }
  const empty = !report.inputs.length && !report.outputs.length;
  const none = h("div", { class: "faint" }, empty ? "not known" : "none");
  return h(
    "div",
    { class: "arrays" },
    heading("Where the arrays lie"),
    cards.childElementCount ? cards : none
  );
}
function rest(left, role, values, draw2) {
  const held = size(left.reduce((total3, i) => total3 + shardBytes(values[i]), 0));
  const text = `and ${count(left.length, `smaller ${role}`)}, ${held} a device`;
  const more = h("button", { type: "button", class: "more" }, text);
  more.addEventListener("click", () => more.replaceWith(...left.map(draw2)));
  return more;
}
var Card = class {
  /** `role` says what it is to the program: `input`, `output`. */
  constructor(role, value2, report, store) {
    this.value = value2;
    this.report = report;
    this.store = store;
    const { mesh: mesh2 } = report;
    this._layout = layoutOf(value2, mesh2);
    this._picture = this._layout && picture(value2, report, this._layout);
    this._tiles = new Tiles(BOX, (block) => this._point(block));
    const held = `${shard(value2)}, ${size(shardBytes(value2))}`;
    this.element = h(
      "div",
      {
        class: "card",
        on: {
          pointerenter: () => store.set({ value: value2 }),
          pointerleave: () => store.set({ value: null }),
          focusin: () => store.set({ value: value2 }),
          focusout: () => store.set({ value: null })
        }
      },
      h("div", { class: "role" }, role),
      h("div", { class: "name" }, h("b", null, clean(value2.name)), " ", mono(valueType(value2))),
      h("div", { class: "faint" }, [held, ...remarks(value2, mesh2)].join("; ")),
      this._picture && this._tiles.element
    );
    if (this._picture) {
      this._tiles.layOut(this._picture);
      whenSeen(this.element, () => this._draw());
    }
    this.dispose = store.subscribe((focus, changed) => {
      if (changed.has("device")) {
        this._mark(focus.device);
      }
    });
  }
  value;
  report;
  store;
  element;
  /** Let go of the store, for a card that leaves before the view does. */
  dispose;
  _draw() {
    this._drawn = true;
    this._tiles.paint();
  }
  /** Mark the block that the device under the pointer holds. */
  _mark(device) {
    if (this._drawn && this._layout && !this._inside) {
      this._tiles.mark(device === null ? [] : [this._layout.blocks[device]]);
    }
  }
  _point(block) {
    const layout = this._layout;
    this._inside = block !== null;
    const holders = block === null ? [] : layout.holders.get(block) ?? [];
    this._tiles.mark(block === null ? [] : [block]);
    this.store.set({ device: holders[0] ?? null });
    this._tiles.say(block === null ? "" : this._say(block, layout));
  }
  _say(block, layout) {
    const { mesh: mesh2 } = this.report;
    const what = blockText(block, this.value, mesh2, layout);
    return [what, blocksBesideText(block, mesh2, layout)].filter(Boolean).join("; ");
  }
  _layout;
  _tiles;
  _picture;
  _drawn = false;
  _inside = false;
};
function picture(value2, report, layout) {
  return value2.shape.includes(0) ? null : valuePicture(value2, report.mesh, layout);
}

// src/view/code.ts
var WHOLE = 200;
var LINES = 16;
var AROUND = 2;
var Code = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    const led = ledBy(report);
    report.sources.forEach((source2, i) => {
      const lines = this._lines(source2, i, led[i]);
      if (lines.length) {
        this.element.append(...i ? [h("div", { class: "faint" }, clean(source2.name))] : []);
        this.element.append(h("ol", { class: "lines", "aria-label": "Source lines" }, ...lines));
      }
    });
    store.subscribe(() => this._mark());
  }
  report;
  store;
  element = h("div", { class: "code" });
  _lines(source2, index, led) {
    const { shown, rest: rest2 } = chosenLines(source2, index, led);
    const texts = source2.text.split("\n");
    const items = [];
    shown.forEach((number, i) => {
      if (i && number > shown[i - 1] + 1) {
        items.push(h("li", { class: "line gap", "aria-hidden": "true" }, "⋮"));
      }
      const text = clean(texts[number - source2.first_line] ?? "");
      items.push(this._line(`${index}:${number}`, number, text, led.get(number) ?? []));
    });
    if (rest2) {
      const more = `and ${count(rest2, "more line")} with collectives`;
      items.push(h("li", { class: "line faint" }, more));
    }
    return items;
  }
  _line(key, number, text, led) {
    const { shown, left } = tell(led, this.report);
    const line2 = h(
      "li",
      { class: "line", value: number },
      h("span", { class: "number", "aria-hidden": "true" }, String(number)),
      h("code", { class: "text" }, text || " "),
      h(
        "span",
        { class: "badges" },
        ...shown.map((entry2) => badge(entry2, this.store)),
        left.length > 0 && restBadge(left, this.store)
      )
    );
    this._rows.set(key, line2);
    return line2;
  }
  _mark() {
    const { chosen, pointed, value: value2 } = this.store.focus;
    const place3 = value2?.location ?? home(pointed ?? chosen ?? NONE, this.report);
    const line2 = place3 ? this._rows.get(`${place3.source}:${place3.line}`) : void 0;
    if (line2 !== this._marked) {
      this._marked?.removeAttribute("data-marked");
      line2?.setAttribute("data-marked", "");
      this._marked = line2;
    }
  }
  _rows = /* @__PURE__ */ new Map();
  _marked;
};
var NONE = { frames: [] };
function ledBy(report) {
  const led = report.sources.map(() => /* @__PURE__ */ new Map());
  for (const collective2 of report.collectives) {
    const seen = /* @__PURE__ */ new Set();
    for (const frame of collective2.frames) {
      const lines = led[frame.source];
      if (lines && !seen.has(frame.source) && isShown(frame, report)) {
        seen.add(frame.source);
        const found = lines.get(frame.line);
        found ? found.push(collective2) : lines.set(frame.line, [collective2]);
      }
    }
  }
  return led;
}
function chosenLines(source2, index, led) {
  const heaviest2 = [...led.keys()].sort((a, b) => heavy(led.get(b)) - heavy(led.get(a)));
  if (index > 0) {
    const kept2 = heaviest2.slice(0, LINES).sort((a, b) => a - b);
    return { shown: kept2, rest: heaviest2.length - kept2.length };
  }
  const texts = source2.text.replace(/\s+$/, "").split("\n");
  const whole = texts.map((_, i) => source2.first_line + i).filter((_, i) => texts[0] || i > 0);
  if (!source2.text || whole.length <= WHOLE) {
    return { shown: union(source2.text ? whole : [], heaviest2), rest: 0 };
  }
  const kept = heaviest2.slice(0, WHOLE);
  const first = whole[0];
  const last = whole[whole.length - 1];
  const near = kept.flatMap((line2) => range(Math.max(first, line2 - AROUND), line2 + AROUND));
  return { shown: union(near.filter((line2) => line2 <= last), kept), rest: heaviest2.length - kept.length };
}
function heavy(collectives = []) {
  return collectives.reduce((sum, one) => sum + weight(one), 0);
}
function union(some, others) {
  return [.../* @__PURE__ */ new Set([...some, ...others])].sort((a, b) => a - b);
}
function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

// src/view/list.ts
var ROW = 30;
var SEEN = 8;
var FEW = 4;
var ALL = { kind: "", axis: "", asked: "", least: 0 };
var STEPS2 = [1024, 65536, 1 << 20, 1 << 24, 1 << 28, 1 << 30];
function passes(one, filter) {
  return (!filter.kind || one.kind === filter.kind) && (!filter.axis || (one.axes ?? []).map(wholeAxis).includes(filter.axis)) && (!filter.asked || asked(one) === filter.asked) && weight(one) >= filter.least;
}
function sorted(found, key, up, report) {
  if (key === "order") {
    return up ? found : [...found].reverse();
  }
  const keyed = found.map((one) => ({ one, rank: rank(one, key, report) }));
  keyed.sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0) * (up ? 1 : -1));
  return keyed.map((item) => item.one);
}
function rank(one, key, report) {
  switch (key) {
    case "kind":
      return one.kind + over(one);
    case "result":
      return one.shape.reduce((product2, dim) => product2 * dim, 1);
    case "sends":
      return weight(one);
    case "asked":
      return cause(one);
    default: {
      const place3 = home(one, report);
      return place3 ? place3.source * 1e7 + place3.line : Infinity;
    }
  }
}
var COLUMNS = [
  ["kind", "collective"],
  ["result", "result"],
  ["sends", "sends"],
  ["asked", "asked by, why"],
  ["line", "line"]
];
var List = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    this._shown = [...report.collectives];
    this._body = h("div", { class: "rows" });
    this._scroll = h(
      "div",
      {
        class: "scroll",
        role: "listbox",
        tabindex: 0,
        ...OWN_KEYS,
        "aria-label": "Collectives",
        on: {
          scroll: () => this._scrolled(),
          keydown: (event) => this._key(event),
          pointerleave: () => store.set({ pointed: null })
        }
      },
      this._body
    );
    this._count = h("span", { class: "faint", "aria-live": "polite" });
    const many = report.collectives.length > FEW;
    this.element = h(
      "div",
      { class: "list" },
      many && this._filters(),
      this._head(),
      this._scroll
    );
    this._update();
    store.subscribe((_, changed) => changed.has("chosen") && this._follow());
    whenSeen(this._scroll, () => this._follow());
  }
  report;
  store;
  element;
  _filters() {
    const { collectives } = this.report;
    const most = Math.max(...collectives.map(weight));
    const steps2 = STEPS2.filter((step2) => step2 <= most);
    return h(
      "div",
      { class: "filters" },
      this._select("kind", distinct(collectives.map((one) => one.kind))),
      this._select("axis", distinct(collectives.flatMap((one) => (one.axes ?? []).map(wholeAxis)))),
      this._select("asked", distinct(collectives.map(asked)), "asked by"),
      this._select("least", steps2.map(String), "sends at least", (step2) => size(Number(step2))),
      this._count
    );
  }
  _select(key, options, label3 = key, write = String) {
    const choices2 = options.map((option) => h("option", { value: option }, write(option)));
    const change2 = (event) => {
      const { value: value2 } = event.target;
      this._filter = { ...this._filter, [key]: key === "least" ? Number(value2) : value2 };
      this._update();
    };
    const any = h("option", { value: "" }, "any");
    const select2 = h("select", { on: { change: change2 }, "aria-label": label3, ...OWN_KEYS }, any, ...choices2);
    return h("label", { class: "filter" }, `${label3} `, select2);
  }
  _head() {
    const buttons = COLUMNS.map(([key, label3]) => {
      const click = () => this._sortBy(key);
      const button2 = h("button", { type: "button", class: "sort", on: { click } }, label3);
      this._buttons.set(key, button2);
      return button2;
    });
    return h("div", { class: "row head" }, ...buttons);
  }
  /** Sort by a column: first the way that is mostly wanted, then the other, then as it was. */
  _sortBy(key) {
    const first = key !== "sends" && key !== "result";
    if (this._sort.key !== key) {
      this._sort = { key, up: first };
    } else if (this._sort.up === first) {
      this._sort = { key, up: !first };
    } else {
      this._sort = { key: "order", up: true };
    }
    this._update();
  }
  _update() {
    const { key, up } = this._sort;
    const found = this.report.collectives.filter((one) => passes(one, this._filter));
    this._shown = sorted(found, key, up, this.report);
    this._buttons.forEach((button2, column) => {
      button2.setAttribute("aria-pressed", String(column === key));
      const arrow = column === key ? up ? " ↑" : " ↓" : "";
      button2.textContent = `${COLUMNS.find(([name]) => name === column)?.[1]}${arrow}`;
    });
    const least = unknown(found) ? "at least " : "";
    const all = count(this.report.collectives.length, "collective");
    const sum = `${least}${size(sent(found))}`;
    this._count.textContent = `${grouped(found.length)} of ${all}, ${sum} a run`;
    this._body.style.height = `${this._shown.length * ROW}px`;
    this._scroll.style.height = `${Math.min(SEEN, Math.max(1, this._shown.length)) * ROW}px`;
    this._scroll.scrollTop = this._top = 0;
    this._drawn = [-1, -1];
    this._draw();
  }
  _scrolled() {
    this._top = this._scroll.scrollTop;
    this._draw();
  }
  /** Draw the rows that are seen, and a few around them. */
  _draw() {
    const first = Math.max(0, Math.floor(this._top / ROW) - 2);
    const last = Math.min(this._shown.length, first + SEEN + 5);
    if (first === this._drawn[0] && last === this._drawn[1]) {
      return;
    }
    this._drawn = [first, last];
    const rows2 = this._shown.slice(first, last).map((one, i) => this._row(one, first + i));
    this._body.replaceChildren(...rows2.length ? rows2 : [h("div", { class: "faint" }, "none")]);
    this._choose();
  }
  _row(one, index) {
    const place3 = home(one, this.report);
    const row2 = h(
      "div",
      {
        class: "row",
        role: "option",
        id: `${this._id}-${one.id}`,
        "aria-setsize": this._shown.length,
        "aria-posinset": index + 1,
        on: {
          click: () => this.store.set({ chosen: one }),
          pointerenter: () => this.store.set({ pointed: one })
        }
      },
      h("code", { class: "mono" }, one.kind + over(one)),
      h("code", { class: "mono" }, array(one)),
      h("span", null, size(one.wire_bytes) + trips(one)),
      h("span", null, chip(one)),
      h("span", { class: "place" }, place3 ? String(place3.line) : "?")
    );
    row2.style.top = `${index * ROW}px`;
    if (place3 && place3.source > 0) {
      row2.lastElementChild?.setAttribute("title", at(place3, this.report));
    }
    return row2;
  }
  _key(event) {
    const at3 = this._shown.indexOf(this.store.focus.chosen);
    const moves = {
      ArrowDown: at3 + 1,
      ArrowUp: at3 - 1,
      PageDown: at3 + SEEN,
      PageUp: at3 - SEEN,
      Home: 0,
      End: this._shown.length - 1
    };
    const next = moves[event.key];
    if (next !== void 0 && this._shown.length) {
      event.preventDefault();
      event.stopPropagation();
      const index = Math.max(0, Math.min(this._shown.length - 1, next));
      this.store.set({ chosen: this._shown[index] });
    }
  }
  /** Bring the chosen row into sight. */
  _follow() {
    const index = this._shown.indexOf(this.store.focus.chosen);
    const top = index * ROW;
    const there = index >= 0 && this._scroll.isConnected;
    if (there && (top < this._top || top + ROW > this._top + SEEN * ROW)) {
      this._scroll.scrollTop = this._top = Math.max(0, top - SEEN * ROW / 2);
      this._draw();
    }
    this._choose();
  }
  _choose() {
    const { chosen } = this.store.focus;
    const id = chosen ? `${this._id}-${chosen.id}` : "";
    for (const row2 of this._body.children) {
      row2.setAttribute("aria-selected", String(row2.id === id));
    }
    this._scroll.setAttribute("aria-activedescendant", id);
  }
  _id = `shardnb-${Math.random().toString(36).slice(2)}`;
  _scroll;
  _body;
  _count;
  _buttons = /* @__PURE__ */ new Map();
  _shown;
  // Kept here, since to ask the page for it makes the browser lay everything out.
  _top = 0;
  _filter = ALL;
  _sort = { key: "order", up: true };
  _drawn = [-1, -1];
};
function distinct(items) {
  return [...new Set(items)].sort();
}

// src/view/mesh.ts
var BOX2 = { width: 316, height: 250 };
var MeshPanel = class {
  constructor(report, store) {
    this.report = report;
    this._tiles = new Tiles(BOX2, (device) => store.set({ device }));
    this._caption = h("div", { class: "caption" });
    this._title = heading("Mesh");
    this.element = h(
      "div",
      { class: "mesh" },
      this._title,
      this._tiles.element,
      this._caption
    );
    this._draw(store.focus);
    store.subscribe((focus, changed) => {
      if (changed.has("chosen") || changed.has("pointed") || changed.has("value")) {
        this._draw(focus);
      }
      this._mark(focus);
    });
  }
  report;
  element;
  _draw({ chosen, pointed, value: value2 }) {
    const collective2 = pointed ?? chosen;
    const subject = pointed ?? value2 ?? chosen;
    if (subject === this._subject) {
      return;
    }
    this._subject = subject;
    if (value2 && subject === value2) {
      this._showValue(value2);
    } else if (collective2 && subject === collective2) {
      this._showGroups(collective2);
    } else {
      this._tiles.show(meshPicture(this.report.mesh));
      this._caption.textContent = "";
    }
  }
  _showGroups(collective2) {
    const { mesh: mesh2 } = this.report;
    this._tiles.show(groupsPicture(collective2, mesh2));
    this._title.textContent = "Who exchanges";
    this._caption.textContent = `${groupsText(collective2)}${members(collective2, mesh2.device_ids)}`;
  }
  _showValue(value2) {
    const { mesh: mesh2 } = this.report;
    const layout = layoutOf(value2, mesh2);
    this._tiles.show(layout ? holdersPicture(value2, mesh2, layout) : meshPicture(mesh2));
    this._title.textContent = "Who holds what";
    const times = copies(value2, mesh2);
    const said = layout ? "by the block that each device holds" : "where it lies is not known";
    this._caption.textContent = clean(`${value2.name}: ${said}${times && `; ${times}`}`);
  }
  _mark({ chosen, pointed, value: value2, device }) {
    const { mesh: mesh2 } = this.report;
    const collective2 = pointed ?? (value2 ? null : chosen);
    if (device === null) {
      this._tiles.mark([]);
      this._tiles.say("");
      return;
    }
    this._tiles.mark([device], collective2 && together(device, collective2, this.report));
    const parts = [deviceText(device, mesh2)];
    const layout = value2 && layoutOf(value2, mesh2);
    if (collective2) {
      parts.push(exchangeText(device, collective2, mesh2));
    } else if (value2 && layout) {
      parts.push(`holds ${blockText(layout.blocks[device], value2, mesh2, layout)}`);
    }
    parts.push(besideText(device, mesh2));
    this._tiles.say(parts.filter(Boolean).join("; "));
  }
  _tiles;
  _title;
  _caption;
  _subject;
};
function together(device, collective2, report) {
  if (collective2.kind === "collective-permute") {
    return new Set(collective2.groups.filter((pair) => pair.includes(device)).flat());
  }
  const number = groupOf(collective2, report.mesh)[device];
  return number < 0 ? null : new Set(collective2.groups[number]);
}
var LISTED = 8;
function members({ groups, kind }, ids) {
  if (groups.length > LISTED || kind === "collective-permute") {
    return "";
  }
  const listed = groups.map((group) => `{${numbers(group.map((place3) => ids[place3]))}}`);
  return `: ${listed.join(" ")}`;
}

// src/view/propagation.ts
function moments(report) {
  const found = /* @__PURE__ */ new Map();
  for (const { origins } of report.values) {
    for (const { axis, steps: steps2 } of origins) {
      for (const step2 of steps2 ?? []) {
        found.set(JSON.stringify([axis, step2.number, step2.source, step2.target]), { axis, step: step2 });
      }
    }
  }
  return [...found.values()].sort((a, b) => a.step.number - b.step.number);
}
function momentText({ axis, step: step2 }, report) {
  return clean(`the split over ${axis} goes ${stepText(step2, report)}, from ${step2.source} to ${step2.target}`);
}
function valueAt(report, index, number) {
  const value2 = report.values[index];
  if (value2.spec === null || number === Infinity) {
    return value2;
  }
  const times = new Map(value2.spec.flat().map((axis) => [axis, arrival(report, index, axis)]));
  if ([...times.values()].includes(null)) {
    return null;
  }
  const spec = value2.spec.map((axes) => axes.filter((axis) => (times.get(axis) ?? 0) <= number));
  const blocks = spec.map((axes) => axes.reduce((all, axis) => all * sizeOf(axis, report.mesh), 1));
  const shard2 = value2.shape.map((size2, dim) => Math.ceil(size2 / blocks[dim]));
  return { ...value2, spec, shard_shape: shard2, propagated: null };
}
function arrival(report, index, axis) {
  const seen = /* @__PURE__ */ new Set();
  for (let at3 = index; at3 !== null && !seen.has(at3); ) {
    seen.add(at3);
    const origin2 = originOf(report.values[at3], axis);
    if (!origin2 || origin2.steps === null) {
      return null;
    }
    if (origin2.steps.length) {
      return origin2.steps[origin2.steps.length - 1].number;
    }
    [at3, axis] = [origin2.after, origin2.axis];
  }
  return 0;
}
function originOf(value2, axis) {
  const origins = value2?.origins ?? [];
  const near = origins.find((origin2) => wholeAxis(origin2.axis) === wholeAxis(axis));
  return origins.find((origin2) => origin2.axis === axis) ?? near;
}
function whyText(report, index) {
  const value2 = report.values[index];
  const start = `${value2.name} is ${valueType(value2)}${where(report, value2)}`;
  if (value2.spec === null) {
    return clean(`${start}: no mesh axes say how it lies`);
  }
  const parts = [...causes(report, index), ...value2.blocked.map(stopped)];
  if (!parts.length && !value2.spec.flat().length) {
    parts.push("every device holds all of it");
  }
  if (value2.propagated) {
    parts.push(
      `Shardy gave ${specText(value2.propagated)}, the compiled program has ${specText(value2.spec)}: the compiled program is trusted`
    );
  }
  return clean(start + (parts.length ? `: ${parts.join("; ")}` : ""));
}
function stopped({ axis, value: value2, why }) {
  return `${axis} of ${value2} was not kept: ${why}`;
}
function where(report, value2) {
  const { location, manual } = value2;
  let text = at2(report, location);
  if (location && value2.name.includes(" at line ")) {
    text = text.replace(` at line ${location.line}`, "");
  }
  const inside = manual.join(", ");
  return inside ? `${text}, one device's part inside a shard_map over ${inside}` : text;
}
function at2(report, location) {
  if (!location) {
    return "";
  }
  const source2 = location.source > 0 ? report.sources[location.source] : void 0;
  return ` at line ${location.line}${source2 ? ` of ${source2.name}` : ""}`;
}
function causes(report, index) {
  const { origins } = report.values[index];
  if (origins.length && origins.every((origin2) => origin2.kind === "type")) {
    return ["its type says so (the mesh is explicit there)"];
  }
  const said = /* @__PURE__ */ new Map();
  for (const origin2 of origins) {
    const cause2 = causeText(report, index, origin2);
    said.set(cause2, [...said.get(cause2) ?? [], origin2.axis]);
  }
  return [...said].map(([cause2, axes]) => `${axes.join(" and ")} ${cause2}`);
}
function causeText(report, index, origin2) {
  if (origin2.kind === "type") {
    return "stands in its type (explicit)";
  }
  if (origin2.kind === "unknown") {
    return "came from a place that is not known";
  }
  return `came from ${sourceText(report, origin2)}${wayText(report, index, origin2)}`;
}
function sourceText(report, { kind, name, location }) {
  switch (kind) {
    case "constraint":
      return `the constraint ${name}${at2(report, location)}`;
    case "output":
      return `the spec of the output ${name}`;
    case "shard_map":
      return `the specs of the shard_map${at2(report, location)}`;
    default:
      return name;
  }
}
function wayText(report, index, origin2) {
  const steps2 = chain2(report, index, origin2.axis);
  if (steps2 === null) {
    return " (along which ops is not known)";
  }
  const said = steps2.map((step2) => stepText(step2, report));
  if (said.length > 6) {
    said.splice(2, said.length - 4, `${said.length - 4} more ops`);
  }
  return said.map((step2) => `, ${step2}`).join("");
}
function stepText(step2, report) {
  const beside = step2.direction === "sideways" ? " (to its other operand)" : "";
  return `${step2.direction} through ${step2.op}${at2(report, step2.location)}${beside}`;
}
function chain2(report, index, axis) {
  let steps2 = [];
  const seen = /* @__PURE__ */ new Set();
  for (let place3 = index; place3 !== null && !seen.has(place3); ) {
    seen.add(place3);
    const origin2 = originOf(report.values[place3], axis);
    if (!origin2 || origin2.steps === null) {
      return null;
    }
    steps2 = [...origin2.steps, ...steps2];
    [place3, axis] = [origin2.after, origin2.axis];
  }
  return steps2;
}

// src/view/spread.ts
var Spread = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    this._moments = moments(report);
    this._now = this._moments.length;
    this._label = h("span", { class: "caption", "aria-live": "polite" });
    this._slider = h("input", {
      type: "range",
      ...OWN_KEYS,
      class: "slider",
      min: 0,
      max: this._moments.length,
      "aria-label": "Step through the propagation of placements",
      on: { input: () => this._go(Number(this._slider.value)) }
    });
    const rows2 = report.values.map((value2, i) => this._row(value2, i));
    this._stage = h("div", { class: "stage" });
    this.element = h(
      "div",
      { class: "arrays" },
      heading("Arrays inside the program"),
      this._moments.length > 0 && this._stepper(),
      h("div", { class: "main spread" }, h("div", { class: "values" }, ...rows2), this._stage)
    );
    this._go(this._now);
  }
  report;
  store;
  element;
  _stepper() {
    const step2 = (text, name, by) => {
      const click = () => this._go(this._now + by);
      return h("button", { type: "button", "aria-label": name, on: { click } }, text);
    };
    return h(
      "div",
      { class: "stepper" },
      step2("←", "step back", -1),
      this._slider,
      step2("→", "step on", 1),
      this._label
    );
  }
  _row(value2, index) {
    const type = h("code", { class: "mono" });
    const where2 = value2.location ? at(value2.location, this.report).replace(/^at /, "") : "";
    const row2 = h(
      "button",
      { type: "button", class: "value", on: { click: () => this._choose(index) } },
      h("b", null, clean(value2.name)),
      type,
      h("span", { class: "faint" }, value2.name.includes(" at line ") ? "" : where2)
    );
    this._rows.push({ row: row2, type });
    return row2;
  }
  /** Show the placements as they were after so many steps. */
  _go(now) {
    this._now = Math.max(0, Math.min(this._moments.length, now));
    this._slider.value = String(this._now);
    const last = this._moments[this._now - 1];
    this._label.textContent = this._told(last);
    this._rows.forEach(({ row: row2, type }, index) => {
      const value2 = this._valueNow(index);
      type.textContent = value2 ? valueType(value2) : "not known when";
      row2.toggleAttribute("data-marked", this._moving(last, index));
    });
    this._draw();
  }
  _told(last) {
    const all = this._moments.length;
    const start = "before the first step: what inputs, outputs and constraints say";
    return last ? `step ${this._now} of ${all}: ${momentText(last, this.report)}` : start;
  }
  _moving(last, index) {
    return last !== void 0 && last.step.target === this.report.values[index].name;
  }
  /** Give a value at the present step; after the last one, as the compiled program has it. */
  _valueNow(index) {
    const last = this._now === this._moments.length;
    return valueAt(this.report, index, last ? Infinity : this._number());
  }
  _number() {
    return this._now > 0 ? this._moments[this._now - 1].step.number : 0;
  }
  _choose(index) {
    this._chosen = index;
    this._draw();
    this.store.set({ value: this._valueNow(index) });
  }
  _draw() {
    const value2 = this._valueNow(this._chosen);
    const why = h("p", { class: "why" }, whyText(this.report, this._chosen));
    this._card?.dispose();
    this._card = value2 && new Card("", value2, this.report, this.store);
    this._stage.replaceChildren(...this._card ? [this._card.element, why] : [why]);
    this._rows.forEach(({ row: row2 }, index) => {
      row2.setAttribute("aria-pressed", String(index === this._chosen));
    });
  }
  _moments;
  _slider;
  _label;
  _stage;
  _rows = [];
  _card = null;
  _now;
  _chosen = 0;
};

// src/view/store.ts
var Store = class {
  focus = { chosen: null, pointed: null, value: null, device: null };
  /** Change the focus; listeners hear of it in the next frame. */
  set(patch) {
    for (const key of Object.keys(patch)) {
      if (this.focus[key] !== patch[key]) {
        this._changed.add(key);
      }
    }
    Object.assign(this.focus, patch);
    if (this._changed.size && !this._frame) {
      this._frame = requestAnimationFrame(() => this.flush());
    }
  }
  /** Tell the listeners now. */
  flush() {
    cancelAnimationFrame(this._frame);
    this._frame = 0;
    const changed = this._changed;
    this._changed = /* @__PURE__ */ new Set();
    if (changed.size) {
      this._listeners.forEach((listener) => listener(this.focus, changed));
    }
  }
  /** Hear of changes; gives the way to hear no more of them. */
  subscribe(listener) {
    this._listeners.push(listener);
    return () => {
      this._listeners = this._listeners.filter((one) => one !== listener);
    };
  }
  dispose() {
    cancelAnimationFrame(this._frame);
    this._listeners = [];
  }
  _changed = /* @__PURE__ */ new Set();
  _listeners = [];
  _frame = 0;
};

// src/view/typed.ts
function typed(report) {
  const body2 = h("div", { class: "typed" });
  const open = () => {
    if (!body2.childElementCount) {
      body2.append(...rows(report));
    }
  };
  const summary2 = h("summary", null, "The placement in each line's types");
  return h("details", { on: { toggle: open } }, summary2, body2);
}
function rows(report) {
  let last = null;
  return report.typed.flatMap((line2) => {
    const place3 = line2.location;
    const key = place3 ? `${place3.source}:${place3.line}` : "";
    const known = key === last;
    last = key;
    const head3 = place3 && !known ? [own(report, place3.source, place3.line)] : [];
    return [...head3, equation(line2)];
  });
}
function own(report, index, number) {
  const source2 = report.sources[index];
  const text = source2?.text.split("\n")[number - source2.first_line] ?? "";
  const name = index && source2 ? `   (${clean(source2.name)})` : "";
  return h("pre", { class: "raw" }, h("b", null, `${number}  ${clean(text)}${name}`));
}
function equation(line2) {
  const mark = line2.inserted ? h("span", { class: "chip" }, "inserted by JAX") : null;
  return h("pre", { class: "raw" }, `    ${clean(lineText(line2))}  `, mark);
}
function lineText(line2) {
  const binds = line2.binds.map((bind) => `${bind.name}:${bind.type}`).join(" ");
  const indent = "    ".repeat(line2.within.length);
  if (!line2.primitive) {
    return `${indent}lambda ${binds}`;
  }
  const call = line2.parameters ? `${line2.primitive}[${line2.parameters}]` : line2.primitive;
  return `${indent}${binds} = ${[call, ...line2.operands].join(" ")}`;
}

// src/view/view.ts
function mountReport(host, report) {
  return attempt(host, () => report);
}
function attempt(host, read) {
  const root = h("div", { class: "report" });
  host.replaceChildren(root);
  try {
    return draw(root, read());
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    root.replaceChildren(h("div", { class: "error", role: "alert" }, clean(text)));
    return { choose: () => void 0, dispose: () => root.remove() };
  }
}
function draw(root, report) {
  const store = new Store();
  const { collectives } = report;
  root.append(
    head2(report),
    ...sending2(report, store),
    arrays(report, store),
    ...report.values.length ? [new Spread(report, store).element] : [],
    facts(report, store),
    ...report.typed.length ? [typed(report)] : [],
    ...Object.entries(report.texts).map(([name, text]) => program(name, text))
  );
  store.set({ chosen: heaviest(collectives) });
  store.flush();
  return {
    choose: (id) => {
      store.set({ chosen: collectives.find((one) => one.id === id) ?? store.focus.chosen });
      store.flush();
    },
    dispose: () => {
      store.dispose();
      root.remove();
    }
  };
}
function head2(report) {
  const [first, ...others] = header(report);
  return h("div", { class: "header" }, h("b", null, first), ...others.map((part) => h("span", null, part)));
}
function sending2(report, store) {
  return [
    new Code(report, store).element,
    h("div", { class: "summary" }, summary(report)),
    ...report.collectives.length > 1 ? [new List(report, store).element] : [],
    h(
      "div",
      { class: "main" },
      new Detail(report, store).element,
      new MeshPanel(report, store).element
    )
  ];
}
function heaviest(collectives) {
  return collectives.reduce(
    (most, one) => most && weight(most) >= weight(one) ? most : one,
    null
  );
}
function facts(report, store) {
  const rows2 = [fact("memory", memory(report.memory, report.outputs.length))];
  if (report.cost) {
    const assumed = report.cost.assumptions.map((one) => `- ${one}`).join("\n");
    const more = assumed ? folded("what is assumed", assumed) : null;
    rows2.push(fact("time", h("div", null, bound(report.cost), more)));
  }
  report.findings.forEach((one) => rows2.push(fact("finding", finding2(one, report, store))));
  report.notes.forEach((note) => rows2.push(fact("note", h("span", null, clean(note)))));
  const said = about(report).join(" ");
  if (said) {
    rows2.push(fact("about", h("span", { class: "faint" }, said)));
  }
  return h("dl", { class: "facts" }, ...rows2.flat());
}
function fact(label3, body2) {
  return [h("dt", null, label3), h("dd", null, body2)];
}
var PARTS2 = ["arguments", "outputs", "temporaries"];
function memory(held, outputs) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  for (const part of PARTS2) {
    const piece = h("span", { class: `part ${part}`, title: `${part} ${size(held?.[part] ?? 0)}` });
    piece.style.flexGrow = String(held?.[part] ?? 0);
    bar.append(piece);
  }
  const words = memoryText(held, outputs).split(", ");
  const parts = words.map(
    (text, i) => h("span", null, held && h("span", { class: `swatch ${PARTS2[i]}` }), text + (words[i + 1] ? ", " : ""))
  );
  return h("div", null, ...parts, held && bar);
}
function finding2(one, report, store) {
  const place3 = one.location ? ` ${at(one.location, report)}` : "";
  const price = one.wasted_bytes === null ? "" : `  (${size(one.wasted_bytes)} wasted)`;
  return h(
    "div",
    null,
    h("b", null, `${clean(one.kind)}${place3}`),
    `: ${clean(one.message)}${price}`,
    one.values.length ? h("div", { class: "cards" }, ...one.values.map((value2) => new Card("", value2, report, store).element)) : null,
    one.details ? folded("details", one.details) : null
  );
}
function program(name, text) {
  const lines = count(text.split("\n").length, "line");
  return folded(`${clean(name)} program, ${lines}, ${size(text.length)}`, text);
}
function folded(title, text) {
  const body2 = h("pre", { class: "raw" });
  const open = () => {
    body2.textContent ||= text.split("\n").map(clean).join("\n");
  };
  return h("details", { on: { toggle: open } }, h("summary", null, title), body2);
}

// src/widget/model.ts
function copyOf(data) {
  return JSON.parse(JSON.stringify(data));
}

// src/widget/choices.ts
function choices(axes, size2) {
  const most = axes.length <= 3 ? axes.length : 2;
  const found = [[]];
  for (let i = 0; i < found.length; i++) {
    if (found[i].length < most) {
      found.push(...axes.filter((axis) => !found[i].includes(axis)).map((axis) => [...found[i], axis]));
    }
  }
  return found.map((chosen) => ({ axes: chosen.map((axis) => axis.name), label: label2(chosen, size2) }));
}
function label2(chosen, size2) {
  if (!chosen.length) {
    return "whole";
  }
  const parts = chosen.reduce((product2, axis) => product2 * axis.size, 1);
  const held = size2 % parts ? "does not divide" : `${size2 / parts} each`;
  return `${chosen.map((axis) => axis.name).join(", ")}: ${held}`;
}
function shapes(devices2, axes) {
  if (axes <= 1) {
    return axes === 1 ? [[devices2]] : [];
  }
  const found = [];
  for (let size2 = devices2; size2 >= 1; size2--) {
    if (devices2 % size2 === 0) {
      found.push(...shapes(devices2 / size2, axes - 1).map((rest2) => [size2, ...rest2]));
    }
  }
  return found;
}
function devices(axes) {
  return axes.reduce((product2, axis) => product2 * axis.size, 1);
}
function renamed(plan, index, name) {
  const before = plan.axes[index].name;
  const axes = plan.axes.map((axis, i) => i === index ? { ...axis, name } : axis);
  return { axes, specs: mapped(plan.specs, (one) => one === before ? name : one) };
}
function without(plan, index) {
  const gone = plan.axes[index].name;
  const axes = plan.axes.filter((_, i) => i !== index);
  return { axes, specs: mapped(plan.specs, (one) => one === gone ? null : one) };
}
var NAMES = ["data", "model", "seq", "expert", "stage"];
function extended(plan) {
  const known = plan.axes.map((axis) => axis.name);
  const name = NAMES.find((one) => !known.includes(one)) ?? `axis${known.length}`;
  return { ...copyOf(plan), axes: [...plan.axes, { name, size: 1, type: "auto" }] };
}
function mapped(specs, change2) {
  const kept = (axes) => axes.map(change2).filter((axis) => axis !== null);
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, spec.map(kept)]));
}

// src/widget/picker.ts
var MOST_AXES = 5;
var MOST_SHAPES = 120;
var SHOWN = 12;
var Picker = class {
  constructor(subject, _plan, change2) {
    this.subject = subject;
    this._plan = _plan;
    this.change = change2;
    this.element = h("div", { class: "picker" });
    this._draw();
  }
  subject;
  _plan;
  change;
  element;
  get plan() {
    return this._plan;
  }
  /** Show another plan, without telling of it. */
  show(plan) {
    this._plan = copyOf(plan);
    this._draw();
  }
  _set(plan) {
    this._plan = plan;
    this._draw();
    this.change(plan);
  }
  /** Draw all controls; the one that had the focus has it again. */
  _draw() {
    const key = document.activeElement?.getAttribute("data-key");
    const focused = this.element.contains(document.activeElement) ? key : null;
    const { inputs } = this.subject;
    const rows2 = inputs.map((input, i) => this._input(input, i));
    const rest2 = rows2.slice(SHOWN);
    const more = h(
      "details",
      { hidden: !rest2.length, open: this._open },
      h("summary", null, `and ${count(rest2.length, "more input")}`),
      ...rest2
    );
    more.addEventListener("toggle", () => this._open = more.open);
    this.element.replaceChildren(
      h("div", { class: "axes" }, heading("Mesh"), ...this._mesh()),
      h("div", { class: "inputs" }, heading("Where the inputs lie"), ...rows2.slice(0, SHOWN), more)
    );
    if (focused) {
      const found = [...this.element.querySelectorAll("[data-key]")];
      found.find((one) => one.getAttribute("data-key") === focused)?.focus();
    }
  }
  _mesh() {
    const { axes } = this._plan;
    const add = h("button", { type: "button", "data-key": "add", disabled: axes.length >= MOST_AXES }, "add axis");
    add.addEventListener("click", () => this._set(extended(this._plan)));
    return [
      ...axes.map((_, i) => this._axis(i)),
      h(
        "div",
        { class: "axis" },
        h("span", null, `= ${count(devices(axes), "device")}`),
        this._shapes(),
        add
      )
    ];
  }
  _axis(index) {
    const axis = this._plan.axes[index];
    const said = clean(axis.name);
    const name = h("input", {
      type: "text",
      class: "field name",
      value: axis.name,
      "data-key": `name${index}`,
      "aria-label": `name of axis ${index + 1}`,
      on: entered(() => this._rename(index, name.value.trim()))
    });
    const size2 = h("input", {
      type: "number",
      class: "field size",
      min: 1,
      value: axis.size,
      "data-key": `size${index}`,
      "aria-label": `devices along ${said}`,
      on: entered(() => this._resize(index, Number(size2.value)))
    });
    const type = select(this.subject.types, axis.type, `type${index}`, `type of axis ${said}`, (chosen) => {
      const plan = copyOf(this._plan);
      plan.axes[index].type = this.subject.types[chosen];
      this._set(plan);
    });
    const gone = h("button", {
      type: "button",
      "data-key": `gone${index}`,
      disabled: this._plan.axes.length < 2,
      "aria-label": `remove axis ${said}`,
      on: { click: () => this._set(without(this._plan, index)) }
    }, "×");
    return h("div", { class: "axis" }, name, " = ", size2, type, gone);
  }
  _rename(index, name) {
    if (name !== this._plan.axes[index]?.name) {
      this._set(renamed(this._plan, index, name));
    }
  }
  _resize(index, size2) {
    const plan = copyOf(this._plan);
    const whole = Math.max(1, Math.floor(size2) || 1);
    if (plan.axes[index] && plan.axes[index].size !== whole) {
      plan.axes[index].size = whole;
      this._set(plan);
    }
  }
  /** The ways to lay the same devices out. */
  _shapes() {
    const { axes } = this._plan;
    const found = shapes(devices(axes), axes.length).slice(0, MOST_SHAPES);
    if (found.length < 2) {
      return null;
    }
    const texts = found.map((sizes) => sizes.join(" x "));
    const now = axes.map((axis) => axis.size).join(" x ");
    return select(texts, now, "shape", "shape of the mesh", (chosen) => {
      const plan = copyOf(this._plan);
      plan.axes.forEach((axis, i) => axis.size = found[chosen][i]);
      this._set(plan);
    });
  }
  _input(input, number) {
    const spec = this._plan.specs[input.names[0]] ?? input.shape.map(() => []);
    const said = h("span", { class: "faint" }, clean(specText(spec)));
    const dims3 = input.shape.map((size2, dim) => {
      const found = choices(this._plan.axes, size2);
      const now = found.find((one) => JSON.stringify(one.axes) === JSON.stringify(spec[dim]));
      const name = `${clean(input.label)}, dimension ${dim} of ${size2}`;
      const labels = found.map((one) => one.label);
      const pick = select(labels, now?.label ?? "", `spec${number}:${dim}`, name, (chosen) => {
        this._place(input, dim, found[chosen].axes);
        said.textContent = clean(specText(this._plan.specs[input.names[0]]));
      });
      return dimension(dim, size2, pick);
    });
    return h(
      "div",
      { class: "input" },
      h(
        "div",
        { class: "what" },
        h("b", null, clean(input.label)),
        " ",
        mono(clean(`${input.dtype}[${input.shape.join(", ")}]`)),
        " ",
        said
      ),
      h("div", { class: "dims" }, ...dims3.length ? dims3 : [h("span", { class: "faint" }, "scalar")])
    );
  }
  /** Change a spec; the controls stay as they are, since what there is to choose does not change. */
  _place(input, dim, axes) {
    this._plan = copyOf(this._plan);
    for (const name of input.names) {
      this._plan.specs[name][dim] = axes;
    }
    this.change(this._plan);
  }
  _open = false;
};
function dimension(dim, size2, control) {
  const label3 = h("span", { class: "faint" }, `dim ${dim} (${size2})`);
  return h("label", { class: "dim" }, label3, " ", control);
}
function entered(call) {
  const keydown = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      call();
    }
  };
  return { change: call, keydown };
}
function select(options, now, key, name, call) {
  const list2 = h(
    "select",
    { "data-key": key, "aria-label": name, on: { change: () => call(list2.selectedIndex) } },
    ...options.map((option) => h("option", { selected: option === now }, option))
  );
  return list2;
}

// src/widget/check.ts
function check(model, root) {
  const view = new Check(model, root);
  return () => view.dispose();
}
var Check = class {
  constructor(model, root) {
    this.model = model;
    this._picks = copyOf(model.get("pick"));
    root.append(this._head, this._pickers(), this._body);
    model.on("change:data", this._came);
    this._draw();
  }
  model;
  dispose() {
    this.model.off("change:data", this._came);
    this._view?.dispose();
  }
  _came = () => this._draw();
  _pickers() {
    const { axes, inputs, outputs } = this._picks;
    if (!inputs?.length) {
      return h("div");
    }
    const compile = h("button", { type: "button", on: { click: () => this._ask("compile") } }, "compile it");
    const rows2 = (part, picks) => picks.map((pick, i) => this._row(pick, axes, `${part}${i}`));
    return h(
      "div",
      { class: "picker even" },
      h("div", { class: "inputs" }, heading("in_specs"), ...rows2("in", inputs)),
      h("div", { class: "inputs" }, heading("out_specs"), ...rows2("out", outputs ?? []), compile)
    );
  }
  _row(pick, axes, key) {
    const spec = h("span", { class: "faint" }, clean(specText(pick.spec)));
    const inside = key.startsWith("out");
    const dims3 = pick.shape.map((size2, dim) => {
      const found = inside ? joined(axes, size2) : choices(axes, size2);
      const now = found.find((one) => JSON.stringify(one.axes) === JSON.stringify(pick.spec[dim]));
      const name = `${clean(pick.name)}, dimension ${dim} of ${size2}`;
      const labels = found.map((one) => one.label);
      const list2 = select(labels, now?.label ?? "", `${key}:${dim}`, name, (chosen) => {
        pick.spec[dim] = found[chosen].axes;
        spec.textContent = clean(specText(pick.spec));
        this._ask("check");
      });
      return dimension(dim, size2, list2);
    });
    return h(
      "div",
      { class: "input" },
      h("div", { class: "what" }, h("b", null, clean(pick.name)), " ", spec),
      h("div", { class: "dims" }, ...dims3)
    );
  }
  _ask(kind) {
    this._number += 1;
    const specs = (picks = []) => picks.map((pick) => pick.spec);
    const { inputs, outputs } = this._picks;
    this.model.send({ kind, number: this._number, inputs: specs(inputs), outputs: specs(outputs) });
    this._body.toggleAttribute("data-stale", true);
  }
  _draw() {
    const found = this.model.get("data");
    if (found.number < this._number) {
      return;
    }
    this._body.toggleAttribute("data-stale", false);
    const verdict = found.accepted ? "accepted" : "refused";
    const said = found.accepted ? "JAX accepts this shard_map" : `JAX refuses this shard_map: ${clean(found.error)}`;
    this._head.replaceChildren(
      h("b", null, clean(meshText(found.mesh))),
      h("span", { class: "chip", "data-kind": verdict }, verdict),
      h("span", { role: "status" }, said)
    );
    this._body.replaceChildren(
      ...found.failed ? [h("div", { class: "error", role: "alert" }, clean(found.failed))] : [],
      ...missing(found),
      shards(found),
      body(found),
      steps(found),
      ...message(found),
      ...this._compiled(found)
    );
  }
  /** The compiled program of an accepted one. */
  _compiled(found) {
    this._view?.dispose();
    this._view = null;
    if (!found.report) {
      return [];
    }
    const report = readReport(JSON.parse(found.report));
    const place3 = h("div");
    const open = () => {
      this._view ??= mountReport(place3, report);
    };
    const title = h("summary", null, "The compiled program");
    const region = found.region && h("p", null, mono(clean(found.region)));
    return [h("details", { on: { toggle: open } }, title, region || null, place3)];
  }
  _picks;
  _head = h("div", { class: "header" });
  _body = h("div", { class: "sent" });
  _view = null;
  _number = 0;
};
function joined(axes, size2) {
  const parts = (names) => names.reduce((all, name) => all * (axes.find((axis) => axis.name === name)?.size ?? 1), 1);
  return choices(axes, 0).map((one) => ({
    axes: one.axes,
    label: one.axes.length ? `${one.axes.join(", ")}: ${size2 * parts(one.axes)} in all` : "as it is"
  }));
}
function missing(found) {
  const parts = [...found.missing, ...found.problems.map((one) => ({ why: one.message, fix: one.fix, other_fix: "" }))];
  return parts.map(
    ({ why, fix, other_fix: other }) => h(
      "div",
      { class: "fix" },
      h("div", null, clean(why)),
      ...[fix, other].filter(Boolean).map(
        (text, i) => h("div", null, i ? "or " : "write ", mono(clean(text)), " ", copier(text))
      )
    )
  );
}
function shards(found) {
  const cells = (shard2, role) => row("td", [role, clean(shard2.name), clean(shard2.spec), dims2(shard2.shape), dims2(shard2.local_shape), varies(shard2.varying)]);
  return h(
    "div",
    { class: "pins" },
    heading("Arrays: whole, and as the body of one device sees them"),
    h(
      "table",
      { class: "wholes" },
      h("thead", null, row("th", ["", "array", "spec", "whole", "one device", "may differ along"])),
      h(
        "tbody",
        null,
        ...found.inputs.map((one) => cells(one, "in")),
        ...found.outputs.map((one) => cells(one, "out"))
      )
    )
  );
}
function row(tag, texts) {
  return h("tr", null, ...texts.map((text) => h(tag, null, text)));
}
function dims2(shape) {
  return shape ? `[${shape.join(", ")}]` : "not known";
}
function varies(axes) {
  return axes.length ? clean(axes.join(", ")) : "none: the same everywhere";
}
function body(found) {
  let last = "";
  const items = [];
  for (const line2 of found.lines) {
    const place3 = line2.location && `${line2.location.source}:${line2.location.line}`;
    if (place3 && place3 !== last && line2.location) {
      last = place3;
      items.push(source(found, line2.location));
    }
    items.push(...line2.binds.map((bind) => bound2(line2, bind)));
  }
  return h("div", { hidden: !items.length }, heading("What may differ, line by line"), h("ol", { class: "lines" }, ...items));
}
function source(found, { source: at3, line: line2 }) {
  const text = found.sources[at3];
  const said = text ? text.text.split("\n")[line2 - text.first_line] ?? "" : "";
  return h(
    "li",
    { class: "line" },
    h("span", { class: "number", "aria-hidden": "true" }, String(line2)),
    h("code", { class: "text" }, h("b", null, clean(said)))
  );
}
function bound2(line2, bind) {
  const call = line2.primitive ? ` = ${line2.primitive} ${line2.operands.join(" ")}` : "";
  const note = line2.inserted ? "  (inserted by JAX)" : "";
  const type = bind.type.replace(/\{.*\}$/, "");
  return h(
    "li",
    { class: "line" },
    h("span", { class: "number" }, ""),
    h("code", { class: "text" }, clean(`    ${bind.name}: ${type}${call}${note}`)),
    h("span", { class: "chip", "data-kind": bind.varying.length ? "varies" : "same" }, varies(bind.varying))
  );
}
var MARKS = /* @__PURE__ */ new Map([
  [true, "ok"],
  [false, "no"],
  [null, "not reached"]
]);
function steps(found) {
  const items = found.steps.map(({ name, passed, message: message2 }) => {
    const kind = passed ? "accepted" : passed === null ? "open" : "refused";
    return h(
      "div",
      { class: "step" },
      h("span", { class: "chip", "data-kind": kind }, MARKS.get(passed) ?? ""),
      h("span", null, clean(name) + (message2 ? `: ${clean(message2)}` : ""))
    );
  });
  return h("div", null, heading("The checks, in order"), ...items);
}
function message(found) {
  if (!found.message) {
    return [];
  }
  const text = found.message.split("\n").map(clean).join("\n");
  return [h("details", null, h("summary", null, `JAX's own words: ${clean(found.error)}`), h("pre", { class: "raw" }, text))];
}

// src/widget/pins.ts
var COLUMNS2 = [
  {
    name: "memory a device",
    value: (pin) => pin.memory,
    text: (pin) => pin.memory === null ? "not known" : size(pin.memory)
  },
  {
    name: "sends a run",
    value: (pin) => pin.untold ? null : pin.wire_bytes,
    text: (pin) => (pin.untold ? "at least " : "") + size(pin.wire_bytes)
  },
  {
    name: "seconds sending",
    value: (pin) => pin.seconds,
    text: (pin) => pin.seconds === null ? "not known" : seconds(pin.seconds)
  },
  { name: "collectives", value: (pin) => total2(pin), text: (pin) => kinds(pin) }
];
function table2(pins, show, drop) {
  const columns = COLUMNS2.filter((one) => one.name !== "seconds sending" || pins.some((pin) => pin.seconds !== null));
  const least = columns.map((one) => {
    const known = pins.map(one.value).filter((value2) => value2 !== null);
    return known.length > 1 && new Set(known).size > 1 ? Math.min(...known) : null;
  });
  const head3 = h(
    "tr",
    null,
    h("th", { scope: "col" }, "plan"),
    ...columns.map((one) => h("th", { scope: "col" }, one.name)),
    h("th", { scope: "col" }, h("span", { class: "unseen" }, "what to do"))
  );
  const rows2 = pins.map(
    (pin, index) => h(
      "tr",
      null,
      h("td", null, mono(planText(pin))),
      ...columns.map(
        (one, i) => h(
          "td",
          null,
          one.text(pin),
          least[i] !== null && one.value(pin) === least[i] && h("span", { class: "least" }, "least")
        )
      ),
      h("td", { class: "do" }, pin.plan && act("show", () => show(index)), act("unpin", () => drop(index)))
    )
  );
  return h(
    "div",
    { class: "pins", hidden: !pins.length },
    heading("Pinned plans"),
    h("table", null, h("thead", null, head3), h("tbody", null, ...rows2))
  );
}
function act(text, click) {
  return h("button", { type: "button", on: { click } }, text);
}
function planText(pin) {
  if (!pin.plan) {
    return clean(pin.title);
  }
  const mesh2 = pin.plan.axes.map(
    ({ name, size: size2, type }) => `${name}=${size2}${type === "auto" ? "" : `:${type}`}`
  );
  const specs = Object.entries(pin.plan.specs).filter(([, spec]) => spec.some((axes) => axes.length)).map(([name, spec]) => `${name}=${specText(spec)}`);
  return clean([mesh2.join(","), ...specs.length ? specs : ["all whole"]].join("  "));
}
function total2(pin) {
  return Object.values(pin.kinds).reduce((sum, number) => sum + number, 0);
}
function kinds(pin) {
  const parts = Object.entries(pin.kinds).map(
    ([kind, number]) => `${grouped(number)} ${clean(number === 1 ? kind : plural(kind))}`
  );
  return parts.join(", ") || "none";
}

// src/widget/predict.ts
var NOTHING2 = "nothing";
var KINDS = [
  NOTHING2,
  "all-reduce",
  "all-gather",
  "reduce-scatter",
  "all-to-all",
  "collective-permute"
];
var MOST2 = 20;
function questions(report) {
  const seen = /* @__PURE__ */ new Set();
  const found = [];
  for (const one of report.collectives) {
    const place3 = home(one, report);
    const key = JSON.stringify([place3?.source, place3?.line, one.kind, one.axes]);
    if (!seen.has(key)) {
      seen.add(key);
      found.push({ line: place3?.line ?? null, text: lineText2(report, one), one, of: [1, 1] });
    }
  }
  if (!found.length) {
    return [{ line: null, text: "", one: null, of: [1, 1] }];
  }
  return found.slice(0, MOST2).map((question, i, all) => {
    const like = all.filter((other) => other.line === question.line && other.text === question.text);
    return { ...question, of: [like.indexOf(all[i]) + 1, like.length] };
  });
}
function lineText2(report, one) {
  const place3 = home(one, report);
  const source2 = place3 && report.sources[place3.source];
  return source2 ? (source2.text.split("\n")[place3.line - source2.first_line] ?? "").trim() : "";
}
function judged(one, kind, axes) {
  if (!one) {
    return { kind: kind === NOTHING2, axes: true };
  }
  const truth = new Set((one.axes ?? []).map(wholeAxis));
  const same = truth.size === axes.size && [...truth].every((axis) => axes.has(axis));
  return { kind: kind === one.kind, axes: one.axes === null || same };
}
function predict(model, root) {
  const report = readReport(JSON.parse(model.get("data")));
  const quiz = new Quiz(report, root);
  return () => quiz.dispose();
}
var Quiz = class {
  constructor(report, root) {
    this.report = report;
    this._asked = questions(report);
    this._store = new Store();
    root.append(head2(report), this._code(), arrays({ ...report, outputs: [] }, this._store), this._score, this._stage);
    this._ask();
  }
  report;
  dispose() {
    this._store.dispose();
    this._answer?.dispose();
  }
  /** The text alone: what it sends is the question. */
  _code() {
    const source2 = this.report.sources[0];
    const lines = (source2?.text ?? "").replace(/\s+$/, "").split("\n");
    const items = lines.map((text, i) => {
      const number = (source2?.first_line ?? 1) + i;
      const item = h(
        "li",
        { class: "line", value: number },
        h("span", { class: "number", "aria-hidden": "true" }, String(number)),
        h("code", { class: "text" }, clean(text) || " ")
      );
      this._lines.set(number, item);
      return item;
    });
    return h("div", { class: "code" }, h("ol", { class: "lines", "aria-label": "Source lines" }, ...items));
  }
  _ask() {
    const question = this._asked[this._now];
    this._lines.forEach((item, line2) => item.toggleAttribute("data-marked", line2 === question.line));
    const axes = /* @__PURE__ */ new Set();
    const boxes = this.report.mesh.axes.map(({ name }) => {
      const box = h("input", { type: "checkbox" });
      box.addEventListener("change", () => box.checked ? axes.add(name) : axes.delete(name));
      return h("label", { class: "dim" }, box, ` ${clean(name)}`);
    });
    let kind = NOTHING2;
    const list2 = select(KINDS, NOTHING2, "kind", "which collective", (chosen) => kind = KINDS[chosen]);
    const reveal = h("button", { type: "button", class: "play" }, "reveal");
    reveal.addEventListener("click", () => {
      reveal.disabled = list2.disabled = true;
      boxes.forEach((label3) => label3.firstChild.disabled = true);
      this._reveal(question, judged(question.one, kind, axes));
    });
    this._truth = h("div", { class: "truth", "aria-live": "polite" });
    this._stage.replaceChildren(
      heading(`Question ${this._now + 1} of ${this._asked.length}`),
      h("p", null, ...this._text(question)),
      h("div", { class: "axis" }, h("label", { class: "dim" }, "It sends ", list2), h("span", null, "over"), ...boxes, reveal),
      this._truth
    );
    this._tell();
  }
  _text({ line: line2, text, of: [number, all] }) {
    if (line2 === null) {
      return [this.report.collectives.length ? "A collective stands at no known line." : "What does this program send?"];
    }
    const which = all > 1 ? `Of the ${all} kinds of exchange there, what is number ${number}?` : "What does it send?";
    return [`Line ${line2}: `, mono(clean(text)), ` ${which}`];
  }
  _reveal({ one }, right) {
    const whole = right.kind && right.axes;
    this._right += whole ? 1 : 0;
    const verdict = whole ? "Right." : right.kind ? "The right kind, over other axes." : "Another one.";
    const said = one ? `It is ${one.kind}${over(one)}, ${count(one.groups.length, one.kind === "collective-permute" ? "pair" : "group")}.` : "Nothing: every device has what it needs.";
    this._truth.append(h("p", null, h("b", null, verdict), ` ${clean(said)}`));
    if (one) {
      this._answer?.dispose();
      this._answer = new Store();
      const detail = new Detail(this.report, this._answer);
      const mesh2 = new MeshPanel(this.report, this._answer);
      this._truth.append(h("div", { class: "main" }, detail.element, mesh2.element));
      this._answer.set({ chosen: one });
      this._answer.flush();
    }
    const last = this._now + 1 >= this._asked.length;
    const next = h("button", { type: "button" }, last ? "start again" : "next");
    next.addEventListener("click", () => {
      this._right = last ? 0 : this._right;
      this._now = last ? 0 : this._now + 1;
      this._done = last ? 0 : this._now;
      this._ask();
    });
    this._truth.append(next);
    this._done = this._now + 1;
    this._tell();
    next.focus({ preventScroll: true });
  }
  _tell() {
    this._score.hidden = !this._done;
    this._score.textContent = `${this._right} of ${this._done} right`;
  }
  _asked;
  _store;
  _score = h("div", { class: "summary" });
  _stage = h("div", { class: "quiz" });
  _lines = /* @__PURE__ */ new Map();
  _truth = h("div");
  _answer = null;
  _now = 0;
  _right = 0;
  _done = 0;
};

// src/widget/explorer.ts
var QUIET = 150;
var LATE = 3e3;
var ALONE = "This report came without its function, so that its plan cannot be changed here: sn.explore(fn, *args, mesh=...) compiles other plans.";
function explorer(model, root) {
  const view = new Explorer(model, root);
  return () => view.dispose();
}
function told(report) {
  const { memory: memory2 } = report;
  const held = memory2 && memory2.arguments + memory2.outputs + memory2.temporaries - memory2.aliased;
  return summary(report) + (held === null ? "" : `; a device holds ${size(held)}`);
}
var Explorer = class {
  constructor(model, root) {
    this.model = model;
    const subject = model.get("subject");
    const { plan } = model.get("compiled");
    this._number = Number(model.get("compiled").number ?? 0);
    this._picker = subject.inputs ? new Picker(subject, copyOf(plan), () => this._changed()) : null;
    this._pin = h("button", { type: "button", on: { click: () => this._pinned() } }, "pin this plan");
    this._stop = h("button", { type: "button", on: { click: () => this._stopped() } }, "stop");
    root.append(
      h("div", { class: "header" }, this._title, this._picker ? null : h("span", null, ALONE)),
      ...this._picker ? [this._picker.element] : [],
      this._error,
      h("div", { class: "state" }, this._chip, this._status, this._stop, this._pin),
      this._pins,
      this._grids,
      this._stale,
      this._sent,
      this._inside,
      this._codes,
      this._whole
    );
    this._title.textContent = clean(subject.title ?? "");
    for (const [event, call] of this._events) {
      model.on(event, call);
    }
    this._compiledCame();
    this._drawPins();
  }
  model;
  dispose() {
    this._events.forEach(([event, call]) => this.model.off(event, call));
    clearTimeout(this._compiling);
    clearTimeout(this._late);
    this._stores.forEach((store) => store.dispose());
    this._ends.forEach((end) => end());
  }
  _events = [
    ["change:answer", () => this._answered()],
    ["change:compiled", () => this._compiledCame()],
    ["change:pins", () => this._drawPins()]
  ];
  // What is asked
  /** Ask for a preview of the present plan; while one is on its way, the newest plan waits. */
  _changed() {
    this._number += 1;
    this._error.hidden = true;
    clearTimeout(this._compiling);
    clearTimeout(this._late);
    this._say("asked", "Asking Shardy ...");
    this._late = window.setTimeout(() => {
      this._status.textContent = "The kernel has not answered yet: it may be running a cell.";
    }, LATE);
    if (!this._waiting) {
      this._ask();
    }
  }
  _ask() {
    this._waiting = this._number;
    this._send("preview", this._number);
  }
  _send(kind, number) {
    this.model.send({ kind, number, plan: this._picker?.plan });
  }
  _stopped() {
    clearTimeout(this._compiling);
    this.model.send({ kind: "stop" });
    this._say("stopped", "Stopped. What is sent below is of the plan that was compiled last.");
  }
  _pinned() {
    this.model.send({ kind: "pin", plan: this._picker ? this._picker.plan : null });
  }
  // What is answered
  _answered() {
    const answer = this.model.get("answer");
    if (answer.number >= this._waiting) {
      this._waiting = 0;
    }
    if (answer.number < this._number) {
      this._ask();
      return;
    }
    clearTimeout(this._late);
    if (answer.kind === "refused" || answer.kind === "failed") {
      this._fail(answer.kind, answer.said);
      return;
    }
    if (answer.kind === "preview") {
      this._drawGrids(readReport(JSON.parse(answer.report)), "preview");
      this._say("preview", `Shardy's answer in ${seconds(answer.seconds)}: where arrays lie. Compiling ...`);
    } else {
      this._say("asked", `No preview: ${clean(answer.said)}. Compiling ...`);
    }
    this._sent.toggleAttribute("data-stale", true);
    this._stale.hidden = false;
    this._stale.textContent = "What is sent is still that of the plan that was compiled last.";
    this._compiling = window.setTimeout(() => this._send("compile", this._number), QUIET);
  }
  _fail(kind, said) {
    const head3 = kind === "refused" ? "This plan cannot be: " : "JAX does not compile this plan. ";
    this._error.textContent = head3 + said.split("\n").map(clean).join("\n");
    this._error.hidden = false;
    this._say("refused", "The pictures are of the plan before.");
  }
  _compiledCame() {
    const compiled = this.model.get("compiled");
    if (compiled.number >= this._waiting) {
      this._waiting = 0;
    }
    if (compiled.number < this._number) {
      if (!this._waiting) {
        this._changedMeanwhile();
      }
      return;
    }
    clearTimeout(this._late);
    if (compiled.number > this._number) {
      this._number = compiled.number;
      this._picker?.show(compiled.plan);
    }
    const report = readReport(JSON.parse(compiled.report));
    this._error.hidden = true;
    this._stale.hidden = true;
    this._drawGrids(report, "compiled");
    this._drawSent(report);
    this._drawCodes(compiled.codes);
    const differs = compiled.differs;
    const other = differs.length ? ` The preview said otherwise: ${differs.map(clean).join("; ")}.` : "";
    this._say("compiled", `${told(report)}.${other}`);
    this._pin.disabled = false;
  }
  /** An older plan was in the kernel's memory: its answer came as a compiled one. */
  _changedMeanwhile() {
    if (this._chip.textContent === "asked") {
      this._ask();
    }
  }
  // What is drawn
  _say(kind, text) {
    this._chip.textContent = kind;
    this._chip.setAttribute("data-kind", kind);
    this._status.textContent = text;
    this._stop.hidden = kind !== "preview" && kind !== "asked";
    this._pin.disabled = kind !== "compiled";
  }
  _drawGrids(report, kind) {
    const store = this._newStore(0);
    this._grids.replaceChildren(head2(report), arrays(report, store));
    const { values } = report;
    this._inside.replaceChildren(...values.length ? [new Spread(report, store).element] : []);
    [this._grids, this._inside].forEach((part) => part.setAttribute("data-kind", kind));
  }
  _drawSent(report) {
    const store = this._newStore(1);
    this._sent.replaceChildren(heading("What the compiled program sends"), ...sending2(report, store));
    this._sent.toggleAttribute("data-stale", false);
    store.set({ chosen: heaviest(report.collectives) });
    store.flush();
    this._ends.splice(0).forEach((end) => end());
    this._whole.replaceChildren(
      this._folded("Guess what each line sends, then see", (place3) => {
        const quiz = new Quiz(report, place3);
        return () => quiz.dispose();
      }),
      this._folded("The whole report of the compiled program", (place3) => {
        const view = mountReport(place3, report);
        return () => view.dispose();
      })
    );
  }
  /** What is drawn when it is opened; `draw` gives the way to end it. */
  _folded(title, draw2) {
    const place3 = h("div");
    const open = () => {
      if (!place3.hasChildNodes()) {
        this._ends.push(draw2(place3));
      }
    };
    return h("details", { on: { toggle: open } }, h("summary", null, title), place3);
  }
  _drawCodes(codes) {
    const texts = codes.map(
      ({ title: title2, text }) => h(
        "div",
        { class: "snippet" },
        h("div", null, h("b", null, clean(title2)), " ", copier(text)),
        h("pre", { class: "raw" }, text.split("\n").map(clean).join("\n"))
      )
    );
    const title = h("summary", null, "The code that gives this plan");
    this._codes.replaceChildren(...texts.length ? [h("details", null, title, ...texts)] : []);
  }
  _drawPins() {
    const pins = this.model.get("pins");
    const show = (index) => {
      const { plan } = pins[index];
      if (plan && this._picker) {
        this._picker.show(plan);
        this._changed();
      }
    };
    this._pins.replaceChildren(table2(pins, show, (index) => this.model.send({ kind: "unpin", index })));
  }
  _newStore(place3) {
    this._stores[place3]?.dispose();
    return this._stores[place3] = new Store();
  }
  _title = h("b");
  _error = h("div", { class: "error", role: "alert", hidden: true });
  _chip = h("span", { class: "chip" });
  _status = h("span", { class: "status", role: "status" });
  _grids = h("div", { class: "grids" });
  _inside = h("div", { class: "grids" });
  _stale = h("div", { class: "faint", hidden: true });
  _sent = h("div", { class: "sent" });
  _pins = h("div");
  _codes = h("div", { class: "codes" });
  _whole = h("div");
  _pin;
  _stop;
  _picker;
  _stores = [];
  _ends = [];
  _number = 0;
  _waiting = 0;
  _compiling = 0;
  _late = 0;
};

// src/widget/index.ts
var VIEWS = { check, explorer, predict };
function render({ model, el }) {
  const root = h("div", { class: "report widget", ...OWN_KEYS });
  el.replaceChildren(root);
  const draw2 = VIEWS[String(model.get("view"))];
  if (!draw2) {
    root.append(h("div", { class: "error", role: "alert" }, `no view ${clean(String(model.get("view")))}`));
    return () => root.remove();
  }
  const end = draw2(model, root);
  return () => {
    end();
    root.remove();
  };
}
var widget_default = { render };
export {
  widget_default as default
};
