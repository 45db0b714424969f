"""Faulty and honest model files: the base model with one textual change, and the promise that a fault must be told by.

A row: name, the text as it stands in base_model.py (once), what it becomes, and words of the promise; several where
more than one promise may tell it first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).with_name("base_model.py")


@dataclass(frozen=True)
class Model:
    """A changed model: `function` is the one to check, `told_by` words of which one must be in a broken promise."""

    name: str
    function: str
    old: str
    new: str
    told_by: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole file."""
        base = BASE.read_text("utf-8")
        assert base.count(self.old) == 1, f"{self.name}: {base.count(self.old)} places"
        return base.replace(self.old, self.new)


def _models(function: str, *rows: tuple[str, ...]) -> list[Model]:
    return [Model(name, function, old, new, tuple(told_by)) for name, old, new, *told_by in rows]


_SUM = "total = 2.0 * x + y"
_VALUES = "values, "
_GRID = "        grid=grid_of(x.shape, block),\n        in_specs=[tile, tile],\n"
_TILE = "tile = pl.BlockSpec(block, lambda i, j: (i, j))"
_CROP = "    return out[: x.shape[0], : x.shape[1]]\n\n\n# Stage 2"
_START = "    check_pair(x, y)\n    check_block(block)\n"
_PLAIN = "(2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)).astype(x.dtype)"
_CALL = f"    px, py = padded(x, block), padded(y, block)\n    {_TILE}\n    out = pl.pallas_call(\n        axpy_body,"
_MEMORY = """def remembered(function):
    known = {{}}

    def call(x, y, block=(2, 4)):
        key = {key}
        if key not in known or {always}:
            known[key] = function(x, y, block)
        return known[key]

    return call


@remembered
def blocked_axpy(x, y, block=(2, 4)):"""
_COUNTED = """calls = []


def blocked_axpy(x, y, block=(2, 4)):
    calls.append(block)
    if len(calls) % 3 == 0:
        y = -y"""

