"""Traces of TPU and GPU, by hand: what is measured follows from the times that are written there."""

import json

import pytest

import shardnb as sn
from shardnb.profiles import xplane
from shardnb.profiles.messages import HloModuleProto
from shardnb.views import live
from tests.profiles.traces import STEP, gpu, metadata, serialized, space, tpu

US = 1e-6


def write(folder, content, host="host"):
    file = folder / f"{host}.xplane.pb"
    file.write_bytes(content)
    return file


def shifted(events, by):
    return [(name, start + by, end + by) for name, start, end in events]


def words(report):
    return " ".join(str(report).split())


# On device 0 the product takes 30 us and the all-gather 20, on device 1 they take 20 and 10.
FIRST = [("ar-start", 0, 1), ("product", 1, 31), ("ar-done", 31, 41), ("gathered", 41, 61)]
SECOND = [("ar-start", 0, 1), ("product", 1, 21), ("ar-done", 21, 41), ("gathered", 41, 51)]


def tpus(first=FIRST, second=SECOND, program=77, **lines):
    """Two TPUs that run the program twice."""
    return [
        tpu(
            number,
            {
                "XLA Modules": [
                    (f"jit_step({program})", 0, 70),
                    (f"jit_step({program})", 100, 170),
                ],
                "XLA Ops": [
                    (f"%{name} = f32[1024]{{0}} op(%p)", start, end)
                    for name, start, end in (*events, *shifted(events, 100))
                ],
                **{name.replace("_", " "): events for name, events in lines.items()},
            },
        )
        for number, events in enumerate((first, second))
    ]


def only_report(path, **options):
    (report,) = sn.read_profile(path, **options).reports
    return report


def test_a_tpus_collectives_have_their_measured_time(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    report = only_report(tmp_path, mesh="data=2")
    by_kind = {c.kind: c for c in report.collectives}
    assert [c.axes for c in report.collectives] == [("data",), ("data",)]
    reduced, gathered = by_kind["all-reduce"].measured, by_kind["all-gather"].measured
    # From the start to the end of its wait, 41 us on both; 30 and 20 us of it are the product's.
    assert reduced.seconds == pytest.approx(41 * US)
    assert reduced.waiting == pytest.approx(0, abs=1e-9)
    assert reduced.hidden == pytest.approx((30 + 20) / 82)
    assert gathered.seconds == pytest.approx(10 * US)
    assert gathered.waiting == pytest.approx(10 * US)
    assert gathered.hidden == 0
    assert reduced.executions == gathered.executions == 1
    # Both devices waited for the end of the all-reduce.
    assert not reduced.at_most


def test_a_tpus_run_has_its_time_and_its_exposed_communication(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    profile = only_report(tmp_path).profile
    assert (profile.runs, profile.devices, profile.hosts) == (2, 2, 1)
    assert (profile.platform, profile.kind) == ("tpu", "TPU v5 lite")
    assert profile.step_seconds == pytest.approx(61 * US)
    # 61 and 51 us under way, of which 30 and 20 are hidden.
    assert profile.communication_seconds == pytest.approx(56 * US)
    assert profile.exposed_seconds == pytest.approx(31 * US)
    assert profile.unmeasured == 0


def test_an_asynchronous_collective_is_measured_on_its_own_line(tmp_path):
    beside = {"Async_XLA_Ops": [("%ar-start", 0, 26), ("%ar-start", 100, 126)]}
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus(**beside)))
    measured = {c.kind: c.measured for c in only_report(tmp_path).collectives}["all-reduce"]
    assert measured.seconds == pytest.approx(26 * US)
    # The product is at work for 25 and for 20 of them.
    assert measured.hidden == pytest.approx(45 / 52)


def test_a_collective_that_nobody_waited_for_took_at_most_its_span(tmp_path):
    """The wait after the product is over at once, so the transfer ended some time before."""
    early = [("ar-start", 0, 1), ("product", 1, 40), ("ar-done", 40, 41), ("gathered", 41, 61)]
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus(early, early)))
    report = only_report(tmp_path, mesh="data=2").on_hardware("v5e:1x2")
    measured = {c.kind: c.measured for c in report.collectives}
    assert measured["all-reduce"].at_most
    assert measured["all-reduce"].seconds == pytest.approx(41 * US)
    assert not measured["all-gather"].at_most
    gathered = next(c for c in report.collectives if c.kind == "all-gather")
    off = f"{20 * US / gathered.seconds:.2g} times their estimate"
    assert f"the collectives whose time is known take {off}" in words(report)
    assert "at most 41.0 us" in words(report)


