"""The promises of `target_benchmark`, judged by what it did on a stub. Nothing here is a measurement."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from kernel_audit.course.promises import Check
from kernel_audit.course.stub_times import DEVICE_KIND, compile_s, sample_ms
from kernel_audit.course.told import Told, raised_text, refusal_seen_in, seen_in

WARM_UPS = 5
SIDES = ("candidate", "baseline")
SIDE_KEYS = ("compile_seconds", "samples_ms", "median_ms", "p90_ms")
KEYS = ("actual_backend", "device_kind", "boundary")

_REFUSALS = {
    "here": ("refuses this CPU with RuntimeError, before it compiles or times", "RuntimeError"),
    "other backend": ("refuses another backend with RuntimeError, before it compiles or times", "RuntimeError"),
    "operands elsewhere": ("refuses operands that do not lie on a TPU with RuntimeError", "RuntimeError"),
    "second operand elsewhere": ("refuses when one operand does not lie on a TPU with RuntimeError", "RuntimeError"),
    "no repeats": ("refuses 0 repeats with ValueError, before it compiles or times", "ValueError"),
    "four repeats": ("refuses 4 repeats with ValueError, before it compiles or times", "ValueError"),
}


def benchmark_checks(stage: int, told: Mapping[str, Told]) -> Iterator[Check]:
    """A check for each promise; `told` are the steps of the two jobs, by name."""
    for step, (promise, kind) in _REFUSALS.items():
        yield Check(stage, f"target_benchmark {promise}", _not_refused(told.get(step), kind))
    yield Check(stage, "target_benchmark accepts 5 repeats", _accepts(told.get("five repeats"), 5))
    default = told.get("default")
    unmet = _accepts(default, 20)
    yield Check(stage, "target_benchmark takes 20 samples a side by default", unmet)
    if unmet or default is None:
        return
    record = default["result"]
    yield Check(stage, f"target_benchmark gives {', '.join(SIDE_KEYS)} a side", _sides(record))
    yield Check(stage, "target_benchmark says the actual backend, the device kind and the boundary", _about(record))
    if _sides(record):
        return
    for promise, find in (
        ("compiles both functions, apart from every sample", _compilation),
        (f"warms up {WARM_UPS} times, and each sample is one call, waited for, in milliseconds", _samples),
        ("gives the median and the ninetieth percentile of its samples", _summaries),
    ):
        seen = "; ".join(f"{side}: {text}" for side in SIDES if (text := find(side, record[side], default)))
        yield Check(stage, f"target_benchmark {promise}", seen)


def _not_refused(told: Told | None, kind: str) -> str:
    def judged(told: Told) -> str:
        done = [*told.get("called", []), *told.get("compiled", []), *told.get("calls", {})]
        if kind not in told["kinds"]:
            return f"{raised_text(told)}, expected {kind}"
        return f"{kind}, but only after it had compiled or called" if done else ""

    return refusal_seen_in(told, judged)


def _accepts(told: Told | None, count: int) -> str:
    def judged(told: Told) -> str:
        found = {side: _length(told["result"], side) for side in SIDES}
        wrong = [f"{side}: {each}" for side, each in found.items() if each != count]
        return f"expected {count} samples, got {', '.join(wrong)}" if wrong else ""

    return seen_in(told, judged)


def _length(record: Any, side: str) -> Any:
    part = record.get(side) if isinstance(record, dict) else None
    samples = part.get("samples_ms") if isinstance(part, dict) else None
    return len(samples) if isinstance(samples, list) else "no samples_ms"


def _sides(record: Any) -> str:
    missing = [f"{side}.{key}" for side in SIDES for key in SIDE_KEYS if key not in record[side]]
    if missing:
        return f"missing {', '.join(missing)}"
    numbers = {f"{side}.{key}": record[side][key] for side in SIDES for key in SIDE_KEYS if key != "samples_ms"}
    numbers |= {f"{side}.samples_ms[{i}]": v for side in SIDES for i, v in enumerate(record[side]["samples_ms"])}
    wrong = [f"{name} is {value!r}" for name, value in numbers.items() if not isinstance(value, float)]
    return f"{wrong[0]}, expected a number" if wrong else ""


def _about(record: Any) -> str:
    missing = [each for each in KEYS if each not in record]
    if missing:
        return f"missing {', '.join(missing)}"
    for key, expected in (("actual_backend", "tpu"), ("device_kind", DEVICE_KIND)):
        if record[key] != expected:
            return f"{key}: expected {expected!r}, got {record[key]!r}"
    stated = isinstance(record["boundary"], str) and record["boundary"].strip()
    return "" if stated else f"boundary: expected words, got {record['boundary']!r}"


def _compilation(side: str, part: Told, told: Told) -> str:
    if side in told["uncompiled"]:
        return "was called without being compiled"
    if side not in told["compiled"]:
        return "was never compiled"
    shortest, longest = compile_s(side)
    found = part["compile_seconds"]
    return "" if shortest - 1e-6 <= found <= longest + 1e-6 else f"compile_seconds {found:g}, expected {longest:g}"


def _samples(side: str, part: Told, told: Told) -> str:
    expected = [sample_ms(side, WARM_UPS + index) for index in range(len(part["samples_ms"]))]
    wrong = [
        i
        for i, (a, b) in enumerate(zip(part["samples_ms"], expected, strict=True))
        if not math.isclose(a, b, rel_tol=1e-6)
    ]
    if wrong:
        first = wrong[0]
        warm = told["calls"].get(side, 0) - len(expected)
        return (
            f"sample {first} expected {expected[first]:.4g} ms, got {part['samples_ms'][first]:.4g} ms "
            f"({warm} calls besides the samples)"
        )
    return ""


def _summaries(side: str, part: Told, told: Told) -> str:
    ordered = sorted(part["samples_ms"])
    median = statistics.median(ordered)
    if not math.isclose(part["median_ms"], median, rel_tol=1e-6):
        return f"median_ms expected {median:.4g}, got {part['median_ms']:.4g}"
    # Between the ranks that the usual definitions of a percentile choose from; never the maximum.
    rank = math.ceil(0.9 * len(ordered))
    low, high = ordered[rank - 1], ordered[rank]
    if not low * (1 - 1e-6) <= part["p90_ms"] <= high * (1 + 1e-6):
        return f"p90_ms expected {low:.4g} to {high:.4g}, got {part['p90_ms']:.4g}"
    return ""
