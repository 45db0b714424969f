"""All that is observed for a question, as evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kernel_audit.conduct.freezing import frozen_request
from kernel_audit.conduct.question import Question, Request, reference_text, roots_of
from kernel_audit.evidence import Evidence, FrozenAudit
from kernel_audit.matrix.check import Matrix, Progress, check_matrix
from kernel_audit.matrix.environment import environment_of
from kernel_audit.matrix.laboratory import PRELOAD, Laboratory
from kernel_audit.records import digest_bytes
from kernel_audit.worker import Pool


def observed(question: Question, work: Path, progress: Progress) -> tuple[Evidence, dict[str, bytes]]:
    """The evidence, and the judged sources by label."""
    with laboratory_for(question, work) as (laboratory, pool):
        request, files = frozen_request(question, pool, work)
        matrix = check_matrix(
            request.audit, laboratory, request.late_seed, progress, only=request.cells, quick=request.quick
        )
        return evidence_of(question, request, matrix, files)


@contextmanager
def laboratory_for(question: Question, work: Path) -> Iterator[tuple[Laboratory, Pool]]:
    roots = roots_of(question)  # what is not there is told before a worker is started
    with Pool(size=question.workers, preload=PRELOAD) as pool:
        laboratory = Laboratory(pool, work, roots, question.limits, question.workers)
        try:
            yield laboratory, pool
        finally:
            laboratory.close()


def evidence_of(
    question: Question, request: Request, matrix: Matrix, files: dict[str, str]
) -> tuple[Evidence, dict[str, bytes]]:
    """All records of a finished matrix, and the judged sources by label."""
    sources = {
        label: path.read_bytes() for label, path in _readable(matrix.source_files, files, roots_of(question)).items()
    }
    frozen = FrozenAudit(
        reference=reference_text(question),
        cells=request.cells,
        quick=request.quick,
        audit=request.audit,
        plan=matrix.plan,
        late_seed=request.late_seed,
        late_seed_commitment=request.late_seed_commitment,
        sources={label: digest_bytes(data) for label, data in sources.items()},
    )
    records = matrix.records
    evidence = Evidence(
        frozen=frozen,
        environment=environment_of(request.audit, matrix, question.command),
        programs=records.programs,
        cells=records.cells,
        controls=records.controls,
        refusals=records.refusals,
    )
    return evidence, sources


def _readable(told: Mapping[str, str], files: Mapping[str, str], roots: list[Path]) -> dict[str, Path]:
    """The sources to keep. What a worker told is a path, and it imported a candidate: only Python files below the audit's
    folders, or beside a function that the audit names, are read for it."""
    homes = [each.resolve() for each in (*roots, *[Path(path).parent for path in files.values()])]
    found = {label: Path(path) for label, path in files.items()}
    for label, path in told.items():
        place = Path(path).resolve()
        if place.suffix == ".py" and place.is_file() and any(place.is_relative_to(home) for home in homes):
            found.setdefault(label, place)
    return dict(sorted(found.items()))
