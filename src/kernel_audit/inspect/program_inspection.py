"""`inspect_program`: every kernel of a captured program as a record, without running anything of it."""

from __future__ import annotations

import math
from collections.abc import Mapping as Table
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from msgspec.structs import replace

from kernel_audit.inspect.body import casts, dots, operations
from kernel_audit.inspect.equation import KernelEquation, array_text, read_equation
from kernel_audit.inspect.findings import findings_of
from kernel_audit.inspect.moved import Moved, block_mapping, moves_of, ownership_of, traffic_of
from kernel_audit.inspect.owners import owner_map
from kernel_audit.inspect.resources import allocated_buffers, buffer_model, fit, scratch_buffers
from kernel_audit.inspect.surroundings import (
    Place,
    copies_around,
    dropped_results,
    known_operands,
    logical_shape,
    parts_read,
    places,
)
from kernel_audit.inspect.walk import kernel_equations
from kernel_audit.program import Program
from kernel_audit.program.describe import platform_of
from kernel_audit.program.pipelines import EmittedPipeline
from kernel_audit.records import (
    DeviceDescription,
    Finding,
    Kernel,
    KernelInspection,
    Ownership,
    Pipeline,
    Traffic,
    known_devices,
)


def inspect_program(
    program: Program,
    *,
    key: str = "",
    targets: Sequence[str] | None = None,
    arithmetic: str | None = None,
    values: Table[int, Any] | None = None,
) -> list[KernelInspection]:
    """One record for each kernel equation of `program`, in order. Nothing of the program runs.

    `key` names the program in the records. `targets` are the described devices that the kernel is for: None for all of
    its platform, an empty list for none, and then nothing is said about any.
    `arithmetic` is the dtype that a contract promises to calculate in. `values` are known operands by flat position:
    what index maps and copies rest on is calculated from them.
    """
    platform = "gpu" if platform_of(program.device_kind) == "cuda" else "tpu"
    kernels = {each.path: each for each in program.kernels}
    around = places(program.jaxpr, values)
    pipelines = list(program.pipelines)
    dead = _dead_paths(program)
    found = []
    for path, equation, trips, holder in kernel_equations(program.jaxpr):
        kernel = kernels[path]
        if equation.primitive.name != "pallas_call":
            found.append(_unread(kernel, key, trips, platform))
            continue
        read = read_equation(path, kernel.name, equation, trips=trips, platform=platform, around=holder)
        inside = _pipelines_of(read, pipelines)
        record = _Inspection(read, kernel, key, around.get(path), inside, targets, arithmetic).record()
        if path in dead:
            record = replace(record, findings=[*record.findings, _dead(record)])
        found.append(record)
    return found


def _dead_paths(program: Program) -> set[str]:
    """Kernels that no result rests on. Told by digest, and only where exactly as many are missing as cannot be found."""
    live = [each.digest for each in program.live_kernels()]
    missing = len(program.kernels) - len(live)
    lost = []
    for each in program.kernels:
        if each.digest in live:
            live.remove(each.digest)
        else:
            lost.append(each.path)
    return set(lost) if len(lost) == missing else set()


def _dead(record: KernelInspection) -> Finding:
    return Finding(
        code="kernel-not-in-program",
        subject="kernel",
        text=f"{record.name}: no result of the program rests on this kernel, and a compiler leaves it out",
        records=[record.path],
    )


def _pipelines_of(kernel: KernelEquation, pending: list[EmittedPipeline]) -> list[EmittedPipeline]:
    """The pipelines that this kernel holds: the next ones whose buffers (slots x block) it allocates."""
    shapes = [tuple(each.shape) for each in allocated_buffers(kernel)]
    found = []
    while pending:
        wanted = [(slots, *block) for block, slots in zip(pending[0].blocks, pending[0].slots, strict=True)]
        rest = list(shapes)
        if not any(shape in rest for shape in wanted):
            break
        for shape in wanted:
            if shape in rest:
                rest.remove(shape)
        shapes = rest
        found.append(pending.pop(0))
    return found


