"""JAX's splash attention for TPUs, as it ships: a kernel that is made from a mask object."""

from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask

from kernel_audit import audit, built_by


def make(*, h, t, block):
    """The kernel for a causal mask over `h` heads and `t` positions."""
    mask = splash_attention_mask.MultiHeadMask([splash_attention_mask.CausalMask((t, t)) for _ in range(h)])
    sizes = splash_attention_kernel.BlockSizes(block_q=block, block_kv=block, block_kv_compute=block)
    return splash_attention_kernel.make_splash_mha_single_device(mask, block_sizes=sizes)


audit(
    name="splash-attention",
    candidate=built_by(make),
    args=["q: bf16[h=4, t=1024, d=128]", "k: like(q)", "v: like(q)"],
    tuning={"block": [256, 512]},
    arithmetic="bf16",
    targets=["tpu:v5e", "tpu:v6e"],
)
