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
var TONES = {
  "neutral": [
    "#dfe3e8",
    "#22262b"
  ],
  "amber": [
    "#fbd38d",
    "#4a2f00"
  ],
  "red": [
    "#f5a3a0",
    "#5c0b08"
  ]
};
var LEGEND = {
  "neutral": "typical of a strategy, called, or completing a partial sum",
  "amber": "a reshard that you did not write",
  "red": "the largest cost, or full rematerialization"
};
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
var SHAPES = {
  "Axis": {
    "defaults": {
      "type": "auto"
    },
    "parts": {}
  },
  "Badge": {
    "defaults": {
      "cause": "",
      "tone": "neutral"
    },
    "parts": {}
  },
  "Blocked": {
    "defaults": {},
    "parts": {}
  },
  "Change": {
    "defaults": {},
    "parts": {}
  },
  "Collective": {
    "defaults": {
      "trips": 1,
      "generated": false,
      "asked_by": null,
      "by_autodiff": false,
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
      "branches": [],
      "op_name": "",
      "module": "",
      "instruction": "",
      "channel": null,
      "made_as": null,
      "algorithm": null,
      "overlap": null,
      "least_trips": 0,
      "role": null,
      "role_of": "",
      "on_accelerators": null,
      "measured": null
    },
    "parts": {
      "fixes": "Fix",
      "frames": "Location",
      "overlap": "Overlap",
      "on_accelerators": "OnAccelerators",
      "measured": "Measured"
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
      "uncounted": 0,
      "memory_size": null,
      "memory_least_seconds": null,
      "crossing": {}
    },
    "parts": {}
  },
  "DeviceTimeline": {
    "defaults": {
      "position": null,
      "computing": [],
      "communicating": [],
      "ids": []
    },
    "parts": {}
  },
  "Diff": {
    "defaults": {
      "changes": [],
      "kinds": [],
      "wire_bytes": [
        0,
        0
      ],
      "memory": null
    },
    "parts": {
      "changes": "Change",
      "kinds": "KindChange"
    }
  },
  "Finding": {
    "defaults": {
      "location": null,
      "wasted_bytes": null,
      "details": "",
      "values": [],
      "wire_bytes": null,
      "collectives": [],
      "locations": [],
      "subject": "",
      "edits": [],
      "fixes": null
    },
    "parts": {
      "location": "Location",
      "values": "Value",
      "locations": "Location",
      "edits": "ProposedEdit",
      "fixes": "Fix"
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
  "Held": {
    "defaults": {
      "dtype": "",
      "shape": [],
      "count": 1,
      "location": null,
      "phase": null,
      "reused": false,
      "copied": false,
      "stacked": false,
      "sliced": false,
      "collective": ""
    },
    "parts": {
      "location": "Location"
    }
  },
  "KindChange": {
    "defaults": {
      "at_least": false
    },
    "parts": {}
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
  "Measured": {
    "defaults": {
      "waiting": null,
      "hidden": 0,
      "executions": 1,
      "at_most": false
    },
    "parts": {}
  },
  "Memory": {
    "defaults": {
      "aliased": 0,
      "code": 0,
      "constants": 0,
      "host": 0,
      "peak": null
    },
    "parts": {
      "peak": "Peak"
    }
  },
  "Mesh": {
    "defaults": {
      "target": "cpu",
      "platform": "cpu",
      "kind": "cpu",
      "emulated": false,
      "coords": null,
      "cores": null,
      "slices": null,
      "hosts": null,
      "domains": null
    },
    "parts": {
      "axes": "Axis"
    }
  },
  "NewSpec": {
    "defaults": {},
    "parts": {}
  },
  "OnAccelerators": {
    "defaults": {},
    "parts": {}
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
  "Outcome": {
    "defaults": {
      "words": []
    },
    "parts": {}
  },
  "Overlap": {
    "defaults": {
      "ops": 0,
      "names": [],
      "cycles": null
    },
    "parts": {}
  },
  "Peak": {
    "defaults": {
      "others": 0,
      "unused": 0,
      "location": null,
      "phase": null
    },
    "parts": {
      "held": "Held",
      "location": "Location"
    }
  },
  "Profile": {
    "defaults": {
      "hosts": 1,
      "platform": "cpu",
      "kind": "",
      "hardware": "",
      "unmeasured": 0,
      "timeline": []
    },
    "parts": {
      "timeline": "DeviceTimeline"
    }
  },
  "ProposedEdit": {
    "defaults": {
      "specs": []
    },
    "parts": {
      "specs": "NewSpec"
    }
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
      "partitioned": true,
      "complete": true,
      "outcomes": [],
      "profile": null,
      "since": null,
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
      "outcomes": "Outcome",
      "profile": "Profile",
      "since": "Diff",
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
      "peak": null,
      "changed": "",
      "outcomes": [],
      "points": [],
      "rows": [],
      "measured": "",
      "timeline": "",
      "cost": "",
      "assumptions": [],
      "lines": [],
      "arrays": {},
      "arrivals": null,
      "collectives": {}
    },
    "parts": {
      "inputs": "SaidArrays",
      "outputs": "SaidArrays",
      "values": "SaidArrays",
      "peak": "SaidPeak",
      "points": "SaidPoint",
      "rows": "SaidRow",
      "lines": "LedLine",
      "arrays": "*Column",
      "arrivals": "Column",
      "collectives": "*Column"
    }
  },
  "SaidArrays": {
    "defaults": {
      "names": [],
      "sizes": [],
      "members": []
    },
    "parts": {}
  },
  "SaidEdit": {
    "defaults": {
      "compiled": true
    },
    "parts": {}
  },
  "SaidPeak": {
    "defaults": {
      "rest": ""
    },
    "parts": {}
  },
  "SaidPoint": {
    "defaults": {
      "ids": "",
      "edits": [],
      "finding": -1
    },
    "parts": {
      "edits": "SaidEdit"
    }
  },
  "SaidRow": {
    "defaults": {
      "tone": "neutral",
      "measured": "",
      "seconds": 0,
      "bytes": 0
    },
    "parts": {}
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
      "blocked": [],
      "memory": ""
    },
    "parts": {
      "location": "Location",
      "origins": "Origin",
      "blocked": "Blocked"
    }
  },
  "Work": {
    "defaults": {
      "uncounted": 0,
      "least_bytes": 0
    },
    "parts": {}
  }
};
var REPORT = {
  "notReport": "this is not a report: {why}",
  "noVersion": "it has no version number",
  "tooNew": "the report has version {version}, and this view reads up to {known}: update shardnb to see it",
  "noWords": "the report was saved by an older shardnb, without the words of this view: run its cell again",
  "notObject": "{part} is not an object",
  "notList": "{part} is not a list",
  "theData": "the data",
  "aPart": "a part of it",
  "otherDevices": "its mesh of {size} positions has other devices",
  "otherRank": "the array {name} has shards of another rank",
  "noGroups": "collective {id} has no groups",
  "noAxis": "its mesh has no axis {name}",
  "open": "Open in side panel",
  "rest": "What is sent, arrays, memory",
  "arrays": "Array shardings",
  "values": "Values inside the program",
  "types": "Shardings in the types of each line",
  "inserted": "inserted by JAX",
  "mesh": "Mesh",
  "memory": "Memory",
  "time": "Time",
  "notes": "Notes",
  "passed": "passed",
  "failed": "failed",
  "notKnown": "not known",
  "details": "details",
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
  "morePoints": [
    "{number} more to look at",
    "{number} more to look at"
  ],
  "fix": "Fix:",
  "try": "Try:",
  "compiled": "[compiled]",
  "notCompiled": "[not compiled]",
  "sent": "What is sent",
  "columnFor": "for",
  "columnTimes": "times",
  "columnSends": "per run",
  "columnWhy": "why",
  "heldBytes": "per device",
  "heldValues": "values",
  "heldShape": "shape per device",
  "heldLine": "line",
  "columnMeasured": "measured",
  "bySeconds": "slowest first",
  "byBytes": "most bytes first",
  "measured": "Measured",
  "timeline": "Timeline",
  "timelineDevices": "devices that are shown",
  "computing": "computing",
  "moreRows": [
    "show {number} more row",
    "show {number} more rows"
  ],
  "filtered": "{shown} of {all} collectives",
  "showAll": "show all",
  "member": "{number} of {all}",
  "previous": "previous",
  "next": "next",
  "exchange": "{grouping}: {array} on each device, sends {size}{trips}",
  "calls": "Call stack",
  "call": "{line} in {function}",
  "inside": "inside {part}",
  "raw": "HLO",
  "operation": "operation {name}",
  "play": "Play {kind}",
  "close": "Close",
  "pause": "pause",
  "playOn": "play",
  "back": "step back",
  "on": "step on",
  "exchangeStep": "Step of the collective",
  "before": "before it starts",
  "beforeSums": "before: each device holds a partial sum of each block",
  "step": "step {step} of {all}: {said}",
  "lastStep": "step {step} of {all}: {said}; done",
  "sentEach": [
    "Each device sends {number} block, {size} in all. ",
    "Each device sends {number} blocks, {size} in all. "
  ],
  "sentA": [
    "Some devices send {number} block, {size} in all. ",
    "Some devices send {number} blocks, {size} in all. "
  ],
  "standFor": "{drawn} devices stand for the {all} of a group. ",
  "allGroups": "All groups do the same at the same time. ",
  "assumes": "The bytes are estimated for this ring algorithm.",
  "swap": "pairs of devices swap the blocks that they hold for each other",
  "goesOn": "the block is passed on to the next device",
  "adds": "each device sends a block to the next, which adds its own partial sum",
  "passesSum": "each device sends a copy of a finished block to the next",
  "passes": "each device sends a copy of a block to the next",
  "toPartner": "each device sends its block to its partner",
  "spread": "Step through the propagation of shardings",
  "firstStep": "before the first step: the shardings of inputs, outputs and constraints",
  "notKnownWhen": "time not known",
  "moment": "the sharding over {axis} propagates {direction} through {op}{at}{aside}, from {source} to {target}",
  "toOther": " (to its other operand)",
  "stepAt": " at line {line}",
  "stepAtIn": " at line {line} of {source}",
  "arrowKeys": "{title}. Arrow keys move between tiles.",
  "blocks": "{array}: {number} blocks",
  "dim": "dim {dim}: {place}",
  "dimOver": "dim {dim} over {axes}",
  "dimIn": "dim {dim} in {parts}",
  "dimWhole": "dim {dim} not sharded",
  "nobody": "none",
  "times": "x{number}",
  "listedTimes": "{listed} (x{number})",
  "some": "{first} ... {last} ({number})",
  "someOf": "{first} ... {last}",
  "whoExchanges": "Communicating devices",
  "whoHolds": "Devices by shard",
  "groups": "{name}: {grouping}",
  "groupsAlong": "{name}: {grouping} along {axes}",
  "byBlock": "{name}: by the shard that each device holds",
  "byNothing": "{name}: sharding not known",
  "holdersTitle": "Each device by the shard of {name} that it holds",
  "meshTitle": "The devices of the mesh",
  "device": "device {id}",
  "deviceAt": "device {id} ({place})",
  "chip": "at ({coords})",
  "host": "host {number}",
  "slice": "slice {number}",
  "hostLines": "lines separate {number} hosts",
  "sliceLines": "thick lines separate {number} slices",
  "holds": "holds {block}",
  "group": "in group {name}: {devices}",
  "noPart": "does not take part",
  "sendsTo": "sends to {devices}",
  "receives": "receives from {devices}",
  "block": [
    "{block} on device {devices}",
    "{block} on devices {devices}"
  ],
  "nowhere": "{block} on no device",
  "partial": "partial sums of {block}",
  "ownValue": "per-device values of {block}",
  "beside": "next to it: {parts}",
  "both": "{one} and {other}",
  "alongAxis": "{devices} along {axis}",
  "alongDim": "{devices} along dim {dim}"
};
var WIDGETS = {
  "noView": "no view {name}",
  "inputs": "Input shardings",
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
  "whole": "not sharded",
  "splitOver": "{axes}: {size} per device",
  "doesNotDivide": "{axes}: not divisible",
  "family": "{pattern} ({number})",
  "applyAlike": [
    "apply to {number} alike",
    "apply to {number} alike"
  ],
  "recipes": "Start from",
  "mirror": "mirror parameters to optimizer state",
  "mirrorTitle": "Give each array of the optimizer state the spec of its parameter",
  "undo": "undo",
  "undoTitle": "Undo the last change of the plan (Ctrl+Z)",
  "redo": "redo",
  "redoTitle": "Redo what was undone (Ctrl+Shift+Z)",
  "changed": "What this set, and what it left",
  "placed": "Sharded",
  "left": "Left, and why",
  "findFixes": "find fixes",
  "findFixesTitle": "Compile other specs of inputs and results that avoid collectives",
  "searchPlans": "search plans",
  "searchPlansTitle": "Search the specs that hold and send least on this mesh",
  "stopSearch": "stop the search",
  "fixes": "Fixes",
  "plans": "Plans",
  "use": "use",
  "alone": "This report has no function to recompile, so its plan cannot be changed here: sn.explore(fn, *args, mesh=...) compiles other plans.",
  "pin": "pin this plan",
  "stop": "stop",
  "stateAsked": "asked",
  "statePreview": "preview",
  "stateCompiled": "compiled",
  "stateRefused": "refused",
  "stateStopped": "stopped",
  "asking": "Asking Shardy ...",
  "late": "The kernel has not answered yet: it may be running a cell.",
  "stopped": "Stopped. What is sent below belongs to the last plan that was compiled.",
  "stale": "What is sent below still belongs to the last plan that was compiled.",
  "before": "The pictures show the previous plan.",
  "sends": "What the compiled program sends",
  "guess": "Guess what each line sends, then see",
  "wholeReport": "The whole report of the compiled program",
  "code": "Code for this plan",
  "pins": "Pinned plans",
  "plan": "plan",
  "toDo": "action",
  "least": "least",
  "show": "show",
  "unpin": "unpin",
  "nothing": "nothing",
  "whichCollective": "which collective",
  "reveal": "reveal",
  "question": "Question {number} of {all}",
  "itSends": "It sends ",
  "over": "over",
  "noLine": "The line of one collective is not known.",
  "wholeProgram": "What does this program send?",
  "oneOf": " It sends {all} different collectives: name one, in any order.",
  "oneMore": " It sends {all} different collectives: name another.",
  "whatSent": " What does it send?",
  "right": "Right.",
  "rightKind": "The right kind, over other axes.",
  "wrong": "Not quite.",
  "truth": " It is {name}, {grouping}.",
  "truthNothing": " It sends nothing. {why}",
  "again": "start again",
  "next": "next",
  "score": "{right} of {all} right",
  "compile": "compile it",
  "program": "The compiled program",
  "inAll": "{axes}: {size} in all",
  "asItIs": "as it is",
  "write": "write ",
  "or": "or ",
  "shards": "Arrays: global shape, and per device as the body sees it",
  "shardArray": "array",
  "shardSpec": "spec",
  "shardWhole": "global",
  "shardLocal": "per device",
  "shardVaries": "varies over",
  "in": "in",
  "out": "out",
  "same": "none: equal on all devices",
  "notTracked": "not tracked by JAX",
  "lines": "Varying values, line by line",
  "insertedNote": "  (inserted by JAX)",
  "steps": "The checks, in order",
  "ok": "ok",
  "no": "no",
  "notReached": "not reached",
  "notChecked": "not checked",
  "ownWords": "JAX's message: {error}"
};

// src/view/dom.ts
var OWN_KEYS = { "data-lm-suppress-shortcuts": true };
function h(tag, props = null, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === "on") {
      for (const [type, handler] of Object.entries(value)) {
        element.addEventListener(type, handler);
      }
    } else if (name === "class") {
      element.className = String(value).replace(/\S+/g, "shardnb-$&");
    } else if (value !== null && value !== void 0 && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
}
function button(text, click, more2 = {}) {
  return h("button", { type: "button", ...more2, on: { click } }, text);
}
function folded(title, body2, draw2, summary = "") {
  const toggle = () => {
    if (!body2.hasChildNodes()) {
      draw2();
    }
  };
  const line2 = summary ? [h("b", null, title), " ", h("span", { class: "faint" }, summary)] : [title];
  return h("details", { on: { toggle } }, h("summary", null, ...line2), body2);
}
function slider(max, name, go) {
  const input = () => go(Number(range2.value));
  const range2 = h("input", {
    type: "range",
    ...OWN_KEYS,
    class: "slider",
    min: 0,
    max,
    "aria-label": name,
    on: { input }
  });
  return range2;
}
function sized(canvas, size) {
  for (const side of ["width", "height"]) {
    canvas.style[side] = `${size[side]}px`;
    canvas[side] = Math.ceil(size[side] * (window.devicePixelRatio || 1));
  }
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
function cleanLines(text) {
  return text.split("\n").map(clean).join("\n");
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
  if (typeof whole.version !== "number") {
    throw wrong(REPORT.noVersion);
  }
  if (whole.version > VERSION) {
    throw new Error(fill(REPORT.tooNew, { version: whole.version, known: VERSION }));
  }
  if (!whole.said) {
    throw new Error(REPORT.noWords);
  }
  const table3 = whole.group_table ?? [];
  if (!Array.isArray(table3)) {
    throw wrong(fill(REPORT.notList, { part: "group_table" }));
  }
  const read = filled(whole, "Report");
  const said = filled(whole.said, "Said");
  const { axes, device_ids: devices2 } = read.mesh;
  const size = axes.reduce((product2, axis) => product2 * axis.size, 1);
  if (axes.length && devices2.length !== size) {
    throw wrong(fill(REPORT.otherDevices, { size }));
  }
  const texts = reader(said.arrays);
  let number = 0;
  const values = (found) => found.map((value) => spoken(checked(value), number++, texts));
  const shown = {
    ...read,
    said,
    inputs: values(read.inputs),
    outputs: values(read.outputs),
    values: values(read.values),
    findings: read.findings.map((found) => ({ ...found, values: values(found.values) })),
    collectives: collectives(read.collectives, table3, reader(said.collectives))
  };
  return {
    ...shown,
    histories: histories(said, read.values.length, number),
    byId: new Map(shown.collectives.map((one) => [one.id, one])),
    tones: new Map(said.rows.flatMap(({ ids, tone }) => numbers(ids).map((id) => [id, tone]))),
    brief: whole.view === "brief"
  };
}
function numbers(text) {
  return text ? text.split(" ").map(Number) : [];
}
function histories({ arrivals }, values, arrays2) {
  const texts = reader(arrivals ? { arrivals } : {});
  let first = arrays2;
  return Array.from({ length: values }, (_, i) => {
    const text = texts("arrivals", i);
    const when = text === "?" ? [] : numbers(text);
    const steps2 = when.length ? [.../* @__PURE__ */ new Set([0, ...when])] : [];
    const history = { when: text === "?" ? null : when, steps: steps2, first };
    first += steps2.length;
    return history;
  });
}
function inState(value, array, state) {
  return { ...spoken(value, array, value.texts), ...state };
}
function home(collective) {
  return collective.frames[Number(collective.say("home"))] ?? null;
}
function lineAt({ source, line: line2 }, sources) {
  const found = sources[source];
  return found?.text.split("\n")[line2 - found.first_line] ?? "";
}
function placeText({ source, line: line2 }, sources) {
  const name = source ? sources[source]?.name : void 0;
  return fill(name === void 0 ? REPORT.line : REPORT.lineIn, { line: line2, source: clean(name ?? "") });
}
function checked(value) {
  const dims2 = value.shape.length;
  if (value.shard_shape.length !== dims2 || value.spec && value.spec.length !== dims2) {
    throw wrong(fill(REPORT.otherRank, { name: value.name }));
  }
  return value;
}
function reader(columns) {
  const places = new Map(
    Object.entries(columns).map(([name, { at }]) => [name, numbers(at)])
  );
  return (text, number) => columns[text]?.texts[places.get(text)?.[number] ?? 0] ?? "";
}
function spoken(value, number, texts) {
  const why = () => fill(texts("why", number), {
    name: clean(value.name),
    type: texts("type", number),
    from: clean(value.origins[0]?.name ?? "")
  });
  return { ...value, say: (text) => text === "why" ? why() : texts(text, number), texts };
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
  const { defaults, parts: parts2 } = SHAPES[kind];
  const read = { ...defaults, ...record(item, REPORT.aPart) };
  for (const field in parts2) {
    read[field] = inside(read[field], parts2[field], field);
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
function wrong(why) {
  return new Error(fill(REPORT.notReport, { why }));
}

// src/view/layout.ts
function layoutOf(value, mesh) {
  if (value.spec === null && (value.grid === null || value.blocks === null)) {
    return null;
  }
  const blocks = value.spec ? blocksOf(value.spec, mesh) : value.blocks ?? [];
  const holders = /* @__PURE__ */ new Map();
  blocks.forEach((block, position) => {
    const found = holders.get(block);
    found ? found.push(position) : holders.set(block, [position]);
  });
  return { grid: gridOf(value, mesh), blocks, holders };
}
function gridOf(value, mesh) {
  return value.spec?.map((axes) => product(axes.map((axis) => partOf(axis, mesh).size))) ?? value.grid ?? value.shape.map(() => 1);
}
function blocksOf(spec, mesh) {
  const parts2 = spec.flat().map((axis) => partOf(axis, mesh));
  return mesh.device_ids.map(
    (_, position) => parts2.reduce((block, { size, after }) => block * size + Math.floor(position / after) % size, 0)
  );
}
function partOf(axis, mesh) {
  const name = wholeAxis(axis);
  const at = mesh.axes.findIndex((each) => each.name === name);
  if (at < 0) {
    throw new Error(fill(REPORT.notReport, { why: fill(REPORT.noAxis, { name }) }));
  }
  const whole = mesh.axes[at].size;
  const [before, size] = (PART.exec(axis)?.slice(2) ?? [1, whole]).map(Number);
  const minor = product(mesh.axes.slice(at + 1).map((each) => each.size));
  return { size, after: minor * Math.max(1, Math.floor(whole / (before * size))) };
}
var PART = /^(.*):\((\d+)\)(\d+)$/s;
function wholeAxis(axis) {
  return PART.exec(axis)?.[1] ?? axis;
}
function product(sizes) {
  return sizes.reduce((result, size) => result * size, 1);
}
function indexOf(grid, number) {
  const index = [];
  let rest = number;
  for (const size of [...grid].reverse()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return index;
}
function sliceText(value, layout, block) {
  const parts2 = indexOf(layout.grid, block).map((place, dim) => {
    const end = value.shape[dim];
    const start = Math.min(end, place * value.shard_shape[dim]);
    return `${start}:${Math.min(end, start + value.shard_shape[dim])}`;
  });
  return `[${parts2.join(", ")}]`;
}
function neighbours(grid, number) {
  const index = indexOf(grid, number);
  return grid.flatMap((size, dim) => {
    const step2 = product(grid.slice(dim + 1));
    const before = index[dim] > 0 ? number - step2 : null;
    const after = index[dim] < size - 1 ? number + step2 : null;
    return size > 1 ? [[dim, before, after]] : [];
  });
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
function tint(rank, total, down = 0, across = 0) {
  if (total <= HUES.length * PATTERNS.length) {
    const pattern2 = PATTERNS[Math.floor(rank / HUES.length)];
    return { ground: HUES[rank % HUES.length], pattern: pattern2 };
  }
  const hue = (306 * down).toFixed(1);
  return { ground: `hsl(${hue}, 60%, ${(66 + 24 * across).toFixed(1)}%)`, pattern: "" };
}
function letter(number) {
  let name = "";
  for (let rest = number + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    name = String.fromCharCode(65 + (rest - 1) % 26) + name;
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
    gather(stage, n, REPORT.passes);
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
    gather(stage, n, REPORT.passesSum);
    return stage.done(n, n);
  },
  "all-to-all": (n) => {
    const cells = Array.from({ length: n }, (_, block) => Array(n).fill({ block, parts: 1 }));
    const stage = new Stage(cells);
    for (let step2 = 0; step2 < n; step2++) {
      stage.step(REPORT.swap, true, (device) => {
        const to = n & n - 1 ? (step2 - device + n) % n : device ^ step2;
        return to === device ? null : { to, slot: to, target: device };
      });
    }
    return stage.done(n, 1);
  },
  "collective-broadcast": (n) => {
    const stage = new Stage(table(n, 1, (device) => device ? 0 : 1));
    for (let step2 = 0; step2 < n - 1; step2++) {
      stage.step(
        REPORT.goesOn,
        false,
        (device) => device === step2 ? { to: step2 + 1, slot: 0, target: 0 } : null
      );
    }
    return stage.done(1, 1);
  },
  "collective-permute": null,
  "ragged-all-to-all": null
};
function scatter(stage, n) {
  for (let step2 = 0; step2 < n - 1; step2++) {
    stage.step(REPORT.adds, true, (device) => {
      const slot = (device - step2 - 1 + 2 * n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}
function gather(stage, n, said) {
  for (let step2 = 0; step2 < n - 1; step2++) {
    stage.step(said, false, (device) => {
      const slot = (device - step2 + n) % n;
      return { to: (device + 1) % n, slot, target: slot };
    });
  }
}
function permute(one, mesh) {
  const positions = [...new Set(one.groups.flat())].sort((a, b) => a - b);
  const members2 = positions.slice(0, DRAWN);
  const pairs2 = one.groups.map(([from, to]) => [members2.indexOf(from), members2.indexOf(to)]).filter(([from, to]) => from >= 0 && to >= 0 && from !== to);
  if (!pairs2.length || positions.length > mesh.device_ids.length) {
    return null;
  }
  const target = new Map(pairs2);
  const stage = new Stage(members2.map((_, block) => [{ block, parts: 1 }]));
  stage.step(REPORT.toPartner, true, (device) => {
    const to = target.get(device);
    return to === void 0 ? null : { to, slot: 0, target: 0 };
  });
  return { members: members2, ...stage.done(members2.length, 1), all: positions.length, sends: 1 };
}
function table(n, slots, parts2) {
  return Array.from(
    { length: n },
    (_, device) => Array.from({ length: slots }, (_2, slot) => {
      const held = parts2(device, slot);
      return held ? { block: slot, parts: held } : null;
    })
  );
}
var Stage = class {
  constructor(first) {
    this._frames = [first];
  }
  /** All devices send at once; `gives` says whether what is sent is gone from its sender. */
  step(said, gives, sends) {
    const now = this._frames[this._frames.length - 1];
    const next = now.map((row2) => [...row2]);
    const moves = [];
    now.forEach((row2, from) => {
      const sent = sends(from);
      const cell = sent && row2[sent.slot];
      if (cell) {
        moves.push({ from, ...sent, cell });
        next[from][sent.slot] = gives ? null : cell;
      }
    });
    moves.forEach(({ to, target, cell }) => {
      const own = next[to][target];
      const parts2 = own && own.block === cell.block && gives ? own.parts + cell.parts : cell.parts;
      next[to][target] = { block: cell.block, parts: parts2 };
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
  const [down, across] = plane(layout.grid).map((dim) => edge(value, mesh, layout, dim));
  const array = `${clean(value.name)} ${value.say("type")}`;
  return {
    grid: layout.grid,
    down,
    across,
    title: fill(REPORT.blocks, { array, number: layout.holders.size }),
    tint: blockTint(layout),
    labels: (block) => blockLabels(block, value, mesh, layout),
    caption: (dim, place) => fill(REPORT.dim, { dim, place }),
    striped: differs(value)
  };
}
function differs({ unreduced, manual, varying }) {
  return unreduced.length > 0 || manual.length > 0 && varying?.length !== 0;
}
function edge({ spec }, mesh, layout, dim) {
  if (dim === null) {
    return "";
  }
  if (!spec?.[dim].length) {
    const parts2 = layout.grid[dim];
    return fill(parts2 > 1 ? REPORT.dimIn : REPORT.dimWhole, { dim, parts: parts2 });
  }
  const axes = spec[dim].map((name) => {
    const axis = mesh.axes.find((each) => each.name === name);
    return axis ? `${name}=${axis.size}` : name;
  });
  return clean(fill(REPORT.dimOver, { dim, axes: axes.join(" x ") }));
}
function blockTint({ grid, holders }) {
  const ranks = new Map([...holders.keys()].sort((a, b) => a - b).map((block, i) => [block, i]));
  const [down, across] = plane(grid);
  return (block) => {
    const rank = ranks.get(block);
    if (rank === void 0) {
      return NOBODY;
    }
    const index = indexOf(grid, block);
    const along = (dim) => dim === null ? 0 : index[dim] / Math.max(1, grid[dim] - 1);
    const flat = down === null || grid[down] === 1;
    const [y, x] = flat ? [along(across), 0.5] : [along(down), along(across)];
    return tint(rank, ranks.size, y, x);
  };
}
function blockLabels(block, value, mesh, layout) {
  const holders = (layout.holders.get(block) ?? []).map((position) => mesh.device_ids[position]);
  if (!holders.length) {
    return [REPORT.nobody];
  }
  const brief = listed(holders, 4, REPORT.someOf);
  const slots = { listed: brief, number: holders.length };
  const times = holders.length > 1 ? [fill(REPORT.times, slots)] : [];
  const both = times.length && !differs(value) ? [fill(REPORT.listedTimes, slots)] : [];
  return [...both, brief, ...times];
}
function groupsPicture(collective, mesh) {
  const inPairs = isInPairs(collective);
  const group = groupOf(collective, mesh);
  const { groups } = collective;
  return {
    ...meshPicture(mesh),
    title: groupsText(collective),
    tint: (place) => {
      const rank = group[place];
      if (rank < 0) {
        return NOBODY;
      }
      const turn = rank / Math.max(1, groups.length - 1);
      return inPairs ? tint(0, 1) : tint(rank, groups.length, turn, 0.8 * (rank % 2));
    },
    labels: (place) => {
      const device = String(mesh.device_ids[place]);
      const named = group[place] >= 0 && !inPairs;
      return named ? [`${letter(group[place])} ${device}`, device] : [device];
    },
    links: links(collective, mesh)
  };
}
function groupOf(collective, mesh) {
  const group = new Int32Array(mesh.device_ids.length).fill(-1);
  collective.groups.forEach((members2, i) => members2.forEach((place) => group[place] = i));
  return group;
}
function groupsText(collective) {
  const axes = clean(collective.axes?.join(", ") ?? "");
  const slots = { name: collective.say("name"), grouping: collective.say("grouping"), axes };
  return fill(axes ? REPORT.groupsAlong : REPORT.groups, slots);
}
function links(collective, mesh) {
  if (mesh.device_ids.length > LINKED) {
    return [];
  }
  const arrow = isInPairs(collective);
  const grid = mesh.axes.map((axis) => axis.size);
  const adjoin = (from, to) => neighbours(grid, from).some(([, before, after]) => to === before || to === after);
  return collective.groups.flatMap((group) => group.slice(1).map((to, i) => ({ from: group[i], to, arrow }))).filter(({ from, to }) => from !== to && (arrow || adjoin(from, to)));
}
function holdersPicture(value, mesh, layout) {
  const shade = blockTint(layout);
  return {
    ...meshPicture(mesh),
    title: fill(REPORT.holdersTitle, { name: clean(value.name) }),
    tint: (place) => shade(layout.blocks[place]),
    striped: differs(value)
  };
}
function meshPicture(mesh) {
  const grid = mesh.axes.map((axis) => axis.size);
  const [down, across] = plane(grid).map(
    (dim) => dim === null ? "" : clean(`${mesh.axes[dim].name}=${mesh.axes[dim].size}`)
  );
  return {
    grid,
    down,
    across,
    title: REPORT.meshTitle,
    tint: () => NOBODY,
    labels: (place) => [String(mesh.device_ids[place])],
    caption: (dim, place) => clean(`${mesh.axes[dim].name} ${place}`),
    ...mesh.hosts || mesh.slices ? { apart: (one, other) => apart(one, other, mesh) } : {},
    notes: notes(mesh)
  };
}
function apart(one, other, { hosts, slices }) {
  const differ = (of) => of !== null && of[one] !== of[other];
  return differ(slices) ? 2 : Number(differ(hosts));
}
function notes({ hosts, slices }) {
  const said = (text, of) => of ? [fill(text, { number: new Set(of).size })] : [];
  return [...said(REPORT.hostLines, hosts), ...said(REPORT.sliceLines, slices)];
}
function deviceText(position, mesh) {
  const index = indexOf(mesh.axes.map((axis) => axis.size), position);
  const along = index.map((at, dim) => `${mesh.axes[dim].name} ${at}`);
  const physical = mesh.coords?.[position];
  const chip2 = physical ? [fill(REPORT.chip, { coords: physical.join(", ") })] : [];
  const on = [
    ...mesh.hosts ? [fill(REPORT.host, { number: mesh.hosts[position] })] : [],
    ...mesh.slices ? [fill(REPORT.slice, { number: mesh.slices[position] })] : []
  ];
  const slots = { id: mesh.device_ids[position], place: [...along, ...chip2, ...on].join(", ") };
  return clean(fill(along.length ? REPORT.deviceAt : REPORT.device, slots));
}
function besideText(position, mesh) {
  const grid = mesh.axes.map((axis) => axis.size);
  const parts2 = neighbours(grid, position).map(([dim, ...places]) => {
    const found = places.flatMap((place) => place === null ? [] : [mesh.device_ids[place]]);
    const [one, other] = found;
    const devices2 = found.length > 1 ? fill(REPORT.both, { one, other }) : one;
    return fill(REPORT.alongAxis, { devices: devices2, axis: mesh.axes[dim].name });
  });
  return together(parts2);
}
function exchangeText(position, collective, mesh) {
  const ids = (places) => listed(places.map((place) => mesh.device_ids[place]));
  if (isInPairs(collective)) {
    const to = collective.groups.filter(([from2]) => from2 === position).map((pair) => pair[1]);
    const from = collective.groups.filter((pair) => pair[1] === position).map((pair) => pair[0]);
    const parts2 = [
      to.length && fill(REPORT.sendsTo, { devices: ids(to) }),
      from.length && fill(REPORT.receives, { devices: ids(from) })
    ];
    return parts2.filter(Boolean).join(", ") || REPORT.noPart;
  }
  const number = groupOf(collective, mesh)[position];
  return number < 0 ? REPORT.noPart : fill(REPORT.group, { name: letter(number), devices: ids(collective.groups[number]) });
}
function blockText(block, value, mesh, layout) {
  const holders = (layout.holders.get(block) ?? []).map((position) => mesh.device_ids[position]);
  const part2 = value.name + sliceText(value, layout, block);
  const own = differs(value) ? fill(REPORT.ownValue, { block: part2 }) : part2;
  const what = value.unreduced.length ? fill(REPORT.partial, { block: part2 }) : own;
  const slots = { block: what, devices: listed(holders) };
  const held = numbered(REPORT.block, holders.length, slots);
  return clean(holders.length ? held : fill(REPORT.nowhere, slots));
}
function blocksBesideText(block, mesh, layout) {
  const parts2 = neighbours(layout.grid, block).map(([dim, ...places]) => {
    const found = places.flatMap((place) => layout.holders.get(place ?? -1) ?? []);
    const devices2 = listed(found.map((position) => mesh.device_ids[position]));
    return fill(REPORT.alongDim, { devices: devices2, dim });
  });
  return together(parts2);
}
function together(parts2) {
  return parts2.length ? clean(fill(REPORT.beside, { parts: parts2.join(", ") })) : "";
}

// src/view/geometry.ts
var CAPTION = 16;
var CAPTIONED = 32;
var WIDEST = 110;
var HIGHEST = 18;
var LEAST = 3;
var READABLE = 10;
var FOLDED = 0.6;
function arrange(grid, box) {
  const [down, across] = plane(grid);
  const others = grid.map((_, dim) => dim).filter((dim) => dim !== down && dim !== across);
  const depths = others.map((dim) => grid[dim]);
  const [rows2, columns] = [down, across].map((dim) => dim === null ? 1 : grid[dim]);
  const shape = { rows: rows2, columns, deep: product(depths) };
  const { folding, free } = best(shape, box);
  const folded2 = folding.strips * folding.bands > 1;
  const wide = Math.floor(Math.min(free.width, WIDEST));
  const side = Math.max(LEAST, Math.floor(Math.min(free.height, HIGHEST, wide)));
  const tile = { width: folded2 || side < READABLE ? side : wide, height: side };
  const gaps = gapsOf(shape);
  const high = Math.ceil(rows2 / folding.strips);
  const broad = Math.ceil(columns / folding.bands);
  const strip = broad * tile.width + gaps.strip;
  const band = high * tile.height + gaps.strip;
  const width = folding.strips * strip - gaps.strip;
  const height = folding.bands * band - gaps.strip;
  const sheets = Array.from({ length: shape.deep }, (_, depth) => ({
    x: depth % folding.abreast * (width + gaps.sheet),
    y: Math.floor(depth / folding.abreast) * (height + gaps.sheet + gaps.head) + gaps.head,
    at: indexOf(depths, depth).map((place, i) => [others[i], place])
  }));
  const x = new Float32Array(product(grid));
  const y = new Float32Array(x.length);
  for (let number = 0; number < x.length; number++) {
    const index = indexOf(grid, number);
    const row2 = down === null ? 0 : index[down];
    const column = across === null ? 0 : index[across];
    const sheet = sheets[others.reduce((depth, dim) => depth * grid[dim] + index[dim], 0)];
    x[number] = sheet.x + Math.floor(row2 / high) * strip + column % broad * tile.width;
    y[number] = sheet.y + Math.floor(column / broad) * band + row2 % high * tile.height;
  }
  const right = Math.max(...sheets.map((sheet) => sheet.x)) + width;
  const bottom = Math.max(...sheets.map((sheet) => sheet.y)) + height;
  return { width: right, height: bottom, tile, x, y, sheets, folded: folded2 };
}
function placeAt({ x, y, tile }, right, below) {
  const found = x.findIndex(
    (left, i) => right >= left && right - left < tile.width && below >= y[i] && below - y[i] < tile.height
  );
  return found < 0 ? null : found;
}
function gapsOf({ rows: rows2, columns, deep }) {
  const head2 = deep > 1 && deep <= CAPTIONED ? CAPTION : 0;
  return { strip: Math.min(rows2, columns) > 2 ? 8 : 2, sheet: deep > CAPTIONED ? 4 : 8, head: head2 };
}
function best(shape, box) {
  let found = { strips: 1, bands: 1, abreast: 1 };
  let most = 0;
  const tall = shape.rows >= shape.columns;
  const folds = Math.min(64, Math.max(shape.rows, shape.columns));
  for (let fold = 1; fold <= folds; fold++) {
    for (let abreast = 1; abreast <= shape.deep; abreast += abreast < 64 ? 1 : abreast) {
      const folding = { strips: tall ? fold : 1, bands: tall ? 1 : fold, abreast };
      const { width, height } = room(shape, folding, box);
      const worth = Math.min(width, height) * (fold > 1 ? FOLDED : 1);
      if (worth > most && (fold === 1 || most < READABLE)) {
        [found, most] = [folding, worth];
      }
    }
  }
  return { folding: found, free: room(shape, found, box) };
}
function room(shape, { strips, bands, abreast }, box) {
  const below = Math.ceil(shape.deep / abreast);
  const columns = abreast * strips * Math.ceil(shape.columns / bands);
  const rows2 = below * bands * Math.ceil(shape.rows / strips);
  const { strip, sheet, head: head2 } = gapsOf(shape);
  const aside = abreast * (strips - 1) * strip + (abreast - 1) * sheet;
  const between = below * (bands - 1) * strip + (below - 1) * sheet + below * head2;
  return { width: (box.width - aside) / columns, height: (box.height - between) / rows2 };
}

// src/view/tiles.ts
var LABELLED = 12;
var PATTERNED = 8;
var FENCE = "#d33333";
var ARROWS = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1]
};
var Tiles = class {
  /** `point` hears which place the pointer or the keys are at, or null. */
  constructor(box, point2) {
    this.box = box;
    this.point = point2;
    this._canvas = h("canvas", {
      class: "canvas",
      role: "img",
      tabindex: 0,
      ...OWN_KEYS,
      on: {
        pointermove: ({ offsetX, offsetY }) => this._drawn && this._go(placeAt(this._drawn, offsetX, offsetY)),
        pointerleave: () => this._go(null),
        blur: () => this._go(null),
        keydown: (event) => this._key(event)
      }
    });
    this.element = h("div", { class: "plot" }, this._edges, this._canvas, this._readout);
  }
  box;
  point;
  element;
  /** Draw a picture in place of the last one. */
  show(picture) {
    this.layOut(picture);
    this.paint();
  }
  /** Take the room that a picture needs; it is painted later. */
  layOut(picture) {
    this._picture = picture;
    this._drawn = arrange(picture.grid, this.box);
    this._marks = [];
    this._lit = null;
    const edges = [
      picture.down && `↓ ${picture.down}`,
      picture.across && `→ ${picture.across}`,
      ...picture.notes ?? []
    ];
    this._edges.replaceChildren(...edges.filter(Boolean).map((edge2) => h("span", null, edge2)));
    this._canvas.setAttribute("aria-label", fill(REPORT.arrowKeys, { title: picture.title }));
    sized(this._canvas, this._drawn);
  }
  /** Paint the picture that was laid out. */
  paint() {
    this._ground = document.createElement("canvas");
    this._ground.width = this._canvas.width;
    this._ground.height = this._canvas.height;
    const pen = this._ground.getContext("2d");
    if (pen && this._picture && this._drawn) {
      const scale = window.devicePixelRatio || 1;
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
    const [ground, drawn, lit] = [this._ground, this._drawn, this._lit];
    if (!pen || !ground || !drawn) {
      return;
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this._canvas.width, this._canvas.height);
    pen.drawImage(ground, 0, 0);
    const scale = window.devicePixelRatio || 1;
    pen.scale(scale, scale);
    if (lit) {
      pen.fillStyle = "rgba(128, 128, 128, 0.6)";
      drawn.x.forEach((x, place) => {
        if (!lit.has(place)) {
          pen.fillRect(x, drawn.y[place], drawn.tile.width, drawn.tile.height);
        }
      });
    }
    this._marks.forEach((place) => outline(pen, drawn, place));
  }
  _go(place) {
    if (place !== this._at) {
      this._at = place;
      this.point(place);
    }
  }
  _key(event) {
    const next = this._drawn && step(this._drawn, this._at, event.key);
    if (next !== null) {
      event.preventDefault();
      event.stopPropagation();
      this._go(next);
    }
  }
  _canvas;
  _edges = h("div", { class: "edges" });
  _readout = h("div", { class: "readout", "aria-live": "polite" });
  _picture = null;
  _ground = null;
  _drawn = null;
  _marks = [];
  _lit = null;
  _at = null;
};
function step({ x, y }, at, key) {
  if (key === "Home" || at === null && key.startsWith("Arrow")) {
    return 0;
  }
  if (key === "End") {
    return x.length - 1;
  }
  const arrow = ARROWS[key];
  if (at === null || !arrow) {
    return null;
  }
  const [right, below] = arrow;
  let nearest = at;
  let least = Infinity;
  for (let place = 0; place < x.length; place++) {
    const aside = right ? y[place] - y[at] : x[place] - x[at];
    const along = right ? (x[place] - x[at]) * right : (y[place] - y[at]) * below;
    const distance = along + 3 * Math.abs(aside);
    if (along > 0.5 && distance < least) {
      [nearest, least] = [place, distance];
    }
  }
  return nearest;
}
function paint(pen, picture, drawn) {
  const { width, height } = drawn.tile;
  const inset = width >= PATTERNED ? 1 : 0;
  drawn.x.forEach((x, place) => {
    const tint2 = picture.tint(place);
    pen.fillStyle = tint2.ground;
    pen.fillRect(x, drawn.y[place], width - inset, height - inset);
    if (tint2.pattern && width >= PATTERNED) {
      pattern(pen, tint2.pattern, drawn, place);
    }
  });
  if (picture.striped) {
    stripes(
      pen,
      "rgba(0, 0, 0, 0.26)",
      drawn,
      () => drawn.x.forEach((x, place) => pen.rect(x, drawn.y[place], width - inset, height - inset))
    );
  }
  if (height >= LABELLED) {
    pen.font = `${height < 16 ? 10 : 12}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    drawn.x.forEach((_, place) => label(pen, picture, drawn, place));
    picture.links?.forEach((link) => line(pen, drawn, link));
  }
  fences(pen, picture, drawn);
  captions(pen, picture, drawn);
}
function fences(pen, { apart: apart2 }, { x, y, tile }) {
  if (!apart2) {
    return;
  }
  const key = (right, below) => `${Math.round(right / tile.width)},${Math.round(below / tile.height)}`;
  const at = new Map([...x].map((right, place) => [key(right, y[place]), place]));
  const small = Math.min(tile.width, tile.height) < PATTERNED;
  const width = small ? 1 : 2;
  pen.save();
  pen.fillStyle = FENCE;
  x.forEach((right, place) => {
    const below = y[place];
    const left = at.get(key(right - tile.width, below));
    const above = at.get(key(right, below - tile.height));
    const far = {
      left: left === void 0 ? 0 : apart2(left, place),
      above: above === void 0 ? 0 : apart2(above, place)
    };
    pen.globalAlpha = small && far.left < 2 ? 0.4 : 1;
    pen.fillRect(right - width * far.left / 2 - 0.5, below, width * far.left, tile.height);
    pen.globalAlpha = small && far.above < 2 ? 0.4 : 1;
    pen.fillRect(right, below - width * far.above / 2 - 0.5, tile.width, width * far.above);
  });
  pen.restore();
}
function pattern(pen, shape, drawn, place) {
  const { width, height } = drawn.tile;
  pen.fillStyle = pen.strokeStyle = "rgba(0, 0, 0, 0.32)";
  pen.lineWidth = 1;
  const pitch = Math.min(9, width / 2, height / 2);
  for (let right = pitch / 2; right < width - 2; right += pitch) {
    for (let below = pitch / 2; below < height - 2; below += pitch) {
      const [x, y] = [drawn.x[place] + right, drawn.y[place] + below];
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
  }
}
function stripes(pen, colour, box, area, x = 0, y = 0) {
  pen.save();
  pen.beginPath();
  area();
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  for (let right = -box.height; right < box.width; right += 7) {
    pen.moveTo(x + right, y + box.height);
    pen.lineTo(x + right + box.height, y);
  }
  pen.stroke();
  pen.restore();
}
function label(pen, picture, drawn, place) {
  const { width, height } = drawn.tile;
  const text = picture.labels(place).find((words) => pen.measureText(words).width <= width - 6);
  if (!text) {
    return;
  }
  const { x, y } = centre(drawn, place);
  const tint2 = picture.tint(place);
  if (picture.striped || tint2.pattern) {
    const half = pen.measureText(text).width / 2 + 3;
    pen.fillStyle = tint2.ground;
    pen.fillRect(x - half, y - Math.min(8, height / 2 - 1), 2 * half, Math.min(16, height - 2));
  }
  pen.fillStyle = INK;
  pen.fillText(text, x, y);
}
function line(pen, drawn, { from, to, arrow }) {
  const { width, height } = drawn.tile;
  const [begin, goal] = [centre(drawn, from), centre(drawn, to)];
  const length = Math.hypot(goal.x - begin.x, goal.y - begin.y) || 1;
  const along = { x: (goal.x - begin.x) / length, y: (goal.y - begin.y) / length };
  const aside = arrow ? 10 + 8 * Math.abs(along.y) : 0;
  const point2 = (far, off) => [
    begin.x + along.x * far - along.y * off,
    begin.y + along.y * far + along.x * off
  ];
  const across = Math.abs(along.x) > 1e-6 ? (width / 2 - 7) / Math.abs(along.x) : Infinity;
  const down = Math.abs(along.y) > 1e-6 ? (height / 2 - 6) / Math.abs(along.y) : Infinity;
  const cut = Math.min(across, down);
  const middle = point2(length / 2, aside * (length > 120 ? 1.8 : 1));
  const tip = point2(length - cut, aside);
  pen.strokeStyle = pen.fillStyle = INK;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(...point2(cut, aside));
  pen.quadraticCurveTo(...middle, ...tip);
  pen.stroke();
  if (arrow) {
    const angle = Math.atan2(tip[1] - middle[1], tip[0] - middle[0]);
    pen.beginPath();
    pen.moveTo(...tip);
    for (const turn of [2.6, -2.6]) {
      pen.lineTo(tip[0] + 7 * Math.cos(angle + turn), tip[1] + 7 * Math.sin(angle + turn));
    }
    pen.fill();
  }
}
function centre({ x, y, tile }, place) {
  return { x: x[place] + tile.width / 2, y: y[place] + tile.height / 2 };
}
function captions(pen, picture, { sheets, width }) {
  if (sheets.length < 2 || sheets[0].y === 0) {
    return;
  }
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = "#888";
  const room2 = sheets[1].x > 0 ? sheets[1].x - 4 : width;
  for (const sheet of sheets) {
    const full = sheet.at.map(([dim, place]) => picture.caption(dim, place)).join(", ");
    const short = sheet.at.map(([, place]) => place).join(", ");
    const text = [full, short].find((words) => pen.measureText(words).width <= room2);
    pen.fillText(text ?? "", sheet.x, sheet.y - 4);
  }
}
function outline(pen, drawn, place) {
  const { width, height } = drawn.tile;
  const thick = width >= 12 ? 2 : 1;
  const [x, y] = [drawn.x[place], drawn.y[place]];
  pen.lineWidth = thick;
  for (const [colour, inner] of [["#fff", thick * 1.5], ["#000", thick / 2]]) {
    pen.strokeStyle = colour;
    pen.strokeRect(x + inner, y + inner, width - 2 * inner - 1, height - 2 * inner - 1);
  }
}

// src/view/mesh.ts
var BOXES = { collective: { width: 316, height: 250 }, value: { width: 222, height: 208 } };
var LISTED2 = 8;
var MeshPanel = class {
  /** `shows` says what is drawn on it: the collective that is shown, or the array pointed at. */
  constructor({ mesh }, store, shows) {
    this.shows = shows;
    this._mesh = mesh;
    this._tiles = new Tiles(BOXES[shows], (device) => store.set({ device }));
    this.element = h("div", { class: "mesh" }, this._title, this._tiles.element, this._caption);
    this._draw(store.focus);
    store.subscribe((focus, changed) => {
      if (changed.has("chosen") || changed.has("value")) {
        this._draw(focus);
      }
      this._mark(focus);
    });
  }
  shows;
  element;
  _draw(focus) {
    const { collective, value } = this._looked(focus);
    const subject = collective ?? value;
    if (subject === this._subject) {
      return;
    }
    this._subject = subject;
    const { _mesh: mesh, _tiles: tiles } = this;
    if (collective) {
      tiles.show(groupsPicture(collective, mesh));
      this._title.textContent = REPORT.whoExchanges;
      this._caption.textContent = groupsText(collective) + members(collective, mesh.device_ids);
    } else if (value) {
      const layout = layoutOf(value, mesh);
      tiles.show(layout ? holdersPicture(value, mesh, layout) : meshPicture(mesh));
      this._title.textContent = REPORT.whoHolds;
      const how = fill(layout ? REPORT.byBlock : REPORT.byNothing, { name: clean(value.name) });
      this._caption.textContent = [how, value.say("copies")].filter(Boolean).join("; ");
    } else {
      tiles.show(meshPicture(mesh));
      this._title.textContent = REPORT.mesh;
      this._caption.textContent = "";
    }
  }
  _looked({ chosen, value }) {
    return this.shows === "value" ? { collective: null, value } : { collective: chosen, value: null };
  }
  _mark(focus) {
    const { _mesh: mesh, _tiles: tiles } = this;
    const { device } = focus;
    const { collective, value } = this._looked(focus);
    if (device === null) {
      tiles.mark([]);
      tiles.say("");
      return;
    }
    const layout = value && layoutOf(value, mesh);
    tiles.mark([device], collective && together2(device, collective, mesh));
    const parts2 = [deviceText(device, mesh)];
    if (collective) {
      parts2.push(exchangeText(device, collective, mesh));
    } else if (value && layout) {
      const block = blockText(layout.blocks[device], value, mesh, layout);
      parts2.push(fill(REPORT.holds, { block }));
    }
    tiles.say([...parts2, besideText(device, mesh)].filter(Boolean).join("; "));
  }
  _mesh;
  _tiles;
  _title = heading(REPORT.mesh);
  _caption = h("div", { class: "caption" });
  _subject;
};
function together2(device, collective, mesh) {
  if (isInPairs(collective)) {
    return new Set(collective.groups.filter((pair) => pair.includes(device)).flat());
  }
  const number = groupOf(collective, mesh)[device];
  return number < 0 ? null : new Set(collective.groups[number]);
}
function members(collective, ids) {
  const { groups } = collective;
  if (groups.length > LISTED2 || isInPairs(collective)) {
    return "";
  }
  const found = groups.map((group) => `{${listed(group.map((place) => ids[place]))}}`);
  return `: ${found.join(" ")}`;
}

// src/view/pick.ts
function pickButton(text, ids, store, more2 = {}) {
  const key = button(text, () => void 0, { class: "pick", "aria-pressed": "false", ...more2 });
  store.subscribe(({ picked }, changed) => {
    if (changed.has("picked")) {
      key.setAttribute("aria-pressed", String(picked?.given === ids));
    }
  });
  return key;
}

// src/view/arrays.ts
var BOX = { width: 204, height: 208 };
var CARDS = 8;
function arrays(report, store, shown = ["inputs", "outputs"]) {
  const { said } = report;
  const rows2 = shown.flatMap((part2) => rowsOf(said[part2], report[part2]));
  const mesh = new MeshPanel(report, store, "value").element;
  if (!rows2.length) {
    return h("div", { class: "faint" }, said.inputs.summary);
  }
  if (rows2.length <= CARDS) {
    const cards = rows2.map((row2) => {
      const related = relatedTo(row2.members, report);
      const { element } = card(row2, report, store, related);
      element.addEventListener("click", () => store.pick("arrays", related, null));
      return { element, related };
    });
    follow("arrays", cards, store, (element, out) => element.toggleAttribute("data-out", out));
    return h("div", { class: "cards" }, ...cards.map(({ element }) => element), mesh);
  }
  const stage = h("div", { class: "stage" });
  return h("div", { class: "main spread" }, list(rows2, report, store, stage), h("div", null, stage, mesh));
}
function rowsOf(said, values) {
  return said.members.map((members2, i) => ({
    name: said.names[i],
    size: said.sizes[i],
    members: numbers(members2).map((at) => values[at])
  }));
}
function card({ name, members: members2 }, report, store, related) {
  return new Card(members2[0], report, store, name, related);
}
function list(rows2, report, store, stage) {
  let shown = null;
  const drawn = rows2.map((row2) => {
    const related = relatedTo(row2.members, report);
    const first = row2.members[0];
    const pick = () => {
      shown?.dispose();
      shown = card(row2, report, store);
      stage.replaceChildren(shown.element);
      store.set({ value: first });
      store.pick("arrays", related, null);
      drawn.forEach((each) => each.element.setAttribute("aria-pressed", String(each.row === row2)));
    };
    const element = button("", pick, { class: "value", "aria-pressed": "false" });
    const details = [row2.size, first.say("copies")].filter(Boolean).join(", ");
    element.append(h("b", null, row2.name), mono(first.say("type")), h("span", { class: "faint" }, details));
    return { row: row2, element, related };
  });
  follow("arrays", drawn, store, (element, out) => element.hidden = out);
  return h("div", { class: "values" }, ...drawn.map(({ element }) => element));
}
function follow(part2, drawn, store, put) {
  const draw2 = ({ picked }) => {
    const ids = picked && picked.from !== part2 ? picked.ids : null;
    const meant = ({ related }) => related.some((id) => ids?.has(id));
    const some = drawn.some(meant);
    drawn.forEach((each) => put(each.element, some && !meant(each)));
  };
  store.subscribe((focus, changed) => changed.has("picked") && draw2(focus));
  draw2(store.focus);
}
function relatedTo(members2, report, lines = false) {
  const keys = members2.flatMap(({ name, location }) => [name, ...lines && location ? [placeKey(location)] : []]);
  const index = indexOf2(report);
  return [...new Set(keys.flatMap((key) => index.get(key) ?? []))].sort((a, b) => a - b);
}
var indexes = /* @__PURE__ */ new WeakMap();
function indexOf2(report) {
  const index = indexes.get(report) ?? /* @__PURE__ */ new Map();
  if (!indexes.has(report)) {
    indexes.set(report, index);
    for (const one of report.collectives) {
      const place = home(one);
      for (const key of [one.role_of, one.producer, place && placeKey(place)]) {
        if (key) {
          index.get(key)?.push(one.id) ?? index.set(key, [one.id]);
        }
      }
    }
  }
  return index;
}
function placeKey({ source, line: line2 }) {
  return `
${source}:${line2}`;
}
var Card = class {
  /** `name` stands for several that are equal; its name is a button where it picks `related`. */
  constructor(value, report, store, name = clean(value.name), related) {
    this.value = value;
    this.report = report;
    this.store = store;
    this._layout = layoutOf(value, report.mesh);
    const drawn = value.shape.includes(0) ? null : this._layout;
    const texts = ["held", "copies", "remarks"].map((text) => value.say(text));
    const enter = () => store.set({ value });
    const leave = () => store.set({ value: null });
    const type = mono(value.say("type"));
    this.element = h(
      "div",
      {
        class: "card",
        on: { pointerenter: enter, pointerleave: leave, focusin: enter, focusout: leave }
      },
      h("div", { class: "name" }, related ? pickButton(name, related, store) : h("b", null, name), " ", type),
      h("div", { class: "faint" }, texts.filter(Boolean).join("; ")),
      drawn && this._tiles.element
    );
    if (drawn) {
      this._tiles.layOut(valuePicture(value, report.mesh, drawn));
      whenSeen(this.element, () => {
        this._painted = true;
        this._tiles.paint();
      });
    }
    this.dispose = store.subscribe(({ device }, changed) => {
      if (changed.has("device") && this._painted && this._layout && !this._inside) {
        this._tiles.mark(device === null ? [] : [this._layout.blocks[device]]);
      }
    });
  }
  value;
  report;
  store;
  element;
  /** Let go of the store, for a card that leaves before the view does. */
  dispose;
  _point(block) {
    const { mesh } = this.report;
    const layout = this._layout;
    this._inside = block !== null;
    this._tiles.mark(block === null ? [] : [block]);
    this.store.set({ device: layout.holders.get(block ?? -1)?.[0] ?? null });
    const texts = block === null ? [] : [blockText(block, this.value, mesh, layout), blocksBesideText(block, mesh, layout)];
    this._tiles.say(texts.filter(Boolean).join("; "));
  }
  _layout;
  _tiles = new Tiles(BOX, (block) => this._point(block));
  _painted = false;
  /** Whether the pointer is inside: its block is marked then, whichever device is looked at. */
  _inside = false;
};

// src/view/badge.ts
function badge({ ids, head: head2, sends, cause, tone }, report, store) {
  const members2 = numbers(ids);
  const first = report.byId.get(members2[0]) ?? null;
  const made = button(head2 ? "" : sends, () => store.pick("code", members2, first), { class: "badge", title: cause });
  if (head2) {
    made.replaceChildren(mono(head2), " ", chip(sends, tone));
  }
  made.addEventListener("pointerenter", () => store.set({ pointed: first }));
  made.addEventListener("pointerleave", () => store.set({ pointed: null }));
  return made;
}
function chip(text, tone) {
  const label3 = h("span", { class: "chip" }, text);
  paint2(label3, tone);
  return label3;
}
function paint2(label3, tone) {
  const [ground, text] = TONES[tone];
  label3.style.background = ground;
  label3.style.color = text;
}

// src/view/code.ts
var WHOLE = 200;
var AROUND = 2;
var LINES = 16;
var Code = class {
  constructor(report, store) {
    this.store = store;
    report.sources.forEach((source, i) => {
      const lines = this._lines(source, i, report.said.lines[i] ?? [], report);
      if (lines.length) {
        this.element.append(...i ? [h("div", { class: "faint" }, clean(source.name))] : []);
        this.element.append(h("ol", { class: "lines", "aria-label": REPORT.sourceLines }, ...lines));
      }
    });
    store.subscribe(() => this._mark());
  }
  store;
  element = h("div", { class: "code" });
  _lines(source, index, led, report) {
    const { shown, rest } = chosenLines(source, index, led);
    const badges = new Map(led.map((line2) => [line2.line, line2.badges]));
    const texts = source.text.split("\n");
    const items = shown.flatMap((number, i) => {
      const drawn = (badges.get(number) ?? []).map((found) => badge(found, report, this.store));
      const ids = (badges.get(number) ?? []).flatMap((found) => numbers(found.ids));
      const line2 = codeLine(
        number,
        clean(texts[number - source.first_line] ?? "") || " ",
        h("span", { class: "badges" }, ...drawn)
      );
      if (ids.length) {
        const label3 = { class: "pick number", "aria-label": fill(REPORT.line, { line: number }) };
        line2.firstElementChild?.replaceWith(pickButton(String(number), ids, this.store, label3));
        line2.addEventListener("click", ({ target }) => {
          if (!target.closest(".shardnb-badge")) {
            this.store.pick("code", ids, report.byId.get(ids[0]) ?? null);
          }
        });
      }
      this._rows.set(`${index}:${number}`, { line: line2, ids: new Set(ids) });
      const gap = i > 0 && number > shown[i - 1] + 1;
      return gap ? [h("li", { class: "line gap", "aria-hidden": "true" }, "⋮"), line2] : [line2];
    });
    const more2 = rest ? [h("li", { class: "line faint" }, numbered(REPORT.moreLines, rest))] : [];
    return [...items, ...more2];
  }
  /** Mark the line that is looked at, and let those step back that what is picked is not at. */
  _mark() {
    const { chosen, pointed, value, picked } = this.store.focus;
    const collective = pointed ?? chosen;
    const place = value?.location ?? (collective && home(collective));
    const key = place ? `${place.source}:${place.line}` : "";
    this._rows.forEach(({ line: line2, ids }, at) => {
      line2.toggleAttribute("data-marked", at === key);
      const out = picked && picked.from !== "code" && ![...picked.ids].some((id) => ids.has(id));
      line2.toggleAttribute("data-out", Boolean(out));
    });
  }
  _rows = /* @__PURE__ */ new Map();
};
function codeLine(number, text, ...behind) {
  return h(
    "li",
    { class: "line", value: number },
    h("span", { class: "number", "aria-hidden": "true" }, String(number)),
    h("code", { class: "text" }, text),
    ...behind
  );
}
function chosenLines(source, index, led) {
  const heaviest = led.map((line2) => line2.line);
  const { first_line: first, text } = source;
  const texts = text.replace(/\s+$/, "").split("\n");
  const last = first + texts.length - 1;
  const whole = range(texts[0] ? first : first + 1, last);
  if (index === 0 && (!text || whole.length <= WHOLE)) {
    return { shown: union(text ? whole : [], heaviest), rest: 0 };
  }
  const kept = heaviest.slice(0, index > 0 ? LINES : WHOLE);
  const around = (line2) => range(Math.max(whole[0], line2 - AROUND), Math.min(last, line2 + AROUND));
  const near = index > 0 ? [] : kept.flatMap(around);
  return { shown: union(near, kept), rest: heaviest.length - kept.length };
}
function union(some, others) {
  return [.../* @__PURE__ */ new Set([...some, ...others])].sort((a, b) => a - b);
}
function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

// src/view/points.ts
var MOST = 5;
function points(report, store) {
  const all = report.said.points;
  const shown = all.slice(0, MOST).map((one) => point(one, report, store));
  const left = all.slice(MOST);
  const others = h("ol", { class: "points", start: MOST + 1 });
  const draw2 = () => others.append(...left.map((one) => point(one, report, store)));
  return [
    ...shown.length ? [h("ol", { class: "points" }, ...shown)] : [],
    ...left.length ? [folded(numbered(REPORT.morePoints, left.length), others, draw2)] : []
  ];
}
function point(one, report, store) {
  const ids = numbers(one.ids);
  const pick = () => store.pick("points", ids, report.byId.get(ids[0]) ?? null);
  const title = ids.length ? button(one.head, pick, { class: "pointed" }) : h("b", null, one.head);
  const line2 = h("div", { class: "point" }, title, one.cost ? chip(one.cost, one.tone) : null);
  const cause = h("div", null, one.cause);
  const item = h("li", null, line2, cause, ...one.edits.map(edit), more(one, report, store));
  store.subscribe(({ picked }, changed) => {
    if (changed.has("picked")) {
      const out = picked && picked.from !== "points" && !ids.some((id) => picked.ids.has(id));
      item.toggleAttribute("data-out", Boolean(out));
    }
  });
  return item;
}
function edit({ code, effect, compiled }) {
  const known = compiled ? `→ ${effect} ` : `${REPORT.notCompiled} `;
  const mark = compiled ? h("span", { class: "faint" }, REPORT.compiled, " ") : null;
  return h(
    "div",
    { class: "fix" },
    compiled ? REPORT.fix : REPORT.try,
    " ",
    mono(code),
    " ",
    h("span", { class: "faint" }, known),
    mark,
    copier(code)
  );
}
function more({ finding }, report, store) {
  const found = report.findings[finding];
  if (!found?.values.length && !found?.details) {
    return null;
  }
  const body2 = h("div");
  return folded(REPORT.details, body2, () => {
    const cards = found.values.map((value) => new Card(value, report, store).element);
    body2.append(h("div", { class: "cards" }, ...cards));
    if (found.details) {
      body2.append(h("pre", { class: "raw" }, cleanLines(found.details)));
    }
  });
}
function copier(text) {
  const copy = () => void navigator.clipboard.writeText(text).then(
    () => control.textContent = REPORT.copied,
    () => control.textContent = REPORT.notAllowed
  );
  const control = button(REPORT.copy, copy, { class: "copy" });
  return control;
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
    this._pitch = this._side + GAP;
    this._size = { width: NAME + columns * this._pitch, height: play.members.length * this._pitch };
    this._steps = play.moves.length;
    this._toggle = button(REPORT.pause, () => this._running ? this.pause() : this.start());
    this._slider = slider(this._steps, REPORT.exchangeStep, (step2) => {
      this.pause();
      this.go(step2);
    });
    const by = (text, name, steps2) => {
      const click = () => {
        this.pause();
        this.go(this._at + steps2);
      };
      return button(text, click, { "aria-label": name });
    };
    this.element = h(
      "div",
      { class: "player" },
      h(
        "div",
        { class: "stepper" },
        by("←", REPORT.back, -1),
        this._toggle,
        by("→", REPORT.on, 1),
        this._slider,
        this._caption
      ),
      this._canvas,
      h("p", { class: "faint" }, this._about())
    );
    sized(this._canvas, this._size);
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
    this.dispose();
    this._toggle.textContent = REPORT.playOn;
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
  _tick(now) {
    if (!this._running || !this.element.isConnected) {
      return;
    }
    const part2 = (now - this._began) / (this._still ? STILL : STEP);
    if (part2 >= 1) {
      this._began = now;
      this.go(this._at + 1);
      if (this._at >= this._steps) {
        this.pause();
        return;
      }
    } else if (!this._still) {
      this._draw(part2);
    }
    this._frame = requestAnimationFrame((later) => this._tick(later));
  }
  /** Say the step that was made last, or the one that is being made. */
  _tell() {
    const { play, _at: at, _steps: all } = this;
    const made = at + (this._running && !this._still && at < all ? 1 : 0);
    const partial = play.whole > 1 && play.frames[0][0].every(Boolean);
    const slots = { step: made, all, said: play.said[made - 1] };
    const step2 = fill(at === all ? REPORT.lastStep : REPORT.step, slots);
    const text = made ? step2 : partial ? REPORT.beforeSums : REPORT.before;
    this._caption.textContent = text;
    this._canvas.setAttribute("aria-label", text);
  }
  _about() {
    const { play, one } = this;
    const inPairs = isInPairs(one);
    const drawn = play.members.length;
    const who = inPairs ? REPORT.sentA : REPORT.sentEach;
    return [
      play.all > drawn ? fill(REPORT.standFor, { drawn, all: play.all }) : "",
      numbered(who, play.sends, { size: one.say("size") }),
      !inPairs && one.groups.length > 1 ? REPORT.allGroups : "",
      REPORT.assumes
    ].join("");
  }
  /** Draw the present step, its blocks on their way by the given part. */
  _draw(part2) {
    const pen = this._canvas.getContext("2d");
    if (!pen) {
      return;
    }
    const { play, _at: at } = this;
    const scale = window.devicePixelRatio || 1;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this._size.width, this._size.height);
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillStyle = getComputedStyle(this._canvas).color;
    play.members.forEach((position, i) => {
      const text = fill(REPORT.device, { id: this.mesh.device_ids[position] });
      pen.fillText(text, 0, i * this._pitch + this._side / 2);
    });
    const moves = part2 > 0 && play.moves[at] || [];
    const gone = new Set(moves.map((move) => `${move.from}:${move.slot}`));
    const gives = play.frames[at + 1];
    play.frames[at].forEach(
      (row2, device) => row2.forEach((cell, slot) => {
        const leaves = gone.has(`${device}:${slot}`) && gives && !gives[device][slot];
        this._cell(pen, leaves ? null : cell, slot, device);
      })
    );
    const eased = part2 * part2 * (3 - 2 * part2);
    for (const { from, to, slot, target, cell } of moves) {
      this._cell(pen, cell, slot + (target - slot) * eased, from + (to - from) * eased);
    }
  }
  /** Draw a block in a slot of a device, or between two of them. */
  _cell(pen, cell, slot, row2) {
    const { _side: side, play } = this;
    const [x, y] = [NAME + slot * this._pitch, row2 * this._pitch];
    if (!cell) {
      pen.strokeStyle = "rgba(128, 128, 128, 0.45)";
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
      return;
    }
    const { ground } = tint(cell.block, play.blocks);
    const box = { width: side, height: side };
    const isPartial = cell.parts < play.whole;
    pen.fillStyle = ground;
    pen.fillRect(x, y, side, side);
    if (isPartial) {
      stripes(pen, "rgba(0, 0, 0, 0.3)", box, () => pen.rect(x, y, side, side), x, y);
    }
    const text = play.whole > 1 ? `${cell.parts}/${play.whole}` : String(cell.block);
    pen.font = `${side < 24 ? 9 : 11}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const width = pen.measureText(text).width;
    if (width > side) {
      return;
    }
    if (isPartial) {
      pen.fillStyle = ground;
      pen.fillRect(x + side / 2 - width / 2 - 1, y + side / 2 - 6, width + 2, 12);
    }
    pen.fillStyle = INK;
    pen.fillText(text, x + side / 2, y + side / 2);
  }
  _still;
  _canvas = h("canvas", { class: "canvas still", role: "img" });
  _caption = h("div", { class: "caption", "aria-live": "polite" });
  _toggle;
  _slider;
  _side;
  _pitch;
  _size;
  _steps;
  _at = 0;
  _running = false;
  _began = 0;
  _frame = 0;
};

// src/view/detail.ts
var Detail = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    this.element.append(this._text, new MeshPanel(report, store, "collective").element);
  }
  report;
  store;
  element = h("div", { class: "main" });
  /** Tell a collective, one of some that are equal. */
  show(one, among = []) {
    if (one !== this._shown) {
      this._shown = one;
      this._text.replaceChildren(...one ? this._parts(one, among) : []);
    }
  }
  _parts(one, among) {
    const exchange = fill(REPORT.exchange, {
      grouping: one.say("grouping"),
      array: one.say("array"),
      size: one.say("size"),
      trips: one.say("trips")
    });
    const chain = [one.say("made"), exchange, one.say("used")].filter(Boolean);
    const operation = one.op_name && fill(REPORT.operation, { name: one.op_name });
    const raw = [operation, one.instruction].filter(Boolean).map(clean).join("\n");
    const tone = this.report.tones.get(one.id) ?? "neutral";
    return [
      h("div", { class: "title" }, mono(one.say("name")), ` ${one.say("at")} `, chip(one.say("cause"), tone)),
      ...this._among(one, among),
      h("p", { class: "because" }, one.say("because")),
      h("ol", { class: "chain" }, ...chain.map((step2) => h("li", null, step2))),
      ...playing(one, this.report.mesh),
      h("p", null, one.say("further")),
      h("p", { hidden: !one.say("measured") }, one.say("measured")),
      this._calls(one),
      h(
        "details",
        { hidden: !raw },
        h("summary", null, REPORT.raw),
        h("pre", { class: "raw" }, raw)
      )
    ];
  }
  /** The way to the others that are equal. */
  _among(one, among) {
    if (among.length < 2) {
      return [];
    }
    const at = among.indexOf(one.id);
    const step2 = (by) => {
      const next = this.report.byId.get(among[(at + by + among.length) % among.length]);
      const go = () => this.store.set({ chosen: next ?? one });
      return button(by < 0 ? "←" : "→", go, { "aria-label": by < 0 ? REPORT.previous : REPORT.next });
    };
    const text = fill(REPORT.member, { number: at + 1, all: among.length });
    return [h("div", { class: "stepper" }, step2(-1), step2(1), h("span", { class: "faint" }, text))];
  }
  /** The lines that led to it, innermost first. */
  _calls(one) {
    const lines = one.frames.map((frame) => {
      const text = lineAt(frame, this.report.sources);
      const line2 = placeText(frame, this.report.sources);
      const call = { line: line2, function: clean(frame.function) };
      const caption = frame.function ? fill(REPORT.call, call) : line2;
      return h("li", null, `${caption} `, text && mono(clean(text.trim())));
    });
    const within = one.within.map((part2) => h("li", null, fill(REPORT.inside, { part: clean(part2) })));
    return h(
      "details",
      { hidden: !lines.length && !within.length },
      h("summary", null, REPORT.calls),
      h("ol", { class: "calls" }, ...lines, ...within)
    );
  }
  _text = h("div", { class: "detail", "aria-live": "polite" });
  _shown = null;
};
function playing(one, mesh) {
  const play = ring(one, mesh);
  if (!play) {
    return [];
  }
  const stage = h("div", { class: "played" });
  const label3 = fill(REPORT.play, { kind: clean(one.kind) });
  let player = null;
  const toggle = () => {
    player?.dispose();
    player = player ? null : new Player(play, one, mesh);
    stage.replaceChildren(...player ? [player.element] : []);
    control.textContent = player ? REPORT.close : label3;
    control.setAttribute("aria-expanded", String(player !== null));
    player?.start();
  };
  const control = button(label3, toggle, { class: "play", "aria-expanded": "false" });
  return [control, stage];
}

// src/view/sent.ts
var FEW = 8;
var MORE = 100;
var Sent = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    const { rows: rows2 } = report.said;
    this._rows = rows2.map((row2) => ({ row: row2, ids: numbers(row2.ids) }));
    this._timed = report.profile !== null;
    this.element.classList.toggle("shardnb-timed", this._timed);
    this._detail = new Detail(report, store);
    const tones = [...new Set(rows2.map((row2) => row2.tone))];
    const legend = tones.length > 1 && h("div", { class: "legend" }, ...tones.map(legendOf));
    this._drawHead();
    this.element.append(this._head, this._body, legend || "", this._bar);
    this.element.addEventListener("keydown", (event) => this._key(event));
    store.subscribe((focus, changed) => {
      if (changed.has("picked") || changed.has("chosen")) {
        this._draw(focus);
      }
    });
    this._draw(store.focus);
  }
  report;
  store;
  element = h("div", { class: "sends" });
  _element({ row: row2, ids }) {
    const first = this.report.byId.get(ids[0]) ?? null;
    const pick = () => this.store.pick("sent", ids, first);
    const element = button("", pick, { class: "row", "aria-expanded": "false" });
    const took = this._timed ? [row2.measured] : [];
    const texts = [mono(row2.name), row2.what, row2.times, row2.sends, ...took].map((text) => h("span", null, text));
    element.append(...texts, h("span", null, chip(row2.cause, row2.tone)));
    element.addEventListener("pointerenter", () => this.store.set({ pointed: first }));
    element.addEventListener("pointerleave", () => this.store.set({ pointed: null }));
    return element;
  }
  _draw({ picked, chosen }) {
    const filter = picked && picked.from !== "sent" ? picked.ids : null;
    const sorted = this._sorted();
    const all = filter ? sorted.filter(({ ids }) => ids.some((id) => filter.has(id))) : sorted;
    const shown = all.slice(0, filter ? Math.max(MORE, this._limit) : this._limit);
    const elements = shown.flatMap((drawn) => {
      const here = chosen !== null && drawn.ids.includes(chosen.id);
      const element = drawn.element ??= this._element(drawn);
      element.setAttribute("aria-expanded", String(here));
      return here ? [element, this._detail.element] : [element];
    });
    this._detail.show(chosen, shown.find(({ ids }) => chosen && ids.includes(chosen.id))?.ids ?? []);
    const left = all.length - shown.length;
    const more2 = button(numbered(REPORT.moreRows, left), () => this._showMore(), { class: "more" });
    const focused = document.activeElement;
    this._body.replaceChildren(...elements, ...left > 0 ? [more2] : []);
    if (focused instanceof HTMLElement && this._body.contains(focused)) {
      focused.focus({ preventScroll: true });
    }
    const number = filter ? all.flatMap(({ ids }) => ids).filter((id) => filter.has(id)).length : 0;
    const slots = { shown: grouped(number), all: grouped(this.report.collectives.length) };
    const clear = button(REPORT.showAll, () => this.store.set({ picked: null, chosen: null }));
    this._bar.replaceChildren(...filter ? [fill(REPORT.filtered, slots), " ", clear] : []);
  }
  /** The rows in the order of Python's, the slowest first, or those that send most. */
  _sorted() {
    const bytes = (drawn) => drawn.row.bytes;
    return this._order === "seconds" ? this._rows : [...this._rows].sort((a, b) => bytes(b) - bytes(a));
  }
  _drawHead() {
    const sorter = (text, order, title) => {
      const sort = () => {
        this._order = order;
        this._drawHead();
        this._draw(this.store.focus);
      };
      const on = String(this._order === order);
      return this._timed ? button(text, sort, { class: "sort", title, "aria-pressed": on }) : h("span", null, text);
    };
    this._head.replaceChildren(
      h("b", null, REPORT.sent),
      h("span", null, REPORT.columnFor),
      h("span", null, REPORT.columnTimes),
      sorter(REPORT.columnSends, "bytes", REPORT.byBytes),
      ...this._timed ? [sorter(REPORT.columnMeasured, "seconds", REPORT.bySeconds)] : [],
      h("span", null, REPORT.columnWhy)
    );
  }
  _showMore() {
    this._limit += MORE;
    this._draw(this.store.focus);
  }
  /** Move between rows with the arrow keys. */
  _key(event) {
    const step2 = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const rows2 = [...this._body.querySelectorAll(":scope > button")];
    const at = rows2.indexOf(event.target);
    if (step2 && at >= 0) {
      event.preventDefault();
      event.stopPropagation();
      rows2[Math.max(0, Math.min(rows2.length - 1, at + step2))].focus();
    }
  }
  _rows;
  _detail;
  _body = h("div", { class: "rows" });
  _bar = h("div", { class: "filtered", role: "status" });
  _head = h("div", { class: "row head" });
  _timed;
  _order = "seconds";
  _limit = FEW;
};
function legendOf(tone) {
  return chip(LEGEND[tone], tone);
}

// src/view/spread.ts
var Spread = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    this._moments = moments(report);
    this._chosen = numbers(report.said.values.members[0])[0];
    this._now = this._moments.length;
    this._slider = slider(this._now, REPORT.spread, (step2) => this._go(step2));
    const by = (text, name, steps2) => button(text, () => this._go(this._now + steps2), { "aria-label": name });
    const stepper = h(
      "div",
      { class: "stepper" },
      by("←", REPORT.back, -1),
      this._slider,
      by("→", REPORT.on, 1),
      this._label
    );
    const { members: members2, names, sizes } = report.said.values;
    const rows2 = members2.map((text, i) => this._row(numbers(text), names[i], sizes[i]));
    this.element = h(
      "div",
      { class: "arrays" },
      this._now > 0 && stepper,
      h("div", { class: "main spread" }, h("div", { class: "values" }, ...rows2), this._stage)
    );
    follow("values", this._rows, store, (row2, out) => row2.hidden = out);
    this._go(this._now);
  }
  report;
  store;
  element;
  _row(members2, name, size) {
    const index = members2[0];
    const { location } = this.report.values[index];
    const type = mono("");
    const where = location ? placeText(location, this.report.sources) : "";
    const known = location ? fill(REPORT.line, { line: location.line }) : "";
    const values = members2.map((at) => this.report.values[at]);
    const related = relatedTo(values, this.report, true);
    const pick = () => {
      this._choose(index);
      this.store.pick("values", related, null);
    };
    const row2 = button("", pick, { class: "value" });
    const caption = [name.includes(known) ? "" : where, size].filter(Boolean).join(", ");
    row2.append(h("b", null, name), type, h("span", { class: "faint" }, caption));
    this._rows.push({ element: row2, type, members: members2, related });
    return row2;
  }
  /** Show the placements as they were after so many steps. */
  _go(now) {
    const all = this._moments.length;
    this._now = Math.max(0, Math.min(all, now));
    this._slider.value = String(this._now);
    const last = this._moments[this._now - 1];
    const said = last && momentText(last, this.report);
    this._label.textContent = said ? fill(REPORT.step, { step: this._now, all, said }) : REPORT.firstStep;
    this._rows.forEach(({ element, type, members: members2 }) => {
      type.textContent = this._valueNow(members2[0])?.say("type") ?? REPORT.notKnownWhen;
      const reached = members2.some((at) => this.report.values[at].name === last?.step.target);
      element.toggleAttribute("data-marked", reached);
    });
    this._draw();
  }
  /** Give a value at the present step; after the last one, as the compiled program has it. */
  _valueNow(index) {
    const last = this._now === this._moments.length;
    const step2 = this._moments[this._now - 1]?.step.number ?? 0;
    return valueAt(this.report, index, last ? Infinity : step2);
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
    this._card = value && new Card(value, this.report, this.store);
    this._stage.replaceChildren(...this._card ? [this._card.element, why] : [why]);
    this._rows.forEach(({ element, members: members2 }) => {
      element.setAttribute("aria-pressed", String(members2[0] === this._chosen));
    });
  }
  _moments;
  _slider;
  _label = h("span", { class: "caption", "aria-live": "polite" });
  _stage = h("div", { class: "stage" });
  _rows = [];
  _card = null;
  _now;
  _chosen;
};
function moments(report) {
  const found = /* @__PURE__ */ new Map();
  for (const { axis, steps: steps2 } of report.values.flatMap((value) => value.origins)) {
    for (const step2 of steps2 ?? []) {
      found.set(JSON.stringify([axis, step2.number, step2.source, step2.target]), { axis, step: step2 });
    }
  }
  return [...found.values()].sort((a, b) => a.step.number - b.step.number);
}
function momentText({ axis, step: step2 }, report) {
  const { op, source, target, location, direction } = step2;
  const name = location?.source ? report.sources[location.source]?.name : void 0;
  const slots = { line: location?.line ?? 0, source: name ?? "" };
  const at = location ? fill(name === void 0 ? REPORT.stepAt : REPORT.stepAtIn, slots) : "";
  const aside = direction === "sideways" ? REPORT.toOther : "";
  return clean(fill(REPORT.moment, { axis, direction, op, at, aside, source, target }));
}
function valueAt(report, index, number) {
  const value = report.values[index];
  const { when, steps: steps2, first } = report.histories[index];
  if (value.spec === null || number === Infinity || when?.length === 0) {
    return value;
  }
  if (when === null) {
    return null;
  }
  let axis = 0;
  const spec = value.spec.map((axes) => axes.filter(() => when[axis++] <= number));
  const grid = gridOf({ ...value, spec }, report.mesh);
  const shard = value.shape.map((size, dim) => Math.ceil(size / grid[dim]));
  const state = first + steps2.filter((step2) => step2 <= number).length - 1;
  return inState(value, state, { spec, shard_shape: shard, propagated: null });
}

// src/view/store.ts
var Store = class {
  focus = { chosen: null, pointed: null, value: null, device: null, picked: null };
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
  /** Filter by collectives, and tell one of them at length; what is picked again is let go. */
  pick(from, ids, chosen) {
    const again = this.focus.picked?.given === ids;
    this.set(again ? { picked: null, chosen: null } : { picked: { from, given: ids, ids: new Set(ids) }, chosen });
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

// src/view/timeline.ts
var FEW2 = 4;
var WIDTH = 1e3;
var HEIGHT = 16;
var LEAST2 = 1.5;
var SVG = "http://www.w3.org/2000/svg";
var Timeline = class {
  constructor(report, store) {
    this.report = report;
    this.store = store;
    this._lines = report.profile?.timeline ?? [];
    const times = this._lines.flatMap(({ computing: computing2, communicating }) => [computing2.at(-1), ...communicating]);
    this._end = times.reduce((most, time) => Math.max(most, time ?? 0), 0) || 1;
    this._shown = new Set(this._lines.slice(0, FEW2));
    const computing = h("span", { class: "held" }, h("span", { class: "swatch computing" }), REPORT.computing);
    const caption = h("div", { class: "faint" }, report.said.timeline, " ", computing);
    this.element.append(caption, this._picks, this._rows);
    store.subscribe((focus, changed) => {
      if (changed.has("chosen")) {
        this._follow(focus.chosen);
        this._draw(focus);
      }
      this._mark(focus);
    });
    this._draw(store.focus);
  }
  report;
  store;
  element = h("div", { class: "timeline" });
  /** Show the devices of a group of the collective that is looked at. */
  _follow(chosen) {
    const at = [...this._shown].map((line2) => line2.position);
    const group = chosen?.groups.find((members3) => members3.some((one) => at.includes(one))) ?? chosen?.groups[0];
    const members2 = this._lines.filter((line2) => line2.position !== null && group?.includes(line2.position));
    if (members2.length) {
      this._shown = new Set(members2);
    }
  }
  _draw(focus) {
    this._picks.replaceChildren(...this._lines.length > 1 ? this._lines.map((line2) => this._pick(line2)) : []);
    const shown = this._lines.filter((line2) => this._shown.has(line2));
    this._drawn = shown.map((line2) => [line2, this._row(line2)]);
    this._rows.replaceChildren(...this._drawn.map(([, row2]) => row2));
    this._mark(focus);
  }
  /** A button that shows or hides a device. */
  _pick(line2) {
    const toggle = () => {
      if (!this._shown.delete(line2)) {
        this._shown.add(line2);
      }
      this._draw(this.store.focus);
    };
    return button(clean(line2.name), toggle, { class: "toggle", "aria-pressed": String(this._shown.has(line2)) });
  }
  _row(line2) {
    const name = clean(line2.name);
    const drawing = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": name
    });
    const path = pairs(line2.computing).map(([start, end]) => bar(this._x(start), this._x(end), 4, 8)).join("");
    drawing.append(svg("path", { d: path, class: "shardnb-computing" }));
    pairs(line2.communicating).forEach((span, i) => drawing.append(this._span(span, line2.ids[i])));
    const row2 = h("div", { class: "device" }, h("span", null, name));
    row2.append(drawing);
    row2.addEventListener("pointerenter", () => this.store.set({ device: line2.position }));
    row2.addEventListener("pointerleave", () => this.store.set({ device: null }));
    return row2;
  }
  _span([start, end], id) {
    const one = this.report.byId.get(id) ?? null;
    const [ground, text] = TONES[this.report.tones.get(id) ?? "neutral"];
    const span = svg("path", {
      d: bar(this._x(start), this._x(end), 0, HEIGHT),
      fill: ground,
      stroke: text,
      "data-id": String(id),
      class: "shardnb-span"
    });
    const title = svg("title");
    title.textContent = one ? [one.say("name"), one.say("measured")].filter(Boolean).join("\n") : "";
    span.append(title);
    span.addEventListener("click", () => this.store.pick("sent", [id], one));
    return span;
  }
  /** Let stand out what is looked at. */
  _mark({ chosen, device }) {
    for (const [line2, row2] of this._drawn) {
      row2.classList.toggle("shardnb-here", device !== null && device === line2.position);
      row2.querySelectorAll("[data-id]").forEach((span) => {
        const other = chosen !== null && span.getAttribute("data-id") !== String(chosen.id);
        span.classList.toggle("shardnb-other", other);
      });
    }
  }
  _x(time) {
    return WIDTH * time / this._end;
  }
  _lines;
  _end;
  _picks = h("div", { class: "picks", role: "group", "aria-label": REPORT.timelineDevices });
  _rows = h("div");
  _shown;
  _drawn = [];
};
function pairs(times) {
  return Array.from({ length: Math.floor(times.length / 2) }, (_, i) => [times[2 * i], times[2 * i + 1]]);
}
function bar(start, end, top, height) {
  const width = Math.max(end - start, LEAST2);
  return `M${start.toFixed(1)} ${top}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`;
}
function svg(tag, attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
}

// src/view/typed.ts
function typed(report) {
  const body2 = h("div", { class: "typed" });
  return folded(REPORT.types, body2, () => body2.append(...rows(report)));
}
function rows({ typed: lines, sources }) {
  return lines.flatMap((line2, i) => {
    const { location: place, inserted } = line2;
    const before = lines[i - 1]?.location;
    const same = place?.source === before?.source && place?.line === before?.line;
    const mark = inserted ? h("span", { class: "chip" }, REPORT.inserted) : null;
    const equation = h("pre", { class: "raw" }, `    ${clean(lineText(line2))}  `, mark);
    if (!place || i > 0 && same) {
      return [equation];
    }
    const source = sources[place.source];
    const name = place.source && source ? `   (${clean(source.name)})` : "";
    const text = `${place.line}  ${clean(lineAt(place, sources))}${name}`;
    return [h("pre", { class: "raw" }, h("b", null, text)), equation];
  });
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
var FEW_LINES = 12;
var FEW_ARRAYS = 4;
function mount(place, data, host = {}) {
  return attempt(place, () => readReport(data), host);
}
function mountReport(place, report, host = {}) {
  return attempt(place, () => report, host);
}
function attempt(place, read, host) {
  const root = h("div", { class: "report" });
  place.replaceChildren(root);
  try {
    return draw(root, read(), host);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    root.replaceChildren(h("div", { class: "error", role: "alert" }, clean(text)));
    return { choose: () => void 0, dispose: () => root.remove() };
  }
}
function draw(root, report, host) {
  const store = new Store();
  const rest = [...sending(report, store, host), ...parts(report, store)];
  const brief = host.brief || report.brief;
  root.append(
    head(report, host.open),
    ...verdict(report),
    ...points(report, store),
    ...brief ? [h("details", null, h("summary", null, REPORT.rest), ...rest)] : rest
  );
  store.flush();
  return {
    choose: (...ids) => {
      root.querySelectorAll(":scope > details").forEach((each) => {
        each.open ||= each.contains(root.querySelector(".shardnb-sends"));
      });
      store.set({ picked: null });
      store.pick("code", ids, report.byId.get(ids[0]) ?? null);
      store.flush();
    },
    dispose: () => {
      store.dispose();
      root.remove();
    }
  };
}
function head(report, open) {
  const parts2 = report.said.header.map((part2) => h("span", null, part2));
  return h("div", { class: "header" }, ...parts2, open ? button(REPORT.open, open, { class: "open" }) : null);
}
function verdict({ said }) {
  const outcomes = said.outcomes.map(([text, passed]) => {
    const mark = h("span", { class: "chip" }, passed ? REPORT.passed : passed === false ? REPORT.failed : REPORT.notKnown);
    paint2(mark, passed ? "neutral" : passed === false ? "red" : "amber");
    return h("div", { class: "outcome" }, mark, " ", text);
  });
  const changed = said.changed ? [h("div", { class: "faint" }, said.changed)] : [];
  return [h("div", { class: "verdict" }, said.verdict), ...changed, ...outcomes];
}
function sending(report, store, host = {}) {
  const sent = report.said.rows.length ? [new Sent(report, store).element] : [];
  const code = new Code(report, store).element;
  const lines = code.querySelectorAll(".shardnb-line").length;
  const open = !host.editor && lines <= FEW_LINES && !report.said.points.length;
  return [...sent, ...lines ? [part(REPORT.sourceLines, "", code, open)] : []];
}
function parts(report, store) {
  const { said } = report;
  const rows2 = said.inputs.members.length + said.outputs.members.length;
  const summary = [said.inputs.summary, said.outputs.summary].join("; ");
  const drawn = arrays(report, store);
  const [total, ...others] = said.memory;
  const values = h("div");
  const fill2 = () => values.append(new Spread(report, store).element);
  return [
    part(REPORT.arrays, rows2 ? summary : "", drawn, rows2 <= FEW_ARRAYS),
    ...measured(report, store),
    part(REPORT.memory, total, others.length ? memory(report) : null),
    ...report.values.length ? [folded(REPORT.values, values, fill2, said.values.summary)] : [],
    ...report.typed.length ? [typed(report)] : [],
    ...said.cost ? [part(REPORT.time, said.cost, list2(said.assumptions))] : [],
    ...report.notes.length ? [part(REPORT.notes, "", list2(report.notes.map(clean)))] : [],
    h("div", { class: "faint about" }, said.about)
  ];
}
function measured(report, store) {
  const { said } = report;
  if (!said.measured || !said.timeline) {
    return said.measured ? [part(REPORT.measured, said.measured, null)] : [];
  }
  const body2 = h("div");
  const fill2 = () => body2.append(new Timeline(report, store).element);
  return [folded(REPORT.measured, body2, fill2, said.measured)];
}
function part(title, summary, body2, open = false) {
  const line2 = [h("b", null, title), " ", h("span", { class: "faint" }, summary)];
  return body2 ? h("details", { open }, h("summary", null, ...line2), body2) : h("div", { class: "fact" }, ...line2);
}
function list2(texts) {
  return h("ul", { class: "notes" }, ...texts.map((text) => h("li", null, text)));
}
var PARTS = ["arguments", "outputs", "temporaries"];
function memory({ memory: held, said }) {
  const bar2 = h("div", { class: "bar", "aria-hidden": "true" });
  const texts = PARTS.map((name, i) => {
    const text = said.memory[i + 1];
    const piece = h("span", { class: `part ${name}`, title: text });
    piece.style.flexGrow = String(held?.[name] ?? 0);
    bar2.append(piece);
    return h("span", { class: "held" }, h("span", { class: `swatch ${name}` }), text);
  });
  return h("div", null, ...texts, bar2, ...said.peak ? [peak(said.peak)] : []);
}
var HELD = [REPORT.heldBytes, REPORT.heldValues, REPORT.heldShape, REPORT.heldLine];
function peak({ when, rows: rows2, rest }) {
  if (!rows2.length) {
    return h("div", { class: "faint" }, when);
  }
  const head2 = h("tr", null, ...HELD.map((text) => h("th", { scope: "col" }, text)));
  const body2 = rows2.map(
    ([bytes, values, shape, line2]) => h("tr", null, h("td", { class: "number" }, bytes), h("td", null, values), h("td", null, mono(shape)), h("td", null, line2))
  );
  return h("div", { class: "peak" }, h("div", null, when), h("table", null, head2, ...body2), h("div", { class: "faint" }, rest));
}

// src/widget/model.ts
function copyOf(data) {
  return JSON.parse(JSON.stringify(data));
}

// src/widget/choices.ts
function choices(axes, size) {
  const most = axes.length <= 3 ? axes.length : 2;
  const found = [[]];
  for (let i = 0; i < found.length; i++) {
    if (found[i].length < most) {
      found.push(...axes.filter((axis) => !found[i].includes(axis)).map((axis) => [...found[i], axis]));
    }
  }
  return found.map((chosen) => ({ axes: chosen.map((axis) => axis.name), label: label2(chosen, size) }));
}
function label2(chosen, size) {
  if (!chosen.length) {
    return WIDGETS.whole;
  }
  const parts2 = chosen.reduce((product2, axis) => product2 * axis.size, 1);
  const slots = { axes: chosen.map((axis) => axis.name).join(", "), size: size / parts2 };
  return fill(size % parts2 ? WIDGETS.doesNotDivide : WIDGETS.splitOver, slots);
}
function shapes(devices2, axes) {
  if (axes <= 1) {
    return axes === 1 ? [[devices2]] : [];
  }
  const found = [];
  for (let size = devices2; size >= 1; size--) {
    if (devices2 % size === 0) {
      found.push(...shapes(devices2 / size, axes - 1).map((rest) => [size, ...rest]));
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
function mapped(specs, change) {
  const kept = (axes) => axes.map(change).filter((axis) => axis !== null);
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, spec.map(kept)]));
}

// src/widget/picker.ts
var MOST_AXES = 5;
var MOST_SHAPES = 120;
var SHOWN = 12;
var NAMED2 = 8;
var Picker = class {
  constructor(subject, _plan, change, alike, above) {
    this.subject = subject;
    this._plan = _plan;
    this.change = change;
    this.alike = alike;
    this.element = h("div", { class: "picker" }, above, this._axes, this._inputs);
    this._draw();
  }
  subject;
  _plan;
  change;
  alike;
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
    this._applies = [];
    const rows2 = inputs.flatMap((input) => this._bySpec(input)).map((input, i) => this._input(input, i));
    const rest = rows2.slice(SHOWN);
    const more2 = h(
      "details",
      { hidden: !rest.length, open: this._open },
      h("summary", null, numbered(WIDGETS.moreInputs, rest.length)),
      ...rest
    );
    more2.addEventListener("toggle", () => this._open = more2.open);
    this._axes.replaceChildren(heading(REPORT.mesh), ...this._mesh());
    this._inputs.replaceChildren(heading(WIDGETS.inputs), ...rows2.slice(0, SHOWN), more2);
    if (focused) {
      const found = [...this.element.querySelectorAll("[data-key]")];
      found.find((one) => one.getAttribute("data-key") === focused)?.focus();
    }
  }
  _mesh() {
    const { axes } = this._plan;
    const add = button(WIDGETS.addAxis, () => this._set(extended(this._plan)), {
      "data-key": "add",
      disabled: axes.length >= MOST_AXES
    });
    return [
      ...axes.map((_, i) => this._axis(i)),
      h(
        "div",
        { class: "axis" },
        h("span", null, numbered(WIDGETS.devices, devices(axes))),
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
      on: entered(() => {
        const written = name.value.trim();
        if (written !== this._plan.axes[index]?.name) {
          this._set(renamed(this._plan, index, written));
        }
      })
    });
    const size = h("input", {
      type: "number",
      class: "field size",
      min: 1,
      value: now.size,
      "data-key": `size${index}`,
      "aria-label": fill(WIDGETS.axisSize, { axis }),
      on: entered(() => {
        const written = Math.max(1, Math.floor(Number(size.value)) || 1);
        if (written !== this._plan.axes[index]?.size) {
          this._edit((plan) => plan.axes[index] && (plan.axes[index].size = written));
        }
      })
    });
    const { types } = this.subject;
    const label3 = fill(WIDGETS.axisType, { axis });
    const type = select(
      types,
      now.type,
      `type${index}`,
      label3,
      (chosen) => this._edit((plan) => plan.axes[index].type = types[chosen])
    );
    const gone = button("×", () => this._set(without(this._plan, index)), {
      "data-key": `gone${index}`,
      disabled: this._plan.axes.length < 2,
      "aria-label": fill(WIDGETS.axisRemove, { axis })
    });
    return h("div", { class: "axis" }, name, " = ", size, type, gone);
  }
  _edit(edit2) {
    const plan = copyOf(this._plan);
    edit2(plan);
    this._set(plan);
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
    return select(
      texts,
      now,
      "shape",
      WIDGETS.meshShape,
      (chosen) => this._edit((plan) => plan.axes.forEach((axis, i) => axis.size = found[chosen][i]))
    );
  }
  /** Arrays of one pattern are picked together while they have the same spec. */
  _bySpec(input) {
    const groups = /* @__PURE__ */ new Map();
    for (const name of input.names) {
      const spec = JSON.stringify(this._plan.specs[name]);
      groups.set(spec, [...groups.get(spec) ?? [], name]);
    }
    return [...groups.values()].map((names) => ({ ...input, names }));
  }
  _input(input, number) {
    const { names, pattern: pattern2 } = input;
    const label3 = names.length > 1 ? fill(WIDGETS.family, { pattern: pattern2, number: names.length }) : names[0];
    const spec = this._plan.specs[names[0]] ?? input.shape.map(() => []);
    const said = h("span", { class: "faint" }, this._written[names[0]] ?? "");
    this._specs.push([names[0], said]);
    const dims2 = dimensions(label3, `spec${number}`, input.shape, spec, {
      choices: (size) => choices(this._plan.axes, size),
      choose: (dim, axes) => this._place(input, dim, axes)
    });
    const type = mono(clean(`${input.dtype}[${input.shape.join(", ")}]`));
    const scalar = dims2.length ? null : h("span", { class: "faint" }, WIDGETS.scalar);
    return h(
      "div",
      { class: "input" },
      h("div", { class: "what" }, h("b", null, clean(label3)), " ", type, " ", said, " ", this._alike(input)),
      h("div", { class: "dims" }, ...dims2, scalar)
    );
  }
  /** A button for the arrays that are alike, while any of them has another spec. */
  _alike({ names, alike }) {
    const { specs } = this._plan;
    const others = alike.filter((name) => !names.includes(name) && specs[name]);
    const apply = button("", () => this.alike(names[0]), { class: "small" });
    const draw2 = () => {
      const spec = JSON.stringify(this._plan.specs[names[0]]);
      const differing = others.filter((name) => JSON.stringify(this._plan.specs[name]) !== spec);
      apply.hidden = !differing.length;
      apply.textContent = numbered(WIDGETS.applyAlike, differing.length);
      apply.title = differing.slice(0, NAMED2).join(", ");
    };
    this._applies.push(draw2);
    draw2();
    return apply;
  }
  /** Change a spec; the controls stay as they are, since what there is to choose does not change. */
  _place(input, dim, axes) {
    this._plan = copyOf(this._plan);
    for (const name of input.names) {
      this._plan.specs[name][dim] = axes;
    }
    this._applies.forEach((draw2) => draw2());
    this.change(this._plan);
  }
  _axes = h("div", { class: "axes" });
  _inputs = h("div", { class: "inputs" });
  _written = {};
  _specs = [];
  _applies = [];
  _open = false;
};
function dimensions(label3, key, shape, spec, { choices: choices2, choose }) {
  return shape.map((size, dim) => {
    const found = choices2(size);
    const now = found.find((one) => JSON.stringify(one.axes) === JSON.stringify(spec[dim]));
    const name = fill(WIDGETS.dimension, { name: clean(label3), dim, size });
    const labels = found.map((one) => one.label);
    const list3 = select(
      labels,
      now?.label ?? "",
      `${key}:${dim}`,
      name,
      (chosen) => choose(dim, found[chosen].axes)
    );
    const caption = h("span", { class: "faint" }, fill(WIDGETS.dim, { dim, size }));
    return h("label", { class: "dim" }, caption, " ", list3);
  });
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
  const list3 = h(
    "select",
    { "data-key": key, "aria-label": name, on: { change: () => call(list3.selectedIndex) } },
    ...options.map((option) => h("option", { selected: option === now }, option))
  );
  return list3;
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
    const compile = button(WIDGETS.compile, () => this._ask("compile"));
    const rows2 = (part2, picks) => picks.map((pick, i) => this._row(pick, axes, `${part2}${i}`));
    return h(
      "div",
      { class: "picker even" },
      h("div", { class: "inputs" }, heading("in_specs"), ...rows2("in", inputs)),
      h("div", { class: "inputs" }, heading("out_specs"), ...rows2("out", outputs ?? []), compile)
    );
  }
  _row(pick, axes, key) {
    const spec = h("span", { class: "faint" });
    this._specs.set(key, spec);
    const dims2 = dimensions(pick.name, key, pick.shape, pick.spec, {
      choices: (size) => key.startsWith("out") ? joined(axes, size) : choices(axes, size),
      choose: (dim, chosen) => {
        pick.spec[dim] = chosen;
        this._ask("check");
      }
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
    said.inputs.forEach((text, i) => this._specs.get(`in${i}`)?.replaceChildren(text));
    said.outputs.forEach((text, i) => this._specs.get(`out${i}`)?.replaceChildren(text));
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
    const place = h("div");
    const open = () => {
      this._view ??= mountReport(place, report);
    };
    const title = h("summary", null, WIDGETS.program);
    const region = found.region && h("p", null, mono(clean(found.region)));
    return [h("details", { on: { toggle: open } }, title, region || null, place)];
  }
  _picks;
  _head = h("div", { class: "header" });
  _body = h("div", { class: "sent" });
  _specs = /* @__PURE__ */ new Map();
  _view = null;
  _number = 0;
};
function joined(axes, size) {
  const parts2 = (names) => names.reduce((all, name) => all * (axes.find((axis) => axis.name === name)?.size ?? 1), 1);
  return choices(axes, 0).map((one) => ({
    axes: one.axes,
    label: one.axes.length ? fill(WIDGETS.inAll, { axes: one.axes.join(", "), size: size * parts2(one.axes) }) : WIDGETS.asItIs
  }));
}
function missing(found) {
  const parts2 = [...found.missing, ...found.problems.map((one) => ({ why: one.message, fix: one.fix, other_fix: "" }))];
  return parts2.map(
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
var COLUMNS = [
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
      h("thead", null, row("th", ["", ...COLUMNS])),
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
function varies(axes) {
  if (!axes) {
    return WIDGETS.notTracked;
  }
  return axes.length ? clean(axes.join(", ")) : WIDGETS.same;
}
function body({ lines, sources }) {
  let last = "";
  const items = [];
  for (const line2 of lines) {
    const place = line2.location;
    const key = place ? `${place.source}:${place.line}` : "";
    if (place && key !== last) {
      last = key;
      const number = h("span", { class: "number", "aria-hidden": "true" }, String(place.line));
      const text = h("b", null, clean(lineAt(place, sources)));
      items.push(h("li", { class: "line" }, number, h("code", { class: "text" }, text)));
    }
    items.push(...line2.binds.map((bind) => bound(line2, bind)));
  }
  return h("div", { hidden: !items.length }, heading(WIDGETS.lines), h("ol", { class: "lines" }, ...items));
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
function steps(found) {
  const items = found.steps.map(({ name, passed, message: message2 }) => {
    const [kind, mark] = passed === null ? ["open", message2 ? WIDGETS.notChecked : WIDGETS.notReached] : passed ? ["accepted", WIDGETS.ok] : ["refused", WIDGETS.no];
    const chip2 = h("span", { class: "chip", "data-kind": kind }, mark);
    const text = h("span", null, clean(name) + (message2 ? `: ${clean(message2)}` : ""));
    return h("div", { class: "step" }, chip2, text);
  });
  return h("div", null, heading(WIDGETS.steps), ...items);
}
function message({ message: text, error }) {
  const title = h("summary", null, fill(WIDGETS.ownWords, { error: clean(error) }));
  return text ? [h("details", null, title, h("pre", { class: "raw" }, cleanLines(text)))] : [];
}

// src/widget/edits.ts
var Edits = class {
  constructor(calls, hasState) {
    this.calls = calls;
    const mirror = button(WIDGETS.mirror, () => calls.edit("mirror", ""), { title: WIDGETS.mirrorTitle });
    this.element = h(
      "div",
      { class: "edits" },
      h("div", { class: "axis" }, h("b", null, WIDGETS.recipes), this._recipes, hasState && mirror, h("span", { class: "gap" }), this._undo, this._redo),
      this._note
    );
  }
  calls;
  /** Offer the recipes for the present mesh. */
  offer(recipes) {
    const offered = JSON.stringify(recipes);
    if (offered === this._offered) {
      return;
    }
    this._offered = offered;
    const buttons = recipes.map(({ name, label: label3 }) => button(clean(label3), () => this.calls.edit("recipe", name)));
    this._recipes.replaceChildren(...buttons);
  }
  /** Say which ways there are. */
  allow(undo, redo) {
    const focused = document.activeElement;
    this._undo.disabled = !undo;
    this._redo.disabled = !redo;
    if (focused === this._undo && !undo) {
      this._redo.focus();
    } else if (focused === this._redo && !redo) {
      this._undo.focus();
    }
  }
  /** Show what the last edit changed, or nothing. */
  show(note) {
    const rows2 = (title, pairs2) => pairs2.length ? h(
      "table",
      null,
      h("caption", null, title),
      ...pairs2.map(([what, names]) => h("tr", null, h("td", null, clean(what)), h("td", null, mono(clean(names)))))
    ) : null;
    const tables = note ? [rows2(WIDGETS.placed, note.placed), rows2(WIDGETS.left, note.left)].filter((one) => one) : [];
    this._note.replaceChildren(
      ...note ? [h("div", { role: "status" }, h("b", null, clean(note.title)), `. ${clean(note.notes.join(" "))}`)] : [],
      ...tables.length ? [h("details", null, h("summary", null, WIDGETS.changed), ...tables)] : []
    );
    this._note.hidden = !note;
  }
  element;
  _offered = "";
  _recipes = h("span", { class: "buttons" });
  _note = h("div", { class: "note", hidden: true });
  _undo = button(WIDGETS.undo, () => this.calls.go(-1), { title: WIDGETS.undoTitle, disabled: true });
  _redo = button(WIDGETS.redo, () => this.calls.go(1), { title: WIDGETS.redoTitle, disabled: true });
};

// src/widget/history.ts
var MOST2 = 200;
var History = class {
  constructor(plan) {
    this._plans = [copyOf(plan)];
  }
  /** Keep a plan as the newest; what was undone before is dropped. */
  push(plan) {
    if (JSON.stringify(plan) !== JSON.stringify(this._plans[this._at])) {
      this._plans.splice(this._at + 1, Infinity, copyOf(plan));
      this._plans.splice(0, this._plans.length - MOST2);
      this._at = this._plans.length - 1;
    }
  }
  /** Go so many plans back (or forth), and give that plan; null where there is none. */
  go(steps2) {
    if (!this.has(steps2)) {
      return null;
    }
    this._at += steps2;
    return copyOf(this._plans[this._at]);
  }
  has(steps2) {
    return this._at + steps2 in this._plans;
  }
  _plans;
  _at = 0;
};

// src/widget/pins.ts
function table2(pins, show, drop) {
  const figure = (pin, name) => pin.figures.find((one) => one.name === name) ?? { name, text: REPORT.notKnown, value: null };
  const columns = [...new Set(pins.flatMap((pin) => pin.figures.map((one) => one.name)))];
  const least = columns.map((name) => {
    const known = pins.map((pin) => figure(pin, name).value).filter((value) => value !== null);
    return known.length > 1 && new Set(known).size > 1 ? Math.min(...known) : null;
  });
  const cell = (pin, name, i) => {
    const { text, value } = figure(pin, name);
    const isLeast = least[i] !== null && value === least[i];
    return h("td", null, text, isLeast && h("span", { class: "least" }, WIDGETS.least));
  };
  const rows2 = pins.map((pin, index) => {
    const again = pin.plan && button(WIDGETS.show, () => show(index));
    const away = button(WIDGETS.unpin, () => drop(index));
    const cells = columns.map((name, i) => cell(pin, name, i));
    const acts = h("td", { class: "do" }, again, away);
    return h("tr", null, h("td", null, mono(pin.text)), ...cells, acts);
  });
  const names = [WIDGETS.plan, ...columns].map((name) => h("th", { scope: "col" }, name));
  const last = h("th", { scope: "col" }, h("span", { class: "unseen" }, WIDGETS.toDo));
  return h(
    "div",
    { class: "pins", hidden: !pins.length },
    heading(WIDGETS.pins),
    h("table", null, h("thead", null, h("tr", null, ...names, last)), h("tbody", null, ...rows2))
  );
}

// src/widget/predict.ts
var NOTHING = WIDGETS.nothing;
var ANSWERS = [NOTHING, ...Object.keys(KINDS)];
function judged(left, kind, axes) {
  if (!left.length) {
    return { one: null, kind: kind === NOTHING, axes: true };
  }
  const judgements = left.map((one) => {
    const truth = new Set((one.axes ?? []).map(wholeAxis));
    const same = truth.size === axes.size && [...truth].every((axis) => axes.has(axis));
    return { one, kind: kind === one.kind, axes: one.axes === null || same };
  });
  return judgements.find((each) => each.kind && each.axes) ?? judgements.find((each) => each.kind) ?? judgements[0];
}
function predict(model, root) {
  const report = readReport(JSON.parse(model.get("data")));
  const quiz = new Quiz(report, model.get("questions"), root, (answer) => model.send(answer));
  return () => quiz.dispose();
}
var Quiz = class {
  constructor(report, asked, root, tell = () => void 0) {
    this.report = report;
    this.asked = asked;
    this.tell = tell;
    this._store = new Store();
    root.append(head(report), this._code(), arrays(report, this._store, ["inputs"]), this._score, this._stage);
    this._ask();
  }
  report;
  asked;
  tell;
  dispose() {
    this._store.dispose();
    this._answer?.dispose();
  }
  /** The text alone: what it sends is the question. */
  _code() {
    const source = this.report.sources[0];
    const lines = (source?.text ?? "").replace(/\s+$/, "").split("\n");
    const items = lines.map((text, i) => {
      const number = (source?.first_line ?? 1) + i;
      const item = codeLine(number, clean(text) || " ");
      this._lines.set(number, item);
      return item;
    });
    return h("div", { class: "code" }, h("ol", { class: "lines", "aria-label": REPORT.sourceLines }, ...items));
  }
  _ask() {
    const question = this.asked[this._now];
    this._lines.forEach((item, line2) => item.toggleAttribute("data-marked", line2 === question.line));
    const axes = /* @__PURE__ */ new Set();
    const boxes = this.report.mesh.axes.map(({ name }) => {
      const box = h("input", { type: "checkbox" });
      box.addEventListener("change", () => box.checked ? axes.add(name) : axes.delete(name));
      return h("label", { class: "dim" }, box, ` ${clean(name)}`);
    });
    let kind = NOTHING;
    const list3 = select(ANSWERS, NOTHING, "kind", WIDGETS.whichCollective, (chosen) => kind = ANSWERS[chosen]);
    const show = () => {
      reveal.disabled = list3.disabled = true;
      boxes.forEach((label3) => label3.firstChild.disabled = true);
      const sent = question.sent.map((id) => this.report.byId.get(id));
      const judgement = judged(sent.filter((one2) => !this._named.has(one2)), kind, axes);
      const { one } = judgement;
      const right = judgement.kind && judgement.axes;
      this.tell({ kind: "answer", at: this._now, guess: kind, axes: [...axes], right, sent: one?.id ?? null });
      this._reveal(question, judgement);
    };
    const reveal = button(WIDGETS.reveal, show, { class: "play" });
    this._truth = h("div", { class: "truth", "aria-live": "polite" });
    this._stage.replaceChildren(
      heading(fill(WIDGETS.question, { number: this._now + 1, all: this.asked.length })),
      h("p", null, ...this._text(question)),
      h("div", { class: "axis" }, h("label", { class: "dim" }, WIDGETS.itSends, list3), h("span", null, WIDGETS.over), ...boxes, reveal),
      this._truth
    );
    this._count();
  }
  _text({ place, text, sent, before }) {
    if (!place) {
      return [this.report.collectives.length ? WIDGETS.noLine : WIDGETS.wholeProgram];
    }
    const all = sent.length;
    const which = before ? fill(WIDGETS.oneMore, { all }) : all > 1 ? fill(WIDGETS.oneOf, { all }) : WIDGETS.whatSent;
    return [`${clean(place)}: `, mono(clean(text)), which];
  }
  _reveal({ why }, { one, ...right }) {
    const whole = right.kind && right.axes;
    if (one) {
      this._named.add(one);
    }
    this._right += whole ? 1 : 0;
    const verdict2 = whole ? WIDGETS.right : right.kind ? WIDGETS.rightKind : WIDGETS.wrong;
    const said = one ? fill(WIDGETS.truth, { name: one.say("name"), grouping: one.say("grouping") }) : fill(WIDGETS.truthNothing, { why: clean(why) });
    this._truth.append(h("p", null, h("b", null, verdict2), said));
    if (one) {
      this._answer?.dispose();
      this._answer = new Store();
      const detail = new Detail(this.report, this._answer);
      detail.show(one);
      this._truth.append(detail.element);
      this._answer.set({ chosen: one });
      this._answer.flush();
    }
    const last = this._now + 1 >= this.asked.length;
    const next = button(last ? WIDGETS.again : WIDGETS.next, () => {
      this._now = last ? 0 : this._now + 1;
      this._done = this._now;
      if (last) {
        this._right = 0;
        this._named.clear();
      }
      this._ask();
    });
    this._truth.append(next);
    this._done = this._now + 1;
    this._count();
    next.focus({ preventScroll: true });
  }
  _count() {
    this._score.hidden = !this._done;
    this._score.textContent = fill(WIDGETS.score, { right: this._right, all: this._done });
  }
  _store;
  _score = h("div", { class: "summary" });
  _stage = h("div", { class: "quiz" });
  _lines = /* @__PURE__ */ new Map();
  /** Those that were shown already. */
  _named = /* @__PURE__ */ new Set();
  _truth = h("div");
  _answer = null;
  _now = 0;
  _right = 0;
  _done = 0;
};

// src/widget/search.ts
var Search = class {
  constructor(ask, use) {
    this.use = use;
    this._fix = button(WIDGETS.findFixes, () => ask("fix"), { title: WIDGETS.findFixesTitle });
    this._plans = button(WIDGETS.searchPlans, () => ask("plans"), { title: WIDGETS.searchPlansTitle });
    this._stop = button(WIDGETS.stopSearch, () => ask("stop-search"), { hidden: true });
    this.buttons = [this._fix, this._plans];
    this.element = h("div", { class: "search", hidden: true }, this._head, this._rows);
  }
  use;
  /** Say whether the shown plan is compiled, so that it can be searched from. */
  allow(compiled) {
    this._fix.disabled = this._plans.disabled = !compiled;
  }
  show(found) {
    this.element.hidden = !found.kind;
    if (!found.kind) {
      return;
    }
    const running = found.state === "running";
    const bar2 = h("progress", { max: found.total || 1, value: found.total ? found.done : null });
    this._stop.hidden = !running;
    const title = heading(found.kind === "fix" ? WIDGETS.fixes : WIDGETS.plans);
    const said = h("span", { role: "status" }, clean(found.said));
    this._head.replaceChildren(title, h("div", { class: "axis" }, running && bar2, said, this._stop));
    this._rows.replaceChildren(...found.rows.map((row2) => this._row(row2)));
  }
  _row({ about, code, effect, plan }) {
    const use = plan && button(WIDGETS.use, () => this.use(plan));
    return h(
      "div",
      { class: "found" },
      h("div", null, h("b", null, clean(about)), h("span", { class: "faint" }, ` ${clean(effect)}`)),
      h("div", { class: "axis" }, mono(clean(code)), use ?? copier(code))
    );
  }
  element;
  buttons;
  _fix;
  _plans;
  _stop;
  _head = h("div");
  _rows = h("div");
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
    if (subject.inputs) {
      this._edits = new Edits({ edit: (edit2, name) => this._edit(edit2, name), go: (steps2) => this._go(steps2) }, subject.state);
      const alike = (name) => this._edit("alike", name);
      this._picker = new Picker(subject, copyOf(plan), () => this._picked(), alike, this._edits.element);
      this._history = new History(plan);
      root.addEventListener("keydown", this._keys);
    }
    root.append(
      h("div", { class: "header" }, this._title, this._picker ? null : h("span", null, WIDGETS.alone)),
      ...this._picker ? [this._picker.element] : [],
      this._error,
      h("div", { class: "state" }, this._chip, this._status, this._stop, ...this._picker ? this._search.buttons : [], this._pin),
      this._search.element,
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
    this._search.show(model.get("search"));
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
    ["change:edited", () => this._editCame()],
    ["change:search", () => this._search.show(this.model.get("search"))],
    ["change:pins", () => this._drawPins()]
  ];
  // What is asked
  /** Ask for a preview of the present plan; while one is on its way, the newest plan waits. */
  _changed() {
    this._await();
    if (!this._waiting) {
      this._ask();
    }
  }
  /** Await the answer to a new question. */
  _await() {
    this._number += 1;
    this._error.hidden = true;
    clearTimeout(this._compiling);
    clearTimeout(this._late);
    this._say("asked", WIDGETS.asking);
    this._late = window.setTimeout(() => {
      this._status.textContent = WIDGETS.late;
    }, LATE);
  }
  /** A control was used. */
  _picked() {
    if (this._picker) {
      this._history?.push(this._picker.plan);
    }
    this._edits?.show(null);
    this._allow();
    this._changed();
  }
  /** Show another plan, which can be undone, with a note on what changed. */
  _take(plan, note = null) {
    this._picker?.show(plan);
    this._picked();
    this._edits?.show(note);
  }
  _edit(edit2, name) {
    this._await();
    this.model.send({ kind: "edit", number: this._number, edit: edit2, name, plan: this._picker?.plan });
  }
  _editCame() {
    const edited = this.model.get("edited");
    if (edited.number !== this._number) {
      return;
    }
    clearTimeout(this._late);
    if (edited.refused) {
      this._refuse(edited.refused);
      return;
    }
    this._take(edited.plan, edited.note);
  }
  _go(steps2) {
    const plan = this._history?.go(steps2);
    if (plan) {
      this._picker?.show(plan);
      this._edits?.show(null);
      this._allow();
      this._changed();
    }
  }
  _allow() {
    this._edits?.allow(this._history?.has(-1) ?? false, this._history?.has(1) ?? false);
  }
  /** Ctrl+Z undoes, with Shift (or Ctrl+Y) it redoes; a text field undoes its own text. */
  _keys = (event) => {
    const key = event.key.toLowerCase();
    const isText = event.target.matches("input[type=text], input[type=number], textarea");
    if ((event.ctrlKey || event.metaKey) && !isText && (key === "z" || key === "y")) {
      event.preventDefault();
      event.stopPropagation();
      this._go(key === "y" || event.shiftKey ? 1 : -1);
    }
  };
  _ask() {
    this._waiting = this._number;
    this._send("preview", this._number);
  }
  _send(kind, number) {
    this.model.send({ kind, number, plan: this._picker?.plan });
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
      this._refuse(answer.said);
      return;
    }
    if (answer.kind === "preview") {
      this._drawGrids(readReport(JSON.parse(answer.report)), "preview");
    }
    this._tellControls(answer);
    this._say(answer.kind === "preview" ? "preview" : "asked", answer.said);
    this._sent.toggleAttribute("data-stale", true);
    this._stale.hidden = false;
    this._stale.textContent = WIDGETS.stale;
    this._compiling = window.setTimeout(() => this._send("compile", this._number), QUIET);
  }
  _refuse(why) {
    this._error.textContent = cleanLines(why);
    this._error.hidden = false;
    this._say("refused", WIDGETS.before);
  }
  _tellControls({ specs, recipes }) {
    this._picker?.tell(specs ?? {});
    this._edits?.offer(recipes ?? []);
  }
  _compiledCame() {
    const compiled = this.model.get("compiled");
    if (compiled.number >= this._waiting) {
      this._waiting = 0;
    }
    if (compiled.number < this._number) {
      if (!this._waiting && this._chip.getAttribute("data-kind") === "asked") {
        this._ask();
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
    this._drawSent(report, compiled.questions);
    this._drawCodes(compiled.codes);
    this._tellControls(compiled);
    this._say("compiled", compiled.said);
    this._pin.disabled = false;
  }
  // What is drawn
  _say(kind, text) {
    this._chip.textContent = STATES[kind];
    this._chip.setAttribute("data-kind", kind);
    this._status.textContent = clean(text);
    this._stop.hidden = kind !== "preview" && kind !== "asked";
    this._pin.disabled = kind !== "compiled";
    this._search.allow(kind === "compiled");
  }
  _drawGrids(report, kind) {
    const store = this._newStore(0);
    const { values, said } = report;
    const many = said.inputs.members.length + said.outputs.members.length > CARDS;
    const inside2 = values.length ? [new Spread(report, store).element] : [];
    this._grids.replaceChildren(head(report), this._foldable("arrays", many, arrays(report, store)));
    this._inside.replaceChildren(...inside2.map((part2) => this._foldable("values", many, part2)));
    [this._grids, this._inside].forEach((part2) => part2.setAttribute("data-kind", kind));
  }
  /** Parts of a large program are folded, and stay as they were opened from plan to plan. */
  _foldable(part2, folds, element) {
    if (!folds) {
      return element;
    }
    const fold = h("details", { open: this._open.has(part2) }, h("summary", null, REPORT[part2]), element);
    fold.addEventListener("toggle", () => fold.open ? this._open.add(part2) : this._open.delete(part2));
    return fold;
  }
  _drawSent(report, questions) {
    const store = this._newStore(1);
    this._sent.replaceChildren(heading(WIDGETS.sends), ...sending(report, store));
    this._sent.toggleAttribute("data-stale", false);
    this._ends.splice(0).forEach((end) => end());
    this._whole.replaceChildren(
      this._folded(WIDGETS.guess, (place) => {
        const quiz = new Quiz(report, questions, place);
        return () => quiz.dispose();
      }),
      this._folded(WIDGETS.wholeReport, (place) => {
        const view = mountReport(place, report);
        return () => view.dispose();
      })
    );
  }
  /** What is drawn when it is opened; `draw` gives the way to end it. */
  _folded(title, draw2) {
    const place = h("div");
    return folded(title, place, () => this._ends.push(draw2(place)));
  }
  _drawCodes(codes) {
    const texts = codes.map(({ title: title2, text }) => {
      const name = h("div", null, h("b", null, clean(title2)), " ", copier(text));
      return h("div", { class: "snippet" }, name, h("pre", { class: "raw" }, cleanLines(text)));
    });
    const title = h("summary", null, WIDGETS.code);
    this._codes.replaceChildren(...texts.length ? [h("details", null, title, ...texts)] : []);
  }
  _drawPins() {
    const pins = this.model.get("pins");
    const show = (index) => {
      const { plan } = pins[index];
      if (plan) {
        this._take(plan);
      }
    };
    this._pins.replaceChildren(table2(pins, show, (index) => this.model.send({ kind: "unpin", index })));
  }
  _newStore(place) {
    this._stores[place]?.dispose();
    return this._stores[place] = new Store();
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
  _pin = button(WIDGETS.pin, () => {
    this.model.send({ kind: "pin", plan: this._picker?.plan ?? null });
  });
  _stop = button(WIDGETS.stop, () => {
    clearTimeout(this._compiling);
    this.model.send({ kind: "stop" });
    this._say("stopped", WIDGETS.stopped);
  });
  _search = new Search(
    (kind) => this._send(kind, this._number),
    (plan) => this._take(plan)
  );
  _picker = null;
  _edits = null;
  _history = null;
  _stores = [];
  _open = /* @__PURE__ */ new Set();
  _ends = [];
  _number = 0;
  _waiting = 0;
  _compiling = 0;
  _late = 0;
};

// src/widget/index.ts
var KEPT = ".shardnb-kept";
var VIEWS = { check, explorer, predict };
function render({ model, el }) {
  const root = h("div", { class: "report widget", ...OWN_KEYS });
  el.replaceChildren(root);
  const draw2 = VIEWS[String(model.get("view"))];
  if (!draw2) {
    root.append(h("div", { class: "error", role: "alert" }, fill(WIDGETS.noView, { name: clean(String(model.get("view"))) })));
    return () => root.remove();
  }
  const end = draw2(telling(model, root), root);
  return () => {
    end();
    root.remove();
  };
}
function telling(model, root) {
  return {
    get: (name) => model.get(name),
    send: (content) => model.send({ ...content, keeps: Boolean(root.closest(KEPT)) }),
    on: (event, call) => model.on(event, call),
    off: (event, call) => model.off(event, call)
  };
}
var widget_default = { render };
export {
  widget_default as default,
  mount
};
