"""Reads the copies of an emitted pipeline from a captured program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernel_audit.program import Program
from kernel_audit.program.compat import open_jaxpr
from kernel_audit.program.rewrite import inner_jaxprs

_EMITTER = "pallas/mosaic/pipeline.py"


def read_pipeline(program: Program) -> dict[str, Any]:
    """What the program's only kernel does about copies.

    "kernels": how many there are. "emitted": some of its equations were made inside `emit_pipeline`. "synchronous": every
    copy is waited for before the next one starts. "interpret": the type of the author's `interpret`; "races": whether it
    detects races.
    """
    kernels = [each for each in _equations(program.jaxpr, into_kernels=False) if "interpret" in each.params]
    if len(kernels) != 1:
        return {"kernels": len(kernels)}
    body = [each for _, _, inner in inner_jaxprs(kernels[0].params) for each in _equations(inner, into_kernels=True)]
    copies = [each.primitive.name for each in body if each.primitive.name in ("dma_start", "dma_wait")]
    interpret = kernels[0].params["interpret"]
    return {
        "kernels": 1,
        "emitted": any(_made_by_emitter(each) for each in body),
        "synchronous": copies == ["dma_start", "dma_wait"] * (len(copies) // 2),
        "interpret": type(interpret).__name__,
        "races": bool(getattr(interpret, "detect_races", False)),
    }


def _equations(jaxpr: Any, *, into_kernels: bool) -> Iterator[Any]:
    """Equations in order, those inside control flow after the one that holds them."""
    for equation in open_jaxpr(jaxpr).eqns:
        yield equation
        if into_kernels or "interpret" not in equation.params:
            for _, _, inner in inner_jaxprs(equation.params):
                yield from _equations(inner, into_kernels=into_kernels)


def _made_by_emitter(equation: Any) -> bool:
    trace = equation.source_info.traceback
    return trace is not None and any(frame.file_name.replace("\\", "/").endswith(_EMITTER) for frame in trace.frames)
