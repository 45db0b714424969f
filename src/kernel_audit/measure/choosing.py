"""The best of each side on pilots, then a session of its own for the two: several comparisons over the same processes."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from kernel_audit.contract import Audit
from kernel_audit.measure.checking import Checked
from kernel_audit.measure.comparison import input_sets, is_large, least_bytes, operand_bytes, put_to
from kernel_audit.measure.prepared import Prepared, Ready
from kernel_audit.measure.sessions import Sessions, Timed, noise_of
from kernel_audit.records import STEP, Ceiling, Choice, Failure, PilotRatio, Session, SessionPlan, digest_of
from kernel_audit.statistics import least_s, pilot_ratio
from kernel_audit.timing.plan import plan_session

if TYPE_CHECKING:
    from kernel_audit.measure.measuring import Amount

LARGE_FRESH_EVERY, LARGE_CHECK_EVERY = 30, 30
HEAVY_STEP_BYTES = 32 << 20  # a step of this size takes the host seconds in float64
Progress = Callable[[str, int, int | None], None]


@dataclass
class Contest:
    """A comparison on its way to a receipt."""

    audit: Audit
    target: str
    ready: Ready
    checked: Checked
    ceilings: list[Ceiling]
    pilots: dict[str, Session] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    session: Session | None = None
    chosen: tuple[Prepared, Prepared] | None = None
    ablations: list[PilotRatio] = field(default_factory=list)
    lost: list[Failure] = field(default_factory=list)

    def sound(self, role: str) -> list[Prepared]:
        return [each for each in self.ready.of(role) if self.checked.sound(each)]

    @property
    def sets(self) -> int:
        return input_sets(self.target, operand_bytes(self.audit, self.ready.comparison))

    @property
    def heavy(self) -> bool:
        """Whether its operands take long to make, or its reference long to calculate."""
        comparison = self.ready.comparison
        whole = comparison.part == STEP and operand_bytes(self.audit, comparison) >= HEAVY_STEP_BYTES
        return whole or is_large(self.audit, comparison)

    def floor_s(self) -> float:
        """The least time that its bytes allow; 0 where they may lie in a cache, or no copy was measured."""
        comparison = self.ready.comparison
        return least_s(least_bytes(self.audit, comparison), operand_bytes(self.audit, comparison), self.ceilings)

    def timed(self, candidate: Prepared, baseline: Prepared) -> Timed:
        assert candidate.place is not None and baseline.place is not None
        comparison = self.ready.comparison
        audit, dims = put_to(self.audit, comparison)
        return Timed(
            id=f"{comparison.text}: {candidate.name} against {baseline.name}",
            programs={"candidate": candidate.place, "baseline": baseline.place},
            names={"candidate": candidate.name, "baseline": baseline.name},
            task={
                "audit": msgspec.to_builtins(audit),
                "dims": dims,
                "binding": comparison.binding,
                "reference": self.ready.reference,
                "budgets": self.checked.budgets,
                "large": is_large(self.audit, comparison),
            },
            floors_s={"candidate": self.floor_s(), "baseline": self.floor_s()},
        )

    def adjusted(self, plan: SessionPlan, *, pilot: bool = False) -> SessionPlan:
        """What is heavy is made anew, and judged, more seldom; in a pilot, which carries nothing, not at all."""
        if not self.heavy:
            return plan
        if pilot:
            return msgspec.structs.replace(plan, fresh_every=0, check_every=0)
        return msgspec.structs.replace(plan, fresh_every=LARGE_FRESH_EVERY, check_every=LARGE_CHECK_EVERY)


class Choosing:
    """Pilots and confirming sessions of all contests."""

    def __init__(self, sessions: Sessions, amount: Amount, progress: Progress) -> None:
        self.sessions, self.amount, self.progress = sessions, amount, progress

    def run(self, contests: list[Contest]) -> None:
        """Fills in `pilots`, `choices`, `chosen`, `session` and `lost`; a contest with a side that failed stays without."""
        open_ = [each for each in contests if each.sound("candidate") and each.sound("baseline")]
        self._pilot(open_)
        self._confirm([each for each in open_ if each.chosen is not None])

    def _pilot(self, contests: list[Contest]) -> None:
        timed, plans, owners = [], {}, {}
        for contest in contests:
            for pair in _pilot_pairs(contest):
                each = contest.timed(*pair)
                timed.append(each)
                plans[each.id] = contest.adjusted(self.sessions.pilot_plan(drawn_seed(), contest.sets), pilot=True)
                owners[each.id] = (contest, pair)
        found, lost = self._group("choosing on pilots", timed, plans)
        for name, session in found.items():
            contest, pair = owners[name]
            contest.pilots[f"{pair[0].name}|{pair[1].name}"] = session
        for name, text in lost.items():
            contest, pair = owners[name]
            contest.lost.append(lost_program(pair[0] if pair[1] is contest.sound("baseline")[0] else pair[1], text))
        for contest in contests:
            _choose(contest)

    def _confirm(self, contests: list[Contest]) -> None:
        timed, plans, owners = [], {}, {}
        for contest in contests:
            assert contest.chosen is not None
            each = contest.timed(*contest.chosen)
            timed.append(each)
            noise = [log for session in contest.pilots.values() for log in noise_of(session)]
            plan = plan_session(
                seed=drawn_seed(),
                input_sets=contest.sets,
                margin=contest.audit.worth.session_margin,
                pilot=noise,
                pairs=self.amount.pairs,
                most_pairs=self.amount.most_pairs,
                processes=self.amount.processes,
            )
            plans[each.id] = contest.adjusted(plan)
            owners[each.id] = contest
        found, lost = self._group("timing", timed, plans)
        for name, contest in owners.items():
            contest.session = found.get(name)
            if name in lost:
                contest.lost.append(lost_program(contest.chosen[0], lost[name]))  # type: ignore[index]

    def _group(
        self, what: str, timed: list[Timed], plans: dict[str, SessionPlan]
    ) -> tuple[dict[str, Session], dict[str, str]]:
        if not timed:
            return {}, {}
        return self.sessions.run(timed, plans, lambda done, total: self.progress(what, done, total))


def _pilot_pairs(contest: Contest) -> list[tuple[Prepared, Prepared]]:
    """Each candidate against the first baseline, and every other baseline against it: one pair at least, for the noise."""
    candidates, baselines = contest.sound("candidate"), contest.sound("baseline")
    yardstick = baselines[0]
    return [*((each, yardstick) for each in candidates), *((each, yardstick) for each in baselines[1:])]


def _choose(contest: Contest) -> None:
    """The quickest of each side by its pilots. A side of one program is chosen without."""
    candidates, baselines = contest.sound("candidate"), contest.sound("baseline")
    yardstick, chosen = baselines[0], []
    for role, programs in (("candidate", candidates), ("baseline", baselines)):
        ratios = []
        for each in programs if len(programs) > 1 else ():
            if each is yardstick:
                ratios.append(PilotRatio(name=each.name, ratio=1.0, pairs=0, session=""))
                continue
            ratios.append(pilot_of(each.name, contest.pilots.get(f"{each.name}|{yardstick.name}")))
        best = min(ratios, key=_by_ratio).name if ratios else programs[0].name
        contest.choices.append(Choice(role=role, chosen=best, yardstick=yardstick.name, pilots=ratios))
        chosen.append(next(each for each in programs if each.name == best))
    if contest.pilots:
        contest.chosen = (chosen[0], chosen[1])


def pilot_of(name: str, session: Session | None) -> PilotRatio:
    """What a pilot says of a program; without samples, nothing."""
    if session is None:
        return PilotRatio(name=name, ratio=None, pairs=0, session="")
    ratio, pairs = pilot_ratio(session)
    return PilotRatio(name=name, ratio=ratio, pairs=pairs, session=session.id, session_digest=digest_of(session))


def _by_ratio(pilot: PilotRatio) -> float:
    return math.inf if pilot.ratio is None else pilot.ratio


def drawn_seed() -> int:
    """A seed of its own for each session."""
    return secrets.randbits(48)


def lost_program(program: Prepared, text: str, what: str = "no process of the session gave samples") -> Failure:
    """The failure of a program that was to be timed."""
    return Failure(
        stage="time",
        role=program.role,
        name=program.name,
        what=what,
        expected="every process to run all its pairs",
        got=text[:600],
    )