def test_a_timeline_shows_one_run_of_each_device_at_its_position(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP, (1, 0))}), *tpus()))
    report = only_report(tmp_path)
    assert report.mesh.device_ids == (1, 0)
    first, second = report.profile.timeline
    assert (first.name, first.position) == ("TPU 0", 1)
    assert (second.name, second.position) == ("TPU 1", 0)
    assert first.computing == pytest.approx((1 * US, 31 * US))
    assert first.communicating == pytest.approx((0, 41 * US, 41 * US, 61 * US))
    kinds = {c.id: c.kind for c in report.collectives}
    assert [kinds[number] for number in first.ids] == ["all-reduce", "all-gather"]


def test_the_files_of_several_hosts_are_read_together(tmp_path):
    # The same program has another id on each host.
    for host, program in (("host-a", 77), ("host-b", 78)):
        planes = tpus(program=program)
        write(tmp_path, space(metadata({program: serialized(STEP)}), *planes, host=host), host)
    report = only_report(tmp_path)
    assert (report.profile.hosts, report.profile.devices) == (2, 4)
    assert [line.name for line in report.profile.timeline] == [
        "host-a TPU 0",
        "host-a TPU 1",
        "host-b TPU 0",
        "host-b TPU 1",
    ]
    # Which host has which devices of the mesh is not known.
    assert {line.position for line in report.profile.timeline} == {None}
    assert "Each host's timeline is by its own clock" in live.said_of(report).timeline


def test_programs_come_in_the_order_of_the_time_that_they_took(tmp_path):
    slow, fast = serialized(STEP.replace("jit_step", "jit_slow")), serialized(STEP)
    plane = tpu(
        0,
        {
            "XLA Modules": [("jit_step(1)", 0, 10), ("jit_slow(2)", 20, 90)],
            "XLA Ops": [("%gathered", 0, 10), ("%gathered", 20, 90)],
        },
    )
    write(tmp_path, space(metadata({1: fast, 2: slow}), plane))
    reports = sn.read_profile(tmp_path).reports
    assert [report.title for report in reports] == ["jit_slow", "jit_step"]
    gathers = [c.measured for r in reports for c in r.collectives if c.kind == "all-gather"]
    assert [g.seconds for g in gathers] == pytest.approx([70 * US, 10 * US])
    # An all-reduce without an event is not measured, and the report says so.
    assert [report.profile.unmeasured for report in reports] == [1, 1]
    assert "no event of 1 collective" in str(reports[0])
    assert "not measured" in str(reports[0])


def test_rows_come_slowest_first(tmp_path):
    quick = [("ar-start", 0, 1), ("product", 1, 2), ("ar-done", 2, 3), ("gathered", 3, 61)]
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus(quick, quick)))
    text = str(only_report(tmp_path))
    assert text.index("\nall-gather") < text.index("\nall-reduce")
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    text = str(only_report(tmp_path))
    assert text.index("\nall-reduce") < text.index("\nall-gather")


