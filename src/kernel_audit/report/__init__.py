"""What people read: the page, the figures and the text of the terminal. Everything here comes from records alone."""

from kernel_audit.report.all_figures import all_figures
from kernel_audit.report.decision_figure import decision_figure
from kernel_audit.report.figures import precision_gap_figure
from kernel_audit.report.page import render_page
from kernel_audit.report.roofline import roofline_figures
from kernel_audit.report.terminal import full_text, summary_lines
from kernel_audit.report.workload import workload_figures

__all__ = [
    "all_figures",
    "decision_figure",
    "full_text",
    "precision_gap_figure",
    "render_page",
    "roofline_figures",
    "summary_lines",
    "workload_figures",
]
