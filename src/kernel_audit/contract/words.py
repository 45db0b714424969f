"""The words of an audit file besides `audit` itself. Each gives a plain record; none imports JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from kernel_audit.contract.functions import reference_to
from kernel_audit.contract.model import (
    Agreement,
    Baseline,
    ControlFunction,
    Door,
    FunctionRef,
    Invariant,
    Probe,
    Refusal,
    Sequence,
    Values,
    Worth,
)
from kernel_audit.contract.tuning import TargetTuning
from kernel_audit.errors import AuditFileError

FAMILIES = (
    "normal",
    "integers",
    "signed-zeros",
    "ties",
    "cancellation",
    "large",
    "overflow",
    "subnormals",
    "non-finite",
    "fresh",
)
DEFAULT_FAMILIES = ("normal", "integers", "signed-zeros", "ties", "cancellation", "fresh")
OBJECTIVES = ("step-time", "examples-per-second", "peak-bytes", "error", "determinism", "p99-time")


class Vary:
    """What sizes a dimension may take: see `multiple` and `between`."""

    def __init__(self, vary: str, values: list[int]) -> None:
        self.vary = vary
        self.values = values


def multiple(of: int) -> Vary:
    """Sizes that are multiples of `of`."""
    if of < 1:
        raise _no_sizes(f"multiple({of})", "multiple(k) with k of 1 or more")
    return Vary("multiple", [of])


def between(least: int, most: int) -> Vary:
    """Sizes from `least` to `most`, both included."""
    if not 1 <= least <= most:
        raise _no_sizes(f"between({least}, {most})", "between(a, b) with 1 <= a <= b")
    return Vary("between", [least, most])


def _no_sizes(got: str, expected: str) -> AuditFileError:
    return AuditFileError("a rule that admits no size", stage="audit", where="vary", expected=expected, got=got)


def exact() -> Agreement:
    """The same value in every element."""
    return Agreement(kind="exact", derivation="stated: every operation is exact or rounded once, so one value is right")


def ulp(most: int, because: str) -> Agreement:
    """Within `most` units in the last place of the result's dtype; `because` says where the number comes from."""
    if not because.strip():
        raise AuditFileError(
            "a tolerance without its derivation",
            stage="audit",
            where=f"agreement=ulp({most})",
            expected='ulp(k, because="where k comes from")',
            got="no reason",
        )
    return Agreement(kind="ulp", ulps=most, derivation=because)


def derived(factor: float = 2.0) -> Agreement:
    """Within `factor` times what half an ulp of noise after each of the baseline's operations does to its result."""
    return Agreement(
        kind="derived",
        factor=factor,
        derivation=f"{factor} x the largest change over samples of the first baseline re-evaluated with half an ulp of "
        "noise after every rounding operation, plus one rounding of the result",
    )


def values(
    *families: str, subnormals: str = "either", nonfinite: str = "unspecified", signed_zeros: bool = False
) -> Values:
    """Value families to draw and what the contract promises for unusual values; no family named means the default ones."""
    return Values(
        families=list(families or DEFAULT_FAMILIES),
        subnormals=subnormals,
        nonfinite=nonfinite,
        signed_zeros=signed_zeros,
    )


def row_permutation(dim: str) -> Invariant:
    """Permuting `dim` in every operand that has it permutes the results, bit for bit."""
    return Invariant(kind="row-permutation", dim=dim)


def on(*targets: str, **choices: list[Any]) -> TargetTuning:
    """Choices of tuning for some targets only, in a list under `tuning=`: `on("tpu", rows=[512, 1024])`.

    A target is a kind, "tpu" or "gpu", or one device, such as "tpu:v5e". Without choices: the keywords as they are.
    """
    return TargetTuning(targets=list(targets), choices=choices)


