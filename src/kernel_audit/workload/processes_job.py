"""Job of a worker with a loopback of its own: starts the processes of a distributed step, waits, and says how each ended.

Nothing inside JAX can be relied on to end: a process that takes no part blocks its peers for ever. The deadline is held here.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernel_audit.records import RankRecord
from kernel_audit.worker.arrays import read_buffers
from kernel_audit.workload.rank import HEARTBEAT_S, STAGES

RANKS = "ranks"
GRACE_S = HEARTBEAT_S + 5.0  # for the others to notice that a process is gone
_TICK_S = 0.05


@dataclass
class _Rank:
    number: int
    process: subprocess.Popen[bytes]
    out: Path
    ended_s: float | None = None

    @property
    def stage(self) -> str:
        with contextlib.suppress(OSError):
            return self.out.with_suffix(".stage").read_text("utf-8")
        return ""

    @property
    def failed(self) -> bool:
        return self.ended_s is not None and self.process.returncode != 0


def run_processes(
    steps: Any, *, request: dict[str, Any], roots: list[str], processes: int, devices_each: int, deadline_s: float
) -> None:
    """One step: {"ranks": [RankRecord], "told": what process 0 saw, "cause": rank or None}; its arrays are the values on all
    devices, where all processes finished."""
    steps.begin(RANKS)
    started = time.monotonic()
    ranks = _started(Path.cwd(), request, roots, processes, devices_each)
    try:
        overdue = _wait(ranks, started, deadline_s)
    finally:
        for each in ranks:
            _end(each)
    first = min((each for each in ranks if each.failed), key=lambda each: each.ended_s or 0.0, default=None)
    records = [_record(each, first, overdue, time.monotonic() - started) for each in ranks]
    cause = _cause(ranks, first, overdue)
    told, arrays = _joined(ranks) if all(each.outcome == "finished" for each in records) else ({}, {})
    steps.finish(RANKS, {"ranks": msgspec.to_builtins(records), "cause": cause, "told": told}, arrays or None)


def _started(folder: Path, request: dict[str, Any], roots: list[str], processes: int, devices_each: int) -> list[_Rank]:
    place = folder / "request.json"
    place.write_text(json.dumps(request), "utf-8")
    coordinator = f"127.0.0.1:{_free_port()}"
    paths = [*roots, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in paths if each)}
    ranks = []
    for number in range(processes):
        out = folder / f"rank-{number}"
        command = [sys.executable, "-P", "-m", "kernel_audit.workload.rank", str(place), "--coordinator", coordinator]
        command += ["--processes", str(processes), "--rank", str(number)]
        command += ["--cpu-devices", str(devices_each), "--out", str(out)]
        ranks.append(_Rank(number, subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL), out))
    return ranks


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _wait(ranks: list[_Rank], started: float, deadline_s: float) -> bool:
    """Until all have ended, or the deadline (then True), or the grace that the others have once one is lost."""
    lost: float | None = None
    while any(each.ended_s is None for each in ranks):
        now = time.monotonic()
        for each in ranks:
            if each.ended_s is None and each.process.poll() is not None:
                each.ended_s = now - started
                lost = now if each.failed and lost is None else lost
        if now - started > deadline_s:
            return any(each.ended_s is None for each in ranks)
        if lost is not None and now - lost > GRACE_S:
            return False
        time.sleep(_TICK_S)
    return False


def _end(rank: _Rank) -> None:
    if rank.process.poll() is None:
        rank.process.kill()
    rank.process.wait()


def _record(rank: _Rank, first: _Rank | None, overdue: bool, now: float) -> RankRecord:
    code = rank.process.returncode
    by_signal = -code if code < 0 else None
    if rank.ended_s is None:  # it was ended here
        outcome = "stuck" if overdue or first is None else "lost-peer"
    elif code == 0:
        outcome = "finished"
    elif by_signal == signal.SIGKILL:
        outcome = "killed"
    elif first is not None and first is not rank:
        outcome = "lost-peer"
    else:
        outcome = "raised"
    return RankRecord(
        rank=rank.number,
        outcome=outcome,
        exit_code=code if code >= 0 else None,
        signal=by_signal if rank.ended_s is not None else None,
        seconds=rank.ended_s if rank.ended_s is not None else now,
        note=f"last stage: {rank.stage or 'none'}",
        **_seen(rank),
    )


def _seen(rank: _Rank) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        told = json.loads(rank.out.with_suffix(".json").read_text("utf-8"))
        return {key: told[key] for key in ("processes", "devices", "local_devices")}
    return {}


def _cause(ranks: list[_Rank], first: _Rank | None, overdue: bool) -> int | None:
    """The first process that failed; of a run that was stuck, the one that had come least far."""
    if first is not None:
        return first.number
    return min(ranks, key=lambda each: _progress(each.stage)).number if overdue else None


def _progress(stage: str) -> float:
    if stage.startswith("update "):
        return STAGES.index("traced") + 0.5
    return STAGES.index(stage) if stage in STAGES else -1


def _joined(ranks: list[_Rank]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What process 0 saw, and every value with the copies of all processes, in their order."""
    told = [json.loads(each.out.with_suffix(".json").read_text("utf-8")) for each in ranks]
    values = [
        read_buffers(each.out.with_suffix(".bin"), seen["arrays"]) for each, seen in zip(ranks, told, strict=True)
    ]
    joined = {name: np.concatenate([each[name] for each in values], axis=1) for name in values[0]}
    return {key: value for key, value in told[0].items() if key != "arrays"}, joined
