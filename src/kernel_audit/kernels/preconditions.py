"""What the built-in kernels refuse before anything is launched.

Each check raises with the value at fault in its text. A kernel that silently converts, broadcasts or rounds
a block up would still return numbers, and those numbers would answer a question that nobody asked.
"""

from __future__ import annotations

import jax
import numpy as np

__all__ = [
    "require_block",
    "require_buffers",
    "require_flag",
    "require_matrices",
    "require_mode",
    "require_tpu",
]

SUPPORTED_DTYPES = ("float32", "bfloat16")
SUPPORTED_BUFFERS = (2, 3)
SUPPORTED_MODES = ("simulate", "tpu")


def require_matrices(x: jax.Array, y: jax.Array) -> None:
    """Two non-empty matrices of one shape and one supported dtype.

    Raises ValueError otherwise: nothing is broadcast and nothing is converted.
    """
    for name, operand in (("x", x), ("y", y)):
        if not hasattr(operand, "shape") or not hasattr(operand, "dtype"):
            raise ValueError(f"{name} must be an array, got {operand!r}")
        if len(operand.shape) != 2:
            raise ValueError(f"{name} must have rank 2, got rank {len(operand.shape)}, shape {operand.shape}")
        if min(operand.shape) < 1:
            raise ValueError(f"{name} must not be empty, got shape {operand.shape}")
    if x.shape != y.shape:
        raise ValueError(f"x and y must have the same shape, got {x.shape} and {y.shape}")
    if x.dtype != y.dtype:
        raise ValueError(f"x and y must have the same dtype, got {x.dtype} and {y.dtype}")
    if np.dtype(x.dtype).name not in SUPPORTED_DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(SUPPORTED_DTYPES)}, got {x.dtype}")


def require_block(block: tuple[int, int], multiple_of: tuple[int, int] = (1, 1)) -> None:
    """Two positive whole numbers (rows, columns), each a multiple of its entry in `multiple_of`.

    Raises ValueError otherwise. A bool is no number of rows.
    """
    if not isinstance(block, tuple | list) or len(block) != 2:
        raise ValueError(f"block must be two whole numbers (rows, columns), got {block!r}")
    if any(isinstance(size, bool) or not isinstance(size, int) for size in block):
        raise ValueError(f"block must be two whole numbers (rows, columns), got {block!r}")
    if any(size < 1 for size in block):
        raise ValueError(f"block sizes must be positive, got {block!r}")
    if any(size % unit for size, unit in zip(block, multiple_of, strict=True)):
        raise ValueError(f"block sizes must be multiples of {multiple_of}, got {block!r}")


def require_buffers(buffers: int) -> None:
    """A supported number of input slots. Raises ValueError otherwise."""
    if isinstance(buffers, bool) or not isinstance(buffers, int) or buffers not in SUPPORTED_BUFFERS:
        raise ValueError(f"buffers must be one of {SUPPORTED_BUFFERS}, got {buffers!r}")


def require_flag(name: str, value: bool) -> None:
    """True or False, and nothing that merely counts as one. Raises ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def require_mode(mode: str) -> None:
    """A supported mode. Raises ValueError otherwise."""
    if not isinstance(mode, str) or mode not in SUPPORTED_MODES:
        raise ValueError(f"mode must be one of {SUPPORTED_MODES}, got {mode!r}")


def require_tpu(*operands: jax.Array) -> None:
    """A real TPU backend, and operands that already lie on it.

    Raises RuntimeError otherwise: simulating instead would turn a missing device into a result. An operand
    that is being traced has no device yet and passes.
    """
    backend = jax.default_backend()
    if backend != "tpu":
        raise RuntimeError(f"mode 'tpu' needs a TPU backend, found {backend!r}; it never falls back to simulation")
    for operand in operands:
        if isinstance(operand, jax.core.Tracer):
            continue
        if not isinstance(operand, jax.Array):
            raise RuntimeError(f"mode 'tpu' needs operands placed on a TPU, got a {type(operand).__name__}")
        platforms = sorted({device.platform for device in operand.devices()})
        if platforms != ["tpu"]:
            raise RuntimeError(f"mode 'tpu' needs operands placed on a TPU, found them on {', '.join(platforms)}")
