"""What is decided and drawn of evidence is the same before a bundle is written and after it is read."""

from dataclasses import replace

import sample_evidence
from sample_evidence import replaced

from kernel_audit.decision import decide
from kernel_audit.evidence import as_read
from kernel_audit.report import full_text

SAMPLE = sample_evidence.failing()


def test_records_are_the_same_and_tables_in_order() -> None:
    compiled = replaced(SAMPLE.evidence.compiled[0], compilers={"libtpu": "0.0.37", "jax": "0.9.2"})
    evidence = replace(SAMPLE.evidence, compiled=[compiled])
    again = as_read(evidence)
    assert again == evidence  # tables are compared whatever their order
    assert list(again.compiled[0].compilers) == ["jax", "libtpu"] != list(compiled.compilers)


def test_reading_again_changes_nothing_more() -> None:
    once = as_read(SAMPLE.evidence)
    assert full_text(once, decide(once)) == full_text(as_read(once), decide(as_read(once)))
