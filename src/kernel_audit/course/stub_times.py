"""The made-up times of the stub device (`stub_device`): known beforehand, so that a benchmark's conduct shows in them."""

from __future__ import annotations

LOWER_S = {"candidate": 0.25, "baseline": 0.5}
COMPILE_S = {"candidate": 2.0, "baseline": 4.0}
DISPATCH_S = 0.0005
DEVICE_KIND = "TPU stub"


def duration_s(side: str, index: int) -> float:
    """Seconds that the device works on the call `index` of a side: no two near calls alike, unordered, some much longer."""
    slow = 0.064 if index % 7 == 3 else 0.0
    return (0.008 if side == "candidate" else 0.016) + 0.001 * (index * 11 % 29) + slow


def sample_ms(side: str, index: int) -> float:
    """Milliseconds from a call to its result, when nothing else is queued."""
    return (DISPATCH_S + duration_s(side, index)) * 1e3


def compile_s(side: str) -> tuple[float, float]:
    """Seconds of compilation, without and with lowering."""
    return COMPILE_S[side], LOWER_S[side] + COMPILE_S[side]
