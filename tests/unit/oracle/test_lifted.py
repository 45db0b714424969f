"""The lifted oracle against float64 written by hand, and the derived budget against right and wrong arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl

from kernel_audit.errors import CaptureError
from kernel_audit.oracle import SAMPLES, budget
from kernel_audit.oracle.lifted import lifted
from kernel_audit.oracle.noise import noisy


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def draw(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.dtype(dtype))


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def softmax_64(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms_norm(x, g):
    wide = x.astype(jnp.float32)
    scaled = wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (scaled * g).astype(x.dtype)


def rms_norm_64(x, g):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float64(np.float32(1e-6))) * g


def attention(q, k, v):
    scores = jnp.einsum("td,sd->ts", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    allowed = jnp.tril(jnp.ones(scores.shape, bool))
    return jnp.einsum("ts,sd->td", jax.nn.softmax(jnp.where(allowed, scores, -1e30), axis=-1), v)


def attention_64(q, k, v):
    scores = np.where(np.tril(np.ones((len(q), len(k)), bool)), q @ k.T / np.sqrt(q.shape[-1]), -1e30)
    return softmax_64(scores) @ v


def gelu_mlp(x, w, u):
    return jax.jit(jax.nn.gelu)(x @ w) @ u


def gelu_mlp_64(x, w, u):
    h = x @ w
    inner = np.float64(np.float32(np.sqrt(2 / np.pi))) * (h + np.float64(np.float32(0.044715)) * h**3)
    return h * (0.5 * (1.0 + np.tanh(inner))) @ u


def scanned(x, scale, shift):
    """Two constants, three carried values, one stream in and two out."""

    def step(state, row):
        carry, total, steps = state
        carry = jnp.tanh(carry * scale + row + shift)
        return (carry, total + carry, steps + 1), (carry * 2, row)

    (last, total, _), (rows, _) = lax.scan(step, (jnp.zeros_like(shift), jnp.zeros_like(shift), 0), x, reverse=True)
    return last, total, rows


def scanned_64(x, scale, shift):
    carry, total, rows = np.zeros(x.shape[1:]), np.zeros(x.shape[1:]), np.zeros(x.shape)
    for index in reversed(range(len(x))):
        carry = np.tanh(carry * scale + x[index] + shift)
        total, rows[index] = total + carry, carry * 2
    return carry, total, rows


def looped(x):
    return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] / (1 + s[1] * s[1])), (0, x))[1]


def looped_64(x):
    for _ in range(5):
        x = x / (1 + x * x)
    return x


def branched(x):
    return lax.cond(x[0, 0] > 0, lambda v: jnp.exp(v), lambda v: jnp.sin(v) * 3, x)


def branched_64(x):
    return np.exp(x) if x[0, 0] > 0 else np.sin(x) * 3


@jax.custom_jvp
def ruled(x):
    return jnp.log1p(jnp.exp(x))


ruled.defjvp(lambda primals, tangents: (ruled(*primals), tangents[0] * jax.nn.sigmoid(primals[0])))


@jax.custom_vjp
def ruled_backwards(x):
    return jnp.log1p(jnp.exp(x))


ruled_backwards.defvjp(lambda x: (ruled_backwards(x), x), lambda x, g: (g * jax.nn.sigmoid(x),))


def ruled_64(x):
    return np.log1p(np.exp(x))


PROGRAMS = {
    "softmax": (softmax, softmax_64, [draw(9, 33)]),
    "rms-norm": (rms_norm, rms_norm_64, [draw(9, 64), draw(64)]),
    "rms-norm-bfloat16": (rms_norm, rms_norm_64, [draw(9, 64, dtype="bfloat16"), draw(64)]),
    "attention": (attention, attention_64, [draw(12, 16, seed=each) for each in range(3)]),
    "gelu-mlp": (gelu_mlp, gelu_mlp_64, [draw(8, 16), draw(16, 32), draw(32, 16)]),
    "scan": (scanned, scanned_64, [draw(6, 5), draw(5), draw(5, seed=1)]),
    "while": (looped, looped_64, [draw(6, 5)]),
    "cond-true": (branched, branched_64, [abs(draw(6, 5))]),
    "cond-false": (branched, branched_64, [-abs(draw(6, 5))]),
    "custom-jvp": (ruled, ruled_64, [draw(6, 5)]),
    "custom-vjp": (ruled_backwards, ruled_64, [draw(6, 5)]),
    "gradient": (jax.grad(lambda x: ruled_backwards(x).sum()), lambda x: 1 / (1 + np.exp(-x)), [draw(6, 5)]),
    "remat": (jax.checkpoint(jax.jit(ruled)), ruled_64, [draw(6, 5)]),
    "vmap": (jax.vmap(softmax), softmax_64, [draw(4, 9, 33)]),
}


def traced(function, *arrays):
    """The jaxpr as a contract states it: without 64 bits."""
    with jax.enable_x64(False):
        return jax.make_jaxpr(function)(*[jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays])


def raised(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype != np.int32 else array


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_float64_written_by_hand(name):
    function, by_hand, given = PROGRAMS[name]
    found = jax.jit(lifted(traced(function, *given)))(*[raised(each) for each in given])
    right = by_hand(*[raised(each) for each in given])
    for mine, other in zip(found, right if isinstance(right, tuple) else (right,), strict=True):
        assert mine.dtype == np.float64
        np.testing.assert_allclose(np.asarray(mine), other, rtol=1e-12, atol=1e-300)


def test_integers_stay_integers():
    jaxpr = traced(lambda x, i: (x[i], i + 1), draw(4, 3), np.zeros(2, np.int32))
    rows, following = lifted(jaxpr)(draw(4, 3).astype(np.float64), np.array([2, 0], np.int32))
    assert rows.dtype == np.float64 and following.dtype == np.int32
    assert np.array_equal(rows, draw(4, 3)[[2, 0]])


def test_bits_mean_what_they_meant():
    def magnitude(x):
        return lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.int32) & 0x7FFFFFFF, jnp.float32)

    (found,) = lifted(traced(magnitude, draw(5)))(draw(5).astype(np.float64))
    assert np.array_equal(found, abs(draw(5)))


def test_a_kernel_cannot_be_lifted_and_is_named():
    def body(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2

    def kernel(x):
        return jax.jit(pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)))(x)

    with pytest.raises(CaptureError, match="'pallas_call'") as caught:
        lifted(traced(kernel, draw(8, 128)))(draw(8, 128).astype(np.float64))
    assert "oracle=" in str(caught.value.next_command)


def test_a_callback_cannot_be_lifted_and_is_named():
    def program(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(CaptureError, match="'pure_callback'"):
        lifted(traced(program, draw(4)))(draw(4).astype(np.float64))


def allowed(function, given: list[np.ndarray], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """(float64 result, budget) of a baseline's first result, as the oracle worker derives them."""
    jaxpr = traced(function, *given)
    precise = np.asarray(jax.jit(lifted(jaxpr))(*[raised(each) for each in given])[0])
    run = jax.jit(noisy(jaxpr))
    samples = [np.asarray(run(np.uint32(seed), *given)[0]) for seed in range(SAMPLES)]
    return precise, budget(samples, precise, dtype, 2.0)


