"""No trace says where it was made; what a reader needs is the same as before."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from traces import Event, Line, Plane, operation, step, xspace

from kernel_audit.profile import Redactor, host_names, read_trace
from kernel_audit.profile.redaction import plane_names
from kernel_audit.records.protobuf import texts

HOST, USER, HOME = "box-7731", "quillon", "/srv/homes/quillon"


def space() -> bytes:
    source = Event("compile", 3, 4, [("source", f"{HOME}/work/step.py:3"), ("note", f"made by {USER} on {HOST}")])
    line = Line("python", [step(0, 0, 100), source, operation("dot", 10, 20, _src="external/xla/thunk.cc")])
    plain = Line("tf_XLAEigen/7", [operation("pad", 30, 60)])
    environment = Plane("Task Environment", [Line("", [Event(f"--logdir={HOME}", 0, 1)])])
    return xspace([Plane("/host:CPU", [line, plain]), environment], HOST)


def test_names_and_folders_go_and_the_rest_stays() -> None:
    before = space()
    assert host_names(before) == [HOST] and any(USER in text for text in texts(before))
    after = Redactor([HOST, USER, HOME]).xplane(before)
    assert host_names(after) == [] and plane_names(after) == ["/host:CPU"]
    for word in (HOST, USER, HOME):
        assert word.encode() not in after
    assert "external/xla/thunk.cc" in set(texts(after))


def test_an_absolute_path_goes_without_being_named() -> None:
    assert b"/srv/homes" not in Redactor().xplane(space())


def test_the_reader_sees_the_same_events(tmp_path: Path) -> None:
    (tmp_path / "before.xplane.pb").write_bytes(space())
    (tmp_path / "after.xplane.pb").write_bytes(Redactor([HOST, USER]).xplane(space()))
    before, after = (read_trace(tmp_path / f"{name}.xplane.pb") for name in ("before", "after"))
    assert before.operations == after.operations and before.steps == after.steps


def test_a_clean_trace_stays_as_it_is_byte_for_byte() -> None:
    clean = xspace([Plane("/host:CPU", [Line("python", [step(0, 0, 100), operation("dot", 1, 2)])])])
    assert Redactor([USER]).xplane(clean) == clean


def test_json_loses_them_too_and_its_header_tells_no_time() -> None:
    told = {"traceEvents": [{"name": f"{HOME}/step.py", "args": {"host": HOST, "hlo_op": "dot", HOME: 1}}]}
    cleaned = Redactor([HOST, USER]).json_gz(gzip.compress(json.dumps(told).encode()))
    assert cleaned[4:8] == b"\0\0\0\0"
    text = gzip.decompress(cleaned).decode()
    assert HOST not in text and USER not in text and "/srv" not in text
    assert json.loads(text)["traceEvents"][0]["args"]["hlo_op"] == "dot"


def test_short_words_are_no_names() -> None:
    assert Redactor(["vm"]).text("a vm of jit_vm") == "a vm of jit_vm"


@pytest.mark.parametrize("data", [b"\x0a\xff", b"\x0f\x01", b"\x80"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="protocol buffer"):
        Redactor(["quillon"]).xplane(data)