def refuse(name: str, *, raises: type[BaseException] | str, names: list[str] | None = None, **changes: Any) -> Refusal:
    """An input that must be rejected before launch.

    Operands are changed by name to a concrete array (`y="bf16[8,128]"`); anything else is a keyword of the candidate. The
    message must contain each of `names`.
    """
    operands = {key: value for key, value in changes.items() if isinstance(value, str) and "[" in value}
    keywords = {key: value for key, value in changes.items() if key not in operands}
    kind = raises if isinstance(raises, str) else raises.__name__
    return Refusal(name=name, operands=operands, keywords=keywords, raises=kind, names=names or [])


def door(
    *, raises: type[BaseException] | str, placed: bool = False, runs_closed: bool = False, **keywords: Any
) -> Door:
    """The keywords by which the candidate itself is told to run on a target.

    `placed`: it promises to raise also for operands that do not lie on the target. `runs_closed`: without these keywords it
    runs here as it stands, in an interpreter.
    """
    kind = raises if isinstance(raises, str) else raises.__name__
    return Door(keywords=keywords, raises=kind, placed=placed, runs_closed=runs_closed)


def probe(function: Callable[..., Any] | str, **sweeps: list[Any]) -> Probe:
    """An unguarded builder of the candidate's kernel, for `compile --probe`. It takes the operands, and the tuning as keywords;
    `sweeps` are choices of parameters that only it has."""
    return Probe(function=reference_to(function, where="probe"), sweeps=dict(sweeps))


def baseline(function: Callable[..., Any] | str, *, strong: str, name: str | None = None) -> Baseline:
    """A formulation under the same contract; `strong` says in a line why it is a fair opponent."""
    ref = reference_to(function, where="baselines")
    return Baseline(name=name or ref.name, function=ref, strong=strong)


def built_by(factory: Callable[..., Any] | str) -> FunctionRef:
    """A candidate that must be made first: `factory(**configuration, **mode, **fixed)` gives the function that takes the
    operands. The sizes of dimensions that are among its parameters are given to it, too."""
    return replace(reference_to(factory, where="candidate=built_by(...)"), factory=True)


def control(name: str, function: Callable[..., Any] | str) -> ControlFunction:
    """A wrong variant of the oracle that the comparison must reject."""
    return ControlFunction(name=name, function=reference_to(function, where=f"controls: {name}"))


def sequence(name: str, *, seed: int, shapes: list[dict[str, int]]) -> Sequence:
    """Fixtures drawn one after another from one generator."""
    return Sequence(name=name, seed=seed, shapes=shapes)


def _worth(
    objective: str, margin: float, step: str | None = None, break_even: int | None = None, **not_to_lose: float
) -> Worth:
    return Worth(
        break_even=break_even,
        objective=objective,
        margin=margin,
        step=step,
        not_to_lose={key.replace("_", "-"): value for key, value in not_to_lose.items()},
    )


def step_time(step: str | None, margin: float, *, break_even: int | None = None, **not_to_lose: float) -> Worth:
    """The complete step `step` ("train.py:step") takes less time, by the share `margin`.

    `break_even`: the most steps after which the longer cold compile must have been earned back. Others are margins not to lose:
    `peak_bytes=0.05`, at most a twentieth more.

    None where no step holds the kernel yet: then nothing measured can lead to *keep*.
    """
    return _worth("step-time", margin, step, break_even, **not_to_lose)


def examples_per_second(
    step: str | None, margin: float, *, break_even: int | None = None, **not_to_lose: float
) -> Worth:
    """More examples a second in the complete step, by the share `margin`."""
    return _worth("examples-per-second", margin, step, break_even, **not_to_lose)


def peak_bytes(margin: float, step: str | None = None, **not_to_lose: float) -> Worth:
    """Less memory at the peak of the complete step, by the share `margin`."""
    return _worth("peak-bytes", margin, step, **not_to_lose)


def error(margin: float, step: str | None = None, **not_to_lose: float) -> Worth:
    """A smaller error against float64, by the share `margin`, in kernel and complete step."""
    return _worth("error", margin, step, **not_to_lose)


def p99_time(step: str | None, margin: float, **not_to_lose: float) -> Worth:
    """A smaller 99th percentile of the complete step's time, by the share `margin`."""
    return _worth("p99-time", margin, step, **not_to_lose)
