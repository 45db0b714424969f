"""`audit`: what an audit file says, checked and made into a record while the file is loaded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernel_audit.contract.ablations import ablations_of
from kernel_audit.contract.checks import check_audit
from kernel_audit.contract.dtypes import SHORT, full_name
from kernel_audit.contract.functions import reference_to
from kernel_audit.contract.model import (
    Agreement,
    Audit,
    Baseline,
    ControlFunction,
    Dimension,
    Door,
    FunctionRef,
    Invariant,
    Operand,
    Oracle,
    Precision,
    Probe,
    Refusal,
    Sequence,
    Values,
    Worth,
)
from kernel_audit.contract.spec import parse_operands, require_judged
from kernel_audit.contract.tuning import TargetTuning, Tuning, tables
from kernel_audit.contract.words import Vary, derived
from kernel_audit.contract.words import values as default_values
from kernel_audit.contract.workload import StatedStep, workload_of
from kernel_audit.errors import AuditFileError, near

declared: list[Audit] = []


def audit(
    *,
    args: list[str],
    baselines: list[Callable[..., Any] | str | Baseline] | None = None,
    worth: Worth | None = None,
    name: str | None = None,
    candidate: Callable[..., Any] | str | FunctionRef | None = None,
    dtypes: Mapping[str, list[str]] | None = None,
    vary: Mapping[str, Any] | None = None,
    results: list[str] | None = None,
    ablations: Mapping[str, Callable[..., Any] | str | FunctionRef | Mapping[str, Any]] | None = None,
    tuning: Mapping[str, list[Any]] | list[TargetTuning] | None = None,
    modes: Mapping[str, list[Any]] | None = None,
    fixed: Mapping[str, Any] | None = None,
    arithmetic: str = "float32",
    agreement: Agreement | None = None,
    oracle: Callable[..., Any] | str | None = None,
    values: Values | None = None,
    invariants: list[Invariant] | None = None,
    refuses: list[Refusal] | None = None,
    door: Door | None = None,
    probe: Probe | Callable[..., Any] | str | None = None,
    controls: list[ControlFunction] | None = None,
    shapes: list[dict[str, int]] | None = None,
    fixtures: list[Sequence] | None = None,
    alone: bool = False,
    program_limit: int = 256,
    element_limit: int = 1 << 26,
    targets: list[str] | None = None,
    workload: StatedStep | None = None,
    part: str = "",
    prediction: str = "",
    frequencies: Mapping[str, float] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares an audit: as a decorator of the candidate, or, with `candidate=`, at once.

    args: operands, "NAME: DTYPE[DIM=SIZE, ...]" (spec.py). dtypes: dtype variables and their choices. vary: what sizes a
    dimension may take: `any`, `multiple(k)`, `between(a, b)`, a list; a dimension not named is fixed. tuning: parameters
    that must not change the result, with the choices to check, or a list of `on("tpu", ...)` where these depend on the
    target; modes: parameters that must; fixed: other keywords. ablations: twins with one optimisation off (ablations.py).
    agreement: `exact()`, `ulp(k, because=...)` or `derived()` (the default). oracle: host NumPy in the arithmetic dtype;
    without it the first baseline is lifted to float64. probe: a builder of the kernel without its guard (words.probe). An audit
    without `baselines` or `worth` can be inspected and compiled only. workload: the complete step that the candidate is a part
    of, `complete_step(...)` (workload.py). part: which named part of the workload the candidate is, in words.

    Raises AuditFileError naming the key at fault.
    """
    stated, choices = agreement or derived(), _tuning(tuning)
    for key, table, example in (
        ("dtypes", dtypes, 'dtypes={"T": ["f32", "bf16"]}, and T for the dtype in args'),
        ("vary", vary, 'vary={"n": any}'),
        ("modes", modes, 'modes={"causal": [True, False]}'),
        ("fixed", fixed, 'fixed={"mode": "interpret"}'),
        (
            "ablations",
            ablations,
            'ablations={"without-pipelining": "kernel.py:plain_rows", "one-buffer": {"buffers": 1}}',
        ),
    ):
        _require_table(key, table, example)
    variables = {key: _dtype_choices(key, choices) for key, choices in dict(dtypes or {}).items()}
    operands, sizes = parse_operands(args, variables, where="args")
    outcomes, sizes = _results(results or [], variables, operands, sizes)
    twins = ablations_of(dict(ablations or {}))
    called_with = [name for _, table in tables(choices) for name in table] + [*dict(modes or {}), *dict(fixed or {})]
    for key, twin in dict(ablations or {}).items():
        if callable(twin):
            _check_keywords(twin, called_with, operands, f"ablations[{key!r}]", "ablation")

    def declare(reference: FunctionRef) -> None:
        made = Audit(
            name=name or _own_name(reference),
            candidate=reference,
            baselines=_baselines(baselines or []),
            ablations=twins,
            oracle=_oracle(oracle),
            operands=operands,
            results=outcomes,
            dimensions=_dimensions(sizes, dict(vary or {})),
            dtypes=variables,
            modes=_choices(modes, "modes"),
            tuning=choices,
            fixed=dict(fixed or {}),
            precision=_precision(arithmetic, stated, oracle is not None),
            agreement=stated,
            values=values or default_values(),
            invariants=list(invariants or []),
            refusals=list(refuses or []),
            door=door,
            probe=probe
            if probe is None or isinstance(probe, Probe)
            else Probe(function=reference_to(probe, where="probe")),
            controls=list(controls or []),
            shapes=list(shapes or []),
            sequences=list(fixtures or []),
            alone=alone,
            program_limit=program_limit,
            element_limit=element_limit,
            targets=targets,
            worth=worth or Worth(),
            workload=workload_of(workload, operands, sizes, variables),
            part=part,
            prediction=prediction,
            frequencies=dict(frequencies or {}),
        )
        check_audit(made, declared, empty=baselines is not None and not baselines)
        declared.append(made)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _check_keywords(function, called_with, operands)
        for each in twins:
            _check_keywords(function, list(each.changed), operands, f"ablations[{each.name!r}]")
        declare(reference_to(function, where="the decorated function"))
        return function

    if candidate is not None:
        given = candidate if isinstance(candidate, FunctionRef) else reference_to(candidate, where="candidate")
        declare(given)
    return decorate


