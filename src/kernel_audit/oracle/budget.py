"""A derived budget: how far the baseline's own rounding moves its result, element by element."""

from __future__ import annotations

import ml_dtypes  # registers bfloat16 and float8 with NumPy
import numpy as np

from kernel_audit.contract.dtypes import is_float

SAMPLES = 16


def budget(samples: list[np.ndarray], precise: np.ndarray, dtype: str, factor: float) -> np.ndarray:
    """The largest error that a result of `dtype` may have against `precise` (float64), of its shape.

    factor x max(noise of the element, root mean square noise of the array), plus half a unit in the last place for storing
    the result. `samples` are results of the baseline re-evaluated with noise (oracle/noise.py), each float64.
    """
    if not is_float(dtype):
        return np.zeros(precise.shape)  # integers have no rounding to allow for
    with np.errstate(invalid="ignore", over="ignore"):
        moved = [np.abs(each.astype(np.float64) - precise) for each in samples]
        noise = np.nan_to_num(np.max(moved, axis=0), nan=0.0, posinf=0.0)
        typical = float(np.sqrt(np.mean(noise**2))) if noise.size else 0.0
        return factor * np.maximum(noise, typical) + unit_in_last_place(precise, dtype) / 2


def unit_in_last_place(values: np.ndarray, dtype: str) -> np.ndarray:
    """Spacing of `dtype` at each |value| (float64): 2**(exponent - fraction bits), not below the smallest subnormal.

    For what is not finite: the spacing at the largest finite value.
    """
    info = ml_dtypes.finfo(np.dtype(dtype))
    _, exponent = np.frexp(values.astype(np.float64))  # |value| in [2**(exponent - 1), 2**exponent)
    exponent = np.where(np.isfinite(values), exponent, info.maxexp)
    exponent = np.where(values == 0, info.minexp, exponent)
    return np.ldexp(1.0, np.clip(exponent - 1, info.minexp, info.maxexp - 1) - info.nmant)