class _Inspection:
    """One `pallas_call` on its way to a record."""

    def __init__(
        self,
        kernel: KernelEquation,
        known: Kernel,
        key: str,
        place: Place | None,
        pipelines: list[EmittedPipeline],
        targets: Sequence[str] | None,
        arithmetic: str | None,
    ) -> None:
        self.kernel, self.known, self.key, self.place = kernel, known, key, place
        self.pipelines, self.arithmetic = pipelines, arithmetic
        self.devices = _devices(targets, kernel.platform)
        self.grid, self.prefetched = self._known_before()
        read = {each.position: parts_read(place, each.position) for each in kernel.outputs} if place else None
        self.moves = moves_of(kernel, self.prefetched, self.grid, read)

    def _known_before(self) -> tuple[list[int | None], list[Any] | None]:
        """The grid with its sizes where they can be calculated, and prefetched values where all of them can."""
        kernel, grid = self.kernel, list(self.kernel.grid)
        if self.place is None or not (kernel.prefetched or kernel.dynamic_bounds):
            return grid, None
        leading = range(kernel.dynamic_bounds + len(kernel.prefetched))
        known = known_operands(self.place, list(leading))
        for axis, size in enumerate(grid):
            if size is None and known:
                value = known.pop(0)
                grid[axis] = None if value is None else int(value)
        values = known[-len(kernel.prefetched) :] if kernel.prefetched else []
        return grid, values if all(each is not None for each in values) else None

    def record(self) -> KernelInspection:
        kernel, moves = self.kernel, self.moves
        traffic = traffic_of(moves, kernel.cost)
        one = self.pipelines[0] if len(self.pipelines) == 1 else None
        leading = kernel.dynamic_bounds + len(kernel.prefetched)
        padded, share = self._padding()
        return KernelInspection(
            **_named(self.known, self.key, kernel.trips, kernel.platform),
            **self._grids(),
            **self._resources(traffic),
            mappings=[block_mapping(each, kernel, one) for each in moves],
            prefetched=[array_text(each.aval.shape, each.aval.dtype) for each in kernel.prefetched],
            aliases=[list(each) for each in kernel.aliases],
            pipelines=[_pipeline(each) for each in self.pipelines],
            ownership=_together([ownership_of(each) for each in self._results()]),
            owner_map=owner_map(self._results()[0], self._logical(self._results()[0])) if self._results() else None,
            padded_elements=padded,
            padded_share=share,
            copies_around=copies_around(self.place, leading) if self.place else [],
            casts=casts(kernel.body),
            cost_estimate=_cost(kernel.cost),
            findings=self._findings(traffic),
        )

    def _grids(self) -> dict[str, Any]:
        grid = self._moving_grid()
        return {
            "grid": [-1 if each is None else each for each in grid],
            "launch_grid": [-1 if each is None else each for each in self.grid],
            "programs": _product(grid),
            "semantics": list(self.kernel.semantics),
        }

    def _resources(self, traffic: Traffic) -> dict[str, Any]:
        """Storage, bytes and operations, and what they need of each device."""
        done, model, products = self._operations(), buffer_model(self.kernel), dots(self.kernel.body)
        moved = traffic.moved if traffic.moved is not None else traffic.floor
        return {
            "scratch": scratch_buffers(self.kernel),
            "allocated": allocated_buffers(self.kernel),
            "buffer_model_bytes": model,
            "bytes": traffic,
            "operations": done,
            "intensity": done / traffic.moved if done is not None and traffic.moved else None,
            "fits": [fit(each, model, moved, done, products) for each in self.devices],
            "dots": products,
        }

    def _findings(self, traffic: Traffic) -> list[Finding]:
        known = (self.devices, self.arithmetic, self._dropped(), self.pipelines)
        return findings_of(self.kernel, self.moves, self.grid, traffic, *known)

    def _results(self) -> list[Moved]:
        """The results that the program reads; all of them where it reads none."""
        results = [each for each in self.moves if each.mapping.role == "output"]
        return [each for each in results if each.mapping.position not in self._dropped()] or results

    def _dropped(self) -> frozenset[int]:
        return dropped_results(self.place) if self.place else frozenset()

    def _logical(self, result: Moved) -> tuple[int, ...]:
        """The shape of a result without the padding that is cropped after the kernel."""
        if self.place is None:
            return result.mapping.shape
        return logical_shape(self.place, result.mapping.position)

    def _moving_grid(self) -> list[int | None]:
        """The grid that moves blocks: that of the one pipeline inside where the launch is one program."""
        if _product(self.grid) == 1 and len(self.pipelines) == 1 and any(not each.mapping.piped for each in self.moves):
            return [None if each < 0 else each for each in self.pipelines[0].grid]
        return list(self.grid)

    def _operations(self) -> int | None:
        steps = math.prod(self.pipelines[0].grid) if len(self.pipelines) == 1 else None
        each = operations(self.kernel.body, steps if steps and steps > 0 else None)
        programs = _product(self.grid)
        return None if each is None or programs is None else each * programs

    def _padding(self) -> tuple[int | None, float | None]:
        """(elements of all written blocks, the share of them that is outside the logical results)."""
        written, logical = 0, 0
        for each in self._results():
            found = each.visits
            if found.uncovered is None:
                return None, None
            blocks = math.prod(each.counts) - found.uncovered
            written += blocks * math.prod(each.block)
            inside = found.floor_elements if found.floor_elements is not None else blocks * math.prod(each.block)
            logical += min(inside, math.prod(self._logical(each)))
        return written, 1 - logical / written if written else 0.0


