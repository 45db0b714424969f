"""From what a worker told of a step on one partition, and the values it handed over, to the record of that run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Operand, Workload
from kernel_audit.records import PlacedArray, StepCollective, StepErrors, StepPartition, StepRun
from kernel_audit.worker import JobResult
from kernel_audit.workload.collectives import is_whole
from kernel_audit.workload.compare import Comparison, Values, differing_copies
from kernel_audit.workload.diagnosis import REPEATED, explanations
from kernel_audit.workload.inputs import FINITE, POISON, axis_of

OWN = ("loss", "gradient", "state")  # values of the sequence itself, as opposed to those of other fillings


def judged_run(
    workload: Workload,
    partition: StepPartition,
    told: dict[str, Any],
    observed: Values,
    expected: Values,
    inputs: dict[str, dict[str, str]],
    about: dict[str, Any],
) -> StepRun:
    """The run of one partition. `inputs` are the reference's digests of the operands, `about` whose run it is and what
    `gathered_whole` says of the partition."""
    fields: dict[str, Any] = {
        **about,
        "partition": partition.name,
        "program": told.get("program", ""),
        "kernels": told.get("kernels", []),
        "check_vma": told.get("check_vma", ""),
        "donated": [name for name in told.get("donated", []) if name not in workload.state],
        "operands": msgspec.convert(told.get("operands", []), list[PlacedArray]),
        "results": msgspec.convert(told.get("results", []), list[PlacedArray]),
        "collectives": msgspec.convert(told.get("collectives", []), list[StepCollective]),
    }
    codes = _standing(workload, told, fields, inputs, partition)
    for word in ("refused", "raised"):
        if word in told:
            code = "donated-operand-reused" if fields["donated"] else f"step-{word}"
            note = told[word] + (f" ({told['at']})" if told.get("at") else "")
            return StepRun(outcome=word, codes=[*codes, *([] if code in codes else [code])], note=note, **fields)
    return _with_values(workload, partition, observed, expected, codes, fields)


def _standing(
    workload: Workload, told: dict[str, Any], fields: dict[str, Any], inputs: dict[str, Any], partition: StepPartition
) -> list[str]:
    """What is wrong whatever the values are."""
    codes = []
    examples = {each.name for each in workload.operands if axis_of(workload, each) is not None}
    misplaced = [each.name for each in fields["operands"] if not each.as_asked]
    if fields.get("gathered") or any(name in examples for name in misplaced):
        codes.append("silent-replication")
    elif misplaced or any(not each.as_asked for each in fields["results"]):
        codes.append("placed-otherwise")
    if fields["donated"]:
        codes.append("donated-operand-reused")
    if told.get("tampered"):
        codes.append("tampered")
    if "inputs" in told and told["inputs"] != inputs[str(partition.examples)]:
        codes.append("inputs-differ")
    return codes


def gathered_whole(
    workload: Workload, cut: Iterable[StepPartition], steps: Mapping[str, dict[str, Any]], binding: Mapping[str, str]
) -> dict[str, list[str]]:
    """By partition: operands with examples that an all-gather of the compiled step brings together whole on every device.

    A gathered count or statistic may be as large as an operand somewhere. It does not grow with the rows of a device: only what
    is seen on two partitions of different rows a device counts.
    """
    seen: dict[str, dict[str, int]] = defaultdict(dict)  # operand -> partition -> rows
    for partition in (each for each in cut if each.devices > 1):
        told = steps.get(partition.name, {}).get("gathered", [])
        for each in workload.operands:
            if _is_gathered(workload, each, partition, told, binding.get(each.dtype, each.dtype)):
                seen[each.name][partition.name] = partition.rows
    found: dict[str, list[str]] = defaultdict(list)
    for name, places in seen.items():
        for place in places if len(set(places.values())) > 1 else ():
            found[place].append(name)
    return dict(found)


def _is_gathered(
    workload: Workload, operand: Operand, partition: StepPartition, told: list[list[Any]], dtype: str
) -> bool:
    axis = axis_of(workload, operand)
    if axis is None or (len(operand.dims) < 2 and partition.rows < 2):
        return False
    rows = partition.rows * partition.devices
    shape = list(operand.shape({**workload.dims, workload.examples: rows}))
    rest = [size for place, size in enumerate(shape) if place != axis]
    floating = dtype.startswith(("float", "bfloat"))
    return any(is_whole(kind, dims, rows, rest, floating) for kind, dims in told)


def _with_values(
    workload: Workload,
    partition: StepPartition,
    observed: Values,
    expected: Values,
    codes: list[str],
    fields: dict[str, Any],
) -> StepRun:
    differing = differing_copies({name: each for name, each in observed.items() if name.partition(":")[0] in OWN})
    losses = [_number(update.reshape(-1)[0]) for update in observed["loss"]]
    fields |= {"copies_equal": not differing, "differing": differing, "losses": losses}
    if not expected:
        codes = [*codes, *(["copies-differ"] if differing else [])]
        return StepRun(outcome="wrong" if codes else "right", codes=codes, **fields)
    of = Comparison(workload, partition, observed, expected)
    errors = [of.errors(update) for update in range(of.updates)]
    fields |= {"errors": errors, "padding": _padding(of)}
    wrong = differing or not all(of.right(update) for update in range(of.updates))
    wrong = bool(wrong) or not all(fields["padding"].values())
    if wrong:
        codes = [*codes, *(each for each in explanations(of) if each not in codes)]
    outcome = "wrong" if wrong or codes else "right"
    return StepRun(outcome=outcome, codes=codes, note=_note(of, errors, losses) if wrong else "", **fields)


def _padding(of: Comparison) -> dict[str, bool]:
    """For each filling of the rows beyond the counts, whether the first update is right."""
    if of.partition.whole:
        return {}
    return {POISON: of.right(0), **({FINITE: of.right(0, f"{FINITE}-")} if of.filled() else {})}


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _note(of: Comparison, errors: list[StepErrors], losses: list[float | None]) -> str:
    """By how much the first update is off, and whether the loss falls all the same."""
    first = next((index for index in range(of.updates) if not of.right(index)), 0)
    shown = [
        f"{name} off by {_share(value)}"
        for name, value in (
            ("loss", errors[first].loss),
            ("gradient", errors[first].gradient),
            ("state", errors[first].state),
        )
        if not (value is not None and value <= of.workload.within)
        and not (name == "gradient" and not of.has("gradient"))
    ]
    known = [each for each in losses if each is not None]
    falls = len(known) == len(losses) > 1 and known[-1] < known[0]
    text = f"update {first + 1}: {', '.join(shown) or 'copies of ' + ', '.join(differing_copies(of.observed))[:80]}"
    if REPEATED + "loss" in of.observed and of.right(0, REPEATED):
        text += "; and within the bound where the examples of a device are all the same"
    return text + ("; its loss falls all the same" if falls else "")


def _share(value: float | None) -> str:
    return "no finite value" if value is None else f"{value:.1%}" if value >= 1e-3 else f"{value:.1e}"


def ungiven_run(partition: StepPartition, result: JobResult, about: dict[str, Any]) -> StepRun:
    """A partition of which the worker told nothing: it ended there, or before."""
    error = dict(result.error or {})
    ending = f"{result.outcome}: {error.get('message') or error.get('what') or ''}".rstrip(": ")
    here = result.step_in_progress == partition.name
    earlier = result.step_in_progress in ("import", "step")
    note = ending[:300] if here or earlier else f"not run: the worker had ended, {ending}"[:300]
    outcome = "died" if here else ("refused" if earlier else "not-run")
    codes = ["step-died"] if here else (["step-refused"] if earlier else [])
    return StepRun(partition=partition.name, outcome=outcome, codes=codes, note=note, **about)
