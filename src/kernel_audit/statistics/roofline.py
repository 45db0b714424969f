"""The roofline of a device: the most operations a second that its measured ceilings leave to a program.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009, pages 65 to 76: attainable = min(bandwidth * intensity, peak). Here both ceilings are
measured ones, and the bytes are the fewest that any program has to move, not those that were moved.
"""

from __future__ import annotations


def intensity(flops: float, least_bytes: int) -> float:
    """Operations for each byte of operands and results, each once. ValueError where either is not above 0."""
    if not flops > 0 or not least_bytes > 0:
        raise ValueError(f"operations and bytes must be above 0, got {flops!r} and {least_bytes!r}")
    return flops / least_bytes


def attainable_per_s(per_byte: float, copy_per_s: float, product_per_s: float) -> float:
    """min(copy * intensity, product): operations a second, of operations per byte, bytes and operations a second."""
    return min(copy_per_s * per_byte, product_per_s)


def balance(copy_per_s: float, product_per_s: float) -> float:
    """Operations per byte where the slope meets the flat roof: below it the copy is the nearer ceiling."""
    return product_per_s / copy_per_s
