// Built from labextension/src by `jlpm build`. Do not edit.

// src/generated/vocabulary.ts
var VERSION = 1;
var KINDS = {
  "all-reduce": {
    "ring": "there and back",
    "inPairs": false
  },
  "all-gather": {
    "ring": "all but its own",
    "inPairs": false
  },
  "reduce-scatter": {
    "ring": "a result for each other",
    "inPairs": false
  },
  "all-to-all": {
    "ring": "all but its own",
    "inPairs": false
  },
  "ragged-all-to-all": {
    "ring": "all but its own",
    "inPairs": false
  },
  "collective-permute": {
    "ring": "all",
    "inPairs": true
  },
  "collective-broadcast": {
    "ring": "all",
    "inPairs": false
  }
};
var ASKER_COLOURS = {
  "called": [
    "#cfe2ff",
    "#0b2e66"
  ],
  "requested": [
    "#fde7b0",
    "#4a3800"
  ],
  "inferred": [
    "#f9d2cf",
    "#651410"
  ],
  "made by the partitioner": [
    "#dcdcdc",
    "#222222"
  ],
  "asker unknown": [
    "#dcdcdc",
    "#222222"
  ]
};
var OTHER_COLOURS = [
  "#dcdcdc",
  "#222222"
];
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
var INK = "#1b1b1b";
var EMPTY = "#c8c8c8";
var SIZES = [
  [
    1024,
    "1.0 KiB"
  ],
  [
    65536,
    "64 KiB"
  ],
  [
    1048576,
    "1.0 MiB"
  ],
  [
    16777216,
    "16 MiB"
  ],
  [
    268435456,
    "256 MiB"
  ],
  [
    1073741824,
    "1.0 GiB"
  ]
];
var SHAPES = {
  "Axis": {
    "defaults": {
      "type": "auto"
    },
    "parts": {}
  },
  "Badge": {
    "defaults": {},
    "parts": {}
  },
  "Blocked": {
    "defaults": {},
    "parts": {}
  },
  "Collective": {
    "defaults": {
      "trips": 1,
      "generated": false,
      "asked_by": null,
      "reason": null,
      "why": "",
      "detail": null,
      "full_remat": false,
      "producer": null,
      "producer_spec": null,
      "producer_shape": null,
      "consumer": null,
      "needed_spec": null,
      "phase": null,
      "seconds": null,
      "fixes": null,
      "combined_with": [],
      "frames": [],
      "within": [],
      "op_name": "",
      "module": "",
      "instruction": "",
      "channel": null,
      "made_as": null,
      "algorithm": null,
      "overlap": null,
      "least_trips": 0
    },
    "parts": {
      "fixes": "Fix",
      "frames": "Location",
      "overlap": "Overlap"
    }
  },
  "Column": {
    "defaults": {
      "at": ""
    },
    "parts": {}
  },
  "Cost": {
    "defaults": {
      "compute_seconds": null,
      "memory_seconds": null,
      "by_axis": {},
      "by_phase": {},
      "links": {},
      "peak_flops": null,
      "memory_bandwidth": null,
      "assumptions": [],
      "assumed": false,
      "unpriced": 0,
      "uncounted": 0
    },
    "parts": {}
  },
  "Drawn": {
    "defaults": {
      "kept": [],
      "rest": ""
    },
    "parts": {}
  },
  "Finding": {
    "defaults": {
      "location": null,
      "wasted_bytes": null,
      "details": "",
      "values": []
    },
    "parts": {
      "location": "Location",
      "values": "Value"
    }
  },
  "Fix": {
    "defaults": {
      "location": null
    },
    "parts": {
      "location": "Location"
    }
  },
  "LedLine": {
    "defaults": {
      "marks": []
    },
    "parts": {
      "badges": "Badge",
      "marks": "Badge"
    }
  },
  "Location": {
    "defaults": {
      "function": ""
    },
    "parts": {}
  },
  "Memory": {
    "defaults": {
      "aliased": 0,
      "code": 0
    },
    "parts": {}
  },
  "Mesh": {
    "defaults": {
      "target": "cpu",
      "platform": "cpu",
      "kind": "cpu",
      "emulated": false,
      "coords": null,
      "cores": null
    },
    "parts": {
      "axes": "Axis"
    }
  },
  "Origin": {
    "defaults": {
      "name": "",
      "location": null,
      "steps": [],
      "after": null
    },
    "parts": {
      "location": "Location",
      "steps": "Step"
    }
  },
  "Overlap": {
    "defaults": {
      "ops": 0,
      "names": [],
      "cycles": null
    },
    "parts": {}
  },
  "Report": {
    "defaults": {
      "inputs": [],
      "outputs": [],
      "values": [],
      "collectives": [],
      "findings": [],
      "memory": null,
      "sources": [],
      "versions": {},
      "notes": [],
      "typed": [],
      "work": null,
      "cost": null,
      "run": {},
      "texts": {},
      "version": 1
    },
    "parts": {
      "mesh": "Mesh",
      "inputs": "Value",
      "outputs": "Value",
      "values": "Value",
      "collectives": "Collective",
      "findings": "Finding",
      "memory": "Memory",
      "sources": "Source",
      "typed": "TypedLine",
      "work": "Work",
      "cost": "Cost",
      "run": "Run"
    }
  },
  "Run": {
    "defaults": {
      "trace_seconds": null,
      "compile_seconds": null,
      "explain_seconds": null,
      "run_seconds": null
    },
    "parts": {}
  },
  "Said": {
    "defaults": {
      "cost": "",
      "assumptions": [],
      "findings": [],
      "inputs": {},
      "outputs": {},
      "lines": [],
      "arrays": {},
      "arrivals": null,
      "collectives": {}
    },
    "parts": {
      "inputs": "Drawn",
      "outputs": "Drawn",
      "lines": "LedLine",
      "arrays": "*Column",
      "arrivals": "Column",
      "collectives": "*Column"
    }
  },
  "Source": {
    "defaults": {
      "text": "",
      "first_line": 1,
      "cell_id": null
    },
    "parts": {}
  },
  "Step": {
    "defaults": {
      "location": null,
      "number": 0
    },
    "parts": {
      "location": "Location"
    }
  },
  "TypedLine": {
    "defaults": {
      "operands": [],
      "parameters": "",
      "within": [],
      "inserted": false,
      "location": null
    },
    "parts": {
      "binds": "TypedValue",
      "location": "Location"
    }
  },
  "TypedValue": {
    "defaults": {
      "varying": [],
      "unreduced": [],
      "reduced": []
    },
    "parts": {}
  },
  "Value": {
    "defaults": {
      "unreduced": [],
      "grid": null,
      "blocks": null,
      "requested": null,
      "closed_over": false,
      "location": null,
      "details": "",
      "op": "",
      "manual": [],
      "varying": null,
      "propagated": null,
      "origins": [],
      "blocked": []
    },
    "parts": {
      "location": "Location",
      "origins": "Origin",
      "blocked": "Blocked"
    }
  },
  "Work": {
    "defaults": {
      "uncounted": 0
    },
    "parts": {}
  }
};
var REPORT = {
  "notReport": "this is no report: {why}",
  "noVersion": "it has no version number",
  "tooNew": "the report has version {version}, and this view reads up to {known}: update shardnb to see it",
  "noWords": "the report was saved by an older shardnb, without the words of this view: run its cell again",
  "notObject": "{part} is not an object",
  "notList": "{part} is not a list",
  "theData": "the data",
  "aPart": "a part of it",
  "otherDevices": "its mesh of {size} places has other devices",
  "otherRank": "the array {name} has parts of another rank",
  "noGroups": "collective {id} has no groups",
  "noAxis": "its mesh has no axis {name}",
  "arrays": "Where the arrays lie",
  "values": "Arrays inside the program",
  "types": "The placement in each line's types",
  "inserted": "inserted by JAX",
  "mesh": "Mesh",
  "input": "input",
  "output": "output",
  "memory": "memory",
  "time": "time",
  "assumed": "what is assumed",
  "finding": "finding",
  "details": "details",
  "note": "note",
  "about": "about",
  "notKnown": "not known",
  "none": "none",
  "copy": "copy",
  "copied": "copied",
  "notAllowed": "not allowed",
  "sourceLines": "Source lines",
  "moreLines": [
    "and {number} more line with collectives",
    "and {number} more lines with collectives"
  ],
  "line": "line {line}",
  "lineIn": "line {line} of {source}",
  "lambda": "lambda {binds}",
  "collectives": "Collectives",
  "kind": "kind",
  "axis": "axis",
  "asked": "asked by",
  "least": "sends at least",
  "any": "any",
  "columnKind": "collective",
  "columnResult": "result",
  "columnSends": "sends",
  "columnAsked": "asked by, why",
  "columnLine": "line",
  "hint": "Point at an array: the mesh shows which block of it each device holds.",
  "sends": "sends {size}{trips}",
  "exchange": "{grouping}: {array} on each device, sends {size}{trips}",
  "calls": "How the program gets there",
  "call": "{line} in {function}",
  "inside": "inside {part}",
  "raw": "As the compiler writes it",
  "operation": "operation {name}",
  "try": "Try: ",
  "play": "Play {kind}",
  "close": "Close",
  "pause": "pause",
  "playOn": "play",
  "back": "step back",
  "on": "step on",
  "exchangeStep": "Step of the exchange",
  "before": "before the exchange",
  "beforeSums": "before: each device holds a partial sum of every block",
  "step": "step {step} of {all}: {said}",
  "lastStep": "step {step} of {all}: {said}; that is all",
  "sentEach": [
    "Each device sends {number} block, {size} in all. ",
    "Each device sends {number} blocks, {size} in all. "
  ],
  "sentA": [
    "A device sends {number} block, {size} in all. ",
    "A device sends {number} blocks, {size} in all. "
  ],
  "standFor": "{drawn} devices stand for the {all} of a group. ",
  "allGroups": "All groups do the same at once. ",
  "assumes": "This is the way that the numbers assume; the hardware may take another.",
  "swap": "pairs of devices swap the blocks that they have for each other",
  "goesOn": "the block goes on to the next device",
  "adds": "each device sends a block to the next, which adds its own part",
  "passesSum": "each device sends a copy of a finished block to the next",
  "passes": "each device sends a copy of a block to the next",
  "toPartner": "each device sends its block to its partner",
  "spread": "Step through the propagation of placements",
  "firstStep": "before the first step: what inputs, outputs and constraints say",
  "notKnownWhen": "not known when",
  "moment": "the split over {axis} goes {direction} through {op}{at}{aside}, from {source} to {target}",
  "toOther": " (to its other operand)",
  "stepAt": " at line {line}",
  "stepAtIn": " at line {line} of {source}",
  "arrowKeys": "{title}. Arrow keys move between tiles.",
  "blocks": "{array}: {number} blocks",
  "dim": "dim {dim}: {place}",
  "dimOver": "dim {dim} over {axes}",
  "dimIn": "dim {dim} in {parts}",
  "dimWhole": "dim {dim} whole",
  "nobody": "none",
  "times": "x{number}",
  "listedTimes": "{listed} (x{number})",
  "some": "{first} ... {last} ({number})",
  "someOf": "{first} ... {last}",
  "whoExchanges": "Who exchanges",
  "whoHolds": "Who holds what",
  "groups": "{name}: {grouping}",
  "groupsAlong": "{name}: {grouping} along {axes}",
  "byBlock": "{name}: by the block that each device holds",
  "byNothing": "{name}: where it lies is not known",
  "holdersTitle": "Each device by the block of {name} that it holds",
  "meshTitle": "The devices of the mesh",
  "device": "device {id}",
  "deviceAt": "device {id} ({place})",
  "chip": "at ({coords})",
  "holds": "holds {block}",
  "group": "in group {name}: {devices}",
  "noPart": "takes no part",
  "sendsTo": "sends to {devices}",
  "receives": "receives from {devices}",
  "block": [
    "{block} on device {devices}",
    "{block} on devices {devices}"
  ],
  "nowhere": "{block} on no device",
  "partial": "partial sums of {block}",
  "ownValue": "each device's own {block}",
  "beside": "next to it: {parts}",
  "both": "{one} and {other}",
  "alongAxis": "{devices} along {axis}",
  "alongDim": "{devices} along dim {dim}"
};
var WIDGETS = {
  "noView": "no view {name}",
  "inputs": "Where the inputs lie",
  "moreInputs": [
    "and {number} more input",
    "and {number} more inputs"
  ],
  "devices": [
    "= {number} device",
    "= {number} devices"
  ],
  "addAxis": "add axis",
  "axisName": "name of axis {number}",
  "axisSize": "devices along {axis}",
  "axisType": "type of axis {axis}",
  "axisRemove": "remove axis {axis}",
  "meshShape": "shape of the mesh",
  "dimension": "{name}, dimension {dim} of {size}",
  "dim": "dim {dim} ({size})",
  "scalar": "scalar",
  "whole": "whole",
  "splitOver": "{axes}: {size} each",
  "doesNotDivide": "{axes}: does not divide",
  "alone": "This report came without its function, so that its plan cannot be changed here: sn.explore(fn, *args, mesh=...) compiles other plans.",
  "pin": "pin this plan",
  "stop": "stop",
  "stateAsked": "asked",
  "statePreview": "preview",
  "stateCompiled": "compiled",
  "stateRefused": "refused",
  "stateStopped": "stopped",
  "asking": "Asking Shardy ...",
  "late": "The kernel has not answered yet: it may be running a cell.",
  "stopped": "Stopped. What is sent below is of the plan that was compiled last.",
  "stale": "What is sent is still that of the plan that was compiled last.",
  "before": "The pictures are of the plan before.",
  "sends": "What the compiled program sends",
  "guess": "Guess what each line sends, then see",
  "wholeReport": "The whole report of the compiled program",
  "code": "The code that gives this plan",
  "pins": "Pinned plans",
  "plan": "plan",
  "toDo": "what to do",
  "least": "least",
  "show": "show",
  "unpin": "unpin",
  "nothing": "nothing",
  "whichCollective": "which collective",
  "reveal": "reveal",
  "question": "Question {number} of {all}",
  "itSends": "It sends ",
  "over": "over",
  "noLine": "A collective stands at no known line.",
  "wholeProgram": "What does this program send?",
  "questionLine": "Line {line}: ",
  "oneOf": " It sends {all} different collectives: name one of them, in any order.",
  "oneMore": " It sends {all} different collectives: name another one.",
  "whatSent": " What does it send?",
  "right": "Right.",
  "rightKind": "The right kind, over other axes.",
  "wrong": "Not quite.",
  "truth": " It is {name}, {grouping}.",
  "truthNothing": " Nothing: every device has what it needs.",
  "again": "start again",
  "next": "next",
  "score": "{right} of {all} right",
  "compile": "compile it",
  "program": "The compiled program",
  "inAll": "{axes}: {size} in all",
  "asItIs": "as it is",
  "write": "write ",
  "or": "or ",
  "shards": "Arrays: whole, and as the body of one device sees them",
  "shardArray": "array",
  "shardSpec": "spec",
  "shardWhole": "whole",
  "shardLocal": "one device",
  "shardVaries": "may differ along",
  "in": "in",
  "out": "out",
  "same": "none: the same everywhere",
  "notTracked": "not tracked by JAX",
  "lines": "What may differ, line by line",
  "insertedNote": "  (inserted by JAX)",
  "steps": "The checks, in order",
  "ok": "ok",
  "no": "no",
  "notReached": "not reached",
  "notChecked": "not checked",
  "ownWords": "JAX's own words: {error}"
};

