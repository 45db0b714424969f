"""Rules about a profile of the complete step. Only one that was taken on the audit's own target, of its step at its sizes
with a baseline in place, and by a reader that a receipt verifies, may decline; any other informs.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_audit.contract import Worth
from kernel_audit.decision.finding import finding
from kernel_audit.decision.worth import TIMES
from kernel_audit.evidence import Evidence
from kernel_audit.evidence.layout import PROFILE
from kernel_audit.records import UNMAPPED, Finding, Opportunity, ProfileRecord, dtype_text, known_devices
from kernel_audit.statistics import needed_speedup, speedup_limit

DECLINES = "no-persuasive-region"


def profile_findings(evidence: Evidence) -> list[Finding]:
    """What a profile shows; nothing where there is none."""
    record = evidence.profile
    if record is None:
        return []
    faults = unfit(record)
    found = [*faults]
    opportunity = candidates_opportunity(record)
    if opportunity is None or faults:
        return found
    if not _on_target(evidence, record):
        found.append(_finding("share-is-conditional", _conditional(record, opportunity), record))
    elif against := list(_reasons_against(evidence, record)):
        text = (
            f"on {record.target} {opportunity.region} takes {opportunity.share:.1%} of the step, and declines nothing: "
        )
        found.append(_finding("profile-informs-only", text + "; ".join(against), record, str(record.target)))
    elif not persuasive(record, evidence.frozen.audit.worth):
        text = _declined(record, opportunity, evidence.frozen.audit.worth)
        found.append(_finding(DECLINES, text, record, _regime_of(evidence, record)))
    return found


def is_about(finding: Finding, target: str, dtype: str) -> bool:
    """Whether a finding counts in a regime: a profile declines only that of the target and the dtypes that it was taken on."""
    return finding.code != DECLINES or finding.scope == _scope(target, dtype)


def unfit(record: ProfileRecord) -> list[Finding]:
    """Why a profile's times are not the step's, on the platform that it names."""
    found = []
    walls = record.warm.wall_ns
    if record.warm.synchronised < len(walls):
        text = (
            f"{record.warm.synchronised} of {len(walls)} steps waited for their results: the others are dispatch times"
        )
        found.append(_finding("dispatch-time", text, record))
    if record.logical and record.target is not None:
        text = f"times of logical devices of a {record.platform} host are given as those of {record.target}"
        found.append(_finding("logical-device-time-as-throughput", text, record))
    if record.provenance != "measured":
        text = f"its times are said to be {record.provenance!r}: a model is no time"
        found.append(_finding("model-as-time", text, record))
    if record.warm.compile_events or record.traced.compile_events:
        count = record.warm.compile_events + record.traced.compile_events
        found.append(_finding("not-warm", f"JAX traced, lowered or compiled {count} times inside the passes", record))
    return found


def candidates_opportunity(record: ProfileRecord) -> Opportunity | None:
    """The opportunity of the candidate's own place in the step."""
    return next((each for each in record.opportunity if each.region == record.candidate_region), None)


def persuasive(record: ProfileRecord, worth: Worth) -> bool:
    """Whether the candidate's region could give the audit's margin at all: at the upper end of its share's interval, with all
    that no region could be found for, and for a part that costs nothing."""
    opportunity = candidates_opportunity(record)
    return opportunity is None or needed_speedup(_bound(record, opportunity), _wanted(worth)) != float("inf")


def _bound(record: ProfileRecord, opportunity: Opportunity) -> float:
    """The most that the candidate's region may take: what is not mapped may be the candidate's."""
    unmapped = max([each.share_high for each in record.regions if each.name == UNMAPPED], default=0.0)
    return min(1.0, opportunity.share_high + max(unmapped, record.mapping.get(UNMAPPED, 0.0)))


def _wanted(worth: Worth) -> float:
    """The share of the step's time that must go: m more examples a second need m / (1 + m) less time."""
    return worth.margin / (1 + worth.margin) if worth.objective == "examples-per-second" else worth.margin


