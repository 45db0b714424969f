"""`kernel-audit profile`: the complete step of an audit on logical devices, in a worker of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.question import Question, localised, roots_of
from kernel_audit.contract import Audit
from kernel_audit.errors import AuditError, BundleError
from kernel_audit.evidence import layout, machine_names
from kernel_audit.matrix.laboratory import PRELOAD, Limits
from kernel_audit.records import PolicyReport, ProfileRecord, TraceFile, digest_bytes, encode
from kernel_audit.worker import Job, JobResult, Pool, read_arrays

Progress = Callable[[str, int, int | None], None]
PROFILE_PRELOAD = (*PRELOAD, "kernel_audit.profile.profile_job", "kernel_audit.profile.policy_job")
RANK = "rank-0"
_PROFILE_JOB = "kernel_audit.profile.profile_job:profile_step"
_POLICY_JOB = "kernel_audit.profile.policy_job:policy_twins"


@dataclass(frozen=True)
class ProfileQuestion:
    """How a step is profiled: `side` in the candidate's place (a baseline's name or "candidate"; "": the first baseline), over
    `devices` logical devices, `steps` traced ones; `dims` are sizes instead of the workload's; `checks`: with the
    cross-checks.
    """

    side: str = ""
    devices: int = 8
    steps: int = 20
    dims: Mapping[str, int] = field(default_factory=dict)
    checks: bool = True


@dataclass(frozen=True)
class Profiled:
    """A profile's record, and its files by their names below the bundle's `profile/`."""

    record: ProfileRecord
    files: dict[str, bytes]


def profile_step(
    pool: Pool, folder: Path, roots: list[Path], limits: Limits, audit: Audit, asked: ProfileQuestion
) -> Profiled:
    """The profile of an audit's step, made in a worker in `folder`, which must not have held a job before.

    Raises AuditError for a step that cannot be built, run or traced.
    """
    arguments = {
        "side": asked.side,
        "devices": asked.devices,
        "dims": dict(asked.dims),
        "traced_steps": asked.steps,
        "private_words": private_words(),
        "checks": asked.checks,
    }
    result = _run(pool, folder, roots, limits, audit, asked.devices, _PROFILE_JOB, arguments)
    stated = msgspec.convert(result.steps["profile"], ProfileRecord)
    arrays = read_arrays(folder, "profile")
    files = {f"{RANK}/{name}": array.tobytes() for name, array in sorted(arrays.items())}
    told = [TraceFile(name=name, digest=digest_bytes(data), size_bytes=len(data)) for name, data in files.items()]
    traced = msgspec.structs.replace(stated.traced, files=told)
    return Profiled(msgspec.structs.replace(stated, traced=traced), files)


def profile_or_reason(
    pool: Pool, folder: Path, roots: list[Path], limits: Limits, audit: Audit, asked: ProfileQuestion
) -> Profiled | str:
    """The profile of an audit's step for its bundle, or one line why there is none: a missing profile costs nothing else."""
    if audit.workload is None and not audit.worth.step:
        return "no profile: the audit names no complete step"
    try:
        return profile_step(pool, folder, roots, limits, audit, asked)
    except AuditError as error:
        return f"no profile: {error.what}" + (f", {error.got}" if error.got else "")


def policy_twins(
    pool: Pool,
    folder: Path,
    roots: list[Path],
    limits: Limits,
    audit: Audit,
    asked: ProfileQuestion,
    policies: list[str],
) -> PolicyReport:
    """The twins of an audit's step under checkpoint policies, "none" first. Raises AuditError as `profile_step` does."""
    arguments = {"side": asked.side, "devices": asked.devices, "dims": dict(asked.dims), "policies": policies}
    result = _run(pool, folder, roots, limits, audit, asked.devices, _POLICY_JOB, arguments)
    return msgspec.convert(result.value, PolicyReport)


def profile_audit(question: Question, asked: ProfileQuestion, progress: Progress) -> tuple[Profiled, Audit]:
    """The profile of AUDIT's step, and the audit. Raises AuditFileError for the audit, AuditError for the profile."""
    with tempfile.TemporaryDirectory(prefix="kernel-audit-") as work, Pool(1, preload=PROFILE_PRELOAD) as pool:
        audit, _ = evaluate(localised(question), pool, Path(work).resolve() / "audit")
        progress(f"profiling the complete step on {asked.devices} devices", 0, None)
        folder = Path(work).resolve() / "profile"
        return profile_step(pool, folder, roots_of(question), question.limits, audit, asked), audit


def policy_audit(question: Question, asked: ProfileQuestion, policies: list[str], progress: Progress) -> PolicyReport:
    """The twins of AUDIT's step under checkpoint policies."""
    with tempfile.TemporaryDirectory(prefix="kernel-audit-") as work, Pool(1, preload=PROFILE_PRELOAD) as pool:
        audit, _ = evaluate(localised(question), pool, Path(work).resolve() / "audit")
        progress(f"building the step under {len(policies)} checkpoint policies", 0, None)
        folder = Path(work).resolve() / "policies"
        return policy_twins(pool, folder, roots_of(question), question.limits, audit, asked, policies)


def require_free(out: Path) -> None:
    """Raises BundleError where something is at the place of a profile."""
    if out.exists():
        raise BundleError(
            "a profile is written once, and something is already there",
            stage="profile",
            where=f"--out {out}",
            expected="a folder that does not exist",
            got="a folder or a file",
            next_command="choose another --out",
        )


def write_profile(profiled: Profiled, out: Path) -> None:
    """`out`/profile.json and the files beside it. Raises BundleError where something is there, or it cannot be written."""
    require_free(out)
    files = {Path(layout.PROFILE).name: encode(profiled.record), **profiled.files}
    try:
        for name, data in files.items():
            place = out / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    except OSError as error:
        raise BundleError(
            "the profile cannot be written", stage="profile", where=f"--out {out}", got=error.strerror or str(error)
        ) from None


def private_words() -> list[str]:
    """What no trace may hold of this machine: its name, its user's, and the folders that this process knows."""
    folders = [os.environ.get("HOME", ""), str(Path.cwd()), str(Path(__file__).resolve().parents[3])]
    named = [os.uname().nodename, os.environ.get("USER", ""), os.environ.get("LOGNAME", "")]
    return sorted({each for each in (*machine_names(), *folders, *named) if len(each) > 2})


def _run(
    pool: Pool,
    folder: Path,
    roots: list[Path],
    limits: Limits,
    audit: Audit,
    devices: int,
    function: str,
    arguments: dict[str, Any],
) -> JobResult:
    job = Job(
        function=function,
        arguments={"audit": msgspec.to_builtins(audit), "roots": [str(each) for each in roots], **arguments},
        folder=folder,
        deadline_s=max(limits.deadline_s, 120.0),  # an interpreted candidate in a whole step compiles for long
        memory_bytes=limits.memory_bytes,
        jax_config={"jax_num_cpu_devices": devices},
        import_path=tuple(str(each) for each in roots),
    )
    result = pool.run(job)
    if stated := result.audit_error():
        raise stated
    if result.outcome != "finished":
        error = dict(result.error or {})
        raise AuditError(
            "the complete step was not profiled",
            stage="profile",
            where=result.step_in_progress or "the start",
            expected="a step that is built, compiled and run",
            got=f"{result.outcome}: {error.get('type', '')} {error.get('message', '')}".strip()[:600],
            settled={"finished": ", ".join(result.steps) or "nothing"},
            next_command="run the step by hand on logical devices",
        )
    return result
