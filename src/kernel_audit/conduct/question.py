"""What is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from kernel_audit.contract import Audit
from kernel_audit.contract.places import locate
from kernel_audit.errors import AuditFileError
from kernel_audit.evidence import Evidence
from kernel_audit.matrix.audit_sources import below
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.records import Decision, Record

# fields of a Question that name functions -> how they are asked on the command line
_OPTIONS = {"candidate": "--candidate", "candidate_step": "--candidate-step"}


@dataclass(frozen=True)
class Question:
    """What is asked: AUDIT as on the command line, and how.

    `candidate` puts another function under the same contract, `candidate_step` gives it a complete step of its own. `cells` is
    a fixture sequence or a part of cell ids; `quick` leaves out the shapes that are derived from blocks.
    """

    audit: str
    candidate: str | None = None
    candidate_step: str | None = None
    cells: str | None = None
    quick: bool = False
    late_seed: int | None = None
    limits: Limits = field(default_factory=Limits)
    workers: int = 2
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A decision with its evidence; `page` is the bundle's page, None where no bundle was written."""

    evidence: Evidence
    decision: Decision
    page: Path | None = None
    finished_before: bool = False


class Request(Record, kw_only=True):
    """`OUT.partial/request.json`: the frozen question, written before any candidate is loaded."""

    schema: str = "kernel-audit/request/1"
    audit: Audit
    cells: str | None
    quick: bool
    late_seed: int
    late_seed_commitment: str
    sources: dict[str, str]
    tool_version: str


def localised(question: Question) -> Question:
    """Functions given as paths are referred to by their names in their folders."""
    changed = {
        name: f"{file.name}:{str(getattr(question, name)).rpartition(':')[2]}"
        for name, file in _files_given(question).items()
    }
    return replace(question, **changed)


def roots_of(question: Question) -> list[Path]:
    """The folders that file references are relative to: the audit's, and those of functions put in the place of its own."""
    roots = [locate(question.audit).root]
    for name, file in _files_given(question).items():
        taken = [root for root in roots if file.parent != root and (root / file.name).exists()]
        if taken:
            raise AuditFileError(
                "a candidate file of the same name as a file beside the audit",
                stage="audit",
                where=_OPTIONS[name],
                expected="a file name of its own",
                got=file.name,
            )
        if file.parent not in roots:
            roots.append(file.parent)
    return roots


def given_files(question: Question) -> list[Path]:
    """The files of `--candidate` and `--candidate-step`. Raises AuditFileError when one is not there."""
    return list(_files_given(question).values())


def with_given(question: Question, files: dict[str, str]) -> dict[str, str]:
    """The files of an audit with those given in the place of its own, and what these import (label -> path)."""
    given = {each.name: str(each) for each in given_files(question)}
    return {**files, **below(given, roots_of(question))} if given else files


def _files_given(question: Question) -> dict[str, Path]:
    found = {}
    for name, option in _OPTIONS.items():
        place, _, function = (getattr(question, name) or "").rpartition(":")
        if not place.endswith(".py"):
            continue
        if not Path(place).is_file():
            raise AuditFileError(
                "no such candidate file",
                stage="audit",
                where=f"{option} {place}:{function}",
                expected="a Python file",
                got=place,
            )
        found[name] = Path(place).resolve()
    return found


def reference_text(question: Question) -> str:
    """The question as it is typed, without folders: AUDIT, and the functions put in the place of its own."""
    path, separator, name = question.audit.partition(":")
    local = localised(question)
    given = [f" {option} {getattr(local, key)}" for key, option in _OPTIONS.items() if getattr(local, key)]
    return Path(path).name + separator + name + "".join(given)
