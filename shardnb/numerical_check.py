"""`numeric_check`: whether a sharded program computes what it computes on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shardnb.compiler import Program, Request, build
from shardnb.compiler.arrays import result_name
from shardnb.compiler.call import read_call
from shardnb.compiler.placement import is_spec
from shardnb.compiler.program import finished
from shardnb.jax_compat.error_wordings import DONATED
from shardnb.jax_compat.jaxprs import equations, is_literal
from shardnb.mesh import Grid, make_grid
from shardnb.rewrite.retrace import quiet_retrace

Tree = Any

# A narrow dtype rounds at each step of a sum, and a sum over devices adds in another order than #
# one device: an epsilon for each of the eight halvings of a sum over 256 devices.
_EPSILONS = 8
_finfo: Callable[[Any], Any] = jnp.finfo
_DONATIONS = ("donate_argnums", "donate_argnames")


@dataclass(frozen=True)
class ResultDifference:
    """One result, compared between the sharded and the unsharded program.

    `difference` is the largest absolute difference and `index` where it is, `scale` the largest
    finite absolute value in the unsharded result. An element may differ by `atol + rtol * scale`,
    because sums in another order differ in proportion to their terms. Integers must be equal. NaN
    equals only NaN.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    difference: float
    scale: float
    index: tuple[int, ...]
    rtol: float
    atol: float
    ok: bool

    @property
    def relative(self) -> float:
        """The difference divided by the scale."""
        return self.difference / self.scale if self.scale else float(bool(self.difference))

    def __str__(self) -> str:
        """Describe the comparison in one line."""
        verdict = "agrees" if self.ok else "DIFFERS"
        where = f" at {list(self.index)}" if self.shape and self.difference else ""
        return (
            f"{self.name} {self.dtype}{list(self.shape)} {verdict}: "
            f"largest difference {self.difference:.3g}{where}, relative {self.relative:.3g} "
            f"(allowed: {self.atol:.3g} + {self.rtol:.3g} relative)"
        )


