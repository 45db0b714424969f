"""Crossings of a sweep as intervals."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_audit.records import CANNOT_TELL, FASTER, NO_DIFFERENCE, REFUSED, SLOWER, TIMING_VERDICTS
from kernel_audit.statistics import crossover


@pytest.mark.parametrize(
    "verdicts, text",
    [
        ([SLOWER, SLOWER, FASTER, FASTER], "faster from N between 2 and 4"),
        ([SLOWER, CANNOT_TELL, FASTER, FASTER], "faster from N between 1 and 4"),
        ([FASTER, NO_DIFFERENCE, SLOWER, SLOWER], "no longer faster from N between 1 and 2"),
        ([SLOWER, FASTER, REFUSED, SLOWER], "faster from N between 1 and 2; no longer faster from N between 2 and 8"),
        ([FASTER] * 4, "none in range: faster from N = 1 to 8"),
        ([CANNOT_TELL, SLOWER, NO_DIFFERENCE, CANNOT_TELL], "none in range: not faster from N = 2 to 4"),
        ([CANNOT_TELL] * 4, "no size of N could tell"),
    ],
)
def test_what_a_sweep_says(verdicts: list[str], text: str):
    points = list(zip((1, 2, 4, 8), verdicts, strict=True))
    assert crossover(points).text("N") == text
    assert crossover(reversed(points)) == crossover(points)


@given(st.lists(st.sampled_from(TIMING_VERDICTS), max_size=12))
def test_crossings_alternate_and_lie_between_sizes_that_could_tell(verdicts: list[str]):
    found = crossover(enumerate(verdicts))
    turns = [each.becomes_faster for each in found.crossings]
    assert all(a != b for a, b in itertools.pairwise(turns))
    assert all(each.low in found.told and each.high in found.told for each in found.crossings)
    assert sorted([*found.told, *found.untold]) == list(range(len(verdicts)))


def test_a_size_is_measured_once():
    with pytest.raises(ValueError, match="once"):
        crossover([(1, FASTER), (1, SLOWER)])
