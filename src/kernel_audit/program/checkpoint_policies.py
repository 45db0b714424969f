"""Checkpoint policies put on a step from outside: what is differentiated in it, scan bodies included, is traced under
`jax.checkpoint`.

While open, `jax.grad`, `jax.value_and_grad`, `jax.vjp` and `jax.lax.scan` are replaced by functions that do the same
where no policy holds. A step's modules must be loaded while they are: `from jax import grad` keeps what it found.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import jax

from kernel_audit.errors import AuditFileError

NONE, ALL = "none", "all"
_POLICY = re.compile(r"none|all|(save|offload):[A-Za-z_][\w.-]*(,[A-Za-z_][\w.-]*)*")
_HOST = "pinned_host"


@dataclass(frozen=True)
class Policy:
    """`kind` is "none" (nothing is checkpointed), "all" (nothing is kept, all is computed again), "save" or "offload"
    (only what `checkpoint_name` calls by one of `names` is kept, on the device or in the host's memory).
    """

    text: str
    kind: str
    names: tuple[str, ...] = ()

    def checkpointed(self, function: Callable[..., Any], *, in_scan: bool) -> Callable[..., Any]:
        """`function` under this policy. In a scan nothing needs to keep the compiler from merging the two passes."""
        policies = jax.checkpoint_policies
        if self.kind == "save":
            chosen: Any = policies.save_only_these_names(*self.names)
        elif self.kind == "offload":
            chosen = policies.save_and_offload_only_these_names(
                names_which_can_be_saved=[],
                names_which_can_be_offloaded=list(self.names),
                offload_src="device",
                offload_dst=_HOST,
            )
        else:
            chosen = None
        return jax.checkpoint(function, policy=chosen, prevent_cse=not in_scan)


def policy_of(text: str) -> Policy:
    """Raises AuditFileError for a text that is no policy."""
    if not _POLICY.fullmatch(text):
        raise AuditFileError(
            "an unknown checkpoint policy",
            stage="profile",
            where=f"--remat {text}",
            expected="none, all, save:NAMES or offload:NAMES, names joined by commas",
            got=text,
        )
    kind, _, names = text.partition(":")
    return Policy(text, kind, tuple(names.split(",")) if names else ())


@dataclass
class _State:
    policy: Policy | None = None
    differentiating: int = 0
    counting: list[int] = field(default_factory=list)  # scans met, one entry a function that is being looked at
    made: int = 0


_state = _State()


@contextlib.contextmanager
def interceptable() -> Iterator[None]:
    """While open, JAX's differentiation and scan can be put under a policy."""
    originals = {name: getattr(jax, name) for name in ("grad", "value_and_grad", "vjp")}
    scan = jax.lax.scan
    jax.grad = _differentiating(originals["grad"])
    jax.value_and_grad = _differentiating(originals["value_and_grad"])
    jax.vjp = _vjp(originals["vjp"])
    jax.lax.scan = _scan(scan)
    try:
        yield
    finally:
        for name, value in originals.items():
            setattr(jax, name, value)
        jax.lax.scan = scan


@contextlib.contextmanager
def under(policy: Policy) -> Iterator[Callable[[], int]]:
    """While open, what is traced is under `policy`; gives how many functions were checkpointed. Traces of other
    policies that JAX keeps are dropped first.
    """
    jax.clear_caches()
    before = _state.policy, _state.made
    _state.policy, _state.made = (policy if policy.kind != NONE else None), 0
    try:
        yield lambda: _state.made
    finally:
        _state.policy, _state.made = before
        jax.clear_caches()


@contextlib.contextmanager
def frozen_policy(text: str) -> Iterator[None]:
    """A workload's own policy (`remat=`) around everything that loads, traces and compiles its step. Raises AuditFileError."""
    policy = policy_of(text)
    if policy.kind == NONE:
        yield
        return
    with interceptable(), under(policy):
        yield


def _differentiating(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def replaced(function: Callable[..., Any], *places: Any, **options: Any) -> Callable[..., Any]:
        @wraps(function)
        def differentiated(*arguments: Any, **keywords: Any) -> Any:
            return original(_inside(function, arguments, keywords), *places, **options)(*arguments, **keywords)

        return differentiated

    return replaced


def _vjp(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def replaced(function: Callable[..., Any], *primals: Any, **options: Any) -> Any:
        return original(_inside(function, primals, {}), *primals, **options)

    return replaced


def _scan(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def replaced(body: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        for index in range(len(_state.counting)):
            _state.counting[index] += 1
        if _state.policy is not None and _state.differentiating and not _state.counting:
            _state.made += 1
            body = _state.policy.checkpointed(body, in_scan=True)
        return original(body, *arguments, **options)

    return replaced


def _inside(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Callable[..., Any]:
    """`function` under the policy: its scans' bodies, or the whole where it has none."""
    policy = _state.policy
    if policy is None or _state.counting or _state.differentiating:
        return function
    scans = _scans_of(function, arguments, keywords)

    @wraps(function)
    def inside(*given: Any, **more: Any) -> Any:
        _state.differentiating += 1
        try:
            return function(*given, **more)
        finally:
            _state.differentiating -= 1

    if scans:
        return inside
    _state.made += 1
    return policy.checkpointed(inside, in_scan=False)


def _scans_of(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> int:
    """How many scans a function traces. Looked at with the shapes of its arguments; nothing runs."""
    _state.counting.append(0)
    try:
        jax.eval_shape(lambda *given: function(*given, **keywords), *arguments)
    finally:
        scans = _state.counting.pop()
        jax.clear_caches()  # inner jitted functions were traced without the policy
    return scans
