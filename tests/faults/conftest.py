"""One set of trials for a test process, so that oracles and baselines are calculated once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from trial import Trials


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    made = Trials(tmp_path_factory.mktemp("trials"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def whole_trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    """The built-in audits as they are."""
    made = Trials(tmp_path_factory.mktemp("whole-trials"), deadline_s=20.0, whole=True)
    yield made
    made.close()
