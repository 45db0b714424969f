"""The step over two processes of four devices: right, or one of them lost or stuck, each told within its deadline + 10 s."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kernel_audit.conduct.processes import run_processes
from kernel_audit.conduct.workload import WORKLOAD_PRELOAD, reference_of
from kernel_audit.contract import FunctionRef
from kernel_audit.contract.step_partitions import partitions
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.matrix.laboratory import PRELOAD, Done, Laboratory, Limits
from kernel_audit.records import ProcessesRun, StepPartition
from kernel_audit.worker import GIB, Pool

pytestmark = pytest.mark.slow
SPECIMENS = Path(__file__).parents[2] / "faults" / "specimens"
DEADLINE_S = 25.0
PARTITION = next(each for each in partitions(1000) if each.name == "data=8/13")


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    with Pool(size=1, preload=(*PRELOAD, *WORKLOAD_PRELOAD)) as pool:
        made = Laboratory(pool, tmp_path_factory.mktemp("processes"), [SPECIMENS], Limits(120.0))
        yield made
        made.close()


@pytest.fixture(scope="module")
def reference(laboratory: Laboratory) -> Done:
    return reference_of(laboratory, BUILT_IN["regression"], {"T": "float32"}, [PARTITION])


def _run(laboratory: Laboratory, reference: Done, folder: Path, step: str | None) -> tuple[ProcessesRun, float]:
    audit = BUILT_IN["regression"]
    if step is not None:
        workload = msgspec.structs.replace(audit.workload, step=FunctionRef(file="ranks.py", name=step))  # type: ignore[type-var]
        audit = msgspec.structs.replace(audit, workload=workload)
    started = time.monotonic()
    deadline_s = DEADLINE_S if step else 120.0
    run = run_processes(
        laboratory.pool,
        folder / "job",
        audit,
        [SPECIMENS],
        PARTITION,
        reference,
        deadline_s=deadline_s,
        memory_bytes=8 * GIB,
    )
    seconds = time.monotonic() - started
    assert seconds <= deadline_s + 10
    return run, seconds


def test_two_processes_give_the_objective_of_one(laboratory: Laboratory, reference: Done, tmp_path: Path):
    run, _ = _run(laboratory, reference, tmp_path, None)
    assert run.outcome == "right", run.note
    assert [(each.processes, each.devices, each.local_devices) for each in run.ranks] == [(2, 8, 4)] * 2
    assert run.collectives_by == "gloo"
    assert all(each.loss is not None and each.loss <= 1e-6 for each in run.errors) and len(run.errors) == 5


@pytest.mark.parametrize(
    ("step", "outcome", "cause", "ends"),
    [
        ("rank_killed", "rank-lost", 1, ("lost-peer", "killed")),
        ("coordinator_killed", "coordinator-lost", 0, ("killed", "lost-peer")),
        ("rank_stuck", "stuck", 1, ("stuck", "stuck")),
        ("rank_raises", "raised", 1, ("lost-peer", "raised")),
    ],
)
def test_a_lost_process_is_an_outcome(
    step: str, outcome: str, cause: int, ends: tuple[str, str], laboratory: Laboratory, reference: Done, tmp_path: Path
):
    run, _ = _run(laboratory, reference, tmp_path, step)
    assert (run.outcome, run.cause) == (outcome, cause), run.note
    assert tuple(each.outcome for each in run.ranks) == ends
    assert run.errors == [] and "process 0" in run.note


def test_the_partition_is_uneven_and_padded():
    assert isinstance(PARTITION, StepPartition) and not PARTITION.whole
