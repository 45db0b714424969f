"""Who refused a program while it was traced: the function's own guard, its own mistake, or Pallas."""

from __future__ import annotations

import dis
import traceback
from types import FrameType

from kernel_audit.program import CandidateRaised
from kernel_audit.program.raised import is_the_candidates

_RAISE = dis.opmap["RAISE_VARARGS"]  # what `raise` and `assert` compile to
_PALLAS = ("jax._src.pallas", "jax.experimental.pallas")


def stage_of(error: CandidateRaised) -> str:
    """ "guard" where the function's own code has raised on purpose, "lowering" where Pallas refused what it was given, else
    "candidate": a mistake of its own, also one that another library noticed.

    What counts are the frames below the last one of the function's own: kernel bodies are traced below Pallas, too. Frames of
    JAX must be there (`jax_traceback_filtering` off).
    """
    cause = error.__cause__
    frames = list(traceback.walk_tb(cause.__traceback__)) if cause is not None else []
    own = [index for index, (frame, _) in enumerate(frames) if _is_own(frame)]
    below = frames[own[-1] + 1 :] if own else frames
    if any(_is_pallas(frame) for frame, _ in below):
        return "lowering"
    return "guard" if own and not below and _raises(cause) else "candidate"


def _is_own(frame: FrameType) -> bool:
    return is_the_candidates(frame.f_code.co_filename, str(frame.f_globals.get("__name__", "")))


def _is_pallas(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == each or module.startswith(each + ".") for each in _PALLAS)


def _raises(error: BaseException | None) -> bool:
    """Whether the instruction that the exception comes from is a `raise`."""
    last = error.__traceback__ if error is not None else None
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE
