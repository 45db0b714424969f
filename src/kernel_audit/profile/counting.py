"""Operations, kernels and transfers of a traced program, loops by their trips. Derived from shapes; nothing is timed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs

_ONE_EACH = frozenset(
    [
        "add",
        "add_any",
        "sub",
        "mul",
        "div",
        "neg",
        "abs",
        "max",
        "min",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "tanh",
        "logistic",
        "sqrt",
        "rsqrt",
        "pow",
        "integer_pow",
        "square",
        "sin",
        "cos",
        "tan",
        "erf",
        "erf_inv",
        "sign",
        "floor",
        "ceil",
        "round",
        "rem",
        "atan2",
        "cbrt",
    ]
)
_REDUCING = frozenset(
    [
        "reduce_sum",
        "reduce_max",
        "reduce_min",
        "reduce_prod",
        "cumsum",
        "cumprod",
        "cummax",
        "cummin",
        "argmax",
        "argmin",
    ]
)
_VIEWS = frozenset(
    [
        "reshape",
        "transpose",
        "squeeze",
        "expand_dims",
        "broadcast_in_dim",
        "convert_element_type",
        "copy",
        "pvary",
        "slice",
    ]
)


@dataclass
class Counts:
    """`flops` of all devices; `kernels`: how often each kernel runs, by name; `named`: for each kernel the names that
    `checkpoint_name` gives its results; `names`: every such name; `transfer_bytes` between device and host memory."""

    flops: float = 0.0
    kernels: Counter[str] = field(default_factory=Counter)
    named: dict[str, set[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    transfer_bytes: float = 0.0


def counted(jaxpr: Any) -> Counts:
    """Everything that is counted in a traced program (closed or open)."""
    counts = Counts()
    _walk(compat.open_jaxpr(jaxpr), 1.0, counts)
    return counts


def _walk(jaxpr: Any, times: float, counts: Counts) -> None:
    made_by = {variable: equation for equation in jaxpr.eqns for variable in equation.outvars}
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "name":
            counts.names.add(equation.params["name"])
            _name_kernel(equation, made_by, counts)
        if name == "device_put" and _between_memories(equation):
            counts.transfer_bytes += times * sum(_bytes(each.aval) for each in equation.outvars)
        if name in compat.KERNEL_PRIMITIVES:
            counts.kernels[_kernel_name(equation)] += round(times)
        counts.flops += times * _own_flops(equation, name)
        for inner, trips in _inner(equation, name):
            _walk(inner, times * trips, counts)


def _inner(equation: Any, name: str) -> Iterator[tuple[Any, float]]:
    """(jaxpr, how often it runs in one run of the equation)."""
    parameters = equation.params
    found = [compat.open_jaxpr(each) for _, _, each in inner_jaxprs(parameters)]
    if name == "cond":
        # One branch runs: the longest is counted.
        heaviest = max(found, key=lambda each: counted(each).flops, default=None)
        found = [] if heaviest is None else [heaviest]
    trips = 1.0
    if name == "scan":
        trips = parameters["length"]
    elif name == "shard_map":
        trips = parameters["mesh"].size
    elif name in compat.KERNEL_PRIMITIVES and "grid_mapping" in parameters:
        trips = math.prod(each for each in parameters["grid_mapping"].grid if isinstance(each, int))
    for each in found:
        yield each, trips


def _own_flops(equation: Any, name: str) -> float:
    outs = [each.aval for each in equation.outvars]
    if name == "dot_general":
        (left, _), _ = equation.params["dimension_numbers"]
        contracted = math.prod(equation.invars[0].aval.shape[axis] for axis in left)
        return 2.0 * _size(outs[0]) * contracted
    if name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        features = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
        return 2.0 * _size(outs[0]) * math.prod(kernel) / features
    if name in _ONE_EACH:
        return float(sum(_size(each) for each in outs))
    if name in _REDUCING:
        return float(_size(equation.invars[0].aval))
    return 0.0


def _name_kernel(equation: Any, made_by: dict[Any, Any], counts: Counts) -> None:
    """Follows a named value back over views, and into calls, to the kernel that made it."""
    kernel = _maker(equation.invars[0], made_by)
    if kernel is not None:
        counts.named.setdefault(_kernel_name(kernel), set()).add(equation.params["name"])


def _maker(variable: Any, made_by: dict[Any, Any]) -> Any | None:
    while not isinstance(variable, compat.Literal) and variable in made_by:
        equation = made_by[variable]
        name = equation.primitive.name
        if name in compat.KERNEL_PRIMITIVES:
            return equation
        inner = [compat.open_jaxpr(each) for _, _, each in inner_jaxprs(equation.params)]
        if len(inner) == 1 and len(inner[0].outvars) == len(equation.outvars):
            within = {each: one for one in inner[0].eqns for each in one.outvars}
            return _maker(inner[0].outvars[list(equation.outvars).index(variable)], within)
        if name not in _VIEWS or not equation.invars:
            return None
        variable = equation.invars[0]
    return None


def _kernel_name(equation: Any) -> str:
    parameters = equation.params
    stated = parameters.get("name")
    told = str(parameters.get("name_and_src_info", stated or equation.primitive.name))
    return told.partition(" ")[0]


def _between_memories(equation: Any) -> bool:
    """Whether a `device_put` names a memory and not devices: an offload, or its return."""
    told = " ".join(repr(each) for each in equation.params.get("devices", ()))
    return "memory" in told.lower()


def _size(aval: Any) -> int:
    return math.prod(getattr(aval, "shape", ()))


def _bytes(aval: Any) -> int:
    return _size(aval) * aval.dtype.itemsize
