"""A whole audit, kept as a bundle; and the check alone, of which nothing is kept.

An audit in progress lives in `OUT.partial`: `request.json` (what is asked, and the late seed), `done/` and `jobs/`. A killed
audit is resumed from there; a finished one is `OUT` and nothing else.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kernel_audit.conduct.freezing import finished
from kernel_audit.conduct.observing import observed
from kernel_audit.conduct.place import alone, make_folder, require_place
from kernel_audit.conduct.question import Answer, Question
from kernel_audit.decision import decide
from kernel_audit.errors import AuditError, BundleError, InternalError
from kernel_audit.evidence import as_read, write_bundle
from kernel_audit.matrix.check import Progress
from kernel_audit.report import all_figures, render_page
from kernel_audit.worker.scratch import scratch_folder


def run(question: Question, out: Path, progress: Progress, *, resume: bool = False) -> Answer:
    """The whole audit, ending in a bundle at `out`. A finished bundle there is read, not written again.

    Raises BundleError when `out` is something else, the bundle of another audit or cannot be written, when an interrupted
    audit is there and `resume` is not asked, or when it asked another question.
    """
    require_place(out)
    if out.exists():
        return finished(question, out)
    work = out.with_name(out.name + ".partial")
    if work.exists() and not resume:
        with alone(work):  # else: a run is at work, which is said instead
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
    make_folder(work)
    with alone(work):
        try:
            seen = observed(question, work, progress, whole=True)
        except AuditError as error:
            if fresh and not isinstance(error, InternalError):
                shutil.rmtree(work, ignore_errors=True)  # a request that cannot be honoured is no interrupted audit
            raise
        progress("writing the bundle", 0, None)
        for unfinished in out.parent.glob(f".{out.name}.partial-*"):  # left by a kill while a bundle was written
            shutil.rmtree(unfinished, ignore_errors=True)
        evidence, sources = as_read(seen.evidence), seen.sources
        decision = decide(evidence)
        figures = all_figures(evidence)
        page = render_page(evidence, decision, figures, sources)
        write_bundle(evidence, decision, sources, figures, page, out, traces=seen.traces)
        shutil.rmtree(work, ignore_errors=True)
    return Answer(evidence, decision, out / "report.html")


def check(question: Question, progress: Progress) -> Answer:
    """The correctness matrix and what it decides; nothing is kept."""
    with scratch_folder() as folder:
        evidence = observed(question, folder, progress, whole=False).evidence
    return Answer(evidence, decide(evidence))