FAULTY = [
    *_models(
        "blocked_axpy",
        ("forgets_y", _SUM, "total = 2.0 * x", _VALUES),
        ("swaps_operands", _SUM, "total = x + 2.0 * y", _VALUES),
        ("subtracts", _SUM, "total = 2.0 * x - y", _VALUES),
        ("wrong_sign_of_negatives", _SUM, "total = 2.0 * x + jnp.abs(y)", _VALUES),
        ("factor_a_little_off", _SUM, "total = 2.0000002 * x + y", _VALUES),
        ("nan_swallowed", _SUM, "total = jnp.nan_to_num(2.0 * x + y)", "NaN and infinities"),
        ("small_sums_cut", _SUM, "total = jnp.where(jnp.abs(2.0 * x + y) < 1e-4, 0.0, 2.0 * x + y)", "cancel", _VALUES),
        ("large_sums_cut", _SUM, "total = jnp.clip(2.0 * x + y, -1e30, 1e30)", _VALUES, "infinities"),
        ("rounds_product", _SUM, "total = (2.0 * x).astype(jnp.bfloat16).astype(jnp.float32) + y", _VALUES, "halfway"),
        (
            "rounds_x",
            "    x = x_ref[...].astype(jnp.float32)\n    y = y_ref",
            "    x = x_ref[...].astype(jnp.bfloat16).astype(jnp.float32)\n    y = y_ref",
            _VALUES,
        ),
        ("narrow_arithmetic", _SUM, "total = (2.0 * x).astype(jnp.bfloat16) + y.astype(jnp.bfloat16)", _VALUES),
        ("rounds_sum", "total.astype(out_ref.dtype)", "total.astype(jnp.bfloat16).astype(out_ref.dtype)", _VALUES),
        ("wide_result", f"px.shape, x.dtype),\n{_GRID}", f"px.shape, jnp.float32),\n{_GRID}", "bfloat16"),
        ("narrow_result", f"px.shape, x.dtype),\n{_GRID}", f"px.shape, jnp.bfloat16),\n{_GRID}", "float32"),
        (
            "whole_blocks_only",
            _GRID,
            _GRID.replace("grid_of(x.shape, block)", "[max(1, n // b) for n, b in zip(x.shape, block)]"),
            "tails",
            "ceiling",
        ),
        ("padding_returned", _CROP, "    return out\n\n\n# Stage 2", "tails", "single row", "directly"),
        ("last_row_lost", _CROP, _CROP.replace(": x.shape[0]", ": x.shape[0] - 1"), _VALUES),
        ("shifted_by_a_row", _CROP, _CROP.replace("out[", "jnp.roll(out, 1, 0)["), _VALUES),
        ("padded_before", "((0, below), (0, right))", "((below, 0), (right, 0))", "tails", "single row"),
        ("axes_exchanged", _TILE, _TILE.replace("(i, j))", "(j, i))"), "rectangular", _VALUES),
        ("grid_exchanged", _GRID, _GRID.replace("block),\n", "block)[::-1],\n", 1), "rectangular", _VALUES),
        (
            "second_map_constant",
            "in_specs=[tile, tile]",
            "in_specs=[tile, pl.BlockSpec(block, lambda i, j: (0, j))]",
            _VALUES,
        ),
        ("first_column_only", _TILE, _TILE.replace("(i, j))", "(i, 0))"), _VALUES),
        ("block_ignored", _START, _START + "    block = (2, 4)\n", "one program for each block"),
        ("one_big_block", _START, _START + "    block = x.shape\n", "one program for each block"),
        (
            "rank_three_accepted",
            _START,
            "    if x.ndim == 3:\n        x, y = x[0], y[0]\n" + _START,
            "three-dimensions",
        ),
        ("empty_accepted", "if min(matrix.shape) < 1:", "if False:", "no-rows", "no-columns"),
        ("float16_accepted", '("float32", "bfloat16")', '("float32", "bfloat16", "float16")', "half-precision"),
        ("int32_accepted", '("float32", "bfloat16")', '("float32", "bfloat16", "int32")', "integers"),
        ("rows_broadcast", "if x.shape != y.shape:", "if x.shape[1] != y.shape[1]:", "one-row-broadcast"),
        ("columns_broadcast", "if x.shape != y.shape:", "if x.shape[0] != y.shape[0]:", "one-column-broadcast"),
        ("transposed_accepted", "if x.shape != y.shape:", "if x.size != y.size:", "transposed"),
        ("mixed_accepted", "if x.dtype != y.dtype:", "if False:", "mixed-dtypes"),
        ("three_sizes_accepted", _START, "    block = block[:2]\n" + _START, "block-of-three"),
        ("fraction_accepted", "if any(type(size) is not int for size in block):", "if False:", "block-fraction"),
        (
            "zero_block_accepted",
            "if any(size < 1 for size in block):",
            "if any(size < 0 for size in block):",
            "block-zero",
        ),
        ("negative_block_accepted", _START, "    block = tuple(map(abs, block))\n" + _START, "block-negative"),
        ("single_row_refused", "if min(matrix.shape) < 1:", "if min(matrix.shape) < 2:", "accepts one row"),
        ("bfloat16_refused", '("float32", "bfloat16")', '("float32",)', "two bfloat16"),
        (
            "unit_block_refused",
            "if any(size < 1 for size in block):",
            "if any(size < 2 for size in block):",
            "block 1x1",
        ),
        (
            "square_refused",
            "if x.shape != y.shape:",
            "if x.shape != y.shape or x.shape[0] == x.shape[1]:",
            "a square matrix",
        ),
        ("odd_block_refused", _START, _START.replace("(block)", "(block, (2, 4))"), "block 3x5"),
        ("shape_type_error", 'ValueError(f"shapes differ', 'TypeError(f"shapes differ', "one-row-broadcast"),
        ("dtype_type_error", 'ValueError(f"{name} must be float32', 'TypeError(f"{name} must be float32', "integers"),
        ("block_assertion", 'ValueError(f"block needs whole', 'AssertionError(f"block needs whole', "block-fraction"),
        ("empty_index_error", 'ValueError(f"{name} is empty', 'IndexError(f"{name} is empty', "no-rows"),
        (
            "remembers_by_shape",
            "def blocked_axpy(x, y, block=(2, 4)):",
            _MEMORY.format(key="(x.shape, str(x.dtype), block)", always="isinstance(x, jax.core.Tracer)"),
            "other values, same shape",
        ),
        (
            "remembers_traces",
            "def blocked_axpy(x, y, block=(2, 4)):",
            _MEMORY.format(key="(x.shape, str(x.dtype), block)", always="False"),
            "retrace-differs",
            "directly",
        ),
        (
            "remembers_by_a_value",
            "def blocked_axpy(x, y, block=(2, 4)):",
            _MEMORY.format(key="x.ndim if isinstance(x, jax.core.Tracer) else x.shape", always="x.size > 50"),
            "other values, same shape",
            "retrace-differs",
        ),
        ("every_third_call", "def blocked_axpy(x, y, block=(2, 4)):", _COUNTED, "retrace-differs", "directly", _VALUES),
        ("kernel_unused", _CROP, f"    return {_PLAIN}\n\n\n# Stage 2", "kernel-unused"),
        (
            "plain_through_a_copying_kernel",
            _CALL,
            f"    x = {_PLAIN}\n" + _CALL.replace("axpy_body", "lambda a, b, out: out.__setitem__(..., a[...])"),
            "the kernel alone",
        ),
        (
            "plain_beside_a_live_kernel",
            _CROP,
            f"    out = out[: x.shape[0], : x.shape[1]]\n    plain = {_PLAIN}\n"
            "    return jnp.where(out == out, plain, plain)\n\n\n# Stage 2",
            "the kernel alone",
        ),
        (
            "plain_by_a_callback",
            _CROP,
            "    out = out[: x.shape[0], : x.shape[1]]\n"
            "    return jax.pure_callback(lambda a, b: (2 * a + b).astype(a.dtype), out, x, y)\n\n\n# Stage 2",
            "the kernel alone",
        ),
        ("plain_for_one_row", _START, f"{_START}    if x.shape[0] == 1:\n        return {_PLAIN}\n", "no-kernel"),
        (
            "plain_on_a_cpu",
            _START,
            f'{_START}    if jax.default_backend() == "cpu":\n        return {_PLAIN}\n',
            "backend-dependent",
        ),
        ("not_interpreted", "        interpret=True,\n", "", "called directly"),
        (
            "writes_to_x",
            "    out_ref[...] = total.astype(out_ref.dtype)",
            "    x_ref[...] = x_ref[...] * 2\n    out_ref[...] = total.astype(out_ref.dtype)",
            "writes to no operand",
        ),
        (
            "another_default",
            "def blocked_axpy(x, y, block=(2, 4)):",
            "def blocked_axpy(x, y, block=(4, 4)):",
            "as documented",
        ),
    ),
]

