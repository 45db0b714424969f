"""Real sessions of CPU-jitted programs whose truth is known: equal ones, and ones with a calibrated extra of work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_audit.errors import EnvironmentFault
from kernel_audit.records import Session, SessionPlan
from kernel_audit.statistics import session_verdict
from kernel_audit.timing.guards import BUSY_SHARE
from kernel_audit.timing.plan import plan_session
from kernel_audit.timing.worker_session import PRELOAD, Timing, pilot, run_session
from kernel_audit.worker import Job, Pool, read_arrays

STEPS = 1000
INPUT_SETS = 8
PROCESSES = 8
MOST_PAIRS = 600
TASK = {"function": "kernel_audit.timing.extra_work:task"}
STUDY_PRELOAD = (*PRELOAD, "kernel_audit.timing.extra_work_job")


@dataclass
class Bench:
    """Programs of several lengths as files, and what one more step and the rest cost on this machine."""

    pool: Pool
    folder: Path
    busy_share: float = BUSY_SHARE
    fixed_share: float = 0.0

    def __post_init__(self) -> None:
        self._places: dict[int, Path] = {}
        self._count = 0

    def program(self, length: int) -> Path:
        """The bytes of a chain of `length` steps, made once."""
        if length not in self._places:
            made = self._run(
                Job("kernel_audit.timing.extra_work_job:export_chains", {"lengths": [length]}, self._new(), 120.0)
            )
            self._places[length] = self.folder / f"chain-{length}.program"
            self._places[length].write_bytes(read_arrays(made, str(length))["bytes"].tobytes())
        return self._places[length]

    def calibrate(self) -> float:
        """The part of a call that no step accounts for, as a share of STEPS steps: from a session of four times as many.

        With a + b n seconds for n steps, the ratio r of 4n to n steps gives a / (a + b n) = (4 - r) / 3.
        """
        session = self.session(4 * STEPS, self.plan(7, MOST_PAIRS))
        ratio = session_verdict(session).ratio
        if ratio is None:
            raise EnvironmentFault("the calibration gave no ratio", stage="bench", where="chains of two lengths")
        self.fixed_share = min(max((4 - ratio.ratio) / 3, 0.0), 1.0)
        return self.fixed_share

    def truth(self, length: int) -> float:
        """The true ratio of a chain of `length` steps to one of STEPS."""
        return self.fixed_share + (1 - self.fixed_share) * length / STEPS

    def plan(self, seed: int, pairs: int) -> SessionPlan:
        """A plan of the study."""
        return plan_session(seed=seed, input_sets=INPUT_SETS, pairs=pairs, processes=PROCESSES)

    def piloted_plan(self, seed: int) -> SessionPlan:
        """A plan whose number of pairs comes from a pilot of this machine's noise."""
        logs = pilot(self.pool, self._new(), self._timing(STEPS), seed=seed, input_sets=INPUT_SETS)
        return plan_session(seed=seed, input_sets=INPUT_SETS, pilot=logs, processes=PROCESSES, most_pairs=MOST_PAIRS)

    def session(self, length: int, plan: SessionPlan) -> Session:
        """A whole session of a chain of `length` steps against one of STEPS."""
        return run_session(self.pool, self._new(), self._timing(length), plan)

    def _timing(self, length: int) -> Timing:
        return Timing(
            programs={"candidate": self.program(length), "baseline": self.program(STEPS)},
            names={"candidate": f"{length} steps", "baseline": f"{STEPS} steps"},
            task=TASK,
            busy_share=self.busy_share,
        )

    def _new(self) -> Path:
        self._count += 1
        return self.folder / f"job-{self._count}"

    def _run(self, job: Job) -> Path:
        result = self.pool.run(job)
        if result.outcome != "finished":
            raise EnvironmentFault(
                "the programs of the study cannot be made", stage="bench", where=job.function, got=str(result.error)
            )
        return job.folder
