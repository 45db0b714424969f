"""Run as a script on four logical devices: a sharded step in each mode, over real and abstract meshes, and from bytes.

Prints one JSON object; an assertion ends it with a traceback.
"""

import json
import sys

import jax
import numpy as np
import program_specimens as specimens

from kernel_audit.program import Generic, Target, TpuInterpreter, capture, load, run_simulated

X = specimens.draw(64, 128)


def operand(mesh):
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    return jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=sharding)


def near(outputs):
    rows, total = outputs
    assert np.array_equal(np.asarray(rows), 2 * X)
    np.testing.assert_allclose(np.asarray(total), 2 * X.sum(axis=0), rtol=1e-5, atol=1e-5)
    return [np.asarray(each).tobytes() for each in outputs]


def main():
    inside = {"plain": specimens.doubled, "emit-pipeline": specimens.pipelined}[sys.argv[1]]
    real = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    digests = []
    for mesh in (real, real.abstract_mesh):
        program = capture(specimens.sharded(mesh, inside), (operand(mesh),))
        digests.append(program.digest)
        generic = near(program.executable(Generic())([X]))
        simulated = run_simulated(program.executable(TpuInterpreter()), [X])
        near(simulated.outputs)
        assert not simulated.races
        loaded = load(program.export(Generic()))
        assert near(loaded.executable()([X])) == generic
        target = load(program.export(Target())).sidecar
    print(json.dumps({"digests": digests, "mesh": target.mesh, "specs": target.specs, "kernels": len(target.kernels)}))


main()
