"""The frozen matrix: programs, fixtures and the cells in which they meet."""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record


def dtype_text(binding: dict[str, str]) -> str:
    """A choice of dtype variables as one word, as cells and receipts write it: "bfloat16", or "S=int8,T=bfloat16"."""
    if len(binding) == 1:
        return next(iter(binding.values()))
    return ",".join(f"{key}={value}" for key, value in sorted(binding.items())) or "as declared"


class Fixture(Record, kw_only=True):
    """A frozen input: sizes of the named dimensions, value family and seed.

    `before`: shapes drawn from the same generator before this one (a sequence), in order. `judged`: whether the contract
    promises anything for these values.
    """

    name: str
    dims: dict[str, int]
    family: str
    seed: int
    before: list[dict[str, int]] = []
    judged: bool = True


class ProgramPlan(Record, kw_only=True):
    """A program to capture and the engine that runs it."""

    key: str
    dims: dict[str, int]
    binding: dict[str, str]
    mode: dict[str, Any] = {}
    configuration: dict[str, Any] = {}
    engine: str

    @property
    def dtype(self) -> str:
        """See `dtype_text`."""
        return dtype_text(self.binding)


class CellPlan(Record, kw_only=True):
    """A program run on a fixture."""

    id: str
    program: str
    fixture: str


class LeftOut(Record, kw_only=True):
    """What the plan holds back, and why."""

    what: str
    why: str


class Plan(Record, kw_only=True):
    """The frozen matrix. `full_size` counts the cells of the full product."""

    programs: list[ProgramPlan]
    fixtures: list[Fixture]
    cells: list[CellPlan]
    full_size: int
    pairs: int
    left_out: list[LeftOut]

    def program(self, key: str) -> ProgramPlan:
        return next(each for each in self.programs if each.key == key)

    def fixture(self, name: str) -> Fixture:
        return next(each for each in self.fixtures if each.name == name)
