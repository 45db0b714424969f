"""Jobs of the check worker: programs run from bytes. No candidate code is ever imported here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.errors import AuditError
from kernel_audit.matrix.cell_run import run_cell
from kernel_audit.program import LoadedProgram, load
from kernel_audit.records import Fixture, ProgramPlan
from kernel_audit.worker import read_arrays


def run_from_bytes(
    steps: Any,
    *,
    audit: dict[str, Any],
    programs: list[dict[str, Any]],
    cells: list[dict[str, Any]],
    fixtures: list[dict[str, Any]],
    places: dict[str, str],
    thorough: bool,
) -> None:
    """Runs cells of exported programs. `places` names the finished capture job's folder by program key.

    `thorough`: also again, and on permuted operands; a baseline is run once.
    """
    contract = msgspec.convert(audit, Audit)
    plans = {each.key: each for each in msgspec.convert(programs, list[ProgramPlan])}
    by_name = {each.name: each for each in msgspec.convert(fixtures, list[Fixture])}
    made: dict[str, Callable[[list[np.ndarray]], tuple[list[np.ndarray], None]]] = {}
    for cell in cells:
        plan = plans[cell["program"]]
        steps.begin(cell["id"])
        told: dict[str, Any] = {"actual_backend": jax.devices()[0].platform}
        outputs: dict[str, np.ndarray] = {}
        try:
            if plan.key not in made:
                data = read_arrays(Path(places[plan.key]), plan.key)["bytes"].tobytes()
                made[plan.key] = _call(load(data))
            observed, outputs = run_cell(
                contract, by_name[cell["fixture"]], plan.binding, made[plan.key], again=thorough, permute=thorough
            )
            told.update(observed)
        except AuditError as error:
            told["fault"] = error.parts()
        steps.finish(cell["id"], told, outputs or None)


def _call(loaded: LoadedProgram) -> Callable[[list[np.ndarray]], tuple[list[np.ndarray], None]]:
    executable = loaded.executable()

    def call(arrays: list[np.ndarray]) -> tuple[list[np.ndarray], None]:
        return [np.asarray(each) for each in executable(arrays)], None

    return call
