"""The words of the live view that no report makes: headings, buttons, what the pointer is told.

`labextension/generate.py` writes them into the front end, which fills in the slots and says
nothing of its own. A pair is for one thing and for another number of them. The widgets' and the
editor's words stand in `widget_phrases`.
"""

from __future__ import annotations

Phrase = str | tuple[str, str]

BYTES = "bytes sent"
KNOWN_BYTES = "bytes that are known to be sent"
FILTERED = "{shown} of {all}, {share} % of the {bytes}"

ARRAYS = "Where the arrays lie"
TYPES = "The placement in each line's types"
INSERTED = "inserted by JAX"

REPORT: dict[str, Phrase] = {
    # what cannot be shown
    "notReport": "this is no report: {why}",
    "noVersion": "it has no version number",
    "tooNew": "the report has version {version}, and this view reads up to {known}: "
    "update shardnb to see it",
    "noWords": "the report was saved by an older shardnb, without the words of this view: "
    "run its cell again",
    "notObject": "{part} is not an object",
    "notList": "{part} is not a list",
    "theData": "the data",
    "aPart": "a part of it",
    "otherDevices": "its mesh of {size} places has other devices",
    "otherRank": "the array {name} has parts of another rank",
    "noGroups": "collective {id} has no groups",
    "noAxis": "its mesh has no axis {name}",
    # parts of the report
    "arrays": ARRAYS,
    "values": "Arrays inside the program",
    "types": TYPES,
    "inserted": INSERTED,
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
    "moreLines": (
        "and {number} more line with collectives",
        "and {number} more lines with collectives",
    ),
    "line": "line {line}",
    "lineIn": "line {line} of {source}",
    "lambda": "lambda {binds}",
    # the list of collectives
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
    # one collective
    "hint": "Point at an array: the mesh shows which block of it each device holds.",
    "sends": "sends {size}{trips}",
    "exchange": "{grouping}: {array} on each device, sends {size}{trips}",
    "calls": "How the program gets there",
    "call": "{line} in {function}",
    "inside": "inside {part}",
    "raw": "As the compiler writes it",
    "operation": "operation {name}",
    "try": "Try: ",
    # playing it
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
    "sentEach": (
        "Each device sends {number} block, {size} in all. ",
        "Each device sends {number} blocks, {size} in all. ",
    ),
    "sentA": (
        "A device sends {number} block, {size} in all. ",
        "A device sends {number} blocks, {size} in all. ",
    ),
    "standFor": "{drawn} devices stand for the {all} of a group. ",
    "allGroups": "All groups do the same at once. ",
    "assumes": "This is the way that the numbers assume; the hardware may take another.",
    "swap": "pairs of devices swap the blocks that they have for each other",
    "goesOn": "the block goes on to the next device",
    "adds": "each device sends a block to the next, which adds its own part",
    "passesSum": "each device sends a copy of a finished block to the next",
    "passes": "each device sends a copy of a block to the next",
    "toPartner": "each device sends its block to its partner",
    # how placements spread
    "spread": "Step through the propagation of placements",
    "firstStep": "before the first step: what inputs, outputs and constraints say",
    "notKnownWhen": "not known when",
    "moment": "the split over {axis} goes {direction} through {op}{at}{aside}, "
    "from {source} to {target}",
    "toOther": " (to its other operand)",
    "stepAt": " at line {line}",
    "stepAtIn": " at line {line} of {source}",
    # pictures, and what the pointer is told
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
    "block": ("{block} on device {devices}", "{block} on devices {devices}"),
    "nowhere": "{block} on no device",
    "partial": "partial sums of {block}",
    "ownValue": "each device's own {block}",
    "beside": "next to it: {parts}",
    "both": "{one} and {other}",
    "alongAxis": "{devices} along {axis}",
    "alongDim": "{devices} along dim {dim}",
}
