"""`compile --sweep`: where along a dimension static figures of candidate and baselines cross. A model of bytes, and no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernel_audit.measure.comparison import audit_at
from kernel_audit.measure.sweeps import lines_of, sweep_sizes, swept_names
from kernel_audit.records import FASTER, NO_DIFFERENCE, SLOWER, CompiledRecord, CompiledSweep, SweptPoint
from kernel_audit.statistics import crossover
from kernel_audit.target.bench import CANDIDATE, Bench, sides_of
from kernel_audit.target.described import DescribedTarget

FIGURES = {"derived bytes": "derived_bytes", "static floor": "floor_seconds"}
BETTER = {"derived bytes": "fewer bytes", "static floor": "a lower floor"}


def swept(
    bench: Bench, target: DescribedTarget, sweeps: Sequence[str], progress: Callable[[str, int, int | None], None]
) -> list[CompiledSweep]:
    """One line a figure, swept dimension, dtype and choice of the other sizes. Raises AuditError as `sweep_sizes` does."""
    points = sweep_sizes(bench.audit, sweeps)
    records: list[CompiledRecord] = []
    for number, dims in enumerate(points):
        progress(f"compiling for {target.name}", number, len(points))
        folder = bench.work / f"{target.name.replace(':', '-')}-size-{number}"
        at = Bench(bench.pool, folder, bench.roots, bench.limits, audit_at(bench.audit, dims))
        records += at.compile(replace(target, devices=1), sides_of(at.audit), in_step=False)
    return [
        line
        for name in swept_names(sweeps)
        for dtype in dict.fromkeys(each.dtype for each in records)
        for fixed in lines_of(points, name)
        for line in _lines(target.name, [each for each in records if each.dtype == dtype], name, dtype, fixed)
    ]


def _lines(
    target: str, records: list[CompiledRecord], name: str, dtype: str, fixed: dict[str, int]
) -> list[CompiledSweep]:
    here = [each for each in records if {**fixed, name: each.dims[name]} == each.dims]
    sizes = sorted({each.dims[name] for each in here})
    found = []
    for figure, field in FIGURES.items():
        points = [_point([each for each in here if each.dims[name] == size], size, field) for size in sizes]
        told = [(float(each.size), _verdict(each)) for each in points if _verdict(each)]
        says = (
            crossover(told).text(name, BETTER[figure]) if told else f"no size of {name} has this figure on both sides"
        )
        found.append(
            CompiledSweep(
                target=target, dtype=dtype, dimension=name, fixed=fixed, figure=figure, says=says, points=points
            )
        )
    return found


def _point(records: list[CompiledRecord], size: int, field: str) -> SweptPoint:
    """The least of each side: the best configuration, and the strongest baseline by this figure."""
    known = [(each.side == CANDIDATE, getattr(each, field)) for each in records if each.accepted]
    candidate, baseline = (
        min((float(value) for mine, value in known if mine is side and value is not None), default=None)
        for side in (True, False)
    )
    return SweptPoint(size=size, candidate=candidate, baseline=baseline)


def _verdict(point: SweptPoint) -> str:
    if point.candidate is None or point.baseline is None:
        return ""
    if point.candidate == point.baseline:
        return NO_DIFFERENCE
    return FASTER if point.candidate < point.baseline else SLOWER