_RELU = "jnp.maximum(total, 0.0)"
_BIAS_SUM = "    total = x + bias\n"
_DTYPE = "    if bias.dtype != x.dtype:\n"
_FUSED_GUARD = '    if mode == "tpu":\n        check_target(x, bias)\n'
_TRACED = "        if isinstance(operand, jax.core.Tracer):\n            continue\n"
_BACKEND = '    if jax.default_backend() != "tpu":\n'
_FUSED_BLOCK = '    check_block(block, (8, 128))\n    if mode not in ("interpret", "tpu"):'

FAULTY += _models(
    "fused_bias_relu",
    ("bias_of_first_block", "lambda i, j: (0, j)", "lambda i, j: (0, 0)", _VALUES),
    ("bias_along_rows", "lambda i, j: (0, j)", "lambda i, j: (0, i)", _VALUES),
    (
        "bias_rounded",
        "bias_ref[...].astype(jnp.float32)",
        "bias_ref[...].astype(jnp.bfloat16).astype(jnp.float32)",
        _VALUES,
    ),
    ("nan_to_zero", _RELU, "jnp.where(total > 0.0, total, 0.0)", "NaN and infinities"),
    ("relu_before_bias", _RELU, "(jnp.maximum(x, 0.0) + bias)", _VALUES),
    ("tiny_sums_cut", _RELU, "jnp.where(total < 1e-4, 0.0, total)", "cancel", _VALUES),
    ("cut_at_six", _RELU, "jnp.clip(total, 0.0, 6.0)", _VALUES, "infinities"),
    ("leaky", _RELU, "jnp.where(total < 0.0, 0.01 * total, total)", _VALUES),
    ("narrow_sum", _BIAS_SUM, "    total = x.astype(jnp.bfloat16) + bias.astype(jnp.bfloat16)\n", _VALUES, "cancel"),
    ("relu_forgotten", _RELU, "total", _VALUES),
    (
        "one_entry_accepted",
        "if bias.shape[0] != x.shape[1]:",
        "if bias.shape[0] not in (1, x.shape[1]):",
        "bias-of-one-entry",
    ),
    ("row_bias_accepted", "if bias.shape[0] != x.shape[1]:", "if bias.shape[0] not in x.shape:", "bias-of-the-rows"),
    (
        "long_bias_cut",
        "    if bias.ndim != 1:",
        "    bias = bias[: x.shape[1]]\n    if bias.ndim != 1:",
        "bias-too-long",
    ),
    ("row_reshaped", "    if bias.ndim != 1:", "    bias = bias.reshape(-1)\n    if bias.ndim != 1:", "bias-as-a-row"),
    ("mixed_bias_accepted", _DTYPE, "    if False:\n", "mixed-dtypes"),
    ("bias_converted", _DTYPE, "    bias = bias.astype(x.dtype)\n" + _DTYPE, "mixed-dtypes"),
    ("any_block", _FUSED_BLOCK, _FUSED_BLOCK.replace(", (8, 128)", ""), "part-tile", "part-lanes"),
    (
        "wide_blocks_refused",
        _FUSED_BLOCK,
        _FUSED_BLOCK.replace("block, (8", "block[:1] + (128,) * (block[1] < 256), (8"),
        "8x256",
    ),
    (
        "other_mode_accepted",
        'mode not in ("interpret", "tpu")',
        'mode not in ("interpret", "simulate", "tpu")',
        "mode-of-the",
    ),
    ("mode_key_error", 'ValueError(f"mode must be interpret', 'KeyError(f"mode must be interpret', "unknown-mode"),
    (
        "square_bias_refused",
        "if bias.shape[0] != x.shape[1]:",
        "if bias.shape[0] != x.shape[1] or len({*x.shape}) < 2:",
        "as many rows",
    ),
    ("no_guard", _FUSED_GUARD, "", 'mode="tpu" raises RuntimeError'),
    (
        "falls_back",
        _FUSED_GUARD,
        '    if jax.default_backend() != "tpu":\n        mode = "interpret"\n',
        'mode="tpu" raises',
    ),
    ("interprets_on_a_target", 'interpret=mode == "interpret"', "interpret=True", "interpret=False"),
    (
        "simulates_behind_a_natural_guard",
        _FUSED_GUARD,
        '    if mode == "tpu":\n        if any(d.platform != "tpu" for a in (x, bias) for d in a.devices()):\n'
        '            raise RuntimeError("no TPU")\n        mode = "interpret"\n',
        "is compiled for the target",
    ),
    ("natural_guard", _TRACED, "", "is compiled for the target"),
    ("refuses_every_target", _BACKEND, "    if True:\n", "is compiled for the target"),
    (
        "plain_on_a_target",
        _FUSED_GUARD,
        _FUSED_GUARD + "        return jnp.maximum(x + bias, 0)\n",
        "is compiled for the target",
    ),
    ("guard_value_error", 'RuntimeError(f"a TPU is needed', 'ValueError(f"a TPU is needed', 'mode="tpu" raises'),
    (
        "placement_unchecked",
        'if any(device.platform != "tpu"',
        'if any(device.platform == "gpu"',
        "do not lie on a TPU",
    ),
    (
        "padding_of_the_bias",
        "padded(bias.reshape(1, -1), (1, block[1]))",
        "bias.reshape(1, -1)[:, :128]",
        _VALUES,
        "tails",
    ),
    ("never_interpreted", 'interpret=mode == "interpret"', "interpret=False", "called directly"),
)

