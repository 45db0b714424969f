"""How often the method is wrong when nothing changed, and how small a difference it finds: whole sessions in simulated worlds.

Each session goes through the runner and through `session_verdict`, as one on a device does; the same samples go through four
habitual rules.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from kernel_audit.records import CANNOT_TELL, FASTER, SLOWER, Session, TimingVerdict
from kernel_audit.statistics import session_verdict
from kernel_audit.statistics.habitual_rules import RULES
from kernel_audit.timing.plan import PROCESSES, plan_session
from kernel_audit.timing.simulated import Noise, simulate_session

MARGIN = 0.05
BASE_S = 1e-3


@dataclass(frozen=True)
class Kind:
    """A kind of noise, with the pairs and processes of its sessions."""

    noise: Noise
    pairs: int = 600
    processes: int = PROCESSES


KINDS = (
    Kind(Noise("independent", spread=0.005)),
    Kind(Noise("independent, wide", independent=0.3), pairs=300),
    Kind(Noise("carried from call to call", independent=0.07, carried=0.07, memory=0.9)),
    Kind(Noise("drift and waves", drift=0.3, waves=0.1)),
    Kind(Noise("heavy tails", tail_share=0.1, tail_index=1.5)),
    Kind(Noise("throttle steps", throttle=0.3, throttle_share=0.4)),
    Kind(Noise("order effect", after_other=0.05)),
    Kind(Noise("apart between processes", spread=0.02)),
    Kind(Noise("apart, many pairs", spread=0.02), pairs=3000),
    Kind(
        Noise(
            "all at once, coarse clock",
            carried=0.05,
            memory=0.9,
            spread=0.015,
            tail_share=0.05,
            drift=0.1,
            waves=0.05,
            throttle=0.2,
            throttle_share=0.3,
            after_other=0.03,
            step_s=BASE_S / 100,
        )
    ),
)


@dataclass
class Tally:
    """What became of the sessions of one kind. `rules` counts by rule and verdict, the method itself among them."""

    name: str
    pairs: int
    processes: int
    spread: float
    truth: float
    sessions: int = 0
    covered: int = 0
    robust_cvs: list[float] = field(default_factory=list)
    named_pairs: list[int] = field(default_factory=list)
    rules: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, session: Session, verdict: TimingVerdict) -> None:
        """Counts one session."""
        self.sessions += 1
        self.robust_cvs += [each.robust_cv for each in verdict.sides]
        if verdict.ratio is not None:
            self.covered += verdict.ratio.low <= self.truth <= (verdict.ratio.high or np.inf)
        if verdict.pairs_needed is not None:
            self.named_pairs.append(verdict.pairs_needed)
        self._count(METHOD, verdict.verdict)
        left, right = (
            np.array([each for process in session.processes for each in getattr(process.comparison, name)])
            for name in ("left_s", "right_s")
        )
        for name, rule in RULES.items():
            self._count(name, rule(left, right))

    def share(self, rule: str, *verdicts: str) -> float:
        """The share of the sessions that `rule` gave one of `verdicts`."""
        return sum(self.rules.get(rule, {}).get(each, 0) for each in verdicts) / max(1, self.sessions)

    def called(self, rule: str) -> float:
        """The share that `rule` called faster or slower."""
        return self.share(rule, FASTER, SLOWER)

    def _count(self, rule: str, verdict: str) -> None:
        counts = self.rules.setdefault(rule, {})
        counts[verdict] = counts.get(verdict, 0) + 1


METHOD = "this method"
RULE_NAMES = (METHOD, *RULES)


def tally(kind: Kind, sessions: int, *, ratio: float = 1.0, first_seed: int = 0) -> Tally:
    """`sessions` sessions of a kind in which the candidate takes `ratio` of the baseline's time."""
    found = Tally(kind.noise.name, kind.pairs, kind.processes, kind.noise.spread, ratio)
    for session, verdict in _sessions(kind, range(first_seed, first_seed + sessions), ratio):
        found.add(session, verdict)
    return found


def merged(parts: Iterable[Tally]) -> Tally:
    """Tallies of one kind as one."""
    whole, *rest = parts
    for part in rest:
        whole.sessions += part.sessions
        whole.covered += part.covered
        whole.robust_cvs += part.robust_cvs
        whole.named_pairs += part.named_pairs
        for rule, counts in part.rules.items():
            mine = whole.rules.setdefault(rule, {})
            for verdict, count in counts.items():
                mine[verdict] = mine.get(verdict, 0) + count
    return whole


def tally_named(kind: Kind, sessions: int, *, ratio: float, first_seed: int = 0) -> tuple[Tally, Tally]:
    """Sessions of a kind, and for each that cannot tell a new one with the number of pairs that it named."""
    first = Tally(kind.noise.name, kind.pairs, kind.processes, kind.noise.spread, ratio)
    second = Tally(f"{kind.noise.name}, as named", 0, kind.processes, kind.noise.spread, ratio)
    for number, (session, verdict) in enumerate(_sessions(kind, range(first_seed, first_seed + sessions), ratio)):
        first.add(session, verdict)
        if verdict.verdict == CANNOT_TELL and verdict.pairs_needed is not None:
            again = dataclasses.replace(kind, pairs=verdict.pairs_needed)
            for named in _sessions(again, [1_000_000 + first_seed + number], ratio):
                second.add(*named)
    second.pairs = int(np.median(first.named_pairs)) if first.named_pairs else 0
    return first, second


def _sessions(kind: Kind, seeds: Iterable[int], ratio: float) -> Iterator[tuple[Session, TimingVerdict]]:
    for number in seeds:
        seed = zlib.crc32(f"{kind.noise.name}, {number}".encode())
        plan = plan_session(
            seed=seed,
            input_sets=1,
            pairs=kind.pairs,
            processes=kind.processes,
            margin=MARGIN,
            fresh_every=0,
        )
        session = simulate_session(kind.noise, plan, ratio=ratio, base_s=BASE_S)
        yield session, session_verdict(session)
