"""A baseline spelled in another way, as a function; and whether it still gives the baseline's result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.matrix.loading import as_keywords, load_function
from kernel_audit.oracle.budget import budget
from kernel_audit.oracle.lifted import lifted
from kernel_audit.oracle.noise import noisy
from kernel_audit.program import capture
from kernel_audit.target.spellings import LAYOUT, NARROW, SCAN, Spelling

CHECK_SIZE = 256
SEED = 20_260_101
FACTOR = 2.0
NOISE_SAMPLES = 4


def respelled(function: Callable[..., Any], spelling: Spelling, audit: Audit) -> Callable[..., Any]:
    """`function` in another spelling; it takes the same operands and gives results of the same shapes and dtypes."""
    if spelling.kind == SCAN:
        return _scanned(function, spelling, audit)
    if spelling.kind == LAYOUT:
        return _transposed(function, [each.name for each in audit.operands].index(spelling.operand))
    return _wide_first(function)


def _scanned(function: Callable[..., Any], spelling: Spelling, audit: Audit) -> Callable[..., Any]:
    cut = [bool(each.dims) and each.dims[0] == spelling.dim for each in audit.operands]

    def spelled(*operands: Any, **keywords: Any) -> Any:
        size = next(each.shape[0] for each, is_cut in zip(operands, cut, strict=True) if is_cut)
        blocks, rest = divmod(size, spelling.rows)

        def part(blocked: list[Any]) -> list[Any]:
            given = iter(jax.lax.optimization_barrier(tuple(blocked)))
            whole = [next(given) if is_cut else each for each, is_cut in zip(operands, cut, strict=True)]
            return jax.tree.leaves(function(*whole, **keywords))

        rows = [each for each, is_cut in zip(operands, cut, strict=True) if is_cut]
        stacked = [each[: blocks * spelling.rows].reshape(blocks, spelling.rows, *each.shape[1:]) for each in rows]
        kinds = jax.eval_shape(function, *operands, **keywords)
        maps = [bool(each.shape) and each.shape[0] == size for each in jax.tree.leaves(kinds)]
        results = _joined(part, stacked, maps, [each[blocks * spelling.rows :] for each in rows] if rest else None)
        dtypes = [each.dtype for each in jax.tree.leaves(kinds)]
        cast = [each.astype(dtype) for each, dtype in zip(results, dtypes, strict=True)]
        return jax.tree.unflatten(jax.tree.structure(kinds), cast)

    return spelled


def _joined(
    part: Callable[[list[Any]], list[Any]], stacked: list[Any], maps: list[bool], rest: list[Any] | None
) -> list[Any]:
    """Results of all parts: stacked along the rows where a result has them (`maps`), else added in float32 or wider."""

    def step(sums: list[Any], blocked: list[Any]) -> tuple[list[Any], list[Any]]:
        results = part(blocked)
        added = [each for each, is_map in zip(results, maps, strict=True) if not is_map]
        return [a + b.astype(a.dtype) for a, b in zip(sums, added, strict=True)], [
            each for each, is_map in zip(results, maps, strict=True) if is_map
        ]

    shapes = jax.eval_shape(part, [jax.ShapeDtypeStruct(each.shape[1:], each.dtype) for each in stacked])
    zeros = [
        jnp.zeros(each.shape, _wide_dtype(each.dtype)) for each, is_map in zip(shapes, maps, strict=True) if not is_map
    ]
    sums, mapped = jax.lax.scan(step, zeros, stacked)
    mapped = [each.reshape(-1, *each.shape[2:]) for each in mapped]
    if rest is not None:
        sums, last = step(sums, rest)
        mapped = [jnp.concatenate(pair) for pair in zip(mapped, last, strict=True)]
    sums_left, maps_left = iter(sums), iter(mapped)
    return [next(maps_left) if is_map else next(sums_left) for is_map in maps]


def _wide_dtype(dtype: Any) -> Any:
    return jnp.float32 if np.dtype(dtype).name in NARROW else dtype


def _wide_first(function: Callable[..., Any]) -> Callable[..., Any]:
    def spelled(*operands: Any, **keywords: Any) -> Any:
        kinds = jax.eval_shape(function, *operands, **keywords)
        results = function(*[each.astype(_wide_dtype(each.dtype)) for each in operands], **keywords)
        return jax.tree.map(lambda result, kind: result.astype(kind.dtype), results, kinds)

    return spelled


def _transposed(function: Callable[..., Any], position: int) -> Callable[..., Any]:
    def spelled(*operands: Any, **keywords: Any) -> Any:
        columns = jax.lax.optimization_barrier(operands[position].T)
        return function(*operands[:position], columns.T, *operands[position + 1 :], **keywords)

    return spelled


def check_respellings(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    function: dict[str, Any],
    spellings: list[dict[str, Any]],
    mode: dict[str, Any],
) -> None:
    """Job of a baseline's worker, in 64-bit mode: one step a spelling and dtype, "NAME NUMBER".

    Each is run at small sizes with an uneven last block, against the baseline lifted to float64. Right is an error within the
    derived budget: FACTOR times what half an ulp of noise after each of the baseline's operations does to its result.
    """
    stated = msgspec.convert(audit, Audit)
    loaded = load_function(msgspec.convert(function, FunctionRef), [Path(each) for each in roots])
    for spelling in msgspec.convert(spellings, list[Spelling]):
        for number, binding in enumerate(stated.dtype_bindings()):
            name = f"{spelling.name} {number}"
            steps.begin(name)
            steps.finish(name, _checked(stated, loaded, spelling, binding, as_keywords(mode)))


def _checked(
    audit: Audit, function: Callable[..., Any], spelling: Spelling, binding: dict[str, str], keywords: dict[str, Any]
) -> dict[str, Any]:
    sizes = {name: min(size, CHECK_SIZE) for name, size in audit.declared_dims.items()}
    if spelling.kind == SCAN:
        sizes[spelling.dim] = 2 * spelling.rows + 3
    random = np.random.default_rng(SEED)
    with jax.enable_x64(False):
        operands = [
            jnp.asarray(random.standard_normal(each.shape(sizes)), binding.get(each.dtype, each.dtype))
            for each in audit.operands
        ]
        try:
            spelled = jax.tree.leaves(jax.jit(respelled(function, spelling, audit))(*operands, **keywords))
            program = capture(function, operands, keywords=keywords)
        except Exception as error:  # of code that is not ours, or a spelling that does not fit the function
            return {"correct": None, "note": f"cannot be made: {type(error).__name__}: {error}"[:300]}
    precise = lifted(program.jaxpr)(*[np.asarray(each).astype(np.float64) for each in operands])
    noise = noisy(program.jaxpr)
    samples = [noise(np.uint32(seed), *operands) for seed in range(NOISE_SAMPLES)]
    return _compared(spelled, precise, samples, sizes)


def _compared(
    spelled: list[Any], precise: list[Any], samples: list[list[Any]], sizes: dict[str, int]
) -> dict[str, Any]:
    right, largest = True, 0.0
    for position, (other, exact) in enumerate(zip(spelled, precise, strict=True)):
        reference = np.asarray(exact, np.float64)
        noisy_results = [np.asarray(sample[position], np.float64) for sample in samples]
        allowed = budget(noisy_results, reference, np.dtype(other.dtype).name, FACTOR)
        error = np.abs(np.asarray(other, np.float64) - reference)
        right &= bool(np.all(error <= allowed))
        largest = max(largest, float(np.max(error, initial=0.0)))
    where = ", ".join(f"{name}={size}" for name, size in sizes.items())
    agreement = (
        f"against the baseline in float64 at {where}, within {FACTOR:g} x what half an ulp of noise after each of its "
    )
    return {"correct": right, "error_max": largest, "agreement": agreement + "operations does to it"}
