"""The vocabularies: a row for each member, and JAX's own primitives are all among them."""

from __future__ import annotations

import importlib
import pkgutil
from typing import get_args

import pytest
from jax._src import core
from jax._src.lax import parallel

from shardnb import terms
from shardnb.terms.collectives import kind_of
from shardnb.terms.primitives import FUNCTIONS, PRIMITIVES, primitive_of
from shardnb.terms.roles import ROLES
from shardnb.terms.tables import TABLES

MODULES = [
    importlib.import_module(f"shardnb.terms.{found.name}")
    for found in pkgutil.iter_modules(terms.__path__)
]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_a_row_for_each_member(name):
    literal = next(getattr(module, name) for module in MODULES if hasattr(module, name))
    rows = TABLES[name]
    assert tuple(rows) == get_args(literal)
    assert [row.name for row in rows.values()] == list(rows)


@pytest.mark.parametrize("name", TABLES)
def test_no_two_rows_read_alike(name):
    prose = [row.prose for row in TABLES[name].values() if hasattr(row, "prose")]
    assert all(prose)
    assert len(set(prose)) == len(prose)


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("all-reduce", "all-reduce"),
        ("ragged-all-to-all", "ragged-all-to-all"),
        ("collective-broadcast-start", "collective-broadcast"),
        ("all-reduce-done", None),
        ("reduce", None),
        ("", None),
    ],
)
def test_the_kind_of_an_opcode(opcode, kind):
    assert kind_of(opcode) == kind


def test_every_primitive_of_jax_over_mesh_axes_is_known():
    """The second step of one that is done in two takes what the first gave, and names no axis."""
    known = [one.name for one in vars(parallel).values() if isinstance(one, core.Primitive)]
    known += [core.pvary_p.name, core.reduced_vary_cast_p.name]
    first = [name for name in known if not name.endswith("_done")]
    assert len(first) > 20
    assert [name for name in first if primitive_of(name) is None] == []


def test_primitives_that_are_collectives():
    called = {name for name, row in PRIMITIVES.items() if row.kind is not None}
    assert called == {
        *("psum", "psum_invariant", "unreduced_psum", "pmax", "unreduced_pmax"),
        *("pmin", "unreduced_pmin", "all_gather", "all_gather_invariant", "all_gather_reduced"),
        *("reduce_scatter", "unreduced_reduce_scatter", "all_to_all", "ragged_all_to_all"),
        *("ppermute", "pbroadcast", "pbroadcast_dynamic"),
    }


def test_functions_that_give_all_devices_one_result():
    assert {name for name, row in FUNCTIONS.items() if row.reduces} == {
        *("psum", "pmean", "pmax", "pmin")
    }


@pytest.mark.parametrize("row", ROLES.values(), ids=ROLES)
def test_a_role_names_what_it_is_about_where_that_is_known(row):
    assert "params['w']" in row.of("params['w']")
    assert "{" not in row.of("params['w']") + row.of("")