_SLOTS = "in_specs=[slots(block, buffers), slots(block, buffers)]"
_MODES = 'if mode not in ("simulate", "tpu"):'
_TPU = "        check_target(x, y)\n        interpret, surroundings = False, contextlib.nullcontext()\n"
_PIPE_BLOCK = "    check_block(block, (8, 128))\n    if buffers"
_EMIT = BASE.read_text("utf-8").partition("        pltpu.emit_pipeline(")[2].partition("(x_hbm, y_hbm, out_hbm)\n")[0]
_EMIT = f"        pltpu.emit_pipeline({_EMIT}(x_hbm, y_hbm, out_hbm)\n"
_OUTER = BASE.read_text("utf-8").partition("    def outer(")[2].partition("interpret=interpret,\n")[0]
_OUTER = f"    def outer({_OUTER}interpret=interpret,\n"
_SCOPED = """        def whole(x_ref, y_ref, out_ref):
            pltpu.sync_copy(x_hbm, x_ref)
            pltpu.sync_copy(y_hbm, y_ref)
            axpy_body(x_ref, y_ref, out_ref)
            pltpu.sync_copy(out_ref, out_hbm)

        pl.run_scoped(whole, *[pltpu.VMEM(px.shape, x.dtype)] * 3)
"""

FAULTY += _models(
    "pipelined_axpy",
    ("always_two_slots", _SLOTS, "in_specs=[slots(block, 2), slots(block, 2)]", "slots asked for"),
    ("always_three_slots", _SLOTS, "in_specs=[slots(block, 3), slots(block, 3)]", "slots asked for"),
    ("second_input_two_slots", _SLOTS, "in_specs=[slots(block, buffers), slots(block, 2)]", "slots asked for"),
    ("flag_ignored", "no_pipelining=no_pipelining", "no_pipelining=False", "synchronous"),
    ("flag_inverted", "no_pipelining=no_pipelining", "no_pipelining=not no_pipelining", "synchronous"),
    ("always_synchronous", "no_pipelining=no_pipelining", "no_pipelining=True", "synchronous"),
    ("no_race_detection", "detect_races=True", "detect_races=False", "race detection"),
    ("no_pipeline", _EMIT, _SCOPED, "emit_pipeline"),
    ("one_buffer_accepted", "if buffers not in (2, 3):", "if buffers not in (1, 2, 3):", "one-buffer"),
    ("four_buffers_accepted", "if buffers not in (2, 3):", "if buffers not in (2, 3, 4):", "four-buffers"),
    ("three_buffers_refused", "if buffers not in (2, 3):", "if buffers != 2:", "accepts 3 buffers"),
    ("any_mode", _MODES, "if False:", "unknown-mode"),
    ("natural_guard", _TRACED, "", "is compiled for the target"),
    ("target_unguarded", _TPU, _TPU.partition("\n")[2], 'mode="tpu" raises RuntimeError'),
    ("target_simulated", _TPU, _TPU.replace("= False,", "= pltpu.InterpretParams(),"), "interpret=False"),
    ("part_tiles_accepted", _PIPE_BLOCK, _PIPE_BLOCK.replace(", (8, 128)", ""), "part-tile", "part-lanes"),
    ("small_tiles_refused", _PIPE_BLOCK, _PIPE_BLOCK.replace("(8,", "(16,"), "accepts"),
    (
        "pipeline_unused",
        "interpret=interpret,\n        )(px, py)\n",
        f"interpret=interpret,\n        )(px, py)\n    return {_PLAIN}\n",
        "kernel-unused",
    ),
    (
        "plain_beside_a_live_pipeline",
        "interpret=interpret,\n        )(px, py)\n",
        f"interpret=interpret,\n        )(px, py)\n    plain = padded({_PLAIN}, block)\n"
        "    out = jnp.where(out == out, plain, plain)\n",
        "the kernel alone",
    ),
    (
        "fewer_blocks",
        "            grid=grid_of(x.shape, block),\n            in",
        "            grid=(1, 1),\n            in",
        _VALUES,
    ),
    (
        "synchronous_refused",
        _MODES,
        "if no_pipelining:\n        raise ValueError('no')\n    " + _MODES,
        "no_pipelining=True",
    ),
)