def test_the_report_says_by_which_factor_the_formula_was_off(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    report = only_report(tmp_path, mesh="data=2").on_hardware("v5e:1x2")
    estimated = sum(c.seconds for c in report.collectives)
    assert f"take {51 * US / estimated:.2g} times their estimate for TPU v5e" in words(report)
    # On other hardware than was measured, it says nothing.
    assert "times" not in str(report.on_hardware("h100")).partition("What is sent")[0]


def test_a_gpus_estimate_is_for_what_the_reader_says_it_is(tmp_path):
    streams = {"Stream #1": FIRST[1:2], "Stream #2": [("ar-start", 0, 41), FIRST[3]]}
    planes = [gpu(number, streams, 5) for number in range(2)]
    write(tmp_path, space(metadata({5: serialized(STEP)}), *planes))
    report = only_report(tmp_path, mesh="data=2")
    assert "estimate" not in words(report).partition("What is sent")[0]
    priced = report.on_hardware("h100:2")
    estimated = sum(c.seconds for c in priced.collectives)
    assert f"take {61 * US / estimated:.2g} times their estimate for " in words(priced)


def test_a_gpus_runs_begin_with_the_first_operation_of_the_program(tmp_path):
    """Its kernels do not say their run; the trace begins in the middle of one."""
    compute = [("product", 1, 31)]
    sent = [("ar-start", 0, 35), ("gathered", 36, 56)]
    streams = {
        "Stream #13(Compute)": [*compute, *shifted(compute, 100)],
        "Stream #20": [("gathered", -9, -1), *sent, *shifted(sent, 100)],
    }
    streams = {name: shifted(events, 10) for name, events in streams.items()}
    planes = [gpu(number, streams, 5) for number in range(2)]
    write(tmp_path, space(metadata({5: serialized(STEP)}), *planes))
    report = only_report(tmp_path)
    assert (report.profile.runs, report.profile.platform) == (2, "gpu")
    assert report.profile.step_seconds == pytest.approx(56 * US)
    measured = {c.kind: c.measured for c in report.collectives}
    assert measured["all-reduce"].seconds == pytest.approx(35 * US)
    assert measured["all-reduce"].hidden == pytest.approx(30 / 35)
    assert measured["all-gather"].seconds == pytest.approx(20 * US)


def test_without_pairs_of_runs_waiting_is_not_known(tmp_path):
    """One device has the program once less: its trace began later."""
    late = tpu(1, {"XLA Modules": [("jit_step(77)", 0, 70)], "XLA Ops": SECOND})
    write(tmp_path, space(metadata({77: serialized(STEP)}), tpus()[0], late))
    report = only_report(tmp_path)
    gathered = {c.kind: c.measured for c in report.collectives}["all-gather"]
    assert (gathered.seconds, gathered.waiting) == (pytest.approx(10 * US), None)
    assert report.profile.runs == 1


def test_a_report_with_measurements_is_kept_as_json(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    report = only_report(tmp_path)
    kept = sn.Report.from_json(report.to_json())
    assert kept.profile == report.profile
    assert [c.measured for c in kept.collectives] == [c.measured for c in report.collectives]


LARGE = 2**63 + 77
BY_STAT = metadata({LARGE: serialized(STEP)})
BY_KEY = BY_STAT.replace(f"stats {{ metadata_id: 2 uint64_value: {LARGE} }}", "").replace(
    "key: 1 value { id: 1", f"key: {LARGE - 2**64} value {{ id: {LARGE - 2**64}", 1
)
"""As XLA writes it: the id is the number of the metadata, which is signed."""


@pytest.mark.parametrize("programs", [BY_STAT, BY_KEY], ids=["stat", "key"])
def test_the_id_of_a_program_may_take_64_bits(tmp_path, programs):
    """XLA's ids are unsigned; beside this program one with a small id runs."""
    other = [("jit_other(5)", 200, 210)]
    modules = [(f"jit_step({LARGE})", 0, 70), (f"jit_step({LARGE})", 100, 170), *other]
    of_tpu = tpu(0, {"XLA Modules": modules, "XLA Ops": [*FIRST, *shifted(FIRST, 100)]})
    of_gpu = gpu(0, {"Stream #1": [*FIRST, *shifted(FIRST, 100)]}, LARGE)
    for plane in (of_tpu, of_gpu):
        write(tmp_path, space(programs, plane))
        assert only_report(tmp_path).profile.runs == 2


# Damaged and foreign files


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no operation"),
        (b"hello world, this is text", "expected the protocol buffer of an XSpace"),
        (b"\x0a\xff\xff\xff\x7fabc", "expected the protocol buffer of an XSpace"),
        (space(metadata({77: serialized(STEP)})), "no operation of a compiled program"),
        (space(*tpus()), "none of the programs that ran"),
    ],
)
def test_what_is_not_a_trace_gets_an_error_that_names_it(tmp_path, content, said):
    file = write(tmp_path, content)
    with pytest.raises(sn.InvalidInput, match=said) as raised:
        sn.read_profile(file)
    assert str(raised.value).startswith(str(file))


def test_a_trace_that_is_cut_off_is_refused_or_read_at_every_byte(tmp_path):
    whole = space(metadata({77: serialized(STEP)}), *tpus())
    for size in range(0, len(whole), 97):
        file = write(tmp_path, whole[:size])
        with pytest.raises(sn.InvalidInput):
            sn.read_profile(file)


def test_a_program_that_xla_cannot_read_is_refused(tmp_path):
    proto = HloModuleProto(name="jit_x").SerializeToString() + b"\x1a\x03abc"
    file = write(tmp_path, space(metadata({77: proto}), *tpus()))
    with pytest.raises(sn.InvalidInput, match="XLA cannot read this program"):
        sn.read_profile(file)


