"""The pairs of a session, from its plan alone: who measures runs them, and whoever reads the record compares it with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_audit.records.timing import SessionPlan

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Step:
    """One pair to come: which columns it goes to, which side first, which operands, and whether its results are looked at."""

    kind: str
    order: int
    inputs: int
    checked: bool


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
