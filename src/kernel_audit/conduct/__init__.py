"""The one package that joins both halves: evaluate, plan, observe, decide, bundle. Imports no JAX, no candidate."""

from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.observing import evidence_of
from kernel_audit.conduct.question import Answer, Question, Request
from kernel_audit.conduct.running import check, run
from kernel_audit.contract.places import BUILT_IN, locate

__all__ = ["BUILT_IN", "Answer", "Question", "Request", "check", "evaluate", "evidence_of", "locate", "run"]
