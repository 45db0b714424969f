"""The zygote: imports JAX once, then forks a warden and a worker for each job.

    python -P -m kernel_audit.worker.zygote DESCRIPTOR [MODULE ...]

It reads jobs from the socket DESCRIPTOR, one at a time. It has one thread, no backend and no user code, and
makes sure of that before each fork: a second thread's locks would be copied as they stand, and a started
backend does not survive a fork. It ends when the parent closes the socket or is gone.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
import time
from typing import Any

from kernel_audit.worker import linux, wire
from kernel_audit.worker.perform import perform
from kernel_audit.worker.seal import Seal, sealer
from kernel_audit.worker.warden import guard

PRELOAD = (
    "numpy",
    "ml_dtypes",
    "jax",
    "jax.numpy",
    "jax.export",
    "jax.experimental.pallas",
    "jax.experimental.pallas.tpu",
)


def serve(control: socket.socket) -> tuple[dict[str, Any], Seal]:
    """Forks for each job that arrives. Returns in a worker only, with its job; ends the process otherwise.

    Returning unwinds every frame that held the key before code of the job runs.
    """
    lifeline, held = os.pipe()
    while True:
        try:
            request = wire.receive(control)
            if "stop" in request:  # meant for a job that ended by itself meanwhile
                continue
            seal = sealer(wire.receive_bytes(control))
            reason = unfit()
            if reason:
                wire.send(control, {"refused": reason})
                continue
            warden = os.fork()
            if warden == 0:
                _guard_or_die(request, control, lifeline, held)
                return request, seal
            del seal
            _await(warden, control)
        except (EOFError, BrokenPipeError):
            os._exit(0)


def unfit() -> str | None:
    """Why this process must not be forked, or None."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"the zygote has {threads} threads"
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        return "the zygote has a JAX backend"
    return None


def _guard_or_die(request: dict[str, Any], control: socket.socket, lifeline: int, held: int) -> None:
    try:
        os.close(held)
        guard(request, control, lifeline)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(70)


def _await(warden: int, control: socket.socket) -> None:
    """Waits for the warden, which speaks to the parent itself, and says that the job is over."""
    while True:
        pid, status = os.waitpid(-1, 0)  # others are orphans of a killed warden
        if pid == warden:
            break
    wire.send(control, {"done": status})


def main() -> None:
    """Imports, says hello, serves; in a worker, performs the job."""
    given = int(sys.argv[1])
    control = socket.socket(fileno=os.dup(given))  # a small number, whatever the parent has open
    os.close(given)
    started = time.perf_counter()
    try:
        for module in (*PRELOAD, *sys.argv[2:]):
            importlib.import_module(module)
    except Exception as error:
        wire.send(control, {"failed": f"{type(error).__name__}: {error}"})
        return
    gc.collect()
    gc.freeze()  # fewer pages are written to, so fewer are copied
    linux.adopt_orphans()
    wire.send(control, {"hello": os.getpid(), "import_s": time.perf_counter() - started})
    perform(*serve(control))


if __name__ == "__main__":
    main()
