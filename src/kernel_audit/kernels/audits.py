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
from kernel_audit.kernels.refusals import (
    MATRIX,
    refused_blocks,
    refused_by_the_pipeline,
    refused_of_triton,
    refused_operands,
    refused_part_tiles,
)

_REFERENCES = "kernel_audit.kernels.axpy_references"
_BIAS_RELU = "kernel_audit.kernels.bias_relu_references"
_REGRESSION = "kernel_audit.kernels.regression_references"
_STEP = "kernel_audit.kernels.regression_step"

# The lesson draws x, then y, shape after shape from one generator.
LESSON_SHAPES = [{"m": m, "n": n} for m, n in [(1, 1), (8, 128), (9, 129), (17, 257)]]
# Tiles and slots of the pipeline's inputs that lesson, assessment and audit try.
TILES = [(8, 128), (16, 256)]
SLOTS = [2, 3]
CONFIGURATIONS = [(block, slots) for block in TILES for slots in SLOTS]
# The assessment's fixtures, a large one with tails, and single rows and columns.
SHAPES = [
    *LESSON_SHAPES,
    *[{"m": m, "n": n} for m, n in [(15, 255), (16, 256), (257, 513), (1, 128), (1, 257), (8, 1), (17, 1)]],
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
    refuses=[*refused_operands(), *refused_blocks(x=MATRIX, y=MATRIX)],
    targets=[],
    worth=step_time(None, 0.0),
    prediction="correct everywhere; of no use on a target, whose tiles are larger than its blocks",
)

_audit_of_axpy(
    "axpy",
    "kernel_audit.kernels.pipelined_axpy:pipelined_axpy",
    args=["x: T[m=257, n=513]", "y: like(x)"],
    tuning={"block": TILES, "buffers": SLOTS, "no_pipelining": [False, True]},
    refuses=refused_by_the_pipeline(),
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
        *refused_operands(),
        *refused_blocks(x=MATRIX, y=MATRIX),
        *refused_of_triton(x=MATRIX, y=MATRIX),
        refuse("unknown-mode", x=MATRIX, y=MATRIX, mode="fast", raises=ValueError, names=["fast"]),
        refuse("mode-of-the-pipeline", x=MATRIX, y=MATRIX, mode="tpu", raises=ValueError, names=["tpu"]),
    ],
    door=door(mode="gpu", raises=RuntimeError),
    targets=["gpu:h200"],
    worth=step_time(None, 0.02),
    prediction="correct everywhere; at best equal to the fused baseline, which moves the same bytes",
)


def by_type_alone(refusals: list[Refusal]) -> list[Refusal]:
    """Refusals of which the exception is promised and not what it says."""
    return [replace(each, names=[]) for each in refusals]


def _refused_biases() -> list[Refusal]:
    """What the bias-and-ReLU kernel refuses of its operands. The course asks for the exception and not for its words."""
    return [
        refuse("mixed-dtypes", x=MATRIX, bias="bf16[128]", raises=ValueError),
        refuse("mixed-dtypes-reversed", x="bf16[8,128]", bias="f32[128]", raises=ValueError),
        refuse("integers", x="i32[8,128]", bias="i32[128]", raises=ValueError),
        refuse("half-precision", x="f16[8,128]", bias="f16[128]", raises=ValueError),
        refuse("bias-too-short", x=MATRIX, bias="f32[127]", raises=ValueError),
        refuse("bias-too-long", x=MATRIX, bias="f32[129]", raises=ValueError),
        refuse("bias-of-the-rows", x=MATRIX, bias="f32[8]", raises=ValueError),
        refuse("bias-of-one-entry", x=MATRIX, bias="f32[1]", raises=ValueError),
        refuse("bias-as-a-row", x=MATRIX, bias="f32[1,128]", raises=ValueError),
        refuse("bias-as-a-matrix", x=MATRIX, bias=MATRIX, raises=ValueError),
        refuse("bias-without-a-dimension", x=MATRIX, bias="f32[]", raises=ValueError),
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
            *by_type_alone(refused_blocks(x=MATRIX, bias="f32[128]")),
            *refuses,
            refuse("unknown-mode", x=MATRIX, bias="f32[128]", mode="fast", raises=ValueError),
            refuse("mode-of-the-pipeline", x=MATRIX, bias="f32[128]", mode="simulate", raises=ValueError),
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
    by_type_alone(refused_part_tiles(x=MATRIX, bias="f32[128]")),
    tuning={"block": [(8, 128), (16, 256)]},
    door=door(mode="tpu", raises=RuntimeError, placed=True, runs_closed=True),
    alone=True,
    targets=["tpu:v5e"],
)

_audit_of_bias_relu(
    "bias-relu-gpu",
    "kernel_audit.kernels.triton_bias_relu:triton_bias_relu",
    by_type_alone(refused_of_triton(x=MATRIX, bias="f32[128]")),
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
        for name in (
            "last_rows_dropped",
            "rows_counted_twice",
            "means_for_sums",
            "residuals_negated",
            "gradient_halved",
        )
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
