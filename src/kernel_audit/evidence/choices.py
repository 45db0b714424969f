"""How the two sides of a receipt were chosen among several programs: by their pilots, every program in one of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernel_audit.records import Choice, PilotRatio, Receipt, Session, digest_of
from kernel_audit.statistics import pilot_ratio

RELATIVE = 1e-9
SIDES = ("candidate", "baseline")


def choice_contradictions(receipt: Receipt) -> Iterator[str]:
    """A side of several programs without a choice or a pilot of each; a choice that is not that of its pilots, and a pilot's
    ratio that is not that of its samples."""
    sessions = {each.id: each for each in receipt.pilots}
    if len(sessions) < len(receipt.pilots):
        yield "two pilots of one name"
    if receipt.session is not None and receipt.session.plan.seed in {each.plan.seed for each in receipt.pilots}:
        yield "the seed of its session is that of a pilot: no sample may be used twice"
    for role in SIDES if receipt.verdict is not None else ():
        choices = [each for each in receipt.choices if each.role == role]
        if len(choices) != 1:
            yield f"{len(choices)} choices of the {role}"
            continue
        yield from _missing(receipt, choices[0])
    for choice in receipt.choices:
        for pilot in choice.pilots:
            yield from _pilot(receipt, choice, pilot, sessions)
        if choice.pilots:
            best = min(choice.pilots, key=lambda each: math.inf if each.ratio is None else each.ratio)
            if best.name != choice.chosen:
                yield f"{choice.chosen!r} was chosen, and the pilots chose {best.name!r}"
        timed = next((each.name for each in receipt.programs if each.role == choice.role), choice.chosen)
        if timed != choice.chosen:
            yield f"{choice.chosen!r} was chosen as {choice.role}, and {timed!r} was timed"


def _missing(receipt: Receipt, choice: Choice) -> Iterator[str]:
    """Programs that did not fail before anything was timed, and that no pilot ran."""
    failed = {each.name for each in receipt.failures if each.role == choice.role and each.stage != "time"}
    tried = receipt.baselines if choice.role == "baseline" else receipt.candidates
    left = len(tried) - len(failed)
    if left > 1 and len({each.name for each in choice.pilots}) < left:
        yield f"{left} programs could be the {choice.role}, and {len(choice.pilots)} of them ran in a pilot"


def _pilot(receipt: Receipt, choice: Choice, pilot: PilotRatio, sessions: dict[str, Session]) -> Iterator[str]:
    if not pilot.session:
        yardstick = choice.role == "baseline" and pilot.name == choice.yardstick and pilot.ratio == 1.0
        if not yardstick and pilot.ratio is not None:
            yield f"the pilot of {pilot.name!r} has a ratio and no samples"
        return
    session = sessions.get(pilot.session)
    if session is None:
        yield f"the pilot of {pilot.name!r} is not there"
        return
    ratio, pairs = pilot_ratio(session)
    changed = pilot.session_digest and pilot.session_digest != digest_of(session)
    if changed or pairs != pilot.pairs or not _same(pilot.ratio, ratio):
        yield f"the pilot of {pilot.name!r} is not what its samples give"
    timed = {each.role: each for each in session.sides}
    if {role: each.name for role, each in timed.items()} != {"candidate": pilot.name, "baseline": choice.yardstick}:
        yield f"the pilot of {pilot.name!r} timed other programs"
        return
    for each in receipt.programs:
        left = timed["candidate"]
        same = (each.program, each.exported) == (left.program, left.exported)
        if each.role == choice.role and each.name == pilot.name and not same:
            yield f"the program {pilot.name!r} of its pilot is not the one that was timed"


def _same(said: float | None, found: float | None) -> bool:
    if said is None or found is None:
        return said is found
    return math.isclose(said, found, rel_tol=RELATIVE)
