"""Opcode, then scope, then neighbours; and the text of a program without what names its author's machine."""

from __future__ import annotations

import pytest
from traces import HLO

from kernel_audit.profile import Attribution, Place, anonymous


@pytest.mark.parametrize(
    ("name", "region", "by"),
    [
        ("pad", "padding-and-cropping", "scope"),
        ("moved", "resharding", "opcode"),  # whatever its label says: the partitioner made it
        ("asked", "communication", "opcode"),  # the author's own, without a scope
        ("loop", "local-arithmetic", "scope"),
        ("inner", "local-arithmetic", "scope"),
        ("dot", "local-arithmetic", "neighbours"),  # its producer is a collective, which it is not
        ("unscoped", "update", "scope"),  # by what the fusion holds
        ("lone", "update", "neighbours"),
        ("nowhere", "unmapped", "unmapped"),
    ],
)
def test_each_instruction_has_its_region(name: str, region: str, by: str) -> None:
    place = Attribution(HLO).place(name)
    assert (place.region, place.by) == (region, by)


def test_a_copy_that_only_the_trace_knows_is_staging() -> None:
    assert Attribution(HLO).place("MemcpyH2D", "host-to-device") == Place("input-staging", "opcode", "host-to-device")


def test_the_collective_of_a_region_stays_there() -> None:
    text = HLO.replace("shard_map/psum", "shard_map/region.resharding/psum")
    assert Attribution(text).place("asked").region == "resharding"


def test_a_collective_marked_as_the_partitioners_is_resharding() -> None:
    text = HLO.replace('shard_map/psum"}', 'shard_map/psum"}, frontend_attributes={is_spmd_generated="true"}')
    assert Attribution(text).place("asked").region == "resharding"


def test_text_that_is_no_program_is_refused() -> None:
    with pytest.raises(ValueError, match="entry"):
        Attribution("nothing")


def test_the_text_loses_its_source_and_keeps_its_scopes() -> None:
    text = anonymous(HLO)
    assert "somebody" not in text and "source_" not in text and "FileNames" not in text
    assert "region.padding-and-cropping" in text and 'backend_config={"a":2,"b":1}' in text
    assert [Attribution(text).place(each) for each in ("pad", "dot")] == [
        Attribution(HLO).place(each) for each in ("pad", "dot")
    ]
