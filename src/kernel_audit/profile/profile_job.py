"""Job of the profile worker: the complete step compiled, timed, traced, read and checked. It imports the step and one side.

The candidate is imported only where it is the side: a baseline's profile is made by a process that never saw it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.matrix.loading import IMPORT
from kernel_audit.profile.assembling import causes_of, mapping_of, operations_of, opportunities, regions_of
from kernel_audit.profile.attribution import Attribution
from kernel_audit.profile.passes import Runner, overhead_pass, traced_pass, warm_pass
from kernel_audit.profile.placed_step import Asked, CompiledStep, PlacedStep, compiled_step, placed_step
from kernel_audit.profile.planes import read_trace
from kernel_audit.profile.redaction import Redactor
from kernel_audit.profile.sweep import sweep
from kernel_audit.profile.twins import ablations, staged_check
from kernel_audit.program.checkpoint_policies import NONE, frozen_policy
from kernel_audit.program.compat import jax_version
from kernel_audit.records import ProfileRecord, TracedPass, digest_bytes, known_devices

TRACE, TRACE_JSON, TEXT = "trace.xplane.pb", "trace.json.gz", "step.hlo.txt"
PROFILE = "profile"
WARM_PER_TRACED = 5


def profile_step(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    side: str,
    devices: int,
    dims: dict[str, int],
    traced_steps: int,
    private_words: list[str],
    checks: bool = True,
) -> None:
    """See `_profile`; under the checkpoint policy that the workload states."""
    declared = msgspec.convert(audit, Audit)
    asked = Asked(side, devices, dims)
    with frozen_policy(declared.workload.remat if declared.workload else NONE):
        _profile(steps, declared, [Path(each) for each in roots], asked, traced_steps, private_words, checks)


def _profile(
    steps: Any,
    declared: Audit,
    roots: list[Path],
    asked: Asked,
    traced_steps: int,
    private_words: list[str],
    checks: bool,
) -> None:
    """The last step of the job, "profile", has the record as its value and the trace's files as arrays of bytes.

    `private_words` name the machine and its user: they are taken out of the files here, before anything is hashed. `checks`:
    with the cross-checks, which need more executables.
    """
    scratch = Path.cwd()
    words = [*private_words, str(scratch), *(str(each) for each in roots)]
    steps.begin(IMPORT)
    step = placed_step(declared, roots, asked)
    steps.finish(IMPORT, {"side": step.side})
    steps.begin("compile")
    compiled = compiled_step(step)
    runner = Runner(step, compiled)
    steps.finish("compile", msgspec.to_builtins(compiled.cold))
    steps.begin("warm")
    warm = warm_pass(runner, WARM_PER_TRACED * traced_steps)
    steps.finish("warm", {"compile_events": warm.compile_events})
    steps.begin("overhead")
    overhead = overhead_pass(runner, scratch)
    steps.finish("overhead", {"ratio": overhead.ratio})
    steps.begin("trace")
    binary, text, events = traced_pass(runner, traced_steps, scratch / "rank-0")
    redactor = Redactor(words)
    binary.write_bytes(redactor.xplane(binary.read_bytes()))
    files = {
        TRACE: binary.read_bytes(),
        TRACE_JSON: redactor.json_gz(text.read_bytes()),
        TEXT: redactor.text(compiled.text).encode(),
    }
    steps.finish("trace", {"compile_events": events})
    program_digest = digest_bytes(files[TEXT])
    staged, note, removed = None, "not asked for", []
    if checks:
        steps.begin("checks")
        staged, note = staged_check(step, compiled, runner, traced_steps)
        removed = ablations(step, compiled, runner, traced_steps)
        steps.finish("checks", {"staged": note or "cut"})
    steps.begin(PROFILE)
    record = ProfileRecord(
        **_about(declared, step, runner),
        program_digest=program_digest,
        **_read(binary, events, step, compiled, declared.worth.margin),
        cold=compiled.cold,
        warm=warm,
        overhead=overhead,
        staged=staged,
        staged_note=note,
        ablations=removed,
    )
    steps.finish(
        PROFILE, msgspec.to_builtins(record), {name: np.frombuffer(data, np.uint8) for name, data in files.items()}
    )


def _about(audit: Audit, step: PlacedStep, runner: Runner) -> dict[str, Any]:
    device = step.mesh.devices.flat[0]
    platform = "gpu" if device.platform in ("cuda", "rocm") else device.platform
    logical = platform == "cpu"
    return {
        "step": step.name,
        "side": step.side,
        "target": None if logical else declared_target(audit, platform, device.device_kind),
        "platform": platform,
        "device_kind": device.device_kind,
        "logical": logical,
        "devices": step.mesh.size,
        "processes": jax.process_count(),
        "dims": step.dims,
        "dtypes": {name: str(each.dtype) for name, each in zip(step.names, step.host, strict=True)},
        "placement": runner.placement,
        "state": sorted(step.state),
        "versions": {"jax": ".".join(str(each) for each in jax_version()), "jaxlib": jax.lib.__version__},
        "candidate_region": step.region,
        "margin": audit.worth.margin,
    }


def declared_target(audit: Audit, platform: str, device_kind: str) -> str | None:
    """The target of the audit that a device is, by what JAX calls it; None where it is none of them."""
    names = audit.targets if audit.targets is not None else list(known_devices())
    known = known_devices()
    for name in names:
        if name in known and known[name].kind == platform and known[name].device_kind == device_kind:
            return name
    return None


def _read(binary: Path, events: int, step: PlacedStep, compiled: CompiledStep, margin: float) -> dict[str, Any]:
    """What the trace shows. It is read from the file that is kept."""
    trace = read_trace(binary)
    attribution = Attribution(compiled.text)
    swept = sweep(trace, attribution)
    operations = operations_of(trace, attribution)
    regions = regions_of(swept)
    staged = sum(each.nbytes for name, each in zip(step.names, step.host, strict=True) if name not in step.state)
    return {
        "traced": TracedPass(
            wall_ns=[each.wall_ns for each in swept],
            events=len(trace.operations),
            reader=trace.reader,
            verified=trace.verified,
            compile_events=events + trace.compile_events,
            unknown=[each.name for each in operations if not attribution.knows(each.name) and not each.opcode],
        ),
        "regions": regions,
        "operations": operations,
        "mapping": mapping_of(operations),
        "causes": causes_of(regions, operations, staged),
        "opportunity": opportunities(regions, margin, step.region),
    }
