"""Faults that can be seen before anything runs, named only where they are certain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from kernel_audit.inspect.body import equations_within
from kernel_audit.inspect.equation import KernelEquation, Mapping
from kernel_audit.inspect.index_map import affine_indices, axis_name, reads_prefetched
from kernel_audit.inspect.moved import Moved
from kernel_audit.inspect.offsets import overflows
from kernel_audit.inspect.precision import NARROW, roundings
from kernel_audit.inspect.resources import buffer_model
from kernel_audit.inspect.updates import Update, Uses, uses_of
from kernel_audit.program import compat
from kernel_audit.program.pipelines import EmittedPipeline
from kernel_audit.records import DeviceDescription, Finding, Traffic

COST_TOLERANCE = 0.10
LANES, SUBLANES = 128, 8
_ADDS = frozenset({"add", "add_any", "sub", "dot_general"})
Grid = Sequence[int | None]


def findings_of(
    kernel: KernelEquation,
    moves: Sequence[Moved],
    grid: Grid,
    traffic: Traffic,
    devices: Sequence[DeviceDescription],
    arithmetic: str | None,
    dropped: frozenset[int] = frozenset(),
    pipelines: Sequence[EmittedPipeline] = (),
) -> list[Finding]:
    """Every certain fault of a kernel. The audit's contract gives `arithmetic`; without it nothing is below it.

    `dropped` are results that the program never reads, `pipelines` those that the body holds.
    """
    uses = uses_of(kernel)
    found = [
        *_of_indices(kernel, moves, grid),
        *_of_results(kernel, [each for each in moves if not _is_dropped(each, dropped)], uses, pipelines),
        *_of_accumulators(kernel, moves, uses, arithmetic),
        *_of_operands(kernel, uses),
        *_of_offsets(kernel, grid),
        *_of_precision(kernel, arithmetic),
        *_of_cost(kernel, traffic),
        *_of_tpu(kernel, devices),
    ]
    return found


def _is_dropped(moved: Moved, dropped: frozenset[int]) -> bool:
    return moved.mapping.role == "output" and moved.mapping.position in dropped


def _finding(kernel: KernelEquation, code: str, text: str, scope: str = "any target") -> Finding:
    return Finding(code=code, subject="kernel", text=f"{kernel.name}: {text}", scope=scope, records=[kernel.path])


def _of_indices(kernel: KernelEquation, moves: Sequence[Moved], grid: Grid) -> Iterator[Finding]:
    for each in moves:
        outside = each.visits.out_of_range
        if not outside:
            continue
        mapping = each.mapping
        dim = _counted_in_elements(mapping, grid)
        if dim is not None:
            text = f"the index map of {mapping.name} gives elements where it must give blocks of {mapping.block[dim]}"
            yield _finding(
                kernel, "block-index-in-elements", f"{text}: {outside} programs are outside {_array(mapping)}"
            )
        else:
            text = f"{outside} programs have a block of {mapping.name} that lies outside {_array(mapping)}"
            yield _finding(kernel, "block-out-of-range", text)


def _counted_in_elements(mapping: Mapping, grid: Grid) -> int | None:
    """A dimension whose index grows by the block's size along an axis, and is in range when divided by it."""
    if not mapping.piped or None in grid:
        return None
    forms = affine_indices(mapping, len(grid))
    for dim, (form, kind, count) in enumerate(zip(forms, mapping.dims, mapping.counts, strict=True)):
        if form is None or kind.kind != "blocked" or kind.size < 2 or not form.axes:
            continue
        steps = [abs(form.coefficients[axis]) for axis in form.axes if grid[axis] != 1]
        highest = form.constant + sum(max(0, form.coefficients[axis] * ((grid[axis] or 1) - 1)) for axis in form.axes)
        if steps and all(step % kind.size == 0 for step in steps) and count <= highest < count * kind.size:
            return dim
    return None


