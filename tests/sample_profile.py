"""Sample profiles for tests: consistent in themselves, on logical devices or on a planted target."""

from __future__ import annotations

import random
from typing import Any

from kernel_audit.profile.assembling import mapping_of, opportunities
from kernel_audit.records import (
    Ablation,
    ColdTimes,
    OperationTime,
    Overhead,
    ProfileRecord,
    RegionTime,
    StagedCheck,
    StagedPart,
    TracedPass,
    TraceFile,
    WarmPass,
    digest_bytes,
)
from kernel_audit.statistics import difference_interval, median, share_interval

STEPS = 20
TRACES = {"rank-0/step.hlo.txt": b"HloModule jit_step\n", "rank-0/trace.xplane.pb": b"\x0a\x00"}
SHARES = {"local-arithmetic": 0.3, "input-staging": 0.4, "communication": 0.2, "dispatch": 0.1}


def profile(shares: dict[str, float] = SHARES, *, margin: float = 0.1, **changes: Any) -> ProfileRecord:
    """A profile whose regions have about these shares of each step, which add up to 1; `changes` are fields of the record."""
    rng = random.Random(0)
    walls = [1e6 * rng.uniform(0.98, 1.02) for _ in range(STEPS)]
    regions = [_region(name, share, walls) for name, share in shares.items()]
    operations = [
        OperationTime(name="dot.1", opcode="dot", region="local-arithmetic", by="scope", events=160, time_ns=9e6),
        OperationTime(name="psum.1", opcode="all-reduce", region="communication", by="opcode", events=160, time_ns=3e6),
    ]
    samples = [round(each) for each in walls]
    faster = [each - 1000 - index for index, each in enumerate(samples)]
    ablated = difference_interval(samples, faster)
    fields: dict[str, Any] = {
        "step": "train.py:step",
        "side": "fused",
        "target": None,
        "platform": "cpu",
        "device_kind": "cpu",
        "logical": True,
        "devices": 8,
        "processes": 1,
        "dims": {"m": 9, "n": 129},
        "dtypes": {"x": "float32"},
        "placement": {"x": "[9, 129] as 8 of [9, 129], PartitionSpec()"},
        "state": [],
        "versions": {"jax": "0.9.2"},
        "program_digest": digest_bytes(TRACES["rank-0/step.hlo.txt"]),
        "cold": ColdTimes(trace_s=0.1, lower_s=0.2, compile_s=0.3),
        "warm": WarmPass(
            wall_ns=samples, dispatched_ns=samples, synchronised=STEPS, compile_events=0, boundary="the whole step"
        ),
        "overhead": Overhead(untraced_ns=samples, traced_ns=samples, ratio=1.0),
        "traced": TracedPass(
            wall_ns=walls,
            events=320,
            reader="cpu",
            verified=True,
            compile_events=0,
            files=[
                TraceFile(name=name, digest=digest_bytes(data), size_bytes=len(data)) for name, data in TRACES.items()
            ],
        ),
        "regions": regions,
        "operations": operations,
        "mapping": mapping_of(operations),
        "staged": StagedCheck(
            parts=[StagedPart(name="0-local-arithmetic", region="local-arithmetic", wall_ns=samples)],
            fused_ns=samples,
            ratio=median(samples) / median(samples),
        ),
        "ablations": [
            Ablation(
                removed="communication",
                step_ns=samples,
                twin_ns=faster,
                difference_ns=ablated.value,
                low_ns=ablated.low,
                high_ns=ablated.high,
                note="1 collectives",
            )
        ],
        "margin": margin,
        "opportunity": opportunities(regions, margin),
    }
    return ProfileRecord(**{**fields, **changes})


def on_target(
    shares: dict[str, float], *, target: str = "tpu:v5e", margin: float = 0.1, **changes: Any
) -> ProfileRecord:
    """A planted profile of a target: no such device was ever profiled here."""
    about = {"target": target, "platform": "tpu", "device_kind": "TPU v5 lite", "logical": False}
    return profile(shares, margin=margin, **{**about, **changes})


def _region(name: str, share: float, walls: list[float]) -> RegionTime:
    times = [share * each for each in walls]
    found = share_interval(times, walls)
    return RegionTime(name=name, time_ns=times, share=found.value, share_low=found.low, share_high=found.high)
