"""What must hold within a receipt, whoever wrote it: every figure is that of its samples, all parts of one observation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from kernel_audit.contract import Audit
from kernel_audit.errors import BundleError
from kernel_audit.evidence.against_audit import audit_contradictions
from kernel_audit.evidence.choices import choice_contradictions
from kernel_audit.evidence.held_to_plan import plan_contradictions
from kernel_audit.evidence.strict import read_record
from kernel_audit.records import (
    ABLATION,
    FAILURE,
    RECEIPT,
    RECEIPT_KINDS,
    RECEIPT_PARTS,
    PilotRatio,
    Receipt,
    Session,
    digest_of,
    receipt_name,
)
from kernel_audit.statistics import achieved, ceiling_per_s, pilot_ratio, recomputed_differences, refusals

RELATIVE = 1e-9


def read_receipts(folder: Path) -> list[Receipt]:
    """Every receipt in `folder` (its *.json), each once and in order of their names, whatever their files are called.

    Raises BundleError for a folder that is not there or holds none, and for a file that is no canonical receipt.
    """
    try:
        names = sorted(each.name for each in folder.iterdir() if each.suffix == ".json")
    except OSError as error:
        raise BundleError(
            "the receipts cannot be read",
            stage="read",
            where=str(folder),
            expected="a folder of receipts",
            got=str(error.strerror),
            next_command="kernel-audit measure AUDIT --target tpu --out DIR, on a machine with one",
        ) from None
    found = {receipt_name(each): each for each in (read_record(folder, name, Receipt) for name in names)}
    if not found:
        raise BundleError(
            "no receipts", stage="read", where=str(folder), expected="files *.json, each a receipt", got="none of them"
        )
    return [found[name] for name in sorted(found)]


def contradictions(receipt: Receipt, audit: Audit | None = None) -> list[str]:
    """Sentences, one for each thing that the receipt says against its own samples and plans, and against `audit` where its
    contract is that; empty where nothing is."""
    return [*_contradictions(receipt), *(audit_contradictions(receipt, audit) if audit is not None else ())]


def _contradictions(receipt: Receipt) -> Iterator[str]:
    if receipt.kind not in RECEIPT_KINDS or receipt.part not in RECEIPT_PARTS:
        yield f"unknown kind {receipt.kind!r} or part {receipt.part!r}"
    if not 1 <= receipt.number <= receipt.of:
        yield f"number {receipt.number} of {receipt.of}"
    if receipt.kind == FAILURE and (not receipt.failures or receipt.verdict is not None):
        yield "a failure that does not say what failed, or has a verdict"
    if receipt.kind == RECEIPT and (receipt.session is None or receipt.verdict is None):
        yield "no session, or no verdict"
    yield from _unchecked(receipt)
    yield from _wrong_ceilings(receipt)
    yield from _wrong_memory(receipt)
    for session in (each for each in (receipt.session, *receipt.pilots) if each is not None):
        yield from _elsewhere(receipt, session)
        yield from plan_contradictions(session)
    if receipt.session is not None and receipt.verdict is not None:
        if receipt.verdict.margin != receipt.session.plan.margin:
            yield f"judged at a margin of {receipt.verdict.margin!r}, planned for {receipt.session.plan.margin!r}"
        yield from recomputed_differences(receipt.verdict, receipt.session)
        yield from _other_programs(receipt, receipt.session)
        yield from _wrong_shares(receipt)
    yield from choice_contradictions(receipt)
    yield from _wrong_ablations(receipt)


def _elsewhere(receipt: Receipt, session: Session) -> Iterator[str]:
    """A session of another device, boundary or JAX than the receipt says."""
    device, scope = receipt.device, session.scope
    for name, said, found in (
        ("boundary", receipt.boundary, session.boundary),
        ("platform", device.platform, scope.platform),
        ("device", device.kind, scope.device_kind),
        ("number of devices", device.count, scope.device_count),
        ("version of JAX", receipt.versions.get("jax"), scope.versions.get("jax")),
    ):
        if said != found:
            yield f"{name}: {said!r} is written, its session has {found!r}"


def _other_programs(receipt: Receipt, session: Session) -> Iterator[str]:
    timed = {each.role: (each.program, each.exported) for each in session.sides}
    told = {each.role: (each.program, each.exported) for each in receipt.programs}
    if timed != told:
        yield "the programs that were timed are not those of the receipt"


def _unchecked(receipt: Receipt) -> Iterator[str]:
    """A verdict on programs whose complete results nobody saw on the device, or a wrong result that is no failure."""
    failed = {(each.role, each.name) for each in receipt.failures}
    for check in receipt.checks:
        if check.differing and (check.role, check.name) not in failed:
            yield f"{check.differing} elements of {check.name!r} differ on {check.fixture!r}, and no failure says so"
    if receipt.verdict is None:
        return
    timed = {each.role: each.name for each in receipt.programs}
    for role in ("candidate", "baseline"):
        looked = [each for each in receipt.checks if (each.role, each.name) == (role, timed.get(role))]
        if not any(each.elements for each in looked):
            yield f"no result of the {role} that was timed was checked on the device"
    plan = receipt.session.plan if receipt.session is not None else None
    if plan is not None and not (plan.fresh_every and plan.check_every):
        yield "its plan has no results of timed calls judged, or none on fresh operands"


def _wrong_ceilings(receipt: Receipt) -> Iterator[str]:
    for each in receipt.ceilings:
        if not each.samples_s or not _same(each.per_s, ceiling_per_s(each.work, each.samples_s)):
            yield f"ceiling {each.kind} {each.dtype}: {each.per_s!r} is not what its samples give"


def _wrong_memory(receipt: Receipt) -> Iterator[str]:
    for each in receipt.memory:
        if each.peak_bytes != each.arguments_bytes + each.results_bytes + each.temporary_bytes:
            yield f"peak bytes of the {each.role}: {each.peak_bytes} is not the sum of its parts"


def _wrong_shares(receipt: Receipt) -> Iterator[str]:
    assert receipt.verdict is not None
    for each in receipt.achieved:
        again = achieved(
            receipt.verdict,
            least_bytes=each.least_bytes,
            flops=each.flops,
            dtype=receipt.dtype,
            ceilings=receipt.ceilings,
        )
        mine = next((other for other in again if other.role == each.role), None)
        if mine is None or not all(
            _same(getattr(each, name), getattr(mine, name)) for name in each.__struct_fields__ if name != "role"
        ):
            yield f"what the {each.role} achieved is not what its samples and ceilings give"


def _is_pilot(pilot: PilotRatio, session: Session | None) -> bool:
    """Whether a pilot's figures are those of its samples, and its session the one that it names."""
    if session is None or (pilot.session_digest and pilot.session_digest != digest_of(session)):
        return False
    ratio, pairs = pilot_ratio(session)
    return pairs == pilot.pairs and _same(pilot.ratio, ratio)


