"""JAX's matrix product for TPUs, as it ships."""

from kernel_audit import audit

audit(
    name="matmul",
    candidate="jax.experimental.pallas.ops.tpu.matmul:matmul",
    args=["x: bf16[m=1024, k=1024]", "y: bf16[k, n=1024]"],
    tuning={"block_shape": [(256, 256), (512, 512)], "block_k": [256]},
    targets=["tpu:v5e", "tpu:v6e"],
)
