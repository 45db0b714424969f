"""`kernel-audit explain`."""

from __future__ import annotations

import textwrap
from dataclasses import asdict

import click

from kernel_audit.cli.options import json_option

_EFFECTS = {
    "revise": "a promise of the contract is broken: the decision is revise",
    "forbid": "no decision is possible until it is resolved: exit code 2",
    "await": "the decision awaits evidence",
    "note": "informs; decides nothing",
}


@click.command("explain")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> None:
    """What a reason code means, and how to resolve it. Without CODE: all codes, a line each."""
    from kernel_audit.decision import reasons
    from kernel_audit.errors import AuditError, near
    from kernel_audit.records import encode

    table = reasons()
    if code is None:
        if as_json:
            click.echo(encode([asdict(each) for each in table.values()]).decode())
            return
        for each in table.values():
            click.echo(f"{each.code:28} {each.subject:12} {each.effect:7} {_first_sentence(each.means)}")
        return
    if code not in table:
        raise AuditError(
            "no such reason code",
            stage="explain",
            where=code,
            expected="a code of a finding",
            got=near(code, table),
            next_command="kernel-audit explain   lists them all",
        )
    reason = table[code]
    if as_json:
        click.echo(encode(asdict(reason)).decode())
        return
    click.echo(f"{reason.code}\n")
    for label, text in (
        ("whose", reason.subject),
        ("effect", _EFFECTS[reason.effect]),
        ("criterion", reason.criterion),
        ("means", reason.means),
        ("resolve", reason.resolve),
    ):
        click.echo(textwrap.fill(text, 100, initial_indent=f"  {label:10}", subsequent_indent=" " * 12))


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
