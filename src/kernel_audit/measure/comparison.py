"""What is to be compared on a device, fixed before anything runs there. No JAX; safe in the parent."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.contract.step_operands import has_own_operands, put_to_step
from kernel_audit.fixture import seed_of
from kernel_audit.records import CPU, PROGRAM, STEP, DeviceDescription, dtype_text, known_devices
from kernel_audit.statistics import LARGE_BYTES
from kernel_audit.target.described import DescribedTarget

BYTES, WIDE = "bytes", "wide"  # of a reference: its exported program, and whether it calculates in float64
INPUTS = "inputs"  # step of a reference's job: the examples that a workload's `inputs` gave
CACHE_BYTES = {"gpu": 96 << 20, "tpu": 128 << 20, "cpu": 64 << 20}
MOST_SETS = 128
START_S, COMPILE_S, CALL_S = 8.0, 3.0, 1e-3  # of a process and a program, where nothing is known yet


@dataclass(frozen=True)
class Comparison:
    """One candidate against the baselines at one size, dtype and mode, alone or in the complete step."""

    part: str
    dims: dict[str, int]
    binding: dict[str, str]
    mode: dict[str, Any]
    configurations: tuple[dict[str, Any], ...]

    @property
    def dtype(self) -> str:
        """As ProgramPlan has it."""
        return dtype_text(self.binding)

    @property
    def text(self) -> str:
        """ "program float32 m=257,n=513"."""
        sizes = ",".join(f"{key}={value}" for key, value in self.dims.items())
        modes = "".join(f" {key}={value}" for key, value in self.mode.items())
        return f"{self.part} {self.dtype} {sizes}{modes}"


def audit_at(audit: Audit, dims: dict[str, int]) -> Audit:
    """The audit with other declared sizes, also of its step where that takes the audit's own operands."""
    workload = audit.workload
    if workload is not None and not has_own_operands(audit):
        workload = msgspec.structs.replace(workload, declared={name: dims[name] for name in workload.declared})
    changed = [msgspec.structs.replace(each, size=dims[each.name]) for each in audit.dimensions]
    return msgspec.structs.replace(audit, dimensions=changed, workload=workload)


def put_to(audit: Audit, comparison: Comparison) -> tuple[Audit, dict[str, int]]:
    """The audit with the operands that the programs of a comparison take, and the sizes of these."""
    return put_to_step(audit, comparison.dims) if comparison.part == STEP else (audit, comparison.dims)


def comparisons_of(audit: Audit, target: str, *, dims: dict[str, int] | None = None) -> list[Comparison]:
    """Every dtype and mode of an audit on `target` ("gpu:h200", or "cpu": every configuration): alone, then in its step.

    A step with operands of its own has one size, whatever the candidate's are: it is measured at the declared ones alone.
    """
    configurations = audit.configurations() if target == CPU else audit.configurations_for(target)
    swept = dims is not None and dims != audit.declared_dims
    parts = [PROGRAM, *([STEP] if audit.worth.step and not (swept and has_own_operands(audit)) else [])]
    return [
        Comparison(part, dims or audit.declared_dims, binding, mode, tuple(configurations))
        for part, mode, binding in itertools.product(parts, audit.mode_choices(), audit.dtype_bindings())
    ]


def operand_bytes(audit: Audit, comparison: Comparison) -> int:
    """Bytes of one set of operands."""
    audit, dims = put_to(audit, comparison)
    return sum(_bytes(each, dims, comparison) for each in audit.operands)


def least_bytes(audit: Audit, comparison: Comparison) -> int:
    """Operands and results, each once: what any program has to move."""
    put, dims = put_to(audit, comparison)
    return operand_bytes(audit, comparison) + sum(_bytes(each, dims, comparison) for each in put.results)


def input_sets(platform: str, one_set_bytes: int) -> int:
    """As many sets as are together twice as large as the last cache, two at least, and no more than MOST_SETS."""
    return min(MOST_SETS, max(2, math.ceil(2 * CACHE_BYTES[platform] / max(1, one_set_bytes))))


def is_large(audit: Audit, comparison: Comparison) -> bool:
    return operand_bytes(audit, comparison) >= LARGE_BYTES


def check_seed(family: str) -> int:
    """The seed of a family's operands on the target, the same in every process."""
    return seed_of("on the target", family) & 0x7FFFFFFFFFFFFFFF


def target_here(platform: str, device_kind: str, count: int) -> DescribedTarget:
    """The described target that a device of this kind is; one of its own where nothing is published."""
    for each in known_devices().values():
        if each.kind == platform and each.device_kind == device_kind:
            return DescribedTarget(each, _extent(platform, count), count)
    name = CPU if platform == CPU else f"{platform}:{'-'.join(device_kind.lower().split()) or 'unknown'}"
    nothing = DeviceDescription(
        name=name,
        kind=platform,
        device_kind=device_kind,
        cores=0,
        vmem_bytes=0,
        shared_bytes=0,
        hbm_bytes=0,
        hbm_bytes_per_s=0.0,
        clock_hz=0.0,
        tile=[],
        topologies=[],
        peak_flops={},
        sources={},
    )
    return DescribedTarget(nothing, _extent(platform, count), count)


def estimated_s(comparisons: list[Comparison], baselines: int, processes: int, pairs: int, ablations: int = 0) -> float:
    """Seconds that a measurement may take where nothing is known of its programs: for the plan, and for nothing else."""
    programs = sum(len(each.configurations) + baselines + ablations for each in comparisons)
    calls = sum(_calls(each, baselines, processes, pairs) for each in comparisons)
    calls += 4 * 60 * ablations * len(comparisons)
    starts = processes + 4 + (2 + len(comparisons) if ablations else 0)  # two of pilots, and a check of each comparison
    return starts * START_S + programs * COMPILE_S * 2 + processes * 3 * len(comparisons) + calls * CALL_S


def _calls(comparison: Comparison, baselines: int, processes: int, pairs: int) -> int:
    pilots = max(1, len(comparison.configurations) + baselines - 1)
    return 4 * (pairs + processes * 5 + pilots * 60)


def _extent(platform: str, count: int) -> str:
    return f"1x1x{count}" if platform == "gpu" else f"1x{count}" if platform == "tpu" else str(count)


def _bytes(operand: Any, dims: dict[str, int], comparison: Comparison) -> int:
    import ml_dtypes  # noqa: F401  (registers bfloat16)

    dtype = np.dtype(comparison.binding.get(operand.dtype, operand.dtype))
    return math.prod(operand.shape(dims)) * dtype.itemsize