def _product(grid: Sequence[int | None]) -> int | None:
    sizes = [each for each in grid if each is not None]
    return math.prod(sizes) if len(sizes) == len(grid) else None


def _devices(targets: Sequence[str] | None, platform: str) -> list[DeviceDescription]:
    described = [each for each in known_devices().values() if each.kind == platform]
    return [each for each in described if targets is None or each.name in targets]


def _pipeline(each: EmittedPipeline) -> Pipeline:
    return Pipeline(grid=list(each.grid), blocks=[list(block) for block in each.blocks], slots=list(each.slots))


def _cost(cost: Any) -> dict[str, int] | None:
    if cost is None:
        return None
    names = ("flops", "transcendentals", "bytes_accessed")
    return {name: int(getattr(cost, name)) for name in names}


def _together(parts: Sequence[Ownership]) -> Ownership:
    """The ownership of all results of a kernel: counts added up, the weakest proof."""
    if len(parts) == 1:
        return parts[0]
    order = ("enumerated", "affine", "copies", "sampled", "data-dependent", "not-read", "whole-array")

    def added(name: str) -> int | None:
        values = [getattr(each, name) for each in parts]
        return None if any(each is None for each in values) else sum(values)

    return Ownership(
        blocks=sum(each.blocks for each in parts),
        uncovered=added("uncovered"),
        repeated=added("repeated"),
        revisited=added("revisited"),
        out_of_range=added("out_of_range"),
        shared_parallel=added("shared_parallel"),
        proof=max((each.proof for each in parts), key=order.index, default="whole-array"),
    )


def _named(kernel: Kernel, key: str, trips: int | None, platform: str) -> dict[str, Any]:
    """Which kernel a record is of, and where it was read."""
    return {
        "program": key,
        "path": kernel.path,
        "name": kernel.name,
        "primitive": kernel.primitive,
        "digest": kernel.digest,
        "platform": platform,
        "trips": trips,
        "jax_version": jax.__version__,
    }


def _unread(kernel: Kernel, key: str, trips: int | None, platform: str) -> KernelInspection:
    """A kernel without a grid of blocks (`pl.kernel`): its name and its grid of cores, and that nothing else was read."""
    counts = ("uncovered", "repeated", "revisited", "out_of_range", "shared_parallel")
    lists = ("semantics", "mappings", "prefetched", "scratch", "allocated", "aliases", "pipelines", "fits")
    more = ("copies_around", "casts", "dots", "findings")
    unknown = ("owner_map", "padded_elements", "padded_share", "operations", "intensity", "cost_estimate")
    empty: dict[str, Any] = {name: [] for name in (*lists, *more)} | dict.fromkeys(unknown)
    return KernelInspection(
        **_named(kernel, key, trips, platform),
        **empty,
        grid=list(kernel.grid),
        launch_grid=list(kernel.grid),
        programs=int(np.prod(kernel.grid)) if kernel.grid else 1,
        ownership=Ownership(blocks=0, proof="not-read", **dict.fromkeys(counts)),
        buffer_model_bytes=0,
        bytes=Traffic(moved=None, clipped=None, floor=None, claimed=None, derivation="not-read"),
    )
