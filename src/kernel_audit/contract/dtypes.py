"""Names of dtypes: short in audit files, NumPy's in records."""

from __future__ import annotations

SHORT = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "i4": "int4",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "u4": "uint4",
    "pred": "bool",
}
KNOWN = frozenset(SHORT.values())

# What the oracle, the comparison and the value families can judge today. Others are refused by name, never guessed.
JUDGED = (
    "float32",
    "bfloat16",
    "float16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int32",
    "int8",
    "int16",
    "uint8",
    "bool",
)


def full_name(text: str) -> str | None:
    """The full name of a dtype written short or in full, or None when it is neither."""
    name = SHORT.get(text, text)
    return name if name in KNOWN else None


def is_float(name: str) -> bool:
    """Whether a dtype's full name is that of a floating-point dtype."""
    return name.startswith(("float", "bfloat"))
