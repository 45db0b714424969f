"""Kernels whose bytes are derived twice: from the program, and by counting copies in the TPU interpreter.

As a script it prints {name: [derived, counted]} for every kernel: run by a test in the Python of another environment.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention
from jax.experimental.pallas.ops.tpu.matmul import matmul
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm
from jax.experimental.pallas.ops.tpu.paged_attention.paged_attention_kernel import paged_attention
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask

from kernel_audit.inspect import inspect_program
from kernel_audit.kernels.blocked_axpy import blocked_axpy
from kernel_audit.kernels.fused_bias_relu import fused_bias_relu
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy
from kernel_audit.program import capture
from kernel_audit.program.interpreter_hooks import count_copies

F32, I32 = jnp.float32, jnp.int32


def array(*shape: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


@dataclass(frozen=True)
class Case:
    function: Callable[..., Any]
    operands: Sequence[jax.ShapeDtypeStruct]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[int, np.ndarray] = field(default_factory=dict)


_SIZES = (
    *("block_q", "block_k_major", "block_k", "block_q_major_dkv", "block_k_major_dkv", "block_k_dkv", "block_q_dkv"),
    *("block_k_major_dq", "block_k_dq", "block_q_dq"),
)
attention = functools.partial(flash_attention, block_sizes=BlockSizes(block_b=1, **dict.fromkeys(_SIZES, 128)))


def attention_gradient(q, k, v):
    return jax.grad(lambda *each: attention(*each).sum(), argnums=(0, 1, 2))(q, k, v)


def splash(q, k, v):
    mask = splash_attention_mask.MultiHeadMask([splash_attention_mask.CausalMask((256, 256))] * 2)
    sizes = splash_attention_kernel.BlockSizes(block_q=128, block_kv=128, block_kv_compute=128)
    return splash_attention_kernel.make_splash_mha_single_device(mask, block_sizes=sizes)(q, k, v)


def looped(x):
    """A kernel with tails and a row that comes back, three times."""

    def body(x_ref, row_ref, out_ref):
        out_ref[...] = x_ref[...] + row_ref[...]

    def kernel(x):
        tile, row = pl.BlockSpec((8, 128), lambda i, j: (i, j)), pl.BlockSpec((8, 128), lambda i, j: (0, j))
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(body, grid=(3, 2), in_specs=[tile, row], out_specs=tile, out_shape=out)(x, x)

    return lax.fori_loop(0, 3, lambda _, carried: kernel(carried), x)


_Q = array(1, 2, 256, 128)
_GROUPS = np.array([100, 0, 156], np.int32)
CASES = {
    "pipelined axpy": Case(pipelined_axpy, [array(17, 257)] * 2),
    "pipelined axpy, three slots": Case(pipelined_axpy, [array(17, 257)] * 2, {"buffers": 3, "block": (16, 256)}),
    "pipelined axpy, synchronous": Case(pipelined_axpy, [array(17, 257)] * 2, {"no_pipelining": True}),
    "blocked axpy": Case(blocked_axpy, [array(9, 11)] * 2),
    "bias and ReLU": Case(fused_bias_relu, [array(17, 257), array(257)]),
    "tails in a loop": Case(looped, [array(20, 200)]),
    "matmul": Case(functools.partial(matmul, block_shape=(256, 256), block_k=256), [array(512, 512)] * 2),
    "flash attention": Case(attention, [_Q] * 3),
    "flash attention, causal": Case(functools.partial(attention, causal=True), [_Q] * 3),
    "flash attention, gradient": Case(attention_gradient, [_Q] * 3),
    "gmm": Case(
        lambda left, right, groups: gmm(left, right, groups, F32, (128, 128, 128)),
        [array(256, 128), array(3, 128, 128), array(3, dtype=I32)],
        values={2: _GROUPS},
    ),
    "tgmm": Case(
        lambda left, right, groups: tgmm(left, right, groups, F32, (128, 128, 128)),
        [array(128, 256), array(256, 128), array(3, dtype=I32)],
        values={2: _GROUPS},
    ),
    "splash attention": Case(splash, [array(2, 256, 128)] * 3),
    "paged attention": Case(
        functools.partial(paged_attention, pages_per_compute_block=2),
        [array(2, 8, 128), array(2, 16, 16, 128), array(2, 16, 16, 128), array(2, dtype=I32), array(2, 4, dtype=I32)],
        values={3: np.array([20, 33], np.int32), 4: np.arange(8, dtype=np.int32).reshape(2, 4)},
    ),
}


def both(name: str) -> tuple[int | None, int]:
    """(bytes derived from the program, bytes counted in the interpreter) of one run of the whole program."""
    case = CASES[name]
    program = capture(case.function, case.operands, keywords=case.keywords)
    kernels = inspect_program(program, values=case.values)
    parts = [
        None if each.bytes.moved is None or each.trips is None else each.bytes.moved * each.trips for each in kernels
    ]
    derived = None if not parts or None in parts else sum(part for part in parts if part is not None)
    rng = np.random.default_rng(0)
    arrays = [
        case.values.get(i, rng.normal(size=spec.shape).astype(np.float32)) for i, spec in enumerate(program.specs)
    ]
    return derived, count_copies(program, arrays).bytes


if __name__ == "__main__":
    print(json.dumps({name: both(name) for name in sys.argv[1:] or CASES}))
