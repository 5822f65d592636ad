"""Sends between devices are collectives, whatever HLO calls them."""

from __future__ import annotations

import pytest

import shardnb as sn

PIPELINE = """HloModule pipeline, is_scheduled=true, num_partitions=4

ENTRY %main (p: f32[64,64]) -> f32[64,64] {
  %p = f32[64,64]{1,0} parameter(0)
  %t = token[] after-all()
  %recv = (f32[64,64]{1,0}, u32[], token[]) recv(%t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3}}}
  %send = (f32[64,64]{1,0}, u32[], token[]) send(%p, %t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3}}}
  %recv-done = (f32[64,64]{1,0}, token[]) recv-done(%recv), channel_id=1
  %send-done = token[] send-done(%send), channel_id=1
  ROOT %r = f32[64,64]{1,0} get-tuple-element(%recv-done), index=0
}
"""

ATTRIBUTES = (
    '_xla_host_transfer_handler_name="xla_megascale_runtime",'
    '_xla_host_transfer_rendezvous="all-reduce.1_0",_xla_megascale_reduce_operation="SUM"'
)
SLICES = f"""HloModule jit_step, is_scheduled=true, num_partitions=8

ENTRY %main (p: f32[128,512]) -> f32[128,512] {{
  %p = f32[128,512]{{1,0}} parameter(0)
  %t = token[] after-all()
  %send = (f32[128,512]{{1,0}}, u32[], token[]) send(%p, %t), channel_id=2, is_host_transfer=true, frontend_attributes={{{ATTRIBUTES}}}
  %send-done = token[] send-done(%send), channel_id=2, is_host_transfer=true
  %recv = (f32[128,512]{{1,0}}, u32[], token[]) recv(%t), channel_id=1, is_host_transfer=true, frontend_attributes={{{ATTRIBUTES}}}
  %recv-done = (f32[128,512]{{1,0}}, token[]) recv-done(%recv), channel_id=1, is_host_transfer=true
  ROOT %r = f32[128,512]{{1,0}} get-tuple-element(%recv-done), index=0
}}
"""


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_send_with_its_receive_is_one_permute(quote):
    """64 x 64 numbers of 4 bytes."""
    pairs = "{{0,1},{1,2},{2,3}}"
    text = PIPELINE.replace(f"pairs={pairs}", f"pairs={quote}{pairs}{quote}")
    (sent,) = sn.explain_hlo(text, mesh="data=4").collectives
    assert (sent.kind, sent.axes, sent.wire_bytes) == ("collective-permute", ("data",), 16384)
    assert sent.groups == ((0, 1), (1, 2), (2, 3))
    assert (sent.asked_by, sent.generated, sent.algorithm) == (None, None, "send and recv")


def test_a_send_without_its_pairs_has_no_axes():
    text = PIPELINE.replace("_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3}}", "")
    (sent,) = sn.explain_hlo(text, mesh="data=4").collectives
    assert (sent.kind, sent.axes, sent.groups) == ("collective-permute", None, ())


def test_an_all_reduce_over_slices_is_a_transfer_over_hosts():
    """128 x 512 numbers of 4 bytes are sent to the host, and as many come back."""
    report = sn.explain_hlo(SLICES, mesh="slice=2,data=4")
    (sent,) = report.collectives
    assert (sent.kind, sent.axes, sent.wire_bytes) == ("all-reduce", None, 256 * 1024)
    assert sent.algorithm == "over the hosts, between slices"
    assert not any("transfers" in note for note in report.notes)


def test_a_transfer_to_the_host_alone_is_no_collective():
    text = SLICES.replace("xla_megascale_runtime", "tf_rendezvous")
    report = sn.explain_hlo(text)
    assert report.collectives == ()
    assert any(
        note.startswith("2 transfers between a device and its host") for note in report.notes
    )
