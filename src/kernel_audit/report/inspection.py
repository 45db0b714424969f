"""Kernels that were read, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernel_audit.records import KernelInspection, Ownership, Traffic
from kernel_audit.report.ownership import ownership_lines


def kernel_lines(kernel: KernelInspection, *, drawn: bool = True) -> Iterator[str]:
    """One kernel: what it is, who owns what, what moves, what it needs, what is wrong with it; `drawn`: its blocks."""
    trips = (
        ""
        if kernel.trips == 1
        else f", run {kernel.trips if kernel.trips is not None else 'an unknown number of'} times"
    )
    yield f"{kernel.name}   {kernel.path}{trips}"
    if not kernel.mappings:
        yield "  not read: a kernel without a grid of blocks"
        return
    inside = " of an emit_pipeline" if kernel.grid != kernel.launch_grid else ""
    yield f"  grid       {_grid(kernel.grid)}{inside}: {_count(kernel.programs)} programs{_semantics(kernel)}"
    yield f"  ownership  {ownership_text(kernel.ownership)}"
    if kernel.padded_elements is not None and kernel.padded_share is not None:
        yield f"  padded     {kernel.padded_elements:,} elements are written, {kernel.padded_share:.1%} of them padding"
    yield f"  bytes      {traffic_text(kernel.bytes)}"
    yield from _mappings(kernel)
    yield from _resources(kernel)
    yield from _body(kernel)
    for each in kernel.copies_around:
        change = f"{each.from_array} -> {each.to_array}"
        yield f"  around     {each.kind} of {each.side} {each.position}: {change}, {each.bytes:,} bytes"
    if kernel.owner_map is not None and drawn:
        yield f"  blocks of {kernel.owner_map.result}, by the program that writes them first:"
        for line in ownership_lines(kernel.owner_map):
            yield f"    {line}"
    for finding in kernel.findings:
        yield f"  FOUND      {finding.code}: {finding.text} ({finding.scope})"
    if not kernel.findings:
        yield "  found      nothing that is certainly wrong"


def _grid(grid: Sequence[int]) -> str:
    return " x ".join("?" if size < 0 else str(size) for size in grid) or "none"


def _count(number: int | None) -> str:
    return "an unknown number of" if number is None else f"{number:,}"


def _semantics(kernel: KernelInspection) -> str:
    parallel = [str(axis) for axis, each in enumerate(kernel.semantics) if "parallel" in each]
    return f", axes {', '.join(parallel)} parallel" if parallel else ""


def ownership_text(ownership: Ownership) -> str:
    """Counts that are not zero, and how they are known."""
    how = {
        "enumerated": "every grid point looked at",
        "affine": "proved from affine index maps",
        "copies": "every copy of the kernel followed",
        "sampled": "sampled: some grid points looked at",
        "data-dependent": "decided by values that are not known",
        "whole-array": "the whole array is there for every program",
        "not-read": "not read",
    }[ownership.proof]
    if ownership.uncovered is None:
        outside = f"{ownership.out_of_range} programs out of range, " if ownership.out_of_range else ""
        return f"{outside}{how}"
    counts = {
        "uncovered": ownership.uncovered,
        "written by several programs": ownership.repeated,
        "written again later": ownership.revisited,
        "shared over parallel axes": ownership.shared_parallel,
        "programs out of range": ownership.out_of_range,
    }
    said = [f"{number:,} {what}" for what, number in counts.items() if number]
    blocks = "1 block" if ownership.blocks == 1 else f"{ownership.blocks:,} blocks"
    return f"{blocks}, {', '.join(said) or 'each written by one program'}; {how}"


def traffic_text(traffic: Traffic) -> str:
    """Bytes moved and their floor, and what the author claims."""
    claimed = "" if traffic.claimed is None else f"; its author claims {traffic.claimed:,}"
    floor = "" if traffic.floor is None else f", {traffic.floor:,} if each block moved once"
    if traffic.moved is None:
        why = {
            "whole-array": "loads from whole arrays decide",
            "data-dependent": "values that are not known decide",
            "loads": "its loads take parts of its blocks",
            "out-of-range": "an index map leaves its array",
            "too-long": "its own copies have too many steps to follow",
        }
        return f"not known: {why.get(traffic.derivation, traffic.derivation)}{floor}{claimed}"
    clipped = f", {traffic.clipped:,} inside the arrays" if traffic.clipped not in (None, traffic.moved) else ""
    return f"{traffic.moved:,} in whole blocks{clipped}{floor}{claimed}"


def _mappings(kernel: KernelInspection) -> Iterator[str]:
    for each in kernel.mappings:
        where = "" if each.memory_space == "default" else f" in {each.memory_space}"
        moved = "?" if each.moved_bytes is None else f"{each.moved_bytes:,}"
        slots = f", {each.slots} slots" if each.slots else ""
        shape, block = ",".join(map(str, each.shape)), ",".join(map(str, each.block))
        copies = "" if each.copies is None else f" in {each.copies:,} copies"
        at = f"at {each.index_map}" if each.index_map else "by the kernel's own copies"
        array = f"{each.dtype}[{shape}]{where}"
        yield f"    {each.role:6} {each.name}: {array}, block [{block}] {at}{slots}; {moved} bytes{copies}"


def _resources(kernel: KernelInspection) -> Iterator[str]:
    intensity = "" if kernel.intensity is None else f", {kernel.intensity:.3g} operations a byte"
    done = "operations not counted" if kernel.operations is None else f"{kernel.operations:,} operations as written"
    yield f"  model      buffers {kernel.buffer_model_bytes:,} bytes (slots x block, and scratch); {done}{intensity}"
    for each in kernel.fits:
        share = (
            f"{each.share:.2%} of {each.limit_bytes:,} bytes"
            if each.target.startswith("tpu")
            else "blocks live in registers"
        )
        floor = (
            "no floor: bytes not known" if each.floor_s is None else f"at least {each.floor_s:.3g} s by {each.bound_by}"
        )
        yield f"             {each.target}: {share}; {floor} (static model, published peaks)"


def _body(kernel: KernelInspection) -> Iterator[str]:
    if kernel.casts:
        yield f"  casts      {', '.join(kernel.casts)}"
    for each in kernel.dots:
        yield f"  product    {each.left} x {each.right} -> {each.result}, precision {each.precision}"
    if kernel.prefetched:
        yield f"  prefetched {', '.join(kernel.prefetched)}"
