"""A bundle to spoil."""

import shutil
from pathlib import Path

import pytest
import sample_evidence

from kernel_audit.evidence import write_bundle


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished bundle of the failing sample, with a figure: written once, as flushing files to the disk is slow."""
    sample = sample_evidence.failing()
    out = tmp_path_factory.mktemp("finished") / "bundle"
    write_bundle(sample.evidence, sample.decision, sample.sources, {"gap.json": b"{}"}, b"<!doctype html>", out)
    return out


@pytest.fixture
def bundle(finished: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(finished, tmp_path / "bundle")
