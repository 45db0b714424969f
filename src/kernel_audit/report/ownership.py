"""Who owns which block of a result, as text and as SVG; the last logical row and column are marked."""

from __future__ import annotations

from itertools import pairwise
from xml.sax.saxutils import escape

from kernel_audit.records import OwnerMap

GAP = ".."
_CELL_WIDTH, _CELL_HEIGHT, _LEFT, _TOP = 56, 26, 84, 62


def ownership_lines(owners: OwnerMap) -> list[str]:
    """The drawing as lines: a number is the program that writes the block, `-` stands for nobody, `?` for not known."""
    columns = [_label(number, owners.last_column) for number in owners.columns]
    rows = [_label(number, owners.last_row) for number in owners.rows]
    cells = [[_owner(each) for each in row] for row in owners.owners]
    width = max(len(text) for text in [*columns, *[each for row in cells for each in row], GAP]) + 2
    side = max(len(text) for text in [*rows, GAP])
    lines = [" " * side + "".join(text.rjust(width) for text in _with_gaps(columns, owners.columns))]
    for index, (label, row) in enumerate(zip(rows, cells, strict=True)):
        if index and owners.rows[index] != owners.rows[index - 1] + 1:
            lines.append(GAP.rjust(side))
        lines.append(label.rjust(side) + "".join(text.rjust(width) for text in _with_gaps(row, owners.columns)))
    return [line.rstrip() for line in [*lines, _legend(owners)]]


def _legend(owners: OwnerMap) -> str:
    """What the marks mean."""
    shape = ",".join(str(each) for each in owners.logical_shape)
    last = owners.block[-2] if len(owners.block) > 1 else 1
    return (
        f"* holds the last of [{shape}]: {owners.rows_in_last} of {last} rows, "
        f"{owners.columns_in_last} of {owners.block[-1]} columns are logical"
    )


def _label(number: int, last: int) -> str:
    return f"{number}*" if number == last else f"{number} "


def _owner(owner: int | None) -> str:
    return "- " if owner is None else "? " if owner < 0 else f"{owner} "


def _with_gaps(texts: list[str], numbers: list[int]) -> list[str]:
    found = list(texts)
    for index, (before, after) in reversed(list(enumerate(pairwise(numbers)))):
        if after != before + 1:
            found.insert(index + 1, GAP + " ")
    return found


def ownership_svg(owners: OwnerMap, title: str) -> str:
    """The same as a drawing of its own: no script, no reference to anything outside."""
    wide = _LEFT + _CELL_WIDTH * len(owners.columns) + 24
    high = _TOP + _CELL_HEIGHT * len(owners.rows) + 44
    parts = [_text(12, 22, title, size=14), _text(12, 42, _places(owners), size=11)]
    for column, number in enumerate(owners.columns):
        x = _LEFT + _CELL_WIDTH * column + _CELL_WIDTH // 2
        parts.append(_text(x, _TOP - 6, _label(number, owners.last_column).strip(), anchor="middle"))
    for row, number in enumerate(owners.rows):
        y = _TOP + _CELL_HEIGHT * row
        parts.append(_text(_LEFT - 8, y + 17, _label(number, owners.last_row).strip(), anchor="end"))
        for column, owner in enumerate(owners.owners[row]):
            x = _LEFT + _CELL_WIDTH * column
            last = number == owners.last_row or owners.columns[column] == owners.last_column
            parts += _cell(x, y, owner, last)
    parts.append(_text(12, high - 14, _legend(owners), size=11))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">'
    return "\n".join([head, f"<title>{escape(title)}</title>", *parts, "</svg>\n"])


def _places(owners: OwnerMap) -> str:
    """What a cell is, and what is not drawn."""
    drawn = len(owners.rows) < owners.blocks[-2] or len(owners.columns) < owners.blocks[-1]
    blocks = " x ".join(str(each) for each in owners.blocks)
    return f"a cell is a block {owners.block} of {owners.shape}: {blocks}" + (
        ", not all of them drawn" if drawn else ""
    )


def _cell(x: int, y: int, owner: int | None, last: bool) -> list[str]:
    fill = "#f4c7c3" if owner is None else "#ffe9a8" if last else "#dce9f7"
    box = (
        f'<rect x="{x}" y="{y}" width="{_CELL_WIDTH - 2}" height="{_CELL_HEIGHT - 2}" fill="{fill}" stroke="#5a6b7b"/>'
    )
    return [box, _text(x + _CELL_WIDTH // 2 - 1, y + 16, _owner(owner).strip(), anchor="middle", size=11)]


def _text(x: int, y: int, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x}" y="{y}" font-family="sans-serif" font-size="{size}" text-anchor="{anchor}" fill="#1c2733">'
        f"{escape(text)}</text>"
    )
