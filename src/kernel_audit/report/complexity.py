"""What the kernel costs those who keep it, as far as it can be counted: the question is whether it earns this."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernel_audit.contract import Audit
from kernel_audit.evidence import Evidence
from kernel_audit.report.phrases import counted


@dataclass(frozen=True)
class SourceFile:
    """A judged source: `lines` in all and `code_lines` that are neither empty nor a comment; None where not at hand."""

    label: str
    digest: str
    lines: int | None
    code_lines: int | None


@dataclass(frozen=True)
class Complexity:
    """Sources, configurations and versions."""

    sources: list[SourceFile]
    source_total: str
    configurations: str
    modes: str
    kernels: str
    versions: str


def complexity(evidence: Evidence, sources: Mapping[str, bytes] | None) -> Complexity:
    """Counts of an audit's candidate. `sources` are the judged sources by label, when they are at hand."""
    audit = evidence.frozen.audit
    files = [_file(label, digest, sources) for label, digest in sorted(evidence.frozen.sources.items())]
    counts = [each.code_lines for each in files]
    known = [each for each in counts if each is not None]
    total = f"{sum(known)} lines of code in {counted(len(known), 'file')}" if known else counted(len(files), "file")
    captured = [each for each in evidence.programs if each.side == "candidate"]
    digests = {kernel.digest for each in captured for kernel in each.kernels}
    return Complexity(
        sources=files,
        source_total=total if len(known) == len(files) else f"{total}; lines not counted for all of them",
        configurations=_configurations(audit),
        modes=_choices(audit.modes, "mode"),
        kernels=f"{counted(len(digests), 'distinct kernel')} in {counted(len(captured), 'captured program')}",
        versions=", ".join(sorted({each.jax_version for each in captured})) or "none",
    )


def _file(label: str, digest: str, sources: Mapping[str, bytes] | None) -> SourceFile:
    data = (sources or {}).get(label)
    if data is None:
        return SourceFile(label, digest, None, None)
    lines = data.decode("utf-8", "replace").splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith("#")]
    return SourceFile(label, digest, len(lines), len(code))


def _configurations(audit: Audit) -> str:
    if isinstance(audit.tuning, dict):
        return _choices(audit.tuning, "configuration")
    products = [(each.choices, " and ".join(each.targets)) for each in audit.tuning]
    return "; ".join(f"for {targets} {_choices(table, 'configuration')}" for table, targets in products)


def _choices(table: Mapping[str, list[object]], noun: str) -> str:
    """ "8 configurations: 2 block x 2 buffers x 2 no_pipelining"."""
    if not table:
        return f"1 {noun}, nothing to choose"
    product = math.prod(len(choices) for choices in table.values())
    factors = " \u00d7 ".join(f"{len(table[name])} {name}" for name in sorted(table))
    return f"{counted(product, noun)}: {factors}"
