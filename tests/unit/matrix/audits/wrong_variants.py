"""A known-bad variant of the oracle of shift_and_step.py, and candidates with one fault each."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def shift_forgotten(x: np.ndarray, shift: np.ndarray, *, negate: bool) -> tuple[Any, Any]:
    return -x if negate else x, shift + np.int32(1)


def _refuse(shift: jax.Array) -> None:
    if shift.dtype != jnp.int32:
        raise TypeError(f"shift must be int32, not {shift.dtype}")


def mode_ignored(x: jax.Array, shift: jax.Array, *, negate: bool, rows: int) -> tuple[Any, Any]:
    from shift_and_step import body, launched

    _refuse(shift)
    return launched(functools.partial(body, negate=False), x, shift, rows)


def second_result_dropped(x: jax.Array, shift: jax.Array, *, negate: bool, rows: int) -> Any:
    from shift_and_step import body, launched

    _refuse(shift)
    return launched(functools.partial(body, negate=negate), x, shift, rows)[0]


def counts_by_two(x: jax.Array, shift: jax.Array, *, negate: bool, rows: int) -> tuple[Any, Any]:
    from shift_and_step import body, launched

    _refuse(shift)
    out, following = launched(functools.partial(body, negate=negate), x, shift, rows)
    return out, jnp.where(following % 16 == 0, following + 1, following)


def nothing_refused(x: jax.Array, shift: jax.Array, *, negate: bool, rows: int) -> tuple[Any, Any]:
    from shift_and_step import body, launched

    return launched(functools.partial(body, negate=negate), x, shift.astype(jnp.int32), rows)
