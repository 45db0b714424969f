"""Where along a sweep a candidate begins or ceases to be faster: intervals between points that could tell, never a point."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from kernel_audit.records.timing import FASTER, NO_DIFFERENCE, SLOWER


@dataclass(frozen=True)
class Crossing:
    """Between `low` and `high`, two neighbouring sizes that could tell, the candidate becomes faster or ceases to be."""

    low: float
    high: float
    becomes_faster: bool


@dataclass(frozen=True)
class Crossover:
    """All crossings of a sweep in one dimension, in order of size. `told` and `untold` are the sizes that could tell or not."""

    crossings: tuple[Crossing, ...]
    told: tuple[float, ...]
    untold: tuple[float, ...]
    first_faster: bool | None

    def text(self, name: str, better: str = "faster") -> str:
        """A sentence: "faster from N between 1024 and 4096", or "none in range" with what holds throughout.

        `better` is the word for what was compared.
        """
        if not self.told:
            return f"no size of {name} could tell"
        if not self.crossings:
            throughout = better if self.first_faster else f"not {better}"
            return f"none in range: {throughout} from {name} = {self.told[0]:g} to {self.told[-1]:g}"
        said = []
        for each in self.crossings:
            word = f"{better} from" if each.becomes_faster else f"no longer {better} from"
            said.append(f"{word} {name} between {each.low:g} and {each.high:g}")
        return "; ".join(said)


def crossover(points: Iterable[tuple[float, str]]) -> Crossover:
    """The crossings of (size, verdict) points, in any order.

    *Faster* stands on one side, *slower* and *no difference shown* on the other; points that cannot tell, or were refused, only
    widen the interval around them. ValueError for a size that comes twice.
    """
    ordered = sorted(points)
    sizes = [size for size, _ in ordered]
    if len(set(sizes)) != len(sizes):
        raise ValueError(f"every size is measured once, got {sizes}")
    told = [(size, verdict == FASTER) for size, verdict in ordered if verdict in (FASTER, SLOWER, NO_DIFFERENCE)]
    crossings = tuple(
        Crossing(low, high, faster) for (low, before), (high, faster) in itertools.pairwise(told) if before != faster
    )
    known = tuple(size for size, _ in told)
    untold = tuple(size for size in sizes if size not in known)
    return Crossover(crossings, known, untold, told[0][1] if told else None)
