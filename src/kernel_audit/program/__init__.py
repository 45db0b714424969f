"""Any candidate, unmodified: traced once, run in any mode, carried between processes as bytes.

    with claimed_backend("tpu"):                       # before the candidate is imported
        from candidate import kernel                   # (so that `default_backend()` in it answers for the target)
        program = capture(kernel, (jax.ShapeDtypeStruct((8, 128), "float32"),), keywords={"block": 8})

    program.digest, program.kernels                    # identity, and a record for each kernel found in it
    run = program.executable(Generic())                # kept callable: [arrays] -> [arrays]
    outputs = run([x])

    simulate = program.executable(TpuInterpreter())
    result = run_simulated(simulate, [x])              # result.outputs, result.races

    data = program.export(Generic())                   # or Target("tpu"), Target("cuda"); no folder in the bytes
    loaded = load(data)                                # in a process that never imports the candidate
    outputs = loaded.executable()([x])                 # loaded.sidecar tells digest, mode, platform, kernels, ...

Arrays go in and out as flat lists in the order of `program.operands` and `program.results`; `program.out_tree`
unflattens results. A gradient is captured as `capture(jax.grad(f), ...)`: captured programs are never differentiated.

Errors: CandidateRaised (the candidate raised while traced), InterpreterRaised (the TPU interpreter refused what the
kernel did), CaptureError (their base; not exportable, corrupt bytes, other operands), EnvironmentFault (an unsupported
JAX, a fault of it known by name, too few devices). Importing this package imports JAX.
"""

from kernel_audit.program.canonical import canonical_digest
from kernel_audit.program.capture import Program, capture
from kernel_audit.program.describe import claimed_backend, described
from kernel_audit.program.executable import Executable, Simulated, run_simulated
from kernel_audit.program.known import refuse_by_name
from kernel_audit.program.modes import Generic, Mode, Target, TpuInterpreter
from kernel_audit.program.packed import LoadedProgram, Sidecar, load
from kernel_audit.program.raised import CandidateRaised, InterpreterRaised

__all__ = [
    "CandidateRaised",
    "Executable",
    "Generic",
    "InterpreterRaised",
    "LoadedProgram",
    "Mode",
    "Program",
    "Sidecar",
    "Simulated",
    "Target",
    "TpuInterpreter",
    "canonical_digest",
    "capture",
    "claimed_backend",
    "described",
    "load",
    "refuse_by_name",
    "run_simulated",
]
