"""Jobs of the oracle worker: expectations of fixtures. The candidate is never called here, nor sent here as bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.errors import AuditFileError
from kernel_audit.fixture import originals, represented
from kernel_audit.matrix.loading import load_function
from kernel_audit.oracle import SAMPLES, as_leaves, budget, expectation, leaves
from kernel_audit.records import Fixture
from kernel_audit.worker import read_arrays

Leaves = list[np.ndarray]


def expect(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    wanted: list[dict[str, Any]],
    fixtures: list[dict[str, Any]],
) -> None:
    """One step for each wanted (fixture, binding, mode): the arrays of oracle/expectation.py.

    Each item of `wanted` has "id", "fixture", "binding", "mode", "results" (dtypes) and, for a lifted oracle,
    "lifted" (the folder of the baseline's lift job) and "program" (its step).
    """
    contract = msgspec.convert(audit, Audit)
    by_name = {each.name: each for each in msgspec.convert(fixtures, list[Fixture])}
    for item in wanted:
        steps.begin(item["id"])
        fixture = by_name[item["fixture"]]
        if contract.oracle.kind == "independent":
            arrays = _independent(contract, [Path(each) for each in roots], fixture, item)
        else:
            arrays = _lifted(contract, [Path(each) for each in roots], fixture, item)
        steps.finish(item["id"], {}, arrays)


def _independent(audit: Audit, roots: list[Path], fixture: Fixture, item: dict[str, Any]) -> dict[str, np.ndarray]:
    assert audit.oracle.function is not None
    oracle = _host(audit.oracle.function, roots, audit, item)
    controls = _controls(audit, roots, item)
    arrays = expectation(audit, fixture, item["binding"], item["results"], oracle, controls)
    if audit.agreement.kind == "derived":
        _add_budget(audit, fixture, item, arrays)
    return arrays


def _controls(audit: Audit, roots: list[Path], item: dict[str, Any]) -> dict[str, Callable[..., Leaves]]:
    return {each.name: _host(each.function, roots, audit, item) for each in audit.controls}


def _host(ref: FunctionRef, roots: list[Path], audit: Audit, item: dict[str, Any]) -> Callable[..., Leaves]:
    """A function of host NumPy by operand names. What it raises, and results of another kind, are the audit's fault."""
    function, names = load_function(ref, roots), [each.name for each in audit.operands]
    stored, wanted = item["binding"], len(item["results"])

    def fault(what: str, got: str, given: dict[str, np.ndarray]) -> AuditFileError:
        return AuditFileError(
            what,
            stage="oracle",
            where=ref.text,
            expected="one array of numbers" if wanted == 1 else f"a tuple of {wanted} arrays of numbers",
            got=got,
            settled={name: f"{array.dtype}{list(array.shape)}" for name, array in given.items()} | stored,
        )

    def oracle(given: dict[str, np.ndarray]) -> Leaves:
        try:
            found = as_leaves(function(*[given[name] for name in names], **item["mode"]))
        except Exception as error:
            raise fault("the oracle raised", f"{type(error).__name__}: {error}", given) from None
        if len(found) != wanted or any(each.dtype.hasobject for each in found):
            text = ", ".join(f"{each.dtype}{list(each.shape)}" for each in found)
            raise fault("the oracle gave results of another kind", text, given)
        return found

    return oracle


def _lifted(audit: Audit, roots: list[Path], fixture: Fixture, item: dict[str, Any]) -> dict[str, np.ndarray]:
    run = _exported(item, "lifted")
    names = [each.name for each in audit.operands]
    dtypes = [np.dtype(each) for each in item["lifted_operands"]]

    def oracle(given: dict[str, np.ndarray]) -> Leaves:
        return run([given[name].astype(dtype) for name, dtype in zip(names, dtypes, strict=True)])

    arrays = expectation(audit, fixture, item["binding"], item["results"], oracle, _controls(audit, roots, item))
    if audit.agreement.kind == "derived":
        _add_budget(audit, fixture, item, arrays)
    return arrays


def _add_budget(audit: Audit, fixture: Fixture, item: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    run = _exported(item, "noisy")
    stored = list(represented(audit, originals(audit, fixture), item["binding"]).values())
    samples = [run([np.uint32(seed), *stored]) for seed in range(SAMPLES)]
    for index, precise in enumerate(leaves(arrays, "precise")):
        drawn = [each[index] for each in samples]
        arrays[f"budget.{index}"] = budget(drawn, precise, item["results"][index], audit.agreement.factor)


def _exported(item: dict[str, Any], name: str) -> Callable[[list[np.ndarray]], Leaves]:
    return _compiled(item["lifted"], item["program"], name)


@cache
def _compiled(folder: str, program: str, name: str) -> Callable[[list[np.ndarray]], Leaves]:
    """A lifted program; kept, as it is compiled when first called and many fixtures share it."""
    import jax
    from jax import export

    data = read_arrays(Path(folder), program)[name].tobytes()
    call = jax.jit(export.deserialize(bytearray(data)).call)
    return lambda arrays: [np.asarray(each) for each in call(*arrays)]
