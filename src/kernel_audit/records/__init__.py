"""Frozen records, canonical JSON and digests: the bottom of the house. No JAX, no NumPy."""

from kernel_audit.records.canonical import Record, decode, digest_bytes, digest_file, digest_of, encode
from kernel_audit.records.devices import DeviceDescription, device_of, known_devices
from kernel_audit.records.observations import OUTCOMES, Cell, Control, Difference, Finding, RefusalCheck
from kernel_audit.records.plan import CellPlan, Fixture, LeftOut, Plan, ProgramPlan
from kernel_audit.records.programs import CaptureRecord, Kernel
from kernel_audit.records.verdicts import (
    AWAIT,
    BASELINE,
    DECISIONS,
    KEEP,
    LEVELS,
    REVISE,
    Criterion,
    Decision,
    Environment,
    Regime,
)

__all__ = [
    "AWAIT",
    "BASELINE",
    "DECISIONS",
    "KEEP",
    "LEVELS",
    "OUTCOMES",
    "REVISE",
    "CaptureRecord",
    "Cell",
    "CellPlan",
    "Control",
    "Criterion",
    "Decision",
    "DeviceDescription",
    "Difference",
    "Environment",
    "Finding",
    "Fixture",
    "Kernel",
    "LeftOut",
    "Plan",
    "ProgramPlan",
    "Record",
    "RefusalCheck",
    "Regime",
    "decode",
    "device_of",
    "digest_bytes",
    "digest_file",
    "digest_of",
    "encode",
    "known_devices",
]
