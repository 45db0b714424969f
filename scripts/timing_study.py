"""The error rates of the timing method, measured; `scripts/bench aa`, `power` and `work` run this.

    timing_study.py aa      sessions in which nothing changed: 2,000 simulated ones, 60 real ones of a CPU program
    timing_study.py power   sessions with a true difference, simulated
    timing_study.py work    40 real CPU sessions each with 0, 3, 5 and 10 % of extra work

Options: --sessions N (simulated, in all, or for each case), --real N, --jobs N, --write (puts the tables into docs/timing.md
and the counts into docs/studies/). Exit code 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from kernel_audit.records import CANNOT_TELL, FASTER, NO_DIFFERENCE, SLOWER
from kernel_audit.statistics import session_verdict
from kernel_audit.timing.cpu_study import PROCESSES, STEPS, STUDY_PRELOAD, Bench
from kernel_audit.timing.simulated import Noise
from kernel_audit.timing.study import KINDS, METHOD, RULE_NAMES, Kind, Tally, merged, tally, tally_named
from kernel_audit.worker import Pool

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "timing.md"
VERDICTS = (FASTER, SLOWER, NO_DIFFERENCE, CANNOT_TELL)
PART = 20  # sessions that one task of the process pool takes


def main() -> int:
    """Exit code: 0 when every bound held."""
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("study", choices=sorted(STUDIES))
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--real", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    started = time.monotonic()
    tables, counts, held = STUDIES[options.study](options)
    minutes = (time.monotonic() - started) / 60
    print(tables)
    print(f"{minutes:.1f} minutes on {os.cpu_count()} cores; bounds {'held' if held else 'MISSED'}")
    if options.write:
        write(options.study, tables, {**counts, "minutes": round(minutes, 1), "held": held})
    return 0 if held else 1


def aa(options: argparse.Namespace) -> tuple[str, dict, bool]:
    """Nothing changed: how often is a difference called?"""
    sessions = 2000 if options.sessions is None else options.sessions
    found = [spread_out(options.jobs, tally, kind, sessions // len(KINDS)) for kind in KINDS] if sessions else []
    called = sum(each.called(METHOD) * each.sessions for each in found)
    total = sum(each.sessions for each in found)
    title = "called faster or slower, of sessions in which nothing changed"
    lines = [
        noise_table(found),
        "",
        rule_table(found, title, Tally.called),
        "",
        f"Simulated: {called:.0f} of {total} sessions called; at most 1 % may be.",
        "",
    ]
    lines = lines if found else []
    real, text, wrong = [], "", 0
    if options.real is None or options.real:
        real, text = real_sessions([0.0], 60 if options.real is None else options.real)
        wrong = sum(each["verdict"] in (FASTER, SLOWER) for each in real)
        lines += [text, "", f"Real: {wrong} of {len(real)} sessions called; at most one may be."]
    held = called <= 0.01 * max(total, 1) and wrong <= 1
    return "\n".join(lines), {"simulated": [as_counts(each) for each in found], "real": real}, held


def power(options: argparse.Namespace) -> tuple[str, dict, bool]:
    """Something changed: how often is it found, and with the right sign?"""
    each = 400 if options.sessions is None else options.sessions
    quiet = Kind(Noise("robust CV 0.10", independent=0.1, spread=0.01), pairs=600)
    wide = Kind(Noise("robust CV 0.30", independent=0.3, spread=0.01), pairs=300)
    five = spread_out(options.jobs, tally, quiet, each, ratio=1 / 1.05)
    parts = spread_over(options.jobs, tally_named, wide, each, ratio=1 / 1.05)
    first, named = merged(one for one, _ in parts), merged(two for _, two in parts)
    named.pairs = int(np.median(first.named_pairs)) if first.named_pairs else 0
    small = spread_out(options.jobs, tally, quiet, 5 * each, ratio=1 / 1.02)
    cases = {"true 5 %": five, "true 5 %, wide": first, "true 5 %, wide, pairs as named": named, "true 2 %": small}
    bounds = {
        "true 5 % found in 95 % (robust CV 0.10, 600 pairs)": five.share(METHOD, FASTER) >= 0.95,
        "cannot tell in four of five (robust CV 0.30, 300 pairs)": first.share(METHOD, CANNOT_TELL) >= 0.8,
        "found in 90 % with the pairs that were named": named.share(METHOD, FASTER) >= 0.9,
        "wrong sign at a true 2 % in at most 1 of 1,000": small.share(METHOD, SLOWER) <= 0.001,
    }
    rows = [row(POWER_COLUMNS), rule_line(POWER_COLUMNS)]
    rows += [power_row(name, case) for name, case in cases.items()]
    rows += [
        "",
        rule_table(
            list(cases.values()), "called faster, which is true", lambda case, rule: case.share(rule, FASTER), cases
        ),
    ]
    rows += [
        "",
        rule_table(
            list(cases.values()), "called slower, which is wrong", lambda case, rule: case.share(rule, SLOWER), cases
        ),
    ]
    unnamed = first.rules.get(METHOD, {}).get(CANNOT_TELL, 0) - len(first.named_pairs)
    rows += ["", f"{unnamed} of the wide sessions named no number of pairs but more processes."]
    rows += ["", *(f"- {'held' if held else 'MISSED'}: {text}" for text, held in bounds.items())]
    return "\n".join(rows), {name: as_counts(case) for name, case in cases.items()}, all(bounds.values())


def work(options: argparse.Namespace) -> tuple[str, dict, bool]:
    """Real programs with a calibrated extra of work."""
    extras = [0.0, 0.03, 0.05, 0.10]
    found, text = real_sessions(extras, 40 if options.real is None else options.real)
    covered = sum(each["covered"] for each in found)
    wrong = [each for each in found if each["verdict"] == FASTER]  # the candidate has more work, or as much
    held = covered >= 0.95 * len(found) and not [each for each in wrong if each["extra"] > 0]
    return text, {"real": found}, held


STUDIES: dict[str, Callable[[argparse.Namespace], tuple[str, dict, bool]]] = {"aa": aa, "power": power, "work": work}


def real_sessions(extras: list[float], count: int) -> tuple[list[dict], str]:
    """`count` sessions for each extra share of work, extras in turn, so that a change of the machine meets all alike."""
    found = []
    with tempfile.TemporaryDirectory() as folder, Pool(size=1, preload=STUDY_PRELOAD) as pool:
        bench = Bench(pool, Path(folder))
        bench.calibrate()
        first = bench.piloted_plan(1)
        print(f"  {first.pairs} pairs a session: {first.chosen}", file=sys.stderr, flush=True)
        for number in range(count):
            plan = bench.plan(1000 * number + 1, first.pairs)
            for extra in extras:
                length = round(STEPS * (1 + extra))
                verdict = session_verdict(bench.session(length, plan))
                truth = bench.truth(length)
                ratio = verdict.ratio
                found.append(
                    {
                        "extra": extra,
                        "truth": truth,
                        "verdict": verdict.verdict,
                        "reasons": verdict.reasons,
                        "ratio": [ratio.low, ratio.ratio, ratio.high] if ratio else None,
                        "covered": bool(ratio and ratio.low <= truth <= (ratio.high or np.inf)),
                        "robust_cv": max((each.robust_cv for each in verdict.sides), default=None),
                        "pairs": verdict.pairs,
                        "voided": verdict.voided,
                        "findings": verdict.findings,
                    }
                )
                print(
                    f"  {number + 1}/{count} {extra:.0%}: {found[-1]['verdict']} {found[-1]['ratio']}",
                    file=sys.stderr,
                    flush=True,
                )
    return found, real_table(found, bench.fixed_share)


POWER_COLUMNS = [
    "case",
    "robust CV",
    "spread",
    "pairs",
    "sessions",
    "faster (true)",
    "slower (wrong)",
    "no difference shown",
    "cannot tell",
    "truth in interval",
]
NOISE_COLUMNS = [
    "noise",
    "robust CV of a side",
    "spread between processes",
    "pairs",
    "processes",
    "sessions",
    "faster or slower",
    "no difference shown",
    "cannot tell",
    "1 in interval",
]
REAL_COLUMNS = [
    "extra work",
    "true ratio",
    "sessions",
    "pairs",
    "robust CV, median",
    "voided",
    *("faster", "slower", "no difference shown", "cannot tell"),
    "truth in interval",
]


def real_table(found: list[dict], fixed_share: float) -> str:
    """One row for each extra."""
    text = (
        f"Real sessions: jitted programs of about {STEPS} equal steps on the CPU, {PROCESSES} processes each.\n"
        f"{fixed_share:.1%} of a call is not steps; the true ratio counts that."
    )
    rows = [text, "", row(REAL_COLUMNS), rule_line(REAL_COLUMNS)]
    for extra in sorted({each["extra"] for each in found}):
        mine = [each for each in found if each["extra"] == extra]
        cvs = [each["robust_cv"] for each in mine if each["robust_cv"] is not None]
        cells = [
            f"{extra:.0%}",
            f"{mine[0]['truth']:.4f}",
            len(mine),
            int(np.median([each["pairs"] for each in mine])),
            f"{np.median(cvs):.3f}" if cvs else "",
            sum(sum(each["voided"].values()) for each in mine),
            *(sum(each["verdict"] == verdict for each in mine) for verdict in VERDICTS),
            sum(each["covered"] for each in mine),
        ]
        rows.append(row(cells))
    return "\n".join(rows)


def noise_table(found: list[Tally]) -> str:
    """What the kinds of noise are, and what the method said."""
    rows = [row(NOISE_COLUMNS), rule_line(NOISE_COLUMNS)]
    for each in found:
        cells = [
            each.name,
            f"{np.median(each.robust_cvs):.3f}",
            f"{each.spread:.1%}",
            each.pairs,
            each.processes,
            each.sessions,
            f"{each.called(METHOD):.1%}",
            f"{each.share(METHOD, NO_DIFFERENCE):.1%}",
            f"{each.share(METHOD, CANNOT_TELL):.1%}",
            f"{each.covered / each.sessions:.1%}",
        ]
        rows.append(row(cells))
    return "\n".join(rows)


def power_row(name: str, case: Tally) -> str:
    """One case of a true difference."""
    cv = np.median(case.robust_cvs) if case.robust_cvs else np.nan
    shares = [f"{case.share(METHOD, verdict):.1%}" for verdict in VERDICTS]
    covered = f"{case.covered / max(1, case.sessions):.1%}"
    return row([name, f"{cv:.2f}", f"{case.spread:.0%}", case.pairs, case.sessions, *shares, covered])


def row(cells: Sequence[object]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(str(each) for each in cells) + " |"


def rule_line(cells: Sequence[object]) -> str:
    """The line below a table's head."""
    return "|" + "---|" * len(cells)


