"""Traces of TPU and GPU, written by hand in the text form of XSpace, which jaxlib serializes.

What their planes, lines and stats are called follows XProf's and XLA's sources.
"""

from __future__ import annotations

from jax.profiler import ProfileData
from jaxlib import _hlo

from shardnb.profiles.messages import HloModuleProto, HloProto

STEP = """HloModule jit_step, is_scheduled=true

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}

ENTRY main {
  p = f32[1024]{0} parameter(0)
  ar-start = f32[1024]{0} all-reduce-start(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  product = f32[1024]{0} multiply(p, p)
  ar-done = f32[1024]{0} all-reduce-done(ar-start)
  gathered = f32[2048]{0} all-gather(product), channel_id=2, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT result = (f32[1024]{0}, f32[2048]{0}) tuple(ar-done, gathered)
}
"""
"""A program of two devices: an all-reduce beside a product, and then an all-gather."""


def serialized(hlo: str, devices: tuple[int, ...] = (0, 1)) -> bytes:
    """A HloModuleProto, with the device of each partition."""
    proto = _hlo.hlo_module_from_text(hlo).as_serialized_hlo_module_proto()
    module = HloModuleProto.FromString(proto)
    given = module.device_assignment
    given.replica_count, given.computation_count = 1, len(devices)
    for device in devices:
        given.computation_devices.add(replica_device_ids=[device])
    return module.SerializeToString()


def octal(value: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in value)


def metadata(programs: dict[int, bytes]) -> str:
    """The plane with the programs that ran."""
    entries = "".join(
        f'event_metadata {{ key: {at} value {{ id: {at} name: "p({number})" '
        f'stats {{ metadata_id: 1 bytes_value: "{octal(HloProto(hlo_module=proto).SerializeToString())}" }} '
        f"stats {{ metadata_id: 2 uint64_value: {number} }} }} }} "
        for at, (number, proto) in enumerate(programs.items(), 1)
    )
    return (
        f'planes {{ name: "/host:metadata" {entries} '
        'stat_metadata { key: 1 value { id: 1 name: "Hlo Proto" } } '
        'stat_metadata { key: 2 value { id: 2 name: "program_id" } } }\n'
    )


Event = tuple[str, float, float]
"""A name, a start and an end in microseconds."""


def _lines(lines: dict[str, list[tuple[str, float, float, str]]]) -> str:
    names = dict.fromkeys(event[0] for events in lines.values() for event in events)
    at = {name: number for number, name in enumerate(names, 1)}
    written = "".join(
        f'lines {{ id: {number} name: "{line}" timestamp_ns: 1000000 '
        + "".join(
            f"events {{ metadata_id: {at[name]} offset_ps: {round(start * 1e6)} "
            f"duration_ps: {round((end - start) * 1e6)} {stats} }} "
            for name, start, end, stats in events
        )
        + "} "
        for number, (line, events) in enumerate(lines.items(), 1)
    )
    return written + "".join(
        f'event_metadata {{ key: {n} value {{ id: {n} name: "{name}" }} }} '
        for name, n in at.items()
    )


def tpu(
    number: int, lines: dict[str, list[Event]], kind: str = "TPU v5 lite", stats: str = ""
) -> str:
    """The plane of a TPU: its lines `XLA Modules`, `XLA Ops` and `Async XLA Ops`.

    `stats` are those of each event, which have no names.
    """
    plain = {line: [(*event, stats) for event in events] for line, events in lines.items()}
    return (
        f'planes {{ name: "/device:TPU:{number}" {_lines(plain)} '
        f'stats {{ metadata_id: 9 str_value: "{kind}" }} '
        'stat_metadata { key: 9 value { id: 9 name: "device_type_string" } } }\n'
    )


def gpu(number: int, streams: dict[str, list[Event]], program: int, stats: str = "") -> str:
    """The plane of a GPU: kernels on streams, each with the operation and program it is of.

    The name of an event is that of the operation; its kernel is called otherwise.
    """
    operations = dict.fromkeys(e[0] for events in streams.values() for e in events)
    of = {name: 10 + place for place, name in enumerate(operations)}
    of_program = f"stats {{ metadata_id: 2 uint64_value: {program} }} {stats}"
    lines = {
        stream: [
            (
                f"kernel of {name}",
                start,
                end,
                f"stats {{ metadata_id: 1 ref_value: {of[name]} }} {of_program}",
            )
            for name, start, end in events
        ]
        for stream, events in streams.items()
    }
    names = "".join(
        f'stat_metadata {{ key: {n} value {{ id: {n} name: "{name}" }} }} '
        for n, name in [(1, "hlo_op"), (2, "program_id"), *((n, name) for name, n in of.items())]
    )
    return f'planes {{ name: "/device:GPU:{number}" {_lines(lines)} {names} }}\n'


def space(*planes: str, host: str = "host") -> bytes:
    """A serialized XSpace."""
    return ProfileData.text_proto_to_serialized_xspace("".join(planes) + f'hostnames: "{host}"')
