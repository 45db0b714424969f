"""The assessment's own audit of the pipelined kernel: four frozen fixtures, what it must refuse, one permutation.

    kernel-audit check assessments/pipelined_fixtures.py --cells assessment

Kernel, baselines and oracle are the package's; the shapes and refusals are those that the assessment asks for. The fixtures
are drawn x then y, shape after shape, from one generator, so that every candidate meets the same values.
"""

from kernel_audit import audit, baseline, control, door, exact, row_permutation, sequence, step_time
from kernel_audit.kernels.refusals import refused_by_the_pipeline

KERNEL = "kernel_audit.kernels.pipelined_axpy:pipelined_axpy"
REFERENCES = "kernel_audit.kernels.axpy_references"
SEED = 20
SHAPES = [(15, 255), (16, 256), (17, 257), (1, 1)]
# Of what the kernel refuses, that which the assessment asks for.
ASKED = {
    *("mixed-dtypes", "integers", "half-precision", "one-row-broadcast", "vectors", "no-rows"),
    *("block-of-a-part-tile", "one-buffer", "four-buffers", "unknown-mode"),
}

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
    refuses=[each for each in refused_by_the_pipeline() if each.name in ASKED],
    door=door(mode="tpu", raises=RuntimeError),
    controls=[control("rounded-early", f"{REFERENCES}:axpy_rounded_early")],
    fixtures=[sequence("assessment", seed=SEED, shapes=[{"m": m, "n": n} for m, n in SHAPES])],
    worth=step_time(None, 0.02),
    prediction="correct everywhere; a gap to the original data in bfloat16 only",
)
