"""The built-in audits. They name their functions by place, so that reading them loads neither JAX nor a kernel."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kernel_audit.contract.declare import audit, declared
from kernel_audit.contract.model import Refusal
from kernel_audit.contract.words import (
    baseline,
    between,
    control,
    derived,
    door,
    exact,
    on,
    probe,
    refuse,
    row_permutation,
    sequence,
    step_time,
    values,
)
from kernel_audit.contract.workload import complete_step

_REFERENCES = "kernel_audit.kernels.axpy_references"
_BIAS_RELU = "kernel_audit.kernels.bias_relu_references"
_REGRESSION = "kernel_audit.kernels.regression_references"
_STEP = "kernel_audit.kernels.regression_step"
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


def _refused_block(name: str, block: list[object], shown: str, **operands: str) -> Refusal:
    return refuse(f"block-{name}", block=block, raises=ValueError, names=[shown], **operands)


def _refused_blocks(**operands: str) -> list[Refusal]:
    """What every kernel refuses of its blocks."""
    return [
        _refused_block("zero", [0, 128], "0", **operands),
        _refused_block("negative", [-8, 128], "-8", **operands),
        _refused_block("of-one", [8], "8", **operands),
        _refused_block("of-three", [8, 128, 1], "(8, 128, 1)", **operands),
        _refused_block("fraction", [8.0, 128], "8.0", **operands),
    ]


def _refused_part_tiles(**operands: str) -> list[Refusal]:
    """What a kernel refuses of its blocks whose tiles are those of a TPU, (8, 128)."""
    return [
        _refused_block("of-a-part-tile", [4, 128], "4", **operands),
        _refused_block("of-part-lanes", [8, 64], "64", **operands),
    ]


def _refused_of_triton(**operands: str) -> list[Refusal]:
    """What a kernel refuses of its blocks whose sizes are powers of two."""
    return [
        _refused_block("of-no-power-of-two", [16, 96], "96", **operands),
        _refused_block("too-large", [2048, 1024], "2048", **operands),
    ]


_TRITON_BLOCKS = on("gpu", block=[(16, 64), (8, 128)])

_FAMILIES = (
    *("normal", "integers", "signed-zeros", "ties", "cancellation"),
    *("large", "overflow", "subnormals", "non-finite", "fresh"),
)


def _audit_of_axpy(name: str, candidate: str, **own: Any) -> None:
    """The contract of 2x + y, which all three kernels keep; `own` is what each states for itself."""
    audit(
        name=name,
        candidate=candidate,
        baselines=[
            baseline(
                f"{_REFERENCES}:fused_jnp", strong="one fused loop: each operand read once, the result written once"
            ),
            baseline(f"{_REFERENCES}:added_jnp", strong="the same loop without a multiplication"),
        ],
        results=["out: T[m, n]"],
        dtypes={"T": ["f32", "bf16"]},
        vary={"m": any, "n": any},
        agreement=exact(),
        oracle=f"{_REFERENCES}:axpy_oracle",
        values=values(*_FAMILIES, subnormals="either", nonfinite="propagate", signed_zeros=True),
        invariants=[row_permutation("m")],
        controls=[control("rounded-early", f"{_REFERENCES}:axpy_rounded_early")],
        shapes=SHAPES,
        **own,
    )


_audit_of_axpy(
    "blocked-axpy",
    "kernel_audit.kernels.blocked_axpy:blocked_axpy",
    args=["x: T[m=16, n=20]", "y: like(x)"],
    tuning={"block": [(2, 4), (4, 8)]},
    refuses=[*_refused_operands(), *_refused_blocks(x=_MATRIX, y=_MATRIX)],
    targets=[],
    worth=step_time(None, 0.0),
    prediction="correct everywhere; of no use on a target, whose tiles are larger than its blocks",
)

_audit_of_axpy(
    "axpy",
    "kernel_audit.kernels.pipelined_axpy:pipelined_axpy",
    args=["x: T[m=257, n=513]", "y: like(x)"],
    tuning={"block": [(8, 128), (16, 256)], "buffers": [2, 3], "no_pipelining": [False, True]},
    refuses=[
        *_refused_operands(),
        *_refused_blocks(x=_MATRIX, y=_MATRIX),
        *_refused_part_tiles(x=_MATRIX, y=_MATRIX),
        refuse("one-buffer", x=_MATRIX, y=_MATRIX, buffers=1, raises=ValueError, names=["1"]),
        refuse("four-buffers", x=_MATRIX, y=_MATRIX, buffers=4, raises=ValueError, names=["4"]),
        refuse("unknown-mode", x=_MATRIX, y=_MATRIX, mode="fast", raises=ValueError, names=["fast"]),
    ],
    door=door(mode="tpu", raises=RuntimeError),
    probe=probe("kernel_audit.kernels.pipelined_axpy:axpy_pipeline", output_buffers=[2, 3]),
    fixtures=[sequence("lesson", seed=42, shapes=LESSON_SHAPES)],
    targets=["tpu:v5e"],
    worth=step_time(None, 0.02),
    prediction="correct everywhere; at best equal to the fused baseline, which moves the same bytes",
)

_audit_of_axpy(
    "axpy-gpu",
    "kernel_audit.kernels.triton_axpy:triton_axpy",
    args=["x: T[m=257, n=513]", "y: like(x)"],
    tuning=[_TRITON_BLOCKS],
    refuses=[
        *_refused_operands(),
        *_refused_blocks(x=_MATRIX, y=_MATRIX),
        *_refused_of_triton(x=_MATRIX, y=_MATRIX),
        refuse("unknown-mode", x=_MATRIX, y=_MATRIX, mode="fast", raises=ValueError, names=["fast"]),
        refuse("mode-of-the-pipeline", x=_MATRIX, y=_MATRIX, mode="tpu", raises=ValueError, names=["tpu"]),
    ],
    door=door(mode="gpu", raises=RuntimeError),
    targets=["gpu:h200"],
    worth=step_time(None, 0.02),
    prediction="correct everywhere; at best equal to the fused baseline, which moves the same bytes",
)


def _by_type_alone(refusals: list[Refusal]) -> list[Refusal]:
    return [replace(each, names=[]) for each in refusals]


def _refused_biases() -> list[Refusal]:
    """What the bias-and-ReLU kernel refuses of its operands. The course asks for the exception and not for its words."""
    return [
        refuse("mixed-dtypes", x=_MATRIX, bias="bf16[128]", raises=ValueError),
        refuse("mixed-dtypes-reversed", x="bf16[8,128]", bias="f32[128]", raises=ValueError),
        refuse("integers", x="i32[8,128]", bias="i32[128]", raises=ValueError),
        refuse("half-precision", x="f16[8,128]", bias="f16[128]", raises=ValueError),
        refuse("bias-too-short", x=_MATRIX, bias="f32[127]", raises=ValueError),
        refuse("bias-too-long", x=_MATRIX, bias="f32[129]", raises=ValueError),
        refuse("bias-of-the-rows", x=_MATRIX, bias="f32[8]", raises=ValueError),
        refuse("bias-of-one-entry", x=_MATRIX, bias="f32[1]", raises=ValueError),
        refuse("bias-as-a-row", x=_MATRIX, bias="f32[1,128]", raises=ValueError),
        refuse("bias-as-a-matrix", x=_MATRIX, bias=_MATRIX, raises=ValueError),
        refuse("bias-without-a-dimension", x=_MATRIX, bias="f32[]", raises=ValueError),
        refuse("vectors", x="f32[128]", bias="f32[128]", raises=ValueError),
        refuse("three-dimensions", x="f32[1,8,128]", bias="f32[128]", raises=ValueError),
        refuse("no-rows", x="f32[0,128]", bias="f32[128]", raises=ValueError),
        refuse("no-columns", x="f32[8,0]", bias="f32[0]", raises=ValueError),
    ]


def _audit_of_bias_relu(name: str, candidate: str, refuses: list[Refusal], **own: Any) -> None:
    """The contract of max(x + bias, 0), which both kernels keep; `own` and `refuses` are what each states for itself."""
    audit(
        name=name,
        candidate=candidate,
        baselines=[
            baseline(f"{_BIAS_RELU}:maximum_jnp", strong="one fused loop: x is read once, the result written once"),
            baseline(f"{_BIAS_RELU}:library_relu", strong="jax.nn.relu, which fuses with the addition all the same"),
        ],
        args=["x: T[m=257, n=513]", "bias: T[n]"],
        results=["out: T[m, n]"],
        dtypes={"T": ["f32", "bf16"]},
        vary={"m": any, "n": any},
        agreement=exact(),
        oracle=f"{_BIAS_RELU}:bias_relu_oracle",
        # max(-0, 0) may be either zero.
        values=values(*_FAMILIES, subnormals="either", nonfinite="propagate", signed_zeros=False),
        invariants=[row_permutation("m")],
        refuses=[
            *_refused_biases(),
            *_by_type_alone(_refused_blocks(x=_MATRIX, bias="f32[128]")),
            *refuses,
            refuse("unknown-mode", x=_MATRIX, bias="f32[128]", mode="fast", raises=ValueError),
            refuse("mode-of-the-pipeline", x=_MATRIX, bias="f32[128]", mode="simulate", raises=ValueError),
        ],
        controls=[
            control("rounded-early", f"{_BIAS_RELU}:bias_relu_rounded_early"),
            control("bias-along-rows", f"{_BIAS_RELU}:bias_along_rows"),
            control("relu-before-bias", f"{_BIAS_RELU}:relu_before_bias"),
            control("nan-to-zero", f"{_BIAS_RELU}:nan_to_zero"),
        ],
        shapes=SHAPES,
        worth=step_time(None, 0.02),
        part="the activation of a dense layer: one bias a feature, then ReLU",
        prediction="correct everywhere; at best equal to the fused baseline, and lost where the compiler fuses more",
        **own,
    )


_audit_of_bias_relu(
    "bias-relu",
    "kernel_audit.kernels.fused_bias_relu:fused_bias_relu",
    _by_type_alone(_refused_part_tiles(x=_MATRIX, bias="f32[128]")),
    tuning={"block": [(8, 128), (16, 256)]},
    door=door(mode="tpu", raises=RuntimeError),
    targets=["tpu:v5e"],
)

_audit_of_bias_relu(
    "bias-relu-gpu",
    "kernel_audit.kernels.triton_bias_relu:triton_bias_relu",
    _by_type_alone(_refused_of_triton(x=_MATRIX, bias="f32[128]")),
    tuning=[_TRITON_BLOCKS],
    door=door(mode="gpu", raises=RuntimeError),
    targets=["gpu:h200"],
)


def _refused_regressions() -> list[Refusal]:
    """What the regression kernel refuses of its operands and parameters, in either form."""
    X, w, y = "f32[16,8]", "f32[8]", "f32[16]"

    def refused(name: str, named: str, **changes: Any) -> Refusal:
        return refuse(name, **{"X": X, "w": w, "y": y, **changes}, raises=ValueError, names=[named])

    return [
        refused("half-precision", "float16", X="f16[16,8]"),
        refused("integers", "int32", X="i32[16,8]"),
        refused("narrow-weights", "bfloat16", w="bf16[8]"),
        refused("narrow-targets", "bfloat16", X="bf16[16,8]", y="bf16[16]"),
        refused("weights-of-the-rows", "(16,)", w="f32[16]"),
        refused("weights-as-a-column", "(8, 1)", w="f32[8,1]"),
        refused("targets-of-the-columns", "(8,)", y="f32[8]"),
        refused("targets-as-a-column", "(16, 1)", y="f32[16,1]"),
        refused("one-target-for-all", "(1,)", y="f32[1]"),
        refused("one-example-without-its-dimension", "(8,)", X="f32[8]"),
        refused("no-rows", "(0, 8)", X="f32[0,8]", y="f32[0]"),
        refused("no-columns", "(16, 0)", X="f32[16,0]", w="f32[0]"),
        refused("too-wide", "4194304", X="f32[16,16384]", w="f32[16384]"),
        refused("rows-of-a-part-tile", "192", rows=192),
        refused("rows-of-a-part-tile-for-all", "-128", rows=-128),
        refused("rows-as-a-fraction", "512.0", rows=512.0),
        refused("rows-too-many", "8192", X="f32[16,512]", w="f32[512]", rows=8192),
        refused("rows-of-no-power-of-two", "24", rows=24, form="triton"),
        refused("rows-without-registers", "1024", rows=1024, form="triton", X="f32[16,512]", w="f32[512]"),
        refused("unknown-form", "mosaic", form="mosaic"),
        refused("unknown-mode", "fast", mode="fast"),
        refused("mode-of-the-other-form", "gpu", mode="gpu"),
        refused("mode-of-the-other-form-on-a-gpu", "tpu", mode="tpu", form="triton"),
    ]


audit(
    name="regression",
    candidate="kernel_audit.kernels.regression_gradient:regression_gradient",
    baselines=[
        baseline(
            f"{_REGRESSION}:ordinary_gradient", strong="jax.grad of the loss, as a step would have it: X is read twice"
        ),
        baseline(
            f"{_REGRESSION}:hand_gradient",
            strong="the derivative by hand: two fused loops, X read twice in its own dtype",
        ),
        baseline(
            f"{_REGRESSION}:one_read_scan",
            strong="a scan with a barrier on each block: X is read once, without a kernel",
        ),
    ],
    args=["X: T[n=1048576, d=512]", "w: f32[d]", "y: f32[n]"],
    results=["squared_sum: f32[]", "gradient_sum: f32[d]"],
    dtypes={"T": ["f32", "bf16"]},
    vary={"n": any, "d": between(1, 1024)},
    tuning=[on("tpu", form=["tpu"]), on("gpu", form=["triton"], rows=[8, 16])],
    agreement=derived(),
    oracle=f"{_REGRESSION}:regression_oracle",
    values=values("normal", "integers", "signed-zeros", "cancellation", "fresh"),
    refuses=_refused_regressions(),
    door=door(mode="tpu", raises=RuntimeError),
    controls=[
        control(name.replace("_", "-"), f"{_REGRESSION}:{name}")
        for name in ("tail_dropped", "padding_counted", "means_for_sums", "residuals_negated", "gradient_halved")
    ],
    shapes=[
        {"n": n, "d": d} for n, d in [(1, 1), (127, 3), (128, 128), (513, 130), (1024, 512), (1025, 512), (2049, 5)]
    ],
    # The declared size is the step's, for the compilers of the targets: 2 GiB of X are too much for an interpreter.
    element_limit=1 << 20,
    targets=["tpu:v5e", "tpu:v6e", "gpu:h200"],
    worth=step_time(f"{_STEP}:regression_step", 0.1),
    workload=complete_step(
        f"{_STEP}:regression_step",
        host="kernel_audit.kernels.regression_host:regression_host",
        inputs="kernel_audit.kernels.regression_host:regression_inputs",
        examples="n",
        state={"w": 0},
        loss=1,
        gradient={"w": 2},
        dims={"n": 65536, "d": 64},
        seed=4,
    ),
    part="the sums of the regression step: squared residuals and gradient",
    prediction="correct everywhere; half of the two-read baselines' bytes, and as many as the one-read scan",
)

# By name, for those who want the records rather than the file.
BUILT_IN = {each.name: each for each in declared if (each.candidate.module or "").startswith("kernel_audit.kernels.")}
