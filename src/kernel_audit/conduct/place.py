"""Where an audit is made: `OUT.partial` while it is at work, held by one process; then `OUT`, and nothing else."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernel_audit.errors import BundleError
from kernel_audit.evidence import is_bundle


def require_place(out: Path) -> None:
    """Raises BundleError where no bundle can be made: no name, a broken link, inside a finished bundle."""
    try:
        inside = next((each for each in out.absolute().parents if is_bundle(each)), None)
        broken = out.is_symlink() and not out.exists()
        got = f"a place inside the bundle {inside.name}" if inside else "a link to nothing" if broken else ""
        got = got or ("no name" if not out.name else "")
        out.exists()
    except OSError as error:
        got = str(error.strerror)
    if got:
        raise BundleError(
            "no bundle can be made at this place",
            stage="run",
            where=f"--out {out}",
            expected="a free name, outside of any bundle",
            got=got,
            next_command="choose another --out",
        )


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """Holds the work folder; the system lets go of it when the process ends, however it ends."""
    with (work / "lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BundleError(
                "another run is at work here",
                stage="run",
                where=work.name,
                expected="one run at a time",
                got="a folder that a running process holds",
                next_command="wait for it, or choose another --out",
            ) from None
        yield


def make_folder(work: Path) -> None:
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundleError(
            "a place that cannot be written",
            stage="run",
            where=str(work),
            expected="a folder that can be made",
            got=str(error.strerror),
            next_command="choose another --out",
        ) from None