def _of_results(
    kernel: KernelEquation, moves: Sequence[Moved], uses: Uses, pipelines: Sequence[EmittedPipeline]
) -> Iterator[Finding]:
    aliased = {output for _, output in kernel.aliases}
    for each in moves:
        mapping, found = each.mapping, each.visits
        if mapping.role != "output":
            continue
        blocks = f"{math.prod(each.counts)} blocks of {mapping.name} {_array(mapping)}"
        if each.uncovered and mapping.position not in aliased:  # of an aliased result the operand's blocks stay
            yield _finding(kernel, "block-uncovered", f"no program writes {each.uncovered} of {blocks}")
        comes_back = found.revisited and _by_one_pipeline(kernel, each, pipelines)
        if kernel.platform == "tpu" and comes_back and mapping.position not in aliased:
            text = f"{found.revisited} of {blocks} are written again after another block came between"
            yield _finding(kernel, "block-revisited", text, "TPU")
        if found.shared_parallel and kernel.platform == "tpu":
            axes = [axis_name(axis) for axis, each in enumerate(kernel.semantics) if "parallel" in each]
            text = f"programs that differ along the parallel axes {', '.join(axes)} share {found.shared_parallel} of {blocks}"
            yield _finding(kernel, "parallel-axis-shared", text, "TPU")
        if (
            ("output", mapping.position) not in uses.touched
            and mapping.position not in aliased
            and math.prod(mapping.shape)
        ):
            yield _finding(kernel, "result-unwritten", f"the body never stores to {mapping.name}")


def _by_one_pipeline(kernel: KernelEquation, moved: Moved, pipelines: Sequence[EmittedPipeline]) -> bool:
    """Whether one pipeline alone writes a result: what a kernel copies by itself it may read back, and copy again."""
    if moved.mapping.piped:
        return True
    if len(pipelines) != 1 or kernel.programs != 1 or moved.visits.linear is None:
        return False
    return moved.visits.copies == moved.visits.linear.size <= math.prod(pipelines[0].grid)


def _of_accumulators(
    kernel: KernelEquation, moves: Sequence[Moved], uses: Uses, arithmetic: str | None
) -> Iterator[Finding]:
    aliased = {("output", output) for _, output in kernel.aliases}
    told: set[tuple[str, tuple[str, int]]] = set()
    for update in uses.updates:
        name = _name_of(kernel, update.label)
        if update.label[0] in ("input", "prefetched"):
            continue
        key = ("start", update.label)
        if update.first and update.certain and update.operations and update.label not in aliased and key not in told:
            told.add(key)
            yield _finding(kernel, "accumulator-uninitialised", f"{name} is added to before anything was stored there")
        narrow = update.dtype in NARROW and update.dtype != arithmetic and bool(update.operations & _ADDS)
        if narrow and ("narrow", update.label) not in told and _goes_on(kernel, moves, update):
            told.add(("narrow", update.label))
            yield _finding(kernel, "accumulator-narrow", f"{name} adds up in {update.dtype} over more than one step")


def _goes_on(kernel: KernelEquation, moves: Sequence[Moved], update: Update) -> bool:
    """Whether a place is added to more than once: in a loop, a result that programs share, scratch of several programs."""
    role, position = update.label
    if update.over_loop or not update.over_programs:
        return update.over_loop
    if role == "output":
        return any(
            each.mapping.role == "output" and each.mapping.position == position and bool(each.visits.repeated)
            for each in moves
        )
    return role == "scratch" and (kernel.programs or 1) > 1


def _name_of(kernel: KernelEquation, label: tuple[str, int]) -> str:
    role, position = label
    if role == "output":
        return kernel.outputs[position].name
    return f"{role} buffer {position}"


def _of_operands(kernel: KernelEquation, uses: Uses) -> Iterator[Finding]:
    aliased = {operand for operand, _ in kernel.aliases}
    for mapping in kernel.inputs:
        if ("input", mapping.position) not in uses.touched and mapping.position not in aliased:
            yield _finding(kernel, "operand-unread", f"nothing reads operand {mapping.name} {_array(mapping)}")


