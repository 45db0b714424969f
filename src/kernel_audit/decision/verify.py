"""Verification of a bundle: its bytes, what must hold between its records, and the decision made again."""

from __future__ import annotations

from pathlib import Path

from kernel_audit.decision.decide import decide
from kernel_audit.decision.strangers import strangers
from kernel_audit.errors import BundleError
from kernel_audit.evidence import (
    Fault,
    consistency,
    is_bundle,
    private_text,
    read_bundle,
    read_manifest,
    verify_integrity,
)
from kernel_audit.records import encode


def verify(folder: Path) -> list[Fault]:
    """Everything that is wrong with a bundle; empty when nothing is. Raises BundleError when there is no such folder."""
    if not folder.is_dir():
        raise BundleError(
            "no such bundle", stage="verify", where=str(folder), expected="the folder of a bundle", got="no folder"
        )
    if not is_bundle(folder):
        text = "there is no manifest, so this is no bundle, or no longer one"
        return [Fault(file="manifest.json", kind="missing", text=text)]
    faults = [*verify_integrity(folder), *private_text(folder)]
    try:
        evidence, stated = read_bundle(folder)
        faults += consistency(evidence, stated, read_manifest(folder))
    except BundleError as error:
        named = {each.file for each in faults}
        if error.where.partition(",")[0].partition(":")[0] not in named:
            faults.append(Fault(file=error.where, text=error.text(), kind="unreadable"))
        return faults
    if unknown := strangers(evidence):
        return faults + unknown
    again = decide(evidence)
    if encode(again) != encode(stated):
        text = f"the records decide {again.decision!r}, the file says {stated.decision!r} ({_first_difference(again, stated)})"
        faults.append(Fault(file="decision.json", text=text, kind="inconsistent"))
    return faults


def _first_difference(again: object, stated: object) -> str:
    for name in getattr(again, "__struct_fields__", ()):
        if encode(getattr(again, name)) != encode(getattr(stated, name)):
            return f"first difference in {name!r}"
    return "no field differs"
