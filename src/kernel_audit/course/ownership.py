"""Which program owns which elements, as text: for one shape with tails on both axes."""

from __future__ import annotations

SHAPE, BLOCK = (5, 9), (2, 4)
WHY_ZEROS = (
    "Padding with zeros is right for 2x + y and for max(x + bias, 0): no element of the result depends on another one, and "
    "the padding is cropped again. It is wrong for a maximum of a row whose elements are all negative, since the padding's "
    "zero wins, and for a mean, since the padding is counted: a reduction needs a neutral value or a mask."
)


def ownership_map(shape: tuple[int, int] = SHAPE, block: tuple[int, int] = BLOCK) -> str:
    """A line a padded row, a cell an element: program (i, j) as `ij`, padding as `..`; the last logical row and column
    are marked. At most ten programs along an axis."""
    rows, columns = (-(-size // extent) for size, extent in zip(shape, block, strict=True))
    lines = [
        f"Ownership of a {shape[0]}x{shape[1]} matrix in blocks of {block[0]}x{block[1]}: grid {rows}x{columns}, "
        f"{rows * block[0]}x{columns * block[1]} after padding, `ij` is owned by program (i, j), `..` is padding.",
        "",
    ]
    last = 5 + _column(shape[1] - 1, block[1])
    lines.append(" " * last + "v  last logical column " + str(shape[1] - 1))
    for row in range(rows * block[0]):
        if row and row % block[0] == 0:
            lines.append("")
        cells = [_cell(row, column, shape, block) for column in range(columns * block[1])]
        groups = [" ".join(cells[at : at + block[1]]) for at in range(0, len(cells), block[1])]
        mark = f"  <  last logical row {row}" if row == shape[0] - 1 else ""
        lines.append(f"{row:4d} " + "   ".join(groups) + mark)
    return "\n".join(lines)


def _column(column: int, width: int) -> int:
    """Characters before an element of a line."""
    return 3 * column + 2 * (column // width)


def _cell(row: int, column: int, shape: tuple[int, int], block: tuple[int, int]) -> str:
    return f"{row // block[0]}{column // block[1]}" if row < shape[0] and column < shape[1] else ".."
