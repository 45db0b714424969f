"""Later evidence: a bundle and receipts become a new bundle, which names its parent. The old one is not touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kernel_audit.conduct.place import require_place
from kernel_audit.conduct.question import Answer
from kernel_audit.decision import decide, verify
from kernel_audit.errors import BundleError
from kernel_audit.evidence import bundle_digest, read_bundle, read_receipts, write_bundle
from kernel_audit.records import Receipt, receipt_name
from kernel_audit.report import all_figures, render_page


def add_receipts(bundle: Path, folder: Path, out: Path) -> Answer:
    """The bundle `out`: the records of `bundle` with the receipts in `folder` that are of its audit, decided again.

    Receipts that do not count are kept and named with their reason. Raises BundleError where the old bundle does not verify,
    where no receipt is of its audit, and where `out` is not free.
    """
    require_place(out)
    if faults := verify(bundle):
        raise BundleError(
            "evidence is added to a bundle that verifies, and this one does not",
            stage="decide",
            where=bundle.name,
            expected="no fault",
            got=f"{len(faults)} faults, first {faults[0].place}: {faults[0].text}"[:300],
            next_command=f"kernel-audit verify {bundle}",
        )
    evidence, _ = read_bundle(bundle)
    mine = [each for each in read_receipts(folder) if each.audit == evidence.frozen.audit.name]
    if not mine:
        raise BundleError(
            "no receipt is of this audit",
            stage="decide",
            where=f"--receipts {folder.name}",
            expected=f"receipts of {evidence.frozen.audit.name!r}",
            got="receipts of other audits",
        )
    everything: dict[str, Receipt] = {receipt_name(each): each for each in (*evidence.receipts, *mine)}
    evidence = replace(evidence, receipts=[everything[name] for name in sorted(everything)])
    decision = decide(evidence)
    figures = all_figures(evidence)
    sources = {label: (bundle / "sources" / label).read_bytes() for label in evidence.frozen.sources}
    page = render_page(evidence, decision, figures, sources)
    write_bundle(evidence, decision, sources, figures, page, out, parent_digest=bundle_digest(bundle))
    return Answer(evidence, decision, out / "report.html")
