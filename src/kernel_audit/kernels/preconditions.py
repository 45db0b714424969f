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
    "require_gpu",
    "require_matrices",
    "require_matrix_and_bias",
    "require_mode",
    "require_regression",
    "require_tpu",
    "require_triton_block",
]

SUPPORTED_DTYPES = ("float32", "bfloat16")
SUPPORTED_BUFFERS = (2, 3)
# A Triton program of more elements than this is refused by Pallas itself.
MOST_OF_A_TRITON_BLOCK = 1 << 20


def require_matrices(x: jax.Array, y: jax.Array) -> None:
    """Two non-empty matrices of one shape and one supported dtype.

    Raises ValueError otherwise: nothing is broadcast and nothing is converted.
    """
    _require_array("x", x, rank=2)
    _require_array("y", y, rank=2)
    if x.shape != y.shape:
        raise ValueError(f"x and y must have the same shape, got {x.shape} and {y.shape}")
    _require_one_dtype("y", x, y)


def require_matrix_and_bias(x: jax.Array, bias: jax.Array) -> None:
    """A non-empty matrix and a vector of one entry for each of its columns, both of one supported dtype.

    Raises ValueError otherwise: a bias of another length or rank is not stretched, and nothing is converted.
    """
    _require_array("x", x, rank=2)
    _require_array("bias", bias, rank=1)
    if bias.shape != x.shape[1:]:
        raise ValueError(f"bias must have one entry for each column of x, got {bias.shape} beside {x.shape}")
    _require_one_dtype("bias", x, bias)


def require_regression(X: jax.Array, w: jax.Array, y: jax.Array) -> None:
    """Non-empty features (n, d) of a supported dtype, float32 weights (d,) and float32 targets (n,).

    Raises ValueError otherwise: nothing is stretched and nothing is converted.
    """
    _require_array("X", X, rank=2)
    _require_array("w", w, rank=1)
    _require_array("y", y, rank=1)
    if w.shape != X.shape[1:]:
        raise ValueError(f"w must have one entry for each column of X, got {w.shape} beside {X.shape}")
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have one entry for each row of X, got {y.shape} beside {X.shape}")
    if np.dtype(X.dtype).name not in SUPPORTED_DTYPES:
        raise ValueError(f"the dtype of X must be one of {', '.join(SUPPORTED_DTYPES)}, got {X.dtype}")
    for name, vector in (("w", w), ("y", y)):
        if np.dtype(vector.dtype).name != "float32":
            raise ValueError(f"{name} must be float32, got {vector.dtype}")


def _require_array(name: str, operand: jax.Array, rank: int) -> None:
    if not hasattr(operand, "shape") or not hasattr(operand, "dtype"):
        raise ValueError(f"{name} must be an array, got {operand!r}")
    if len(operand.shape) != rank:
        raise ValueError(f"{name} must have rank {rank}, got rank {len(operand.shape)}, shape {operand.shape}")
    if min(operand.shape) < 1:
        raise ValueError(f"{name} must not be empty, got shape {operand.shape}")


def _require_one_dtype(name: str, x: jax.Array, other: jax.Array) -> None:
    if x.dtype != other.dtype:
        raise ValueError(f"x and {name} must have the same dtype, got {x.dtype} and {other.dtype}")
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


def require_triton_block(block: tuple[int, int]) -> None:
    """Two positive whole numbers (rows, columns) that are powers of two, as Triton's blocks are.

    Raises ValueError otherwise, and for a block that is too large for one program.
    """
    require_block(block)
    if any(size & (size - 1) for size in block):
        raise ValueError(f"block sizes must be powers of two, got {block!r}")
    if block[0] * block[1] > MOST_OF_A_TRITON_BLOCK:
        raise ValueError(f"a block must have at most {MOST_OF_A_TRITON_BLOCK} elements, got {block!r}")


def require_buffers(buffers: int) -> None:
    """A supported number of input slots. Raises ValueError otherwise."""
    if isinstance(buffers, bool) or not isinstance(buffers, int) or buffers not in SUPPORTED_BUFFERS:
        raise ValueError(f"buffers must be one of {SUPPORTED_BUFFERS}, got {buffers!r}")


def require_flag(name: str, value: bool) -> None:
    """True or False, and nothing that merely counts as one. Raises ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def require_mode(mode: str, off_target: str = "simulate", target: str = "tpu") -> None:
    """A supported mode: `off_target` or `target`. Raises ValueError otherwise."""
    supported = (off_target, target)
    if not isinstance(mode, str) or mode not in supported:
        raise ValueError(f"mode must be one of {supported}, got {mode!r}")


def require_tpu(*operands: jax.Array) -> None:
    """A real TPU backend, and operands that already lie on it.

    Raises RuntimeError otherwise: simulating instead would turn a missing device into a result. An operand
    that is being traced has no device yet and passes.
    """
    _require_target("tpu", operands)


def require_gpu(*operands: jax.Array) -> None:
    """A real GPU backend, and operands that already lie on it. Raises RuntimeError otherwise, as `require_tpu` does."""
    _require_target("gpu", operands)


def _require_target(target: str, operands: tuple[jax.Array, ...]) -> None:
    backend, named = jax.default_backend(), f"mode {target!r} needs"
    if backend != target:
        raise RuntimeError(f"{named} a {target.upper()} backend, found {backend!r}; it never falls back to simulation")
    for operand in operands:
        if isinstance(operand, jax.core.Tracer):
            continue
        if not isinstance(operand, jax.Array):
            raise RuntimeError(f"{named} operands placed on a {target.upper()}, got a {type(operand).__name__}")
        platforms = sorted({device.platform for device in operand.devices()})
        if platforms != [target]:
            raise RuntimeError(f"{named} operands placed on a {target.upper()}, found them on {', '.join(platforms)}")
