"""Planes of CPU, TPU and GPU traces become operations; what is not time of an operation is left out."""

from __future__ import annotations

import time
from pathlib import Path

from traces import HLO, Event, Line, Plane, operation, step, xspace

from kernel_audit.profile import Attribution, read_planes, read_trace, sweep


def test_a_cpu_trace_has_operations_steps_and_host_regions() -> None:
    host = Plane(
        "/host:CPU",
        [
            Line("python", [step(0, 0, 100), Event("region.input-staging", 1, 20), Event("$file.py:3 f", 0, 100)]),
            Line(
                "tf_XLAEigen/1", [operation("dot", 30, 60, device=3, _p=7), Event("end: dot", 5000, 5000, [("_c", 7)])]
            ),
            Line("tf_XLAEigen/2", [operation("pad", 30, 60, _p=8), Event("end: pad", 61, 61, [("_c", 8)])]),
        ],
    )
    trace = read_planes([host])
    assert (trace.reader, trace.verified) == ("cpu", True)
    assert trace.steps == [(0, 0, 100)] and trace.host == [("input-staging", 1, 20)]
    assert [(each.name, each.device, each.late_end_ns) for each in trace.operations] == [
        ("dot", 3, 5000),
        ("pad", 0, 0),
    ]
    assert trace.late_ends == 1


def test_a_compilation_inside_is_seen() -> None:
    events = [Event("backend_compile_and_load", 0, 1), Event("CpuCompiler::RunHloPasses", 0, 1)]
    assert read_planes([Plane("/host:CPU", [Line("python", events)])]).compile_events == 2


def test_a_tpu_trace_is_read_from_its_operations_alone_and_is_unverified() -> None:
    lines = [
        Line("Steps", [Event("1", 0, 100)]),
        Line("XLA Modules", [Event("jit_step", 0, 100)]),
        Line("XLA Ops", [Event("dot", 10, 40, [("hlo_category", "convolution")])]),
        Line("Async XLA Ops", [Event("all-gather-start", 5, 60)]),
        Line("Framework Ops", [Event("matmul", 10, 40)]),
    ]
    trace = read_planes([Plane("/device:TPU:1", lines), Plane("/host:CPU", [Line("python", [step(0, 0, 100)])])])
    assert (trace.reader, trace.verified) == ("tpu", False)
    assert [(each.name, each.device, each.background) for each in trace.operations] == [
        ("dot", 1, False),
        ("all-gather-start", 1, True),
    ]


def test_a_gpu_trace_has_its_kernels_and_copies() -> None:
    lines = [
        Line(
            "Stream #13(Kernel,MemcpyH2D)",
            [operation("dot", 10, 40), Event("MemcpyH2D", 0, 9, [("memcpy_details", "x")])],
        ),
        Line("XLA Ops", [operation("dot", 10, 40)]),
    ]
    trace = read_planes([Plane("/device:GPU:0", lines)])
    assert (trace.reader, trace.verified) == ("gpu", False)
    assert [(each.name, each.opcode) for each in trace.operations] == [("dot", ""), ("MemcpyH2D", "host-to-device")]


def test_a_file_reads_as_its_planes_do_and_7200_operations_in_under_two_seconds(tmp_path: Path) -> None:
    lines = [Line("python", [step(number, 10_000 * number, 10_000 * number + 9_000) for number in range(30)])]
    for device in range(8):
        events = [
            operation("dot", 10_000 * number + 200 * place, 10_000 * number + 200 * place + 150, device, _p=place)
            for number in range(30)
            for place in range(30)
        ]
        lines.append(Line(f"tf_XLAEigen/{device}", events))
    planes = [Plane("/host:CPU", lines)]
    file = tmp_path / "trace.xplane.pb"
    file.write_bytes(xspace(planes))
    began = time.process_time()
    trace = read_trace(file)
    swept = sweep(trace, Attribution(HLO))
    took = time.process_time() - began
    assert len(trace.operations) == 7200 and len(swept) == 30
    assert sorted(trace.operations, key=repr) == sorted(read_planes(planes).operations, key=repr)
    assert took < 2.0
