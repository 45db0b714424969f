"""Job of the oracle worker: what the complete step should give, by the audit's host reference in float64. No step is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Audit, Workload
from kernel_audit.errors import AuditFileError
from kernel_audit.matrix.loading import load_function
from kernel_audit.records import StepPartition
from kernel_audit.workload.inputs import Arrays, digests, drawn, part, places_of, repeated, represented, widened

CHECK = "check"
DIRECTIONS = 3
REACH = 1e-6  # of a difference quotient, in units of the parameters' own size
Told = tuple[float, Arrays, Arrays]


class Host:
    """The reference of one workload at one choice of dtypes."""

    def __init__(self, workload: Workload, roots: list[Path], binding: dict[str, str]) -> None:
        self.workload = workload
        self.binding = binding
        self.function: Callable[..., Any] | None = load_function(workload.host, roots) if workload.host else None
        self.inputs = load_function(workload.inputs, roots) if workload.inputs else None
        self._known: dict[int, Arrays] = {}

    def operands(self, examples: int) -> Arrays:
        """The stored values of the operands, in float64."""
        if examples not in self._known:
            arrays = drawn(self.workload, self.inputs, examples)
            self._known[examples] = widened(represented(self.workload, arrays, self.binding))
        return self._known[examples]

    def told(self, operands: Arrays) -> Told:
        """(loss, gradients, new state) of these operands. Raises AuditFileError for a reference of another form."""
        assert self.function is not None
        try:
            loss, gradients, state = self.function(*[operands[each.name] for each in self.workload.operands])
            names = sorted(self.workload.state)
            if sorted(gradients) != names or sorted(state) != names:
                raise ValueError(f"gradients of {sorted(gradients)} and new values of {sorted(state)}")
        except (TypeError, ValueError) as error:
            raise AuditFileError(
                "a host reference of another form",
                stage="workload",
                where=self.workload.host.text if self.workload.host else "host",
                expected="(loss, {operand: gradient}, {operand: new value}) for " + ", ".join(self.workload.state),
                got=f"{type(error).__name__}: {error}",
            ) from None
        return (
            float(loss),
            {k: np.asarray(v) for k, v in gradients.items()},
            {k: np.asarray(v) for k, v in state.items()},
        )

    def sequence(self, operands: Arrays, updates: int) -> list[Told]:
        """Updates one after another, each from the state that the one before left."""
        found = []
        for _ in range(updates):
            found.append(self.told(operands))
            operands = {**operands, **found[-1][2]}
        return found


def references(
    steps: Any, *, audit: dict[str, Any], roots: list[str], binding: dict[str, str], partitions: list[dict[str, Any]]
) -> None:
    """Checks the reference itself, then gives for each partition the sequence, the shards and the repeated examples."""
    workload = msgspec.convert(audit, Audit).workload
    assert workload is not None
    steps.begin(CHECK)
    host = Host(workload, [Path(each) for each in roots], binding)
    cut = msgspec.convert(partitions, list[StepPartition])
    steps.finish(CHECK, _checked(host, cut))
    if host.function is None:
        return
    for partition in cut:
        steps.begin(partition.name)
        steps.finish(partition.name, {}, expected_values(host, partition))


def expected_values(host: Host, partition: StepPartition) -> Arrays:
    """ "loss" and "gradient:w", "state:w" of each update; "initial:w"; "shard-..." of each device's own examples, zeros where
    it has none; "repeated-..." of the first update on repeated examples."""
    workload, operands = host.workload, host.operands(partition.examples)
    places = places_of(workload, partition)
    found = _stacked("", host.sequence(operands, workload.updates))
    found.update({f"initial:{name}": operands[name] for name in workload.state})
    shards = [host.told(part(workload, operands, each)) if len(each) else None for each in places]
    some = next(each for each in shards if each is not None)
    empty = (0.0, *({name: np.zeros_like(value) for name, value in table.items()} for table in some[1:]))
    found.update(_stacked("shard-", [empty if each is None else each for each in shards]))
    again = np.concatenate(repeated(places))
    found.update(_stacked("repeated-", [host.told(part(workload, operands, again))]))
    return found


def _stacked(prefix: str, told: list[Told]) -> Arrays:
    found = {f"{prefix}loss": np.array([each[0] for each in told])}
    for word, index in (("gradient", 1), ("state", 2)):
        for name in told[0][index]:
            found[f"{prefix}{word}:{name}"] = np.stack([each[index][name] for each in told])
    return found


def _checked(host: Host, partitions: list[StepPartition]) -> dict[str, Any]:
    """How the data are made, their digests, and how far the reference agrees with itself."""
    workload = host.workload
    counts = sorted({each.examples for each in partitions})
    told: dict[str, Any] = {
        "rule": " ".join((host.inputs.__doc__ or "").split()) if host.inputs else "",
        "inputs": {str(n): digests(drawn(workload, host.inputs, n)) for n in counts},
    }
    if host.function is None:
        return told
    largest = host.operands(counts[-1])
    sequence = host.sequence(largest, workload.updates)
    told["losses"] = [_finite(each[0]) for each in sequence]
    told["gradient_norms"] = [_finite(_norm(each[1])) for each in sequence]
    told["slope_error"] = _slope_error(host, largest)
    told["additivity_error"] = _additivity_error(host, largest, counts[-1])
    return told


def _slope_error(host: Host, operands: Arrays) -> float:
    """The gradient against central differences of the loss along random directions; relative to the gradient's size."""
    rng = np.random.default_rng(0)
    _, gradient, _ = host.told(operands)
    size, worst = _norm(gradient), 0.0
    for _ in range(DIRECTIONS):
        way = {name: rng.standard_normal(each.shape) for name, each in gradient.items()}
        reach = REACH * max(1.0, _norm({name: operands[name] for name in way})) / _norm(way)
        ends = [
            host.told({**operands, **{name: operands[name] + sign * reach * each for name, each in way.items()}})[0]
            for sign in (1, -1)
        ]
        slope = (ends[0] - ends[1]) / (2 * reach)
        stated = sum(float(np.sum(gradient[name] * each)) for name, each in way.items())
        worst = max(worst, abs(slope - stated) / (size * _norm(way)) if size else abs(slope))
    return worst


def _additivity_error(host: Host, operands: Arrays, examples: int) -> float:
    """The count-weighted mean of two unequal parts against the whole: what every aggregation rests on."""
    cut = max(1, examples // 3)
    loss, gradient, _ = host.told(operands)
    parts = [np.arange(cut), np.arange(cut, examples)]
    told = [(len(each), host.told(part(host.workload, operands, each))) for each in parts if len(each)]
    mean = sum(count * each[0] for count, each in told) / examples
    worst = abs(mean - loss) / abs(loss) if loss else abs(mean)
    for name, whole in gradient.items():
        joined = sum(count * each[1][name] for count, each in told) / examples
        worst = max(worst, float(np.linalg.norm(joined - whole)) / (float(np.linalg.norm(whole)) or 1.0))
    return worst


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _norm(arrays: Arrays) -> float:
    return float(np.sqrt(sum(float(np.sum(np.square(each))) for each in arrays.values())))
