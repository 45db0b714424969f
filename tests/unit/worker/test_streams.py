"""Captured output is bounded and honest about what it leaves out."""

from __future__ import annotations

import pytest

from kernel_audit.worker.streams import KEPT_BYTES, Capture


def test_both_streams_are_captured_apart(pool, job):
    result = pool.run(job("say", text="hällo"))
    assert (result.stdout, result.stderr) == ("hällo\n", "hällo\n")


def test_both_ends_of_a_long_stream_are_kept(pool, job, tmp_path):
    result = pool.run(job("print_lines", count=200_000))
    assert result.outcome == "finished"
    assert result.stdout.startswith("line 0000000\n")
    assert result.stdout.endswith("line 0199999\n")
    assert f"[... {200_000 * 13 - 2 * KEPT_BYTES} bytes left out ...]" in result.stdout
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 10_000


def test_printing_for_ever_ends_at_the_deadline_and_fills_nothing(pool, job, tmp_path):
    result = pool.run(job("print_for_ever", deadline_s=0.5))
    assert result.outcome == "timed-out"
    assert len(result.stdout) < 3 * KEPT_BYTES
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 10_000


@pytest.mark.parametrize("size", [0, 1, KEPT_BYTES, 2 * KEPT_BYTES])
def test_nothing_is_left_out_of_what_fits(size):
    data = bytes(32 + number % 90 for number in range(size))
    capture = Capture()
    for start in range(0, size, 1000):
        capture.add(data[start : start + 1000])
    assert capture.text() == data.decode()


def test_the_tail_is_the_last_part_however_the_pieces_fall():
    data = b"".join(b"%07d " % number for number in range(200_000))
    capture = Capture()
    for start in range(0, len(data), 60_001):
        capture.add(data[start : start + 60_001])
    head, _, rest = capture.text().partition("\n[...")
    assert head.encode() == data[:KEPT_BYTES]
    assert rest.partition("...]\n")[2].encode() == data[-KEPT_BYTES:]


def test_an_imitation_cut_in_two_is_found():
    mark = b'{"schema": "kernel-audit/cell/1"}'
    for cut in range(1, len(mark)):
        capture = Capture()
        for piece in (b"x" * 1000, mark[:cut], mark[cut:], b"y" * 1000):
            capture.add(piece)
        assert capture.imitation is not None, cut
