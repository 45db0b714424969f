"""All that is observed for a question, as evidence."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from kernel_audit.conduct.compiling import COMPILE_PRELOAD, Compiled, compile_declared
from kernel_audit.conduct.freezing import frozen_request
from kernel_audit.conduct.profiling import PROFILE_PRELOAD, Profiled, ProfileQuestion, profile_or_reason
from kernel_audit.conduct.question import Question, Request, reference_text, roots_of
from kernel_audit.conduct.workload import WORKLOAD_PRELOAD, examine_workload
from kernel_audit.decision import declared_targets
from kernel_audit.evidence import Evidence, FrozenAudit
from kernel_audit.matrix.audit_sources import is_the_tool
from kernel_audit.matrix.check import Matrix, Progress, check_matrix
from kernel_audit.matrix.environment import environment_of
from kernel_audit.matrix.laboratory import Laboratory
from kernel_audit.records import digest_bytes
from kernel_audit.target.bench import Bench
from kernel_audit.worker import Pool


@dataclass(frozen=True)
class Observed:
    """The evidence, and the files that belong to it: judged sources by label, those of a profile by name."""

    evidence: Evidence
    sources: dict[str, bytes]
    traces: dict[str, bytes] = field(default_factory=dict)


def observed(question: Question, work: Path, progress: Progress, *, whole: bool) -> Observed:
    """Everything that can be observed here; without `whole` the correctness matrix alone.

    The whole is besides: the complete step on logical devices, its profile, and the programs compiled for described targets,
    each where the audit has it and this machine can do it. What could not be done is said in the environment.
    """
    with laboratory_for(question, work) as (laboratory, pool):
        request, files = frozen_request(question, pool, work)
        matrix = check_matrix(
            request.audit, laboratory, request.late_seed, progress, only=request.cells, quick=request.quick
        )
        evidence, sources = evidence_of(question, request, matrix, files)
        seen = Observed(evidence, sources)
        if not whole and request.audit.workload is not None:
            left = f"the complete step {request.audit.workload.step.text}: kernel-audit run examines it"
            seen = replace(seen, evidence=_without(evidence, [left]))
        if whole:
            audit = request.audit
            evidence = replace(evidence, workload=examine_workload(laboratory, audit, progress))
            seen = replace(seen, evidence=evidence)
            if audit.workload is not None or audit.worth.step:
                progress("profiling the complete step", 0, None)
                place = _fresh(work, "profile")
                profiled = profile_or_reason(pool, place, roots_of(question), question.limits, audit, ProfileQuestion())
                seen = _with_profile(seen, profiled)
            bench = Bench(pool, _fresh(work, "compiling"), roots_of(question), question.limits, audit)
            compiled = compile_declared(bench, declared_targets(evidence), progress)
            seen = replace(seen, evidence=_with_compiled(seen.evidence, compiled))
        return seen


def _fresh(work: Path, name: str) -> Path:
    """A place for what an interrupted audit does again when it is resumed: it takes seconds."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work)).resolve()


def _with_profile(seen: Observed, profiled: Profiled | str) -> Observed:
    if isinstance(profiled, str):
        return replace(seen, evidence=_without(seen.evidence, [profiled]))
    return replace(seen, evidence=replace(seen.evidence, profile=profiled.record), traces=profiled.files)


def _with_compiled(evidence: Evidence, compiled: Compiled) -> Evidence:
    not_run = [f"{target}: {text}" for target, text in compiled.not_compiled.items()]
    return replace(_without(evidence, not_run), compiled=compiled.records)


def _without(evidence: Evidence, not_run: list[str]) -> Evidence:
    """The evidence, its environment saying first what could not be done."""
    environment = evidence.environment
    stated = msgspec.structs.replace(environment, not_run=[*not_run, *environment.not_run])
    return replace(evidence, environment=stated)


@contextmanager
def laboratory_for(question: Question, work: Path) -> Iterator[tuple[Laboratory, Pool]]:
    roots = roots_of(question)  # what is not there is told before a worker is started
    with Pool(size=question.workers, preload=(*COMPILE_PRELOAD, *PROFILE_PRELOAD, *WORKLOAD_PRELOAD)) as pool:
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
        kernels=records.kernels,
        cells=records.cells,
        controls=records.controls,
        refusals=records.refusals,
    )
    return evidence, sources


def _readable(told: Mapping[str, str], files: Mapping[str, str], roots: list[Path]) -> dict[str, Path]:
    """The sources to keep. What a worker told is a path, and it imported a candidate: only Python files below the audit's
    folders, or beside a function that the audit names, are read for it. A file has one label, as a receipt gives it."""
    homes = [each.resolve() for each in (*roots, *[Path(path).parent for path in files.values()])]
    found = {label: Path(path) for label, path in files.items()}
    known = {each.resolve() for each in found.values()}
    for label, path in told.items():
        place = Path(path).resolve()
        if is_the_tool(label) or place in known:  # of the tool the environment has the version
            continue
        if place.suffix == ".py" and place.is_file() and any(place.is_relative_to(home) for home in homes):
            found.setdefault(label, place)
    return dict(sorted(found.items()))
