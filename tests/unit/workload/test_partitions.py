"""The partitions of a step, and its operands laid out on them."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_audit.contract.step_partitions import MOST_EXAMPLES, QUICK, balanced, filled, partitions
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.records import StepPartition
from kernel_audit.workload.inputs import FINITE, POISON, drawn, laid_out, part, places_of, repeated, represented

WORKLOAD = BUILT_IN["regression"].workload
assert WORKLOAD is not None


def _by_name(name: str) -> StepPartition:
    return next(each for each in partitions(1000) if each.name == name)


def test_the_list_has_every_hard_case():
    found = partitions(65536)
    assert {each.devices for each in found} == set(range(1, 9))
    over = {(each.devices, each.examples) for each in found}
    assert {(8, 5), (8, 8), (8, 13), (8, 1000), (2, 3), (2, 5)} <= over
    assert any(0 in each.counts for each in found) and any(each.counts.count(0) == 7 for each in found)
    assert {tuple(each.mesh) for each in found} == {("data",), ("data", "model")}
    assert {each.order for each in found} == {"as drawn", "permuted"}
    assert any(each.whole for each in found) and max(each.examples for each in found) == MOST_EXAMPLES
    assert len({each.name for each in found}) == len(found)


def test_the_quick_list_is_part_of_it():
    assert [each.name for each in partitions(1000, quick=True)] == [
        each.name for each in partitions(1000) if each.name in QUICK
    ]
    assert len(partitions(1000, quick=True)) == len(QUICK)


@pytest.mark.parametrize(("examples", "devices"), [(13, 8), (5, 8), (1000, 8), (3, 2)])
def test_counts_add_up_and_fit(examples: int, devices: int):
    for counts in (balanced(examples, devices), filled(examples, devices)):
        assert sum(counts) == examples and len(counts) == devices
    assert max(balanced(examples, devices)) - min(balanced(examples, devices)) <= 1


def test_rows_that_are_no_examples_hold_the_filling_and_the_others_come_in_order():
    partition = _by_name("data=8/13")
    operands = represented(WORKLOAD, drawn(WORKLOAD, None, 13), {"T": "float32"})
    laid = laid_out(WORKLOAD, operands, partition, places_of(WORKLOAD, partition), POISON)
    assert laid["X"].shape == (16, 64) and laid["w"] is operands["w"]
    empty = np.isnan(laid["y"])
    np.testing.assert_array_equal(np.flatnonzero(empty), [11, 13, 15])
    np.testing.assert_array_equal(laid["X"][~empty], operands["X"])
    finite = laid_out(WORKLOAD, operands, partition, places_of(WORKLOAD, partition), FINITE)
    np.testing.assert_array_equal(finite["y"][empty], 7)


def test_permuted_examples_are_all_of_them_in_another_order():
    places = np.concatenate(places_of(WORKLOAD, _by_name("data=8/13-permuted")))
    assert sorted(places) == list(range(13)) and list(places) != list(range(13))


def test_repeated_examples_keep_the_counts():
    partition = _by_name("data=2/3+5")
    again = repeated(places_of(WORKLOAD, partition))
    assert [list(each) for each in again] == [[0, 0, 0], [3, 3, 3, 3, 3]]


def test_a_part_takes_examples_and_leaves_the_rest():
    operands = drawn(WORKLOAD, None, 13)
    some = part(WORKLOAD, operands, np.array([4, 2]))
    np.testing.assert_array_equal(some["X"], operands["X"][[4, 2]])
    assert some["w"] is operands["w"]


def test_bfloat16_operands_hold_bfloat16_values():
    stored = represented(WORKLOAD, drawn(WORKLOAD, None, 5), {"T": "bfloat16"})
    assert stored["X"].dtype.name == "bfloat16" and stored["w"].dtype == np.float32


def test_the_data_are_frozen():
    one, other = (drawn(WORKLOAD, None, 5)["X"] for _ in range(2))
    np.testing.assert_array_equal(one, other)
