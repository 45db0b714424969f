"""The question is frozen before any candidate is loaded, and stays the question: of the interrupted audit that goes on, and of
the finished one that is asked again."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from pathlib import Path

import msgspec

from kernel_audit import __version__
from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.question import Answer, Question, Request, localised, reference_text, roots_of, with_given
from kernel_audit.contract import Audit
from kernel_audit.errors import BundleError
from kernel_audit.evidence import FrozenAudit, is_bundle, read_bundle
from kernel_audit.records import digest_bytes, digest_file, digest_of, encode
from kernel_audit.worker import Pool


def frozen_request(question: Question, pool: Pool, work: Path) -> tuple[Request, dict[str, str]]:
    """The frozen question: fresh, or that of the interrupted audit, which must be the same."""
    audit, files = evaluate(localised(question), pool, Path(tempfile.mkdtemp(prefix="audit-", dir=work)))
    files = with_given(question, files)
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


def finished(question: Question, out: Path) -> Answer:
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
        "AUDIT": (frozen.reference, reference_text(question)),
        "--cells": (frozen.cells, question.cells),
        "--quick": (frozen.quick, question.quick),
    }
    if question.late_seed is not None:
        wanted["--late-seed"] = (frozen.late_seed, question.late_seed)
    for root in roots_of(question):
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
