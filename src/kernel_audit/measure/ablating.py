"""Twins of the candidate with one optimisation off: checked and piloted after everything that decides.

They inform only: in the configuration that was chosen for the candidate, against the yardstick of its pilots and by their
protocol. One that fails, or is wrong, is named among the failures and left out.
"""

from __future__ import annotations

from collections.abc import Callable

from kernel_audit.errors import AuditError
from kernel_audit.measure.checking import Checking
from kernel_audit.measure.choosing import Contest, drawn_seed, lost_program, pilot_of
from kernel_audit.measure.prepared import Prepared
from kernel_audit.measure.sessions import Sessions, Timed
from kernel_audit.records import ABLATION, Session, SessionPlan
from kernel_audit.statistics import refusals

Progress = Callable[[str, int, int | None], None]
Owner = tuple[Contest, Prepared]


class Ablating:
    """Fills in `ablations` of contests that have a session, and adds to their `pilots` and `lost`."""

    def __init__(self, checking: Checking, sessions: Sessions, progress: Progress) -> None:
        self.checking, self.sessions, self.progress = checking, sessions, progress

    def run(self, contests: list[Contest]) -> None:
        """All twins of all contests, over the same processes. Whatever goes wrong with them is told and never raised."""
        timed: list[Timed] = []
        plans: dict[str, SessionPlan] = {}
        owners: dict[str, Owner] = {}
        for contest in (each for each in contests if each.session is not None):
            for twin in self._right(contest):
                each = contest.timed(twin, yardstick_of(contest))
                timed.append(each)
                plans[each.id] = contest.adjusted(self.sessions.pilot_plan(drawn_seed(), contest.sets), pilot=True)
                owners[each.id] = (contest, twin)
        found, lost = self._piloted(timed, plans)
        for name, (contest, twin) in owners.items():
            if name in found:
                _keep(contest, twin, found[name])
            else:
                contest.lost.append(lost_program(twin, lost[name]))

    def _right(self, contest: Contest) -> list[Prepared]:
        """The twins that are right on the device; the others are told."""
        twins = twins_of(contest)
        if twins and self.sessions.spent:
            contest.lost += [
                lost_program(each, "not checked, the time for the measurement was spent") for each in twins
            ]
            return []
        try:
            self.checking.check_programs(contest.ready, twins, contest.checked)
        except AuditError as error:
            contest.lost += [lost_program(each, f"not checked: {error.what}: {error.got}") for each in twins]
            return []
        return [each for each in twins if contest.checked.sound(each)]

    def _piloted(self, timed: list[Timed], plans: dict[str, SessionPlan]) -> tuple[dict[str, Session], dict[str, str]]:
        if not timed:
            return {}, {}
        try:
            return self.sessions.run(timed, plans, lambda done, total: self.progress("timing ablations", done, total))
        except AuditError as error:
            return {}, {each.id: f"{error.what}: {error.got}" for each in timed}


def twins_of(contest: Contest) -> list[Prepared]:
    """Those of the configuration that was chosen for the candidate."""
    assert contest.chosen is not None
    chosen = contest.chosen[0].configuration
    wanted = [(each.name, {**chosen, **each.changed}) for each in contest.audit.ablations]
    return [each for each in contest.ready.of(ABLATION) if (each.name.partition(" ")[0], each.configuration) in wanted]


def yardstick_of(contest: Contest) -> Prepared:
    """The first baseline that runs: what every pilot of the contest was held against."""
    return contest.sound("baseline")[0]


def _keep(contest: Contest, twin: Prepared, session: Session) -> None:
    """A twin's pilot; its ratio stands behind the candidate's own, unless its samples may not be used."""
    assert contest.chosen is not None
    yardstick, candidate = yardstick_of(contest).name, contest.chosen[0].name
    contest.pilots[f"{twin.name}|{yardstick}"] = session
    if codes := refusals(session):
        contest.lost.append(lost_program(twin, ", ".join(codes), "its samples are refused"))
        return
    if not contest.ablations:
        contest.ablations.append(pilot_of(candidate, contest.pilots.get(f"{candidate}|{yardstick}")))
    contest.ablations.append(pilot_of(twin.name, session))