// src/view/dom.ts
var OWN_KEYS = { "data-lm-suppress-shortcuts": true };
function h(tag, props = null, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    set(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
}
function set(element, name, value) {
  if (name === "on") {
    for (const [type, handler] of Object.entries(value)) {
      element.addEventListener(type, handler);
    }
  } else if (name === "class") {
    element.className = classes(String(value));
  } else if (value !== null && value !== void 0 && value !== false) {
    element.setAttribute(name, value === true ? "" : String(value));
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
    if (seen.some((entry) => entry.isIntersecting)) {
      observer.disconnect();
      call();
    }
  });
  observer.observe(element);
}

// src/view/slots.ts
var HIDDEN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
var NAMED = { "\n": "\\n", "\r": "\\r", "	": "\\t", " ": " " };
function fill(text, slots) {
  return text.replace(
    /\{\{|\}\}|\{(\w+)\}/g,
    (found, name) => name === void 0 ? found[0] : String(slots[name] ?? found)
  );
}
function numbered(pair, number, slots = {}) {
  return fill(pair[number === 1 ? 0 : 1], { number: grouped(number), ...slots });
}
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
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

// src/view/report.ts
function readReport(data) {
  const whole = record(data, REPORT.theData);
  checkVersion(whole);
  const table3 = list(whole, "group_table");
  const read = filled(whole, "Report");
  const said = filled(whole.said, "Said");
  checkMesh(read.mesh);
  const texts = reader(said.arrays);
  let number = 0;
  const values = (found) => found.map((one) => spoken(checked(one), number++, texts));
  const shown = {
    ...read,
    said,
    inputs: values(read.inputs),
    outputs: values(read.outputs),
    values: values(read.values),
    findings: read.findings.map((one) => ({ ...one, values: values(one.values) })),
    collectives: collectives(read.collectives, table3, reader(said.collectives))
  };
  return { ...shown, histories: histories(said, read.values.length, number) };
}
function histories({ arrivals }, values, arrays2) {
  const texts = reader(arrivals ? { arrivals } : {});
  let first = arrays2;
  return Array.from({ length: values }, (_, i) => {
    const text = texts("arrivals", i);
    const when = text && text !== "?" ? text.split(" ").map(Number) : [];
    const steps2 = when.length ? [.../* @__PURE__ */ new Set([0, ...when])] : [];
    const history = { when: text === "?" ? null : when, steps: steps2, first };
    first += steps2.length;
    return history;
  });
}
function inState(value, array, state) {
  return { ...spoken(value, array, value.texts), ...state };
}
function home(collective, report) {
  const shown = collective.frames.filter(
    ({ source: source2 }) => source2 === 0 || Boolean(report.sources[source2]?.text)
  );
  return shown.find((frame) => frame.source === 0) ?? shown[0] ?? null;
}
function sent({ wire_bytes, trips, least_trips }) {
  return wire_bytes * (trips ?? least_trips);
}
function weight(collective) {
  return collective.trips && sent(collective) || collective.wire_bytes;
}
function checkVersion(whole) {
  if (typeof whole.version !== "number") {
    throw wrong(REPORT.noVersion);
  }
  if (whole.version > VERSION) {
    throw new Error(fill(REPORT.tooNew, { version: whole.version, known: VERSION }));
  }
  if (!whole.said) {
    throw new Error(REPORT.noWords);
  }
}
function checkMesh({ axes: axes2, device_ids: devices2 }) {
  const size = axes2.reduce((product2, axis) => product2 * axis.size, 1);
  if (axes2.length && devices2.length !== size) {
    throw wrong(fill(REPORT.otherDevices, { size }));
  }
}
function checked(value) {
  const dims2 = value.shape.length;
  if (value.shard_shape.length !== dims2 || value.spec && value.spec.length !== dims2) {
    throw wrong(fill(REPORT.otherRank, { name: value.name }));
  }
  return value;
}
function reader(columns) {
  const places = /* @__PURE__ */ new Map();
  for (const [name, { at }] of Object.entries(columns)) {
    places.set(name, at ? at.split(" ").map(Number) : []);
  }
  return (text, number) => columns[text]?.texts[places.get(text)?.[number] ?? 0] ?? "";
}
function spoken(value, number, texts) {
  const slots = () => ({
    name: clean(value.name),
    type: texts("type", number),
    from: clean(value.origins[0]?.name ?? "")
  });
  const say = (text) => text === "why" ? fill(texts(text, number), slots()) : texts(text, number);
  return { ...value, say, texts };
}
var TOLD = /* @__PURE__ */ new Set(["because", "further", "made", "used"]);
function collectives(read, table3, texts) {
  return read.map((one, number) => {
    const groups = table3[one.groups];
    if (!Array.isArray(groups)) {
      throw wrong(fill(REPORT.noGroups, { id: one.id }));
    }
    const slots = () => ({
      why: clean(one.why.trim()),
      producer: clean(one.producer ?? ""),
      consumer: clean(one.consumer ?? "")
    });
    const say = (text) => TOLD.has(text) ? fill(texts(text, number), slots()) : texts(text, number);
    return Object.assign(one, { groups, say });
  });
}
function filled(item, kind) {
  const { defaults, parts } = SHAPES[kind];
  const read = { ...defaults, ...record(item, REPORT.aPart) };
  for (const field in parts) {
    read[field] = inside(read[field], parts[field], field);
  }
  return read;
}
function inside(found, kind, field) {
  if (found === null || found === void 0) {
    return found;
  }
  if (Array.isArray(found)) {
    return found.map((item) => inside(item, kind, field));
  }
  if (kind.startsWith("*")) {
    const named = Object.entries(record(found, field));
    return Object.fromEntries(named.map(([name, item]) => [name, filled(item, kind.slice(1))]));
  }
  return typeof found === "object" ? filled(found, kind) : found;
}
function record(item, name) {
  if (typeof item !== "object" || item === null || Array.isArray(item)) {
    throw wrong(fill(REPORT.notObject, { part: name }));
  }
  return item;
}
function list(data, name) {
  const items = data[name] ?? [];
  if (!Array.isArray(items)) {
    throw wrong(fill(REPORT.notList, { part: name }));
  }
  return items;
}
function wrong(why) {
  return new Error(fill(REPORT.notReport, { why }));
}

