// Generated from shardnb by labextension/generate.py. Do not edit.

import type { Asker, Kind, Ring } from './report';

export const MIME_TYPE = "application/vnd.shardnb.report.v1+json" as const;

export const VERSION = 1 as const;

export const KINDS: Record<Kind, { ring: Ring; inPairs: boolean }> = {
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

/** The ground and the text of each asker's label. */
export const ASKER_COLOURS: Record<Asker, readonly [string, string]> = {
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

export const OTHER_COLOURS = [
  "#dcdcdc",
  "#222222"
] as const;

export const HUES = [
  "#8ecae6",
  "#ffc75f",
  "#a8d98a",
  "#f2a0a0",
  "#cdb4f0",
  "#f7b6d9",
  "#b8b8a0",
  "#7fd6c2"
] as const;

export const INK = "#1b1b1b" as const;

export const EMPTY = "#c8c8c8" as const;

export const SIZES: readonly (readonly [number, string])[] = [
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

/** What fields hold that the data leaves out, and which parts fields are made of. */
export const SHAPES: Record<string, { defaults: object; parts: Record<string, string> }> = {
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
      "least_trips": 0,
      "role": null,
      "role_of": ""
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
      "values": [],
      "wire_bytes": null,
      "collectives": [],
      "locations": [],
      "edit": ""
    },
    "parts": {
      "location": "Location",
      "values": "Value",
      "locations": "Location"
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
      "code": 0,
      "constants": 0,
      "host": 0
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
      "cores": null,
      "slices": null
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
      "partitioned": true,
      "complete": true,
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
      "uncounted": 0
    },
    "parts": {}
  }
};

export const REPORT = {
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
} as const;

export const EDITOR = {
  "panel": "Sharding report",
  "panelCaption": "The last sharding report of the notebook",
  "openCommand": "Show the Last Sharding Report",
  "openCaption": "What the last %%shard cell sends between devices, who asked for it, and why",
  "badgesCommand": "Show Collectives at Their Lines",
  "typesCommand": "Show Placements behind Names",
  "category": "Sharding",
  "purpose": "Shows what a cell sends between devices at its lines and in a panel.",
  "rendererPurpose": "Shows a shardnb report, live.",
  "noReport": "No report in this notebook yet. Run a cell that begins with ",
  "example": "%load_ext shardnb\n%mesh data=4,model=2\n\n%%shard x=P('data', 'model') W=P('model')\ny = x @ W",
  "markTitle": "{head}: {sends}; {cause}",
  "markLabel": "{title}. Show it in the report.",
  "noSettings": "shardnb: no settings"
} as const;

export const WIDGETS = {
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
} as const;