def rule_table(found: list[Tally], title: str, share: Callable[[Tally, str], float], names: dict | None = None) -> str:
    """The same samples through every rule."""
    rows = [f"| {title} | " + " | ".join(RULE_NAMES) + " |", "|---|" + "---|" * len(RULE_NAMES)]
    for name, each in zip(names or [each.name for each in found], found, strict=True):
        rows.append(f"| {name} | " + " | ".join(f"{share(each, rule):.1%}" for rule in RULE_NAMES) + " |")
    return "\n".join(rows)


def spread_out(jobs: int, call: Callable[..., Tally], kind: Kind, sessions: int, **options: float) -> Tally:
    """Sessions of a kind, over several processes of this machine."""
    return merged(spread_over(jobs, call, kind, sessions, **options))


def spread_over(jobs: int, call: Callable, kind: Kind, sessions: int, **options: float) -> list:
    """The results of parts of the sessions, in order."""
    parts = [(first, min(PART, sessions - first)) for first in range(0, sessions, PART)]
    if jobs == 1:
        return [call(kind, size, first_seed=first, **options) for first, size in parts]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(call, kind, size, first_seed=first, **options) for first, size in parts]
        return [each.result() for each in futures]


def as_counts(found: Tally) -> dict:
    """A tally as JSON, without the single values."""
    plain = dataclasses.asdict(found)
    plain["robust_cv"] = float(np.median(plain.pop("robust_cvs") or [0.0]))
    plain["named_pairs"] = (
        [int(each) for each in np.quantile(found.named_pairs, [0.1, 0.5, 0.9])] if found.named_pairs else []
    )
    return plain


def write(study: str, tables: str, counts: dict) -> None:
    """Puts the tables between their marks on the page, and the counts beside it."""
    folder = ROOT / "docs" / "studies"
    folder.mkdir(exist_ok=True)
    (folder / f"timing-{study}.json").write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n", "utf-8")
    begin, end = f"<!-- {study}: written by scripts/bench {study} --write -->", f"<!-- {study}: end -->"
    before, _, rest = PAGE.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n\n{tables}\n\n{end}{after}", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
