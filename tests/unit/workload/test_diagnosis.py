"""Each mistake has values of its own; right values have none, and rounding is no mistake in aggregation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_audit.contract.step_partitions import partitions
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.kernels.regression_host import regression_host, regression_inputs
from kernel_audit.records import StepPartition
from kernel_audit.workload.compare import Comparison, differing_copies, relative
from kernel_audit.workload.diagnosis import explanations
from kernel_audit.workload.host_job import Host, expected_values
from kernel_audit.workload.inputs import FINITE

WORKLOAD = BUILT_IN["regression"].workload
assert WORKLOAD is not None
UNEVEN = ("data=2/3+5", "data=8/13")
RATE = 0.004


def _partition(name: str) -> StepPartition:
    return next(each for each in partitions(1000) if each.name == name)


@pytest.fixture(scope="module", params=UNEVEN)
def case(request: pytest.FixtureRequest) -> tuple[StepPartition, dict[str, np.ndarray]]:
    partition = _partition(request.param)
    return partition, expected_values(Host(WORKLOAD, [], {"T": "float32"}), partition)


def observed(expected: dict[str, np.ndarray], devices: int, **first: Any) -> dict[str, np.ndarray]:
    """The reference's own values as float32 on every device; `first` replaces loss or gradient of the first update (a function
    of device), and the state follows from the gradient."""
    values = {}
    for name in ("loss", "gradient:w", "state:w"):
        array = np.asarray(expected[name], np.float32)
        values[name] = np.repeat(array[:, None], devices, axis=1)
        values[f"{FINITE}-{name}"] = values[name][:1].copy()
        values[f"repeated-{name}"] = np.repeat(
            np.asarray(expected[f"repeated-{name}"], np.float32)[:, None], devices, axis=1
        )
    for prefix in ("", f"{FINITE}-"):
        for device in range(devices):
            if "loss" in first:
                values[f"{prefix}loss"][0, device] = first["loss"](device)
            if "gradient" in first:
                gradient = first["gradient"](device)
                values[f"{prefix}gradient:w"][0, device] = gradient
                values[f"{prefix}state:w"][0, device] = expected["initial:w"] - RATE * gradient
    return values


def _codes(case: tuple[StepPartition, dict[str, np.ndarray]], **first: Any) -> list[str]:
    partition, expected = case
    return explanations(Comparison(WORKLOAD, partition, observed(expected, partition.devices, **first), expected))


def test_right_values_are_right(case):
    partition, expected = case
    of = Comparison(WORKLOAD, partition, observed(expected, partition.devices), expected)
    assert all(of.right(update) for update in range(of.updates))
    assert not differing_copies(of.observed)


@pytest.mark.parametrize(
    ("code", "gradient"),
    [
        ("unweighted-means", lambda p, e, k: np.mean(e["shard-gradient:w"], axis=0)),
        ("sum-for-mean", lambda p, e, k: p.examples * e["gradient:w"][0]),
        ("reduced-twice", lambda p, e, k: p.devices * e["gradient:w"][0]),
        ("padding-counted", lambda p, e, k: p.examples / (p.rows * p.devices) * e["gradient:w"][0]),
        ("count-dropped", lambda p, e, k: p.examples / (p.examples - p.counts[0]) * e["gradient:w"][0]),
        ("missing-reduction", lambda p, e, k: p.counts[k] / p.examples * e["shard-gradient:w"][k]),
        ("gradient-of-the-local-batch", lambda p, e, k: e["shard-gradient:w"][k]),
        ("count-dropped", lambda p, e, k: p.examples / p.counts[k] * e["gradient:w"][0]),
    ],
)
def test_a_gradient_tells_its_mistake(code: str, gradient: Any, case):
    partition, expected = case
    assert _codes(case, gradient=lambda device: gradient(partition, expected, device))[0] == code


def test_a_loss_tells_its_mistake(case):
    _, expected = case
    assert _codes(case, loss=lambda device: expected["shard-loss"][1])[0] == "loss-from-one-shard"
    assert _codes(case, loss=lambda device: np.mean(expected["shard-loss"]))[0] == "unweighted-means"


def test_rounding_is_called_rounding(case):
    _, expected = case
    noise = 1 + 5e-6 * np.sign(np.random.default_rng(0).standard_normal(64))
    assert _codes(case, gradient=lambda device: expected["gradient:w"][0] * noise) == ["step-inexact"]


def test_an_unknown_mistake_has_no_explanation_that_fits(case):
    partition, expected = case
    values = observed(expected, partition.devices, gradient=lambda device: np.ones(64))
    values["repeated-gradient:w"] += 1
    assert explanations(Comparison(WORKLOAD, partition, values, expected)) == []


def test_nan_from_padding_is_told_from_padding_that_counts(case):
    partition, expected = case
    values = observed(expected, partition.devices)
    for name in ("loss", "gradient:w", "state:w"):
        values[name] = np.full_like(values[name], np.nan)
    assert explanations(Comparison(WORKLOAD, partition, values, expected)) == ["padding-leak"]
    values[f"{FINITE}-gradient:w"] = values[f"{FINITE}-gradient:w"] + np.arange(64, dtype=np.float32)
    assert explanations(Comparison(WORKLOAD, partition, values, expected)) == ["padding-counted"]


def test_copies_that_agree_along_one_axis_of_two():
    partition = _partition("data=2,model=4/13")
    expected = expected_values(Host(WORKLOAD, [], {"T": "float32"}), partition)
    weights = np.asarray(partition.counts)[:, None] * expected["shard-gradient:w"] / 13
    sums = weights.reshape(2, 4, -1).sum(axis=0)
    values = observed(expected, 8, gradient=lambda device: sums[device % 4])
    assert explanations(Comparison(WORKLOAD, partition, values, expected)) == ["reduced-over-one-axis"]


def test_copies_are_compared_bit_by_bit():
    same = np.zeros((1, 2, 3), np.float32)
    other = same.copy()
    other[0, 1, 0] = -0.0
    assert differing_copies({"a": same}) == [] and differing_copies({"a": other}) == ["a"]
    assert differing_copies({"a": np.full((1, 2), np.nan, np.float32)}) == []


def test_relative_errors():
    wanted = np.array([3.0, 4.0])
    assert relative(np.array([[3.0, 4.0], [3.0, 4.5]]), wanted) == pytest.approx(0.1)
    assert relative(np.array([[np.inf, 4.0]]), wanted) is None
    assert relative(np.array([[0.0, 2.0]]), np.zeros(2)) == 2


def test_the_regression_reference_is_its_own_slope():
    made = regression_inputs(np.random.default_rng(1), {"n": 7, "d": 3})
    loss, gradient, state = regression_host(made["X"], made["w"], made["y"])
    reach = 1e-6
    for place in range(3):
        unit = reach * np.eye(3)[place]
        ends = [regression_host(made["X"], made["w"] + sign * unit, made["y"])[0] for sign in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * reach) == pytest.approx(gradient["w"][place], abs=1e-7)
    assert loss == pytest.approx(np.mean(made["y"] ** 2))
    np.testing.assert_allclose(state["w"], -RATE * gradient["w"])
