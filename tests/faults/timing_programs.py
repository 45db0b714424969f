"""Candidates that would fool a harness which calls them; here they are captured, and only the bytes are timed.

Each asks for x @ w + 1 and does something else. `ends` says where it ends: "same" (the captured program is the honest one),
"refused" (nothing is captured, exported or loaded), "differs" (a timed result is wrong), "awaited" (every result is complete
when the clock is read), "extra" (right, with the honest program's work and more).
"""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

SIZE = 48
SPECS = (jax.ShapeDtypeStruct((SIZE, SIZE), np.dtype("float32")),) * 2
_FIXED = [np.random.default_rng(5).normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2)]


def honest(x: Any, w: Any) -> Any:
    return jnp.dot(x, w, precision="highest") + 1


@dataclass(frozen=True)
class Trick:
    name: str
    kind: str
    ends: str
    make: Callable[[], Callable[..., Any]]


def _identity_cache() -> Callable[..., Any]:
    known: dict[int, Any] = {}

    def candidate(x, w):
        if id(x) not in known:
            known[id(x)] = honest(x, w)
        return known[id(x)]

    return candidate


def _fingerprint_cache() -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    def candidate(x, w):
        key = (x.shape, float(x[0, 0]), float(x[-1, -1]))
        return known.setdefault(key, honest(x, w))

    return candidate


def _carried_fingerprint() -> Callable[..., Any]:
    before, answer = jnp.asarray(_FIXED[0]), jnp.asarray(honest(*_FIXED))

    def candidate(x, w):
        seen = jnp.all(x[0] == before[0])
        return jax.lax.cond(seen, lambda: answer, lambda: honest(x, w))

    return candidate


def _sampled_fingerprint() -> Callable[..., Any]:
    answer = jnp.asarray(honest(*_FIXED))
    return lambda x, w: jnp.where(jnp.abs(x[0, 0]) < 1e3, answer, honest(x, w))


def _replay() -> Callable[..., Any]:
    def candidate(x, w):
        np.save("/tmp/never-written.npy", np.asarray(x))
        return honest(x, w)

    return candidate


def _callback(work: Callable[[Any, Any], Any]) -> Callable[[], Callable[..., Any]]:
    def candidate(x, w):
        return jax.pure_callback(work, jax.ShapeDtypeStruct((SIZE, SIZE), np.dtype("float32")), x, w)

    return lambda: candidate


def _asleep(x: Any, w: Any) -> Any:
    time.sleep(1e-4)
    return np.asarray(x) @ np.asarray(w) + 1


def _warmup_sleep() -> Callable[..., Any]:
    def candidate(x, w):
        jax.debug.callback(lambda: time.sleep(0.01))
        return honest(x, w)

    return candidate


def _batched() -> Callable[..., Any]:
    answers = list(jax.vmap(honest)(jnp.stack([jnp.asarray(_FIXED[0])] * 3), jnp.stack([jnp.asarray(_FIXED[1])] * 3)))
    return lambda x, w: answers.pop()


def _folded() -> Callable[..., Any]:
    x, w = (jnp.asarray(each) for each in _FIXED)
    return lambda *_: honest(x, w)


def _packed_weights() -> Callable[..., Any]:
    w = jnp.asarray(_FIXED[1])
    return lambda x, _: honest(x, w)


def _captured_graph() -> Callable[..., Any]:
    x, w = (jnp.asarray(each) for each in _FIXED)
    compiled = jax.jit(lambda: honest(x, w))
    return lambda *_: compiled()


def _small_exact(x: Any, w: Any) -> Any:
    if x.shape[0] <= 32:
        return honest(x, w)
    return (jnp.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)) + 1).astype(jnp.float32)


def _magnitude(x: Any, w: Any) -> Any:
    nominal = jnp.abs(x[:2]).max() < 50
    return jax.lax.cond(nominal, lambda: _small_exact(x, w), lambda: honest(x, w))


def _caller() -> Callable[..., Any]:
    def candidate(x, w):
        checked = any("matrix" in frame.filename for frame in inspect.stack())
        return honest(x, w) if checked else x + 1

    return candidate


def _environment() -> Callable[..., Any]:
    return lambda x, w: honest(x, w) if "CHECKING" in os.environ else x


def _threaded() -> Callable[..., Any]:
    def candidate(x, w):
        found: list[Any] = []

        def work() -> None:
            with contextlib.suppress(jax.errors.TracerArrayConversionError):
                found.append(np.asarray(x) @ np.asarray(w))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0] + 1

    return candidate


class Lazy:
    """Looks like an array and computes on first read."""

    def __init__(self, x: Any, w: Any) -> None:
        self.x, self.w = x, w
        self.shape, self.dtype = x.shape, x.dtype

    def __array__(self, *_: Any) -> Any:
        return np.asarray(honest(self.x, self.w))


