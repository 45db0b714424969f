"""What a candidate may try so as to speak in the harness's name."""

from __future__ import annotations

import pytest

from kernel_audit.worker.seal import BrokenSeal, new_key, sealer, unsealer


@pytest.mark.parametrize(
    ("specimen", "evidence"),
    [
        ("forge_result", "result.json: its seal"),
        ("forge_result_and_go_on", "result.json: a file of this name was there before"),
        ("result_is_a_pipe", "result.json: not a plain file"),
        ("result_is_a_folder", "result.json: not a plain file"),
        ("result_is_a_link", "result.json: "),
        ("forge_step", "steps/0123456789abcdef0123456789abcdef.json: its seal"),
        ("forge_step_then_return", "steps/cell-1.json: no file of the harness"),
        ("replay_step", "the record of another step"),
        ("remove_step", "1 steps were finished, 0 are left"),
        ("alter_array", "step a: array x is not what was finished"),
    ],
)
def test_a_forged_file_is_found_and_named(pool, job, specimen, evidence):
    result = pool.run(job(specimen))
    assert result.outcome == "forged-output", result
    assert evidence in result.error["message"]
    assert result.value is None
    assert result.seconds < 5


@pytest.mark.parametrize("where", ["stdout", "stderr"])
@pytest.mark.parametrize("before", [0, 300_000])
def test_a_printed_record_is_found_wherever_it_stands(pool, job, where, before):
    result = pool.run(job("print_record", where=where, before=before))
    assert result.outcome == "forged-output"
    assert "kernel-audit/cell/1" in result.error["message"]


def test_honest_json_on_stdout_is_no_forgery(pool, job):
    result = pool.run(job("say", text='{"schema": "theirs/1", "outcome": 3, "decision": "tune further"}'))
    assert result.outcome == "finished"


def test_the_key_is_in_no_easy_place(pool, job):
    value = pool.run(job("look_for_key")).value
    assert value["found"] == []
    assert value["attributes"] == ["begin", "conclude", "finish"]


def test_a_seal_holds_for_its_content_and_its_key():
    key, other = new_key(), new_key()
    unseal, unseal_other = unsealer(key), unsealer(other)
    sealed = sealer(key)({"value": 1})
    assert unseal(sealed) == {"value": 1}
    for forged in (sealed.replace(b"1}", b"2}"), sealed[:-1], b"", b"{}"):
        with pytest.raises(BrokenSeal):
            unseal(forged)
    with pytest.raises(BrokenSeal):
        unseal_other(sealed)


def test_the_sealer_wipes_the_key():
    key = new_key()
    sealer(key)
    assert key == bytes(32)
