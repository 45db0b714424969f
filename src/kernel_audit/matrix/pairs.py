"""Covering arrays of strength two, greedily: every pair of choices of two factors occurs in some row.

After the constructive scheme of AETG (Cohen, Dalal, Fredman, Patton, IEEE TSE 23(7), 1997), deterministic, with
constraints. A library was looked at (allpairspy); it has no second layer whose rows cost nothing, which `cover_families`
is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

Choice = tuple[str, int]  # (factor, index of its value)
Pair = frozenset[Choice]


def cover_pairs(
    factors: dict[str, list[Any]], possible: Callable[[dict[str, Any]], bool]
) -> tuple[list[dict[str, Any]], int]:
    """(rows, number of pairs covered). Pairs that only occur in impossible rows are left out."""
    names = list(factors)
    open_pairs = {
        frozenset(((left, i), (right, j))): None
        for left, right in combinations(names, 2)
        for i in range(len(factors[left]))
        for j in range(len(factors[right]))
    }
    single = [name for name in names if len(names) == 1]
    if single:
        rows = [{single[0]: value} for value in factors[single[0]]]
        return [row for row in rows if possible(row)], len(rows)
    rows, covered = [], 0
    while open_pairs:
        seed = next(iter(open_pairs))
        row = _fill(dict(seed), factors, open_pairs, possible)
        if row is None:
            del open_pairs[seed]
            continue
        for pair in combinations(row.items(), 2):
            if frozenset(pair) in open_pairs:
                del open_pairs[frozenset(pair)]
                covered += 1
        rows.append({name: factors[name][row[name]] for name in names})
    return rows, covered


def _fill(
    row: dict[str, int],
    factors: dict[str, list[Any]],
    open_pairs: dict[Pair, None],
    possible: Callable[[dict[str, Any]], bool],
) -> dict[str, int] | None:
    """The row completed factor by factor, best choice first, with a way back where a choice is impossible."""
    missing = [name for name in factors if name not in row]
    if not missing:
        return row if possible({name: factors[name][row[name]] for name in factors}) else None
    name = missing[0]

    def gain(index: int) -> int:
        return sum(frozenset(((name, index), other)) in open_pairs for other in row.items())

    for index in sorted(range(len(factors[name])), key=lambda each: -gain(each)):
        found = _fill({**row, name: index}, factors, open_pairs, possible)
        if found is not None:
            return found
    return None


def cover_families(labels: list[list[str]], families: list[str]) -> list[list[str]]:
    """For each program (its choices as words) the families to run on it, so that every family meets every word.

    Each program takes its share: of the families that a word has not met, as many as there are programs left to share
    them; each program gets at least one.
    """
    carriers = Counter(word for words in labels for word in words)
    unmet = {word: dict.fromkeys(families) for word in carriers}
    given: list[list[str]] = []
    for index, words in enumerate(labels):
        taken: list[str] = []
        for word in sorted(words, key=lambda each: -len(unmet[each]) / carriers[each]):
            share = math.ceil(len(unmet[word]) / carriers[word])
            while share > sum(family in unmet[word] for family in taken):
                left = [family for family in unmet[word] if family not in taken]
                taken.append(max(left, key=lambda family: sum(family in unmet[each] for each in words)))
        given.append(taken or [families[index % len(families)]])
        for word in words:
            carriers[word] -= 1
            for family in given[-1]:
                unmet[word].pop(family, None)
    return given
