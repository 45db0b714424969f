"""The built-in audits, cut to what a reader waits for: fewer shapes, every kind of check."""

from __future__ import annotations

from typing import Any

import msgspec

from kernel_audit.contract import Audit
from kernel_audit.kernels.audits import BUILT_IN, by_type_alone

# Sizes (m, n), the declared one first: tails on both axes; then square and rectangular grids of whole blocks at both block
# sizes, and single rows.
_TILES = [(9, 129), (32, 512), (16, 384), (24, 128), (1, 257), (1, 1)]
_SIZES = {
    "blocked-axpy": [(6, 9), (8, 16), (4, 24), (16, 8), (1, 13), (1, 1)],
    "bias-relu": _TILES,
    "axpy": _TILES,
}


def course_audit(name: str) -> Audit:
    """The built-in audit `name` on a small matrix. A refusal's message need not name the value: the course asks for the
    exception only, and the checker says where a message could say more."""
    audit = BUILT_IN[name]
    sizes = [{"m": m, "n": n} for m, n in _SIZES[name]]
    return msgspec.structs.replace(
        audit,
        dimensions=[msgspec.structs.replace(each, size=sizes[0][each.name]) for each in audit.dimensions],
        shapes=sizes[1:],
        refusals=by_type_alone(audit.refusals),
        alone=True,
        door=msgspec.structs.replace(audit.door, placed=True, runs_closed=True) if audit.door is not None else None,
        sequences=[],
    )


def neighbours(function: str) -> list[dict[str, Any]]:
    """Calls that the contract accepts, each close to one that it refuses: name, operand texts and keywords."""
    blocked = function == "blocked_axpy"
    found = [
        _call("two float32 operands, next to mixed dtypes", function),
        _call("two bfloat16 operands, next to float16 and int32", function, dtype="bf16"),
        _call("one row, next to none", function, (1, 128)),
        _call("one column, next to none", function, (8, 1)),
        _call("one element", function, (1, 1)),
        _call("a square matrix", function, (128, 128)),
        _call("more rows than columns", function, (128, 8)),
        _call("the default block written out", function, block=[2, 4] if blocked else [8, 128]),
    ]
    if blocked:
        found += [
            _call(f"block {rows}x{columns}", function, block=[rows, columns]) for rows, columns in [(1, 1), (3, 5)]
        ]
        found.append(_call("a block of one TPU tile", function, block=[8, 128]))
        return found
    found += [
        _call(f"block {rows}x{columns}", function, block=[rows, columns]) for rows, columns in [(16, 128), (8, 256)]
    ]
    if function == "fused_bias_relu":
        found.append(_call("as many rows as columns, each length the bias's", function, (8, 8)))
        return [*found, _call('mode "interpret" written out', function, mode="interpret")]
    found += [_call(f"{count} buffers", function, buffers=count) for count in (2, 3)]
    found += [_call(f"no_pipelining={flag}", function, no_pipelining=flag) for flag in (False, True)]
    return [*found, _call('mode "simulate" written out', function, mode="simulate")]


def pipelines() -> list[dict[str, Any]]:
    """Calls of pipelined_axpy whose copies are read; more than one block along both axes."""
    return [
        {
            **_call("", "pipelined_axpy", (17, 257), buffers=buffers, no_pipelining=flag),
            "buffers": buffers,
            "flag": flag,
        }
        for buffers in (2, 3)
        for flag in (False, True)
    ]


def direct_calls(function: str, seed: int) -> list[dict[str, Any]]:
    """Calls on values drawn late: one shape twice, then the first values again, then another shape and dtype."""
    shape, other = ([5, 9], [9, 5]) if function == "blocked_axpy" else ([9, 129], [17, 130])
    plan = [("first values", shape, "float32", seed), ("other values, same shape", shape, "float32", seed + 1)]
    plan += [
        ("the first values again", shape, "float32", seed),
        ("another shape, bfloat16", other, "bfloat16", seed + 2),
    ]
    return [
        {"name": name, "shape": size, "dtype": dtype, "seed": each, "keywords": {}} for name, size, dtype, each in plan
    ]


def _call(
    name: str, function: str, shape: tuple[int, int] = (8, 128), dtype: str = "f32", **keywords: Any
) -> dict[str, Any]:
    matrix = f"{dtype}[{shape[0]},{shape[1]}]"
    second = f"{dtype}[{shape[1]}]" if function == "fused_bias_relu" else matrix
    return {"name": name, "operands": [matrix, second], "keywords": keywords}
