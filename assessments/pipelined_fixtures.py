"""The assessment's own audit of the pipelined kernel: four frozen fixtures, what it must refuse, one permutation.

    kernel-audit check assessments/pipelined_fixtures.py --cells assessment

Kernel, baselines and oracle are the package's; the shapes and refusals are those that the assessment asks for. The fixtures
are drawn x then y, shape after shape, from one generator, so that every candidate meets the same values.
"""

from kernel_audit import audit, baseline, control, door, exact, refuse, row_permutation, sequence, step_time

KERNEL = "kernel_audit.kernels.pipelined_axpy:pipelined_axpy"
REFERENCES = "kernel_audit.kernels.axpy_references"
SEED = 20
SHAPES = [(15, 255), (16, 256), (17, 257), (1, 1)]
MATRIX = "f32[8,128]"

audit(
    name="pipelined-fixtures",
    candidate=KERNEL,
    baselines=[baseline(f"{REFERENCES}:fused_jnp", strong="one fused loop, the same arithmetic and the same one cast")],
    args=["x: T[m=17, n=257]", "y: like(x)"],
    results=["out: T[m, n]"],
    dtypes={"T": ["f32", "bf16"]},
    vary={"m": any, "n": any},
    tuning={"block": [(8, 128), (16, 256)], "buffers": [2, 3]},
    agreement=exact(),
    oracle=f"{REFERENCES}:axpy_oracle",
    invariants=[row_permutation("m")],
    refuses=[
        refuse("mixed-dtypes", x=MATRIX, y="bf16[8,128]", raises=ValueError, names=["bfloat16"]),
        refuse("integers", x="i32[8,128]", y="i32[8,128]", raises=ValueError, names=["int32"]),
        refuse("half-precision", x="f16[8,128]", y="f16[8,128]", raises=ValueError, names=["float16"]),
        refuse("broadcast-row", x=MATRIX, y="f32[1,128]", raises=ValueError, names=["(1, 128)"]),
        refuse("vectors", x="f32[128]", y="f32[128]", raises=ValueError, names=["(128,)"]),
        refuse("no-rows", x="f32[0,128]", y="f32[0,128]", raises=ValueError, names=["(0, 128)"]),
        refuse("part-tile", x=MATRIX, y=MATRIX, block=[4, 128], raises=ValueError, names=["4"]),
        refuse("one-slot", x=MATRIX, y=MATRIX, buffers=1, raises=ValueError, names=["1"]),
        refuse("four-slots", x=MATRIX, y=MATRIX, buffers=4, raises=ValueError, names=["4"]),
        refuse("unknown-mode", x=MATRIX, y=MATRIX, mode="fast", raises=ValueError, names=["fast"]),
    ],
    door=door(mode="tpu", raises=RuntimeError),
    controls=[control("rounded-early", f"{REFERENCES}:axpy_rounded_early")],
    fixtures=[sequence("assessment", seed=SEED, shapes=[{"m": m, "n": n} for m, n in SHAPES])],
    worth=step_time(None, 0.02),
    prediction="correct everywhere; a gap to the original data in bfloat16 only",
)