_WARM = "        compiled(*args).block_until_ready()\n    samples"
_SAMPLE = "        compiled(*args).block_until_ready()\n        samples"
_COMPILE = "jax.jit(function).lower(*args).compile()"
_CLOCK = "        began = time.perf_counter()\n        compiled"

FAULTY += _models(
    "target_benchmark",
    ("runs_anywhere", "    check_target(*args)\n    if", "    if", "refuses this CPU"),
    ("first_operand_only", "    check_target(*args)\n    if", "    check_target(args[0])\n    if", "one operand"),
    ("backend_only", "    check_target(*args)\n    if", "    check_target()\n    if", "do not lie on a TPU"),
    (
        "compiles_first",
        "    check_target(*args)\n    if",
        "    jax.jit(candidate).lower(*args).compile()\n    check_target(*args)\n    if",
        "before it compiles",
    ),
    ("four_accepted", "if repeats < 5:", "if repeats < 4:", "refuses 4 repeats"),
    ("nothing_accepted", "if repeats < 5:", "if 0 < repeats < 5:", "refuses 0 repeats"),
    ("five_refused", "if repeats < 5:", "if repeats <= 5:", "accepts 5 repeats"),
    ("repeats_runtime_error", 'ValueError(f"at least', 'RuntimeError(f"at least', "repeats with ValueError"),
    ("four_warm_ups", "for _ in range(5):", "for _ in range(4):", "warms up"),
    ("no_warm_up", "for _ in range(5):", "for _ in range(0):", "warms up"),
    ("warm_up_not_awaited", _WARM, "        compiled(*args)\n    samples", "waited for"),
    ("sample_not_awaited", _SAMPLE, "        compiled(*args)\n        samples", "waited for"),
    (
        "every_second_awaited",
        _SAMPLE,
        _SAMPLE.replace("compiled(", "(len(samples) % 2 or 1) and compiled(*args)\n        compiled("),
        "one call",
    ),
    ("compiles_in_warm_up", _COMPILE, "jax.jit(function)", "apart from every sample"),
    ("not_compiled", _COMPILE, "function", "compiles both"),
    ("seconds", "1000.0 * (", "1.0 * (", "milliseconds"),
    ("cumulative", _CLOCK, "        compiled", "one call"),
    ("always_twenty", "range(repeats)", "range(20)", "accepts 5 repeats"),
    ("one_sample_short", "range(repeats)", "range(repeats - 1)", "20 samples", "accepts 5"),
    ("mean_for_median", "np.median", "np.mean", "median"),
    ("maximum_for_p90", "np.percentile(samples, 90)", "np.max(samples)", "ninetieth"),
    ("boundary_missing", '        "boundary": ', '        "about": ', "boundary"),
    ("backend_by_hand", '"actual_backend": jax.default_backend()', '"actual_backend": "TPU v5e"', "actual backend"),
    ("baseline_is_candidate", "measured(baseline, args", "measured(candidate, args", "compiles both"),
    ("samples_left_out", '        "samples_ms": samples,\n', "", "5 repeats", "samples"),
    ("ten_by_default", "args, repeats=20):", "args, repeats=10):", "as documented"),
)

