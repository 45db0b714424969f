from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kernel_audit.worker import Job, Pool

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool(size=2) as made:
        yield made


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    """job("name", deadline_s=..., argument=...): a job in a folder of its own, of a function in worker_specimens."""
    count = iter(range(1000))
    fields = Job.__dataclass_fields__

    def make(name: str, **arguments) -> Job:
        chosen = {key: arguments.pop(key) for key in list(arguments) if key in fields}
        chosen.setdefault("deadline_s", 30.0)
        chosen.setdefault("import_path", (str(HERE),))
        chosen.setdefault("folder", tmp_path / f"job-{next(count)}")
        return Job(f"worker_specimens:{name}", arguments, **chosen)

    return make


@pytest.fixture
def specimens(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of specimens, for what the tests compare with."""
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module("worker_specimens")


@pytest.fixture
def processes_below() -> Callable[[Path], list[int]]:
    """Processes whose working folder is inside a folder: the worker and whatever it forked, detached or not."""

    def find(folder: Path) -> list[int]:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                at = os.readlink(f"/proc/{name}/cwd")
            except OSError:
                continue
            if Path(at).is_relative_to(folder):
                found.append(int(name))
        return found

    return find
