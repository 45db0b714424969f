"""Words in records that no rule knows: reason codes and outcomes of another version, or of nobody's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernel_audit.decision.reasons import reasons
from kernel_audit.decision.rules import REFUSAL_OUTCOMES
from kernel_audit.errors import BundleError
from kernel_audit.evidence import Evidence, Fault, layout
from kernel_audit.evidence.fault import INCONSISTENT

_WELL = ("right", "not-run")


def strangers(evidence: Evidence) -> list[Fault]:
    """Every reason code that records carry and reasons.toml does not explain, and every outcome of a refusal that no rule
    knows, each once, as a Fault at its file."""
    known = reasons()
    found = [
        Fault(file=file, kind=INCONSISTENT, text=f"{about}: the unknown reason code {code!r}")
        for file, about, code in dict.fromkeys(_codes(evidence))
        if code not in known
    ]
    for line, each in enumerate(evidence.refusals, start=1):
        if each.outcome not in REFUSAL_OUTCOMES:
            text = f"refusal {each.name!r}: the unknown outcome {each.outcome!r}"
            found.append(Fault(file=layout.REFUSALS, kind=INCONSISTENT, text=text, line=line))
    return found


def require_known(evidence: Evidence) -> None:
    """Raises BundleError where there are any: no rule could say what they decide."""
    found = strangers(evidence)
    if found:
        raise BundleError(
            "records with a word that this version does not know",
            stage="decide",
            where=found[0].file,
            expected="reason codes and outcomes of this version",
            got=found[0].text,
            next_command="kernel-audit verify BUNDLE",
        )


def _codes(evidence: Evidence) -> Iterator[tuple[str, str, str]]:
    """(file, what carries it, code)."""
    for kernel in evidence.kernels:
        yield from _each(layout.KERNELS, f"kernel {kernel.path!r}", (found.code for found in kernel.findings))
    for record in evidence.compiled:
        about = f"{record.target}, {record.side}, {record.dtype}"
        yield from _each(layout.COMPILED, about, (found.code for found in record.findings))
    for cell in evidence.cells:
        if cell.outcome == "differs" and cell.code:
            yield layout.CELLS, f"cell {cell.id!r}", cell.code
    for run in evidence.workload.runs if evidence.workload is not None else []:
        if run.outcome not in _WELL:
            yield from _each(layout.WORKLOAD, f"{run.side}, {run.partition}", run.codes)


def _each(file: str, about: str, codes: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for code in codes:
        yield file, about, code
