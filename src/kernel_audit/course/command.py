"""The checker's command line: `check.py --implementation PATH|solution --stage 1|2|3|all`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kernel_audit.course.checker import Checker
from kernel_audit.course.own_work import SOLUTION_DIGEST, require_own_work, require_shipped_solution
from kernel_audit.course.ownership import WHY_ZEROS, ownership_map
from kernel_audit.course.promises import STAGES, Check, wanted_at
from kernel_audit.errors import AuditError
from kernel_audit.matrix.loading import model_file
from kernel_audit.records import digest_bytes
from kernel_audit.worker.endings import exit_code_of
from kernel_audit.worker.scratch import scratch_folder

NOT_SHOWN = (
    "What a pass is not: nothing was compiled for a target or run on one, so it is no validation on a TPU or GPU; the "
    "interpreters on this CPU say nothing of speed, and no time was measured; it is bounded evidence that the promises above "
    "hold on the inputs that were tried, and neither an approval by an expert nor a credential."
)
MOST_WORKERS = range(1, 65)


def main(arguments: list[str], *, solution: Path) -> int:
    """Checks the file that the arguments name and prints a line a check. `solution` is the shipped solution.

    Exit code: 0 when every promise was kept, 1 when one was not, 2 for a request that cannot be honoured, 70 for our own
    fault, 130 when it was told to stop, 141 when the reader of its lines has gone.
    """
    asked = _parser().parse_args(arguments)

    def checked() -> int:
        try:
            return _checked(asked, solution)
        except AuditError as error:
            print(error.text(), file=sys.stderr)
            return error.exit_code

    return exit_code_of(checked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="check.py", description="Checks a model file, one line a promise; closes with how many were kept."
    )
    parser.add_argument(
        "--implementation", "--impl", required=True, metavar="PATH|solution", help="your file, or the shipped solution"
    )
    parser.add_argument(
        "--stage", choices=STAGES, default="all", help="1 blocked_axpy; 2 and fused_bias_relu; 3 or all: everything"
    )
    parser.add_argument(
        "--workers", type=_workers, default=2, metavar="N", help="workers side by side, 1 to 64 (default 2)"
    )
    return parser


def _workers(text: str) -> int:
    if not text.isdecimal() or int(text) not in MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {MOST_WORKERS[-1]}, not {text!r}")
    return int(text)


def _checked(asked: argparse.Namespace, solution: Path) -> int:
    shipped = asked.implementation == "solution"
    path = solution if shipped else model_file(asked.implementation, stage="check")
    if shipped or path.resolve() == solution.resolve():
        require_shipped_solution(solution)
        shipped = True
    else:
        require_own_work(path)
    print(f"checking {path.name}, stage {asked.stage}" + (f", {SOLUTION_DIGEST[:19]}" if shipped else ""), flush=True)
    checks = _printed(path, asked, shipped)
    print(f"\n{ownership_map()}\n\n{WHY_ZEROS}\n")
    failed = sum(bool(each.seen) for each in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    print(f"\n{NOT_SHOWN}", flush=True)
    return 1 if failed else 0


def _printed(path: Path, asked: argparse.Namespace, shipped: bool) -> list[Check]:
    """All checks, printed as they come. A function that is not written ends it: the rest would say the same."""
    done: list[Check] = []
    left = list(wanted_at(asked.stage))
    before = digest_bytes(path.read_bytes())
    with scratch_folder() as home:
        checker = Checker(home, workers=asked.workers)
        try:
            while left:
                found = checker.check(path, left.pop(0), solution=shipped)
                for each in found.checks:
                    print(each.text, flush=True)
                done += found.checks
                if not found.tried:
                    break
        finally:
            checker.close()
    for each in left:
        print(f"not run stage {each.stage}: {each.name}")
    _require_unchanged(path, before)
    return done


def _require_unchanged(path: Path, before: str) -> None:
    now = digest_bytes(path.read_bytes()) if path.is_file() else "no file"
    if now != before:
        raise AuditError(
            "the file changed while it was checked", stage="check", where=str(path), expected=before, got=now
        )
