"""HLO, StableHLO and dumps that were truncated, edited or made to do harm: a report, or one clear error."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardnb as sn
from shardnb.compiler.dumps import Dumps
from shardnb.findings import report_of_text
from shardnb.findings.text_evidence import of_axes
from shardnb.mesh import parse_mesh
from tests.foreign import samples
from tests.foreign.conftest import MUTATIONS, soon
from tests.foreign.mutations import mutated
from tests.needs import needs_libtpu

MESH = "data=2,model=2"
randoms = st.randoms(use_true_random=True)


@pytest.fixture(autouse=True)
def at_most_a_gibibyte():
    """The memory of the process may grow by that much, and no more."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


def read(text: str, mesh: str | None) -> None:
    """Read a text, and show it where it is taken."""
    try:
        report = sn.explain_hlo(f"{text}\n", mesh)
    except sn.InvalidInput:
        return
    samples.look(report)


PROGRAMS = ["cpu", "before", "gpu", pytest.param("tpu", marks=needs_libtpu)]


@pytest.mark.parametrize("program", PROGRAMS)
@given(randoms, st.sampled_from([None, MESH, "x=4"]))
@MUTATIONS
def test_mutated_hlo_is_read_or_refused(program, random, mesh):
    with soon():
        read(mutated(samples.hlo_text(program), random), mesh)


@pytest.mark.parametrize("program", ["stablehlo", "manual"])
@given(randoms, st.sampled_from([None, MESH]))
@MUTATIONS
def test_mutated_stablehlo_is_read_or_refused(program, random, mesh):
    with soon():
        read(mutated(samples.mlir_texts()[program], random), mesh)


@given(randoms)
@MUTATIONS
def test_mutated_dumps_are_read_or_refused(random):
    dumps = dict(samples.folder())
    for name in random.sample(list(dumps), random.choice((1, 1, 2))):
        # Files are read as UTF-8, which has no half of a surrogate pair.
        dumps[name] = mutated(dumps[name], random).encode("utf-8", "replace").decode()
    with soon(), suppress(sn.InvalidInput):
        report = report_of_text(dumps["optimized"], of_axes(axes()), dumps=Dumps(**dumps))
        samples.look(report)


@cache
def axes():
    return parse_mesh(MESH).axes


@pytest.mark.parametrize("program", ["cpu", "before", "gpu"])
def test_the_text_itself_is_read(program):
    samples.look(sn.explain_hlo(samples.hlo_text(program), MESH))


DUMP = """\
HloModule step, num_partitions=4

ENTRY main {
  x = f32[8,16]{1,0} parameter(0)
  t = (f32[8,16]{1,0}, f32[]) tuple(x)
  ROOT sum = f32[8,16]{1,0} all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add
}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{{0,1},{2,3}}", "[1000000,1000]<=[1000000000]", "at most 4 devices, got 1,000,000,000"),
        ("{{0,1},{2,3}}", "[2,2]<=[2,2]T(1,1)", "expected an order of devices"),
        ("{{0,1},{2,3}}", "{{0,1},{2,4}}", "at most 4 devices, got 5"),
        ("{{0,1},{2,3}}", "mesh['a'=4] {'b'}", "expected one of the axes a, got 'b'"),
        ("num_partitions=4", "num_partitions=0", "header of step: expected 1 to .* devices, got 0"),
        ("=4", "=4, replica_count=999999999", "devices, got 3,999,999,996"),
        ("f32[8,16]{1,0} par", "f32[8,9999999999999999999]{1,0} par", "less than 2.62 bytes"),
        ("f32[8,16]{1,0} par", "f32[8,16 par", "expected a shape such as"),
        (
            "all-reduce(x)",
            "all-reduce(sum)",
            "instruction sum: expected operands that stand before",
        ),
        ("tuple(x)", "get-tuple-element(x), index=1", "expected element 1 of x"),
        ("parameter(0)", "parameter(zero)", "expected a parameter's own number, got 'zero'"),
        ("t = ", "x = ", "instruction x: expected a name that is not taken"),
        ("tuple(x)", "call(x), to_apply=main", "computation main: expected no calls of itself"),
        ("tuple(x)", "tuple(x", None),
        ("all-reduce(x)", "all-reduce()", "expected 1 operands of all-reduce, got 0"),
        ("8,16", "8" * 2000, "got a number of 2,000 digits"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(old, new, message):
    assert old in DUMP
    text = DUMP.replace(old, new, 1)
    if message is None:
        samples.look(sn.explain_hlo(text))
        return
    with pytest.raises(sn.InvalidInput, match=message):
        sn.explain_hlo(text)


def test_the_largest_mesh_stays_small():
    text = DUMP.replace("=4", "=262144").replace("{{0,1},{2,3}}", "[131072,2]<=[262144]")
    samples.look(sn.explain_hlo(text))


@pytest.mark.parametrize("piece", ["tuple<", "[", "(", "{"])
def test_deep_nesting_is_refused_before_it_ends_the_process(piece):
    text = f"module {{\n  func.func @main() {piece * 100_000}\n}}\n"
    with pytest.raises(sn.InvalidInput, match="line 2: expected at most 500 brackets"):
        sn.explain_hlo(text)


def test_a_long_chain_of_barriers_is_followed():
    chain = "".join(f"  b{i} = f32[8]{{0}} opt-barrier(b{i - 1})\n" for i in range(1, 5000))
    text = (
        "HloModule step, num_partitions=4\n\nENTRY main {\n  b0 = f32[8]{0} parameter(0)\n"
        f"{chain}  ROOT sum = f32[8]{{0}} all-reduce(b4999), replica_groups={{{{0,1}}}}\n}}\n"
    )
    assert len(sn.explain_hlo(text, mesh="data=4").collectives) == 1


def named(file: str) -> str:
    """Return a text that says of its collective that it stands in a file."""
    metadata = f'metadata={{op_name="a" source_file="{file}" source_line=1}}'
    return DUMP.replace("to_apply=add", f"to_apply=add, {metadata}")


def test_a_file_that_a_text_names_is_not_quoted(tmp_path):
    file = tmp_path / "private.py"
    file.write_text("secret = 7\n")
    (source,) = sn.explain_hlo(named(file)).sources
    assert (source.name, source.text) == ("private.py", "")
    for allowed in (file, tmp_path):
        (source,) = sn.explain_hlo(named(file), sources=[allowed]).sources
        assert source.text == "secret = 7\n"


def test_a_module_of_this_session_is_quoted():
    (source,) = sn.explain_hlo(named(__file__)).sources
    assert source.text.startswith('"""HLO, StableHLO and dumps')


def test_a_link_out_of_an_allowed_folder_is_not_followed(tmp_path):
    (tmp_path / "private.py").write_text("secret = 7\n")
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "link.py").symlink_to(tmp_path / "private.py")
    (source,) = sn.explain_hlo(named(allowed / "link.py"), sources=[allowed]).sources
    assert source.text == ""


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (source,) = sn.explain_hlo(named(tmp_path / "pipe"), sources=[tmp_path]).sources
    assert source.text == ""
    with pytest.raises(sn.InvalidInput, match="pipe: expected a file"):
        sn.explain_hlo(tmp_path / "pipe")


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 300, "x" * 5000, "/etc/passwd/x"])
def test_what_can_be_no_path_is_refused(path):
    with pytest.raises(sn.InvalidInput):
        sn.explain_hlo(path)
