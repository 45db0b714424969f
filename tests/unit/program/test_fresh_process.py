"""Bytes that run where the candidate does not exist give the same bits, and hold no folder of this machine."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import program_specimens as specimens
import pytest

from kernel_audit.program import Generic, Target

HERE = Path(__file__).parent
FOLDER = re.compile(rb"/[\w.-]+/[\w./-]*\.py")


def portable(leaf):
    """An operand that pickles: keys travel as their data and the name of their implementation."""
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return "key", (str(jax.random.key_impl(leaf)), np.asarray(jax.random.key_data(leaf)))
    return "array", np.asarray(leaf)


# One of each kind that the default run can afford; the slow run takes all.
EVERYDAY = (
    "asks-backend",
    "closure",
    "cond",
    "donated",
    "emit-pipeline",
    "float8-e4m3fn",
    "grad-of-custom-vjp",
    "jit-vmap-jit",
    "platform-dependent",
    "pytree",
    "scalar-prefetch",
    "typed-key",
)


def every_exportable() -> list[str]:
    names = [each.name for each in specimens.SPECIMENS if each.exportable]
    return [name for name in names if not (name == "pl-kernel" and jax.__version__ == "0.9.2")]


def require_same_bits_elsewhere(captured, folder: Path, chosen: list[str]) -> None:
    for name in chosen:
        each = captured(name)
        (folder / f"{name}.program").write_bytes(each.program.export(Generic()))
        (folder / f"{name}.operands").write_bytes(pickle.dumps([portable(leaf) for leaf in each.leaves]))
    script = folder / "script.py"
    script.write_text((HERE / "load_elsewhere.py").read_text())
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([sys.executable, str(script), str(folder)], check=True, env=environment, cwd=folder)
    for name in chosen:
        results = pickle.loads((folder / f"{name}.results").read_bytes())
        here = [np.asarray(each) for each in captured(name).generic]
        assert [each.dtype for each in results] == [each.dtype for each in here], name
        assert [each.tobytes() for each in results] == [each.tobytes() for each in here], name


def test_bits_are_the_same_in_a_fresh_process(captured, tmp_path):
    require_same_bits_elsewhere(captured, tmp_path, list(EVERYDAY))


@pytest.mark.slow
def test_bits_of_every_exportable_program_are_the_same_in_a_fresh_process(captured, tmp_path):
    chosen = every_exportable()
    assert len(chosen) >= 31
    require_same_bits_elsewhere(captured, tmp_path, chosen)


@pytest.mark.parametrize("name", ["plain", "emit-pipeline", "closure", "jit-vmap-jit"])
@pytest.mark.parametrize("mode", [Generic(), Target()], ids=["generic", "target"])
def test_no_folder_in_the_bytes(captured, name, mode):
    data = captured(name).program.export(mode)
    assert FOLDER.search(data) is None
    for part in (os.getcwd(), str(HERE), str(Path.home()), sys.prefix):
        assert part.encode() not in data


def test_the_search_for_folders_can_fail(captured):
    from jax import export

    program = captured("plain").program
    plain = export.export(jax.jit(lambda x: specimens.doubled(x, interpret=True)))(*program.specs).serialize()
    assert FOLDER.search(bytes(plain)) is not None
