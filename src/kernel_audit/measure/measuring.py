"""A whole measurement: look, prepare, ceilings, check, choose on pilots, confirm, and a receipt for every comparison.

Everything that may be refused is refused before anything is allocated on the device. What fails there is in the receipts;
nothing is repeated, and nothing is simulated instead. No JAX in this process.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.contract import Audit
from kernel_audit.errors import EnvironmentFault
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.measure.ablating import Ablating
from kernel_audit.measure.checking import Checked, Checking
from kernel_audit.measure.choosing import Choosing, Contest
from kernel_audit.measure.comparison import Comparison, comparisons_of, target_here
from kernel_audit.measure.prepared import Preparing, Ready
from kernel_audit.measure.receipt import Observed, Written
from kernel_audit.measure.sessions import MEMORY_BYTES, Sessions, how_it_ended
from kernel_audit.records import Ceiling, Receipt, ReceiptDevice, SessionScope
from kernel_audit.target.described import DescribedTarget
from kernel_audit.timing.guards import BUSY_SHARE
from kernel_audit.timing.plan import PROCESSES
from kernel_audit.worker import Job

JOBS = "kernel_audit.measure.device_job"
Progress = Callable[[str, int, int | None], None]
TARGETS = ("tpu", "gpu", "cpu")


@dataclass(frozen=True)
class Amount:
    """How much is measured. `pairs` None: as many as the pilot's noise asks for, `most_pairs` at most."""

    processes: int = PROCESSES
    pairs: int | None = None
    most_pairs: int = 6000
    busy_share: float = BUSY_SHARE


@dataclass
class Measuring:
    """`device` runs jobs on the target, `host` those that import the audit's files and those of the oracle.

    `sources` are the digests of the judged files by label.
    """

    audit: Audit
    target: str
    device: Any
    host: Any
    work: Path
    roots: list[Path]
    sources: Mapping[str, str]
    limits: Limits = field(default_factory=lambda: Limits(300.0))
    amount: Amount = field(default_factory=Amount)
    progress: Progress = lambda what, done, total: None
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    ceilings: list[Ceiling] | None = None
    until_s: float = math.inf

    def look(self) -> tuple[DescribedTarget, ReceiptDevice, SessionScope]:
        """What is here. Raises TargetError where it is not the target; nothing was allocated."""
        told = self._device_job("look", {"target": self.target})
        scope = msgspec.convert(told["scope"], SessionScope)
        device = ReceiptDevice(
            platform=scope.platform,
            kind=scope.device_kind,
            count=scope.device_count,
            driver=told["driver"],
            runtime=scope.versions.get("runtime", ""),
        )
        return target_here(scope.platform, scope.device_kind, scope.device_count), device, scope

    def measure(
        self, sizes: list[dict[str, int]] | None = None, *, only: Callable[[Comparison], bool] = lambda each: True
    ) -> list[Receipt]:
        """A receipt for every comparison of the audit that `only` is true of, at its declared sizes or at `sizes`.

        `until_s`, on the monotonic clock, is when no further process is started.
        """
        target, device, scope = self.look()
        comparisons = [
            each
            for dims in sizes or [self.audit.declared_dims]
            for each in comparisons_of(self.audit, target.name, dims=dims)
            if only(each)
        ]
        self.progress("exporting programs for the target", 0, None)
        preparing = Preparing(self.host, self.work, self.roots, self.limits, self.audit)
        ready = preparing.ready(target, comparisons)
        if self.ceilings is None:
            self.progress("measuring what the device reaches", 0, None)
            self.ceilings = msgspec.convert(self._device_job("ceilings", {"target": self.target}), list[Ceiling])
        checking = Checking(self.device, self.host, self.work, self.roots, self.limits, self.audit, self.target)
        contests = [self._contest(each) for each in self._checked(checking, ready)]
        sessions = Sessions(
            self.device,
            self.work,
            self.target,
            deadline_s=self.limits.deadline_s,
            busy_share=self.amount.busy_share,
            until_s=self.until_s,
        )
        Choosing(sessions, self.amount, self.progress).run(contests)
        Ablating(checking, sessions, self.progress).run(contests)
        written = Written(self.audit, target.name, device, scope, dict(self.sources), self.run_id, self.ceilings)
        return [written.receipt(Observed(each), number, len(contests)) for number, each in enumerate(contests, start=1)]

    def _checked(self, checking: Checking, ready: list[Ready]) -> list[tuple[Ready, Checked]]:
        found = []
        for number, each in enumerate(ready):
            self.progress("checking results on the device", number, len(ready))
            found.append((each, checking.check(each)))
        return found

    def _contest(self, pair: tuple[Ready, Checked]) -> Contest:
        ready, checked = pair
        assert self.ceilings is not None
        return Contest(self.audit, self.target, ready, checked, self.ceilings)

    def _device_job(self, name: str, arguments: dict[str, Any]) -> Any:
        folder = self.work / f"{name}-{secrets.token_hex(4)}"
        result = self.device.run(
            Job(f"{JOBS}:{name}", arguments, folder, deadline_s=self.limits.deadline_s, memory_bytes=MEMORY_BYTES)
        )
        if (error := result.audit_error()) is not None:
            raise error
        if result.outcome != "finished":
            raise EnvironmentFault(
                "the device could not be used",
                stage="measure",
                where=name,
                expected="a process that runs plain programs on it",
                got=how_it_ended(result),
            )
        return result.value


def planned(audit: Audit, target: str, sizes: list[dict[str, int]] | None = None) -> list[Comparison]:
    """What would be compared on a target of this name, or of this kind."""
    return [each for dims in sizes or [audit.declared_dims] for each in comparisons_of(audit, target, dims=dims)]
