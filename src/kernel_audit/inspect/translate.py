"""Makes Python of the integers in a kernel's body: the part that steers its copies. See control.py.

Only what a copy needs is written: an equation whose results steer nothing is left out, arrays are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernel_audit.inspect.integers import CALLS
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shift_left": "<<",
    "shift_right_arithmetic": ">>",
    "shift_right_logical": ">>",
}
_MAY_WRAP = frozenset({"add", "sub", "mul", "shift_left"})
_STORES = frozenset({"swap", "addupdate"})
_SAME = frozenset(
    {"copy", "stop_gradient", "squeeze", "reshape", "broadcast_in_dim", "multiple_of", "optimization_barrier"}
)


class Translator:
    """Functions for jaxprs, each made once. `space_of` tells the memory space of a reference."""

    def __init__(self, space_of: Callable[[Any], str]) -> None:
        self._space_of = space_of
        self._functions: dict[int, Any] = {}
        self._acts: dict[int, bool] = {}
        self._kept: list[Any] = []  # a jaxpr must outlive its id
        self._namespace: dict[str, Any] = {}

    def starts_copies(self, jaxpr: Any) -> bool:
        for equation in compat.open_jaxpr(jaxpr).eqns:
            if equation.primitive.name == "dma_start":
                return True
            if any(self.starts_copies(inner) for _, _, inner in inner_jaxprs(equation.params)):
                return True
        return False

    def acts(self, jaxpr: Any) -> bool:
        """Whether it copies, or stores scalars that may steer copies."""
        opened = compat.open_jaxpr(jaxpr)
        if id(opened) not in self._acts:
            self._kept.append(opened)
            self._acts[id(opened)] = any(self._equation_acts(each) for each in opened.eqns)
        return self._acts[id(opened)]

    def _equation_acts(self, equation: Any) -> bool:
        name = equation.primitive.name
        if name == "dma_start":
            return True
        if name in _STORES:
            return self._space_of(equation.invars[0].aval) == "smem"
        return any(self.acts(inner) for _, _, inner in inner_jaxprs(equation.params))

    def function(self, jaxpr: Any) -> Any:
        """f(runtime, *constvars, *invars) -> tuple of results. Raises NotImplementedError for what cannot be steered."""
        opened = compat.open_jaxpr(jaxpr)
        if id(opened) not in self._functions:
            self._kept.append(opened)
            writer = _Writer(self, opened)
            source, names = writer.source()
            exec(compile(source, "<control of a kernel>", "exec"), names)
            made = names["control"]
            made.results = len(opened.outvars)
            self._functions[id(opened)] = made
        return self._functions[id(opened)]


class _Writer:
    """The source of one function."""

    def __init__(self, translator: Translator, jaxpr: Any) -> None:
        self.translator = translator
        self.jaxpr = jaxpr
        self.names: dict[Any, str] = {}
        self.lines: list[str] = []
        self.objects: dict[str, Any] = {}

    def source(self) -> tuple[str, dict[str, Any]]:
        parameters = [self.name(each) for each in (*self.jaxpr.constvars, *self.jaxpr.invars)]
        for equation in self._needed():
            self._equation(equation)
        results = "".join(f"{self.atom(each)}, " for each in self.jaxpr.outvars)
        body = "".join(f"    {line}\n" for line in [*self.lines, f"return ({results})"])
        return f"def control(rt{''.join(', ' + each for each in parameters)}):\n{body}", self.objects

    def _needed(self) -> list[Any]:
        wanted = {each for each in self.jaxpr.outvars if not isinstance(each, compat.Literal) and _is_scalar(each.aval)}
        kept = []
        for equation in reversed(self.jaxpr.eqns):
            if self.translator._equation_acts(equation) or any(each in wanted for each in equation.outvars):
                kept.append(equation)
                atoms = [each for each in equation.invars if not isinstance(each, compat.Literal)]
                wanted |= {each for each in atoms if _is_scalar(each.aval) or _is_reference(each.aval)}
        return kept[::-1]

    def name(self, variable: Any) -> str:
        return self.names.setdefault(variable, f"v{len(self.names)}")

    def atom(self, atom: Any) -> str:
        if isinstance(atom, compat.Literal):
            return _literal(atom.val)
        return self.names.get(atom, "rt.unknown")

    def atoms(self, atoms: Sequence[Any]) -> str:
        return "(" + "".join(f"{self.atom(each)}, " for each in atoms) + ")"

    def object(self, value: Any) -> str:
        name = f"o{len(self.objects)}"
        self.objects[name] = value
        return name

    def inner(self, jaxpr: Any) -> str:
        return self.object(self.translator.function(jaxpr))

    def assign(self, equation: Any, expression: str) -> None:
        targets = "".join(f"{self.name(each)}, " for each in equation.outvars)
        self.lines.append(f"{targets}= {expression}" if targets else expression)

    def _equation(self, equation: Any) -> None:
        name = equation.primitive.name
        special = getattr(self, f"_{name}", None)
        if name in CALLS:
            inner = next(each for _, _, each in inner_jaxprs(equation.params))
            opened = compat.open_jaxpr(inner)
            consts = ["rt.unknown"] * len(opened.constvars)
            given = [*consts, *[self.atom(each) for each in equation.invars]]
            self.assign(
                equation, f"{self.inner(inner)}(rt, {', '.join(given)})" if given else f"{self.inner(inner)}(rt)"
            )
        elif special is not None:
            special(equation)
        elif len(equation.outvars) == 1 and _is_scalar(equation.outvars[0].aval):
            self.lines.append(f"{self.name(equation.outvars[0])} = {self._scalar(equation, name)}")
        elif self.translator._equation_acts(equation):
            raise NotImplementedError(f"copies inside {name}")

    def _scalar(self, equation: Any, name: str) -> str:
        if not all(_is_scalar(each.aval) for each in equation.invars):
            return "rt.unknown"
        values = [self.atom(each) for each in equation.invars]
        dtype = np.dtype(equation.outvars[0].aval.dtype) if hasattr(equation.outvars[0].aval, "dtype") else None
        if name in _INFIX and len(values) == 2:
            text = f"({values[0]} {_INFIX[name]} {values[1]})"
            return _wrapped(text, dtype) if name in _MAY_WRAP else text
        if name == "program_id":
            return f"rt.axes[{equation.params['axis']}]"
        if name == "num_programs":
            return f"rt.sizes[{equation.params['axis']}]"
        if name == "convert_element_type":
            source, target = np.dtype(equation.invars[0].aval.dtype), np.dtype(equation.params["new_dtype"])
            text = f"rt.convert({target.kind!r}, {values[0]})"
            return text if _holds(target, source) else _wrapped(text, target)
        forms = {
            "div": "rt.divide({0}, {1})",
            "rem": "rt.remainder({0}, {1})",
            "max": "rt.extreme(max, {0}, {1})",
            "min": "rt.extreme(min, {0}, {1})",
            "neg": "(-{0})",
            "not": "rt.invert({0})",
            "clamp": "rt.extreme(min, rt.extreme(max, {0}, {1}), {2})",
        }
        if name == "select_n":
            return f"rt.select({', '.join(values)})"
        if name in forms and (dtype is None or dtype.kind in "biu"):
            return forms[name].format(*values)
        return values[0] if name in _SAME and values else "rt.unknown"

    def _get(self, equation: Any) -> None:
        scalar = _is_scalar(equation.outvars[0].aval) and self.translator._space_of(equation.invars[0].aval) == "smem"
        value = f"{self.atom(equation.invars[0])}.load({self.atoms(equation.invars[1:])})" if scalar else "rt.unknown"
        self.lines.append(f"{self.name(equation.outvars[0])} = {value}")

    def _swap(self, equation: Any) -> None:
        reference, value, *index = equation.invars
        if self.translator._space_of(reference.aval) != "smem":
            return
        self.lines.append(f"{self.name(equation.outvars[0])} = {self.atom(reference)}.load({self.atoms(index)})")
        if _is_scalar(value.aval):
            self.lines.append(f"{self.atom(reference)}.store({self.atoms(index)}, {self.atom(value)})")
        else:
            self.lines.append(f"{self.atom(reference)}.forget()")

    def _addupdate(self, equation: Any) -> None:
        if self.translator._space_of(equation.invars[0].aval) == "smem":
            self.lines.append(f"{self.atom(equation.invars[0])}.forget()")

    def _dma_start(self, equation: Any) -> None:
        source, target = compat.dma_ends(equation)
        parts = [f"{self.atom(reference)}, {self._indexers(transforms)}" for reference, transforms in (source, target)]
        self.lines.append(f"rt.copy({', '.join(parts)})")

    def _indexers(self, transforms: Sequence[Any]) -> str:
        written = []
        for each in transforms:
            indices = getattr(each, "indices", None)
            written.append("None" if indices is None else "(" + "".join(f"{self._index(i)}, " for i in indices) + ")")
        return "(" + "".join(f"{each}, " for each in written) + ")"

    def _index(self, index: Any) -> str:
        if hasattr(index, "size") and hasattr(index, "start"):
            return f"({self._plain(index.start)}, {self._plain(index.size)})"
        return self._plain(index)

    def _plain(self, value: Any) -> str:
        if isinstance(value, (compat.Var, compat.Literal)):
            return self.atom(value) if _is_scalar(value.aval) else "rt.unknown"
        return _literal(value)

    def _cond(self, equation: Any) -> None:
        which, *operands = equation.invars
        branches = equation.params["branches"]
        acts = any(self.translator.acts(each) for each in branches)
        functions = "(" + "".join(f"{self.inner(each)}, " for each in branches) + ")"
        given = "".join(f", {self.atom(each)}" for each in operands)
        self.assign(equation, f"rt.branch({self.atom(which)}, {functions}, {acts}{given})")

    def _while(self, equation: Any) -> None:
        parameters, operands = equation.params, equation.invars
        first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
        acts = self.translator.acts(parameters["body_jaxpr"])
        parts = [operands[:first], operands[first : first + second], operands[first + second :]]
        condition, body = self.inner(parameters["cond_jaxpr"]), self.inner(parameters["body_jaxpr"])
        self.assign(equation, f"rt.repeat({condition}, {body}, {acts}, {', '.join(map(self.atoms, parts))})")

    def _scan(self, equation: Any) -> None:
        parameters, operands = equation.params, equation.invars
        consts, carry = compat.scan_counts(equation)
        xs, ys = len(operands) - consts - carry, len(equation.outvars) - carry
        given = f"{self.atoms(operands[:consts])}, {self.atoms(operands[consts : consts + carry])}, {xs}, {ys}"
        body = self.inner(parameters["jaxpr"])
        self.assign(equation, f"rt.scan({body}, {int(parameters['length'])}, {given})")

    def _run_scoped(self, equation: Any) -> None:
        opened = compat.open_jaxpr(equation.params["jaxpr"])
        made = []
        for each in opened.invars:
            dtype = self.object(getattr(each.aval, "dtype", None))
            shape = tuple(getattr(each.aval, "shape", ()))
            made.append(f"rt.allocate({shape!r}, {dtype}, {self.translator._space_of(each.aval)!r})")
        given = ", ".join([*[self.atom(each) for each in equation.invars], *made])
        self.assign(equation, f"{self.inner(equation.params['jaxpr'])}(rt, {given})")


def _wrapped(text: str, dtype: np.dtype | None) -> str:
    """An integer as its dtype holds it: modulo 2^bits."""
    if dtype is None or dtype.kind not in "iu":
        return text
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return f"({text} & {(1 << bits) - 1})"
    return f"((({text} + {1 << bits - 1}) & {(1 << bits) - 1}) - {1 << bits - 1})"


def _holds(target: np.dtype, source: np.dtype) -> bool:
    """Whether every integer of one dtype is one of the other; True where one of them is no integer."""
    if target.kind not in "iu" or source.kind not in "iu":
        return True
    return np.can_cast(source, target)


def _is_reference(aval: Any) -> bool:
    return hasattr(aval, "inner_aval")


def _is_scalar(aval: Any) -> bool:
    return not _is_reference(aval) and getattr(aval, "shape", None) == ()


def _literal(value: Any) -> str:
    if np.ndim(value) != 0:
        return "rt.unknown"
    kind = np.asarray(value).dtype.kind
    if kind == "b":
        return repr(bool(value))
    return repr(int(value)) if kind in "iu" else "rt.unknown"
