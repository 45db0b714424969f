"""The plan of a session: fixed from the noise of a pilot before the first sample that counts, and not touched afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernel_audit.records import SessionPlan
from kernel_audit.statistics import RatioNoise, Step, pairs_needed, process_seed, process_steps, ratio_noise

if TYPE_CHECKING:
    import numpy as np

PROCESSES = 10
WARM_UPS = 5
LEAST_PAIRS = 300
MOST_PAIRS = 6000
PILOT_PAIRS = 60
DIRECTION_PAIRS = 4  # of each process
DEFAULT_MARGIN = 0.05

__all__ = ["PILOT_PAIRS", "PROCESSES", "Step", "plan_session", "process_seed", "process_steps"]


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


def _multiple(pairs: int, processes: int) -> int:
    """Rounded up, so that each process has the same number."""
    return -(-pairs // processes) * processes
