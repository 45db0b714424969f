"""JAX's paged attention for TPUs, as it ships: a kernel that copies pages by itself, as a page table says.

Lengths and page table are constants here, so that its copies can be followed before anything runs.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel import paged_attention

from kernel_audit import audit, built_by

LENGTHS = (20, 33)
PAGES_A_SEQUENCE = 4


def make(*, pages_per_compute_block):
    """`paged_attention` for two sequences whose pages lie one after another."""
    table = np.arange(len(LENGTHS) * PAGES_A_SEQUENCE, dtype=np.int32).reshape(len(LENGTHS), PAGES_A_SEQUENCE)
    lengths = np.array(LENGTHS, np.int32)
    return functools.partial(_attention, lengths=lengths, table=table, block=pages_per_compute_block)


def _attention(q, k_pages, v_pages, *, lengths, table, block):
    return paged_attention(q, k_pages, v_pages, jnp.asarray(lengths), jnp.asarray(table), pages_per_compute_block=block)


audit(
    name="paged-attention",
    candidate=built_by(make),
    args=["q: f32[b=2, h=8, d=128]", "k_pages: f32[kv=2, pages=16, size=16, d]", "v_pages: like(k_pages)"],
    arithmetic="bf16",  # products of one bfloat16 pass
    tuning={"pages_per_compute_block": [2, 4]},
    targets=["tpu:v5e", "tpu:v6e"],
)
