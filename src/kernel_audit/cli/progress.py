"""Progress on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

PLAIN_EVERY_S = 10.0


@contextmanager
def shown_progress(*, quiet: bool = False) -> Iterator[Callable[[str, int, int | None], None]]:
    """A function (what, done, total) that shows progress while the context lasts. A signal to stop is a KeyboardInterrupt."""
    from kernel_audit.worker.endings import ended_by_signals

    with ended_by_signals():
        if quiet:
            yield lambda what, done, total: None
        elif sys.stderr.isatty():
            with _bar() as show:
                yield show
        else:
            yield _Lines().show


class _Lines:
    """One line when the work changes, and one now and then."""

    def __init__(self) -> None:
        self._what = ""
        self._last_s = 0.0

    def show(self, what: str, done: int, total: int | None) -> None:
        now_s = time.monotonic()
        if what == self._what and now_s - self._last_s < PLAIN_EVERY_S:
            return
        self._what, self._last_s = what, now_s
        click.echo(f"{what}: {done} of {total} steps" if total else what, err=True)


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int | None], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
