"""Words of JAX's errors: each is known in one place, and an error in other words is JAX's own."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from shardnb.errors import explain_error
from shardnb.errors.evidence import ErrorEvidence
from shardnb.jax_compat import error_wordings as wordings
from shardnb.jax_compat import frames
from shardnb.jax_compat.error_wordings import WORDINGS, Wording
from shardnb.jax_compat.tracing import full_tracebacks
from shardnb.mesh import make_grid
from shardnb.sources.source_texts import Sources

DUPLICATE = type("DuplicateSpecError", (Exception,), {})
CLASSES = (ValueError, TypeError, NameError, AssertionError, RuntimeError, DUPLICATE)
NAMES = {id(one): name for name, one in vars(wordings).items() if isinstance(one, Wording)}
by_name = {"ids": lambda wording: NAMES[id(wording)]}

# What an error is explained as, by its text alone: no frames, no source.
KINDS = {
    "FULL_SHAPE": (ValueError, "uneven"),
    "SHARD_MAP_UNEVEN": (ValueError, "uneven"),
    "AXIS_NOT_IN_MESH": (ValueError, "unknown-axis"),
    "AXIS_NOT_MANUAL": (ValueError, "unknown-axis"),
    "AXIS_TWICE": (DUPLICATE, "axis-twice"),
    "SPEC_TOO_LONG": (ValueError, "rank"),
    "SHARD_MAP_SPEC_TOO_LONG": (ValueError, "rank"),
    "MESH_TOO_LARGE": (ValueError, "devices-missing"),
    "TOO_LATE_FOR_DEVICES": (RuntimeError, "devices-missing"),
    "OTHER_DEVICES": (ValueError, "devices"),
    "CONSTRAINT_ASSERTS": (AssertionError, "constraint"),
    "OTHER_TYPE_THAN_IN_SPECS": (ValueError, "in-specs"),
    "SHARDINGS_DO_NOT_MEET": (ValueError, "other"),
    "NOT_REPLICATED": (ValueError, "missing-collective"),
    "CARRY_CHANGES_TYPE": (TypeError, "carry"),
    "BRANCHES_DIFFER": (TypeError, "branches"),
    "AXIS_UNBOUND": (NameError, "unbound-axis"),
    "NOT_VARYING": (ValueError, "not-varying"),
    "OTHER_UNREDUCED": (ValueError, "unreduced-spec"),
    "OTHER_MEMORY": (ValueError, "memory-kind"),
    "LOOP_OVER_SHARDED": (ValueError, "loop-over-sharded"),
    "BODY_UNDER_OUTER_MESH": (ValueError, "rewritten-body"),
    "OTHER_MESH_IN_SHARD_MAP": (ValueError, "devices"),
    "SHARDING_NOT_COMPILED": (RuntimeError, "custom-partitioning"),
}


@pytest.mark.parametrize("wording", WORDINGS, **by_name)
def test_a_wording_is_found_in_its_example_and_says_where_it_was_seen(wording):
    assert wording.search(wording.example)
    assert wording.seen


@pytest.mark.parametrize("name", KINDS)
def test_an_error_is_known_by_its_words(name):
    error, kind = KINDS[name]
    assert explain_error(error(getattr(wordings, name).example)).kind == kind


@pytest.mark.parametrize("name", KINDS)
def test_an_error_in_other_words_is_jaxs_own(name, monkeypatch):
    wording, (error, _) = getattr(wordings, name), KINDS[name]
    monkeypatch.setitem(vars(wording), "pattern", "in other words")
    assert explain_error(error(wording.example)) is None


@pytest.mark.parametrize("error", CLASSES)
@pytest.mark.parametrize("wording", WORDINGS, **by_name)
def test_no_words_in_any_error_are_a_bug(wording, error):
    explain_error(error(wording.example))


# What is read


def test_specs_are_read_as_jax_prints_them():
    for spec in (P(), P("a"), P(None, "a"), P(("a", "b"), None)):
        assert wordings.read_spec(str(spec).removeprefix("Partition")) == spec


def test_a_spec_is_read_out_of_a_type_as_jax_prints_it():
    grid = make_grid("data=4,model=2", axes="explicit")
    for spec in (P("data", None), P(None, "model"), P(("data", "model"), None)):
        sharding = NamedSharding(grid.mesh.abstract_mesh, spec)
        aval = jax.core.ShapedArray((64, 8), jnp.float32, sharding=sharding)
        assert wordings.spec_in_type(aval.str_short()) == spec


@pytest.mark.parametrize(
    ("kind", "axes"),
    [
        ("float32[2]{V:data}", {"data"}),
        ("float32[2]{V:(data,model)}", {"data", "model"}),
        ("f32[2]", set()),
    ],
)
def test_varying_axes_are_read_out_of_a_type(kind, axes):
    assert wordings.varying_in_type(kind) == axes


# Locals of JAX's functions


def frames_of(call):
    with pytest.raises(Exception) as caught, full_tracebacks():  # noqa: PT011 - each call has its own
        call()
    return ErrorEvidence(caught.value, Sources()).frames


def divided(mesh):
    jax.device_put(jnp.ones(3), NamedSharding(mesh, P("data")))


def mapped(mesh):
    jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(jnp.ones(3))


def replicated(mesh):
    jax.jit(jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P()))(jnp.ones(4))


def too_large(_mesh):
    jax.make_mesh((4096,), ("data",))


@pytest.mark.parametrize(
    ("places", "call"),
    [
        (frames.ARRAY_AND_SHARDING, divided),
        (frames.SHARD_MAP_ARGUMENTS, mapped),
        (frames.SHARD_MAP_BODY, replicated),
        (frames.MESH_AXIS_NAMES, too_large),
    ],
)
def test_the_locals_of_jaxs_functions_are_where_they_were_seen(places, call):
    stack = frames_of(lambda: call(make_grid("data=4").mesh))
    assert set(places.names) <= set(places.find(stack))
    named = [frame for frame in stack if frame.f_code.co_qualname.startswith(places.function)]
    assert any(set(places.names) <= set(frame.f_locals) for frame in named)


def test_locals_of_the_users_own_functions_are_not_jaxs():
    def users(axis_names):
        raise ValueError(axis_names)

    assert frames.MESH_AXIS_NAMES.find(frames_of(lambda: users(("data",)))) is None
