"""Candidates of every kind that capture has to reach, each with a plain reference for what it should give.

A specimen's `make()` gives (function, operands); `reference` takes the same operands and uses no kernel. Operands are
drawn from a fixed seed. All are written as an author would write them; none knows that it is captured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SHAPE = (16, 128)
BLOCK = pl.BlockSpec((8, 128), lambda i: (i, 0))


@dataclasses.dataclass(frozen=True)
class Specimen:
    """`kernels` are the numbers of kernels that capture may find, which for one specimen differ by JAX version.

    `tolerance` allows for another order of sums; 0 compares bitwise.
    """

    name: str
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    reference: Callable[..., Any]
    kernels: tuple[int, ...] = (1,)
    tolerance: float = 0.0
    exportable: bool = True
    slow: bool = False
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)


def draw(*shape: int, dtype: Any = np.float32, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _double_body(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def doubled(x: jax.Array, **options: Any) -> jax.Array:
    """2x by a kernel of two programs."""
    return pl.pallas_call(
        _double_body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2,),
        in_specs=[BLOCK],
        out_specs=BLOCK,
        **options,
    )(x)


def twice(x: Any) -> Any:
    return x * 2


def asks_backend(x):
    return doubled(x, interpret=jax.default_backend() != "tpu")


def author_chose_interpreter(x):
    return doubled(x, interpret=pltpu.InterpretParams())


def pipelined(x):
    def block(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    def body(x_ref, o_ref):
        pltpu.emit_pipeline(block, grid=(2,), in_specs=[BLOCK], out_specs=[BLOCK])(x_ref, o_ref)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    out_shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, out_shape=out_shape, in_specs=[anywhere], out_specs=anywhere)(x)


def prefetched(order, x):
    def body(_order_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, order: (order[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, order: (i, 0)),
    )
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid_spec=spec)(order, x)


def prefetched_reference(order, x):
    return 2 * x.reshape(2, 8, 128)[order].reshape(x.shape)


def aliased(x):
    return doubled(x, input_output_aliases={0: 0})


WEIGHTS = draw(*SHAPE, seed=8)


def closes_over_array(x):
    return doubled(x) + jnp.asarray(WEIGHTS)


def of_trees(parameters, x):
    return {"y": doubled(x) + parameters["b"], "rest": [parameters["w"], doubled(parameters["w"])]}


def of_trees_reference(parameters, x):
    return {"y": 2 * x + parameters["b"], "rest": [parameters["w"], 2 * parameters["w"]]}


def with_keyword(x, *, scale):
    return doubled(x) * scale


@jax.custom_vjp
def with_backward_kernel(x):
    return doubled(x)


def _forward(x):
    return doubled(x), x


def _backward(x, cotangent):
    return (doubled(cotangent) + 0 * x,)


with_backward_kernel.defvjp(_forward, _backward)


def gradient_by_kernel(x):
    return jax.grad(lambda v: jnp.sum(with_backward_kernel(v) * 0.5))(x)


def rematerialised(x):
    return jax.grad(lambda v: jnp.sum(jax.checkpoint(with_backward_kernel)(v) * 0.5))(x)


@jax.custom_jvp
def with_tangent_rule(x):
    return doubled(x)


@with_tangent_rule.defjvp
def _tangent(primals, tangents):
    return doubled(primals[0]), 2 * tangents[0]


def scanned(x):
    return lax.scan(lambda carry, _: (doubled(carry) * 0.5 + 1, carry[0]), x, None, length=3)


def scanned_reference(x):
    return x + 1 + 1 + 1, jnp.stack([x[0], x[0] + 1, x[0] + 1 + 1])


def looped(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, doubled(s[1])), (0, x))[1]


def branched(x):
    return lax.cond(jnp.sum(x) < 1e9, doubled, lambda v: v * 0, x)


def batched(x):
    return jax.vmap(doubled)(x)


def batched_and_jitted(x):
    return jax.jit(jax.vmap(jax.jit(doubled)))(x)


def with_key(key, x):
    return doubled(x) + jax.random.uniform(key, x.shape)


donating = jax.jit(lambda x: doubled(x), donate_argnums=0)


def by_platform(x):
    return lax.platform_dependent(x, tpu=doubled, cpu=lambda v: v * 0 - 1)


def default_by_platform(x):
    return lax.platform_dependent(x, cpu=lambda v: v * 0 - 1, default=doubled)


def by_pl_kernel(x):
    """`pl.kernel`, whose signature and mesh changed over the JAX versions."""

    def body(x_ref, o_ref):
        def staged(a_ref, b_ref):
            pltpu.sync_copy(x_ref, a_ref)
            b_ref[...] = a_ref[...] * 2
            pltpu.sync_copy(b_ref, o_ref)

        pl.run_scoped(staged, pltpu.VMEM(x.shape, x.dtype), pltpu.VMEM(x.shape, x.dtype))

    try:
        mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    except AttributeError:
        mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    try:
        kernel = pl.kernel(body, out_type=result, mesh=mesh)
    except TypeError:
        kernel = pl.kernel(body, out_shape=result, mesh=mesh)
    return kernel(x)


def calls_back(x):
    """The candidate's own ordered host callback: its effect must outlive every change of mode."""
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return doubled(io_callback(lambda v: np.asarray(v), result, x, ordered=True))


