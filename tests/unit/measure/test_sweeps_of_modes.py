"""A sweep over an audit with modes: one line a mode, worked out when the receipts are on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import sample_receipts
from click.testing import CliRunner
from sample_evidence import replaced

from kernel_audit.cli.measure import command
from kernel_audit.conduct import measuring
from kernel_audit.conduct.measuring import Measured, crossovers
from kernel_audit.evidence import read_receipts
from kernel_audit.records import Receipt


def swept() -> list[Receipt]:
    """Two sizes in two modes; only "fast" is won, at the larger one."""
    base = sample_receipts.receipt(sample_receipts.evidence().frozen.audit, ratio=1.2)
    won = sample_receipts.receipt(sample_receipts.evidence().frozen.audit, ratio=0.8)
    name = next(iter(base.dims))
    return [
        replaced(each, mode={"mode": mode}, dims={**base.dims, name: size}, number=number, of=4)
        for number, (each, mode, size) in enumerate(
            [(base, "fast", 8), (base, "safe", 8), (won, "fast", 64), (base, "safe", 64)], start=1
        )
    ]


def test_every_mode_has_its_line():
    name = next(iter(swept()[0].dims))
    lines = {each.mode["mode"]: each.says for each in crossovers(swept(), [f"{name}=8,64"])}
    assert lines["fast"] == f"faster from {name} between 8 and 64"
    assert lines["safe"].startswith("none in range: not faster")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_receipts_are_there_before_a_crossover_is_asked_for(monkeypatch, tmp_path: Path, options: list[str]):
    receipts = swept()

    def fails(*_):
        raise ValueError("no crossover")

    monkeypatch.setattr(measuring, "measure", lambda asked, progress: Measured(receipts, ("n=8,64",)))
    monkeypatch.setattr(measuring, "crossovers", fails)
    done = CliRunner().invoke(command, ["any", "--target", "tpu", "--out", str(tmp_path / "out"), *options])
    assert isinstance(done.exception, ValueError)
    assert len(read_receipts(tmp_path / "out")) == 4


def test_the_terminal_names_mode_and_sizes(monkeypatch, tmp_path: Path):
    receipts = swept()
    name = next(iter(receipts[0].dims))
    measured = Measured(receipts, (f"{name}=8,64",))
    monkeypatch.setattr(measuring, "measure", lambda asked, progress: measured)
    done = CliRunner().invoke(command, ["any", "--target", "tpu", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert f"program float32 mode=fast n=129: faster from {name} between 8 and 64" in done.output
