"""`kernel-audit doctor`."""

from __future__ import annotations

import sys
from typing import Any

import click

from kernel_audit.cli.options import json_option


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """What this machine and its JAX can do for an audit. Exit code 2 when an audit cannot run here."""
    from kernel_audit.matrix.environment import installed
    from kernel_audit.records import encode
    from kernel_audit.worker import Job, Pool
    from kernel_audit.worker.endings import ended_by_signals
    from kernel_audit.worker.scratch import scratch_folder

    with ended_by_signals(), scratch_folder() as folder, Pool(size=1) as pool:
        result = pool.run(Job("kernel_audit.matrix.doctor_job:examine", {}, folder / "job", deadline_s=60.0))
    found: dict[str, Any] = {
        "versions": installed(),
        "worker": result.outcome,
        "isolation": dict(result.isolation),
        "checks": result.value or {},
        "error": dict(result.error or {}),
    }
    healthy = result.outcome == "finished" and all(each["ok"] for each in found["checks"].values())
    if as_json:
        click.echo(encode(found).decode())
    else:
        _show(found)
    sys.exit(0 if healthy else 2)


def _show(found: dict[str, Any]) -> None:
    click.echo("versions   " + ", ".join(f"{name} {text}" for name, text in found["versions"].items()))
    click.echo(f"worker     {found['worker']}")
    for name, value in found["isolation"].items():
        click.echo(f"  {name:22} {value}")
    for name, check in found["checks"].items():
        click.echo(f"{'ok      ' if check['ok'] else 'MISSING '} {name}: {check['says']}")
    if found["error"]:
        click.echo("error      " + ", ".join(f"{key}: {value}" for key, value in found["error"].items()))
