"""Tracing as if every `shard_map` had been asked to check over which mesh axes its values vary. Private JAX names: one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def check_vma_everywhere() -> Iterator[None]:
    """While open, every `shard_map` is traced with `check_vma=True`, whatever its author said; however he imported it."""
    from jax._src import shard_map as home  # the same place from 0.9.2 to 0.12

    original = home._shard_map

    def checked(function: Any, **keywords: Any) -> Any:
        return original(function, **{**keywords, "check_vma": True})

    home._shard_map = checked  # type: ignore[assignment]
    try:
        yield
    finally:
        home._shard_map = original
