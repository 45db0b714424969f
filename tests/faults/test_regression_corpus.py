"""Faults of the regression kernel: each is one, told with NumPy alone; the audit finds each, and accuses no honest kernel."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus import REGRESSION_FAULTS, REGRESSION_HONEST, Specimen
from sampling import sampled
from test_corpus import _expect_fault, _expect_honest
from trial import Trials

from kernel_audit.kernels.regression_references import regression_oracle

SPECIMENS = Path(__file__).parent / "specimens"
QUICK_FAULTS = ("programs_share_a_row",)


def chosen(specimens: list[Specimen], quick: tuple[str, ...] = ()) -> list[Any]:
    return sampled(specimens, lambda each: each.name, quick=lambda _, each: each.name in quick, slow_step=2)


def off_by(specimen: Specimen) -> float:
    """The largest normwise error of either result, over both forms, on one whole block of 128 rows and a tail."""
    spec = importlib.util.spec_from_file_location("regression_specimens", SPECIMENS / specimen.file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(11)
    X, w, y = (rng.normal(size=size).astype(np.float32) for size in ((200, 5), 5, 200))
    right = regression_oracle(*[each.astype(np.float64) for each in (X, w, y)])
    worst = 0.0
    for keywords in ({}, {"form": "triton", "rows": 16}):
        found = getattr(module, specimen.function)(X, w, y, **keywords)
        for mine, other in zip(found, right, strict=True):
            error = np.abs(np.asarray(mine, np.float64) - other).max() / np.abs(other).max()
            worst = max(worst, np.inf if np.isnan(error) else float(error))
    return worst


@pytest.mark.parametrize("specimen", REGRESSION_FAULTS, ids=lambda each: each.name)
def test_a_fault_is_one(specimen: Specimen, interpreted: None) -> None:
    assert off_by(specimen) > 1e-4


@pytest.mark.parametrize("specimen", REGRESSION_HONEST, ids=lambda each: each.name)
def test_an_honest_kernel_is_right(specimen: Specimen, interpreted: None) -> None:
    assert off_by(specimen) < 1e-6


@pytest.mark.parametrize("specimen", chosen(REGRESSION_FAULTS, QUICK_FAULTS))
def test_planted_fault_is_found(specimen: Specimen, trials: Trials) -> None:
    _expect_fault(specimen, trials.try_(specimen))


@pytest.mark.parametrize("specimen", chosen(REGRESSION_HONEST))
def test_honest_kernel_is_not_accused(specimen: Specimen, trials: Trials) -> None:
    _expect_honest(specimen, trials.try_(specimen))


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel runs in the generic interpreter, whatever its author asked for."""
    from jax.experimental import pallas as pl

    made = pl.pallas_call
    monkeypatch.setattr(pl, "pallas_call", lambda *args, **kwargs: made(*args, **{**kwargs, "interpret": True}))
