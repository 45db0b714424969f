"""What a candidate is held to on a target: few draws accuse nobody, and no baseline makes wrong results right."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_audit.measure.budgets import FAR, FEW, budgets_of, safety

DRAWS, CALLS, TRIALS = 3, 40, 4000


def told(errors: list[list[float | None]], *, scale: float = 1.0, shape: tuple[int, ...] = ()) -> dict:
    """Of a program with so many draws (rows) and results (columns)."""
    return {
        "errors": errors,
        "scales": [[scale] * len(row) for row in errors],
        "shapes": [[list(shape), "float32"] for _ in errors[0]],
    }


@pytest.mark.parametrize("elements", [1, 2, 4, 16, 64, 512, FEW - 1])
def test_an_equally_good_program_is_seldom_accused(elements: int):
    """Normal errors of every element; the candidate's results are judged in forty calls, twice the budget allowed."""
    rng = np.random.default_rng(elements)
    trials = TRIALS if elements < 100 else 400
    accused = 0
    for _ in range(trials):
        largest = np.abs(rng.standard_normal((DRAWS, elements))).max()
        told_ = told([[float(largest)]] * DRAWS, scale=1e6, shape=(elements,))
        (allowed,) = budgets_of({"b": told_}, 2.0).allowed
        accused += np.abs(rng.standard_normal((CALLS, elements))).max() > allowed
    assert accused / trials < 0.02


def test_without_the_allowance_one_number_is_accused_often():
    rng = np.random.default_rng(1)
    largest = np.abs(rng.standard_normal((TRIALS, DRAWS))).max(axis=1)
    assert np.mean(np.abs(rng.standard_normal((TRIALS, CALLS))).max(axis=1) > 2 * largest) > 0.3


def test_large_results_have_no_allowance_and_more_draws_need_less():
    assert safety(3, FEW) == 1.0
    assert safety(1, 1) > safety(3, 1) > safety(3, 100) > 1.0


def test_two_honest_baselines_do_not_accuse_each_other():
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(TRIALS):
        errors = np.abs(rng.standard_normal((2, DRAWS)))
        found = budgets_of({str(i): told([[float(e)] for e in row], scale=1e6) for i, row in enumerate(errors)}, 2.0)
        wrong += bool(found.wrong)
    assert wrong / TRIALS < 0.005


@pytest.mark.parametrize("shape", [(), (512,), (512, 512)])
def test_a_baseline_that_is_far_off_is_named_and_nobody_is_held_to_it(shape: tuple[int, ...]):
    good, zeros = told([[1e-6, 2e-6]] * DRAWS, shape=shape), told([[1e-6, 1.0]] * DRAWS, shape=shape)
    found = budgets_of({"good": good, "zeros": zeros}, 2.0)
    assert found.allowed == budgets_of({"good": good}, 2.0).allowed
    assert found.wrong == {"zeros": [1]} and "times as far as the best baseline" in found.why["zeros"]


def test_a_coarser_baseline_within_the_stated_multiple_counts():
    shape = (64, 64)
    fine, coarse = told([[1e-6]] * DRAWS, shape=shape), told([[1e-6 * (FAR - 1)]] * DRAWS, shape=shape)
    found = budgets_of({"fine": fine, "coarse": coarse}, 2.0)
    assert found.wrong == {} and found.allowed == [pytest.approx(2e-6 * (FAR - 1))]


def test_the_only_baseline_is_held_to_the_size_of_its_results():
    found = budgets_of({"only": told([[1.0]] * DRAWS, shape=(64, 64))}, 2.0)
    assert (found.allowed, found.wrong) == ([], {"only": [0]}) and "no value is above 1" in found.why["only"]


def test_a_baseline_without_finite_results_does_not_count():
    assert budgets_of({"nan": told([[None]] * DRAWS), "good": told([[0.0]] * DRAWS)}, 2.0).allowed == [0.0]
    assert budgets_of({}, 2.0).allowed == []