def _reasons_against(evidence: Evidence, record: ProfileRecord) -> Iterator[str]:
    """Why a profile of a declared target may not decline."""
    from kernel_audit.decision.rules import declared_targets

    audit = evidence.frozen.audit
    if not record.traced.verified:
        yield f"no receipt shows that planes of a {record.platform} are read rightly"
    if (record.platform, record.device_kind) != _described(str(record.target)):
        yield f"devices of kind {record.device_kind!r} are no {record.target}"
    if not record.traced.events:
        yield "no operation was read"
    if audit.worth.objective not in TIMES:
        yield f"the audit asks for {audit.worth.objective}, and a share is of time"
    if record.side not in {each.name for each in audit.baselines}:
        yield f"with {record.side!r} in place and not a baseline"
    if record.step != audit.worth.step:
        yield f"of {record.step!r}, and the audit names {audit.worth.step!r}"
    if record.dims != audit.declared_dims:
        yield f"at {record.dims}, and declared are {audit.declared_dims}"
    if len(_bindings(evidence, record)) != 1:
        yield f"in {record.dtypes}, which is no one choice of the audit's dtypes"
    if len(audit.mode_choices()) > 1:
        yield "in which of the audit's modes is not said"
    if not evidence.receipts and (len(declared_targets(evidence)) > 1 or len(audit.dtype_bindings()) > 1):
        yield "the audit is for other targets or dtypes, too, and no receipt tells them apart"


def _described(target: str) -> tuple[str, str] | None:
    """(platform, kind) of a described target's devices; None of one that is not described."""
    known = known_devices().get(target)
    return (known.kind, known.device_kind) if known is not None else None


def _bindings(evidence: Evidence, record: ProfileRecord) -> list[dict[str, str]]:
    """Choices of the audit's dtypes in which every operand that the profile names as the audit does has that dtype."""
    audit = evidence.frozen.audit
    named = [each for each in audit.operands if each.name in record.dtypes]
    return [
        binding
        for binding in audit.dtype_bindings()
        if named and all(binding.get(each.dtype, each.dtype) == record.dtypes[each.name] for each in named)
    ]


def _regime_of(evidence: Evidence, record: ProfileRecord) -> str:
    return _scope(str(record.target), dtype_text(_bindings(evidence, record)[0]))


def _scope(target: str, dtype: str) -> str:
    return f"{target}, {dtype}"


def _on_target(evidence: Evidence, record: ProfileRecord) -> bool:
    from kernel_audit.decision.rules import declared_targets

    return not record.logical and record.target is not None and record.target in declared_targets(evidence)


def _conditional(record: ProfileRecord, each: Opportunity) -> str:
    return (
        f"on {record.devices} {_devices(record)} {each.region} takes {each.share:.1%} of the step "
        f"({each.share_low:.1%} to {each.share_high:.1%}); if the share on a target were that, a part twice as fast would "
        f"make the step {each.speedup:.3f} times as fast, and no part more than {_times(each.share)}. It decides nothing there"
    )


def _declined(record: ProfileRecord, each: Opportunity, worth: Worth) -> str:
    bound = _bound(record, each)
    return (
        f"on {record.target} {each.region} takes {each.share:.1%} of the step, at most {bound:.1%} with what is not mapped: "
        f"were it free, the step would be {_times(bound)} as fast, and the audit asks for {_wanted(worth):.1%} less "
        f"time. The other {1 - each.share:.0%} of the step would stay as they are, whatever the kernel; ordinary JAX is "
        "the recommendation for the platform profiled"
    )


def _times(share: float) -> str:
    limit = speedup_limit(share)
    return f"{limit:.3f} times" if limit != float("inf") else "any number of times"


def _devices(record: ProfileRecord) -> str:
    return f"logical devices of a {record.platform} host" if record.logical else f"devices of kind {record.device_kind}"


def _finding(code: str, text: str, record: ProfileRecord, scope: str = "the platform profiled") -> Finding:
    names = [PROFILE, *(f"profile/{each.name}" for each in record.regions if each.name == record.candidate_region)]
    return finding(code, text, names, scope)
