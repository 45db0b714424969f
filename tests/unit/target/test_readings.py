"""What compilers write, read: HLO text, schedules, refusals, ptxas. No compiler is needed."""

from __future__ import annotations

import pytest

from kernel_audit.errors import TargetError
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.target.described import described_target
from kernel_audit.target.hlo import parse_module, trip_count
from kernel_audit.target.probe import family_around, too_large
from kernel_audit.target.ptx import ptx_digest, read_ptxas
from kernel_audit.target.refusal import reason_of
from kernel_audit.target.schedule import read_schedule
from kernel_audit.target.spellings import SCAN, spellings_of
from kernel_audit.target.summary import summary_of
from kernel_audit.target.traffic import movements, total_bytes

HLO = """HloModule jit_f, is_scheduled=true

%cut (p0: f32[8,1024], p1: s32[]) -> f32[1024] {
  %p0 = f32[8,1024]{1,0:T(8,128)} parameter(0)
  %p1 = s32[]{:T(128)} parameter(1)
  %zero = s32[]{:T(128)} constant(0)
  %row = f32[1,1024]{1,0:T(8,128)} dynamic-slice(%p0, %p1, %zero), dynamic_slice_sizes={1,1024}
  ROOT %bitcast.1 = f32[1024]{0:T(1024)S(1)} bitcast(%row)
}

%body (state: (s32[], f32[8,1024], f32[1024])) -> (s32[], f32[8,1024], f32[1024]) {
  %state = (s32[]{:T(128)}, f32[8,1024]{1,0:T(8,128)}, f32[1024]{0:T(1024)S(1)}) parameter(0)
  %one = s32[]{:T(128)} constant(1)
  %i = s32[]{:T(128)} get-tuple-element(%state), index=0
  %x = f32[8,1024]{1,0:T(8,128)} get-tuple-element(%state), index=1
  %next = s32[]{:T(128)} add(%i, %one)
  %block = f32[1024]{0:T(1024)S(1)} fusion(%x, %i), kind=kLoop, calls=%cut
  ROOT %out = (s32[]{:T(128)}, f32[8,1024]{1,0:T(8,128)}, f32[1024]{0:T(1024)S(1)}) tuple(%next, %x, %block)
}

%test (state.1: (s32[], f32[8,1024], f32[1024])) -> pred[] {
  %state.1 = (s32[]{:T(128)}, f32[8,1024]{1,0:T(8,128)}, f32[1024]{0:T(1024)S(1)}) parameter(0)
  %eight = s32[]{:T(128)} constant(8)
  %i.1 = s32[]{:T(128)} get-tuple-element(%state.1), index=0
  ROOT %less = pred[]{:T(512)} compare(%i.1, %eight), direction=LT
}

ENTRY %main (a: f32[8,1024]) -> f32[1024] {
  %a = f32[8,1024]{1,0:T(8,128)} parameter(0), metadata={op_name="a (b"}
  %start = s32[]{:T(128)} constant(0)
  %room = f32[1024]{0:T(1024)S(1)} custom-call(), custom_call_target="AllocateBuffer"
  %first = (s32[]{:T(128)}, f32[8,1024]{1,0:T(8,128)}, f32[1024]{0:T(1024)S(1)}) tuple(%start, %a, %room)
  %loop = (s32[]{:T(128)}, f32[8,1024]{1,0:T(8,128)}, f32[1024]{0:T(1024)S(1)}) while(%first), condition=%test, body=%body
  %result = f32[1024]{0:T(1024)S(1)} get-tuple-element(%loop), index=2
  %sum = f32[1024]{0:T(1024)} all-reduce(%result), replica_groups={{0,1}}, to_apply=%add
  %call = f32[1024]{0:T(1024)} custom-call(%sum), custom_call_target="tpu_custom_call"
  ROOT %copy.1 = f32[1024]{0:T(1024)} copy(%call)
}
"""
SCHEDULE = """LH: loop header
     0   :  { %s0 = smov 0 }
   0x1 LB: > { %s9 = sadd.s32 1, %s8  ;;  %s8 = sphi %s0, %s9 }
   0x2 LB: >> { %s4 = sadd.s32 1, %s3 }
   0x3   :  {} /* delay slot */
   0x4   : >> { %p1 = scmp.ge.s32.totalorder %s4, 8 /* loop exit test */ }
   0x5   : > { %p0 = scmp.ge.s32.totalorder %s9, 66 /* loop exit test */ }
   0x6   :  { %1 = vnop }
"""


def test_a_loop_reads_what_it_cuts_out_in_each_trip():
    module = parse_module(HLO)
    loop = module.entry.by_name["loop"]
    assert trip_count(module, loop) == 8
    moved = list(movements(module, {"call": 100}))
    sizes = {each.instruction.name: (each.trips, each.size_bytes) for each in moved}
    assert sizes["block"] == (8, 4096)  # the row, which goes on to fast memory
    assert sizes["copy.1"] == (1, 8192) and sizes["room"] == (1, 0)
    assert total_bytes(moved) == 8 * 4096 + sizes["sum"][1] + 100 + 8192