def prints(x):
    jax.debug.callback(lambda: None)
    return doubled(x)


def flash(q, k, v):
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    return flash_attention(q, k, v, causal=True)


def flash_gradient(q, k, v):
    return jax.grad(lambda *a: jnp.sum(flash(*a) ** 2), argnums=(0, 1, 2))(q, k, v)


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, precision="highest")
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v, precision="highest")


def attention_gradient(q, k, v):
    return jax.grad(lambda *a: jnp.sum(attention(*a) ** 2), argnums=(0, 1, 2))(q, k, v)


def grouped_matmul(lhs, rhs, sizes):
    from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

    return gmm(lhs, rhs, sizes, preferred_element_type=jnp.float32, tiling=(128, 128, 128))


def grouped_matmul_reference(lhs, rhs, sizes):
    ends = np.cumsum(sizes)
    parts = [lhs[end - size : end] @ rhs[i] for i, (end, size) in enumerate(zip(ends, sizes, strict=True))]
    return np.concatenate(parts)


def shipped_matmul(x, y):
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    return matmul(x, y, block_shape=(128, 128), block_k=128)


def splash(q, k, v):
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    mask = masks.MultiHeadMask([masks.CausalMask(q.shape[2:] and (q.shape[2], k.shape[2]))] * q.shape[1])
    attend = kernels.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1)
    return jax.vmap(attend)(q, k, v)


def paged(q, k_pages, v_pages, lengths, page_indices):
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    return paged_attention(q, k_pages, v_pages, lengths, page_indices, pages_per_compute_block=2)


def paged_reference(q, k_pages, v_pages, lengths, page_indices):
    rows = []
    for i, pages in enumerate(page_indices):
        keys = k_pages[:, pages].reshape(k_pages.shape[0], -1, q.shape[-1])[:, : lengths[i]]
        values = v_pages[:, pages].reshape(v_pages.shape[0], -1, q.shape[-1])[:, : lengths[i]]
        scores = np.einsum("hd,hkd->hk", q[i], keys)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        rows.append(np.einsum("hk,hkd->hd", weights / weights.sum(-1, keepdims=True), values))
    return np.stack(rows)


def _with(function: Callable[..., Any], *operands: Any) -> Callable[[], Any]:
    return lambda: (function, operands)


def _in_dtype(name: str) -> Callable[[], Any]:
    return lambda: (doubled, (jnp.asarray(draw(*SHAPE) * 4).astype(name),))


def _keyed() -> Any:
    return with_key, (jax.random.key(3), draw(*SHAPE))


X = draw(*SHAPE)
X3 = draw(3, *SHAPE)
HEADS = (1, 2, 128, 128)
QKV = tuple(draw(*HEADS, seed=seed) * np.float32(0.1) for seed in (1, 2, 3))

