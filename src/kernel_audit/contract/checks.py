"""What an audit must satisfy as a whole. Each check names the key at fault, what was expected and the next step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from kernel_audit.contract.ablations import NAME_FORM, check_ablations, is_name
from kernel_audit.contract.dtypes import is_float
from kernel_audit.contract.model import Audit
from kernel_audit.contract.regimes import check_frequencies
from kernel_audit.contract.spec import parse_array
from kernel_audit.contract.tuning import TargetTuning, tables
from kernel_audit.contract.words import FAMILIES, OBJECTIVES
from kernel_audit.contract.workload import check_workload
from kernel_audit.errors import AuditFileError, near
from kernel_audit.records import encode

_TARGET = re.compile(r"(tpu|gpu):[a-z0-9][a-z0-9.-]*")
# Names under which records of the tool's own are kept.
_OWN_CONTROLS = (
    *("oracle", "zeros", "last-row-wrong", "last-column-wrong", "shifted-by-one-row", "one-ulp-off", "another-dtype"),
    *("operands-swapped", "operands-rounded"),
)
_OWN_REFUSALS = ("door", "door-opened", "door-unplaced", "door-closed")


def check_audit(audit: Audit, others: Iterable[Audit] = (), *, empty: bool = False) -> None:
    """Raises AuditFileError at the first thing that cannot hold. `empty`: an empty list of baselines was stated."""
    _check_types(audit)
    _check_name(audit, others)
    _check_operands(audit)
    _check_references(audit, empty)
    check_ablations(audit)
    _check_agreement(audit)
    _check_shapes(audit)
    _check_values(audit)
    _check_invariants(audit)
    _check_refusals(audit)
    _check_controls(audit)
    _check_worth(audit)
    _check_reach(audit)
    _check_tuning(audit)
    check_workload(audit)
    check_frequencies(audit)


def _check_types(audit: Audit) -> None:
    """Every field has its type, and every value survives JSON: what the parent reads is what the file says."""
    try:
        same = msgspec.json.decode(encode(audit), type=Audit) == audit
        got = "a number that is not finite" if not same else ""
    except (msgspec.ValidationError, TypeError) as error:
        got = str(error)
    if got:
        raise AuditFileError(
            "a value of another kind than the audit can hold",
            stage="audit",
            where=f"audit {audit.name!r}",
            expected="what the words of kernel_audit give; texts, numbers, lists and tuples as parameters",
            got=got,
        )


def _fault(audit: Audit, what: str, key: str, expected: str, got: str) -> AuditFileError:
    return AuditFileError(
        what,
        stage="audit",
        where=f"audit {audit.name!r}: {key}",
        expected=expected,
        got=got,
        settled={**audit.declared_dims, **{key: "|".join(value) for key, value in audit.dtypes.items()}},
    )


def _check_name(audit: Audit, others: Iterable[Audit]) -> None:
    if not is_name(audit.name):
        raise _fault(audit, "a name that cannot be a name", "name", NAME_FORM, repr(audit.name))
    if any(each.name == audit.name for each in others):
        raise _fault(audit, "two audits of one name", "name", "a name of its own: name='...'", repr(audit.name))


def _check_operands(audit: Audit) -> None:
    if not audit.operands:
        raise _fault(audit, "no operands", "args", 'at least one, such as "x: f32[m=257, n=513]"', "an empty list")
    used = {each.dtype for each in [*audit.operands, *audit.results]}
    for variable in audit.dtypes:
        if variable not in used:
            raise _fault(
                audit,
                "a dtype variable that no operand uses",
                "dtypes",
                ", ".join(sorted(used)),
                repr(variable),
            )
    tuned = [table for _, table in tables(audit.tuning)]
    for name in dict.fromkeys(key for table in [*tuned, audit.modes, audit.fixed] for key in table):
        if sum((any(name in table for table in tuned), name in audit.modes, name in audit.fixed)) > 1:
            raise _fault(audit, "a parameter stated twice", name, "one of tuning, modes and fixed", repr(name))
    for name, choices in [each for table in (audit.dtypes, *tuned, audit.modes) for each in table.items()]:
        if twice := _first_twice(choices):
            raise _fault(audit, "a choice stated twice", name, "distinct choices", twice)


def _first_twice(values: Iterable[Any]) -> str:
    """The first value that occurs again, as text; empty when there is none."""
    known: list[Any] = []
    for value in values:
        if value in known and any(type(value) is type(each) for each in known if each == value):
            return repr(value)
        known.append(value)
    return ""


def _check_references(audit: Audit, empty: bool) -> None:
    if empty:
        raise _fault(
            audit,
            "no reference",
            "baselines",
            "at least one ordinary formulation under the same contract",
            "an empty list",
        )
    names = [each.name for each in audit.baselines]
    for name in names:
        if names.count(name) > 1:
            raise _fault(
                audit,
                "two baselines of one name",
                "baselines",
                "baseline(f, name='...', strong='...')",
                repr(name),
            )
    if any(each.function == audit.candidate for each in audit.baselines):
        raise _fault(audit, "the candidate is its own baseline", "baselines", "another function", audit.candidate.text)


def _check_agreement(audit: Audit) -> None:
    if audit.agreement.kind == "ulp" and audit.agreement.ulps < 0:
        raise _fault(
            audit,
            "a negative tolerance",
            "agreement",
            "ulp(k) with k of 0 or more",
            str(audit.agreement.ulps),
        )
    if audit.agreement.kind == "derived" and not 0 < audit.agreement.factor <= 16:
        raise _fault(
            audit,
            "a factor outside reason",
            "agreement",
            "derived(factor) in (0, 16]",
            str(audit.agreement.factor),
        )


def _check_shapes(audit: Audit) -> None:
    known = audit.declared_dims
    named = [("shapes", each) for each in audit.shapes]
    for sequence in audit.sequences:
        if not is_name(sequence.name):
            raise _fault(audit, "a name that cannot be a name", "fixtures", NAME_FORM, repr(sequence.name))
        if not sequence.shapes:
            raise _fault(audit, "an empty list of shapes", f"fixtures: {sequence.name}", "at least one shape", "[]")
        if twice := _first_twice(sequence.shapes):
            raise _fault(audit, "a shape stated twice", f"fixtures: {sequence.name}", "distinct shapes", twice)
        named += [(f"fixtures: {sequence.name}", each) for each in sequence.shapes]
    names = [each.name for each in audit.sequences]
    if len(set(names)) < len(names):
        raise _fault(audit, "two fixture sequences of one name", "fixtures", "distinct names", ", ".join(names))
    for key, dims in named:
        for name in [*dims, *known]:
            if name not in known:
                raise _fault(audit, "an unknown dimension", key, "one of " + ", ".join(known), near(name, known))
            if name not in dims:
                raise _fault(audit, "a shape that leaves a dimension out", key, f"a size for {name!r}", str(dims))
        if not audit.admits(dims):
            raise _fault(audit, "a shape that the contract does not admit", key, "sizes that `vary` admits", str(dims))


def _check_values(audit: Audit) -> None:
    if not audit.values.families:
        raise _fault(audit, "no value families", "values", ", ".join(FAMILIES), "an empty list")
    if twice := _first_twice(audit.values.families):
        raise _fault(audit, "a value family stated twice", "values", "distinct families", twice)
    for family in audit.values.families:
        if family not in FAMILIES:
            raise _fault(
                audit,
                "an unknown value family",
                "values",
                "one of " + ", ".join(FAMILIES),
                near(family, FAMILIES),
            )
    for key, value, choices in (
        ("values(subnormals=)", audit.values.subnormals, ("preserve", "flush", "either")),
        ("values(nonfinite=)", audit.values.nonfinite, ("propagate", "unspecified")),
    ):
        if value not in choices:
            raise _fault(audit, "an unknown policy", key, "one of " + ", ".join(choices), near(value, choices))
    if not is_float(audit.precision.arithmetic):
        raise _fault(
            audit,
            "arithmetic in no float dtype",
            "arithmetic",
            "f32, bf16 or f16",
            audit.precision.arithmetic,
        )


def _check_invariants(audit: Audit) -> None:
    known = audit.declared_dims
    for each in audit.invariants:
        if each.dim not in known:
            raise _fault(
                audit,
                "an unknown dimension",
                f"invariants: {each.kind}",
                "one of " + ", ".join(known),
                near(each.dim, known),
            )
        if not audit.results or not any(each.dim in result.dims for result in audit.results):
            raise _fault(
                audit,
                "an invariant along a dimension that no result has",
                f"invariants: {each.kind}",
                'results=["out: T[m, n]"] with that dimension',
                repr(each.dim),
            )


def _check_refusals(audit: Audit) -> None:
    operands = [each.name for each in audit.operands]
    names = [each.name for each in audit.refusals]
    for refusal in audit.refusals:
        key = f"refuses: {refusal.name}"
        if refusal.name in _OWN_REFUSALS:
            raise _fault(audit, "a name that the tool uses itself", key, "another name", repr(refusal.name))
        if names.count(refusal.name) > 1:
            raise _fault(audit, "two refusals of one name", key, "distinct names", repr(refusal.name))
        if not refusal.operands and not refusal.keywords:
            raise _fault(audit, "a refusal that changes nothing", key, "an operand or a keyword changed", "no change")
        for name, text in refusal.operands.items():
            if name not in operands:
                raise _fault(audit, "an unknown operand", key, "one of " + ", ".join(operands), near(name, operands))
            parse_array(text, where=f"audit {audit.name!r}: {key}")


def _check_controls(audit: Audit) -> None:
    names = [each.name for each in audit.controls]
    if twice := _first_twice([*_OWN_CONTROLS, *names]):
        raise _fault(audit, "two controls of one name", "controls", "a name that is not taken", twice)


def _check_reach(audit: Audit) -> None:
    """How far the plan may go, and the devices that the decision is about."""
    for key, limit in (("program_limit", audit.program_limit), ("element_limit", audit.element_limit)):
        if limit < 1:
            raise _fault(audit, "a limit that no plan can keep", key, "1 or more", str(limit))
    for target in audit.targets or ():
        if not _TARGET.fullmatch(target):
            raise _fault(audit, "a target that cannot be read", "targets", "such as tpu:v5e or gpu:h200", repr(target))


def _check_tuning(audit: Audit) -> None:
    """Products of tuning name targets, and every target that the audit names has a configuration."""
    if isinstance(audit.tuning, dict):
        return
    for index, product in enumerate(audit.tuning):
        key = f"tuning[{index}]"
        if not product.targets:
            raise _fault(audit, "choices for no target", key, 'on("tpu", ...) or on("gpu", ...)', _on(product))
        for target in product.targets:
            if target not in ("tpu", "gpu") and not _TARGET.fullmatch(target):
                raise _fault(
                    audit, "a target that cannot be read", key, "tpu, gpu, or one such as tpu:v5e", repr(target)
                )
    for target in audit.targets or ():
        if not audit.configurations_for(target):
            stated = ", ".join(dict.fromkeys(each for product in audit.tuning for each in product.targets))
            raise _fault(
                audit, "a target without a configuration", "tuning", f"on({target!r}, ...)", f"only for {stated}"
            )


def _on(product: TargetTuning) -> str:
    return f"on({', '.join(f'{name}={choices!r}' for name, choices in product.choices.items())})"


def _check_worth(audit: Audit) -> None:
    if audit.worth.objective not in (*OBJECTIVES, "not-stated"):
        raise _fault(
            audit,
            "an unknown objective",
            "worth",
            "one of " + ", ".join(OBJECTIVES),
            near(audit.worth.objective, OBJECTIVES),
        )
    if audit.part != audit.part.strip() or "\n" in audit.part:
        raise _fault(audit, "a part that is no line of text", "part", "the part's name, or nothing", repr(audit.part))
    if not 0 <= audit.worth.margin < 1:
        raise _fault(audit, "a margin that is no share", "worth", "a share in [0, 1)", str(audit.worth.margin))


def require_to_decide(audit: Audit) -> None:
    """Raises AuditFileError naming the word that is missing, for an audit that can only be inspected and compiled."""
    examples = {
        "baselines": 'baselines=[f]: an ordinary formulation under the same contract, or its place as "file.py:name"',
        "worth": 'worth=step_time("train.py:step", 0.02), or another word for what is worth having',
    }
    for word in audit.missing_to_decide:
        raise AuditFileError(
            "an audit that can be inspected and compiled only",
            stage="audit",
            where=f"audit {audit.name!r}: {word}",
            expected=examples[word],
            got=f"no {word}",
            settled=audit.declared_dims,
            next_command="kernel-audit inspect, or state it in the audit file",
        )
