"""Every figure of a bundle, by file name: what `run` and `decide` write, and what a page is drawn with."""

from __future__ import annotations

from kernel_audit.evidence import Evidence
from kernel_audit.report.decision_figure import decision_figure
from kernel_audit.report.figures import precision_gap_figure
from kernel_audit.report.roofline import roofline_figures
from kernel_audit.report.workload import workload_figures


def all_figures(evidence: Evidence) -> dict[str, bytes]:
    """Each as ".svg", ".png" and ".json"; those for which the evidence has nothing are left out."""
    return {
        **precision_gap_figure(evidence),
        **workload_figures(evidence),
        **decision_figure(evidence),
        **roofline_figures(evidence),
    }
