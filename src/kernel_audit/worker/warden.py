"""The process between zygote and worker: it fences the job in, watches it, and leaves nothing of it behind.

The zygote forks a warden for each job. The warden enters new namespaces and forks two children: the *init*,
first process of the new process namespace, which only waits for the warden to be gone (when an init ends, the
kernel kills its whole namespace), and the *worker*. It talks to the parent over the control socket:

    {"started": isolation}      the worker is set up; the job's own code begins
    {"failed": text}            it could not be set up
    {"ended": {...}}            everything of the job is gone: wait status, largest resident bytes, both streams

and then, from the zygote, {"done": the warden's wait status}: the only message when the warden was killed.
It ends the job when the parent asks for it (any message) or is gone, and when the zygote is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from dataclasses import dataclass
from typing import Any

from kernel_audit.worker import linux, sandbox, wire
from kernel_audit.worker.streams import Capture

_PIECE_BYTES = 1 << 16


@dataclass
class _Watch:
    """What the warden holds while a job runs. Numbers are file descriptors and process ids."""

    control: socket.socket
    lifeline: int  # readable (end of file) when the zygote is gone
    streams: dict[int, Capture]
    worker: int
    init: int | None


def guard(request: dict[str, Any], control: socket.socket, lifeline: int) -> None:
    """Runs in the warden. Returns in the worker, fenced in; in the warden it does not return, but may raise."""
    os.setsid()
    linux.adopt_orphans()
    wake = _wake_on_child()
    isolation = sandbox.separate([request["folder"], *request["writable"]], loopback=request["loopback"])
    out, err, setup = os.pipe(), os.pipe(), os.pipe()
    init = _fork_init() if isolation["processes"] == "namespace" else None
    warden = os.getpid()
    worker = os.fork()
    if worker == 0:
        _become_worker(request, isolation, out[1], err[1], setup[1], warden)
        return
    for _, write_end in (out, err, setup):
        os.close(write_end)
    streams = {out[0]: Capture(), err[0]: Capture()}
    _watch(_Watch(control, lifeline, streams, worker, init), setup[0], wake)
    os._exit(0)


def _wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read_end


def _fork_init() -> int:
    """Forks the first process of the new namespace, which ends when the warden is gone or kills it."""
    read_end, _held = os.pipe()  # the other end stays open for as long as the warden lives
    init = os.fork()
    if init == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans of the job are reaped without a wait
        os.dup2(read_end, 3)
        os.closerange(4, _descriptors())
        os.read(3, 1)
        os._exit(0)
    os.close(read_end)
    return init


def _become_worker(
    request: dict[str, Any], isolation: dict[str, str], out: int, err: int, setup: int, warden: int
) -> None:
    """Streams, limits and fences of the worker; says how it went into `setup`."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    linux.end_with_parent(signal.SIGKILL)
    if os.getppid() not in (0, warden):  # 0: the warden lives in another process namespace
        os._exit(70)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.dup2(setup, 3)
    os.closerange(4, _descriptors())
    report: dict[str, Any] = {}
    try:
        sandbox.confine(isolation)
        sandbox.limit(request["memory_bytes"])
        report["started"] = isolation
    except OSError as error:
        report["failed"] = str(error)
    os.write(3, json.dumps(report).encode())
    os.close(3)
    if "failed" in report:
        os._exit(70)


def _descriptors() -> int:
    """One more than the largest descriptor that can be open."""
    return max(int(each) for each in os.listdir("/proc/self/fd")) + 1


def _watch(watch: _Watch, setup: int, wake: int) -> None:
    """From the worker's set-up to the last word about it."""
    with os.fdopen(setup, "rb") as stream:
        report = stream.read()
    message = json.loads(report) if report else {"failed": "the worker ended while it was set up"}
    _tell(watch.control, message)
    status, usage, stopped_by = _until_the_end(watch, wake)
    _sweep(watch)
    if "failed" in message:
        return
    for descriptor, capture in watch.streams.items():
        _drain(descriptor, capture)
    out, err = watch.streams.values()
    ended = {
        "status": status,
        "stopped_by": stopped_by,
        "peak_bytes": usage.ru_maxrss * 1024,
        "stdout": out.text(),
        "stderr": err.text(),
        "imitation": out.imitation or err.imitation,
    }
    _tell(watch.control, {"ended": ended})


def _until_the_end(watch: _Watch, wake: int) -> tuple[int, Any, str | None]:
    """Pumps the streams until the worker has ended; kills it when it is told to, and says who told it."""
    open_streams = set(watch.streams)
    orders: dict[Any, str] = {watch.control: "parent", watch.lifeline: "zygote"}
    stopped_by = None
    while True:
        pid, status, usage = os.wait4(watch.worker, os.WNOHANG)
        if pid:
            return status, usage, stopped_by
        ready, _, _ = select.select([wake, *orders, *open_streams], [], [])
        for descriptor in open_streams.intersection(ready):
            data = os.read(descriptor, _PIECE_BYTES)
            watch.streams[descriptor].add(data)
            if not data:
                open_streams.discard(descriptor)
        if wake in ready:
            os.read(wake, 4096)
        given = [each for each in orders if each in ready]
        if given:
            stopped_by = orders[given[0]]
            orders.clear()  # the order itself stays in the socket; the zygote reads over it
            os.kill(watch.worker, signal.SIGKILL)


def _sweep(watch: _Watch) -> None:
    """Ends and reaps everything that the job started and that is left."""
    if watch.init is not None:
        os.kill(watch.init, signal.SIGKILL)
        os.waitpid(watch.init, 0)  # returns when nothing of the namespace is left
        return
    while True:
        for child in _children():
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Children of this process as /proc shows them; orphans of the job have been adopted by now."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as stream:
            return [int(each) for each in stream.read().split()]
    except OSError:  # the kernel was built without it
        return _children_by_status()


def _children_by_status() -> list[int]:
    children = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                after_name = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(after_name[1]) == os.getpid():
            children.append(int(name))
    return children


def _drain(descriptor: int, capture: Capture) -> None:
    """What is still in the pipe; every writer is gone."""
    while data := os.read(descriptor, _PIECE_BYTES):
        capture.add(data)
    os.close(descriptor)


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the parent is gone: nobody is left to tell, and the sweep matters more
        wire.send(control, message)