HONEST = [
    *_models(
        "blocked_axpy",
        ("padding_repeats_the_edge", "((0, below), (0, right)))", '((0, below), (0, right)), mode="edge")'),
        (
            "padded_by_update",
            "    return jnp.pad(matrix, ((0, below), (0, right)))",
            "    whole = jnp.zeros((matrix.shape[0] + below, matrix.shape[1] + right), matrix.dtype)\n"
            "    return whole.at[: matrix.shape[0], : matrix.shape[1]].set(matrix)",
        ),
        (
            "rows_taken_by_number",
            _CROP,
            "    return jnp.take(out[:, : x.shape[1]], jnp.arange(x.shape[0]) % len(out), axis=0)\n\n\n# Stage 2",
        ),
        ("doubles_by_adding", _SUM, "total = x + x + y"),
        ("other_order", _SUM, "total = y + x * 2.0"),
        ("message_without_shapes", 'f"shapes differ: {x.shape} and {y.shape}"', '"matrices of one shape are needed"'),
        ("interprets_off_target", "        interpret=True,", '        interpret=jax.default_backend() != "tpu",'),
        ("cropped_by_slice", _CROP, "    return jax.lax.slice(out, (0, 0), x.shape)\n\n\n# Stage 2"),
        ("lists_as_blocks", _START, _START + "    block = tuple(block)\n"),
        ("empty_by_size", "if min(matrix.shape) < 1:", "if matrix.size == 0:"),
        ("one_index", _TILE + "\n", _TILE + "\n    tile = pl.BlockSpec(tuple(block), lambda *place: place)\n"),
        ("wide_names", "DTYPES = ", "DTYPES = (jnp.float32, jnp.bfloat16)\nNAMES = "),
    ),
    *_models(
        "fused_bias_relu",
        ("library_relu", _RELU, "jax.nn.relu(total)"),
        ("relu_by_comparison", _RELU, "jnp.where(total < 0.0, 0.0, total)"),
        ("bias_by_index", "bias.reshape(1, -1)", "bias[None, :]"),
        ("guard_by_devices", _BACKEND, '    if jax.devices()[0].platform != "tpu":\n'),
        (
            "guard_by_name",
            "def check_target(*operands):\n" + _BACKEND,
            "from jax import default_backend\n\n\ndef check_target(*operands):\n" + _BACKEND.replace("jax.", ""),
        ),
        ("two_comparisons", 'if mode not in ("interpret", "tpu"):', 'if mode != "interpret" and mode != "tpu":'),
    ),
    *_models(
        "pipelined_axpy",
        (
            "scratch_of_one_block",
            _OUTER,
            _OUTER.replace("out_hbm):", "out_hbm, scratch):")
            + "            scratch_shapes=[pltpu.VMEM((1, *block), jnp.float32)],\n",
        ),
        ("default_clock", ", vector_clock_size=256", ""),
        ("tuples_of_specs", _SLOTS, "in_specs=(slots(block, buffers), slots(block, buffers))"),
        (
            "named_kernel",
            "            interpret=interpret,\n",
            '            interpret=interpret,\n            name="axpy",\n',
        ),
    ),
    *_models(
        "target_benchmark",
        (
            "waits_for_trees",
            _SAMPLE,
            _SAMPLE.replace("compiled(*args).block_until_ready()", "jax.block_until_ready(compiled(*args))"),
        ),
        (
            "repeats_first",
            "    check_target(*args)\n    if",
            "    if repeats < 5:\n        raise ValueError('5')\n    check_target(*args)\n    if",
        ),
        (
            "warm_ups_awaited_once",
            _WARM,
            "        result = compiled(*args)\n    result.block_until_ready()\n    samples",
        ),
        ("rank_for_p90", "np.percentile(samples, 90)", "sorted(samples)[-(-9 * repeats // 10) - 1]"),
        ("more_keys", '        "boundary": ', '        "repeats": repeats,\n        "boundary": '),
        (
            "clock_of_timeit",
            "import time\n",
            "from timeit import default_timer\n\n\nclass time:\n    perf_counter = staticmethod(default_timer)\n",
        ),
        ("another_clock", "import time\n", "import time\n\ntime.perf_counter = time.monotonic\n"),
    ),
]
