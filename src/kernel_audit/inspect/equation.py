"""A kernel equation as plain data: grid, operands and results cut into blocks, scratch, parameters of its compiler."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from kernel_audit.program import compat

SLOTS = 2  # buffers of a block where the author says nothing, on a TPU


@dataclass(frozen=True)
class Dim:
    """One dimension of a block. `kind`: "blocked", "squeezed", "element" or "bounded-slice"; `size` in elements."""

    kind: str
    size: int


@dataclass(frozen=True)
class Mapping:
    """An operand or result cut into blocks. `index_map` is a jaxpr: (grid indices, prefetched references) -> block."""

    name: str
    role: str
    position: int
    shape: tuple[int, ...]
    dtype: Any
    dims: tuple[Dim, ...]
    index_map: Any
    memory_space: str
    slots: int | None
    reference: Any
    out_tree: Any = None

    @property
    def block(self) -> tuple[int, ...]:
        return tuple(each.size for each in self.dims)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many blocks there are along each dimension; positions, for one that is counted in elements."""
        by_element = ("element", "bounded-slice")
        sizes = zip(self.dims, self.shape, strict=True)
        return tuple(extent if dim.kind in by_element else blocks_along(extent, dim.size) for dim, extent in sizes)

    @property
    def piped(self) -> bool:
        """Whether the pipeline moves it block by block; else the kernel gets the array where it lies."""
        return self.memory_space not in ("any", "hbm", "semaphore", "host", "smem_whole")

    @property
    def by_element(self) -> bool:
        return any(each.kind in ("element", "bounded-slice") for each in self.dims)

    @property
    def block_bytes(self) -> int:
        return bytes_of(math.prod(self.block), self.dtype)


@dataclass(frozen=True)
class KernelEquation:
    """What stands in one kernel equation. `grid` holds None for a size known only at run time.

    `trips`: how often the program runs the equation, None where that is not known. `body` is the open jaxpr of the
    kernel: `prefetched`, then inputs, outputs and `scratch` are its variables.
    """

    path: str
    name: str
    primitive: str
    equation: Any
    trips: int | None
    platform: str
    grid: tuple[int | None, ...]
    semantics: tuple[str, ...]
    prefetched: tuple[Any, ...]
    inputs: tuple[Mapping, ...]
    outputs: tuple[Mapping, ...]
    scratch: tuple[Any, ...]
    aliases: tuple[tuple[int, int], ...]
    body: Any
    cost: Any
    vmem_limit: int | None
    dynamic_bounds: int
    around: Any = field(default=None, repr=False)

    @property
    def programs(self) -> int | None:
        """Grid points; None where a size is not known."""
        return math.prod(self.grid) if None not in self.grid else None  # type: ignore[arg-type]

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        return (*self.inputs, *self.outputs)


def blocks_along(extent: int, size: int) -> int:
    """Blocks of `size` elements that a dimension is cut into; none where a block is empty."""
    return -(-extent // size) if size else 0


def bytes_of(elements: int, dtype: Any) -> int:
    """Bytes of so many elements, whole bytes of a packed narrow dtype."""
    return -(-elements * _bits(dtype) // 8)


def _bits(dtype: Any) -> int:
    name = getattr(dtype, "name", str(dtype))
    for narrow, bits in (("int2", 2), ("uint2", 2), ("int4", 4), ("uint4", 4), ("float4_e2m1fn", 4)):
        if name == narrow:
            return bits
    return int(getattr(dtype, "itemsize", 4)) * 8


def read_equation(
    path: str, name: str, equation: Any, *, trips: int | None, platform: str, around: Any = None
) -> KernelEquation:
    """A `pallas_call` equation as data."""
    parameters = equation.params
    mapping = parameters["grid_mapping"]
    body = compat.open_jaxpr(parameters["jaxpr"])
    first, inputs, outputs = mapping.num_index_operands, mapping.num_inputs, mapping.num_outputs
    blocks = list(mapping.block_mappings)
    names = list(getattr(body.debug_info, "arg_names", None) or [])
    references = body.invars[first : first + inputs + outputs]
    made = [
        _mapping(each, reference, index, inputs, names[first + index] if first + index < len(names) else None)
        for index, (each, reference) in enumerate(zip(blocks, references, strict=True))
    ]
    options = _compiler_params(parameters.get("compiler_params"))
    return KernelEquation(
        path=path,
        name=name,
        primitive=equation.primitive.name,
        equation=equation,
        trips=trips,
        platform=_platform(options, platform),
        grid=tuple(size if isinstance(size, int) else None for size in mapping.grid),
        semantics=_semantics(options, len(mapping.grid)),
        prefetched=tuple(body.invars[:first]),
        inputs=tuple(made[:inputs]),
        outputs=tuple(made[inputs:]),
        scratch=tuple(body.invars[first + inputs + outputs :]),
        aliases=tuple((int(a) - first, int(b)) for a, b in parameters["input_output_aliases"]),
        body=body,
        cost=parameters.get("cost_estimate"),
        vmem_limit=getattr(options, "vmem_limit_bytes", None),
        dynamic_bounds=mapping.num_dynamic_grid_bounds,
        around=around,
    )


def _mapping(block: Any, reference: Any, index: int, inputs: int, name: str | None) -> Mapping:
    aval = block.array_aval
    role, position = ("input", index) if index < inputs else ("output", index - inputs)
    return Mapping(
        name=name or f"{role}{position}",
        role=role,
        position=position,
        shape=tuple(int(each) for each in aval.shape),
        dtype=np.dtype(aval.dtype) if not jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended) else aval.dtype,
        dims=tuple(_dim(each) for each in block.block_shape),
        index_map=block.index_map_jaxpr,
        memory_space=space_of(reference.aval),
        slots=getattr(getattr(block, "pipeline_mode", None), "buffer_count", None),
        reference=reference,
        out_tree=getattr(block, "index_map_out_tree", None),
    )


def _dim(size: Any) -> Dim:
    kinds = {"Squeezed": "squeezed", "Element": "element", "BoundedSlice": "bounded-slice"}
    if size is None:
        return Dim("squeezed", 1)
    if isinstance(size, int):
        return Dim("blocked", size)
    return Dim(kinds.get(type(size).__name__, "blocked"), int(getattr(size, "block_size", 1)))


def space_of(aval: Any) -> str:
    """The memory space of a reference: "vmem", "smem", "any", "hbm", "semaphore"; "default" where none is named."""
    space = getattr(aval, "memory_space", None)
    name = str(getattr(space, "value", space)).lower() if space is not None else "default"
    name = name.removeprefix("memoryspace.")
    return {"semaphore_mem": "semaphore", "device": "default", "none": "default"}.get(name, name)


def _compiler_params(options: Any) -> Any:
    if isinstance(options, dict):
        return next(iter(options.values()), None)
    return options


def _platform(options: Any, platform: str) -> str:
    module = type(options).__module__ if options is not None else ""
    if "triton" in module or "mosaic_gpu" in module:
        return "gpu"
    return "tpu" if "mosaic" in module else platform


def _semantics(options: Any, rank: int) -> tuple[str, ...]:
    stated = getattr(options, "dimension_semantics", None)
    if not stated:
        return ("arbitrary",) * rank
    return tuple(str(getattr(each, "value", each)).rpartition(".")[2].lower() for each in stated)


def array_text(shape: Any, dtype: Any) -> str:
    """ "float32[8,128]"."""
    return f"{getattr(dtype, 'name', dtype)}[{','.join(str(each) for each in shape)}]"
