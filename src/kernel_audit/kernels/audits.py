"""The built-in audits. They name their functions by place, so that reading them loads neither JAX nor a kernel."""

from __future__ import annotations

from kernel_audit.contract.declare import audit, declared
from kernel_audit.contract.model import Refusal
from kernel_audit.contract.words import (
    baseline,
    control,
    door,
    exact,
    refuse,
    row_permutation,
    sequence,
    step_time,
    values,
)

_REFERENCES = "kernel_audit.kernels.axpy_references"
_MATRIX = "f32[8,128]"

# The lesson draws x, then y, shape after shape from one generator.
LESSON_SHAPES = [{"m": m, "n": n} for m, n in [(1, 1), (8, 128), (9, 129), (17, 257)]]
# The assessment's fixtures, a large one with tails, and single rows and columns.
SHAPES = [
    *LESSON_SHAPES,
    *[{"m": m, "n": n} for m, n in [(15, 255), (16, 256), (257, 513), (1, 128), (1, 257), (8, 1), (17, 1)]],
]


def _refused_operands() -> list[Refusal]:
    """What both kernels refuse of their operands."""
    return [
        refuse("mixed-dtypes", x=_MATRIX, y="bf16[8,128]", raises=ValueError, names=["bfloat16"]),
        refuse("mixed-dtypes-reversed", x="bf16[8,128]", y=_MATRIX, raises=ValueError, names=["bfloat16"]),
        refuse("integers", x="i32[8,128]", y="i32[8,128]", raises=ValueError, names=["int32"]),
        refuse("half-precision", x="f16[8,128]", y="f16[8,128]", raises=ValueError, names=["float16"]),
        refuse("one-row-broadcast", x=_MATRIX, y="f32[1,128]", raises=ValueError, names=["(1, 128)"]),
        refuse("one-column-broadcast", x="f32[8,1]", y=_MATRIX, raises=ValueError, names=["(8, 1)"]),
        refuse("transposed", x=_MATRIX, y="f32[128,8]", raises=ValueError, names=["(128, 8)"]),
        refuse("vectors", x="f32[128]", y="f32[128]", raises=ValueError, names=["(128,)"]),
        refuse("three-dimensions", x="f32[1,8,128]", y="f32[1,8,128]", raises=ValueError, names=["(1, 8, 128)"]),
        refuse("vector-beside-matrix", x=_MATRIX, y="f32[128]", raises=ValueError, names=["(128,)"]),
        refuse("no-rows", x="f32[0,128]", y="f32[0,128]", raises=ValueError, names=["(0, 128)"]),
        refuse("no-columns", x="f32[8,0]", y="f32[8,0]", raises=ValueError, names=["(8, 0)"]),
    ]


def _refused_block(name: str, block: list[object], shown: str) -> Refusal:
    return refuse(f"block-{name}", x=_MATRIX, y=_MATRIX, block=block, raises=ValueError, names=[shown])


def _refused_blocks() -> list[Refusal]:
    return [
        _refused_block("zero", [0, 128], "0"),
        _refused_block("negative", [-8, 128], "-8"),
        _refused_block("of-one", [8], "8"),
        _refused_block("of-three", [8, 128, 1], "(8, 128, 1)"),
        _refused_block("fraction", [8.0, 128], "8.0"),
    ]


audit(
    name="blocked-axpy",
    candidate="kernel_audit.kernels.blocked_axpy:blocked_axpy",
    baselines=[
        baseline(f"{_REFERENCES}:fused_jnp", strong="one fused loop: each operand read once, the result written once"),
        baseline(f"{_REFERENCES}:added_jnp", strong="the same loop without a multiplication"),
    ],
    args=["x: T[m=16, n=20]", "y: like(x)"],
    results=["out: T[m, n]"],
    dtypes={"T": ["f32", "bf16"]},
    vary={"m": any, "n": any},
    tuning={"block": [(2, 4), (4, 8)]},
    agreement=exact(),
    oracle=f"{_REFERENCES}:axpy_oracle",
    values=values(
        *("normal", "integers", "signed-zeros", "ties", "cancellation"),
        *("large", "overflow", "subnormals", "non-finite", "fresh"),
        subnormals="either",
        nonfinite="propagate",
        signed_zeros=True,
    ),
    invariants=[row_permutation("m")],
    refuses=[*_refused_operands(), *_refused_blocks()],
    controls=[control("rounded-early", f"{_REFERENCES}:axpy_rounded_early")],
    shapes=SHAPES,
    targets=[],
    worth=step_time(None, 0.0),
    prediction="correct everywhere; of no use on a target, whose tiles are larger than its blocks",
)

audit(
    name="axpy",
    candidate="kernel_audit.kernels.pipelined_axpy:pipelined_axpy",
    baselines=[
        baseline(f"{_REFERENCES}:fused_jnp", strong="one fused loop: each operand read once, the result written once"),
        baseline(f"{_REFERENCES}:added_jnp", strong="the same loop without a multiplication"),
    ],
    args=["x: T[m=257, n=513]", "y: like(x)"],
    results=["out: T[m, n]"],
    dtypes={"T": ["f32", "bf16"]},
    vary={"m": any, "n": any},
    tuning={"block": [(8, 128), (16, 256)], "buffers": [2, 3], "no_pipelining": [False, True]},
    agreement=exact(),
    oracle=f"{_REFERENCES}:axpy_oracle",
    values=values(
        *("normal", "integers", "signed-zeros", "ties", "cancellation"),
        *("large", "overflow", "subnormals", "non-finite", "fresh"),
        subnormals="either",
        nonfinite="propagate",
        signed_zeros=True,
    ),
    invariants=[row_permutation("m")],
    refuses=[
        *_refused_operands(),
        *_refused_blocks(),
        _refused_block("of-a-part-tile", [4, 128], "4"),
        _refused_block("of-part-lanes", [8, 64], "64"),
        refuse("one-buffer", x=_MATRIX, y=_MATRIX, buffers=1, raises=ValueError, names=["1"]),
        refuse("four-buffers", x=_MATRIX, y=_MATRIX, buffers=4, raises=ValueError, names=["4"]),
        refuse("unknown-mode", x=_MATRIX, y=_MATRIX, mode="fast", raises=ValueError, names=["fast"]),
    ],
    door=door(mode="tpu", raises=RuntimeError),
    controls=[control("rounded-early", f"{_REFERENCES}:axpy_rounded_early")],
    shapes=SHAPES,
    fixtures=[sequence("lesson", seed=42, shapes=LESSON_SHAPES)],
    targets=["tpu:v5e"],
    worth=step_time(None, 0.02),
    prediction="correct everywhere; at best equal to the fused baseline, which moves the same bytes",
)

# By name, for those who want the records rather than the file.
BUILT_IN = {each.name: each for each in declared if (each.candidate.module or "").startswith("kernel_audit.kernels.")}
