"""The course's checker: one line a promise, from the same engine that `kernel-audit check` asks.

Modules are imported by name, `command` first. What the audits find is told as promises kept or broken; what an audit
cannot ask of a traced program (calls on this machine, slots of a pipeline, a benchmark's conduct) is asked in a worker
of its own, `model_job` and `benchmark_job`. The parent imports no JAX and no learner's file.
"""

__all__: list[str] = []
