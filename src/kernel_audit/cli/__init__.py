"""The command line: one module a command, loaded when it is called."""

from __future__ import annotations

import sys
from importlib import import_module

import click

# name -> one line of help; the module is kernel_audit.cli.<name>, its command is `command`.
COMMANDS = {
    "run": "Audit a kernel: check it, decide, and write the evidence into a bundle.",
    "check": "The correctness matrix of an audit, and what it decides; keeps nothing.",
    "inspect": "What a kernel does with its blocks, bytes and memory, read before it runs.",
    "compile": "Compile an audit's programs for described devices, without a device.",
    "profile": "Where the time of the complete step goes, and what a kernel could gain there.",
    "measure": "Measure an audit on the device that is here; writes receipts.",
    "decide": "Decide again from the records of a bundle.",
    "verify": "Verify a bundle: digests, consistency, and the decision replayed.",
    "report": "Show a bundle as text, or write its page again.",
    "explain": "What a reason code means, and how to resolve it.",
    "new": "Write an audit file to start from.",
    "doctor": "What this machine and its JAX can do for an audit.",
}


class Commands(click.Group):
    """Names its commands without importing them: `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"kernel_audit.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from kernel_audit.errors import near

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"No such command {near(args[0], COMMANDS)}.", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kernel-audit")
def cli() -> None:
    """Does a custom kernel earn its complexity in the workload it is for?

    The answer is keep, revise, use-the-baseline or await-target-evidence, with the evidence that carries it.

    Exit codes: 0 completed; 1 revise, or a failed check; 2 a request that cannot be honoured; 70 our own fault.
    """


def main() -> None:
    """Entry point: errors become their five parts on stderr and an exit code; no traceback reaches a user."""
    from kernel_audit.errors import AuditError

    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except SystemExit:
        # So click ends, with a 1, when the reader of our output has gone. By name: click deprecates the class for its users.
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            from kernel_audit.worker.endings import READER_GONE

            sys.exit(READER_GONE)
        raise
    except AuditError as error:
        click.echo(error.text(), err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        from kernel_audit.cli.fault import own_fault

        click.echo(own_fault(error), err=True)
        sys.exit(70)
