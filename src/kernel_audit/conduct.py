"""The one module that joins both halves: evaluate, plan, observe, decide, bundle. Imports no JAX, no candidate.

An audit in progress lives in `OUT.partial`: `request.json` (what is asked, and the late seed), `done/` and `jobs/`. A killed
audit is resumed from there; a finished one is `OUT` and nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from kernel_audit import __version__
from kernel_audit.contract import Audit, reference_to
from kernel_audit.contract.places import BUILT_IN, locate
from kernel_audit.decision import decide
from kernel_audit.errors import AuditError, AuditFileError, BundleError, InternalError
from kernel_audit.evidence import Evidence, FrozenAudit, is_bundle, read_bundle, write_bundle
from kernel_audit.matrix.check import Matrix, Progress, check_matrix
from kernel_audit.matrix.environment import environment_of
from kernel_audit.matrix.laboratory import PRELOAD, Laboratory, Limits
from kernel_audit.records import Decision, Record, decode, digest_bytes, digest_file, digest_of, encode
from kernel_audit.report import precision_gap_figure, render_page
from kernel_audit.worker import Job, JobResult, Pool


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


def run(question: Question, out: Path, progress: Progress, *, resume: bool = False) -> Answer:
    """The whole audit, ending in a bundle at `out`. A finished bundle there is read, not written again.

    Raises BundleError when `out` is something else, the bundle of another audit or cannot be written, when an interrupted
    audit is there and `resume` is not asked, or when it asked another question.
    """
    _require_place(out)
    if out.exists():
        return _finished(question, out)
    work = out.with_name(out.name + ".partial")
    if work.exists() and not resume:
        with _alone(work):  # else: a run is at work, which is said instead
            pass
        raise BundleError(
            "an interrupted audit is here",
            stage="run",
            where=work.name,
            expected="a fresh place, or --resume",
            got="an audit that was not finished",
            next_command=f"kernel-audit run {question.audit} --out {out} --resume   (or delete {work.name})",
        )
    fresh = not work.exists()
    _make_folder(work)
    with _alone(work):
        try:
            evidence, sources = _observed(question, work, progress)
        except AuditError as error:
            if fresh and not isinstance(error, InternalError):
                shutil.rmtree(work, ignore_errors=True)  # a request that cannot be honoured is no interrupted audit
            raise
        progress("writing the bundle", 0, None)
        for unfinished in out.parent.glob(f".{out.name}.partial-*"):  # left by a kill while a bundle was written
            shutil.rmtree(unfinished, ignore_errors=True)
        decision = decide(evidence)
        figures = precision_gap_figure(evidence)
        page = render_page(evidence, decision, figures, sources)
        write_bundle(evidence, decision, sources, figures, page, out)
        shutil.rmtree(work, ignore_errors=True)
    return Answer(evidence, decision, out / "report.html")


def _require_place(out: Path) -> None:
    """Raises BundleError where no bundle can be made: no name, a broken link, inside a finished bundle."""
    try:
        inside = next((each for each in out.absolute().parents if is_bundle(each)), None)
        broken = out.is_symlink() and not out.exists()
        got = f"a place inside the bundle {inside.name}" if inside else "a link to nothing" if broken else ""
        got = got or ("no name" if not out.name else "")
        out.exists()
    except OSError as error:
        got = str(error.strerror)
    if got:
        raise BundleError(
            "no bundle can be made at this place",
            stage="run",
            where=f"--out {out}",
            expected="a free name, outside of any bundle",
            got=got,
            next_command="choose another --out",
        )


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Holds the work folder; the system lets go of it when the process ends, however it ends."""
    with (work / "lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BundleError(
                "another run is at work here",
                stage="run",
                where=work.name,
                expected="one run at a time",
                got="a folder that a running process holds",
                next_command="wait for it, or choose another --out",
            ) from None
        yield


