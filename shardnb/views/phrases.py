"""The words of the front end that no report makes: headings, buttons, tooltips.

`labextension/generate.py` writes them into the front end, which fills in the slots and says
nothing of its own. A pair is for one thing and for another number of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardnb.views.palette import Tone

Phrase = str | tuple[str, str]

ARRAYS = "Array shardings"
HOST = "host {number}"
SLICE = "slice {number}"
HOST_LINES = "lines separate {number} hosts"
SLICE_LINES = "thick lines separate {number} slices"
DEVICES = "Communicating devices"
TYPES = "Shardings in the types of each line"
SENT_COLUMNS = ("for", "times", "per run", "why")
HELD_COLUMNS = ("per device", "values", "shape per device", "line")
MEASURED = "Measured"
MEASURED_COLUMN = "measured"

LEGEND: Mapping[Tone, str] = {
    "neutral": "typical of a strategy, called, or completing a partial sum",
    "amber": "a reshard that you did not write",
    "red": "the largest cost, or full rematerialization",
}
PASSED: Mapping[bool | None, str] = {True: "passed", False: "failed", None: "not known"}
INSERTED = "inserted by JAX"
# Before an edit and after it: what was not compiled is a suggestion.
FIX, TRY = "Fix:", "Try:"
COMPILED, NOT_COMPILED = "[compiled]", "[not compiled]"

REPORT: dict[str, Phrase] = {
    # what cannot be shown
    "notReport": "this is not a report: {why}",
    "noVersion": "it has no version number",
    "tooNew": "the report has version {version}, and this view reads up to {known}: "
    "update shardnb to see it",
    "noWords": "the report was saved by an older shardnb, without the words of this view: "
    "run its cell again",
    "notObject": "{part} is not an object",
    "notList": "{part} is not a list",
    "theData": "the data",
    "aPart": "a part of it",
    "otherDevices": "its mesh of {size} positions has other devices",
    "otherRank": "the array {name} has shards of another rank",
    "noGroups": "collective {id} has no groups",
    "noAxis": "its mesh has no axis {name}",
    # parts of the report
    "open": "Open in side panel",
    "rest": "What is sent, arrays, memory",
    "arrays": ARRAYS,
    "values": "Values inside the program",
    "types": TYPES,
    "inserted": INSERTED,
    "mesh": "Mesh",
    "memory": "Memory",
    "time": "Time",
    "notes": "Notes",
    "passed": PASSED[True],
    "failed": PASSED[False],
    "notKnown": PASSED[None],
    "details": "details",
    "copy": "copy",
    "copied": "copied",
    "notAllowed": "not allowed",
    "sourceLines": "Source lines",
    "moreLines": (
        "and {number} more line with collectives",
        "and {number} more lines with collectives",
    ),
    "line": "line {line}",
    "lineIn": "line {line} of {source}",
    "lambda": "lambda {binds}",
    # what to look at
    "morePoints": ("{number} more to look at", "{number} more to look at"),
    "fix": FIX,
    "try": TRY,
    "compiled": COMPILED,
    "notCompiled": NOT_COMPILED,
    # what is sent
    "sent": "What is sent",
    "columnFor": SENT_COLUMNS[0],
    "columnTimes": SENT_COLUMNS[1],
    "columnSends": SENT_COLUMNS[2],
    "columnWhy": SENT_COLUMNS[3],
    "heldBytes": HELD_COLUMNS[0],
    "heldValues": HELD_COLUMNS[1],
    "heldShape": HELD_COLUMNS[2],
    "heldLine": HELD_COLUMNS[3],
    "columnMeasured": MEASURED_COLUMN,
    "bySeconds": "slowest first",
    "byBytes": "most bytes first",
    "measured": MEASURED,
    "timeline": "Timeline",
    "timelineDevices": "devices that are shown",
    "computing": "computing",
    "moreRows": ("show {number} more row", "show {number} more rows"),
    "filtered": "{shown} of {all} collectives",
    "showAll": "show all",
    "member": "{number} of {all}",
    "previous": "previous",
    "next": "next",
    # one collective
    "exchange": "{grouping}: {array} on each device, sends {size}{trips}",
    "calls": "Call stack",
    "call": "{line} in {function}",
    "inside": "inside {part}",
    "raw": "HLO",
    "operation": "operation {name}",
    # playing it
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
    "sentEach": (
        "Each device sends {number} block, {size} in all. ",
        "Each device sends {number} blocks, {size} in all. ",
    ),
    "sentA": (
        "Some devices send {number} block, {size} in all. ",
        "Some devices send {number} blocks, {size} in all. ",
    ),
    "standFor": "{drawn} devices stand for the {all} of a group. ",
    "allGroups": "All groups do the same at the same time. ",
    "assumes": "The bytes are estimated for this ring algorithm.",
    "swap": "pairs of devices swap the blocks that they hold for each other",
    "goesOn": "the block is passed on to the next device",
    "adds": "each device sends a block to the next, which adds its own partial sum",
    "passesSum": "each device sends a copy of a finished block to the next",
    "passes": "each device sends a copy of a block to the next",
    "toPartner": "each device sends its block to its partner",
    # how placements spread
    "spread": "Step through the propagation of shardings",
    "firstStep": "before the first step: the shardings of inputs, outputs and constraints",
    "notKnownWhen": "time not known",
    "moment": "the sharding over {axis} propagates {direction} through {op}{at}{aside}, "
    "from {source} to {target}",
    "toOther": " (to its other operand)",
    "stepAt": " at line {line}",
    "stepAtIn": " at line {line} of {source}",
    # pictures, and tooltips
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
    "whoExchanges": DEVICES,
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
    "host": HOST,
    "slice": SLICE,
    "hostLines": HOST_LINES,
    "sliceLines": SLICE_LINES,
    "holds": "holds {block}",
    "group": "in group {name}: {devices}",
    "noPart": "does not take part",
    "sendsTo": "sends to {devices}",
    "receives": "receives from {devices}",
    "block": ("{block} on device {devices}", "{block} on devices {devices}"),
    "nowhere": "{block} on no device",
    "partial": "partial sums of {block}",
    "ownValue": "per-device values of {block}",
    "beside": "next to it: {parts}",
    "both": "{one} and {other}",
    "alongAxis": "{devices} along {axis}",
    "alongDim": "{devices} along dim {dim}",
}

# The JupyterLab extension
EDITOR: dict[str, Phrase] = {
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
    "example": "%load_ext shardnb\n%mesh data=4,model=2\n\n"
    "%%shard x=P('data', 'model') W=P('model')\ny = x @ W",
    "markTitle": "{head}, {sends}: {cause}",
    "markLabel": "{title}. Show in the report.",
    "preview": "Preview by Shardy, not compiled: run the cell to see what it sends.",
    "previewTitle": "preview by Shardy, not compiled",
    "briefCommand": "Show Short Reports",
    "noSettings": "shardnb: no settings",
}

# The widgets
WIDGETS: dict[str, Phrase] = {
    "noView": "no view {name}",
    # the controls of a plan
    "inputs": "Input shardings",
    "moreInputs": ("and {number} more input", "and {number} more inputs"),
    "devices": ("= {number} device", "= {number} devices"),
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
    "applyAlike": ("apply to {number} alike", "apply to {number} alike"),
    # edits of many specs
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
    # searches
    "findFixes": "find fixes",
    "findFixesTitle": "Compile other specs of inputs and results that avoid collectives",
    "searchPlans": "search plans",
    "searchPlansTitle": "Search the specs that hold and send least on this mesh",
    "stopSearch": "stop the search",
    "fixes": "Fixes",
    "plans": "Plans",
    "use": "use",
    # the explorer
    "alone": "This report has no function to recompile, so its plan cannot be changed here: "
    "sn.explore(fn, *args, mesh=...) compiles other plans.",
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
    # predict, then reveal
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
    # the check of a shard_map
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
    "insertedNote": f"  ({INSERTED})",
    "steps": "The checks, in order",
    "ok": "ok",
    "no": "no",
    "notReached": "not reached",
    "notChecked": "not checked",
    "ownWords": "JAX's message: {error}",
}


def sent_columns(*, timed: bool) -> tuple[str, ...]:
    """Return the heads of what is sent, with a column for measured time or without."""
    *before, why = SENT_COLUMNS
    return (*before, *((MEASURED_COLUMN,) if timed else ()), why)
