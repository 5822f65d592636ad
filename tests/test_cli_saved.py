"""`shardnb read` and `shardnb diff`: dumps and saved reports."""

from __future__ import annotations

import io
import json

import pytest

from shardnb import Report, cli

DUMP = """HloModule step, num_partitions=8

ENTRY %main {
  %x = f32[64,1024]{1,0} parameter(0)
  ROOT %r = f32[64,1024]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=%add
}
"""


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "dump.txt"
    path.write_text(DUMP)
    return path


@pytest.fixture
def saved(dump, tmp_path, capsys):
    """Two saved reports: an all-reduce, and an all-gather in its place."""
    paths = []
    for name, text in (("a", DUMP), ("b", DUMP.replace("all-reduce(", "all-gather("))):
        dump.write_text(text)
        assert cli.main(["read", str(dump), "--mesh", "data=4,model=2", "--json"]) == 0
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(capsys.readouterr().out)
    return paths


def complaint(capsys, *argv):
    """Run bad input; gives the one line that it was answered with."""
    assert cli.main([str(word) for word in argv]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_read_prints_the_report_of_a_dump(dump, capsys):
    assert cli.main(["read", str(dump), "--mesh", "data=4,model=2"]) == 0
    assert "all-reduce[model]" in capsys.readouterr().out


def test_read_prices_a_dump(dump, capsys):
    argv = ["read", str(dump), "--mesh", "data=4,model=2", "--json", "--hardware", "h100"]
    assert cli.main(argv) == 0
    assert Report.from_json(capsys.readouterr().out).cost.communication_seconds > 0


def test_read_takes_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(DUMP))
    assert cli.main(["read", "-"]) == 0
    assert "all-reduce[4 groups of 2]" in capsys.readouterr().out


def test_read_gives_json_and_a_page(dump, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert cli.main(["read", str(dump), "--json", "--html", str(page)]) == 0
    (found,) = Report.from_json(capsys.readouterr().out).collectives
    assert (found.kind, found.bytes) == ("all-reduce", 64 * 1024 * 4)
    assert "all-reduce" in page.read_text()


def test_what_a_dump_may_not_have_gives_status_1(dump, capsys):
    assert cli.main(["read", str(dump), "--forbid", "all-reduce"]) == 1
    assert "all-reduce[] (asker unknown) in step is forbidden" in capsys.readouterr().err
    assert cli.main(["read", str(dump), "--forbid", "all-gather"]) == 0


def test_bad_dumps_are_answered_with_one_line(dump, tmp_path, capsys):
    assert "nothing.txt: there is no such file" in complaint(capsys, "read", "nothing.txt")
    assert "the mesh has 4: data=4" in complaint(capsys, "read", dump, "--mesh", "data=4")
    assert "is not a mesh axis" in complaint(capsys, "read", dump, "--mesh", "data")
    dump.write_text(DUMP[:-10])
    assert "truncated" in complaint(capsys, "read", dump)
    dump.write_bytes(b"\xff\x00")
    assert "xla_dump_hlo_as_text" in complaint(capsys, "read", dump)


def test_diff_tells_what_changed(saved, capsys):
    assert cli.main(["diff", *map(str, saved)]) == 0
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "- all-reduce[model] f32[64, 1024] x1" in said
    assert "+ all-gather[model] f32[64, 1024] x1" in said


def test_diff_of_a_report_with_itself_is_empty(saved, capsys):
    assert cli.main(["diff", str(saved[0]), str(saved[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"] == []


def test_diff_gives_json_and_a_page(saved, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert cli.main(["diff", *map(str, saved), "--json", "--html", str(page)]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    # 64 x 1024 floats on 2 devices: an all-reduce sends them once, an all-gather the half.
    assert {"name": "bytes sent per device", "before": "262144", "after": "131072"} in changes
    assert "Each device sends 128 KiB instead of 256 KiB per run" in page.read_text()


def test_diff_judges_the_second_report(saved, capsys):
    before, after = map(str, saved)
    assert cli.main(["diff", before, after, "--forbid", "all-reduce"]) == 0
    assert cli.main(["diff", before, after, "--forbid", "all-gather"]) == 1
    assert "all-gather[model] (asker unknown) in step is forbidden" in capsys.readouterr().err


def test_bad_reports_are_answered_with_one_line(saved, tmp_path, capsys):
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert "not the JSON of a report" in complaint(capsys, "diff", saved[0], broken)
    assert "cannot be read" in complaint(capsys, "diff", saved[0], tmp_path / "none.json")
    broken.write_text('{"version": 99}')
    assert "update shardnb" in complaint(capsys, "diff", broken, saved[0])


def test_diff_writes_markdown_for_a_pull_request(saved, capsys):
    assert cli.main(["diff", *map(str, saved), "--markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("### `step` on data=4,model=2\n")
    assert "- **-1 all-reduce\\[model\\]** 256 KiB per run" in text
    assert "- **+1 all-gather\\[model\\]**" in text


def test_diff_pairs_the_programs_of_two_runs(saved, tmp_path, capsys):
    first, second = (path.read_text() for path in saved)
    both = tmp_path / "both.json"
    both.write_text(f"[{first}, {first.replace('"step"', '"other"')}]")
    one = tmp_path / "one.json"
    one.write_text(f"[{second}]")
    assert cli.main(["diff", str(both), str(one)]) == 0
    text = capsys.readouterr().out
    assert "all-gather" in text
    assert "other: only in the first file" in text
    assert cli.main(["diff", str(both), str(one), "--markdown"]) == 0
    text = capsys.readouterr().out
    assert text.count("### ") == 2
    assert "This program is gone." in text
    assert cli.main(["diff", str(both), str(one), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
