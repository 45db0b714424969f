"""From what was observed of a comparison to its receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernel_audit.contract import Audit
from kernel_audit.measure.choosing import Contest
from kernel_audit.measure.comparison import least_bytes
from kernel_audit.measure.prepared import Prepared
from kernel_audit.records import (
    FAILURE,
    HOST,
    RECEIPT,
    STALE_WHEN,
    STEP,
    Achieved,
    Ceiling,
    Failure,
    PeakMemory,
    Receipt,
    ReceiptDevice,
    ReceiptProgram,
    SessionScope,
    TimingVerdict,
    digest_of,
)
from kernel_audit.statistics import achieved, session_verdict


@dataclass(frozen=True)
class Observed:
    """A contest that has run."""

    contest: Contest


@dataclass(frozen=True)
class Written:
    """Writes the receipts of one measurement."""

    audit: Audit
    target: str
    device: ReceiptDevice
    scope: SessionScope
    sources: Mapping[str, str]
    run: str
    ceilings: list[Ceiling]

    def receipt(self, observed: Observed, number: int, of: int) -> Receipt:
        """The receipt of a comparison, or the record of its failure."""
        contest = observed.contest
        comparison, session = contest.ready.comparison, contest.session
        verdict = session_verdict(session) if session is not None else None
        failures = [*contest.checked.failures, *contest.lost]
        if session is None and not failures:
            failures = [_nothing(comparison.text)]
        timed = contest.chosen if session is not None and contest.chosen is not None else ()
        return Receipt(
            kind=RECEIPT if verdict is not None else FAILURE,
            run=self.run,
            number=number,
            of=of,
            audit=self.audit.name,
            contract=digest_of(self.audit),
            sources=dict(self.sources),
            part=comparison.part,
            step=self.audit.worth.step or "" if comparison.part == STEP else "",
            target=self.target,
            device=self.device,
            versions=dict(self.scope.versions),
            dims=comparison.dims,
            dtype=comparison.dtype,
            mode=comparison.mode,
            precision=self.audit.measured_precision,
            inputs=dict(contest.checked.inputs),
            programs=[_program(contest, each) for each in timed],
            candidates=[each.configuration for each in contest.ready.of("candidate")],
            baselines=[each.name for each in contest.ready.of("baseline")],
            checks=contest.checked.checks,
            compile_s={each.role: float(contest.checked.told[each.id]["compile_s"]) for each in timed},
            session=session,
            verdict=verdict,
            choices=contest.choices if session is not None else [],
            pilots=list(contest.pilots.values()) if session is not None else [],
            ablations=contest.ablations,
            ceilings=self.ceilings,
            achieved=self._achieved(contest, verdict),
            memory=[memory for each in timed if (memory := _memory(contest, each)) is not None],
            stale_when=list(STALE_WHEN),
            failures=failures,
        )

    def _achieved(self, contest: Contest, verdict: TimingVerdict | None) -> list[Achieved]:
        """By bytes of operands and results, and by the operations that the compiler counts in the baseline."""
        if verdict is None or contest.chosen is None:
            return []
        flops = contest.checked.told[contest.chosen[1].id].get("flops")
        return achieved(
            verdict,
            least_bytes=least_bytes(self.audit, contest.ready.comparison),
            flops=flops,
            dtype=contest.ready.comparison.dtype,
            ceilings=self.ceilings,
        )


def _program(contest: Contest, each: Prepared) -> ReceiptProgram:
    told = contest.checked.told[each.id]
    kernels: list[dict[str, Any]] = each.told.get("kernels") or []
    moved = [kernel.get("bytes_moved") for kernel in kernels]
    return ReceiptProgram(
        role=each.role,
        name=each.name,
        program=told["side"]["program"],
        exported=told["side"]["exported"],
        compiled=told.get("compiled", ""),
        kernels=[kernel["name"] for kernel in kernels],
        bytes_moved=sum(moved) if moved and None not in moved else None,
        configuration=each.configuration,
    )


def _memory(contest: Contest, each: Prepared) -> PeakMemory | None:
    told = contest.checked.told[each.id].get("memory") or {}
    if not told:
        return None
    return PeakMemory(
        role=each.role,
        arguments_bytes=told["arguments"],
        results_bytes=told["results"],
        temporary_bytes=told["temporary"],
        peak_bytes=sum(told.values()),
    )


def _nothing(text: str) -> Failure:
    return Failure(
        stage="time",
        role=HOST,
        name="",
        what="nothing was timed",
        expected="one program of each side that runs on the target",
        got=text,
    )