def _require_table(key: str, table: Any, example: str) -> None:
    if table is not None and not isinstance(table, Mapping):
        raise AuditFileError(
            f"{key} of another form", stage="audit", where=key, expected=example, got=repr(table)[:200]
        )


def _own_name(reference: FunctionRef) -> str:
    """What an audit without a name is called: as its candidate; where a factory makes that, as the factory's file."""
    name = reference.name
    if reference.factory:
        home = Path(reference.file).stem if reference.file else (reference.module or name).rpartition(".")[2]
        taken = {each.name for each in declared}
        name = f"{home}_{name}" if home.replace("_", "-") in taken else home
    return name.replace("_", "-")


def _dtype_choices(variable: str, choices: list[str]) -> list[str]:
    where = f"dtypes[{variable!r}]"
    if isinstance(choices, str) or not choices:
        raise AuditFileError(
            "a dtype variable without choices",
            stage="audit",
            where=where,
            expected='["f32", ...]',
            got=repr(choices),
        )
    names = []
    for text in choices:
        found = full_name(text)
        if found is None:
            raise AuditFileError(
                "an unknown dtype",
                stage="audit",
                where=where,
                expected="one of " + ", ".join(SHORT),
                got=near(text, [*SHORT, *SHORT.values()]),
            )
        names.append(require_judged(found, where))
    return names


def _results(
    texts: list[str], variables: Mapping[str, list[str]], operands: list[Operand], sizes: dict[str, int]
) -> tuple[list[Operand], dict[str, int]]:
    if not texts:
        return [], sizes
    known = [f"{each.name}: {each.dtype}[{', '.join(_sized(dim, sizes) for dim in each.dims)}]" for each in operands]
    try:
        parsed, all_sizes = parse_operands([*known, *texts], variables, where="args and results")
    except AuditFileError as fault:
        fault.where = fault.where.replace("args and results", "results (counted after args)")
        fault.args = (fault.text(),)
        raise
    return parsed[len(operands) :], all_sizes


def _sized(dim: str | int, sizes: dict[str, int]) -> str:
    return f"{dim}={sizes[dim]}" if isinstance(dim, str) else str(dim)


