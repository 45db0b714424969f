"""What several kernels refuse, stated once: for the built-in audits, and for audits of others that put them to the test."""

from __future__ import annotations

from kernel_audit.contract.model import Refusal
from kernel_audit.contract.words import refuse

MATRIX = "f32[8,128]"


def refused_operands() -> list[Refusal]:
    """What the kernels of 2x + y refuse of their operands."""
    return [
        refuse("mixed-dtypes", x=MATRIX, y="bf16[8,128]", raises=ValueError, names=["bfloat16"]),
        refuse("mixed-dtypes-reversed", x="bf16[8,128]", y=MATRIX, raises=ValueError, names=["bfloat16"]),
        refuse("integers", x="i32[8,128]", y="i32[8,128]", raises=ValueError, names=["int32"]),
        refuse("half-precision", x="f16[8,128]", y="f16[8,128]", raises=ValueError, names=["float16"]),
        refuse("one-row-broadcast", x=MATRIX, y="f32[1,128]", raises=ValueError, names=["(1, 128)"]),
        refuse("one-column-broadcast", x="f32[8,1]", y=MATRIX, raises=ValueError, names=["(8, 1)"]),
        refuse("transposed", x=MATRIX, y="f32[128,8]", raises=ValueError, names=["(128, 8)"]),
        refuse("vectors", x="f32[128]", y="f32[128]", raises=ValueError, names=["(128,)"]),
        refuse("three-dimensions", x="f32[1,8,128]", y="f32[1,8,128]", raises=ValueError, names=["(1, 8, 128)"]),
        refuse("vector-beside-matrix", x=MATRIX, y="f32[128]", raises=ValueError, names=["(128,)"]),
        refuse("no-rows", x="f32[0,128]", y="f32[0,128]", raises=ValueError, names=["(0, 128)"]),
        refuse("no-columns", x="f32[8,0]", y="f32[8,0]", raises=ValueError, names=["(8, 0)"]),
    ]


def _refused_block(name: str, block: list[object], shown: str, **operands: str) -> Refusal:
    return refuse(f"block-{name}", block=block, raises=ValueError, names=[shown], **operands)


def refused_blocks(**operands: str) -> list[Refusal]:
    """What every kernel refuses of its blocks."""
    return [
        _refused_block("zero", [0, 128], "0", **operands),
        _refused_block("negative", [-8, 128], "-8", **operands),
        _refused_block("of-one", [8], "8", **operands),
        _refused_block("of-three", [8, 128, 1], "(8, 128, 1)", **operands),
        _refused_block("fraction", [8.0, 128], "8.0", **operands),
    ]


def refused_part_tiles(**operands: str) -> list[Refusal]:
    """What a kernel refuses of its blocks whose tiles are those of a TPU, (8, 128)."""
    return [
        _refused_block("of-a-part-tile", [4, 128], "4", **operands),
        _refused_block("of-part-lanes", [8, 64], "64", **operands),
    ]


def refused_of_triton(**operands: str) -> list[Refusal]:
    """What a kernel refuses of its blocks whose sizes are powers of two."""
    return [
        _refused_block("of-no-power-of-two", [16, 96], "96", **operands),
        _refused_block("too-large", [2048, 1024], "2048", **operands),
    ]


def refused_by_the_pipeline() -> list[Refusal]:
    """What the pipelined 2x + y refuses: operands, blocks, slots and modes."""
    return [
        *refused_operands(),
        *refused_blocks(x=MATRIX, y=MATRIX),
        *refused_part_tiles(x=MATRIX, y=MATRIX),
        refuse("one-buffer", x=MATRIX, y=MATRIX, buffers=1, raises=ValueError, names=["1"]),
        refuse("four-buffers", x=MATRIX, y=MATRIX, buffers=4, raises=ValueError, names=["4"]),
        refuse("unknown-mode", x=MATRIX, y=MATRIX, mode="fast", raises=ValueError, names=["fast"]),
    ]
