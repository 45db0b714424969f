"""Tuning: keywords that must not change a result, as one table for every target or as products for the targets named.

A kernel whose forms differ by target has configurations that no other target could run: one that is refused elsewhere has
broken no promise, as nobody declared it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kernel_audit.records import Record


class TargetTuning(Record, kw_only=True):
    """One product of choices, for the `targets` named: "tpu" and "gpu" for all of a kind, or one, such as "tpu:v5e"."""

    targets: list[str]
    choices: dict[str, list[Any]]

    def serves(self, target: str) -> bool:
        """Whether it is for `target`: one device, or, asked for "tpu" or "gpu", any of that kind."""
        return any(
            each == target or target.startswith(f"{each}:") or each.startswith(f"{target}:") for each in self.targets
        )


Tuning: TypeAlias = dict[str, list[Any]] | list[TargetTuning]


def configurations(tuning: Tuning, target: str | None = None) -> list[dict[str, Any]]:
    """Every choice, in order and each once: of a table its product, of a list the products for `target` (None: all)."""
    if isinstance(tuning, dict):
        return choices_of(tuning)
    found: list[dict[str, Any]] = []
    for each in tuning:
        if target is None or each.serves(target):
            found += [choice for choice in choices_of(each.choices) if choice not in found]
    return found


def tables(tuning: Tuning) -> list[tuple[str, dict[str, list[Any]]]]:
    """Each table of choices with the key that it is stated under."""
    if isinstance(tuning, dict):
        return [("tuning", tuning)]
    return [(f"tuning[{index}]", each.choices) for index, each in enumerate(tuning)]


def choices_of(table: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Every choice from a table of choices, the last name varying fastest; one empty choice from an empty table."""
    found: list[dict[str, Any]] = [{}]
    for name, choices in table.items():
        found = [{**each, name: choice} for each in found for choice in choices]
    return found