def within(result, precise: np.ndarray, limit: np.ndarray) -> bool:
    return bool((abs(np.asarray(result).astype(np.float64) - precise) <= limit).all())


def softmax_online(x):
    """The same in one pass over blocks, with a running maximum."""
    top, total = jnp.full(x.shape[:-1], -jnp.inf), jnp.zeros(x.shape[:-1])
    for part in jnp.split(x, 4, axis=-1):
        new = jnp.maximum(top, part.max(-1))
        total = total * jnp.exp(top - new) + jnp.exp(part - new[..., None]).sum(-1)
        top = new
    return jnp.exp(x - top[..., None]) / total[..., None]


def rms_norm_reordered(x, g):
    wide = x.astype(jnp.float32)
    total = jnp.zeros(x.shape[:-1], jnp.float32)
    for part in jnp.split(wide, 8, axis=-1):
        total = total + (part * part).sum(-1)
    return (wide * (g / jnp.sqrt(total / x.shape[-1] + 1e-6)[:, None])).astype(x.dtype)


def narrow(function):
    """The same function with every operation in bfloat16."""

    def program(*given):
        return function(*[each.astype(jnp.bfloat16) for each in given]).astype(given[0].dtype)

    return program


def rms_norm_rounded_early(x, g):
    wide = x.astype(jnp.float32)
    scaled = wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return scaled.astype(jnp.bfloat16).astype(jnp.float32) * g.astype(jnp.float32)


