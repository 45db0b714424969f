"""What is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from kernel_audit.contract import Audit
from kernel_audit.contract.places import locate
from kernel_audit.errors import AuditFileError
from kernel_audit.evidence import Evidence
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.records import Decision, Record


@dataclass(frozen=True)
class Question:
    """What is asked: AUDIT as on the command line, and how.

    `candidate` puts another function under the same contract. `cells` is a fixture sequence or a part of cell ids;
    `quick` leaves out the shapes that are derived from blocks.
    """

    audit: str
    candidate: str | None = None
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
    """A candidate given as a path is referred to by its name in its folder."""
    if (file := candidate_path(question)) is None:
        return question
    return replace(question, candidate=f"{file.name}:{str(question.candidate).rpartition(':')[2]}")


def roots_of(question: Question) -> list[Path]:
    """The folders that file references are relative to: the audit's, and that of a candidate put in its place."""
    roots = [locate(question.audit).root]
    if (file := candidate_path(question)) is not None:
        if file.parent != roots[0] and (roots[0] / file.name).exists():
            raise AuditFileError(
                "a candidate file of the same name as a file beside the audit",
                stage="audit",
                where="--candidate",
                expected="a file name of its own",
                got=file.name,
            )
        roots.append(file.parent)
    return roots


def candidate_path(question: Question) -> Path | None:
    """The file of `--candidate`, None where there is none. Raises AuditFileError when it is not there."""
    place, _, name = (question.candidate or "").rpartition(":")
    if not place.endswith(".py"):
        return None
    if not Path(place).is_file():
        raise AuditFileError(
            "no such candidate file",
            stage="audit",
            where=f"--candidate {place}:{name}",
            expected="a Python file",
            got=place,
        )
    return Path(place).resolve()


def reference_text(question: Question) -> str:
    """The question as it is typed, without folders: AUDIT, and the candidate put in its place."""
    path, separator, name = question.audit.partition(":")
    candidate = localised(question).candidate
    return Path(path).name + separator + name + (f" --candidate {candidate}" if candidate else "")