def _dimensions(sizes: dict[str, int], vary: dict[str, Any]) -> list[Dimension]:
    for key in vary:
        if key not in sizes:
            raise AuditFileError(
                "an unknown dimension",
                stage="audit",
                where=f"vary[{key!r}]",
                expected="one of " + ", ".join(sizes),
                got=near(key, sizes),
                settled=sizes,
            )
    return [_dimension(key, size, vary.get(key)) for key, size in sizes.items()]


def _dimension(name: str, size: int, rule: Any) -> Dimension:
    if rule is None:
        made = Dimension(name=name, size=size)
    elif rule is any or rule == "any":
        made = Dimension(name=name, size=size, vary="any")
    elif isinstance(rule, Vary):
        made = Dimension(name=name, size=size, vary=rule.vary, values=rule.values)
    elif isinstance(rule, list) and rule and all(isinstance(each, int) and each > 0 for each in rule):
        made = Dimension(name=name, size=size, vary="choices", values=rule)
    else:
        raise AuditFileError(
            "a rule that cannot be read",
            stage="audit",
            where=f"vary[{name!r}]",
            expected="any, multiple(k), between(a, b) or a list of sizes",
            got=repr(rule),
        )
    if not made.admits(size):
        raise AuditFileError(
            "a declared size that its own rule does not admit",
            stage="audit",
            where=f"vary[{name!r}]",
            expected=f"{made.vary} {made.values}",
            got=f"{name}={size}",
        )
    return made


def _tuning(given: Mapping[str, list[Any]] | list[TargetTuning] | None) -> Tuning:
    if given is None or isinstance(given, Mapping):
        return _choices(given, "tuning")
    if not isinstance(given, list) or not given or not all(isinstance(each, TargetTuning) for each in given):
        raise AuditFileError(
            "tuning of another form",
            stage="audit",
            where="tuning",
            expected='{"block": [(8, 128)]}, or [on("tpu", block=[(8, 128)]), on("gpu", block=[(16, 64)])]',
            got=repr(given),
        )
    return [
        TargetTuning(targets=each.targets, choices=_choices(each.choices, f"tuning[{index}]"))
        for index, each in enumerate(given)
    ]


def _choices(table: Mapping[str, list[Any]] | None, where: str) -> dict[str, list[Any]]:
    for key, choices in dict(table or {}).items():
        if not isinstance(choices, list) or not choices:
            raise AuditFileError(
                "a parameter without choices",
                stage="audit",
                where=f"{where}[{key!r}]",
                expected="a list with at least one choice",
                got=repr(choices),
            )
    return {key: [_plain(each) for each in choices] for key, choices in dict(table or {}).items()}


def _plain(value: Any) -> Any:
    """Tuples become lists, as JSON has no tuples; they become tuples again when the candidate is called."""
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else value


def _baselines(given: list[Callable[..., Any] | str | Baseline]) -> list[Baseline]:
    made = []
    for index, each in enumerate(given):
        if isinstance(each, Baseline):
            made.append(each)
            continue
        ref = reference_to(each, where=f"baselines[{index}]")
        made.append(Baseline(name=ref.name, function=ref, strong="not stated"))
    return made


def _oracle(function: Callable[..., Any] | str | None) -> Oracle:
    if function is None:
        return Oracle(kind="lifted")
    return Oracle(kind="independent", function=reference_to(function, where="oracle"))


def _precision(arithmetic: str, agreement: Agreement, independent: bool) -> Precision:
    name = full_name(arithmetic)
    if name is None:
        raise AuditFileError(
            "an unknown arithmetic dtype",
            stage="audit",
            where="arithmetic",
            expected="f32, bf16, ...",
            got=near(arithmetic, ["f32", "bf16", "float32"]),
        )
    exactly = isinstance(agreement, Agreement) and agreement.kind == "exact"
    return Precision(arithmetic=name, oracle=name if exactly and independent else "float64")


def _check_keywords(
    function: Callable[..., Any],
    names: list[str],
    operands: list[Operand],
    where: str = "tuning, modes or fixed",
    who: str = "candidate",
) -> None:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    for name in names:
        if name not in parameters:
            raise AuditFileError(
                f"a parameter that the {who} does not have",
                stage="audit",
                where=f"{where}: {name!r}",
                expected="one of " + ", ".join(parameters),
                got=near(name, parameters),
                settled={"operands": ", ".join(each.name for each in operands)},
            )
