"""The TPU compiler's final schedule, read from what it dumps: bundles, spills, fills, unit use, critical path.

The dump is undocumented (`--xla_jf_dump_to`, `--xla_jf_dump_llo_text`); what is missing or reads otherwise is left out by name,
never guessed. One file stem is one scheduled part: `<stamp>-<HLO instruction>-<number>-<kind>.txt`; "TLP" is the program around
them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kernel_audit.records import ScheduledPart

DUMP_FLAGS = "--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
NO_DUMP = "no schedule: this TPU compiler wrote no final bundles (its dump flags are undocumented and may be gone)"
AROUND = "TLP"

_FILE = re.compile(r"^(?P<stamp>\d+)-(?P<name>.+?)-(?P<number>\d+)-(?P<kind>[^-].*)\.txt$")
_BUNDLE = re.compile(r"^\s*(?:0x[0-9a-f]+|0)\s+(?P<mark>[LP][HBEF])?\s*:\s*(?P<depth>>*)\s*\{(?P<text>.*)$")
_TEST = re.compile(
    r"scmp\.(?P<how>ge|eq|gt)\.s32(?:\.totalorder)? %(?P<counter>\w+), (?P<limit>\d+) /\* loop exit test"
)
_ADD = re.compile(
    r"%(?P<to>\w+) = sadd\.s32 (?P<step>\d+), %(?P<of>\w+)|%(?P<to2>\w+) = sadd\.s32 %(?P<of2>\w+), (?P<step2>\d+)"
)
_MOVE = re.compile(r"%(?P<to>\w+) = (?:smov|sphi)(?: %|\s+)(?P<of>\w+)")
_LENGTH = re.compile(r"Length to end: (\d+)")
_UNITS = ("MXU", "XLU", "VALU", "EUP", "VLOAD", "VSTORE", "SALU")
_PIPELINE_STAGES = 3  # trips that a software pipeline adds at most, in which the steps' own code is predicated away


@dataclass
class _Loop:
    """A loop of the code: its own bundles, those of loops inside counted by their trips."""

    depth: int
    bundles: int = 0
    trips: int | None = None


def read_schedule(folder: Path, kernels: dict[str, int | None]) -> list[ScheduledPart]:
    """The parts of the schedule dumped into `folder`. `kernels` maps the instructions that are kernels to their programs.

    Empty where nothing was dumped.
    """
    parts: dict[tuple[str, str], dict[str, Path]] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        found = _FILE.match(path.name)
        if found:
            parts.setdefault((found["stamp"], found["name"]), {})[found["kind"]] = path
    made = [_part(name, files, kernels) for (_, name), files in sorted(parts.items())]
    return [each for each in made if each is not None]


def _part(name: str, files: dict[str, Path], kernels: dict[str, int | None]) -> ScheduledPart | None:
    bundles = files.get("final_bundles")
    if bundles is None or name.startswith("<late"):
        return None
    code = bundles.read_text("utf-8", errors="replace")
    total, loops = _loops(code)
    steps, step_bundles = _outer(total, loops, kernels.get(name))
    spills, fills, units = _use(files.get("final_hlo-static-per-bundle-utilization"))
    return ScheduledPart(
        name=name,
        kernel=name in kernels,
        bundles=total,
        step_bundles=step_bundles,
        steps=steps,
        spills=spills,
        fills=fills,
        critical_path=_critical(files.get("critical-path")),
        units=units,
    )


def _outer(total: int, loops: list[_Loop], programs: int | None) -> tuple[int | None, int]:
    """(how often the outer loop runs, bundles of one of its trips); a part without a loop runs once.

    A kernel's loop has a few trips more than it has programs, to fill and drain its pipeline: then its programs count.
    """
    outer = [each for each in loops if each.depth == 1]
    if not outer:
        return 1, total
    longest = max(outer, key=lambda each: each.bundles)
    trips = longest.trips
    if programs is not None and (trips is None or 0 <= trips - programs <= _PIPELINE_STAGES):
        trips = programs
    return trips, longest.bundles


def _loops(code: str) -> tuple[int, list[_Loop]]:
    """(bundles of one pass over the code, loops in the order in which they end).

    The depth of a bundle is the number of ">" before it; a loop's bundles include those of loops inside it times their trips,
    once where these are not known.
    """
    known = _counters(code)
    total = 0
    open_loops: list[_Loop] = []
    done: list[_Loop] = []
    for line in code.splitlines():
        found = _BUNDLE.match(line)
        if found is None:
            test = _TEST.search(line)
            if test and open_loops:
                open_loops[-1].trips = _trips(test, known)
            continue
        total += 1
        # An empty bundle, such as the delay slots of a branch, is printed without its depth.
        depth = len(open_loops) if found["text"].startswith("}") else len(found["depth"])
        while len(open_loops) > depth or (found["mark"] == "LB" and len(open_loops) >= depth > 0):
            _close(open_loops, done)
        while len(open_loops) < depth:
            open_loops.append(_Loop(len(open_loops) + 1))
        if open_loops:
            open_loops[-1].bundles += 1
            test = _TEST.search(found["text"])
            if test:
                open_loops[-1].trips = _trips(test, known)
    while open_loops:
        _close(open_loops, done)
    return total, done


def _close(open_loops: list[_Loop], done: list[_Loop]) -> None:
    loop = open_loops.pop()
    done.append(loop)
    if open_loops:
        open_loops[-1].bundles += loop.bundles * (loop.trips or 1)


def _counters(code: str) -> tuple[dict[str, tuple[str, int]], dict[str, str]]:
    """Registers that are another plus a constant, and those that are copies of another."""
    added: dict[str, tuple[str, int]] = {}
    for each in _ADD.finditer(code):
        to, of, step = each["to"] or each["to2"], each["of"] or each["of2"], each["step"] or each["step2"]
        added[to] = (of, int(step))
    return added, {each["to"]: each["of"] for each in _MOVE.finditer(code)}


def _trips(test: re.Match[str], known: tuple[dict[str, tuple[str, int]], dict[str, str]]) -> int | None:
    """Trips of a loop that is left when its counter reaches a constant: the counter must grow by one; it starts at zero."""
    added, _ = known
    step = added.get(test["counter"])
    if step is None or step[1] != 1:
        return None
    return int(test["limit"]) + (1 if test["how"] == "gt" else 0)


def _use(path: Path | None) -> tuple[int, int, dict[str, float]]:
    """(spill stores, fill loads, share of issue slots used by unit) over the whole code of a part."""
    if path is None:
        return 0, 0, {}
    lines = path.read_text("utf-8", errors="replace").splitlines()
    at = next((index for index, line in enumerate(lines) if "MXU" in line), None)
    if at is None:
        return 0, 0, {}
    names = [each.strip() for each in lines[at].split(",")]
    capacity = [int(each) for each in lines[at + 1].split()]
    rows = [line.split() for line in lines[at + 2 :]]
    table = [[int(each) for each in row] for row in rows if len(row) == len(names) and all(x.isdigit() for x in row)]
    used = dict(zip(names, map(sum, zip(*table, strict=True)), strict=True)) if table else dict.fromkeys(names, 0)
    slots = {name: each * max(len(table), 1) for name, each in zip(names, capacity, strict=True)}
    units = {name: round(used[name] / slots[name], 4) for name in _UNITS if name in used and slots[name]}
    return used.get("VSTORE:SPILL", 0), used.get("VLOAD:FILL", 0), units


def _critical(path: Path | None) -> int | None:
    if path is None:
        return None
    lengths = [int(each) for each in _LENGTH.findall(path.read_text("utf-8", errors="replace"))]
    return max(lengths, default=None)
