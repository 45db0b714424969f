"""Rules about what was read and what was compiled: no device, no run. A refusal of what is declared for a target breaks a
promise, scoped to that target and version; everything else informs."""

from __future__ import annotations

from collections import defaultdict

from kernel_audit.decision.finding import finding
from kernel_audit.evidence import Evidence
from kernel_audit.records import Finding, compiled_name

Key = tuple[str, str]
_LONGEST = 400  # characters of a finding
_REFUSALS = ("compiler-refuses", "candidate-raises")


def read_faults(evidence: Evidence) -> list[Finding]:
    """Faults that are certain before anything runs: one finding a code and scope, over all programs that show it."""
    grouped: dict[Key, list[tuple[str, Finding]]] = defaultdict(list)
    for kernel in evidence.kernels:
        for each in kernel.findings:
            grouped[each.code, each.scope].append((kernel.program.partition("/")[0], each))
    programs = sum(each.side == "candidate" for each in evidence.programs)
    found = []
    for (code, scope), told in sorted(grouped.items()):
        keys = list(dict.fromkeys(key for key, _ in told))
        text = f"{len(keys)} of {programs} programs, first {keys[0]}: {told[0][1].text}"
        found.append(finding(code, text[:_LONGEST], keys, scope))
    return found


def compiler_findings(evidence: Evidence) -> list[Finding]:
    """What the compilers of described targets said: one finding a code and scope."""
    chosen_here = evidence.frozen.audit.targets is None  # the tool's choice is no declaration of the audit's
    grouped: dict[Key, list[tuple[str, Finding]]] = defaultdict(list)
    for record in evidence.compiled:
        for each in record.findings:
            code = "default-target-refuses" if chosen_here and each.code in _REFUSALS else each.code
            grouped[code, each.scope].append((compiled_name(record), each))
    found = []
    for (code, scope), told in sorted(grouped.items()):
        names = list(dict.fromkeys(name for name, _ in told))
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        found.append(finding(code, f"{told[0][1].text}{more}"[:_LONGEST], names, scope))
    return found


def compiled_text(evidence: Evidence) -> str:
    """What the compiled level holds, in words; "nothing" where no compiler was asked or answered."""
    candidate = [each for each in evidence.compiled if each.side == "candidate" and each.accepted is not None]
    by_target: dict[str, list[bool]] = defaultdict(list)
    for each in candidate:
        by_target[each.target].append(each.accepted is True)
    versions = {each.target: _versions(each.compilers) for each in candidate}
    told = [
        f"{target}: {sum(accepted)} of {len(accepted)} programs accepted by {versions[target]}"
        for target, accepted in by_target.items()
    ]
    return "; ".join(told) or "nothing"


def _versions(compilers: dict[str, str]) -> str:
    told = [f"{name} {text}" for name, text in compilers.items() if name not in ("jax", "jaxlib")]
    return ", ".join(told[:1]) or "its compiler"