def check(question: Question, progress: Progress) -> Answer:
    """The correctness matrix and what it decides; nothing is kept."""
    with tempfile.TemporaryDirectory(prefix="kernel-audit-") as folder:
        evidence, _ = _observed(question, Path(folder), progress)
    return Answer(evidence, decide(evidence))


def _observed(question: Question, work: Path, progress: Progress) -> tuple[Evidence, dict[str, bytes]]:
    """The evidence, and the judged sources by label."""
    with _laboratory(question, work) as (laboratory, pool):
        request, files = _request(question, pool, work)
        matrix = check_matrix(
            request.audit, laboratory, request.late_seed, progress, only=request.cells, quick=request.quick
        )
        return evidence_of(question, request, matrix, files)


def _make_folder(work: Path) -> None:
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundleError(
            "a place that cannot be written",
            stage="run",
            where=str(work),
            expected="a folder that can be made",
            got=str(error.strerror),
            next_command="choose another --out",
        ) from None


def evaluate(question: Question, pool: Pool, folder: Path) -> tuple[Audit, dict[str, str]]:
    """The audit as a record, and the files of the functions that it names (label -> path).

    Raises AuditFileError for every mistake in it, code that raises or hangs included.
    """
    place = locate(question.audit)
    root = place.root
    job = Job(
        function="kernel_audit.matrix.audit_job:evaluate",
        arguments={"root": str(root), "file": place.file, "module": place.module, "name": place.name},
        folder=folder,
        deadline_s=question.limits.deadline_s,
        memory_bytes=question.limits.memory_bytes,
        import_path=(str(root),),
    )
    result = pool.run(job)
    if stated := result.audit_error():
        raise stated
    if result.outcome != "finished":
        raise AuditFileError(
            "the audit file did not finish",
            stage="audit",
            where=str(place.file or place.module),
            expected=f"to be read within {question.limits.deadline_s:g} s",
            got=_ending(result),
            next_command="look for work, waits or exits at the top of the file; kernels run in workers of their own",
        )
    # Through canonical JSON, so that names are in one order wherever the audit comes from.
    audit = decode(encode(result.value["audit"]), Audit, where="the audit")
    if question.candidate is not None:
        audit = msgspec.structs.replace(audit, candidate=reference_to(question.candidate, where="--candidate"))
    return audit, result.value["files"]


def _ending(result: JobResult) -> str:
    """How a worker ended, in words."""
    error = result.error or {}
    if result.outcome == "crashed" and result.exit_code is not None:
        return f"crashed, exit code {result.exit_code}"
    if result.outcome == "crashed" and result.signal:
        return f"crashed, signal {result.signal}"
    return f"{error.get('type')}: {error.get('message')}" if result.outcome == "raised" else result.outcome


def _finished(question: Question, out: Path) -> Answer:
    if not is_bundle(out):
        raise BundleError(
            "something else is at the place of the bundle",
            stage="run",
            where=out.name,
            expected="a free name or a finished bundle",
            got="a folder or file that is no bundle",
            next_command="choose another --out",
        )
    evidence, decision = read_bundle(out)
    _require_its_question(question, evidence.frozen, out)
    return Answer(evidence, decision, out / "report.html", finished_before=True)


def _require_its_question(question: Question, frozen: FrozenAudit, out: Path) -> None:
    """A finished bundle answers what it was asked, about the sources as they were then, and nothing else."""
    wanted: dict[str, tuple[object, object]] = {
        "AUDIT": (frozen.reference, _reference(question)),
        "--cells": (frozen.cells, question.cells),
        "--quick": (frozen.quick, question.quick),
    }
    if question.late_seed is not None:
        wanted["--late-seed"] = (frozen.late_seed, question.late_seed)
    for root in _roots(question):
        for label, digest in frozen.sources.items():
            if (root / label).is_file():
                wanted[label] = (digest[:19], digest_file(root / label)[:19])
    for name, (then, now) in wanted.items():
        if then != now:
            raise BundleError(
                "a finished bundle of another audit, or of sources that have changed since",
                stage="run",
                where=f"{out.name}: {name}",
                expected=str(then),
                got=str(now),
                next_command="choose another --out, or remove the bundle to audit afresh",
            )


