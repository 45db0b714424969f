"""An audit file becomes a record, in a worker of its own: its code is never run here."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kernel_audit.conduct.question import Question
from kernel_audit.contract import Audit, reference_to
from kernel_audit.contract.places import locate
from kernel_audit.errors import AuditFileError
from kernel_audit.records import decode, encode
from kernel_audit.worker import Job, JobResult, Pool


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
    if question.candidate_step is not None:
        audit = _with_step(audit, question.candidate_step)
    return audit, result.value["files"]


def _with_step(audit: Audit, step: str) -> Audit:
    """The audit with a complete step of the candidate's own."""
    if audit.workload is None:
        raise AuditFileError(
            "a step of its own for the candidate, in an audit without a workload",
            stage="audit",
            where=f"--candidate-step {step}",
            expected="workload=complete_step(...) in the audit: what the step is compared with",
            got="no workload",
        )
    named = reference_to(step, where="--candidate-step")
    return msgspec.structs.replace(audit, workload=msgspec.structs.replace(audit.workload, candidate_step=named))


def _ending(result: JobResult) -> str:
    """How a worker ended, in words."""
    error = result.error or {}
    if result.outcome == "crashed" and result.exit_code is not None:
        return f"crashed, exit code {result.exit_code}"
    if result.outcome == "crashed" and result.signal:
        return f"crashed, signal {result.signal}"
    return f"{error.get('type')}: {error.get('message')}" if result.outcome == "raised" else result.outcome