SPECIMENS = (
    Specimen("plain", _with(doubled, X), twice),
    Specimen("asks-backend", _with(asks_backend, X), twice),
    Specimen("author-chose-interpreter", _with(author_chose_interpreter, X), twice),
    Specimen("emit-pipeline", _with(pipelined, X), twice),
    Specimen("scalar-prefetch", _with(prefetched, np.array([1, 0], np.int32), X), prefetched_reference),
    Specimen("aliases", _with(aliased, X), twice),
    Specimen("closure", _with(closes_over_array, X), lambda x: 2 * x + WEIGHTS),
    Specimen("pytree", _with(of_trees, {"w": X, "b": X}, X), of_trees_reference, kernels=(2,)),
    Specimen("keyword", _with(with_keyword, X), lambda x: 6 * x, keywords={"scale": 3.0}),
    Specimen("custom-vjp", _with(with_backward_kernel, X), twice),
    Specimen("grad-of-custom-vjp", _with(gradient_by_kernel, X), lambda x: jnp.ones_like(x), kernels=(2,)),
    Specimen("custom-jvp", _with(with_tangent_rule, X), twice),
    Specimen("scan", _with(scanned, X), scanned_reference, tolerance=1e-6),
    Specimen("while", _with(looped, X), lambda x: 8 * x),
    Specimen("cond", _with(branched, X), twice),
    Specimen("remat-of-custom-vjp", _with(rematerialised, X), lambda x: jnp.ones_like(x), kernels=(2, 3)),
    Specimen("vmap", _with(batched, X3), twice),
    Specimen("jit-vmap-jit", _with(batched_and_jitted, X3), twice),
    Specimen("typed-key", _keyed, lambda key, x: 2 * x + jax.random.uniform(key, x.shape), tolerance=1e-6),
    Specimen("donated", _with(donating, X), twice),
    Specimen("bfloat16", _in_dtype("bfloat16"), twice),
    Specimen("int8", _in_dtype("int8"), twice),
    Specimen("float8-e4m3fn", _in_dtype("float8_e4m3fn"), twice),
    Specimen("float8-e5m2", _in_dtype("float8_e5m2"), twice),
    Specimen("platform-dependent", _with(by_platform, X), twice),
    Specimen("platform-dependent-default", _with(default_by_platform, X), twice),
    Specimen("pl-kernel", _with(by_pl_kernel, X), twice),
    Specimen("debug-callback", _with(prints, X), twice, exportable=False),
    Specimen("io-callback", _with(calls_back, X), twice, exportable=False),
    # Shipped with JAX.
    Specimen("flash-attention", _with(flash, *QKV), attention, tolerance=2e-5, slow=True),
    Specimen(
        "flash-attention-gradient",
        _with(flash_gradient, *QKV),
        attention_gradient,
        kernels=(3,),
        tolerance=2e-5,
        slow=True,
    ),
    Specimen(
        "megablox-gmm",
        _with(grouped_matmul, draw(256, 128), draw(2, 128, 128), np.array([100, 156], np.int32)),
        grouped_matmul_reference,
        tolerance=2e-4,
        slow=True,
    ),
    Specimen(
        "shipped-matmul",
        _with(shipped_matmul, draw(256, 256), draw(256, 256, seed=9)),
        lambda x, y: x @ y,
        tolerance=2e-4,
        slow=True,
    ),
    Specimen("splash-attention", _with(splash, *QKV), attention, tolerance=2e-5, slow=True),
    Specimen(
        "paged-attention",
        _with(
            paged,
            draw(2, 8, 128) * np.float32(0.1),
            draw(8, 4, 16, 128, seed=1),
            draw(8, 4, 16, 128, seed=2),
            np.array([40, 64], np.int32),
            np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.int32),
        ),
        paged_reference,
        tolerance=5e-3,  # it rounds keys and values to bfloat16
        slow=True,
    ),
)

BY_NAME = {specimen.name: specimen for specimen in SPECIMENS}


def sharded(mesh: Any, inside: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step over axis "d" of `mesh`: a kernel on each shard of the rows, then a sum over shards."""
    rows = jax.sharding.PartitionSpec("d")
    everywhere = jax.sharding.PartitionSpec()

    def step(x):
        y = inside(x)
        return y, lax.psum(jnp.sum(y, axis=0), "d")

    return jax.shard_map(step, mesh=mesh, in_specs=(rows,), out_specs=(rows, everywhere), check_vma=False)
