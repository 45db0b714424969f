"""JAX's layer norm for GPUs (Triton), as it ships, with its backward kernels."""

import warnings

from kernel_audit import audit, built_by


def make():
    """`layer_norm`; newer versions of JAX say while it is imported that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from jax.experimental.pallas.ops.gpu.layer_norm import layer_norm
    return layer_norm


audit(
    name="layer-norm",
    candidate=built_by(make),
    args=["x: f32[b=4, m=256, n=1000]", "weight: f32[n]", "bias: f32[n]"],
    targets=["gpu:h200"],
)