def _wrong_ablations(receipt: Receipt) -> Iterator[str]:
    """The candidate that was chosen, then twins that did not fail, each in a pilot of its own against the yardstick."""
    if not receipt.ablations:
        return
    chosen = next((each for each in receipt.choices if each.role == "candidate"), None)
    own, *twins = receipt.ablations
    if chosen is None or own.name != chosen.chosen or not twins:
        yield f"the ablations begin with {own.name!r}, which was not chosen, or name no twin"
        return
    pilots, names = {each.id: each for each in receipt.pilots}, [each.name for each in receipt.ablations]
    failed = {each.name for each in receipt.failures if each.role == ABLATION}
    for each in receipt.ablations:
        session = pilots.get(each.session)
        sides = {side.role: side.name for side in session.sides} if session is not None else {}
        nothing = each is own and (each.ratio, each.pairs, each.session) == (None, 0, "")  # its pilot was lost
        right = bool(each.session_digest) and _is_pilot(each, session) and not (session and refusals(session))
        if not nothing and (not right or sides != {"candidate": each.name, "baseline": chosen.yardstick}):
            yield f"the pilot of {each.name!r} is not what its samples give"
        if names.count(each.name) > 1 or (each is not own and each.name in failed):
            yield f"{each.name!r} stands twice among the ablations, or failed"


def _same(said: object, found: object) -> bool:
    if isinstance(said, float) and isinstance(found, (float, int)):
        return math.isclose(said, found, rel_tol=RELATIVE)
    return said == found
