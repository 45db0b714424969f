"""The plan of a session: fixed from the noise of a pilot before the first sample that counts, and not touched afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_audit.records import SessionPlan
from kernel_audit.statistics import RatioNoise, pairs_needed, ratio_noise

if TYPE_CHECKING:
    import numpy as np

PROCESSES = 10
WARM_UPS = 5
LEAST_PAIRS = 300
MOST_PAIRS = 6000
PILOT_PAIRS = 60
DIRECTION_PAIRS = 4  # of each process
DEFAULT_MARGIN = 0.05


@dataclass(frozen=True)
class Step:
    """One pair to come: which columns it goes to, which side first, which operands, and whether its results are looked at."""

    kind: str
    order: int
    inputs: int
    checked: bool


def plan_session(
    *,
    seed: int,
    input_sets: int,
    margin: float = DEFAULT_MARGIN,
    pilot: Sequence[np.ndarray] | None = None,
    pairs: int | None = None,
    most_pairs: int = MOST_PAIRS,
    processes: int = PROCESSES,
    warm_ups: int = WARM_UPS,
    direction_pairs: int = DIRECTION_PAIRS,
    fresh_every: int = 10,
    check_every: int = 8,
) -> SessionPlan:
    """How many pairs, in how many processes, and in what surroundings.

    `pilot` holds log ratios of the baseline against itself, so the number of pairs cannot depend on what the candidate does.
    With `pairs` given, the number is that one. ValueError without either, or for fewer warm-ups than five.
    """
    if warm_ups < WARM_UPS:
        raise ValueError(f"{WARM_UPS} warm-ups or more are needed, got {warm_ups!r}")
    noise, counted = (None, 0) if pilot is None else (ratio_noise(pilot), sum(len(each) for each in pilot))
    chosen = "given"
    if pairs is None:
        pairs, chosen = _pairs_for(noise, margin, processes, most_pairs)
    return SessionPlan(
        processes=processes,
        pairs=_multiple(pairs, processes),
        direction_pairs=direction_pairs,
        warm_ups=warm_ups,
        input_sets=input_sets,
        fresh_every=fresh_every,
        check_every=check_every,
        margin=margin,
        seed=seed,
        pilot_noise=noise.within if noise is not None else None,
        pilot_pairs=counted,
        chosen=chosen,
    )


def _pairs_for(noise: RatioNoise | None, margin: float, processes: int, most_pairs: int) -> tuple[int, str]:
    """The number that a pilot's noise asks for, within bounds, and a sentence about it."""
    if noise is None:
        raise ValueError("a pilot or a number of pairs is needed")
    wanted = pairs_needed(noise, margin, processes)
    asked = f"{wanted} pairs" if wanted else f"more processes than {processes}"
    text = f"the pilot's noise asks for {asked} to find {margin:.1%}; {LEAST_PAIRS} to {most_pairs} are allowed"
    return min(max(wanted or most_pairs, LEAST_PAIRS), most_pairs), text


def process_seed(plan: SessionPlan, index: int) -> int:
    """The seed of one process, from that of the plan."""
    import numpy as np

    return int(np.random.SeedSequence([plan.seed, index]).generate_state(1)[0])


def process_steps(plan: SessionPlan, seed: int) -> list[Step]:
    """All pairs of one process in the order in which they run: kinds mixed, the first side of each drawn at random.

    Of each kind one pair in `fresh_every` has operands of its own, and the results of one in `check_every`, and of those with
    fresh operands, are looked at. All is drawn before the process times anything.
    """
    import numpy as np

    draw = np.random.default_rng(seed)
    each = plan.pairs // plan.processes
    kinds = ["comparison"] * each + ["control"] * each + ["direction"] * plan.direction_pairs
    draw.shuffle(kinds)
    count = len(kinds)
    orders = draw.integers(0, 2, count).tolist()
    inputs = (draw.permutation(count) % max(1, plan.input_sets)).tolist()
    fresh = _chosen(draw, kinds, plan.fresh_every)
    checked = fresh | _chosen(draw, kinds, plan.check_every) if plan.check_every else set()
    for number, place in enumerate(sorted(fresh)):
        inputs[place] = -1 - number
    return [Step(kinds[place], orders[place], inputs[place], place in checked) for place in range(count)]


def _chosen(draw: np.random.Generator, kinds: list[str], every: int) -> set[int]:
    """Places of one pair in `every`, of each kind alike and one at least; none for an `every` of 0."""
    import numpy as np

    chosen: set[int] = set()
    for kind in sorted(set(kinds)) if every else ():
        places = np.array([place for place, each in enumerate(kinds) if each == kind])
        chosen.update(draw.permutation(places)[: max(1, round(len(places) / every))].tolist())
    return chosen


def _multiple(pairs: int, processes: int) -> int:
    """Rounded up, so that each process has the same number."""
    return -(-pairs // processes) * processes