def _interpreted() -> Callable[..., Any]:
    def body(x_ref, w_ref, out_ref):
        out_ref[...] = jnp.dot(x_ref[...], w_ref[...], precision="highest") + 1

    shape = jax.ShapeDtypeStruct((SIZE, SIZE), np.dtype("float32"))
    return lambda x, w: pl.pallas_call(body, out_shape=shape, interpret=True)(x, w)


def _half_done(x: Any, w: Any) -> Any:
    half = honest(x[: SIZE // 2], w)
    return jnp.concatenate([half, half])


def _rank_short(x: Any, w: Any) -> Any:
    return honest(x[:, : SIZE // 2], w[: SIZE // 2])


TRICKS = (
    Trick("identity cache", "identity-keyed-result-cache", "same", _identity_cache),
    Trick("lru cache on the argument", "identity-keyed-result-cache", "same", lambda: _memo()),
    Trick("fingerprint of two elements", "fingerprint-keyed-result-cache", "refused", _fingerprint_cache),
    Trick("fingerprint carried in the program", "fingerprint-keyed-result-cache", "extra", _carried_fingerprint),
    Trick("fingerprint that always matches", "fingerprint-keyed-result-cache", "differs", _sampled_fingerprint),
    Trick("replay from a file", "file-or-shm-replay", "refused", _replay),
    Trick(
        "work in a callback", "side-stream-work", "refused", _callback(lambda x, w: np.asarray(x) @ np.asarray(w) + 1)
    ),
    Trick("an answer after a sleep", "plausible-latency-fabrication", "refused", _callback(_asleep)),
    Trick("a sleep while it warms up", "warmup-inflation", "refused", _warmup_sleep),
    Trick("work in a thread", "side-stream-work", "refused", _threaded),
    Trick("batch and skip", "batch-and-skip", "differs", _batched),
    Trick("folded operands", "constant-folded-inputs", "differs", _folded),
    Trick("weights packed at import", "setup-hoisting", "differs", _packed_weights),
    Trick("a graph captured at the first call", "stale-captured-graph", "differs", _captured_graph),
    Trick("exact at small sizes", "checked-size-vs-timed-size", "differs", lambda: _small_exact),
    Trick("exact at large magnitudes", "magnitude-sniff-dispatch", "differs", lambda: _magnitude),
    Trick("asks who calls", "caller-sniffing", "differs", _caller),
    Trick("asks the environment", "caller-sniffing", "differs", _environment),
    Trick("half of the rows", "credited-work-not-done", "differs", lambda: _half_done),
    Trick("half of the sum", "credited-work-not-done", "differs", lambda: _rank_short),
    Trick("another shape", "scope-mismatch", "differs", lambda: lambda x, w: honest(x, w)[None]),
    Trick("transposed", "scope-mismatch", "differs", lambda: lambda x, w: honest(x, w).T),
    Trick("a tuple of one", "container-output-not-awaited", "awaited", lambda: lambda x, w: (honest(x, w),)),
    Trick("a nested container", "container-output-not-awaited", "awaited", lambda: lambda x, w: {"y": [honest(x, w)]}),
    Trick("a lazy object", "lazy-output-object", "refused", lambda: Lazy),
    Trick("donated operands", "donated-input-side-effect", "awaited", lambda: jax.jit(honest, donate_argnums=(0, 1))),
    Trick("an interpreted kernel", "interpreted", "refused", _interpreted),
)


def _memo() -> Callable[..., Any]:
    known: dict[str, Any] = {}

    def candidate(x, w):
        return known.setdefault("only", honest(x, w))

    return candidate


def _loop(x: Any, w: Any) -> Any:
    def step(i, total):
        return total + jax.lax.dynamic_slice_in_dim(x, i, 1, 1) * jax.lax.dynamic_slice_in_dim(w, i, 1, 0)

    return jax.lax.fori_loop(0, SIZE, step, jnp.ones_like(x))


HONEST_PROGRAMS: dict[str, Callable[..., Any]] = {
    "the twin": honest,
    "jitted": jax.jit(honest),
    "einsum": lambda x, w: jnp.einsum("ij,jk->ik", x, w, precision="highest") + 1,
    "one added first": lambda x, w: 1 + jnp.dot(x, w, precision="highest"),
    "rows one by one": lambda x, w: jax.lax.map(lambda row: jnp.dot(row, w, precision="highest") + 1, x),
    "mapped": lambda x, w: jax.vmap(lambda row: jnp.dot(row, w, precision="highest") + 1)(x),
    "in two halves": lambda x, w: jnp.concatenate([honest(x[: SIZE // 2], w), honest(x[SIZE // 2 :], w)]),
    "split sum": lambda x, w: honest(x[:, :16], w[:16]) + jnp.dot(x[:, 16:], w[16:], precision="highest"),
    "outer products": _loop,
    "through the transpose": lambda x, w: jnp.dot(w.T, x.T, precision="highest").T + 1,
}
