"""What a compile worker's environment has to say before any backend starts. No JAX; safe in the parent."""

from __future__ import annotations

from pathlib import Path

from kernel_audit.target.schedule import DUMP_FLAGS

SCRATCH, DUMP = "scratch", "dump"


def compiler_environment(platform: str, job_folder: Path) -> dict[str, str]:
    """For "tpu" or "gpu". What the compiler dumps lies in the job's scratch folder and goes with it.

    Nothing asks the network: `TPU_SKIP_MDS_QUERY` and the other two describe a host, which libtpu would otherwise look for.
    """
    dump = job_folder.resolve() / SCRATCH / DUMP
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    if platform == "gpu":
        return {"XLA_FLAGS": f"--xla_dump_to={dump} --xla_dump_hlo_as_text", **quiet}
    return {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_MIN_LOG_LEVEL": "3",
        "TPU_STDERR_LOG_LEVEL": "3",
        "LIBTPU_INIT_ARGS": DUMP_FLAGS.format(folder=dump),
        **quiet,
    }