@contextmanager
def _laboratory(question: Question, work: Path) -> Iterator[tuple[Laboratory, Pool]]:
    roots = _roots(question)  # what is not there is told before a worker is started
    with Pool(size=question.workers, preload=PRELOAD) as pool:
        laboratory = Laboratory(pool, work, roots, question.limits, question.workers)
        try:
            yield laboratory, pool
        finally:
            laboratory.close()


def _roots(question: Question) -> list[Path]:
    """The folders that file references are relative to: the audit's, and that of a candidate put in its place."""
    roots = [locate(question.audit).root]
    if (file := _candidate_path(question)) is not None:
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


def _candidate_path(question: Question) -> Path | None:
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


def _request(question: Question, pool: Pool, work: Path) -> tuple[Request, dict[str, str]]:
    """The frozen question: fresh, or that of the interrupted audit, which must be the same."""
    audit, files = evaluate(_localised(question), pool, Path(tempfile.mkdtemp(prefix="audit-", dir=work)))
    if (file := _candidate_path(question)) is not None:
        files[file.name] = str(file)
    sources = {label: digest_bytes(Path(path).read_bytes()) for label, path in sorted(files.items())}
    path = work / "request.json"
    if path.exists():
        known = msgspec.json.decode(path.read_bytes(), type=Request)
        _require_same(known, audit, sources, question)
        return msgspec.structs.replace(known, audit=audit), files
    seed = question.late_seed if question.late_seed is not None else secrets.randbits(63)
    request = Request(
        audit=audit,
        cells=question.cells,
        quick=question.quick,
        late_seed=seed,
        late_seed_commitment=hashlib.sha256(str(seed).encode()).hexdigest(),
        sources=sources,
        tool_version=__version__,
    )
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(encode(request))
    unfinished.replace(path)
    return request, files


def _localised(question: Question) -> Question:
    """A candidate given as a path is referred to by its name in its folder."""
    if (file := _candidate_path(question)) is None:
        return question
    return replace(question, candidate=f"{file.name}:{str(question.candidate).rpartition(':')[2]}")


def _require_same(known: Request, audit: Audit, sources: dict[str, str], question: Question) -> None:
    changed = [label for label in {**known.sources, **sources} if known.sources.get(label) != sources.get(label)]
    if (
        digest_of(known.audit) == digest_of(audit)
        and (known.cells, known.quick) == (question.cells, question.quick)
        and not changed
    ):
        if known.tool_version == __version__:
            return
        changed = [f"kernel-audit itself: {known.tool_version} then, {__version__} now"]
    raise BundleError(
        "the interrupted audit asked another question",
        stage="resume",
        where="request.json",
        expected="the audit, options and sources as they were",
        got="changed: " + (", ".join(changed) or "the audit's contract or --cells"),
        next_command="delete the .partial folder to start afresh",
    )


def evidence_of(
    question: Question, request: Request, matrix: Matrix, files: dict[str, str]
) -> tuple[Evidence, dict[str, bytes]]:
    """All records of a finished matrix, and the judged sources by label."""
    sources = {
        label: path.read_bytes() for label, path in _readable(matrix.source_files, files, _roots(question)).items()
    }
    frozen = FrozenAudit(
        reference=_reference(question),
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


def _reference(question: Question) -> str:
    """The question as it is typed, without folders: AUDIT, and the candidate put in its place."""
    path, separator, name = question.audit.partition(":")
    candidate = _localised(question).candidate
    return Path(path).name + separator + name + (f" --candidate {candidate}" if candidate else "")


__all__ = ["BUILT_IN", "Answer", "Question", "check", "evaluate", "locate", "run"]
