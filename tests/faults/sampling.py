"""Which specimens of a corpus run when: some by default, more in the slow run, every one in the exhaustive run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(
    specimens: Iterable[Any], name: Callable[[Any], str], *, quick: Callable[[int, Any], bool], slow_step: int
) -> list[Any]:
    """A parameter for each: unmarked where `quick` says so, one in `slow_step` of the others slow, the rest exhaustive."""
    made, others = [], 0
    for index, each in enumerate(specimens):
        marks: tuple[Any, ...] = ()
        if not quick(index, each):
            marks = (pytest.mark.slow if others % slow_step == 0 else pytest.mark.exhaustive,)
            others += 1
        made.append(pytest.param(each, id=name(each), marks=marks))
    return made
