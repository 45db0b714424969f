"""What each `emit_pipeline` was given, noted while a program is traced: afterwards its grid is nowhere in the jaxpr.

Every pipeline asks one function of its module for its buffers, however the candidate got hold of `emit_pipeline`. That
function is replaced while a program is traced. A kernel that JAX traced before and takes from its cache is not seen; its
copies still are (inspect/control.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import jax

from kernel_audit.program import compat


@dataclasses.dataclass(frozen=True)
class EmittedPipeline:
    """Grid (-1 for a size known only at run time), and for each operand and result its block, slots and array."""

    grid: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    slots: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]


@contextlib.contextmanager
def recorded_pipelines() -> Iterator[list[EmittedPipeline]]:
    """Yields a list that grows by one entry for each pipeline that is traced meanwhile, in order."""
    module, name = compat.pipeline_allocator()
    original = getattr(module, name)
    found: list[EmittedPipeline] = []

    def noted(*references: Any, **given: Any) -> Any:
        with contextlib.suppress(Exception):  # what cannot be noted is left out, and the trace goes on
            found.append(_emitted(references, given))
        return original(*references, **given)

    setattr(module, name, noted)
    try:
        yield found
    finally:
        setattr(module, name, original)


def _emitted(references: Any, given: dict[str, Any]) -> EmittedPipeline:
    is_spec = lambda each: hasattr(each, "index_map")  # noqa: E731
    specs = jax.tree.leaves((given.get("in_specs", ()), given.get("out_specs", ())), is_leaf=is_spec)
    arrays = jax.tree.leaves(references, is_leaf=lambda each: hasattr(each, "shape"))
    shapes = [tuple(int(size) for size in each.shape) for each in arrays]
    blocks, slots = [], []
    for spec, shape in zip(specs, shapes, strict=True):
        block = getattr(spec, "block_shape", None) or shape
        blocks.append(tuple(_size(each) for each in block))
        slots.append(getattr(getattr(spec, "pipeline_mode", None), "buffer_count", None) or 2)
    grid = tuple(size if isinstance(size, int) else -1 for size in given.get("grid", ()))
    return EmittedPipeline(grid, tuple(blocks), tuple(slots), tuple(shapes))


def _size(size: Any) -> int:
    return int(size) if isinstance(size, int) else int(getattr(size, "block_size", 1))
