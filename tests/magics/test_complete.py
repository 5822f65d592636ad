"""What Tab offers in the lines of the magics."""

from __future__ import annotations

import pytest

from shardnb.mesh import offered as offered_targets
from shardnb.mesh import target_name


@pytest.fixture
def offered(ip, run):
    run("%mesh data=4,model=2")
    run("x = np.ones(3)\nparams = {'w': x}\nnumber = 3")

    def offered(text):
        return [c.text for c in _completions(ip, text)]

    return offered


def _completions(ip, text):
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return list(ip.Completer.completions(text, len(text)))


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("%%shard --", ["--mesh", "--axes", "--no-run", "--watch", "--out", "--forbid"]),
        ("%%shard x=P() --no", ["--no-run"]),
        ("%shard f(x) --", ["--mesh", "--out"]),
        ("%mesh data=4 --", ["--axes", "--on", "--hardware"]),
        ("%%shard --axes ", ["auto", "explicit", "manual"]),
        ("%%shard --axes=e", ["explicit"]),
        ("%%shard --view b", ["brief"]),
        ("%%shard --on ", ["cpu", "attached", "v5e:2x4"]),
        ("%mesh data=4,model=2 --on v5e:2", ["v5e:2x2", "v5e:2x4"]),
        ("%mesh data=4,model=2 --on 2*v5e:", ["2*v5e:2x2", "2*v5e:16x16"]),
        ("%mesh data=4,model=2 --on 3*h", ["3*h100:8", "3*h200:8"]),
        ("%%shard --on ironwood", ["ironwood:2x2x1", "ironwood:4x4x4"]),
        ("%%shard --on 2*v7x:", ["2*v7x:2x2x2"]),
        ("%%shard --on v5litepod", ["v5litepod:2x4"]),
        ("%%shard --on v5e-", ["v5e-4", "v5e-256"]),
        ("%%shard --on v5p-1", ["v5p-16", "v5p-128"]),
        ("%%shard --on a100-", ["a100-40gb:8"]),
        ("%%shard --compare cpu,2*h100:4", ["2*h100:4x8"]),
        ("%%shard --hardware h100:", ["h100:8", "h100:4x8"]),
        ("%%shard --hardware h", ["h100", "h200"]),
        ("%mesh data=4 --hardware v5", ["v5e", "v5p"]),
        ("%%shard --forbid inferred,all-g", ["all-gather"]),
        ("%mesh data=4:", ["auto", "explicit", "manual"]),
        ("%mesh data=4:auto,model=2:m", ["manual"]),
        ("%%shard x=P('", ["data", "model"]),
        ("%%shard x=P('data', 'm", ["model"]),
        ("%%shard x=P(('data', 'm", ["model"]),
        ("%%shard --mesh rows=2 x=P('", ["rows"]),
        ("%%shard ", ["params=", "x="]),
        ("%%shard x=P() pa", ["params="]),
        ("%%shard x=", ["P(", "like(", "logical("]),
        ("%%shard params:/kernel/=l", ["like(", "logical("]),
        ("%%shard params['w']=", ["P("]),
        ("%%shard x=like(", ["params", "x"]),
        ("%%shard x=like(pa", ["params"]),
        ("%shard f(x) x=li", ["like("]),
    ],
)
def test_tab_offers(offered, text, has):
    assert set(has) <= set(offered(text))


def test_tab_offers_files_with_figures_of_hardware(offered, tmp_path, monkeypatch):
    for name in ("cluster.toml", "chip.json", "notes.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert offered("%mesh data=8 --hardware c") == ["chip.json", "cluster.toml"]
    assert set(offered(f"%%shard --hardware {tmp_path}/c")) == {
        f"{tmp_path}/chip.json",
        f"{tmp_path}/cluster.toml",
    }


@pytest.mark.parametrize("text", ["%%shard --on v5e:2", "%mesh data=8 --on 2*h100:4"])
def test_tab_offers_each_target_once(offered, text):
    names = offered(text)
    assert len(names) == len(set(names))


def test_what_tab_offers_by_other_names_is_a_target():
    for fragment in ("ironwood", "trillium", "v7x", "v5litepod", "v5e-", "v4-", "3*v6e-"):
        names = offered_targets(fragment)
        assert names
        assert all(target_name(name) for name in names)


def test_tab_offers_no_name_that_holds_no_array(offered):
    assert "number=" not in offered("%%shard ")


def test_the_line_magic_has_no_option_of_the_cell_magic(offered):
    assert "--watch" not in offered("%shard f(x) --")


@pytest.mark.parametrize("text", ["x = '%%shard --", "%%time --", "y = P('"])
def test_tab_leaves_other_lines_alone(offered, text):
    assert not {"--mesh", "data"} & set(offered(text))


@pytest.mark.parametrize("magic", ["%%shard", "%shard", "%mesh"])
def test_the_help_has_an_example_for_each_option(ip, magic):
    help_text = ip.inspector.info(ip.find_magic(magic.strip("%")))["docstring"]
    options = ("--axes", "--on") if magic == "%mesh" else (
        "--mesh", "--axes", "--on", "--no-run", "--watch", "--save", "--forbid", "--view", "--out"
    )  # fmt: skip
    for option in options:
        assert f"{option} " in help_text