def _of_offsets(kernel: KernelEquation, grid: Grid) -> Iterator[Finding]:
    sizes = [each for each in grid if each is not None]
    if len(sizes) == len(grid):
        for text in overflows(kernel, sizes):
            yield _finding(kernel, "offset-overflow", text)


def _of_precision(kernel: KernelEquation, arithmetic: str | None) -> Iterator[Finding]:
    if arithmetic not in ("float32", "float64"):
        return
    for text in roundings(kernel):
        yield _finding(kernel, "precision-below-contract", f"{text}; the contract says {arithmetic} arithmetic")


def _of_cost(kernel: KernelEquation, traffic: Traffic) -> Iterator[Finding]:
    driven = any(reads_prefetched(each, len(kernel.grid)) for each in kernel.mappings) or bool(kernel.dynamic_bounds)
    if traffic.claimed is None or traffic.moved is None or driven:  # what values decide, an estimate can only bound
        return
    least = (1 - COST_TOLERANCE) * (traffic.clipped if traffic.clipped is not None else traffic.moved)
    if not least <= traffic.claimed <= (1 + COST_TOLERANCE) * traffic.moved:
        text = f"its cost estimate says {traffic.claimed:,} bytes, its blocks and grid move {traffic.moved:,}"
        yield _finding(kernel, "cost-estimate-false", text)


def _of_tpu(kernel: KernelEquation, devices: Sequence[DeviceDescription]) -> Iterator[Finding]:
    if kernel.platform != "tpu" or not devices:
        return
    for mapping in kernel.mappings:
        if mapping.piped and (wrong := _misaligned(mapping)):
            yield _finding(kernel, "block-misaligned", f"block {list(mapping.block)} of {mapping.name}: {wrong}", "TPU")
    least = buffer_model(kernel, least=True)
    for device in devices:
        limit = min(device.vmem_bytes, kernel.vmem_limit or device.vmem_bytes)
        if device.kind == "tpu" and least > limit:
            text = f"its buffers take at least {least:,} bytes of {limit:,} in vector memory"
            yield _finding(kernel, "vmem-over-use", text, device.name)
    names = {
        each.primitive.name for each in equations_within(kernel.body) if compat.lowers_on_tpu(each.primitive) is False
    }
    for name in sorted(names & _ARRAY_PRIMITIVES):
        yield _finding(kernel, "primitive-unsupported", f"this JAX cannot lower {name} in a TPU kernel", "TPU")


# Only what calculates on arrays: what JAX rewrites before it lowers a kernel has no rule of its own either.
_ARRAY_PRIMITIVES = frozenset(
    {
        "sort",
        "cumsum",
        "cumprod",
        "cummax",
        "cummin",
        "cumlogsumexp",
        "rev",
        "scatter",
        "scatter-add",
        "fft",
        "conv_general_dilated",
    }
    | {
        "top_k",
        "approx_top_k",
        "reduce_window",
        "reduce_precision",
        "eigh",
        "qr",
        "svd",
        "lu",
        "cholesky",
        "triangular_solve",
    }
)


def _misaligned(mapping: Mapping) -> str:
    """What the TPU lowering of every supported JAX says to a block: its last two dimensions are multiples of 8 and 128,
    or whole; in one dimension, whole or a multiple of 1024 or of a power of two of 128 (packed)."""
    block, shape = mapping.block, mapping.shape
    if mapping.memory_space in ("smem", "semaphore") or len(block) < 2:
        return ""
    if block[-1] != shape[-1] and block[-1] % LANES:
        return f"its last dimension is no multiple of {LANES} and not the whole {shape[-1]}"
    if block[-2] != shape[-2] and block[-2] % SUBLANES:
        return f"its last dimension but one is no multiple of {SUBLANES} and not the whole {shape[-2]}"
    return ""


def _array(mapping: Mapping) -> str:
    return f"{getattr(mapping.dtype, 'name', mapping.dtype)}{list(mapping.shape)}"
