// Generated from shardnb by labextension/generate.py. Do not edit.

import type { Kind, Ring, Tone } from './report';

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

/** The ground and text of labels, by cost and cause, and what the colours mean. */
export const TONES: Record<Tone, readonly [string, string]> = {
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

export const LEGEND: Record<Tone, string> = {
  "neutral": "typical of a strategy, called, or completing a partial sum",
  "amber": "a reshard that you did not write",
  "red": "the largest cost, or full rematerialization"
};

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

/** What fields hold that the data leaves out, and which parts fields are made of. */
export const SHAPES: Record<string, { defaults: object; parts: Record<string, string> }> = {
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
      "hidden": 0.0,
      "executions": 1.0,
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
      "seconds": 0.0,
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
      "least_bytes": 0.0
    },
    "parts": {}
  }
};

export const REPORT = {
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
} as const;

export const EDITOR = {
  "panel": "Sharding report",
  "panelCaption": "The last sharding report of this notebook",
  "openCommand": "Show the Last Sharding Report",
  "openCaption": "What the last %%shard cell sends between devices, and why",
  "badgesCommand": "Show Collectives at Their Lines",
  "typesCommand": "Show Shardings after Names",
  "category": "Sharding",
  "purpose": "Shows what a cell sends between devices at its lines and in a panel.",
  "rendererPurpose": "Shows a shardnb report, live.",
  "noReport": "No report in this notebook yet. Run a cell that begins with ",
  "example": "%load_ext shardnb\n%mesh data=4,model=2\n\n%%shard x=P('data', 'model') W=P('model')\ny = x @ W",
  "markTitle": "{head}, {sends}: {cause}",
  "markLabel": "{title}. Show in the report.",
  "preview": "Preview by Shardy, not compiled: run the cell to see what it sends.",
  "previewTitle": "preview by Shardy, not compiled",
  "briefCommand": "Show Short Reports",
  "noSettings": "shardnb: no settings"
} as const;

export const WIDGETS = {
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
} as const;