@pytest.mark.parametrize(
    ("baseline", "candidate", "given", "dtype", "agrees"),
    [
        (softmax, softmax, [draw(16, 128)], "float32", True),
        (softmax, softmax_online, [draw(16, 128)], "float32", True),
        (softmax, narrow(softmax), [draw(16, 128)], "float32", False),
        (rms_norm, rms_norm, [draw(16, 256), draw(256)], "float32", True),
        (rms_norm, rms_norm_reordered, [draw(16, 256), draw(256)], "float32", True),
        (rms_norm, rms_norm_rounded_early, [draw(16, 256), draw(256)], "float32", False),
        (rms_norm, rms_norm_reordered, [draw(16, 256, dtype="bfloat16"), draw(256)], "bfloat16", True),
        (
            rms_norm,
            lambda x, g: rms_norm_rounded_early(x, g).astype(x.dtype),
            [draw(16, 256, dtype="bfloat16"), draw(256)],
            "bfloat16",
            False,
        ),
        (
            lambda a, b: a @ b,
            lambda a, b: a[:, :64] @ b[:64] + a[:, 64:] @ b[64:],
            [draw(16, 128), draw(128, 8)],
            "float32",
            True,
        ),
        (lambda a, b: a @ b, narrow(lambda a, b: a @ b), [draw(16, 128), draw(128, 8)], "float32", False),
        (jnp.sum, lambda x: x.reshape(8, -1).sum(1).sum(), [draw(20, 128)], "float32", True),
        (jnp.sum, lambda x: jnp.cumsum(x.ravel())[-1], [draw(20, 128)], "float32", True),
        (jnp.sum, lambda x: jnp.sum(x.astype(jnp.bfloat16).astype(jnp.float32)), [draw(20, 128)], "float32", False),
        (lambda x: jnp.cumsum(x, -1), lambda x: jnp.cumsum(x, -1), [draw(20, 128)], "float32", True),
        (jnp.square, lambda x: x * x, [draw(20, 128)], "float32", True),
        (gelu_mlp, gelu_mlp, [draw(8, 64), draw(64, 64), draw(64, 8)], "float32", True),
        (gelu_mlp, narrow(gelu_mlp), [draw(8, 64), draw(64, 64), draw(64, 8)], "float32", False),
    ],
)
def test_derived_budget(baseline, candidate, given, dtype, agrees):
    precise, limit = allowed(baseline, given, dtype)
    with jax.enable_x64(False):
        result = jax.jit(candidate)(*given)
    assert result.dtype == np.dtype(dtype)
    assert within(result, precise, limit) is agrees


def test_a_budget_is_half_a_unit_where_nothing_rounds():
    precise, limit = allowed(lambda x: x.astype(jnp.bfloat16), [draw(64)], "bfloat16")
    stored = precise.astype(np.dtype("bfloat16"))
    assert within(stored, precise, limit)
    bits = stored.view(np.uint16) + 1
    assert not within(bits.view(stored.dtype), precise, limit)


def test_noise_is_drawn_anew_and_stays_within_half_a_unit():
    jaxpr = traced(lambda x: x * x, draw(1000))
    samples = [np.asarray(noisy(jaxpr)(np.uint32(seed), draw(1000))[0]) for seed in range(4)]
    exact = draw(1000).astype(np.float64) ** 2
    relative = [(each - exact) / exact for each in samples]
    for each in relative:
        assert np.abs(each).max() <= 2.0**-24 * (1 + 1e-6)
        assert abs(each.mean()) < 2.0**-24 / 8 and each.std() > 2.0**-24 / 2
    for left, right in pairwise(relative):
        assert abs(np.corrcoef(left, right)[0, 1]) < 0.15


def test_a_budget_of_what_is_not_finite_is_finite():
    samples = [np.array([np.nan, np.inf, 1.0])] * 2
    limit = budget(samples, np.array([np.nan, np.inf, 1.0]), "float32", 2.0)
    assert np.isfinite(limit).all()