def test_a_folder_without_a_trace_says_what_is_expected(tmp_path):
    with pytest.raises(sn.InvalidInput, match=r"a file \*\.xplane\.pb, or a folder"):
        sn.read_profile(tmp_path)
    with pytest.raises(sn.InvalidInput, match="there is no such file or folder"):
        sn.read_profile(tmp_path / "nothing")


def test_of_several_sessions_the_newest_is_read_and_the_report_says_so(tmp_path):
    for name, program in (("2026_01_01_00_00_00", "jit_old"), ("2026_01_02_00_00_00", "jit_new")):
        folder = tmp_path / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        proto = serialized(STEP.replace("jit_step", program))
        write(folder, space(metadata({77: proto}), *tpus()))
    report = only_report(tmp_path)
    assert report.title == "jit_new"
    assert "the folder has 1 more trace: this is 2026_01_02_00_00_00" in report.notes


def test_a_mesh_of_another_size_is_refused(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    with pytest.raises(sn.InvalidInput, match="none of its programs is for 4 devices"):
        sn.read_profile(tmp_path, "data=4")


def test_a_name_chooses_programs(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    assert sn.read_profile(tmp_path, only="step").reports
    with pytest.raises(sn.InvalidInput, match="none of the programs is named train"):
        sn.read_profile(tmp_path, only="train")
    with pytest.raises(sn.InvalidInput, match="at least 1 program"):
        sn.read_profile(tmp_path, first=0)


def test_long_lines_are_read_in_parts(tmp_path, monkeypatch):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    at_once = only_report(tmp_path)
    monkeypatch.setattr(xplane, "_PART", 50)  # some three events
    in_parts = only_report(tmp_path)
    assert in_parts.profile == at_once.profile
    assert [c.measured for c in in_parts.collectives] == [c.measured for c in at_once.collectives]


def test_a_timeline_stays_small(tmp_path):
    """Gaps that no screen shows are closed: of 3,000 operations one span is left."""
    many = [("product", at, at + 0.99) for at in range(3000)]
    plane = tpu(0, {"XLA Modules": [("jit_step(77)", 0, 3000)], "XLA Ops": many})
    write(tmp_path, space(metadata({77: serialized(STEP)}), plane))
    (line,) = only_report(tmp_path).profile.timeline
    assert line.computing == pytest.approx((0, 2999.99 * US))


def test_the_live_view_gets_seconds_and_bytes_to_sort_by(tmp_path):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    report = only_report(tmp_path)
    said = live.said_of(report)
    assert [row.seconds for row in said.rows] == pytest.approx([41 * US, 10 * US])
    assert [row.bytes for row in said.rows] == [4096, 4096]
    assert said.timeline == "One run of 61.0 us."
    assert "one execution takes 41.0 us" in said.collectives["measured"].texts[0]


def test_a_collective_of_a_branch_counts_as_often_as_it_ran(tmp_path):
    """The second run did not take the branch of the all-gather."""
    modules = [("jit_step(77)", 0, 70), ("jit_step(77)", 100, 170)]
    plane = tpu(0, {"XLA Modules": modules, "XLA Ops": [*FIRST, *shifted(FIRST[:3], 100)]})
    write(tmp_path, space(metadata({77: serialized(STEP)}), plane))
    gathered = {c.kind: c.measured for c in only_report(tmp_path).collectives}["all-gather"]
    assert gathered.executions == 0.5
    assert gathered.seconds_per_run == pytest.approx(10 * US)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"computing": [0.0]}, "a start and an end of each span"),
        ({"ids": [0]}, "a start and an end of each span"),
        ({"ids": [0, 7]}, "collectives of the report"),
        ({"position": 2}, "positions of 2 devices"),
        ({"communicating": [0.0, 1.0, 2.0, -1.0]}, "a number from 0 for communicating"),
    ],
)
def test_a_saved_timeline_that_cannot_be_is_refused(tmp_path, change, said):
    write(tmp_path, space(metadata({77: serialized(STEP)}), *tpus()))
    data = json.loads(only_report(tmp_path).to_json())
    data["profile"]["timeline"][0].update(change)
    with pytest.raises(sn.InvalidInput, match=said):
        sn.Report.from_json(json.dumps(data))