@dataclass(frozen=True)
class NumericCheck:
    """The result of a numeric check.

    `ok` is None if the program could not run on one device; `why` then says the cause.
    """

    ok: bool | None
    results: tuple[ResultDifference, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        """Describe the check, with the results that differ first."""
        if self.ok is None:
            return f"not compared: {self.why}"
        count = len(self.results)
        wrong = [result for result in self.results if not result.ok]
        head = (
            f"sharded and unsharded agree in {count} result{'s' if count != 1 else ''}"
            if self.ok
            else f"sharded and unsharded differ in {len(wrong)} of {count} results"
        )
        ordered = [*wrong, *(result for result in self.results if result.ok)]
        return "\n".join([head, *(f"  {result}" for result in ordered)])


def numeric_check(
    fn: Callable[..., Tree],
    *args: Tree,
    mesh: str | jax.sharding.Mesh | Grid | None = None,
    axes: str | None = None,
    on: str | None = None,
    in_specs: Tree = None,
    out_specs: Tree = None,
    rtol: float = 1e-4,
    atol: float = 1e-6,
    **options: Any,
) -> NumericCheck:
    """Run a function on a mesh and on one device, and compare the results.

    The arguments are those of `explain`; they must hold data. The function runs twice; nothing is
    donated. An element may differ by `atol + rtol * (the largest absolute value in the result)`;
    for a narrow dtype `rtol` is at least eight of its machine epsilons. The check prints the
    tolerance.

    Raises what `explain` raises, and `ValueError` if an argument is only a shape.

    >>> import jax.numpy as jnp
    >>> from jax.sharding import PartitionSpec as P
    >>> x = jnp.arange(8.0)
    >>> numeric_check(jnp.sum, x, mesh="data=4", in_specs=P("data")).ok
    True
    """
    call = read_call(fn, args, options)
    request = call.request(make_grid(mesh, axes, on, call.placed), in_specs, out_specs)
    kept = replace(request, jit_options=_without_donations(request.jit_options))
    return check(build(kept), rtol=rtol, atol=atol)


def _without_donations(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _DONATIONS}


_NOT_RUN = object()
_OTHER_CONSTANTS = (
    "the function computes another constant each time it is traced, such as the time of day"
)


def check(
    program: Program, result: Tree = _NOT_RUN, *, rtol: float = 1e-4, atol: float = 1e-6
) -> NumericCheck:
    """Compare the results of a program with its results on one device.

    `result` is what `program.run()` returned, if it already ran. The program on one device has a
    mesh with the same axis names, each of size 1. If the function cannot run on it (a mesh or a
    permutation is written into it), `ok` is None and `why` says the cause.
    """
    unsharded_program = unsharded(program)
    given = finished(program.run()) if result is _NOT_RUN else result
    return against(unsharded_program, given, rtol=rtol, atol=atol)


def unsharded(program: Program) -> Program | NumericCheck:
    """Return the program on one device, or why there is none to compare with."""
    try:
        with quiet_retrace():
            if not _same_constants(program.traced, program.request.trace()):
                return NumericCheck(None, why=_OTHER_CONSTANTS)
            return build(_on_one_device(program.request))
    # The function was not written for this mesh: it, JAX and XLA may raise anything.
    except Exception as error:  # noqa: BLE001
        return NumericCheck(None, why=_why(error))


def against(
    unsharded: Program | NumericCheck, given: Tree, *, rtol: float = 1e-4, atol: float = 1e-6
) -> NumericCheck:
    """Compare what a program gave with what the same program gives on one device."""
    if isinstance(unsharded, NumericCheck):
        return unsharded
    try:
        expected = finished(unsharded.run())
    # XLA, or a callback of the user's, may raise anything.
    except Exception as error:  # noqa: BLE001
        return NumericCheck(None, why=_why(error))
    return compare(given, expected, rtol=rtol, atol=atol)


def _same_constants(traced: Any, again: Any) -> bool:
    """Whether a function that is traced twice gives the same constants both times."""

    def constants(stage: Any) -> list[Any]:
        variables = (v for equation in equations(stage.jaxpr) for v in equation.invars)
        return [v.val for v in variables if is_literal(v)]

    some, other = constants(traced), constants(again)
    pairs = zip(some, other, strict=False)
    return len(some) == len(other) and all(_same(*pair) for pair in pairs)


def _same(some: Any, other: Any) -> bool:
    return some is other or np.array_equal(np.asarray(some), np.asarray(other), equal_nan=True)


def _on_one_device(request: Request) -> Request:
    def spec_of(placement: Any) -> Any:
        return getattr(placement, "spec", placement)

    mesh = request.mesh
    single = jax.sharding.Mesh(
        mesh.devices.reshape(-1)[:1].reshape((1,) * mesh.devices.ndim),
        mesh.axis_names,
        axis_types=mesh.axis_types,
    )
    return replace(
        request,
        grid=replace(request.grid, mesh=single),
        in_specs=jax.tree_util.tree_map(spec_of, request.shardings),
        out_specs=jax.tree_util.tree_map(spec_of, request.out_specs, is_leaf=is_spec),
        jit_options=_without_donations(request.jit_options),
    )


def _why(error: Exception) -> str:
    message = next((line for line in str(error).splitlines() if line.strip()), "")
    if DONATED.search(message):
        return "an input was donated, so it no longer holds data"
    return (
        "the function does not run on a mesh of one device with the same axis names, "
        f"which the comparison needs ({type(error).__name__}: {message})"
    )


def compare(given: Tree, expected: Tree, *, rtol: float = 1e-4, atol: float = 1e-6) -> NumericCheck:
    """Compare two pytrees with the same structure leaf by leaf, on the host."""
    leaves = jax.tree_util.tree_flatten_with_path(given)[0]
    others = jax.tree_util.tree_leaves(expected)
    results = tuple(
        _difference_of(result_name(path), leaf, other, rtol, atol)
        for (path, leaf), other in zip(leaves, others, strict=True)
    )
    return NumericCheck(all(result.ok for result in results), results)


def _difference_of(
    name: str, result: Any, expected: Any, rtol: float, atol: float
) -> ResultDifference:
    dtype, shape = str(result.dtype), tuple(result.shape)
    if not jnp.issubdtype(result.dtype, jnp.inexact):
        rtol, atol = 0.0, 0.0  # integers must be equal
    elif rtol:
        rtol = max(rtol, _EPSILONS * float(_finfo(result.dtype).eps))
    host = _on_host(expected)
    differences = _differences(_on_host(result), host)
    if not differences.size:
        return ResultDifference(name, dtype, shape, 0.0, 0.0, (), rtol, atol, ok=True)
    size = np.abs(_wide(host))
    scale = float(size[np.isfinite(size)].max(initial=0))
    at = np.unravel_index(int(np.argmax(differences)), differences.shape)
    most, index = float(differences[at]), tuple(int(i) for i in at[: len(shape)])
    ok = most <= atol + rtol * scale
    return ResultDifference(name, dtype, shape, most, scale, index, rtol, atol, ok)


def _on_host(array: Any) -> Any:
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.atleast_1d(np.asarray(array))


def _wide(host: Any) -> Any:
    return host.astype(np.complex128 if np.iscomplexobj(host) else np.float64)


def _differences(given: Any, expected: Any) -> Any:
    """Return the absolute differences; equal elements, NaN and infinity too, differ by 0."""
    wide, other = _wide(given), _wide(expected)
    same = (given == expected) | (np.isnan(wide) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        difference = np.abs(wide - other)
    difference[~same & np.isnan(difference)] = np.inf
    difference[~same & (difference == 0)] = 1  # integers too long for a float
    difference[same] = 0
    return difference
