"""How a command ends that was told to stop, or whose reader has gone: in order, with one line and a code of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

INTERRUPTED = 130
READER_GONE = 141  # as of a process that SIGPIPE ended: neither 0 nor 1, since what it was asked is not known


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """While open, SIGTERM and SIGHUP are a KeyboardInterrupt: what is at work is ended and removed first.

    For the main thread. A signal that is ignored (`nohup`) stays ignored.
    """

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    before = {each: handler for each, handler in before.items() if handler is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def exit_code_of(main: Callable[[], int]) -> int:
    """What `main()` returns; INTERRUPTED, with a line on stderr, when it was told to stop; READER_GONE when nobody reads its
    standard output any more."""
    try:
        with ended_by_signals():
            code = main()
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still in the buffer has nowhere to go
        return READER_GONE