def test_an_opaque_call_that_nobody_knows_cannot_be_told():
    module = parse_module(HLO)
    assert total_bytes(list(movements(module, {}))) is None


def test_collectives_and_what_stands_beside_a_kernel():
    module = parse_module(HLO)
    summary = summary_of(list(movements(module, {"call": 100})), {"call": "kernel"})
    (collective,) = summary.collectives
    assert (collective.kind, collective.payload_bytes, collective.replica_groups) == ("all-reduce", 4096, "{{0,1}}")
    assert {(each.operation, each.side) for each in summary.around} == {("sum", "before"), ("copy.1", "after")}


def test_a_loop_that_does_not_start_at_a_constant_has_no_trip_count():
    moving = HLO.replace("%start = s32[]{:T(128)} constant(0)", "%start = s32[]{:T(128)} parameter(1)")
    module = parse_module(moving)
    assert trip_count(module, module.entry.by_name["loop"]) is None
    assert total_bytes(list(movements(module, {"call": 100}))) is None


def test_bundles_of_inner_loops_count_their_trips(tmp_path):
    (tmp_path / "12-kernel.1-70-final_bundles.txt").write_text(SCHEDULE)
    (tmp_path / "12-kernel.1-68-final_hlo-static-per-bundle-utilization.txt").write_text(
        "MXU, VSTORE, VSTORE:SPILL, VLOAD:FILL\n4 1 1 3\n== UTILIZATION:\n1 1 1 0\n0 0 1 2\n"
    )
    (part,) = read_schedule(tmp_path, {"kernel.1": 64})
    assert (part.bundles, part.steps) == (7, 64)  # 66 trips, two of them to fill and drain the pipeline
    assert part.step_bundles == 2 + 8 * 3  # the delay slot belongs to the inner loop
    assert (part.spills, part.fills, part.units["MXU"]) == (2, 2, 0.125)


def test_without_a_dump_there_is_no_schedule(tmp_path):
    assert read_schedule(tmp_path, {}) == [] and read_schedule(tmp_path / "missing", {}) == []


@pytest.mark.parametrize(
    ("message", "memory", "used", "limit", "operation"),
    [
        ("Ran out of memory in memory space vmem. Used 256.00M of 128.00M vmem.", "vmem", 256 << 20, 128 << 20, ""),
        ("Allocation (size=268) would exceed memory (size=134) :: [space=vmem, size = 0x1]", "vmem", 268, 134, ""),
        ("Mosaic failed: failed to legalize operation 'arith.muli'", "", None, None, "arith.muli"),
        ("Unimplemented primitive in Pallas TPU lowering for CoreType.TC: sort. Please", "", None, None, "sort"),
    ],
)
def test_a_refusal_is_reduced_to_what_can_be_acted_on(message, memory, used, limit, operation):
    reason = reason_of("Error", f"{message}\n\nPlease report a bug at: https://example.org", stage="compiler")
    assert (reason.memory, reason.used_bytes, reason.limit_bytes, reason.operation) == (memory, used, limit, operation)
    assert "report a bug" not in reason.text


def test_ptxas_says_registers_spills_and_shared_memory():
    text = (
        "ptxas info    : Compiling entry function 'a' for 'sm_90a'\nptxas info    : Function properties for a\n"
        "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 4096 bytes smem\n"
    )
    (entry,) = read_ptxas(text)
    assert (entry.name, entry.registers, entry.spill_store_bytes, entry.spill_load_bytes) == ("a", 255, 16, 24)
    assert (entry.shared_bytes, entry.stack_bytes) == (4096, 8)
    assert ptx_digest("// made today\nmov;\n") == ptx_digest("// made yesterday\nmov; // here\n")


def test_targets_and_topologies():
    target = described_target("tpu:v5e", "4x4")
    assert (target.devices, target.topology_name, target.platform) == (16, "v5e:4x4", "tpu")
    assert described_target("gpu:h200", "4x4").topology == "2x1x8"
    assert "NVIDIA H200" in described_target("gpu:h200").target_config()
    for topology in ("0x4", "four", "32x32"):
        with pytest.raises(TargetError, match="topology"):
            described_target("tpu:v5e", topology)
    with pytest.raises(TargetError, match="did you mean 'tpu:v5"):
        described_target("tpu:v5")


def test_the_family_changes_one_thing_at_a_time():
    members = dict(family_around([{"block": [8, 128], "buffers": 2, "sync": False}], {"slots": [2, 3]}))
    assert members["first declared"] == {"block": [8, 128], "buffers": 2, "sync": False}
    assert {"block=(4, 128)", "block=(8, 100)", "buffers=3", "sync=True", "slots=3"} <= set(members)
    (large,) = too_large([{"block": [8, 128]}], 1 << 27)
    rows, columns = large[1]["block"]
    assert 16 * rows * columns >= 1 << 27 > 8 * rows * columns


def test_respellings_follow_from_the_contract():
    names = [each.name for each in spellings_of(BUILT_IN["regression"])]
    assert names == ["scan(n, 1024)", "scan(n, 4096)", "wide-first", "transposed(X)"]
    assert not [each for each in spellings_of(BUILT_IN["axpy"]) if each.kind == SCAN]  # too few rows for two blocks
