"""Job of `doctor`: small true audits of what a machine can do. Each check says what it saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from kernel_audit.program import Generic, Target, TpuInterpreter, capture, load, run_simulated


def examine(steps: Any) -> dict[str, dict[str, Any]]:
    """{what: {"ok": whether it works, "says": what was seen}}."""
    del steps
    checks: dict[str, Callable[[], str]] = {
        "devices": _devices,
        "generic interpreter": _generic,
        "TPU interpreter": _simulated,
        "export for a TPU": _target,
    }
    found = {}
    for name, check in checks.items():
        try:
            found[name] = {"ok": True, "says": check()}
        except Exception as error:
            found[name] = {"ok": False, "says": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    return found


def _double(x: jax.Array) -> jax.Array:
    def body(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] * 2.0

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


_PROBE = np.arange(1024, dtype=np.float32).reshape(8, 128)


def _program() -> Any:
    return capture(_double, (jax.ShapeDtypeStruct(_PROBE.shape, jnp.float32),))


def _devices() -> str:
    return ", ".join(sorted({f"{each.platform} {each.device_kind}" for each in jax.devices()}))


def _generic() -> str:
    outputs = load(_program().export(Generic())).executable()([_PROBE])
    return _right(np.asarray(outputs[0]))


def _simulated() -> str:
    return _right(np.asarray(run_simulated(_program().executable(TpuInterpreter()), [_PROBE]).outputs[0]))


def _target() -> str:
    return f"{len(_program().export(Target('tpu')))} bytes (lowered, not compiled)"


def _right(output: np.ndarray) -> str:
    if not np.array_equal(output, 2 * _PROBE):
        raise ValueError("a kernel that doubles gave other values")
    return "a kernel that doubles gives the right values"
