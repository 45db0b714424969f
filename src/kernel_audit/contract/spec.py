"""Operands as text: "x: f32[m=257, n=513]", "y: like(x)", "lengths: i32[4]"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kernel_audit.contract.dtypes import JUDGED, SHORT, full_name
from kernel_audit.contract.model import Operand
from kernel_audit.errors import AuditFileError, near

_OPERAND = re.compile(r"^\s*(?P<name>[A-Za-z_]\w*)\s*:\s*(?P<rest>.+?)\s*$")
_ARRAY = re.compile(r"^(?P<dtype>[A-Za-z_]\w*)\s*\[(?P<dims>[^\[\]]*)\]$")
_LIKE = re.compile(r"^like\(\s*[\"']?(?P<name>[A-Za-z_]\w*)[\"']?\s*\)$")
_DIM = re.compile(r"^(?:(?P<name>[A-Za-z_]\w*)\s*(?:=\s*(?P<size>-?\d+))?|(?P<fixed>-?\d+))$")
LARGEST = 2**31 - 1
FORM = '"NAME: DTYPE[DIM=SIZE, ...]", for example "x: f32[m=257, n=513]", or "NAME: like(OTHER)"'


def parse_operands(
    texts: list[str], dtype_variables: Mapping[str, list[str]], *, where: str
) -> tuple[list[Operand], dict[str, int]]:
    """Operands in order, and the declared size of each named dimension.

    Raises AuditFileError for a malformed text, a duplicate name, an unknown or unsupported dtype, a size below one, a
    dimension with two sizes, or one that is never given a size.
    """
    operands: list[Operand] = []
    sizes: dict[str, int] = {}
    for index, text in enumerate(texts):
        place = f"{where}[{index}]"
        if not isinstance(text, str) or not (match := _OPERAND.match(text)):
            raise _malformed(place, text)
        name = match["name"]
        if any(each.name == name for each in operands):
            raise AuditFileError(
                "two operands of one name",
                stage="audit",
                where=place,
                expected="distinct names",
                got=repr(name),
            )
        operands.append(_parse_one(name, match["rest"], operands, dtype_variables, sizes, place))
    for operand in operands:
        for dim in operand.dims:
            if isinstance(dim, str) and dim not in sizes:
                raise AuditFileError(
                    "a dimension without a size",
                    stage="audit",
                    where=f"{where}: operand {operand.name!r}",
                    expected=f'a size where it first stands, such as "{dim}=128"',
                    got=f"{dim!r} with no size anywhere",
                    settled=sizes,
                )
    return operands, sizes


def parse_array(text: str, *, where: str) -> tuple[str, tuple[int, ...]]:
    """(dtype, shape) of a concrete array such as "bf16[8,128]". Raises AuditFileError."""
    match = _ARRAY.match(text.strip())
    dims = [each.strip() for each in match["dims"].split(",") if each.strip()] if match else []
    if not match or not all(each.isdigit() for each in dims):
        raise AuditFileError(
            "not a concrete array",
            stage="audit",
            where=where,
            expected='such as "bf16[8,128]"',
            got=repr(text),
        )
    dtype = full_name(match["dtype"])
    if dtype is None:
        raise _unknown_dtype(match["dtype"], where, {})
    return dtype, tuple(int(each) for each in dims)


def _parse_one(
    name: str,
    rest: str,
    known: list[Operand],
    variables: Mapping[str, list[str]],
    sizes: dict[str, int],
    place: str,
) -> Operand:
    if like := _LIKE.match(rest):
        other = next((each for each in known if each.name == like["name"]), None)
        if other is None:
            raise AuditFileError(
                "an operand like another that does not come before it",
                stage="audit",
                where=place,
                expected="one of " + (", ".join(each.name for each in known) or "none yet"),
                got=near(like["name"], [each.name for each in known]),
            )
        return Operand(name=name, dtype=other.dtype, dims=other.dims)
    match = _ARRAY.match(rest)
    if not match:
        raise _malformed(place, f"{name}: {rest}")
    dtype = match["dtype"] if match["dtype"] in variables else _judged(match["dtype"], place, variables)
    texts = [each.strip() for each in match["dims"].split(",")] if match["dims"].strip() else []
    return Operand(name=name, dtype=dtype, dims=[_parse_dim(each, sizes, place) for each in texts])


def _parse_dim(text: str, sizes: dict[str, int], place: str) -> str | int:
    match = _DIM.match(text)
    if not match:
        raise _malformed(place, text)
    size = match["size"] or match["fixed"]
    if size is not None and int(size) < 1:
        raise AuditFileError(
            "a dimension below one", stage="audit", where=place, expected="a size of 1 or more", got=text
        )
    if size is not None and int(size) > LARGEST:
        raise AuditFileError(
            "a dimension too large", stage="audit", where=place, expected=f"a size of at most {LARGEST}", got=text
        )
    if match["fixed"]:
        return int(match["fixed"])
    name = match["name"]
    if size is not None and sizes.setdefault(name, int(size)) != int(size):
        raise AuditFileError(
            "a dimension with two sizes",
            stage="audit",
            where=place,
            expected=f"{name}={sizes[name]}, as stated before",
            got=f"{name}={size}",
            settled=sizes,
        )
    return name


def _judged(text: str, place: str, variables: Mapping[str, list[str]]) -> str:
    name = full_name(text)
    if name is None:
        raise _unknown_dtype(text, place, variables)
    return require_judged(name, place)


def require_judged(name: str, place: str) -> str:
    """`name` back, or AuditFileError when its results cannot be judged yet."""
    if name not in JUDGED:
        raise AuditFileError(
            "a dtype that cannot be judged yet",
            stage="audit",
            where=place,
            expected=", ".join(JUDGED),
            got=repr(name),
        )
    return name


def _unknown_dtype(text: str, place: str, variables: Mapping[str, list[str]]) -> AuditFileError:
    return AuditFileError(
        "an unknown dtype",
        stage="audit",
        where=place,
        expected="one of " + ", ".join([*variables, *SHORT]) + ", or NumPy's name",
        got=near(text, [*variables, *SHORT, *SHORT.values()]),
    )


def _malformed(place: str, text: object) -> AuditFileError:
    return AuditFileError("an operand that cannot be read", stage="audit", where=place, expected=FORM, got=repr(text))
