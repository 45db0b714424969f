"""The digest of a jaxpr: the same in every process, folder and line, different for any edit of a kernel.

Variables are numbered in order within each jaxpr, constants stand by value, and left out is what does not define the
program: how kernels run, where they were written, derivative rules that are not part of the trace, and addresses.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import re
import struct
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from kernel_audit.program import compat

_LEFT_OUT = frozenset(
    {
        "interpret",  # how a kernel runs
        "debug",
        "debug_info",
        "name_and_src_info",
        "src_info",
        "source_info",
        "origin",
        "ctx_mesh",  # the surroundings of the trace
        "effects",  # follow from `interpret` and from the primitives
        "fwd_jaxpr_thunk",  # derivative rules: opaque functions that the captured program never calls
        "fwd",
        "bwd",
        "jvp_jaxpr_fun",
        "jvp",
        "lin",
        "rule",
    }
)
# Types whose text says all that there is to say.
_KNOWN_BY_TEXT = frozenset({"DebugEffect", "DynamicGridDim", "FTTuple", "PyTreeDef", "UnspecifiedValue"})
_ADDRESS = re.compile(r" at 0x[0-9a-f]+|0x[0-9a-f]{6,}")


def without_addresses(text: str) -> str:
    """`text` without memory addresses, which differ between processes."""
    return _ADDRESS.sub("", text)


def canonical_digest(value: Any) -> str:
    """ "sha256:<hex>" of the canonical form of jaxprs, equation parameters, arrays and containers of them."""
    writer = CanonicalWriter()
    writer.write(value)
    return writer.digest()


class CanonicalWriter:
    """Feeds the canonical form of values to a hash. `opaque` names the types that only their text could describe."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.opaque: set[str] = set()

    def digest(self) -> str:
        return "sha256:" + self._hash.hexdigest()

    def write(self, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, str, bytes, float, complex, enum.Enum, np.dtype, type)):
            self._scalar(value)
        elif compat.is_jaxpr(value):
            self._jaxpr(value)
        elif isinstance(value, compat.Tracer):  # a constant that was abstract when an inner jaxpr was made
            self._aval(value.aval)
        elif isinstance(value, (jax.Array, np.ndarray, np.generic)):
            self._array(value)
        elif isinstance(value, (Mapping, tuple, list, set, frozenset)):
            self._container(value)
        elif isinstance(value, compat.AbstractValue):
            self._aval(value)
        elif isinstance(value, (jax.sharding.Mesh, jax.sharding.AbstractMesh)):
            self._words("mesh", *[f"{axis}={size}" for axis, size in value.shape.items()], value.axis_types)
        elif isinstance(value, jax.sharding.NamedSharding):
            self._words("named-sharding")
            self.write(value.mesh)
            self._words(*value.spec)
        elif dataclasses.is_dataclass(value):
            self._fields(value)
        elif hasattr(value, "__array__"):  # typed literals of newer versions
            self._array(np.asarray(value))
        elif type(value).__name__ in _KNOWN_BY_TEXT:
            self._words(type(value).__name__, without_addresses(str(value)))
        elif callable(value):  # what a function does is in the jaxpr that it gave
            self._words("function")
        else:
            self.opaque.add(type(value).__name__)
            self._words(type(value).__name__, without_addresses(str(value)))

    def _words(self, *words: Any) -> None:
        self._hash.update(("\x1f".join(str(word) for word in words) + "\x1e").encode())

    def _scalar(self, value: Any) -> None:
        if isinstance(value, enum.Enum):
            self._words(type(value).__name__, value.name)
        elif isinstance(value, float):  # by its bits: the sign of zero and NaN payloads count
            self._words("float", struct.pack(">d", value).hex())
        elif isinstance(value, np.dtype):
            self._words("dtype", value.name)
        elif isinstance(value, type):
            self._words("type", value.__name__)
        else:
            self._words(type(value).__name__, value)

    def _array(self, value: Any) -> None:
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            self._words("key", jax.random.key_impl(value))
            value = jax.random.key_data(value)
        array = np.asarray(value)
        self._words("array", array.dtype.name, array.shape)
        if array.dtype == object:
            for each in array.ravel():
                self.write(each)
        else:
            self._hash.update(np.ascontiguousarray(array).tobytes())

    def _container(self, value: Any) -> None:
        if isinstance(value, Mapping):
            self._words("mapping")
            for key in sorted(value, key=str):
                if key not in _LEFT_OUT:
                    self._words(key)
                    self.write(value[key])
            self._words("end")
        elif isinstance(value, (set, frozenset)):
            self._words("set", *sorted(without_addresses(str(each)) for each in value))
        else:
            self._words(type(value).__name__, len(value))
            for each in value:
                self.write(each)

    def _fields(self, value: Any) -> None:
        self._words(type(value).__name__)
        for field in dataclasses.fields(value):
            if field.name not in _LEFT_OUT:
                self._words(field.name)
                self.write(getattr(value, field.name))

    def _aval(self, aval: Any) -> None:
        self._words(type(aval).__name__, getattr(aval, "memory_space", ""))
        inner = getattr(aval, "inner_aval", None)
        if inner is not None:
            self._aval(inner)
            return
        sharding = getattr(aval, "sharding", None)
        parts = [getattr(aval, name, "") for name in ("shape", "dtype", "weak_type")]
        self._words(*parts, getattr(sharding, "spec", ""))

    def _jaxpr(self, value: Any) -> None:
        # A jaxpr refers to none of the variables around it, so each numbers its own: whether JAX's caches gave two
        # equations one and the same inner jaxpr object or two equal ones makes no difference.
        numbers: dict[Any, int] = {}
        jaxpr = compat.open_jaxpr(value)
        self._words("jaxpr")
        for constant in compat.constants(value):
            self.write(constant)
        self._variables([*jaxpr.constvars, *jaxpr.invars], numbers)
        for equation in jaxpr.eqns:
            self._words("equation", equation.primitive.name)
            self._atoms(equation.invars, numbers)
            self.write(equation.params)
            self._variables(equation.outvars, numbers)
        self._words("results")
        self._atoms(jaxpr.outvars, numbers)

    def _variables(self, variables: Any, numbers: dict[Any, int]) -> None:
        for each in variables:
            self._words("variable", numbers.setdefault(each, len(numbers)))
            self._aval(each.aval)

    def _atoms(self, atoms: Any, numbers: dict[Any, int]) -> None:
        for each in atoms:
            if isinstance(each, compat.Literal):
                self._words("literal")
                self.write(each.val)
                self._aval(each.aval)
            else:
                self._words("variable", numbers.setdefault(each, len(numbers)))
