"""One process of several that run a complete step together, through `jax.distributed`: on one machine or on many.

    python -m kernel_audit.workload.rank regression --coordinator HOST:PORT --processes 4 --rank 0 --out rank-0

on each host with its own `--rank`; without `--coordinator` JAX finds its peers itself, as it does on TPU pods and under Slurm.
OUT.json gets what this process saw, OUT.bin the values on its devices, OUT.stage how far it has come.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.contract.places import locate
from kernel_audit.contract.step_partitions import balanced
from kernel_audit.records import StepPartition
from kernel_audit.worker.arrays import write_buffers

STAGES = ("started", "connected", "traced", "finished")  # between the last two: "update K"
HEARTBEAT_S = 10  # JAX's own is 100: a lost peer would not be noticed before a deadline


class _Open:
    """Stands for the steps of a job."""

    def begin(self, step: str) -> None:
        pass

    def finish(self, step: str, value: Any, arrays: Any = None) -> None:
        pass


def main(given: list[str] | None = None) -> int:
    """Exit code 0 when the sequence of updates was run; anything else is an exception, or the runtime's end of a lost peer."""
    parser = argparse.ArgumentParser(prog="python -m kernel_audit.workload.rank", description=__doc__.splitlines()[0])
    parser.add_argument("audit", help="AUDIT as for `kernel-audit run`, or a request in JSON")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="where process 0 listens")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--cpu-devices", type=int, metavar="N", help="logical CPU devices instead of the host's own")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(given)
    asked.out = asked.out.resolve()
    _say(asked.out, STAGES[0])
    request = _request(asked.audit)
    _connect(asked)
    _say(asked.out, STAGES[1])
    try:
        _run(request, asked.out)
    except Exception:
        # Not by returning: JAX would wait for its peers at exit, and they wait for this process in a collective.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    import jax

    jax.distributed.shutdown()
    _say(asked.out, STAGES[3])
    return 0


def _connect(asked: argparse.Namespace) -> None:
    import jax

    if asked.cpu_devices:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", asked.cpu_devices)
    jax.distributed.initialize(asked.coordinator, asked.processes, asked.rank, heartbeat_timeout_seconds=HEARTBEAT_S)


def _request(text: str) -> dict[str, Any]:
    """What is to be run: as written by a supervisor, or the first baseline in an audit's step."""
    if text.endswith(".json"):
        return json.loads(Path(text).read_text("utf-8"))
    from kernel_audit.matrix.audit_job import evaluate

    place = locate(text)
    told = evaluate(None, root=str(place.root), file=place.file, module=place.module, name=place.name)
    return request_for(msgspec.convert(told["audit"], Audit), [str(place.root)])


def request_for(audit: Audit, roots: list[str], partition: StepPartition | None = None) -> dict[str, Any]:
    """The first baseline in the audit's step, in the first of its dtypes. Without a partition: all devices, one axis, and as
    many examples as the workload has."""
    assert audit.workload is not None
    return {
        "audit": msgspec.to_builtins(audit),
        "roots": roots,
        "function": msgspec.to_builtins(audit.baselines[0].function),
        "keywords": {},
        "step": msgspec.to_builtins(audit.workload.step),
        "binding": audit.dtype_bindings()[0],
        "partition": msgspec.to_builtins(partition) if partition is not None else None,
    }


def _run(request: dict[str, Any], out: Path) -> None:
    """The sequence of updates, each waited for; then what was seen, and the values on this process's devices."""
    import jax

    from kernel_audit.matrix.subject_job import Subject, traced_for
    from kernel_audit.program import claimed_backend
    from kernel_audit.program.checkpoint_policies import frozen_policy
    from kernel_audit.workload.inputs import POISON, digests, places_of
    from kernel_audit.workload.step_job import bench_of

    devices = jax.device_count()
    declared = msgspec.convert(request["audit"], Audit)
    backend, device_kind = traced_for(declared)
    assert declared.workload is not None
    with frozen_policy(declared.workload.remat), claimed_backend(backend):
        subject = Subject(_Open(), request["audit"], request["function"], request["roots"])
        about = {"binding": request["binding"], "device_kind": device_kind}
        bench = bench_of(subject, request["step"], request["keywords"], about)
        partition = _partition(request, bench.workload.dims[bench.workload.examples], devices)
        step = bench.lay(partition)
        _say(out, STAGES[2])
        as_drawn = bench.operands(partition)
        now = step.place(bench.filled(as_drawn, partition, places_of(bench.workload, partition), POISON))
        found = []
        for update in range(bench.workload.updates):
            _say(out, f"update {update}")
            results = step(now)
            found.append(bench.values(step, results))
            now = step.carried(now, results)
    arrays = {name: np.stack([each[name] for each in found]) for name in found[0]}
    told = {
        "processes": jax.process_count(),
        "devices": devices,
        "local_devices": jax.local_device_count(),
        "platform": jax.local_devices()[0].platform,
        "collectives": str(getattr(jax.config, "jax_cpu_collectives_implementation", "") or ""),
        "partition": msgspec.to_builtins(partition),
        "inputs": digests(as_drawn),
        "arrays": write_buffers(out.with_suffix(".bin"), arrays),
    }
    out.with_suffix(".json").write_text(json.dumps(told), "utf-8")


def _partition(request: dict[str, Any], examples: int, devices: int) -> StepPartition:
    if request["partition"] is not None:
        return msgspec.convert(request["partition"], StepPartition)
    counts = balanced(examples, devices)
    whole = len(set(counts)) == 1
    return StepPartition(
        name=f"data={devices}/{examples}", mesh={"data": devices}, counts=counts, rows=max(counts), whole=whole
    )


def _say(out: Path, stage: str) -> None:
    out.with_suffix(".stage").write_text(stage, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
