"""A GPU that is not there: it answers the jobs of a measurement as one would, with times from a simulated world.

It runs nothing of the candidate. Its results are the oracle's, its times are known to the test beforehand, and no measurement
of anything: receipts that it makes are for tests alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16)
import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.fixture import originals, represented
from kernel_audit.measure.comparison import check_seed
from kernel_audit.program.packed import unpack
from kernel_audit.records import Ceiling, Fixture, SessionPlan, SessionScope, TimedSide, digest_bytes
from kernel_audit.statistics import ceiling_per_s
from kernel_audit.timing import Noise, SimulatedJudge, World, process_seed, run_process
from kernel_audit.timing.simulated import Stage, plain_sides
from kernel_audit.worker import Job, JobResult
from kernel_audit.worker.seal import new_key, sealer
from kernel_audit.worker.steps import STEPS_FOLDER, Steps

KIND = "NVIDIA H200"
BASE_S = 1e-3


@dataclass
class FakeDevice:
    """`ratios` gives a candidate's time as a multiple of the first baseline's by a part of its name, `failing` are names of
    programs that fail, `wrong` of those whose results differ, `jobs` what was asked. `dies`: in these steps the process
    ends. `breaks`: these programs fail, and whatever comes after them in their process does, too. `errors`: how far results
    are from the reference, by a part of the program's name; 1.0 is as far as zeros would be."""

    ratios: dict[str, float] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    dies: tuple[str, ...] = ()
    errors: dict[str, float] = field(default_factory=dict)
    breaks: tuple[str, ...] = ()
    seconds: Callable[[str], None] = lambda name: None
    jobs: list[str] = field(default_factory=list)

    def run(self, job: Job) -> JobResult:
        """Answers one job."""
        name = job.function.rpartition(":")[2]
        self.jobs.append(name)
        self.seconds(name)
        (job.folder / STEPS_FOLDER).mkdir(parents=True)
        told = _Told(job.folder)
        try:
            value = getattr(self, f"_{name}")(told, **job.arguments)
        except Died:
            error = {"type": "Crashed", "message": "the worker was ended by signal 11", "where": ""}
            return JobResult("crashed", steps=told.values, step_in_progress=told.open, error=error)
        return JobResult("finished", value=value, steps=told.values)

    def _look(self, told: Any, *, target: str) -> dict[str, Any]:
        return {"scope": msgspec.to_builtins(scope()), "driver": "570.1"}

    def _ceilings(self, told: Any, *, target: str) -> list[dict[str, Any]]:
        samples = [5e-4, 5.1e-4, 5.2e-4]
        work = {"copy": 2.0 * (1 << 30), "matrix-product": 2.0 * 8192**3}
        return [
            msgspec.to_builtins(
                Ceiling(kind=kind, dtype="float32", work=each, samples_s=samples, per_s=ceiling_per_s(each, samples))
            )
            for kind, each in work.items()
        ]

    def _check_programs(
        self,
        told: Any,
        *,
        target: str,
        audit: dict[str, Any],
        dims: dict[str, int],
        binding: dict[str, str],
        programs: list[dict[str, Any]],
        fixtures: list[str],
        **_: Any,
    ) -> None:
        contract = msgspec.convert(audit, Audit)
        results = [_of(each, dims, binding) for each in contract.results]
        told.begin("inputs")
        told.finish("inputs", {name: digest_bytes(name.encode()) for name in [*fixtures, "normal-0"]})
        broken = False
        for each in programs:
            told.begin(each["id"])
            if each["name"] in self.dies:
                raise Died
            broken = broken or each["name"] in self.breaks
            if broken or each["name"] in self.failing:
                got = "XlaRuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS" if broken else "XlaRuntimeError: INTERNAL"
                told.finish(each["id"], {"failed": {"stage": "run", "got": got}})
                continue
            sidecar, _bytes = unpack(Path(each["place"]).read_bytes())
            exported = digest_bytes(Path(each["place"]).read_bytes())
            side = TimedSide(role=each["role"], name=each["name"], program=sidecar.digest, exported=exported)
            arrays = {
                f"{name}.{place}": leaf
                for name in fixtures
                for place, leaf in enumerate(_right(contract, dims, binding, name))
            }
            if each["name"] in self.wrong:
                arrays = {name: leaf + np.ones_like(leaf) for name, leaf in arrays.items()}
            value = {
                "compile_s": 1.5,
                "side": msgspec.to_builtins(side),
                "compiled": exported,
                "memory": {"arguments": 10, "results": 5, "temporary": 1},
                "flops": 1e9,
                "shapes": results,
                "errors": [
                    [next((off for part, off in self.errors.items() if part in each["name"]), 0.0)] * len(results)
                ],
                "scales": [[1.0] * len(results)],
            }
            told.finish(each["id"], value, arrays)

    def _time_comparisons(
        self, told: Any, *, comparisons: list[dict[str, Any]], index: int, target: str, busy_share: float
    ) -> None:
        for each in comparisons:
            told.begin(each["id"])
            plan = msgspec.convert(each["plan"], SessionPlan)
            told.finish(each["id"], self._timed(each, plan, index))

    def _timed(self, each: dict[str, Any], plan: SessionPlan, index: int) -> dict[str, Any]:
        names = each["names"]
        base = BASE_S * self._factor(names["baseline"])
        noise = Noise("quiet", independent=0.01, spread=0.001)
        calls = 4 * (plan.pairs // plan.processes) + 3 * plan.direction_pairs + 5 * plan.warm_ups + 50
        world = World(noise, calls, process_seed(plan, index))
        sides = plain_sides(world, base, self._factor(names["candidate"]) / self._factor(names["baseline"]))
        process = run_process(sides, Stage().operands(world), SimulatedJudge(), world, plan, index)
        records = []
        for role in ("candidate", "baseline"):
            data = Path(each["programs"][role]).read_bytes()
            floor_s = each["floors_s"][role]
            records.append(
                TimedSide(
                    role=role,
                    name=names[role],
                    program=unpack(data)[0].digest,
                    exported=digest_bytes(data),
                    floor_s=floor_s,
                )
            )
        clock = msgspec.to_builtins(world.record())
        return {
            "process": msgspec.to_builtins(process),
            "scope": msgspec.to_builtins(scope()),
            "clock": clock,
            "second_clock": clock,
            "sides": [msgspec.to_builtins(record) for record in records],
        }

    def _factor(self, name: str) -> float:
        return next((ratio for part, ratio in self.ratios.items() if part in name), 1.0)


def scope() -> SessionScope:
    """What an H200 would say of itself."""
    return SessionScope(
        platform="gpu", device_kind=KIND, device_count=1, claims="target", versions={"jax": "0.11.2", "runtime": "fake"}
    )


class Died(Exception):
    """The process of the job ended."""


class _Told:
    """Steps, as files and as values."""

    def __init__(self, folder: Path) -> None:
        self._steps = Steps(folder, sealer(new_key()))
        self.values: dict[str, Any] = {}
        self.open: str | None = None

    def begin(self, step: str) -> None:
        self.open = step
        self._steps.begin(step)

    def finish(self, step: str, value: Any, arrays: dict[str, np.ndarray] | None = None) -> None:
        self._steps.finish(step, value, arrays)
        self.values[step], self.open = value, None


def _of(operand: Any, dims: dict[str, int], binding: dict[str, str]) -> list[Any]:
    return [list(operand.shape(dims)), binding.get(operand.dtype, operand.dtype)]


def _right(audit: Audit, dims: dict[str, int], binding: dict[str, str], family: str) -> list[np.ndarray]:
    """What the oracle says of a family's operands, in the dtype of the results."""
    function = audit.oracle.function
    oracle = getattr(importlib.import_module(function.module), function.name)
    fixture = Fixture(name=family, dims=dims, family=family, seed=check_seed(family))
    stored = represented(audit, originals(audit, fixture), binding)
    wide = [each.astype(audit.precision.oracle) for each in stored.values()]
    with np.errstate(all="ignore"):
        found = oracle(*wide)
        leaves = found if isinstance(found, tuple) else (found,)
        return [
            np.asarray(leaf).astype(_of(each, dims, binding)[1])
            for leaf, each in zip(leaves, audit.results, strict=True)
        ]
