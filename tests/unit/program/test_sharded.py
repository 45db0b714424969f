"""Sharded steps, on four logical devices in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import program_specimens as specimens
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from kernel_audit.errors import EnvironmentFault
from kernel_audit.program import Generic, Target, capture, load

HERE = Path(__file__).parent


def run_on_four_devices(environment, inside: str) -> dict:
    environment = {**environment, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    command = [sys.executable, "-W", "error", str(HERE / "run_sharded.py"), inside]
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("inside", ["plain", pytest.param("emit-pipeline", marks=pytest.mark.slow)])
def test_every_mode_over_real_and_abstract_meshes(fresh_environment, inside):
    told = run_on_four_devices(fresh_environment, inside)
    assert len(set(told["digests"])) == 1
    assert (told["mesh"], told["specs"], told["kernels"]) == ([["d", 4]], [["d"]], 1)


def test_export_needs_no_devices_and_running_says_how_many():
    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
    operand = jax.ShapeDtypeStruct((64, 128), np.float32, sharding=NamedSharding(mesh, PartitionSpec("d")))
    program = capture(specimens.sharded(mesh, specimens.doubled), (operand,))
    assert load(program.export(Target("tpu"))).sidecar.mesh == [("d", 4)]
    if len(jax.devices()) >= 4:
        pytest.skip("this process has four devices")
    for make in (program.executable, lambda mode: load(program.export(mode)).executable()):
        with pytest.raises(EnvironmentFault, match="4 devices"):
            make(Generic())
