"""Rules about a profile of the complete step. Only one that was taken on the audit's own target may decline; any other
informs.
"""

from __future__ import annotations

from kernel_audit.decision.finding import finding
from kernel_audit.evidence import Evidence
from kernel_audit.evidence.layout import PROFILE
from kernel_audit.records import Finding, Opportunity, ProfileRecord
from kernel_audit.statistics import needed_speedup, speedup_limit

_LONG_BEFORE = 0.5  # a pass whose steps took this much less than the traced ones did not wait for its results


def profile_findings(evidence: Evidence) -> list[Finding]:
    """What a profile shows; nothing where there is none."""
    record = evidence.profile
    if record is None:
        return []
    faults = unfit(record)
    found = [*faults]
    opportunity = candidates_opportunity(record)
    if opportunity is not None and not faults:
        if not _on_target(evidence, record):
            found.append(_finding("share-is-conditional", _conditional(record, opportunity), record))
        elif not persuasive(record):
            found.append(_finding("no-persuasive-region", _declined(record, opportunity), record, str(record.target)))
    return found


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


def persuasive(record: ProfileRecord) -> bool:
    """Whether the candidate's region could give the audit's margin at all: at the upper end of its share's interval, and for a
    part that costs nothing, the step would take the share p less time."""
    opportunity = candidates_opportunity(record)
    return opportunity is None or needed_speedup(opportunity.share_high, record.margin) != float("inf")


def _on_target(evidence: Evidence, record: ProfileRecord) -> bool:
    from kernel_audit.decision.rules import declared_targets

    return not record.logical and record.target is not None and record.target in declared_targets(evidence)


def _conditional(record: ProfileRecord, each: Opportunity) -> str:
    return (
        f"on {record.devices} {_devices(record)} {each.region} takes {each.share:.1%} of the step "
        f"({each.share_low:.1%} to {each.share_high:.1%}); if the share on a target were that, a part twice as fast would "
        f"make the step {each.speedup:.3f} times as fast, and no part more than {_times(each.share)}. It decides nothing there"
    )


def _declined(record: ProfileRecord, each: Opportunity) -> str:
    return (
        f"on {record.target} {each.region} takes {each.share:.1%} of the step, at most {each.share_high:.1%}: were it "
        f"free, the step would be {_times(each.share_high)} as fast, and the audit asks for {record.margin:.0%} less "
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
