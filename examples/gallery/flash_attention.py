"""JAX's flash attention for TPUs, as it ships, with its backward kernels. Its own cost estimate is found wrong."""

import functools

from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention

from kernel_audit import audit, built_by

BLOCKS = (
    *("block_q", "block_k_major", "block_k", "block_q_major_dkv", "block_k_major_dkv", "block_k_dkv", "block_q_dkv"),
    *("block_k_major_dq", "block_k_dq", "block_q_dq"),
)


def make(*, causal, block):
    """`flash_attention` with every block of the sequence at one size."""
    sizes = dict.fromkeys(BLOCKS, block)
    return functools.partial(flash_attention, causal=causal, block_sizes=BlockSizes(block_b=1, **sizes))


audit(
    name="flash-attention",
    candidate=built_by(make),
    args=["q: bf16[b=1, h=8, t=2048, d=128]", "k: like(q)", "v: like(q)"],
    vary={"b": any, "h": any},
    modes={"causal": [False, True]},
    tuning={"block": [512]},
    arithmetic="bf16",
    targets=["tpu:v5e", "tpu:v6e"],
)
