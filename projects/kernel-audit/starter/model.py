"""Your kernels. Copy this file to projects/kernel-audit/my_model.py and write there, one stage after another.

    python3 projects/kernel-audit/tests/check.py --implementation projects/kernel-audit/my_model.py --stage 1

Each function below says what it promises. Some rules hold for all of them: a call that breaks the contract raises ValueError
before any kernel is launched, and a target that is not there raises RuntimeError. Nothing is broadcast, converted or rounded
up silently. All arithmetic stands in the kernel; around it values are padded, cropped and moved, and nothing else.
"""


def blocked_axpy(x, y, block=(2, 4)):
    """Stage 1: 2x + y, one program of a Pallas grid for each block.

    Promise: x and y are non-empty matrices of one shape and one dtype, float32 or bfloat16; so is the result. Arithmetic is
    float32, with one cast at the very end. `block` is two positive whole numbers (rows, columns).

    To write:
      1. Refuse with ValueError: another rank, an empty side, shapes or dtypes that differ, a dtype that is not one of the
         two, a block that is not two positive whole numbers.
      2. Pad both matrices with zeros to whole blocks (`jnp.pad`), and count the blocks: the ceiling of shape over block.
      3. A kernel body that reads its refs, calculates in float32 and stores with one cast.
      4. `pl.pallas_call` with that grid and a `pl.BlockSpec(block, lambda i, j: (i, j))` for each array, `interpret=True`.
      5. Crop the result to the logical shape.
    """
    raise NotImplementedError("stage 1: blocked_axpy computes 2x + y block by block, tails included")


def fused_bias_relu(x, bias, block=(8, 128), mode="interpret"):
    """Stage 2: max(x + bias, 0), the bias following the columns of x.

    Promise: x is a non-empty matrix (m, n), bias a vector (n,) of the same dtype, float32 or bfloat16; the result is like x.
    Arithmetic is float32 with one cast at the end; NaN stays NaN. `block` is a multiple of (8, 128) in both modes.

    To write:
      1. Refuse with ValueError as in stage 1, and a bias of another length or rank, a block that is no multiple of (8, 128),
         a mode that is neither "interpret" nor "tpu".
      2. In mode "tpu": RuntimeError unless `jax.default_backend()` is "tpu" and both operands lie on a TPU; then
         `interpret=False`, and never a second try in the interpreter. In mode "interpret": `interpret=True`.
         Under `jax.jit` an operand is a `jax.core.Tracer` and has no device yet: let it pass.
      3. Two BlockSpecs: the matrix's block depends on (i, j), the bias's on j alone.
      4. Pad, call, crop.
    """
    raise NotImplementedError("stage 2: fused_bias_relu computes max(x + bias, 0) with the bias along the columns")


def pipelined_axpy(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Stage 3: 2x + y again, as a pipeline of copies between main memory and fast memory.

    Promise: as in stage 1, with `block` a multiple of (8, 128). `buffers` is the number of slots of each input, 2 or 3; the
    output has two. `no_pipelining` makes every copy synchronous. The values do not depend on any of them.

    To write:
      1. Refuse with ValueError as before, and other buffer counts and modes.
      2. The outer `pl.pallas_call` gets whole arrays: `pl.BlockSpec(memory_space=pl.ANY)` for each.
      3. In its body, `pltpu.emit_pipeline` with the block's grid, input specs with
         `pipeline_mode=pl.Buffered(buffer_count=buffers)`, an output spec with two slots, and `no_pipelining` handed on.
      4. Mode "simulate": `interpret=pltpu.InterpretParams(detect_races=True)` under an abstract mesh that describes a
         "TPU v5 lite". Mode "tpu": guarded as in stage 2, with `interpret=False`. Under `jax.jit` an operand is a
         `jax.core.Tracer` and has no device yet: let it pass.
    """
    raise NotImplementedError(
        "stage 3: pipelined_axpy computes 2x + y with pltpu.emit_pipeline and the slots asked for"
    )


def target_benchmark(candidate, baseline, args, repeats=20):
    """Stage 3: times two functions on a real TPU, and refuses everywhere else.

    Promise: RuntimeError unless the backend is a TPU and every array in `args` lies on it; ValueError for fewer than five
    repeats; both before anything is compiled or timed. For each of the two functions: compile (timed apart), warm up five
    times, then `repeats` times call and wait for the result.

    Returns {"candidate": side, "baseline": side, "actual_backend", "device_kind", "boundary"}; a side has "compile_seconds",
    "samples_ms" (one a repeat), "median_ms" and "p90_ms". `boundary` says in words what is measured.
    """
    raise NotImplementedError("stage 3: target_benchmark times on a real TPU only, and refuses everywhere else")
