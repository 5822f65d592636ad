"""Two hosts: bytes worked out by hand.

Two weights of 256 x 1024 floats, sharded over the 4 devices of each host: 256 KiB per device.
"""

NOTEBOOK = "20_several_hosts.ipynb"
KIB = 1024


def test_the_forward_pass_sends_within_each_host_only(notebook):
    report = notebook.report("forward")
    assert report.mesh.hosts == (0, 0, 0, 0, 1, 1, 1, 1)
    # Partial sums of 32 x 256 floats over 4 devices: 2 x 32 KiB x 3/4.
    assert [(c.axes, c.wire_bytes) for c in report.collectives] == [(("model",), 48 * KIB)]
    assert not any("between hosts" in note for note in report.notes)


def test_the_gradients_go_to_the_other_host(notebook):
    over_data = [c.wire_bytes for c in notebook.report("step").collectives if c.axes == ("data",)]
    assert sorted(over_data) == [4, 256 * KIB, 256 * KIB]
    assert notebook.printed("between") == "data: 512 KiB between hosts per run\n"


def test_values_are_fetched(notebook):
    # tanh of a sum of 256 ones / 256, and a sum of 1024 of it / 1024.
    assert notebook.printed("fetched").count("0.761594") == 6


def test_a_cell_that_differs_is_refused(notebook):
    (refusal,) = notebook.cells["differs"]["outputs"]
    assert "host 0 and host 1 compiled different programs" in refusal["text"]
