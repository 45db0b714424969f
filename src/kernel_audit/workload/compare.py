"""A step's values against the reference: errors update by update, and whether all devices hold the same. In the parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernel_audit.contract import Workload
from kernel_audit.records import StepErrors, StepPartition
from kernel_audit.workload.inputs import FINITE

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Comparison:
    """What is compared: `observed` has for each of "loss", "gradient:w", "state:w" an array (updates, copies, ...), `expected`
    one (updates, ...); see step_job and host_job."""

    workload: Workload
    partition: StepPartition
    observed: Values
    expected: Values

    @property
    def names(self) -> list[str]:
        """The state's operands in one order."""
        return sorted(self.workload.state)

    @property
    def updates(self) -> int:
        return len(self.observed["loss"])

    def has(self, word: str, prefix: str = "") -> bool:
        return all(f"{prefix}{word}:{name}" in self.observed for name in self.names)

    def copies(self, word: str, update: int = 0, prefix: str = "") -> np.ndarray:
        """All of "gradient" or "state" as one float64 vector a copy: (copies, size)."""
        parts = [self.observed[f"{prefix}{word}:{name}"][update] for name in self.names]
        return np.concatenate([each.reshape(len(each), -1).astype(np.float64) for each in parts], axis=1)

    def wanted(self, word: str, update: int = 0, prefix: str = "") -> np.ndarray:
        """The reference of the same, as one vector."""
        return self._joined([self.expected[f"{prefix}{word}:{name}"][update] for name in self.names])

    def shards(self, word: str) -> np.ndarray:
        """The reference on each device's own examples: (devices, size)."""
        return np.stack([self.wanted(word, device, "shard-") for device in range(self.partition.devices)])

    def initial(self) -> np.ndarray:
        return self._joined([self.expected[f"initial:{name}"] for name in self.names])

    def losses(self, update: int = 0, prefix: str = "") -> np.ndarray:
        return self.observed[f"{prefix}loss"][update].astype(np.float64).reshape(-1)

    def errors(self, update: int, prefix: str = "") -> StepErrors:
        """Of one update; `prefix` "repeated-" is compared with its own reference, "finite-" with that of the first update."""
        own = prefix if prefix == "repeated-" else ""
        gradient = (
            relative(self.copies("gradient", update, prefix), self.wanted("gradient", update, own))
            if self.has("gradient", prefix)
            else None
        )
        return StepErrors(
            loss=relative(self.losses(update, prefix)[:, None], np.atleast_1d(self.expected[f"{own}loss"][update])),
            gradient=gradient,
            state=relative(self.copies("state", update, prefix), self.wanted("state", update, own)),
        )

    def right(self, update: int, prefix: str = "") -> bool:
        """Whether one update keeps the bound in everything that is observed."""
        errors = self.errors(update, prefix)
        told = [errors.loss, errors.state, *([errors.gradient] if self.has("gradient", prefix) else [])]
        return all(each is not None and each <= self.workload.within for each in told)

    def filled(self) -> bool:
        return f"{FINITE}-loss" in self.observed

    def _joined(self, parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.asarray(each, np.float64).reshape(-1) for each in parts])


def relative(copies: np.ndarray, wanted: np.ndarray) -> float | None:
    """The largest |copy - wanted| / |wanted| in the Euclidean norm; absolute where wanted is zero; None where not finite."""
    if not np.all(np.isfinite(copies)):
        return None
    size = float(np.linalg.norm(wanted))
    return float(np.max(np.linalg.norm(copies - wanted, axis=1))) / (size or 1.0)


def differing_copies(observed: Values) -> list[str]:
    """Names of values whose copies are not the same bytes on every device, in some update."""
    found = []
    for name, array in observed.items():
        if any(len({copy.tobytes() for copy in update}) > 1 for update in array):
            found.append(name)
    return found
