"""JAX's softmax for GPUs (Triton), as it ships."""

import warnings

from kernel_audit import audit, built_by


def make():
    """`softmax`; newer versions of JAX say while it is imported that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from jax.experimental.pallas.ops.gpu.softmax import softmax
    return softmax


audit(
    name="softmax",
    candidate=built_by(make),
    args=["x: f32[b=4, m=256, n=1000]"],
    targets=["gpu:h200"],
)
