"""The bundle: all records of an audit as one write-once folder that anyone can check. No JAX from here down."""

from kernel_audit.evidence.consistency import consistency, record_names
from kernel_audit.evidence.fault import Fault
from kernel_audit.evidence.frozen import Evidence, FrozenAudit, as_read
from kernel_audit.evidence.integrity import verify_integrity
from kernel_audit.evidence.manifest import Manifest, bundle_digest, is_bundle, read_manifest
from kernel_audit.evidence.privacy import machine_names, private_text
from kernel_audit.evidence.reading import read_bundle
from kernel_audit.evidence.receipts import contradictions, read_receipts
from kernel_audit.evidence.schema_files import schema_files
from kernel_audit.evidence.writing import write_bundle

__all__ = [
    "Evidence",
    "Fault",
    "FrozenAudit",
    "Manifest",
    "as_read",
    "bundle_digest",
    "consistency",
    "contradictions",
    "is_bundle",
    "machine_names",
    "private_text",
    "read_bundle",
    "read_manifest",
    "read_receipts",
    "record_names",
    "schema_files",
    "verify_integrity",
    "write_bundle",
]
