"""The covering of pairs: nothing that can occur is left out, nothing that cannot is put in."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_audit.matrix.pairs import cover_families, cover_pairs

FACTORS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), min_size=1, max_size=5).map(
    lambda sizes: {name: list(range(count)) for name, count in sizes.items()}
)
QUICK = settings(max_examples=60, deadline=None)


def pairs_of(row: dict[str, int]) -> set[frozenset[tuple[str, int]]]:
    return {frozenset(each) for each in combinations(row.items(), 2)}


def every_row(factors: dict[str, list[int]]) -> list[dict[str, int]]:
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]


@QUICK
@given(
    factors=FACTORS,
    forbidden=st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.integers(0, 6))),
)
def test_every_possible_pair_occurs_and_only_possible_rows(factors, forbidden):
    def possible(row: dict[str, int]) -> bool:
        return not any(
            first in row and second in row and row[first] + row[second] == total for first, second, total in forbidden
        )

    rows, covered = cover_pairs(factors, possible)
    right = [row for row in every_row(factors) if possible(row)]
    assert all(row in right for row in rows)
    wanted = set().union(*[pairs_of(row) for row in right]) if right else set()
    found = set().union(*[pairs_of(row) for row in rows]) if rows else set()
    assert found == wanted
    if len(factors) > 1:
        assert covered == len(wanted)
    assert len(rows) <= max(len(right), 1)


@QUICK
@given(factors=FACTORS)
def test_the_same_rows_again(factors):
    assert cover_pairs(factors, lambda row: True) == cover_pairs(factors, lambda row: True)


def test_far_fewer_rows_than_the_full_product():
    factors = {name: list(range(4)) for name in "abcde"}
    rows, covered = cover_pairs(factors, lambda row: True)
    assert covered == 10 * 16
    assert 16 <= len(rows) <= 32  # 1024 in the full product


LABELS = st.lists(st.lists(st.sampled_from("pqrstu"), min_size=1, max_size=4, unique=True), min_size=1, max_size=12)
FAMILIES = st.lists(st.sampled_from(["normal", "ties", "zeros", "large", "fresh"]), min_size=1, max_size=5, unique=True)


@QUICK
@given(labels=LABELS, families=FAMILIES)
def test_every_family_meets_every_choice_and_every_program_runs(labels, families):
    given_families = cover_families(labels, families)
    assert len(given_families) == len(labels)
    met = {
        (word, family)
        for words, chosen in zip(labels, given_families, strict=True)
        for word in words
        for family in chosen
    }
    assert met == {(word, family) for words in labels for word in words for family in families}
    for chosen in given_families:
        assert chosen and len(set(chosen)) == len(chosen)
        assert set(chosen) <= set(families)
