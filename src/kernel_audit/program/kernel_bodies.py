"""The lowered body of each kernel, without locations: by its digest a kernel is found again in a compiled program.

Private names of JAX that this needs stand here, as those of `compat` do there.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import tpu as tpu_dialect
from jax._src.lib.mlir import ir

from kernel_audit.program import compat
from kernel_audit.program.describe import described, platform_of
from kernel_audit.program.executable import advice_left_out
from kernel_audit.program.kernels import kernel_equations

# The custom call that holds a kernel, by platform of the export.
CALLS = {"tpu": ("tpu_custom_call",), "cuda": ("__gpu$xla.gpu.triton", "mosaic_gpu", "mosaic_gpu_v2")}
_CALL = re.compile(r'stablehlo\.custom_call @([\w$.]+)|custom_call_target="([^"]+)"')
_BODY = re.compile(r'\\?(?:22|")body\\?(?:22|"):\s*\\?(?:22|")([A-Za-z0-9+/=]+)')
_IR = re.compile(r'\bir = "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class CallBody:
    """A custom call that holds a kernel: where in the text it stands, and the digest of its body ("" where it has none)."""

    target: str
    position: int
    digest: str


def bodies_in(text: str, platform: str) -> list[CallBody]:
    """The kernel calls in StableHLO or compiled HLO text. Searched as one text: metadata may hold newlines."""
    found = []
    calls = list(_CALL.finditer(text))
    for index, call in enumerate(calls):
        target = call.group(1) or call.group(2)
        if target not in CALLS[platform]:
            continue
        end = calls[index + 1].start() if index + 1 < len(calls) else len(text)
        found.append(CallBody(target, call.start(), _digest_after(text, call.end(), end, platform)))
    return found


def _digest_after(text: str, start: int, end: int, platform: str) -> str:
    if platform == "tpu":
        body = _BODY.search(text, start, end)
        return mosaic_digest(base64.b64decode(body.group(1))) if body else ""
    body = _IR.search(text, start, end)
    return hashlib.sha256(body.group(1).encode()).hexdigest() if body else ""


def mosaic_call_body(attributes: str) -> str:
    """Digest of the Mosaic kernel in a custom call's attributes; "" where there is none."""
    return _digest_after(attributes, 0, len(attributes), "tpu")


def triton_call_body(attributes: str) -> str:
    """Digest of the Triton kernel in a custom call's attributes; "" where there is none."""
    return _digest_after(attributes, 0, len(attributes), "cuda")


def triton_shared_bytes(attributes: str, capability: str) -> int | None:
    """Shared memory, in bytes, that the Triton kernel in a custom call's attributes asks for when launched on a GPU of compute
    `capability` ("9.0"); None where the plugin's Triton cannot be asked. XLA's own dump of it takes far longer than compiling.
    """
    body = _IR.search(attributes)
    settings = {name: re.search(rf"\bnum_{name} = (\d+)", attributes) for name in ("warps", "stages")}
    try:
        from jax._src.lib import triton

        asked = {f"num_{name}": int(found.group(1)) for name, found in settings.items() if found}
        return int(triton.compile("cuda", _unescaped(body.group(1)), capability, num_ctas=1, **asked).smem_bytes)
    except Exception:  # no kernel there, another Triton, or none
        return None


def _unescaped(text: str) -> bytes:
    """The bytes of an MLIR string: a backslash stands before a quote, a backslash, n, t, or two hexadecimal digits."""
    plain = {'"': b'"', "\\": b"\\", "n": b"\n", "t": b"\t"}

    def byte(found: re.Match[str]) -> str:
        code = found.group(1)
        return (plain[code] if code in plain else bytes([int(code, 16)])).decode("latin-1")

    return re.sub(r'\\(["\\nt]|[0-9A-Fa-f]{2})', byte, text).encode("latin-1")


def mosaic_digest(body: bytes) -> str:
    """Digest of a Mosaic body's text without locations. A body that this JAX cannot parse is taken byte for byte."""
    text = _mosaic_text(body, locations=False)
    return hashlib.sha256(text.encode() if text is not None else body).hexdigest()


def _mosaic_text(body: bytes, *, locations: bool) -> str | None:
    with jax_mlir.make_ir_context() as context:
        tpu_dialect.register_dialect(context)
        context.allow_unregistered_dialects = True
        try:
            return ir.Module.parse(body).operation.get_asm(enable_debug_info=locations, pretty_debug_info=locations)
        except Exception:
            return None


def lowered_bodies(jaxpr: Any, device_kind: str) -> dict[str, str]:
    """path -> digest of the lowered body, for each kernel of a traced program; those that do not lower are left out."""
    platform = platform_of(device_kind)
    found: dict[str, str] = {}
    for path, equation, _ in kernel_equations(jaxpr, ""):
        try:
            text = _lowered_alone(equation, device_kind, platform)
        except Exception:  # its refusal is reported where the whole program is lowered
            continue
        bodies = bodies_in(text, platform)
        if bodies and bodies[0].digest:
            found[path] = bodies[0].digest
    return found


def _lowered_alone(equation: Any, device_kind: str, platform: str) -> str:
    parameters = dict(equation.params, interpret=False)
    avals = [jax.ShapeDtypeStruct(each.aval.shape, each.aval.dtype) for each in equation.invars]

    def alone(*operands: Any) -> Any:
        return equation.primitive.bind(*operands, **parameters)

    with described(device_kind), compat.folders_left_out(), advice_left_out():
        return jax.jit(alone).trace(*avals).lower(lowering_platforms=(platform,)).as_text()


def operation_source(text: str, operation: str, result: str) -> str:
    """ "file.py:line" of the first `operation` with a type of `result` in the kernels of StableHLO `text`; "" if unknown."""
    for line in _located_lines(text):
        if operation in line and (not result or result in line):
            files = re.findall(r'"?([\w.-]+\.py)"?:(\d+)', line)
            if files:
                return f"{files[0][0]}:{files[0][1]}"
    return ""


def _located_lines(text: str) -> Iterator[str]:
    for call in _CALL.finditer(text):
        body = _BODY.search(text, call.end())
        if body is None:
            continue
        yield from (_mosaic_text(base64.b64decode(body.group(1)), locations=True) or "").splitlines()
