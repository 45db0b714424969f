"""Job of the profile worker: the step under checkpoint policies, each twin beside the step without any."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.profile.counting import Counts, counted
from kernel_audit.profile.placed_step import Asked, PlacedStep, placed_step
from kernel_audit.program.checkpoint_policies import NONE, Policy, interceptable, policy_of, under
from kernel_audit.program.compat import jax_version
from kernel_audit.program.raised import without_folders
from kernel_audit.records import PolicyReport, PolicyTwin

BOUND = 1e-6  # normwise, relative, float32: that of the step against its host reference
NOTHING_COMPARED = "nothing was compared: the step without a policy did not run"


def policy_twins(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    side: str,
    devices: int,
    dims: dict[str, int],
    policies: list[str],
) -> dict[str, Any]:
    """A PolicyReport; "none" comes first, whether or not it was asked for."""
    wanted = [policy_of(each) for each in dict.fromkeys([NONE, *policies])]
    declared = msgspec.convert(audit, Audit)
    with interceptable():
        steps.begin("import")
        step = placed_step(declared, [Path(each) for each in roots], Asked(side, devices, dims))
        steps.finish("import", {"side": step.side})
        twins: list[PolicyTwin] = []
        plain: tuple[Counts, list[np.ndarray]] | None = None
        for policy in wanted:
            steps.begin(policy.text)
            twin, counts, results = _twin(step, policy, plain)
            if policy.kind == NONE and results is not None:
                plain = counts, results
            twins.append(twin)
            steps.finish(policy.text, {"accepted": twin.accepted})
    report = PolicyReport(
        step=step.name,
        side=step.side,
        platform=jax.default_backend(),
        devices=devices,
        dims=step.dims,
        versions={"jax": ".".join(str(each) for each in jax_version())},
        twins=twins,
    )
    return msgspec.to_builtins(report)


def _twin(
    step: PlacedStep, policy: Policy, plain: tuple[Counts, list[np.ndarray]] | None
) -> tuple[PolicyTwin, Counts, list[np.ndarray] | None]:
    """One twin; `plain` is the step without a policy, None for that one itself."""
    with under(policy) as checkpoints:
        traced = jax.jit(step.with_local(step.local)).trace(*step.specs())
        counts = counted(traced.jaxpr)
        made = checkpoints()
        about: dict[str, Any] = {
            "policy": policy.text,
            "flops": round(counts.flops),
            "recomputed_flops": round(counts.flops - plain[0].flops) if plain else 0,
            "host_transfer_bytes": round(counts.transfer_bytes),
            "checkpoints": made,
            "names": sorted(counts.names),
            "lost_names": _lost(policy, plain[0], counts) if plain else [],
            "bound": _bound(step),
        }
        try:
            compiled = traced.lower().compile()
        except Exception as error:
            reason = without_folders(f"{type(error).__name__}: {error}").splitlines()[0][:300]
            return PolicyTwin(accepted=False, reason=reason, **about), counts, None
    memory = compiled.memory_analysis()
    about["temporary_bytes"] = int(memory.temp_size_in_bytes)
    about["argument_bytes"] = int(memory.argument_size_in_bytes)
    try:
        operands = [jax.device_put(each, lay) for each, lay in zip(step.host, step.shardings, strict=True)]
        results = [np.asarray(each) for each in jax.tree.leaves(jax.block_until_ready(compiled(*operands)))]
    except Exception as error:
        reason = without_folders(f"{type(error).__name__}: {error}").splitlines()[0][:300]
        return PolicyTwin(accepted=True, reason=f"not run: {reason}", **about), counts, None
    if plain is None and policy.kind != NONE:
        return PolicyTwin(accepted=True, reason=NOTHING_COMPARED, **about), counts, results
    errors = {f"result {index}": _error(each, plain[1][index]) for index, each in enumerate(results)} if plain else {}
    within = all(each is not None and each <= about["bound"] for each in errors.values())
    note = _note(policy, plain[0] if plain else counts, made)
    return PolicyTwin(accepted=True, reason=note, errors=errors, within=within, **about), counts, results


def _note(policy: Policy, plain: Counts, made: int) -> str:
    """What makes a policy do nothing."""
    if policy.kind == NONE:
        return ""
    if not made:
        return "nothing in the step is differentiated by a function of JAX that could be put under a policy"
    missing = sorted(set(policy.names) - plain.names)
    return f"the step names nothing {', '.join(missing)}" if missing else ""


def _lost(policy: Policy, plain: Counts, counts: Counts) -> list[str]:
    """Kernels that run again although the policy keeps what their results are named: the value that the gradient needs
    is not the one that bears the name, as where a rule of its own keeps the kernel's result and the caller names a copy
    of it.
    """
    found = []
    for kernel, runs in sorted(counts.kernels.items()):
        kept = sorted(plain.named.get(kernel, set()) & set(policy.names))
        if kept and runs > plain.kernels[kernel]:
            found.append(
                f"kernel {kernel} runs {runs} times instead of {plain.kernels[kernel]}, though its result is named "
                f"{', '.join(kept)}: the residual of its gradient rule does not bear the name"
            )
    return found


def _bound(step: PlacedStep) -> float:
    coarsest = max(
        (float(jax.numpy.finfo(each.dtype).eps) for each in step.host if each.dtype.kind in "fV"), default=0.0
    )
    return max(BOUND, coarsest)


def _error(left: np.ndarray, right: np.ndarray) -> float | None:
    """|left - right| / |right| over the whole array; 0 where both are 0, None where it is not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = left.astype(np.float64).ravel(), right.astype(np.float64).ravel()
        size = float(np.linalg.norm(b))
        found = float(np.linalg.norm(a - b))
    if not np.isfinite(found) or not np.isfinite(size):
        return None
    return found / size if size else found
