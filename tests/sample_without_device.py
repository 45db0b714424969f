"""Sample records of what needed no device: a kernel as it was read, a program as a compiler took it."""

from __future__ import annotations

from typing import Any

import msgspec

from kernel_audit.records import (
    CaptureRecord,
    CompiledKernel,
    CompiledRecord,
    CompilerReason,
    Finding,
    KernelInspection,
    Ownership,
    Traffic,
)


def inspection(captured: CaptureRecord, **changes: Any) -> KernelInspection:
    """The kernel of a sample program: four blocks, each written by one program."""
    kernel = captured.kernels[0]
    made = KernelInspection(
        program=captured.key,
        path=kernel.path,
        name=kernel.name,
        primitive=kernel.primitive,
        digest=kernel.digest,
        platform="tpu",
        grid=[2, 2],
        launch_grid=[2, 2],
        programs=4,
        trips=1,
        semantics=[],
        mappings=[],
        prefetched=[],
        scratch=[],
        allocated=[],
        aliases=[],
        pipelines=[],
        ownership=Ownership(
            blocks=4, uncovered=0, repeated=0, revisited=0, out_of_range=0, shared_parallel=0, proof="enumerated"
        ),
        owner_map=None,
        padded_elements=2935,
        padded_share=0.7165,
        buffer_model_bytes=16384,
        bytes=Traffic(moved=32768, clipped=9288, floor=9288, claimed=None, derivation="grid"),
        operations=4096,
        intensity=0.125,
        fits=[],
        copies_around=[],
        casts=[],
        dots=[],
        cost_estimate=None,
        findings=[],
        jax_version="0.9.2",
    )
    return msgspec.structs.replace(made, **changes)


def static_finding(code: str) -> Finding:
    return Finding(code=code, subject="kernel", text="double_kernel: so it reads", scope="TPU", records=["path"])


def compiled(program: CaptureRecord, **changes: Any) -> CompiledRecord:
    """A sample program accepted for a TPU v5e: 9,288 bytes at 819 GB/s."""
    copy_seconds = 9288 / 8.19e11
    made = CompiledRecord(
        target="tpu:v5e",
        side="candidate",
        dtype=program.operands[0].partition("[")[0],
        configuration=program.configuration,
        dims={"m": 9, "n": 129},
        program=program.digest,
        accepted=True,
        compilers={"jax": "0.9.2", "libtpu": "0.0.37"},
        compile_s=0.25,
        kernels=[
            CompiledKernel(
                name="double_kernel",
                path=program.kernels[0].path,
                digest=program.kernels[0].digest,
                body="0" * 64,
                found=True,
                live=True,
            )
        ],
        bundles=50,
        spills=0,
        fills=0,
        derived_bytes=9288,
        copy_seconds=copy_seconds,
        schedule_seconds=copy_seconds / 2,
        floor_seconds=copy_seconds,
        bound_by="copies",
    )
    return msgspec.structs.replace(made, **changes)


def refused(program: CaptureRecord, code: str = "compiler-refuses", subject: str = "kernel") -> CompiledRecord:
    """The same program, refused by its compiler."""
    reason = CompilerReason(stage="lowering", kind="MosaicError", text="a slice that is not aligned to tiling (128)")
    found = Finding(code=code, subject=subject, text=f"candidate: {reason.text}", scope="tpu:v5e, libtpu 0.0.37")
    empty = dict.fromkeys(
        ("bundles", "spills", "fills", "derived_bytes", "copy_seconds", "schedule_seconds", "floor_seconds")
    )
    return compiled(program, accepted=False, reason=reason, findings=[found], kernels=[], bound_by="", **empty)
