"""What a device's memory holds, by the compiler's own list of allocations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shardnb.report.memory import Memory
from shardnb.report.model import UNUSED, Value
from shardnb.texts.buffers import Allocation


def memory_of_compiled(compiled: Any, platform: str) -> Memory | None:
    """Return what one device holds, as the analysis of a compiled stage says; None without one."""
    stats = compiled.memory_analysis()
    if stats is None:
        return None
    return Memory(
        arguments=stats.argument_size_in_bytes,
        outputs=stats.output_size_in_bytes,
        temporaries=_temporaries(stats, platform),
        aliased=stats.alias_size_in_bytes,
        code=stats.generated_code_size_in_bytes,
        host=stats.host_argument_size_in_bytes
        + stats.host_output_size_in_bytes
        + stats.host_temp_size_in_bytes
        - stats.host_alias_size_in_bytes,
    )


def _temporaries(stats: Any, platform: str) -> int:
    """Return what the values that a program computes on the way take.

    `temp_size_in_bytes` of a TPU is up to a seventh more than what its compiler counts when it
    refuses a program, and less where values stay on the chip
    (test_a_tpus_memory_is_what_its_compiler_counts). JAX before 0.12 knows only that.
    """
    every = getattr(stats, "total_allocation_bytes", None)
    if platform != "tpu" or not every:
        return int(stats.temp_size_in_bytes)
    return int(every - stats.indefinite_allocations)


def with_host(memory: Memory, inputs: Sequence[Value], outputs: Sequence[Value]) -> Memory:
    """Return what is on the host apart where the compiler counts it with the rest: CPU has one."""
    taken, given = (
        sum(value.shard_bytes for value in values if value.memory and value.details != UNUSED)
        for values in (inputs, outputs)
    )
    if memory.host or not taken + given:
        return memory
    left, kept = memory.arguments - taken, memory.outputs - given
    return replace(memory, arguments=left, outputs=kept, host=taken + given)


def memory_of(allocations: Sequence[Allocation]) -> Memory:
    """Return what one device holds in its main memory, as the compiler's analysis does."""
    main = [each for each in allocations if each.is_main]
    arguments = [each for each in main if each.parameter is not None]
    return Memory(
        arguments=sum(each.bytes for each in arguments),
        outputs=sum(each.bytes for each in main if each.is_result),
        temporaries=sum(each.bytes for each in main if each.is_temporary),
        aliased=sum(each.bytes for each in arguments if each.is_result),
    )
