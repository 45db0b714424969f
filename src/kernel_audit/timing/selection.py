"""The best of several on each side: chosen on pilots, confirmed on fresh samples, so that choosing buys no luck."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_audit.records import Choice, PilotRatio, Session, SessionPlan
from kernel_audit.statistics import pilot_ratio

Run = Callable[[str, str, SessionPlan], Session]


@dataclass(frozen=True)
class Selected:
    """The confirming session, and how its two programs were chosen; `pilots` holds the sessions that were chosen on."""

    session: Session
    choices: tuple[Choice, Choice]
    pilots: tuple[Session, ...]


def select_and_confirm(
    candidates: Sequence[str], baselines: Sequence[str], run: Run, pilot: SessionPlan, plan: SessionPlan
) -> Selected:
    """Every program in a pilot against the first baseline; the quickest of each side in a session of its own.

    `run(candidate, baseline, plan)` times one comparison. A side of one program needs no pilot. `plan` must have another seed
    than `pilot`: no sample is used twice, and no order repeats. ValueError otherwise, and for an empty side.
    """
    if not candidates or not baselines or plan.seed == pilot.seed:
        raise ValueError("both sides need a program, and the session another seed than the pilots")
    yardstick, pilots = baselines[0], []
    chosen = []
    for role, names in (("candidate", candidates), ("baseline", baselines)):
        ratios = []
        for name in names if len(names) > 1 else ():
            if name == yardstick and role == "baseline":
                ratios.append(PilotRatio(name=name, ratio=1.0, pairs=0, session=""))
                continue
            session = run(name, yardstick, pilot)
            pilots.append(session)
            ratios.append(_ratio(name, session))
        best = min(ratios, key=_by_ratio).name if ratios else names[0]
        chosen.append(Choice(role=role, chosen=best, yardstick=yardstick, pilots=ratios))
    session = run(chosen[0].chosen, chosen[1].chosen, plan)
    return Selected(session, (chosen[0], chosen[1]), tuple(pilots))


def _ratio(name: str, session: Session) -> PilotRatio:
    ratio, pairs = pilot_ratio(session)
    return PilotRatio(name=name, ratio=ratio, pairs=pairs, session=session.id)


def _by_ratio(pilot: PilotRatio) -> float:
    """A program whose pilot gave nothing is chosen last."""
    return math.inf if pilot.ratio is None else pilot.ratio
