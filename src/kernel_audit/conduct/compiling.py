"""`kernel-audit compile`: an audit's programs through the real compilers of described targets. Needs no device, no oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.question import Question, localised, roots_of
from kernel_audit.conduct.sweeping import swept
from kernel_audit.contract import Audit
from kernel_audit.decision import reasons
from kernel_audit.errors import AuditError
from kernel_audit.matrix.laboratory import PRELOAD
from kernel_audit.records import CompiledRecord, CompiledReport, FamilyMember, Finding, Respelling
from kernel_audit.target.bench import CANDIDATE, Bench, Side, configurations_for, sides_of
from kernel_audit.target.described import DEFAULT_TARGETS, DescribedTarget, described_target
from kernel_audit.target.hunt import hunt
from kernel_audit.target.probe import family_around, members_of, too_large
from kernel_audit.target.spellings import NOT_MADE
from kernel_audit.worker import Pool
from kernel_audit.worker.scratch import scratch_folder

Progress = Callable[[str, int, int | None], None]
COMPILE_PRELOAD = (*PRELOAD, "kernel_audit.target.export_job", "kernel_audit.target.compile_job")


@dataclass(frozen=True)
class CompileQuestion:
    """What is asked of the compilers: `targets` by name, the extent of the described topology (None: each target's first), and
    whether to probe the contract and to hunt for stronger baselines."""

    question: Question
    targets: tuple[str, ...]
    topology: str | None = None
    probe: bool = False
    hunt: bool = False
    sweeps: tuple[str, ...] = ()


def compile_audit(asked: CompileQuestion, progress: Progress) -> CompiledReport:
    """Every declared configuration of the candidate, and every baseline, compiled for each target; the candidate's come first.

    A target without a compiler here is in `not_compiled`. Raises AuditFileError for the audit, AuditError for a target or a
    topology that cannot be described.
    """
    with _bench(asked.question) as (bench, audit):
        names = asked.targets or tuple(audit.targets or DEFAULT_TARGETS)
        targets = [described_target(name, asked.topology) for name in dict.fromkeys(names)]
        missing = {each.name: each.missing() for each in targets if each.missing()}
        present = [each for each in targets if each.name not in missing]
        if asked.sweeps:
            lines = [line for target in present for line in swept(bench, target, asked.sweeps, progress)]
            return CompiledReport(audit=audit.name, records=[], not_compiled=missing, sweeps=lines)
        records = _records(bench, present, progress)
        report = CompiledReport(audit=audit.name, records=records, not_compiled=missing, findings=_distinct(records))
        return _extended(report, bench, present, asked, progress)


def exit_code(report: CompiledReport) -> int:
    """1 where a configuration declared for a target is refused by its compiler or raises (*revise*); else 2 where the candidate
    ended its worker, so that nothing is known of some program; else 0."""
    candidate = [each for each in report.records if each.side == CANDIDATE]
    if any(reasons()[found.code].effect == "revise" for each in candidate for found in each.findings):
        return 1
    return 2 if any(each.accepted is None for each in candidate) else 0


@dataclass(frozen=True)
class Compiled:
    """The compiled level of a whole audit: records, and for each target without any the sentence that says why."""

    records: list[CompiledRecord] = field(default_factory=list)
    not_compiled: dict[str, str] = field(default_factory=dict)


def compile_declared(bench: Bench, targets: list[str], progress: Progress) -> Compiled:
    """Everything that the audit declares for its targets. What cannot be compiled here is said, and costs nothing else."""
    present, missing = [], {}
    for name in targets:
        try:
            target = described_target(name)
        except AuditError as error:
            missing[name] = f"not compiled: {error.what}"
            continue
        if text := target.missing():
            missing[name] = text
        else:
            present.append(target)
    try:
        records = _records(bench, present, progress) if present else []
    except AuditError as error:  # a compiler that does not start
        told = f"not compiled: {error.what}" + (f", {error.got}" if error.got else "")
        return Compiled([], missing | {each.name: told for each in present})
    return Compiled(records, missing)


@contextmanager
def _bench(question: Question) -> Iterator[tuple[Bench, Audit]]:
    roots = roots_of(question)
    with (
        scratch_folder() as folder,
        Pool(size=question.workers, preload=COMPILE_PRELOAD) as pool,
    ):
        work = folder.resolve()
        audit, _ = evaluate(localised(question), pool, work / "audit")
        yield Bench(pool, work, roots, question.limits, audit), audit


def _records(bench: Bench, targets: list[DescribedTarget], progress: Progress) -> list[CompiledRecord]:
    """Targets side by side, each in workers of its own. In order: the candidate everywhere, then the baselines."""
    sides = sides_of(bench.audit)
    if targets:
        progress(f"compiling for {', '.join(each.name for each in targets)}", 0, None)
    with ThreadPoolExecutor(max_workers=max(1, len(targets))) as threads:
        found = list(threads.map(lambda target: bench.compile(target, sides), targets))
    flat = [record for records in found for record in records]
    return [*(each for each in flat if each.side == "candidate"), *(each for each in flat if each.side != "candidate")]


def _distinct(records: list[CompiledRecord]) -> list[Finding]:
    """The findings of all records, each once."""
    return list({(each.code, each.text, each.scope): each for record in records for each in record.findings}.values())


def _extended(
    report: CompiledReport, bench: Bench, targets: list[DescribedTarget], asked: CompileQuestion, progress: Progress
) -> CompiledReport:
    """The report with what `--probe` and `--baselines` add."""
    family: list[FamilyMember] = []
    notes: list[str] = []
    if asked.probe:
        for target in targets:
            progress(f"probing what the compiler for {target.name} takes", 0, None)
            family += _family(bench, target, asked.question.candidate is not None)
    respellings: list[Respelling] = []
    if asked.hunt:
        progress("respelling the baselines", 0, None)
        respellings = hunt(bench, targets)
        notes.append(NOT_MADE)
    return msgspec.structs.replace(report, family=family, respellings=respellings, notes=notes)


def _family(bench: Bench, target: DescribedTarget, replaced: bool) -> list[FamilyMember]:
    """The audit's unguarded builder asked; the candidate itself where there is none, or where another is in its place."""
    audit = bench.audit
    unguarded = None if replaced else audit.probe
    function = unguarded.function if unguarded is not None else audit.candidate
    sweeps = unguarded.sweeps if unguarded is not None else {}
    declared = configurations_for(audit, target)
    family: list[FamilyMember] = []
    for members, first_dtype in (
        (family_around(declared, sweeps), False),
        (too_large(declared, target.device.fast_bytes), True),
    ):
        if not members:
            continue
        configurations = tuple(each for _, each in members)
        side = Side("probe", function, True, configurations, fixed=unguarded is None, first_dtype=first_dtype)
        records = bench.compile(target, [side], in_step=False)
        family += members_of(records, [changed for changed, _ in members], function.text)
    return family


__all__ = ["CompileQuestion", "Side", "compile_audit", "exit_code"]
