"""What a candidate raises arrives as plain data: type, bases, text, and its own file and line."""

from __future__ import annotations

import importlib.util
import sys

import jax
import jax.numpy as jnp
import program_specimens as specimens
import pytest

from kernel_audit.program import CandidateRaised, TpuInterpreter, capture, run_simulated
from kernel_audit.program.raised import without_folders

X = jax.ShapeDtypeStruct((16, 128), jnp.float32)

SOURCE = """\
import jax
import jax.numpy as jnp

class Refused(ValueError):
    pass

kept = []

def refuses(x):
    raise Refused(f"block of {x.shape} in /some/folder/of/mine/blocks.toml")

def fails_in_jax(x):
    return jax.jit(lambda v: jnp.reshape(v, (3, 5)))(x)

def leaks(x):
    kept.append(x)
    return x

def uses_the_leak(x):
    return x + kept[0]

def leaves(x):
    raise SystemExit(3)

def returns_text(x):
    return "text"
"""


@pytest.fixture
def candidate(tmp_path):
    file = tmp_path / "refusing_candidate.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("refusing_candidate", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["refusing_candidate"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["refusing_candidate"]


def raised_by(function) -> CandidateRaised:
    with pytest.raises(CandidateRaised) as caught:
        capture(function, (X,))
    return caught.value


def test_an_own_refusal(candidate):
    error = raised_by(candidate.refuses)
    assert error.type_name == "Refused"
    assert error.mro == ("Refused", "ValueError", "Exception", "BaseException")
    assert error.message == "block of (16, 128) in blocks.toml"
    assert error.location == "refusing_candidate.py:10"
    assert "/some/folder" not in str(error)


def test_an_error_inside_jax_points_to_the_candidates_own_line(candidate):
    error = raised_by(candidate.fails_in_jax)
    assert error.type_name == "TypeError"
    assert error.location == "refusing_candidate.py:13"


def test_a_leaked_tracer(candidate):
    capture(candidate.leaks, (X,))
    error = raised_by(candidate.uses_the_leak)
    assert error.type_name == "UnexpectedTracerError"
    assert "float32[16,128]" in error.message


def test_leaving_the_process_and_returning_nonsense(candidate):
    assert raised_by(candidate.leaves).type_name == "SystemExit"
    assert raised_by(candidate.returns_text).type_name == "TypeError"


def test_an_error_without_an_own_frame_has_no_location():
    error = raised_by(jnp.linalg.inv)
    assert error.location == ""


def test_keyboard_interrupts_pass():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(interrupted, (X,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at /a/b/c.py:3", "at c.py:3"),
        ("'/a/b c.py'", "'b c.py'"),
        ("a/b and 1/2", "a/b and 1/2"),
        ("no path", "no path"),
    ],
)
def test_folders_are_left_out(text, expected):
    assert without_folders(text) == expected


def test_capture_works_after_a_failure(candidate):
    raised_by(candidate.refuses)
    program = capture(specimens.doubled, (X,))
    simulated = run_simulated(program.executable(TpuInterpreter()), [specimens.X])
    assert (simulated.outputs[0] == 2 * specimens.X).all()
