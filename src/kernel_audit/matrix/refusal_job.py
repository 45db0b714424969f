"""Job of the subject worker that tries what the contract says is rejected, and the candidate's own door to a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import msgspec

from kernel_audit.contract import Audit, parse_array
from kernel_audit.matrix.loading import as_keywords
from kernel_audit.matrix.subject_job import Subject, guarded_step, traced_for
from kernel_audit.program import described
from kernel_audit.program.opened_door import Claim, changeable_answers, traced_for_target


def refusals(steps: Any, *, audit: dict[str, Any], roots: list[str]) -> None:
    """Tries every promised refusal, on the true backend; then the candidate's own door to a target."""
    target, device_kind = traced_for(msgspec.convert(audit, Audit))
    with changeable_answers(target, device_kind) as claim:
        subject = Subject(steps, audit, audit["candidate"], roots)
        for refusal in subject.audit.refusals:
            with guarded_step(steps, refusal.name, subject) as told:
                told.update(_try(subject, refusal.operands, as_keywords(subject.audit.fixed, refusal.keywords)))
        if subject.audit.door is not None:
            _try_door(steps, subject, claim)


def _try_door(steps: Any, subject: Subject, claim: Claim) -> None:
    """The candidate's own door to a target, here where there is none; then as if there were one."""
    assert subject.audit.door is not None
    keywords = as_keywords(subject.audit.fixed, subject.audit.door.keywords)
    with guarded_step(steps, "door", subject) as told:
        told.update(_try(subject, {}, keywords))
    with guarded_step(steps, "door-opened", subject) as told:
        operands, dims = _operands(subject, {}), subject.audit.declared_dims
        program = traced_for_target(lambda: subject.captured(operands, keywords, dims), claim)
        told["authored"] = [kernel.authored_interpret for kernel in program.kernels]
        told["live"] = len(program.live_kernels())
    if subject.audit.door.placed:
        with guarded_step(steps, "door-unplaced", subject) as told, claim(devices=True):
            told.update(_call(subject, keywords))
    if subject.audit.door.runs_closed:
        with guarded_step(steps, "door-closed", subject) as told:
            told.update(_call(subject, as_keywords(subject.audit.fixed)))


def _call(subject: Subject, keywords: dict[str, Any]) -> dict[str, Any]:
    """The candidate called as its users call it, on zeros of the smallest shape that the audit states, which lie here."""
    dims = min([subject.audit.declared_dims, *subject.audit.shapes], key=lambda each: math.prod(each.values()))
    binding = subject.audit.dtype_bindings()[0]
    operands = [jnp.zeros(each.shape(dims), binding.get(each.dtype, each.dtype)) for each in subject.audit.operands]
    function, left = subject.made(keywords, dims)
    return _said(lambda: jax.block_until_ready(function(*operands, **left)))


def _operands(subject: Subject, changed: dict[str, str]) -> tuple[jax.ShapeDtypeStruct, ...]:
    binding = subject.audit.dtype_bindings()[0]
    made = []
    for each in subject.audit.operands:
        if each.name in changed:
            dtype, shape = parse_array(changed[each.name], where=each.name)
        else:
            dtype, shape = binding.get(each.dtype, each.dtype), each.shape(subject.audit.declared_dims)
        made.append(jax.ShapeDtypeStruct(shape, dtype))
    return tuple(made)


def _try(subject: Subject, changed: dict[str, str], keywords: dict[str, Any]) -> dict[str, Any]:
    """What the candidate says to these operands, before anything is launched."""
    with described(subject.device_kind):
        function, left = subject.made(keywords, subject.audit.declared_dims)
        return _said(lambda: jax.make_jaxpr(lambda *given: function(*given, **left))(*_operands(subject, changed)))


def _said(call: Callable[[], Any]) -> dict[str, Any]:
    try:
        call()
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"raised": type(error).__name__, "kinds": kinds, "message": str(error)[:500]}
    return {"raised": ""}