// src/view/blocks.ts
function gridOf(value, mesh) {
  if (value.spec === null) {
    return value.grid ?? value.shape.map(() => 1);
  }
  return value.spec.map((axes2) => axes2.reduce((product2, axis) => product2 * sizeOf(axis, mesh), 1));
}
function blocksOf(value, mesh) {
  const positions = mesh.device_ids.map((_, position) => position);
  const { spec } = value;
  if (spec === null) {
    return value.blocks ?? positions.map(() => 0);
  }
  const digits = spec.flat().map((axis) => digitOf(axis, mesh));
  return positions.map(
    (position) => digits.reduce((block, { size, after }) => {
      return block * size + Math.floor(position / after) % size;
    }, 0)
  );
}
function digitOf(name, mesh) {
  const [whole, before, size] = partOf(name) ?? [name, 1, meshAxis(name, mesh).size];
  const axis = meshAxis(whole, mesh);
  const behind = mesh.axes.slice(mesh.axes.indexOf(axis) + 1);
  const minor = behind.reduce((product2, one) => product2 * one.size, 1);
  return { size, after: minor * Math.max(1, Math.floor(axis.size / (before * size))) };
}
function coordinates(position, mesh) {
  const result = [];
  let rest2 = position;
  for (const axis of [...mesh.axes].reverse()) {
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
function sizeOf(axis, mesh) {
  return partOf(axis)?.[2] ?? meshAxis(axis, mesh).size;
}
function meshAxis(name, mesh) {
  const axis = mesh.axes.find((one) => one.name === name);
  if (!axis) {
    throw new Error(fill(REPORT.notReport, { why: fill(REPORT.noAxis, { name }) }));
  }
  return axis;
}

// src/view/layout.ts
function layoutOf(value, mesh) {
  if (value.spec === null && (value.grid === null || value.blocks === null)) {
    return null;
  }
  const blocks = blocksOf(value, mesh);
  const holders = /* @__PURE__ */ new Map();
  blocks.forEach((block, position) => {
    const found = holders.get(block);
    found ? found.push(position) : holders.set(block, [position]);
  });
  return { grid: gridOf(value, mesh), blocks, holders };
}
function indexOf(grid, number) {
  const index = [];
  let rest2 = number;
  for (const size of [...grid].reverse()) {
    index.unshift(rest2 % size);
    rest2 = Math.floor(rest2 / size);
  }
  return index;
}
function numberOf(grid, index) {
  return grid.reduce((number, size, dim) => number * size + index[dim], 0);
}
function sliceText(value, layout, block) {
  const parts = indexOf(layout.grid, block).map((place2, dim) => {
    const end = value.shape[dim];
    const start = Math.min(end, place2 * value.shard_shape[dim]);
    return `${start}:${Math.min(end, start + value.shard_shape[dim])}`;
  });
  return `[${parts.join(", ")}]`;
}
function neighbours(grid, number) {
  const index = indexOf(grid, number);
  const beside = (dim, step2) => {
    const place2 = index[dim] + step2;
    return place2 < 0 || place2 >= grid[dim] ? null : numberOf(grid, [...index.slice(0, dim), place2, ...index.slice(dim + 1)]);
  };
  return grid.flatMap(
    (size, dim) => size > 1 ? [[dim, beside(dim, -1), beside(dim, 1)]] : []
  );
}
function plane(grid) {
  if (grid.length < 2) {
    return [null, grid.length ? 0 : null];
  }
  const dims2 = grid.map((_, dim) => dim);
  const split = dims2.filter((dim) => grid[dim] > 1).slice(-2);
  const whole = dims2.filter((dim) => !split.includes(dim)).reverse();
  const [down, across] = [...split, ...whole.slice(0, 2 - split.length)].sort((a, b) => a - b);
  return [down, across];
}

// src/view/colours.ts
var PATTERNS = ["", "dots", "plus", "rings"];
var NOBODY = { ground: EMPTY, pattern: "" };
function tint(rank2, total, down = 0, across = 0) {
  if (total <= HUES.length * PATTERNS.length) {
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

// src/view/ring.ts
var DRAWN = 16;
function ring(one, mesh) {
  const kind = kindOf(one);
  if (kind && KINDS[kind].inPairs) {
    return permute(one, mesh);
  }
  const group = one.groups.find((members3) => members3.length > 1);
  const steps2 = kind && STEPS[kind];
  if (!group || !steps2) {
    return null;
  }
  const members2 = group.slice(0, DRAWN);
  const sends = SENT[KINDS[kind].ring](group.length);
  return { members: members2, ...steps2(members2.length), all: group.length, sends };
}
function kindOf({ kind }) {
  return Object.hasOwn(KINDS, kind) ? kind : null;
}
function isInPairs(one) {
  const kind = kindOf(one);
  return kind !== null && KINDS[kind].inPairs;
}
var SENT = {
  "all but its own": (n) => n - 1,
  "a result for each other": (n) => n - 1,
  "there and back": (n) => 2 * (n - 1),
  all: () => 1
};
var STEPS = {
  "all-gather": (n) => {
    const stage = new Stage(table(n, n, (device, slot) => device === slot ? 1 : 0));
    gather(stage, n, 1);
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
    gather(stage, n, n);
    return stage.done(n, n);
  },
  "all-to-all": (n) => {
    const cells = table(n, n, () => 1).map((row2, device) => row2.map(() => ({ block: device, parts: 1 })));
    const stage = new Stage(cells);
    for (let step2 = 0; step2 < n; step2++) {
      const said = REPORT.swap;
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
      stage.step(REPORT.goesOn, false, n, only);
    }
    return stage.done(1, 1);
  },
  "collective-permute": null,
  "ragged-all-to-all": null
};
function partner(device, step2, n) {
  return n & n - 1 ? (step2 - device + n) % n : device ^ step2;
}
function scatter(stage, n) {
  for (let step2 = 0; step2 < n - 1; step2++) {
    stage.step(REPORT.adds, true, n, (device) => {
      const slot = (device - step2 - 1 + 2 * n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}
function gather(stage, n, whole) {
  const said = whole > 1 ? REPORT.passesSum : REPORT.passes;
  for (let step2 = 0; step2 < n - 1; step2++) {
    stage.step(said, false, n, (device) => {
      const slot = (device - step2 + n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}
function permute(one, mesh) {
  const positions = [...new Set(one.groups.flat())].sort((a, b) => a - b);
  const members2 = positions.slice(0, DRAWN);
  const pairs = one.groups.map(([from, to]) => [members2.indexOf(from), members2.indexOf(to)]).filter(([from, to]) => from >= 0 && to >= 0 && from !== to);
  if (!pairs.length || positions.length > mesh.device_ids.length) {
    return null;
  }
  const target = new Map(pairs);
  const first = members2.map((_, block) => [{ block, parts: 1 }]);
  const stage = new Stage(first);
  stage.step(REPORT.toPartner, true, members2.length, (device) => {
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
  step(said, gives, n, sends) {
    const now = this._frames[this._frames.length - 1];
    const next = now.map((row2) => [...row2]);
    const moves = [];
    for (let from = 0; from < n; from++) {
      const sent2 = sends(from);
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

// src/view/pictures.ts
var LINKED = 64;
var LISTED = 8;
function listed(values, limit = LISTED, many = REPORT.some) {
  const last = values[values.length - 1];
  if (values.length > 2 && values.every((value, i) => value === values[0] + i)) {
    return `${values[0]}-${last}`;
  }
  const first = values.slice(0, 3).join(" ");
  const brief = values.length <= limit;
  return brief ? values.join(" ") : fill(many, { first, last, number: values.length });
}
function valuePicture(value, mesh, layout) {
  const [down, across] = plane(layout.grid);
  const array = `${clean(value.name)} ${value.say("type")}`;
  return {
    grid: layout.grid,
    down: edge(value, mesh, layout, down),
    across: edge(value, mesh, layout, across),
    title: fill(REPORT.blocks, { array, number: layout.holders.size }),
    tint: blockTint(layout),
    labels: (block) => blockLabels(block, value, mesh, layout),
    caption: (dim, place2) => fill(REPORT.dim, { dim, place: place2 }),
    striped: differs(value)
  };
}
function differs({ unreduced, manual, varying }) {
  return unreduced.length > 0 || manual.length > 0 && varying?.length !== 0;
}
function edge(value, mesh, layout, dim) {
  if (dim === null) {
    return "";
  }
  if (value.spec === null || !value.spec[dim].length) {
    const parts = layout.grid[dim];
    return fill(parts > 1 ? REPORT.dimIn : REPORT.dimWhole, { dim, parts });
  }
  const axes2 = value.spec[dim].map((axis) => {
    const whole = mesh.axes.find((one) => one.name === axis);
    return whole ? `${axis}=${whole.size}` : axis;
  });
  return clean(fill(REPORT.dimOver, { dim, axes: axes2.join(" x ") }));
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
function blockLabels(block, value, mesh, layout) {
  const holders = (layout.holders.get(block) ?? []).map((position) => mesh.device_ids[position]);
  if (!holders.length) {
    return [REPORT.nobody];
  }
  const brief = listed(holders, 4, REPORT.someOf);
  if (holders.length === 1) {
    return [brief];
  }
  const slots = { listed: brief, number: holders.length };
  const times = fill(REPORT.times, slots);
  return differs(value) ? [brief, times] : [fill(REPORT.listedTimes, slots), brief, times];
}
function groupsPicture(collective, mesh) {
  const permute2 = isInPairs(collective);
  const group = groupOf(collective, mesh);
  const { groups } = collective;
  const shade2 = (place2) => {
    const rank2 = group[place2];
    const turn = rank2 / Math.max(1, groups.length - 1);
    return rank2 < 0 ? NOBODY : tint(rank2, groups.length, turn, 0.8 * (rank2 % 2));
  };
  const marked = (place2) => {
    const device = String(mesh.device_ids[place2]);
    return group[place2] < 0 ? [device] : [`${letter(group[place2])} ${device}`, device];
  };
  return {
    ...meshEdges(mesh),
    title: groupsText(collective),
    tint: permute2 ? (place2) => group[place2] < 0 ? NOBODY : tint(0, 1) : shade2,
    labels: permute2 ? (place2) => [String(mesh.device_ids[place2])] : marked,
    links: links(collective, mesh)
  };
}
function groupOf(collective, mesh) {
  const group = new Int32Array(mesh.device_ids.length).fill(-1);
  collective.groups.forEach((members2, i) => members2.forEach((place2) => group[place2] = i));
  return group;
}
function groupsText(collective) {
  const axes2 = collective.axes?.join(", ") ?? "";
  return fill(axes2 ? REPORT.groupsAlong : REPORT.groups, {
    name: collective.say("name"),
    grouping: collective.say("grouping"),
    axes: clean(axes2)
  });
}
function links(one, mesh) {
  if (mesh.device_ids.length > LINKED) {
    return [];
  }
  const arrow = isInPairs(one);
  const pairs = one.groups.flatMap((group) => group.slice(1).map((to, i) => [group[i], to]));
  return pairs.filter(([from, to]) => from !== to && (arrow || besides(from, to, mesh))).map(([from, to]) => ({ from, to, arrow }));
}
function besides(one, other, mesh) {
  const grid = mesh.axes.map((axis) => axis.size);
  return neighbours(grid, one).some(([, before, after]) => other === before || other === after);
}
function holdersPicture(value, mesh, layout) {
  const shade2 = blockTint(layout);
  return {
    ...meshEdges(mesh),
    title: fill(REPORT.holdersTitle, { name: clean(value.name) }),
    tint: (place2) => shade2(layout.blocks[place2]),
    labels: (place2) => [String(mesh.device_ids[place2])],
    striped: differs(value)
  };
}
function meshPicture(mesh) {
  return {
    ...meshEdges(mesh),
    title: REPORT.meshTitle,
    tint: () => tint(6, 8),
    labels: (place2) => [String(mesh.device_ids[place2])]
  };
}
function meshEdges(mesh) {
  const grid = mesh.axes.map((axis) => axis.size);
  const name = (dim) => dim === null ? "" : clean(`${mesh.axes[dim].name}=${mesh.axes[dim].size}`);
  const [down, across] = plane(grid).map(name);
  const caption = (dim, place2) => clean(`${mesh.axes[dim].name} ${place2}`);
  return { grid, down, across, caption };
}
function deviceText(position, mesh) {
  const along = coordinates(position, mesh).map((at, dim) => `${mesh.axes[dim].name} ${at}`);
  const physical = mesh.coords?.[position];
  const chip2 = physical ? [fill(REPORT.chip, { coords: physical.join(", ") })] : [];
  const slots = { id: mesh.device_ids[position], place: [...along, ...chip2].join(", ") };
  return clean(fill(along.length ? REPORT.deviceAt : REPORT.device, slots));
}
function besideText(position, mesh) {
  const grid = mesh.axes.map((axis) => axis.size);
  const parts = neighbours(grid, position).map(([dim, before, after]) => {
    const found = [before, after].filter((place2) => place2 !== null);
    const [one, other] = found.map((place2) => mesh.device_ids[place2]);
    const devices2 = other === void 0 ? one : fill(REPORT.both, { one, other });
    return fill(REPORT.alongAxis, { devices: devices2, axis: mesh.axes[dim].name });
  });
  return together(parts);
}
function exchangeText(position, collective, mesh) {
  const ids = (places) => listed(places.map((place2) => mesh.device_ids[place2]));
  if (isInPairs(collective)) {
    const to = collective.groups.filter(([from2]) => from2 === position).map((pair) => pair[1]);
    const from = collective.groups.filter((pair) => pair[1] === position).map((pair) => pair[0]);
    const said = [
      to.length && fill(REPORT.sendsTo, { devices: ids(to) }),
      from.length && fill(REPORT.receives, { devices: ids(from) })
    ];
    return said.filter(Boolean).join(", ") || REPORT.noPart;
  }
  const number = groupOf(collective, mesh)[position];
  const devices2 = number < 0 ? "" : ids(collective.groups[number]);
  return number < 0 ? REPORT.noPart : fill(REPORT.group, { name: letter(number), devices: devices2 });
}
function blockText(block, value, mesh, layout) {
  const holders = (layout.holders.get(block) ?? []).map((position) => mesh.device_ids[position]);
  const part = value.name + sliceText(value, layout, block);
  const own2 = differs(value) ? fill(REPORT.ownValue, { block: part }) : part;
  const what = value.unreduced.length ? fill(REPORT.partial, { block: part }) : own2;
  const slots = { block: what, devices: listed(holders) };
  const on = holders.length ? numbered(REPORT.block, holders.length, slots) : fill(REPORT.nowhere, slots);
  return clean(on);
}
function blocksBesideText(block, mesh, layout) {
  const parts = neighbours(layout.grid, block).map(([dim, before, after]) => {
    const found = [before, after].flatMap((place2) => layout.holders.get(place2 ?? -1) ?? []);
    const devices2 = listed(found.map((position) => mesh.device_ids[position]));
    return fill(REPORT.alongDim, { devices: devices2, dim });
  });
  return together(parts);
}
function together(parts) {
  return parts.length ? clean(fill(REPORT.beside, { parts: parts.join(", ") })) : "";
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
  const size = sheetSize(shape, folding, tile);
  const gaps = gapsOf(shape);
  const sheets = Array.from({ length: shape.deep }, (_, depth) => ({
    x: depth % folding.abreast * (size.width + gaps.sheet),
    y: Math.floor(depth / folding.abreast) * (size.height + gaps.sheet + gaps.head) + gaps.head,
    at: indexOf(depths, depth).map((place2, i) => [others[i], place2])
  }));
  const corners = place(grid, { shape, folding, tile, sheets, down, across });
  const width = Math.max(...sheets.map((sheet) => sheet.x)) + size.width;
  const height = Math.max(...sheets.map((sheet) => sheet.y)) + size.height;
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
function place(grid, plan) {
  const total = product(grid);
  const x = new Float32Array(total);
  const y = new Float32Array(total);
  const { tile, folding, shape } = plan;
  const gap = gapsOf(shape).strip;
  const high = Math.ceil(shape.rows / folding.strips);
  const wide = Math.ceil(shape.columns / folding.bands);
  const others = grid.map((_, dim) => dim).filter((dim) => dim !== plan.down && dim !== plan.across);
  for (let number = 0; number < total; number++) {
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
  return sizes.reduce((result, size) => result * size, 1);
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
    this._canvas.setAttribute("aria-label", fill(REPORT.arrowKeys, { title: picture2.title }));
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
    this._marks.forEach((place2) => outline(pen, this._drawn, place2));
  }
  _move(event) {
    if (this._drawn) {
      this._go(placeAt(this._drawn, event.offsetX, event.offsetY));
    }
  }
  _go(place2) {
    if (place2 !== this._at) {
      this._at = place2;
      this.point(place2);
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
function step(drawn, at, key) {
  const last = drawn.x.length - 1;
  if (key === "Home" || at === null && key.startsWith("Arrow")) {
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
  return way && at !== null ? nearest(drawn, at, way) : null;
}
function nearest(drawn, at, [right, below]) {
  let found = at;
  let least = Infinity;
  for (let place2 = 0; place2 < drawn.x.length; place2++) {
    const x = (drawn.x[place2] - drawn.x[at]) * (right || 1);
    const y = (drawn.y[place2] - drawn.y[at]) * (below || 1);
    const [along, aside] = right ? [x, Math.abs(y)] : [y, Math.abs(x)];
    const distance = along + 3 * aside;
    if (along > 0.5 && distance < least) {
      [found, least] = [place2, distance];
    }
  }
  return found;
}
function paint(pen, picture2, drawn) {
  const { width, height } = drawn.tile;
  const inset = width >= 8 ? SPACING : 0;
  for (let place2 = 0; place2 < drawn.x.length; place2++) {
    const tint2 = picture2.tint(place2);
    pen.fillStyle = tint2.ground;
    pen.fillRect(drawn.x[place2], drawn.y[place2], width - inset, height - inset);
    if (tint2.pattern && width >= 8) {
      pattern(pen, tint2, drawn, place2);
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
function pattern(pen, tint2, drawn, place2) {
  const { width, height } = drawn.tile;
  pen.fillStyle = pen.strokeStyle = "rgba(0, 0, 0, 0.32)";
  pen.lineWidth = 1;
  const pitch = Math.min(9, width / 2, height / 2);
  for (let x = pitch / 2; x < width - 2; x += pitch) {
    for (let y = pitch / 2; y < height - 2; y += pitch) {
      dot(pen, tint2.pattern, drawn.x[place2] + x, drawn.y[place2] + y);
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
  for (let place2 = 0; place2 < drawn.x.length; place2++) {
    const { width, height } = drawn.tile;
    pen.rect(drawn.x[place2], drawn.y[place2], width - inset, height - inset);
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
  for (let place2 = 0; place2 < drawn.x.length; place2++) {
    const room2 = width - 6;
    const text = picture2.labels(place2).find((words) => pen.measureText(words).width <= room2);
    if (text) {
      const x = drawn.x[place2] + width / 2;
      const y = drawn.y[place2] + height / 2;
      if (picture2.striped || picture2.tint(place2).pattern) {
        const half = pen.measureText(text).width / 2 + 3;
        pen.fillStyle = picture2.tint(place2).ground;
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
function centre(drawn, place2) {
  const { width, height } = drawn.tile;
  return { x: drawn.x[place2] + width / 2, y: drawn.y[place2] + height / 2 };
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
    const full = sheet.at.map(([dim, place2]) => picture2.caption(dim, place2)).join(", ");
    const short = sheet.at.map(([, place2]) => place2).join(", ");
    const text = [full, short].find((words) => pen.measureText(words).width <= room2);
    pen.fillText(text ?? "", sheet.x, sheet.y - 4);
  }
}
function shade(pen, drawn, lit) {
  if (!lit) {
    return;
  }
  pen.fillStyle = "rgba(128, 128, 128, 0.6)";
  for (let place2 = 0; place2 < drawn.x.length; place2++) {
    if (!lit.has(place2)) {
      pen.fillRect(drawn.x[place2], drawn.y[place2], drawn.tile.width, drawn.tile.height);
    }
  }
}
function outline(pen, drawn, place2) {
  const { width, height } = drawn.tile;
  const thick = width >= 12 ? 2 : 1;
  pen.lineWidth = thick;
  pen.strokeStyle = "#fff";
  const inner = thick * 1.5;
  const [x, y] = [drawn.x[place2], drawn.y[place2]];
  pen.strokeRect(x + inner, y + inner, width - 2 * inner - 1, height - 2 * inner - 1);
  pen.strokeStyle = "#000";
  pen.strokeRect(x + thick / 2, y + thick / 2, width - thick - 1, height - thick - 1);
}

// src/view/arrays.ts
var BOX = { width: 222, height: 208 };
function arrays(report, store) {
  const cards = h("div", { class: "cards" });
  for (const [role, values, drawn] of [
    [REPORT.input, report.inputs, report.said.inputs],
    [REPORT.output, report.outputs, report.said.outputs]
  ]) {
    const draw2 = (i) => new Card(role, values[i], report, store).element;
    const all = values.map((_, i) => i);
    cards.append(...(drawn.rest ? drawn.kept : all).map(draw2));
    if (drawn.rest) {
      cards.append(rest(all, drawn, draw2));
    }
  }
  const empty = !report.inputs.length && !report.outputs.length;
  const none = h("div", { class: "faint" }, empty ? REPORT.notKnown : REPORT.none);
  return h(
    "div",
    { class: "arrays" },
    heading(REPORT.arrays),
    cards.childElementCount ? cards : none
  );
}
function rest(all, { kept, rest: text }, draw2) {
  const left = all.filter((i) => !kept.includes(i));
  const more = h("button", { type: "button", class: "more" }, text);
  more.addEventListener("click", () => more.replaceWith(...left.map(draw2)));
  return more;
}
var Card = class {
  /** `role` says what it is to the program: `input`, `output`. */
  constructor(role, value, report, store) {
    this.value = value;
    this.report = report;
    this.store = store;
    const { mesh } = report;
    this._layout = layoutOf(value, mesh);
    this._picture = this._layout && picture(value, report, this._layout);
    this._tiles = new Tiles(BOX, (block) => this._point(block));
    const said = ["held", "copies", "remarks"].map((text) => value.say(text));
    this.element = h(
      "div",
      {
        class: "card",
        on: {
          pointerenter: () => store.set({ value }),
          pointerleave: () => store.set({ value: null }),
          focusin: () => store.set({ value }),
          focusout: () => store.set({ value: null })
        }
      },
      h("div", { class: "role" }, role),
      h("div", { class: "name" }, h("b", null, clean(value.name)), " ", mono(value.say("type"))),
      h("div", { class: "faint" }, said.filter(Boolean).join("; ")),
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
    const { mesh } = this.report;
    const what = blockText(block, this.value, mesh, layout);
    return [what, blocksBesideText(block, mesh, layout)].filter(Boolean).join("; ");
  }
  _layout;
  _tiles;
  _picture;
  _drawn = false;
  _inside = false;
};
function picture(value, report, layout) {
  return value.shape.includes(0) ? null : valuePicture(value, report.mesh, layout);
}

// src/view/badge.ts
function badge({ head: head3, sends }, one, store) {
  const props = { class: "badge", type: "button", on: leads(one, store) };
  return head3 ? h("button", props, h("code", { class: "mono" }, head3), ` ${sends} `, chip(one)) : h("button", props, sends);
}
function chip(collective) {
  const cause = collective.say("cause");
  const label3 = h("span", { class: "chip", title: cause }, cause);
  paint2(label3, collective.say("asked"));
  return label3;
}
function paint2(label3, asker) {
  const [ground, text] = asker ? ASKER_COLOURS[asker] : OTHER_COLOURS;
  label3.style.background = ground;
  label3.style.color = text;
}
function leads(collective, store) {
  return {
    click: () => store.set({ chosen: collective }),
    pointerenter: () => store.set({ pointed: collective }),
    pointerleave: () => store.set({ pointed: null })
  };
}

// src/view/code.ts
var WHOLE = 200;
var LINES = 16;
var AROUND = 2;
var Code = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    const { lines: led } = report.said;
    report.collectives.forEach((one) => this._byId.set(one.id, one));
    report.sources.forEach((source2, i) => {
      const lines = this._lines(source2, i, led[i] ?? []);
      if (lines.length) {
        this.element.append(...i ? [h("div", { class: "faint" }, clean(source2.name))] : []);
        this.element.append(h("ol", { class: "lines", "aria-label": REPORT.sourceLines }, ...lines));
      }
    });
    store.subscribe(() => this._mark());
  }
  report;
  store;
  element = h("div", { class: "code" });
  _lines(source2, index, led) {
    const { shown, rest: rest2 } = chosenLines(source2, index, led);
    const badges = new Map(led.map((one) => [one.line, one]));
    const texts = source2.text.split("\n");
    const items = [];
    shown.forEach((number, i) => {
      if (i && number > shown[i - 1] + 1) {
        items.push(h("li", { class: "line gap", "aria-hidden": "true" }, "⋮"));
      }
      const text = clean(texts[number - source2.first_line] ?? "");
      items.push(this._line(`${index}:${number}`, number, text, badges.get(number)));
    });
    if (rest2) {
      items.push(h("li", { class: "line faint" }, numbered(REPORT.moreLines, rest2)));
    }
    return items;
  }
  _line(key, number, text, led) {
    const badges = (led?.badges ?? []).map((one) => {
      const leads2 = this._byId.get(one.id);
      return leads2 ? badge(one, leads2, this.store) : null;
    });
    const line2 = h(
      "li",
      { class: "line", value: number },
      h("span", { class: "number", "aria-hidden": "true" }, String(number)),
      h("code", { class: "text" }, text || " "),
      h(
        "span",
        { class: "badges" },
        ...badges
      )
    );
    this._rows.set(key, line2);
    return line2;
  }
  _mark() {
    const { chosen, pointed, value } = this.store.focus;
    const place2 = value?.location ?? home(pointed ?? chosen ?? NONE, this.report);
    const line2 = place2 ? this._rows.get(`${place2.source}:${place2.line}`) : void 0;
    if (line2 !== this._marked) {
      this._marked?.removeAttribute("data-marked");
      line2?.setAttribute("data-marked", "");
      this._marked = line2;
    }
  }
  _byId = /* @__PURE__ */ new Map();
  _rows = /* @__PURE__ */ new Map();
  _marked;
};
var NONE = { frames: [] };
function chosenLines(source2, index, led) {
  const heaviest2 = led.map((one) => one.line);
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
function union(some, others) {
  return [.../* @__PURE__ */ new Set([...some, ...others])].sort((a, b) => a - b);
}
function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

// src/view/player.ts
var STEP = 900;
var STILL = 1400;
var SIDE = 34;
var NAME = 74;
var GAP = 4;
var ROOM = 480;
var Player = class {
  constructor(play, one, mesh) {
    this.play = play;
    this.one = one;
    this.mesh = mesh;
    this._still = window.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
    const columns = play.frames[0][0].length;
    this._side = Math.max(14, Math.min(SIDE, Math.floor((ROOM - NAME) / columns) - GAP));
    this._width = NAME + columns * (this._side + GAP);
    this._height = play.members.length * (this._side + GAP);
    this._canvas = h("canvas", { class: "canvas still", role: "img" });
    this._said = h("div", { class: "caption", "aria-live": "polite" });
    this._toggle = button(REPORT.pause, () => this._running ? this.pause() : this.start());
    this._slider = h("input", {
      type: "range",
      ...OWN_KEYS,
      class: "slider",
      min: 0,
      max: this._steps,
      "aria-label": REPORT.exchangeStep,
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
        button("←", () => this._by(-1), REPORT.back),
        this._toggle,
        button("→", () => this._by(1), REPORT.on),
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
    this._toggle.textContent = REPORT.pause;
    this._began = performance.now();
    this._frame = requestAnimationFrame((now) => this._tick(now));
  }
  pause() {
    this._running = false;
    this._toggle.textContent = REPORT.playOn;
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
  _text(made) {
    if (made === 0) {
      const partial = this.play.whole > 1 && this.play.frames[0][0].every(Boolean);
      return partial ? REPORT.beforeSums : REPORT.before;
    }
    const slots = { step: made, all: this._steps, said: this.play.said[made - 1] };
    return fill(this._at === this._steps ? REPORT.lastStep : REPORT.step, slots);
  }
  _about() {
    const { play, one } = this;
    const permute2 = isInPairs(one);
    const drawn = play.members.length;
    const who = permute2 ? REPORT.sentA : REPORT.sentEach;
    return [
      play.all > drawn && fill(REPORT.standFor, { drawn, all: play.all }),
      numbered(who, play.sends, { size: one.say("size") }),
      !permute2 && one.groups.length > 1 && REPORT.allGroups,
      REPORT.assumes
    ].filter(Boolean).join("");
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
      const text = fill(REPORT.device, { id: this.mesh.device_ids[position] });
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
  for (let at = -side; at < side; at += 7) {
    pen.moveTo(x + at, y + side);
    pen.lineTo(x + at + side, y);
  }
  pen.stroke();
  pen.restore();
}

// src/view/detail.ts
var Detail = class {
  constructor(report, store) {
    this.report = report;
    store.subscribe(({ chosen }, changed) => {
      if (changed.has("chosen")) {
        this.element.replaceChildren(...chosen ? this._parts(chosen) : []);
      }
    });
    if (!report.collectives.length) {
      this.element.append(h("p", { class: "faint" }, REPORT.hint));
    }
  }
  report;
  element = h("div", { class: "detail", "aria-live": "polite" });
  _parts(one) {
    const effects = one.say("effects").split("\n");
    return [
      h(
        "div",
        { class: "title" },
        mono(one.say("name")),
        ` ${one.say("at")} `,
        chip(one)
      ),
      h("p", { class: "because" }, one.say("because")),
      chain(one),
      ...playing(one, this.report.mesh),
      h("p", null, one.say("further")),
      ...(one.fixes ?? []).map((fix, i) => tried(fix, effects[i])),
      this._calls(one),
      raw(one)
    ];
  }
  /** The lines that led to it, innermost first. */
  _calls(one) {
    const lines = one.frames.map((frame) => {
      const source2 = this.report.sources[frame.source];
      const text = source2?.text.split("\n")[frame.line - source2.first_line] ?? "";
      const name = frame.source ? source2?.name : void 0;
      const at = { line: frame.line, source: clean(name ?? "") };
      const line2 = fill(name === void 0 ? REPORT.line : REPORT.lineIn, at);
      const call = { line: line2, function: clean(frame.function) };
      const said = frame.function ? fill(REPORT.call, call) : line2;
      return h("li", null, `${said} `, text && mono(clean(text.trim())));
    });
    const within = one.within.map((part) => h("li", null, fill(REPORT.inside, { part: clean(part) })));
    return h(
      "details",
      { hidden: !lines.length && !within.length },
      h("summary", null, REPORT.calls),
      h("ol", { class: "calls" }, ...lines, ...within)
    );
  }
};
function chain(one) {
  const exchange = fill(REPORT.exchange, {
    grouping: one.say("grouping"),
    array: one.say("array"),
    size: one.say("size"),
    trips: one.say("trips")
  });
  const steps2 = [one.say("made"), exchange, one.say("used")].filter(Boolean);
  return h("ol", { class: "chain" }, ...steps2.map((step2) => h("li", null, step2)));
}
function playing(one, mesh) {
  const play = ring(one, mesh);
  if (!play) {
    return [];
  }
  const stage = h("div", { class: "played" });
  const label3 = fill(REPORT.play, { kind: clean(one.kind) });
  const button2 = h("button", { type: "button", class: "play", "aria-expanded": "false" }, label3);
  let player = null;
  button2.addEventListener("click", () => {
    player?.dispose();
    player = player ? null : new Player(play, one, mesh);
    stage.replaceChildren(...player ? [player.element] : []);
    button2.textContent = player ? REPORT.close : label3;
    button2.setAttribute("aria-expanded", String(player !== null));
    player?.start();
  });
  return [button2, stage];
}
function tried(fix, effect) {
  const edit = clean(fix.edit);
  return h("div", { class: "fix" }, REPORT.try, mono(edit), ` (${effect}) `, copier(edit));
}
function copier(text) {
  const button2 = h("button", { type: "button", class: "copy" }, REPORT.copy);
  button2.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(
      () => button2.textContent = REPORT.copied,
      () => button2.textContent = REPORT.notAllowed
    );
  });
  return button2;
}
function raw(one) {
  const text = [
    one.op_name && fill(REPORT.operation, { name: one.op_name }),
    one.instruction
  ].filter(Boolean);
  return h(
    "details",
    { hidden: !text.length },
    h("summary", null, REPORT.raw),
    h("pre", { class: "raw" }, text.map(clean).join("\n"))
  );
}

// src/view/list.ts
var ROW = 30;
var SEEN = 8;
var FEW = 4;
var ALL = { kind: "", axis: "", asked: "", least: 0 };
function passes(one, filter) {
  return (!filter.kind || one.kind === filter.kind) && (!filter.axis || (one.axes ?? []).map(wholeAxis).includes(filter.axis)) && (!filter.asked || one.say("asked") === filter.asked) && weight(one) >= filter.least;
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
      return one.say("name");
    case "result":
      return one.shape.reduce((product2, dim) => product2 * dim, 1);
    case "sends":
      return weight(one);
    case "asked":
      return one.say("cause");
    default: {
      const place2 = home(one, report);
      return place2 ? place2.source * 1e7 + place2.line : Infinity;
    }
  }
}
var COLUMNS = [
  ["kind", REPORT.columnKind],
  ["result", REPORT.columnResult],
  ["sends", REPORT.columnSends],
  ["asked", REPORT.columnAsked],
  ["line", REPORT.columnLine]
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
        "aria-label": REPORT.collectives,
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
    const { collectives: collectives2 } = this.report;
    const most = Math.max(...collectives2.map(weight));
    const steps2 = SIZES.filter(([step2]) => step2 <= most);
    const same = (options) => options.map((one) => [one, one]);
    return h(
      "div",
      { class: "filters" },
      this._select("kind", same(distinct(collectives2.map((one) => one.kind)))),
      this._select("axis", same(distinct(collectives2.flatMap(axes)))),
      this._select("asked", same(distinct(collectives2.map((one) => one.say("asked"))))),
      this._select("least", steps2.map(([step2, text]) => [String(step2), text])),
      this._count
    );
  }
  _select(key, options) {
    const label3 = REPORT[key];
    const choices2 = options.map(([value, text]) => h("option", { value }, text));
    const change = (event) => {
      const { value } = event.target;
      this._filter = { ...this._filter, [key]: key === "least" ? Number(value) : value };
      this._update();
    };
    const any = h("option", { value: "" }, REPORT.any);
    const select2 = h("select", { on: { change }, "aria-label": label3, ...OWN_KEYS }, any, ...choices2);
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
    this._count.textContent = fill(this.report.said.filtered, {
      shown: grouped(found.length),
      share: percent(sum(found), sum(this.report.collectives))
    });
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
    this._body.replaceChildren(...rows2.length ? rows2 : [h("div", { class: "faint" }, REPORT.none)]);
    this._choose();
  }
  _row(one, index) {
    const place2 = home(one, this.report);
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
      h("code", { class: "mono" }, one.say("name")),
      h("code", { class: "mono" }, one.say("array")),
      h("span", null, one.say("size") + one.say("trips")),
      h("span", null, chip(one)),
      h("span", { class: "place" }, place2 ? String(place2.line) : "?")
    );
    row2.style.top = `${index * ROW}px`;
    if (place2 && place2.source > 0) {
      row2.lastElementChild?.setAttribute("title", one.say("at"));
    }
    return row2;
  }
  _key(event) {
    const at = this._shown.indexOf(this.store.focus.chosen);
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + SEEN,
      PageUp: at - SEEN,
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
function axes(one) {
  return (one.axes ?? []).map(wholeAxis);
}
function sum(found) {
  return found.reduce((bytes, one) => bytes + sent(one), 0);
}
function percent(part, all) {
  const share = all ? 100 * part / all : 100;
  return part && share < 0.95 ? share.toPrecision(1) : String(Math.round(share));
}
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
    this._title = heading(REPORT.mesh);
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
  _draw({ chosen, pointed, value }) {
    const collective = pointed ?? chosen;
    const subject = pointed ?? value ?? chosen;
    if (subject === this._subject) {
      return;
    }
    this._subject = subject;
    if (value && subject === value) {
      this._showValue(value);
    } else if (collective && subject === collective) {
      this._showGroups(collective);
    } else {
      this._tiles.show(meshPicture(this.report.mesh));
      this._caption.textContent = "";
    }
  }
  _showGroups(collective) {
    const { mesh } = this.report;
    this._tiles.show(groupsPicture(collective, mesh));
    this._title.textContent = REPORT.whoExchanges;
    this._caption.textContent = `${groupsText(collective)}${members(collective, mesh.device_ids)}`;
  }
  _showValue(value) {
    const { mesh } = this.report;
    const layout = layoutOf(value, mesh);
    this._tiles.show(layout ? holdersPicture(value, mesh, layout) : meshPicture(mesh));
    this._title.textContent = REPORT.whoHolds;
    const said = fill(layout ? REPORT.byBlock : REPORT.byNothing, { name: clean(value.name) });
    this._caption.textContent = [said, value.say("copies")].filter(Boolean).join("; ");
  }
  _mark({ chosen, pointed, value, device }) {
    const { mesh } = this.report;
    const collective = pointed ?? (value ? null : chosen);
    if (device === null) {
      this._tiles.mark([]);
      this._tiles.say("");
      return;
    }
    this._tiles.mark([device], collective && together2(device, collective, this.report));
    const parts = [deviceText(device, mesh)];
    const layout = value && layoutOf(value, mesh);
    if (collective) {
      parts.push(exchangeText(device, collective, mesh));
    } else if (value && layout) {
      const block = blockText(layout.blocks[device], value, mesh, layout);
      parts.push(fill(REPORT.holds, { block }));
    }
    parts.push(besideText(device, mesh));
    this._tiles.say(parts.filter(Boolean).join("; "));
  }
  _tiles;
  _title;
  _caption;
  _subject;
};
function together2(device, collective, report) {
  if (isInPairs(collective)) {
    return new Set(collective.groups.filter((pair) => pair.includes(device)).flat());
  }
  const number = groupOf(collective, report.mesh)[device];
  return number < 0 ? null : new Set(collective.groups[number]);
}
var LISTED2 = 8;
function members(one, ids) {
  const { groups } = one;
  if (groups.length > LISTED2 || isInPairs(one)) {
    return "";
  }
  const found = groups.map((group) => `{${listed(group.map((place2) => ids[place2]))}}`);
  return `: ${found.join(" ")}`;
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
  const { op, source: source2, target, location, direction } = step2;
  const name = location?.source ? report.sources[location.source]?.name : void 0;
  const slots = { line: location?.line ?? 0, source: name ?? "" };
  const at = location ? fill(name === void 0 ? REPORT.stepAt : REPORT.stepAtIn, slots) : "";
  const aside = direction === "sideways" ? REPORT.toOther : "";
  return clean(fill(REPORT.moment, { axis, direction, op, at, aside, source: source2, target }));
}
function valueAt(report, index, number) {
  const value = report.values[index];
  const { spec: whole } = value;
  const { when, steps: steps2, first } = report.histories[index];
  if (whole === null || number === Infinity || when?.length === 0) {
    return value;
  }
  if (when === null) {
    return null;
  }
  let axis = 0;
  const spec = whole.map((axes2) => axes2.filter(() => when[axis++] <= number));
  const grid = gridOf({ ...value, spec }, report.mesh);
  const shard = value.shape.map((size, dim) => Math.ceil(size / grid[dim]));
  const state = first + steps2.filter((step2) => step2 <= number).length - 1;
  return inState(value, state, { spec, shard_shape: shard, propagated: null });
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
      "aria-label": REPORT.spread,
      on: { input: () => this._go(Number(this._slider.value)) }
    });
    const rows2 = report.values.map((value, i) => this._row(value, i));
    this._stage = h("div", { class: "stage" });
    this.element = h(
      "div",
      { class: "arrays" },
      heading(REPORT.values),
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
      step2("←", REPORT.back, -1),
      this._slider,
      step2("→", REPORT.on, 1),
      this._label
    );
  }
  _row(value, index) {
    const type = h("code", { class: "mono" });
    const { source: source2 = 0, line: line2 = 0 } = value.location ?? {};
    const at = { line: line2, source: clean(this.report.sources[source2]?.name ?? "") };
    const where = value.location ? fill(source2 ? REPORT.lineIn : REPORT.line, at) : "";
    const row2 = h(
      "button",
      { type: "button", class: "value", on: { click: () => this._choose(index) } },
      h("b", null, clean(value.name)),
      type,
      h("span", { class: "faint" }, value.name.includes(fill(REPORT.line, at)) ? "" : where)
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
      const value = this._valueNow(index);
      type.textContent = value ? value.say("type") : REPORT.notKnownWhen;
      row2.toggleAttribute("data-marked", this._moving(last, index));
    });
    this._draw();
  }
  _told(last) {
    const all = this._moments.length;
    const said = last && momentText(last, this.report);
    return said ? fill(REPORT.step, { step: this._now, all, said }) : REPORT.firstStep;
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
    const value = this._valueNow(this._chosen);
    const why = h("p", { class: "why" }, this.report.values[this._chosen]?.say("why") ?? "");
    this._card?.dispose();
    this._card = value && new Card("", value, this.report, this.store);
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
  return h("details", { on: { toggle: open } }, h("summary", null, REPORT.types), body2);
}
function rows(report) {
  let last = null;
  return report.typed.flatMap((line2) => {
    const place2 = line2.location;
    const key = place2 ? `${place2.source}:${place2.line}` : "";
    const known = key === last;
    last = key;
    const head3 = place2 && !known ? [own(report, place2.source, place2.line)] : [];
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
  const mark = line2.inserted ? h("span", { class: "chip" }, REPORT.inserted) : null;
  return h("pre", { class: "raw" }, `    ${clean(lineText(line2))}  `, mark);
}
function lineText(line2) {
  const binds = line2.binds.map((bind) => `${bind.name}:${bind.type}`).join(" ");
  const indent = "    ".repeat(line2.within.length);
  if (!line2.primitive) {
    return indent + fill(REPORT.lambda, { binds });
  }
  const call = line2.parameters ? `${line2.primitive}[${line2.parameters}]` : line2.primitive;
  return `${indent}${binds} = ${[call, ...line2.operands].join(" ")}`;
}

// src/view/view.ts
function mount(host, data) {
  return attempt(host, () => readReport(data));
}
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
  const { collectives: collectives2 } = report;
  root.append(
    head2(report),
    ...sending(report, store),
    arrays(report, store),
    ...report.values.length ? [new Spread(report, store).element] : [],
    facts(report, store),
    ...report.typed.length ? [typed(report)] : []
  );
  store.set({ chosen: heaviest(collectives2) });
  store.flush();
  return {
    choose: (id) => {
      store.set({ chosen: collectives2.find((one) => one.id === id) ?? store.focus.chosen });
      store.flush();
    },
    dispose: () => {
      store.dispose();
      root.remove();
    }
  };
}
function head2(report) {
  const [first, ...others] = report.said.header;
  return h("div", { class: "header" }, h("b", null, first), ...others.map((part) => h("span", null, part)));
}
function sending(report, store) {
  return [
    new Code(report, store).element,
    h("div", { class: "summary" }, report.said.summary),
    ...report.collectives.length > 1 ? [new List(report, store).element] : [],
    h(
      "div",
      { class: "main" },
      new Detail(report, store).element,
      new MeshPanel(report, store).element
    )
  ];
}
function heaviest(collectives2) {
  return collectives2.reduce(
    (most, one) => most && weight(most) >= weight(one) ? most : one,
    null
  );
}
function facts(report, store) {
  const { said } = report;
  const rows2 = [fact(REPORT.memory, memory(report))];
  if (said.cost) {
    const assumed = said.assumptions.map((one) => `- ${one}`).join("\n");
    const more = assumed ? folded(REPORT.assumed, assumed) : null;
    rows2.push(fact(REPORT.time, h("div", null, said.cost, more)));
  }
  report.findings.forEach((one, i) => {
    rows2.push(fact(REPORT.finding, finding(one, said.findings[i], report, store)));
  });
  report.notes.forEach((note) => rows2.push(fact(REPORT.note, h("span", null, clean(note)))));
  if (said.about) {
    rows2.push(fact(REPORT.about, h("span", { class: "faint" }, said.about)));
  }
  return h("dl", { class: "facts" }, ...rows2.flat());
}
function fact(label3, body2) {
  return [h("dt", null, label3), h("dd", null, body2)];
}
var PARTS = ["arguments", "outputs", "temporaries"];
function memory({ memory: held, said }) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  PARTS.forEach((part, i) => {
    const piece = h("span", { class: `part ${part}`, title: said.memory[i] });
    piece.style.flexGrow = String(held?.[part] ?? 0);
    bar.append(piece);
  });
  const parts = said.memory.map(
    (text, i) => h("span", null, held && h("span", { class: `swatch ${PARTS[i]}` }), text + (said.memory[i + 1] ? ", " : ""))
  );
  return h("div", null, ...parts, held && bar);
}
function finding(one, [head3, text], report, store) {
  return h(
    "div",
    null,
    h("b", null, head3),
    `: ${text}`,
    one.values.length ? h("div", { class: "cards" }, ...one.values.map((value) => new Card("", value, report, store).element)) : null,
    one.details ? folded(REPORT.details, one.details) : null
  );
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
function choices(axes2, size) {
  const most = axes2.length <= 3 ? axes2.length : 2;
  const found = [[]];
  for (let i = 0; i < found.length; i++) {
    if (found[i].length < most) {
      found.push(...axes2.filter((axis) => !found[i].includes(axis)).map((axis) => [...found[i], axis]));
    }
  }
  return found.map((chosen) => ({ axes: chosen.map((axis) => axis.name), label: label2(chosen, size) }));
}
function label2(chosen, size) {
  if (!chosen.length) {
    return WIDGETS.whole;
  }
  const parts = chosen.reduce((product2, axis) => product2 * axis.size, 1);
  const slots = { axes: chosen.map((axis) => axis.name).join(", "), size: size / parts };
  return fill(size % parts ? WIDGETS.doesNotDivide : WIDGETS.splitOver, slots);
}
function shapes(devices2, axes2) {
  if (axes2 <= 1) {
    return axes2 === 1 ? [[devices2]] : [];
  }
  const found = [];
  for (let size = devices2; size >= 1; size--) {
    if (devices2 % size === 0) {
      found.push(...shapes(devices2 / size, axes2 - 1).map((rest2) => [size, ...rest2]));
    }
  }
  return found;
}
function devices(axes2) {
  return axes2.reduce((product2, axis) => product2 * axis.size, 1);
}
function renamed(plan, index, name) {
  const before = plan.axes[index].name;
  const axes2 = plan.axes.map((axis, i) => i === index ? { ...axis, name } : axis);
  return { axes: axes2, specs: mapped(plan.specs, (one) => one === before ? name : one) };
}
function without(plan, index) {
  const gone = plan.axes[index].name;
  const axes2 = plan.axes.filter((_, i) => i !== index);
  return { axes: axes2, specs: mapped(plan.specs, (one) => one === gone ? null : one) };
}
var NAMES = ["data", "model", "seq", "expert", "stage"];
function extended(plan) {
  const known = plan.axes.map((axis) => axis.name);
  const name = NAMES.find((one) => !known.includes(one)) ?? `axis${known.length}`;
  return { ...copyOf(plan), axes: [...plan.axes, { name, size: 1, type: "auto" }] };
}
function mapped(specs, change) {
  const kept = (axes2) => axes2.map(change).filter((axis) => axis !== null);
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, spec.map(kept)]));
}

// src/widget/picker.ts
var MOST_AXES = 5;
var MOST_SHAPES = 120;
var SHOWN = 12;
var Picker = class {
  constructor(subject, _plan, change) {
    this.subject = subject;
    this._plan = _plan;
    this.change = change;
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
  /** Show how the plan's specs are written. */
  tell(written) {
    this._written = written;
    this._specs.forEach(([name, said]) => said.textContent = written[name] ?? "");
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
    this._specs = [];
    const rows2 = inputs.map((input, i) => this._input(input, i));
    const rest2 = rows2.slice(SHOWN);
    const more = h(
      "details",
      { hidden: !rest2.length, open: this._open },
      h("summary", null, numbered(WIDGETS.moreInputs, rest2.length)),
      ...rest2
    );
    more.addEventListener("toggle", () => this._open = more.open);
    this.element.replaceChildren(
      h("div", { class: "axes" }, heading(REPORT.mesh), ...this._mesh()),
      h("div", { class: "inputs" }, heading(WIDGETS.inputs), ...rows2.slice(0, SHOWN), more)
    );
    if (focused) {
      const found = [...this.element.querySelectorAll("[data-key]")];
      found.find((one) => one.getAttribute("data-key") === focused)?.focus();
    }
  }
  _mesh() {
    const { axes: axes2 } = this._plan;
    const add = h("button", { type: "button", "data-key": "add", disabled: axes2.length >= MOST_AXES }, WIDGETS.addAxis);
    add.addEventListener("click", () => this._set(extended(this._plan)));
    return [
      ...axes2.map((_, i) => this._axis(i)),
      h(
        "div",
        { class: "axis" },
        h("span", null, numbered(WIDGETS.devices, devices(axes2))),
        this._shapes(),
        add
      )
    ];
  }
  _axis(index) {
    const now = this._plan.axes[index];
    const axis = clean(now.name);
    const name = h("input", {
      type: "text",
      class: "field name",
      value: now.name,
      "data-key": `name${index}`,
      "aria-label": fill(WIDGETS.axisName, { number: index + 1 }),
      on: entered(() => this._rename(index, name.value.trim()))
    });
    const size = h("input", {
      type: "number",
      class: "field size",
      min: 1,
      value: now.size,
      "data-key": `size${index}`,
      "aria-label": fill(WIDGETS.axisSize, { axis }),
      on: entered(() => this._resize(index, Number(size.value)))
    });
    const type = select(this.subject.types, now.type, `type${index}`, fill(WIDGETS.axisType, { axis }), (chosen) => {
      const plan = copyOf(this._plan);
      plan.axes[index].type = this.subject.types[chosen];
      this._set(plan);
    });
    const gone = h("button", {
      type: "button",
      "data-key": `gone${index}`,
      disabled: this._plan.axes.length < 2,
      "aria-label": fill(WIDGETS.axisRemove, { axis }),
      on: { click: () => this._set(without(this._plan, index)) }
    }, "×");
    return h("div", { class: "axis" }, name, " = ", size, type, gone);
  }
  _rename(index, name) {
    if (name !== this._plan.axes[index]?.name) {
      this._set(renamed(this._plan, index, name));
    }
  }
  _resize(index, size) {
    const plan = copyOf(this._plan);
    const whole = Math.max(1, Math.floor(size) || 1);
    if (plan.axes[index] && plan.axes[index].size !== whole) {
      plan.axes[index].size = whole;
      this._set(plan);
    }
  }
  /** The ways to lay the same devices out. */
  _shapes() {
    const { axes: axes2 } = this._plan;
    const found = shapes(devices(axes2), axes2.length).slice(0, MOST_SHAPES);
    if (found.length < 2) {
      return null;
    }
    const texts = found.map((sizes) => sizes.join(" x "));
    const now = axes2.map((axis) => axis.size).join(" x ");
    return select(texts, now, "shape", WIDGETS.meshShape, (chosen) => {
      const plan = copyOf(this._plan);
      plan.axes.forEach((axis, i) => axis.size = found[chosen][i]);
      this._set(plan);
    });
  }
  _input(input, number) {
    const spec = this._plan.specs[input.names[0]] ?? input.shape.map(() => []);
    const said = h("span", { class: "faint" }, this._written[input.names[0]] ?? "");
    this._specs.push([input.names[0], said]);
    const dims2 = input.shape.map((size, dim) => {
      const found = choices(this._plan.axes, size);
      const now = found.find((one) => JSON.stringify(one.axes) === JSON.stringify(spec[dim]));
      const name = fill(WIDGETS.dimension, { name: clean(input.label), dim, size });
      const labels = found.map((one) => one.label);
      const pick = select(labels, now?.label ?? "", `spec${number}:${dim}`, name, (chosen) => {
        this._place(input, dim, found[chosen].axes);
      });
      return dimension(dim, size, pick);
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
      h("div", { class: "dims" }, ...dims2.length ? dims2 : [h("span", { class: "faint" }, WIDGETS.scalar)])
    );
  }
  /** Change a spec; the controls stay as they are, since what there is to choose does not change. */
  _place(input, dim, axes2) {
    this._plan = copyOf(this._plan);
    for (const name of input.names) {
      this._plan.specs[name][dim] = axes2;
    }
    this.change(this._plan);
  }
  _written = {};
  _specs = [];
  _open = false;
};
function dimension(dim, size, control) {
  const label3 = h("span", { class: "faint" }, fill(WIDGETS.dim, { dim, size }));
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
    const { axes: axes2, inputs, outputs } = this._picks;
    if (!inputs?.length) {
      return h("div");
    }
    const compile = h("button", { type: "button", on: { click: () => this._ask("compile") } }, WIDGETS.compile);
    const rows2 = (part, picks) => picks.map((pick, i) => this._row(pick, axes2, `${part}${i}`));
    return h(
      "div",
      { class: "picker even" },
      h("div", { class: "inputs" }, heading("in_specs"), ...rows2("in", inputs)),
      h("div", { class: "inputs" }, heading("out_specs"), ...rows2("out", outputs ?? []), compile)
    );
  }
  _row(pick, axes2, key) {
    const spec = h("span", { class: "faint" });
    this._specs.set(key, spec);
    const inside2 = key.startsWith("out");
    const dims2 = pick.shape.map((size, dim) => {
      const found = inside2 ? joined(axes2, size) : choices(axes2, size);
      const now = found.find((one) => JSON.stringify(one.axes) === JSON.stringify(pick.spec[dim]));
      const name = fill(WIDGETS.dimension, { name: clean(pick.name), dim, size });
      const labels = found.map((one) => one.label);
      const list2 = select(labels, now?.label ?? "", `${key}:${dim}`, name, (chosen) => {
        pick.spec[dim] = found[chosen].axes;
        this._ask("check");
      });
      return dimension(dim, size, list2);
    });
    return h(
      "div",
      { class: "input" },
      h("div", { class: "what" }, h("b", null, clean(pick.name)), " ", spec),
      h("div", { class: "dims" }, ...dims2)
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
    const { said } = found;
    const kind = found.accepted ? "accepted" : "refused";
    this._head.replaceChildren(
      h("b", null, said.mesh),
      h("span", { class: "chip", "data-kind": kind }, said.verdict),
      h("span", { role: "status" }, clean(said.sentence))
    );
    const written = [said.inputs.map((text, i) => [`in${i}`, text]), said.outputs.map((text, i) => [`out${i}`, text])];
    written.flat().forEach(([key, text]) => this._specs.get(key)?.replaceChildren(text));
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
    const place2 = h("div");
    const open = () => {
      this._view ??= mountReport(place2, report);
    };
    const title = h("summary", null, WIDGETS.program);
    const region = found.region && h("p", null, mono(clean(found.region)));
    return [h("details", { on: { toggle: open } }, title, region || null, place2)];
  }
  _picks;
  _head = h("div", { class: "header" });
  _body = h("div", { class: "sent" });
  _specs = /* @__PURE__ */ new Map();
  _view = null;
  _number = 0;
};
function joined(axes2, size) {
  const parts = (names) => names.reduce((all, name) => all * (axes2.find((axis) => axis.name === name)?.size ?? 1), 1);
  return choices(axes2, 0).map((one) => ({
    axes: one.axes,
    label: one.axes.length ? fill(WIDGETS.inAll, { axes: one.axes.join(", "), size: size * parts(one.axes) }) : WIDGETS.asItIs
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
        (text, i) => h("div", null, i ? WIDGETS.or : WIDGETS.write, mono(clean(text)), " ", copier(text))
      )
    )
  );
}
var COLUMNS2 = [
  WIDGETS.shardArray,
  WIDGETS.shardSpec,
  WIDGETS.shardWhole,
  WIDGETS.shardLocal,
  WIDGETS.shardVaries
];
function shards(found) {
  const cells = (shard, role) => row("td", [role, clean(shard.name), clean(shard.spec), dims(shard.shape), dims(shard.local_shape), varies(shard.varying)]);
  return h(
    "div",
    { class: "pins" },
    heading(WIDGETS.shards),
    h(
      "table",
      { class: "wholes" },
      h("thead", null, row("th", ["", ...COLUMNS2])),
      h(
        "tbody",
        null,
        ...found.inputs.map((one) => cells(one, WIDGETS.in)),
        ...found.outputs.map((one) => cells(one, WIDGETS.out))
      )
    )
  );
}
function row(tag, texts) {
  return h("tr", null, ...texts.map((text) => h(tag, null, text)));
}
function dims(shape) {
  return shape ? `[${shape.join(", ")}]` : REPORT.notKnown;
}
function varies(axes2) {
  if (!axes2) {
    return WIDGETS.notTracked;
  }
  return axes2.length ? clean(axes2.join(", ")) : WIDGETS.same;
}
function body(found) {
  let last = "";
  const items = [];
  for (const line2 of found.lines) {
    const place2 = line2.location && `${line2.location.source}:${line2.location.line}`;
    if (place2 && place2 !== last && line2.location) {
      last = place2;
      items.push(source(found, line2.location));
    }
    items.push(...line2.binds.map((bind) => bound(line2, bind)));
  }
  return h("div", { hidden: !items.length }, heading(WIDGETS.lines), h("ol", { class: "lines" }, ...items));
}
function source(found, { source: at, line: line2 }) {
  const text = found.sources[at];
  const said = text ? text.text.split("\n")[line2 - text.first_line] ?? "" : "";
  return h(
    "li",
    { class: "line" },
    h("span", { class: "number", "aria-hidden": "true" }, String(line2)),
    h("code", { class: "text" }, h("b", null, clean(said)))
  );
}
function bound(line2, bind) {
  const call = line2.primitive ? ` = ${line2.primitive} ${line2.operands.join(" ")}` : "";
  const note = line2.inserted ? WIDGETS.insertedNote : "";
  const kind = !bind.varying ? "open" : bind.varying.length ? "varies" : "same";
  const type = bind.type.replace(/\{.*\}$/, "");
  return h(
    "li",
    { class: "line" },
    h("span", { class: "number" }, ""),
    h("code", { class: "text" }, clean(`    ${bind.name}: ${type}${call}${note}`)),
    h("span", { class: "chip", "data-kind": kind }, varies(bind.varying))
  );
}
var MARKS = /* @__PURE__ */ new Map([
  [true, WIDGETS.ok],
  [false, WIDGETS.no],
  [null, WIDGETS.notReached]
]);
function steps(found) {
  const items = found.steps.map(({ name, passed, message: message2 }) => {
    const kind = passed ? "accepted" : passed === null ? "open" : "refused";
    const mark = passed === null && message2 ? WIDGETS.notChecked : MARKS.get(passed);
    return h(
      "div",
      { class: "step" },
      h("span", { class: "chip", "data-kind": kind }, mark ?? ""),
      h("span", null, clean(name) + (message2 ? `: ${clean(message2)}` : ""))
    );
  });
  return h("div", null, heading(WIDGETS.steps), ...items);
}
function message(found) {
  if (!found.message) {
    return [];
  }
  const text = found.message.split("\n").map(clean).join("\n");
  return [h("details", null, h("summary", null, fill(WIDGETS.ownWords, { error: clean(found.error) })), h("pre", { class: "raw" }, text))];
}

// src/widget/pins.ts
function table2(pins, show, drop) {
  const columns = columnsOf(pins);
  const least = columns.map((name) => {
    const known = pins.map((pin) => figure(pin, name).value).filter((value) => value !== null);
    return known.length > 1 && new Set(known).size > 1 ? Math.min(...known) : null;
  });
  const cell = (pin, name, i) => {
    const { text, value } = figure(pin, name);
    const isLeast = least[i] !== null && value === least[i];
    return h("td", null, text, isLeast && h("span", { class: "least" }, WIDGETS.least));
  };
  const rows2 = pins.map(
    (pin, index) => h(
      "tr",
      null,
      h("td", null, mono(pin.text)),
      ...columns.map((name, i) => cell(pin, name, i)),
      h(
        "td",
        { class: "do" },
        pin.plan && act(WIDGETS.show, () => show(index)),
        act(WIDGETS.unpin, () => drop(index))
      )
    )
  );
  const names = [WIDGETS.plan, ...columns].map((name) => h("th", { scope: "col" }, name));
  const last = h("th", { scope: "col" }, h("span", { class: "unseen" }, WIDGETS.toDo));
  return h(
    "div",
    { class: "pins", hidden: !pins.length },
    heading(WIDGETS.pins),
    h("table", null, h("thead", null, h("tr", null, ...names, last)), h("tbody", null, ...rows2))
  );
}
function columnsOf(pins) {
  return [...new Set(pins.flatMap((pin) => pin.figures.map((one) => one.name)))];
}
function figure(pin, name) {
  return pin.figures.find((one) => one.name === name) ?? { name, text: REPORT.notKnown, value: null };
}
function act(text, click) {
  return h("button", { type: "button", on: { click } }, text);
}

// src/widget/predict.ts
var NOTHING = WIDGETS.nothing;
var ANSWERS = [NOTHING, ...Object.keys(KINDS)];
var MOST = 20;
function questions(report) {
  const places = /* @__PURE__ */ new Map();
  for (const one of report.collectives) {
    const place2 = home(one, report);
    const key = JSON.stringify([place2?.source, place2?.line]);
    const { sent: sent2 } = places.get(key) ?? places.set(key, { place: place2, sent: [] }).get(key);
    if (!sent2.some((other) => alike(other, one))) {
      sent2.push(one);
    }
  }
  const found = [...places.values()].flatMap(
    ({ place: place2, sent: sent2 }) => sent2.map((_, before) => ({ line: place2?.line ?? null, text: lineText2(report, place2), sent: sent2, before }))
  );
  found.push(...silent(report).map((place2) => ({ line: place2.line, text: lineText2(report, place2), sent: [], before: 0 })));
  if (!found.length) {
    return [{ line: null, text: "", sent: [], before: 0 }];
  }
  return found.sort((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity)).slice(0, MOST);
}
function silent(report) {
  const homes = report.collectives.map((one) => home(one, report));
  if (homes.some((place2) => place2?.source !== 0)) {
    return [];
  }
  const known = new Set(homes.map((place2) => place2?.line));
  const places = report.values.flatMap(({ location }) => location?.source === 0 ? [location] : []);
  return places.filter(({ line: line2 }) => !known.has(line2) && known.add(line2));
}
function alike(one, other) {
  return one.kind === other.kind && JSON.stringify(one.axes) === JSON.stringify(other.axes);
}
function lineText2(report, place2) {
  const source2 = place2 && report.sources[place2.source];
  return source2 ? (source2.text.split("\n")[place2.line - source2.first_line] ?? "").trim() : "";
}
function judged(left, kind, axes2) {
  if (!left.length) {
    return { one: null, kind: kind === NOTHING, axes: true };
  }
  const judgements = left.map((one) => {
    const truth = new Set((one.axes ?? []).map(wholeAxis));
    const same = truth.size === axes2.size && [...truth].every((axis) => axes2.has(axis));
    return { one, kind: kind === one.kind, axes: one.axes === null || same };
  });
  return judgements.find((each) => each.kind && each.axes) ?? judgements.find((each) => each.kind) ?? judgements[0];
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
    return h("div", { class: "code" }, h("ol", { class: "lines", "aria-label": REPORT.sourceLines }, ...items));
  }
  _ask() {
    const question = this._asked[this._now];
    this._lines.forEach((item, line2) => item.toggleAttribute("data-marked", line2 === question.line));
    const axes2 = /* @__PURE__ */ new Set();
    const boxes = this.report.mesh.axes.map(({ name }) => {
      const box = h("input", { type: "checkbox" });
      box.addEventListener("change", () => box.checked ? axes2.add(name) : axes2.delete(name));
      return h("label", { class: "dim" }, box, ` ${clean(name)}`);
    });
    let kind = NOTHING;
    const list2 = select(ANSWERS, NOTHING, "kind", WIDGETS.whichCollective, (chosen) => kind = ANSWERS[chosen]);
    const reveal = h("button", { type: "button", class: "play" }, WIDGETS.reveal);
    reveal.addEventListener("click", () => {
      reveal.disabled = list2.disabled = true;
      boxes.forEach((label3) => label3.firstChild.disabled = true);
      this._reveal(judged(question.sent.filter((one) => !this._named.has(one)), kind, axes2));
    });
    this._truth = h("div", { class: "truth", "aria-live": "polite" });
    this._stage.replaceChildren(
      heading(fill(WIDGETS.question, { number: this._now + 1, all: this._asked.length })),
      h("p", null, ...this._text(question)),
      h("div", { class: "axis" }, h("label", { class: "dim" }, WIDGETS.itSends, list2), h("span", null, WIDGETS.over), ...boxes, reveal),
      this._truth
    );
    this._tell();
  }
  _text({ line: line2, text, sent: sent2, before }) {
    if (line2 === null) {
      return [this.report.collectives.length ? WIDGETS.noLine : WIDGETS.wholeProgram];
    }
    const all = sent2.length;
    const which = before ? fill(WIDGETS.oneMore, { all }) : all > 1 ? fill(WIDGETS.oneOf, { all }) : WIDGETS.whatSent;
    return [fill(WIDGETS.questionLine, { line: line2 }), mono(clean(text)), which];
  }
  _reveal({ one, ...right }) {
    const whole = right.kind && right.axes;
    if (one) {
      this._named.add(one);
    }
    this._right += whole ? 1 : 0;
    const verdict = whole ? WIDGETS.right : right.kind ? WIDGETS.rightKind : WIDGETS.wrong;
    const said = one ? fill(WIDGETS.truth, { name: one.say("name"), grouping: one.say("grouping") }) : WIDGETS.truthNothing;
    this._truth.append(h("p", null, h("b", null, verdict), said));
    if (one) {
      this._answer?.dispose();
      this._answer = new Store();
      const detail = new Detail(this.report, this._answer);
      const mesh = new MeshPanel(this.report, this._answer);
      this._truth.append(h("div", { class: "main" }, detail.element, mesh.element));
      this._answer.set({ chosen: one });
      this._answer.flush();
    }
    const last = this._now + 1 >= this._asked.length;
    const next = h("button", { type: "button" }, last ? WIDGETS.again : WIDGETS.next);
    next.addEventListener("click", () => {
      this._right = last ? 0 : this._right;
      this._now = last ? 0 : this._now + 1;
      if (last) {
        this._named.clear();
      }
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
    this._score.textContent = fill(WIDGETS.score, { right: this._right, all: this._done });
  }
  _asked;
  _store;
  _score = h("div", { class: "summary" });
  _stage = h("div", { class: "quiz" });
  _lines = /* @__PURE__ */ new Map();
  /** Those that were told already. */
  _named = /* @__PURE__ */ new Set();
  _truth = h("div");
  _answer = null;
  _now = 0;
  _right = 0;
  _done = 0;
};

// src/widget/explorer.ts
var QUIET = 150;
var LATE = 3e3;
var STATES = {
  asked: WIDGETS.stateAsked,
  preview: WIDGETS.statePreview,
  compiled: WIDGETS.stateCompiled,
  refused: WIDGETS.stateRefused,
  stopped: WIDGETS.stateStopped
};
function explorer(model, root) {
  const view = new Explorer(model, root);
  return () => view.dispose();
}
var Explorer = class {
  constructor(model, root) {
    this.model = model;
    const subject = model.get("subject");
    const { plan } = model.get("compiled");
    this._number = Number(model.get("compiled").number ?? 0);
    this._picker = subject.inputs ? new Picker(subject, copyOf(plan), () => this._changed()) : null;
    this._pin = h("button", { type: "button", on: { click: () => this._pinned() } }, WIDGETS.pin);
    this._stop = h("button", { type: "button", on: { click: () => this._stopped() } }, WIDGETS.stop);
    root.append(
      h("div", { class: "header" }, this._title, this._picker ? null : h("span", null, WIDGETS.alone)),
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
    this._say("asked", WIDGETS.asking);
    this._late = window.setTimeout(() => {
      this._status.textContent = WIDGETS.late;
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
    this._say("stopped", WIDGETS.stopped);
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
      this._fail(answer.said);
      return;
    }
    if (answer.kind === "preview") {
      this._drawGrids(readReport(JSON.parse(answer.report)), "preview");
    }
    this._picker?.tell(answer.specs ?? {});
    this._say(answer.kind === "preview" ? "preview" : "asked", answer.said);
    this._sent.toggleAttribute("data-stale", true);
    this._stale.hidden = false;
    this._stale.textContent = WIDGETS.stale;
    this._compiling = window.setTimeout(() => this._send("compile", this._number), QUIET);
  }
  _fail(said) {
    this._error.textContent = said.split("\n").map(clean).join("\n");
    this._error.hidden = false;
    this._say("refused", WIDGETS.before);
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
    this._picker?.tell(compiled.specs);
    this._say("compiled", compiled.said);
    this._pin.disabled = false;
  }
  /** An older plan was in the kernel's memory: its answer came as a compiled one. */
  _changedMeanwhile() {
    if (this._chip.getAttribute("data-kind") === "asked") {
      this._ask();
    }
  }
  // What is drawn
  _say(kind, text) {
    this._chip.textContent = STATES[kind];
    this._chip.setAttribute("data-kind", kind);
    this._status.textContent = clean(text);
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
    this._sent.replaceChildren(heading(WIDGETS.sends), ...sending(report, store));
    this._sent.toggleAttribute("data-stale", false);
    store.set({ chosen: heaviest(report.collectives) });
    store.flush();
    this._ends.splice(0).forEach((end) => end());
    this._whole.replaceChildren(
      this._folded(WIDGETS.guess, (place2) => {
        const quiz = new Quiz(report, place2);
        return () => quiz.dispose();
      }),
      this._folded(WIDGETS.wholeReport, (place2) => {
        const view = mountReport(place2, report);
        return () => view.dispose();
      })
    );
  }
  /** What is drawn when it is opened; `draw` gives the way to end it. */
  _folded(title, draw2) {
    const place2 = h("div");
    const open = () => {
      if (!place2.hasChildNodes()) {
        this._ends.push(draw2(place2));
      }
    };
    return h("details", { on: { toggle: open } }, h("summary", null, title), place2);
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
    const title = h("summary", null, WIDGETS.code);
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
  _newStore(place2) {
    this._stores[place2]?.dispose();
    return this._stores[place2] = new Store();
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
    root.append(h("div", { class: "error", role: "alert" }, fill(WIDGETS.noView, { name: clean(String(model.get("view"))) })));
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
  widget_default as default,
  mount
};
