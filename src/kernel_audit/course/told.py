"""What a worker told of a step, as text of what is wrong with it; empty where nothing is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Told = Mapping[str, Any]
ENDED = "the worker ended before it came to this"


def raised_text(told: Told) -> str:
    """An exception of the model's code: "raised TypeError: text (my_model.py:12)"."""
    place = f" ({told['at']})" if told.get("at") else ""
    return f"raised {told['raised']}: {told['message'][:300]}{place}"


def seen_in(told: Told | None, judge: Callable[[Told], str], ended: str = ENDED) -> str:
    """Of a step that is to raise nothing: that the worker did not come to it, what it raised, or what `judge` says."""
    if told is None:
        return ended
    return raised_text(told) if "raised" in told else judge(told)


def refusal_seen_in(told: Told | None, judge: Callable[[Told], str], ended: str = ENDED) -> str:
    """Of a step that is to raise: that the worker did not come to it, that nothing was raised, or what `judge` says."""
    if told is None:
        return ended
    return judge(told) if "raised" in told else "nothing was raised"
