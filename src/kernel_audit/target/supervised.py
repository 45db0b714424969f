"""Work in a process of its own, seen to its end: whatever it does below Python, its parent knows how it ended.

The process cannot write to the parent's standard output: its own is the parent's standard error from the first line on. What
it started in its process group ends with it; a process that leaves the group by `setsid` is not followed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kernel_audit.worker.linux import end_with_parent

Message = dict[str, Any]
Send = Callable[[Message], None]
_TICK_S = 0.05


@dataclass
class Ending:
    """What was told, the last message last, and how the process ended where it did not tell its end itself."""

    told: list[Message] = field(default_factory=list)
    ended: str = ""

    @property
    def answer(self) -> Message | None:
        """The message with which the work ended."""
        return self.told[-1] if self.told and self.told[-1].get("end") else None


def supervised(work: Callable[[Send], None], deadline_s: float) -> Ending:
    """Runs `work(send)` in a forked process. `send` tells plain data; a message with a true "end" is the last one.

    Returns after that message, the end of the process, or `deadline_s` seconds; nothing of it is left then, also where this
    is interrupted. To be called before JAX has a backend: threads do not survive a fork.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _perform(work, writing)
    os.close(writing)
    try:
        return _watched(child, reading, time.monotonic() + deadline_s, deadline_s)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # not reaped yet, so that the number is nobody else's
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)  # where it had no time to found its group
        os.waitpid(child, 0)
        os.close(reading)


def _perform(work: Callable[[Send], None], writing: int) -> None:
    """In the child; never returns. No buffer of the parent's is flushed here, no handler of its runs."""
    code = 70
    try:
        os.setsid()  # a Ctrl-C in the terminal is the parent's to handle
        with contextlib.suppress(OSError):
            end_with_parent(signal.SIGKILL)
        for each in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        work(lambda message: _send(writing, message))
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _send(writing: int, message: Message) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(writing, data) :]


def _watched(child: int, reading: int, until_s: float, deadline_s: float) -> Ending:
    ending, left, open_ = Ending(), b"", True
    while True:
        # The end is looked at before the pipe, so that what was told last is read.
        over = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if open_ and select.select([reading], [], [], 0 if over else _TICK_S)[0]:
            data = os.read(reading, 1 << 16)
            open_ = bool(data)
            *lines, left = (left + data).split(b"\n")
            ending.told += [json.loads(each) for each in lines]
            if ending.answer is not None:
                return ending
            if data:
                continue
        if over:
            ending.ended = _how(over)
            return ending
        if time.monotonic() > until_s:
            ending.ended = f"no result within {deadline_s:g} s"
            return ending
        if not open_:
            time.sleep(_TICK_S)


def _how(over: Any) -> str:
    if over.si_code == os.CLD_EXITED:
        return f"the process ended with exit code {over.si_status} and no result"
    return f"the process was ended by signal {over.si_status} ({signal.Signals(over.si_status).name})"
