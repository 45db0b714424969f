"""Where jobs run: isolated workers, forked from a process that has imported JAX and nothing of the user's.

    with Pool(size=2) as pool:
        result = pool.run(Job("package.module:function", {"n": 3}, folder, deadline_s=30.0))

Parent, zygote, warden, worker: the parent (no JAX, no user code) talks to a *zygote* (JAX imported, no
backend, no user code); for each job the zygote forks a *warden*, which makes namespaces and forks the
*worker*, which runs the function. The worker has no network, a memory limit, read-only files but for its
folder, a clean environment, and nothing of it survives.

A worker that runs a candidate is not believed about values: see `worker.seal`.
"""

from kernel_audit.worker.job import GIB, OUTCOMES, Job, JobResult
from kernel_audit.worker.pool import Pool, as_completed
from kernel_audit.worker.steps import Steps, read_arrays

__all__ = ["GIB", "OUTCOMES", "Job", "JobResult", "Pool", "Steps", "as_completed", "read_arrays"]
