"""Ablations: twins of the candidate with one optimisation off. What an audit file says of them, and what must hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel_audit.contract.functions import reference_to
from kernel_audit.contract.model import Ablation, Audit, FunctionRef
from kernel_audit.errors import AuditFileError

NAME_FORM = "letters, digits, '-', '_' and '.'"


def ablations_of(stated: Mapping[str, Any]) -> list[Ablation]:
    """A name with a function, its place or `built_by(...)`, or with changed keywords of the candidate.

    Raises AuditFileError for anything else."""
    return [_ablation(name, given) for name, given in stated.items()]


def _ablation(name: Any, given: Any) -> Ablation:
    where = f"ablations[{name!r}]"
    if not is_name(name):
        raise _fault("a name that cannot be a name", where, NAME_FORM, repr(name))
    if isinstance(given, FunctionRef):
        return Ablation(name=name, function=given)
    if callable(given) or isinstance(given, str):
        return Ablation(name=name, function=reference_to(given, where=where))
    if not isinstance(given, Mapping):
        expected = 'a function of the same contract, its place as text, or changed keywords: {"buffers": 1}'
        raise _fault("an ablation of another form", where, expected, repr(given)[:200])
    return Ablation(name=name, changed={key: _plain(value) for key, value in given.items()})


def check_ablations(audit: Audit) -> None:
    """Raises AuditFileError for a name that is taken, for one that changes nothing, and for one that changes a promise."""
    taken = ["candidate", *(each.name for each in audit.baselines)]
    promised = [*audit.modes, *(audit.door.keywords if audit.door else ())]
    for each in audit.ablations:
        where = f"audit {audit.name!r}: ablations[{each.name!r}]"
        if each.name in taken:
            raise _fault("a name that is taken", where, f"another name than {', '.join(taken)}", repr(each.name))
        if _changes_nothing(audit, each):
            got = each.function.text if each.function is not None else repr(each.changed)
            expected = "another function than the candidate, or a keyword with another value"
            raise _fault("an ablation that changes nothing", where, expected, got)
        for key in each.changed:
            if key in promised:
                expected = "keywords that must not change the result, and none of modes or door"
                raise _fault("an ablation that changes what is promised", where, expected, repr(key))


def twin_configurations(ablation: Ablation, configurations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the candidate with what the twin changes, in order and each once."""
    found: list[dict[str, Any]] = []
    for each in configurations:
        changed = {**each, **ablation.changed}
        found += [changed] if changed not in found else []
    return found


def is_name(text: Any) -> bool:
    """Whether it can be the name of something that an audit states."""
    return isinstance(text, str) and bool(text) and all(each.isalnum() or each in "-_." for each in text)


def _changes_nothing(audit: Audit, ablation: Ablation) -> bool:
    if ablation.function is not None:
        return ablation.function == audit.candidate
    before = [{**audit.fixed, **each} for each in audit.configurations()]
    return all({**each, **ablation.changed} == each for each in before)


def _plain(value: Any) -> Any:
    """Tuples become lists, as JSON has no tuples."""
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else value


def _fault(what: str, where: str, expected: str, got: str) -> AuditFileError:
    return AuditFileError(what, stage="audit", where=where, expected=expected, got=got)
