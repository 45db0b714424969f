"""Which specimen stands for which fault, and what an audit must find in it.

Plain data: neither JAX nor a specimen is imported. `file` is relative to `specimens/`. Contracts:
"blocked-axpy" has the signature (x, y, block), "axpy" adds buffers, no_pipelining and mode; "bias-relu" has (x, bias, block,
mode); "regression" has (X, w, y, rows, form, mode).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CODES", "FAULTS", "HONEST", "HOSTILE", "REGRESSION_FAULTS", "REGRESSION_HONEST", "Specimen"]

CODES = frozenset(
    {
        "backend-dependent",
        "crashed",
        "donates-input",
        "forged-output",
        "import-failed",
        "inputs-changed",
        "kernel-unused",
        "no-kernel",
        "not-repeatable",
        "out-of-memory",
        "permutation-differs",
        "race-detected",
        "raised",
        "refusal-missing",
        "refusal-unnamed",
        "refusal-wrong-exception",
        "refused-valid-input",
        "result-dtype-differs",
        "result-shape-differs",
        "retrace-differs",
        "simulation-in-target-mode",
        "tampered",
        "target-door-open",
        "target-mode-raises",
        "timed-out",
        "values-differ",
        "writes-input",
    }
)

BLOCKED, PIPELINED, BIAS, REGRESSION = "blocked-axpy", "axpy", "bias-relu", "regression"


@dataclass(frozen=True)
class Specimen:
    """One function and the findings of which at least one must appear; none at all where `expect` is empty.

    `why` says what is wrong (or why nothing is); `source` names the fault of the issue, the exploit class
    or the reported fault that it stands for.
    """

    name: str
    file: str
    function: str
    contract: str
    expect: tuple[str, ...]
    why: str
    source: str


def _rows(file: str, contract: str, *rows: tuple) -> list[Specimen]:
    """Specimens of one file; a row is (function, expect, why, source)."""
    return [Specimen(function, file, function, contract, *rest) for function, *rest in rows]


VALUES = ("values-differ",)
RAISES = ("raised", "values-differ")
MISSING = ("refusal-missing",)

FAULTS: list[Specimen] = [
    *_rows(
        "tails.py",
        BLOCKED,
        ("floor_grid", VALUES, "partial blocks are never visited", "wrong tail; EM01"),
        ("tail_from_last_whole_block", VALUES, "the tail repeats the last whole block", "wrong tail"),
        ("tail_one_short", VALUES, "the last column of a tail is zero", "tail written one short"),
        ("tail_masked_by_rows", VALUES, "the mask uses the wrong extent", "wrong tail; class TM"),
        ("tail_left_zero", VALUES, "rows of a tail are zero", "ragged-tail-garbage"),
        ("divisible_only", ("refused-valid-input",), "shapes with a tail are refused", "hardcoded-shapes"),
        ("uncropped", ("result-shape-differs",), "padding leaks into the result", "wrong tail"),
        ("singleton_axes_squeezed", ("result-shape-differs",), "a row becomes a vector", "class EM"),
        ("cropped_from_the_far_end", VALUES, "crops operands and keeps padding", "wrong tail"),
        ("window_slides_back", RAISES, "reads past the end; one interpreter clamps", "TM01, TM02"),
    ),
    *_rows(
        "axes.py",
        BLOCKED,
        ("grid_axes_swapped", RAISES, "right on every square grid", "axis swap only a rectangle shows"),
        ("square_grid_transposed", VALUES, "right on every rectangle", "axis swap only a square grid shows"),
        ("result_map_transposed", RAISES, "the result's map is exchanged", "IX04"),
        ("operands_exchanged", VALUES, "x + 2y", "operands swapped"),
        ("second_operand_stays_at_first_block", VALUES, "constant map", "IX05"),
        ("second_operand_ignores_columns", VALUES, "one index of the map is constant", "class IX"),
        ("maps_in_elements", RAISES, "offsets instead of block numbers", "index map in elements; IX01"),
        ("first_operand_map_in_elements", RAISES, "offsets in one map", "index map in elements"),
        ("first_operand_one_block_late", RAISES, "off by one block", "index-clamped-silently; IX03"),
        ("result_rotated_by_one_block", VALUES, "written one block further", "class IX"),
        ("rows_reversed_in_block", VALUES, "rows of a block upside down", "class IX"),
        ("columns_shifted_by_one", VALUES, "y shifted before launch", "IX07"),
        ("second_operand_in_wrong_order", VALUES, "y in the other layout", "class IX"),
        ("first_row_for_all", VALUES, "y taken for a bias", "broadcasting accepted"),
        ("blocks_counted_along_one_axis", RAISES, "grid extent from the wrong axis", "IX08"),
    ),
    *_rows(
        "precision.py",
        BLOCKED,
        ("rounded_before_the_addition", VALUES, "2x rounded to bfloat16", "early rounding in float32"),
        ("second_operand_rounded", VALUES, "y rounded to bfloat16", "ER02"),
        ("bfloat16_arithmetic", VALUES, "narrow arithmetic", "bfloat16 arithmetic on float32; silent-downcast"),
        ("rounded_after_the_addition", VALUES, "the sum rounded to bfloat16", "silent-downcast"),
        ("float16_arithmetic", VALUES, "too little range", "class PR"),
        ("result_not_cast_back", ("result-dtype-differs",), "float32 for bfloat16", "missing cast"),
        ("result_always_bfloat16", ("result-dtype-differs",), "bfloat16 for float32", "dtype-blind-compare"),
        ("result_truncated", VALUES, "rounded towards zero", "class ER"),
        ("factor_one_ulp_off", VALUES, "the next number above 2", "a guessed tolerance hides it"),
        ("wrong_factor", VALUES, "x + y", "wrong constant"),
    ),
    *_rows(
        "values.py",
        BLOCKED,
        ("nan_becomes_zero", VALUES, "NaN is swallowed", "class NF"),
        ("infinity_becomes_large", VALUES, "infinities are cut", "class NF"),
        ("saturated", VALUES, "cut at 1e30", "near-linear-regime-skip"),
        ("negative_zero_lost", VALUES, "-0 becomes +0", "signed zeros"),
        ("near_zero_cut", VALUES, "small sums become zero", "zeros-under-atol"),
        ("other_rule_for_large_operands", VALUES, "another rule from 1e4 on", "magnitude-sniff-dispatch"),
        ("cheap_path_for_nominal_data", VALUES, "exact for stress data only", "magnitude-sniff-dispatch"),
        ("equal_operands_skipped", VALUES, "near cancellation becomes exact", "cancellation-prone-form"),
        ("large_matrices_in_bfloat16", VALUES, "exact for small shapes", "checked-size-vs-timed-size"),
        ("zeros", VALUES, "does nothing", "zeros-under-atol"),
    ),
    *_rows(
        "ownership.py",
        BLOCKED,
        ("last_block_column_unvisited", VALUES, "the grid ends early", "output block unvisited"),
        ("last_program_does_not_write", VALUES, "visited and not written", "output block unvisited; UN01"),
        ("last_column_of_block_not_written", VALUES, "a store one short", "tail written one short; UN01"),
        ("result_accumulated_without_start", VALUES, "adds to what was there", "uninitialised-accumulator"),
        ("scratch_accumulated_without_start", VALUES, "adds to what was there", "uninitialised-accumulator"),
        ("scratch_cleared_once", VALUES, "cleared by the first program only", "AC04"),
        ("factor_set_by_the_first_of_parallel_programs", VALUES, "relies on order", "GO03"),
        ("result_revisited_in_a_second_pass", RAISES, "a block comes back after it left", "GO01"),
        ("block_read_at_its_place_in_the_matrix", RAISES, "clamping repairs it", "index-clamped-silently"),
        ("block_written_at_its_place_in_the_matrix", RAISES, "clamping repairs it", "index-clamped-silently"),
        ("aliased_result_read_before_written", VALUES, "the alias holds nothing yet", "AL01"),
        ("operand_overwritten", ("writes-input", "inputs-changed"), "x is scratch", "input overwritten"),
        ("operand_donated", ("donates-input", "inputs-changed"), "x is deleted", "donated-input-side-effect"),
    ),
    *_rows(
        "pipeline.py",
        PIPELINED,
        ("pipeline_result_stays_at_first_tile", VALUES, "only the last tile survives", "IX05"),
        ("pipeline_result_transposed", RAISES, "the result's map is exchanged", "IX04"),
        ("pipeline_grid_is_floor", ("values-differ", "refused-valid-input"), "no tails", "EM01"),
        ("pipeline_map_in_elements", RAISES, "offsets in one map", "index map in elements"),
        ("pipeline_operands_exchanged", VALUES, "x + 2y", "operands swapped"),
        ("pipeline_accumulates_without_start", VALUES, "adds to what was there", "uninitialised-accumulator"),
        ("pipeline_rounds_before_the_addition", VALUES, "2x rounded", "early rounding in float32"),
        ("pipeline_writes_one_tile_of_a_block", VALUES, "right for 8 rows only", "a configuration is wrong"),
        ("pipeline_wrong_with_three_slots", VALUES, "right for 2 slots only", "a configuration is wrong"),
        ("pipeline_wrong_when_synchronous", VALUES, "right when pipelined only", "a configuration is wrong"),
        ("pipeline_uncropped", ("result-shape-differs",), "padding leaks into the result", "wrong tail"),
    ),
    *_rows(
        "dma.py",
        PIPELINED,
        ("operand_read_before_it_arrived", ("race-detected", "values-differ"), "waits too late", "class RC"),
        ("operand_never_awaited", ("race-detected", *RAISES), "never waits", "class RC"),
        ("result_never_awaited", ("race-detected", *RAISES), "never waits", "class RC"),
        ("result_overwritten_while_it_leaves", ("race-detected", "values-differ"), "too early", "class RC"),
        ("two_copies_into_one_buffer", ("race-detected",), "right values", "DMA race the default clock misses"),
        ("two_copies_out_to_one_place", ("race-detected",), "right values", "DMA race the default clock misses"),
        ("prefetch_into_the_buffer_in_use", ("race-detected",), "right values", "race-lucky-pass"),
        ("wrong_block_copied_in", VALUES, "row from the column index", "class IX"),
    ),
    *_rows(
        "refusals.py",
        BLOCKED,
        ("broadcast_accepted", MISSING, "a row is stretched", "broadcasting accepted"),
        ("dtypes_promoted", MISSING, "the wider dtype wins", "silent dtype promotion"),
        ("integers_accepted", MISSING, "through float32 and back", "integers; class SC"),
        ("float16_accepted", MISSING, "an undeclared dtype", "class SC"),
        ("empty_accepted", MISSING, "nothing in, nothing out", "empty inputs; class EM"),
        ("vectors_accepted", MISSING, "rank 1", "operand of another rank"),
        ("batches_accepted", MISSING, "rank 3", "operand of another rank"),
        ("block_repaired", MISSING, "0 becomes 1", "bad blocks"),
        ("refusal_of_another_type", ("refusal-wrong-exception",), "TypeError", "refusals"),
        ("refusal_by_assertion", ("refusal-wrong-exception",), "AssertionError", "refusals"),
        ("refusal_without_the_value", ("refusal-unnamed",), "says nothing", "each naming the value"),
        ("bfloat16_refused", ("refused-valid-input",), "a declared dtype", "operator-variant-gap"),
        ("singletons_refused", ("refused-valid-input",), "a declared shape", "class EM"),
    ),
    *_rows(
        "refusals.py",
        PIPELINED,
        ("pipeline_block_rounded_up", MISSING, "to whole tiles", "bad blocks"),
        ("pipeline_buffers_clamped", MISSING, "to 2 or 3", "bad buffer counts"),
        ("pipeline_unknown_mode_simulated", MISSING, "any mode will do", "bad modes"),
        ("pipeline_dtypes_promoted", MISSING, "y is cast", "silent dtype promotion"),
        ("pipeline_broadcast_accepted", MISSING, "a row is stretched", "broadcasting accepted"),
        ("pipeline_refusal_of_another_type", ("refusal-wrong-exception",), "NotImplementedError", "refusals"),
        ("target_mode_falls_back_to_simulation", ("target-door-open",), "no TPU, no error", "silent-fallback"),
        ("target_mode_falls_back_to_jax", ("target-door-open",), "no TPU, no error", "silent-fallback"),
        ("target_mode_asks_traced_operands", ("target-mode-raises",), "no device yet", "a target mode never run"),
        ("target_mode_never_opens", ("target-mode-raises",), "refuses every TPU", "a target mode never run"),
        ("target_mode_has_no_kernel", ("no-kernel",), "plain JAX on a TPU", "a target mode never run"),
        (
            "target_mode_is_simulation",
            ("simulation-in-target-mode",),
            "a TPU is there and not used",
            "fallback to simulation in tpu mode",
        ),
    ),
    *_rows(
        "identity.py",
        BLOCKED,
        ("no_pallas", ("no-kernel",), "ordinary JAX", "no Pallas behind the name; self-reported-metric"),
        ("pallas_on_tpu_only", ("backend-dependent", "no-kernel"), "jnp off TPU", "plain jnp off TPU"),
        ("pallas_off_tpu_only", ("backend-dependent", "no-kernel"), "jnp on TPU", "caller-sniffing"),
        ("other_block_off_tpu", ("backend-dependent",), "another kernel off TPU", "class IT"),
        ("reference_after_any_error", ("no-kernel",), "the handler answers", "silent-fallback; PF05"),
        ("kernel_for_one_shape_only", ("no-kernel",), "jnp for all other shapes", "hardcoded-shapes"),
        ("kernel_unused", ("kernel-unused",), "launched and dropped; dead code", "decoy-kernel"),
        ("kernel_times_zero", ("values-differ", "no-kernel"), "NaN where an infinity was", "decoy-kernel"),
        ("exact_while_watched", ("retrace-differs", "values-differ"), "every second trace", "caller-sniffing"),
        ("noise_drawn_while_tracing", ("retrace-differs", "values-differ"), "random constant", "seed-leak"),
        ("block_drawn_while_tracing", ("retrace-differs",), "right, and never the same", "retrace"),
    ),
    *_rows(
        "memory.py",
        BLOCKED,
        (
            "result_cached_by_shape",
            ("retrace-differs", "refused-valid-input", "backend-dependent"),
            "the second trace gets a value of the first",
            "result cached by shape",
        ),
        ("values_cached_by_shape", VALUES, "stored values, whatever comes", "result cached by shape"),
        (
            "result_cached_by_identity",
            ("retrace-differs", "refused-valid-input", "backend-dependent"),
            "the second trace gets a value of the first",
            "result cached by identity; identity-keyed-result-cache",
        ),
        ("known_answers", ("values-differ", "no-kernel"), "the lesson's answers", "oracle's answer returned"),
        ("known_answer_by_first_element", VALUES, "one element decides", "fingerprint-keyed-result-cache"),
        (
            "result_cached_on_the_host",
            ("raised", "refused-valid-input", "values-differ", "not-repeatable"),
            "a callback cannot be exported, and remembers",
            "file-or-shm-replay",
        ),
    ),
    *_rows(
        "bias.py",
        BIAS,
        ("bias_along_rows", VALUES, "bias[i], not bias[j]", "bias along the other axis"),
        ("bias_stays_at_first_block", VALUES, "constant map", "IX05"),
        ("bias_block_from_the_row_index", RAISES, "right on the diagonal", "axis swap of one operand"),
        ("one_bias_for_all", VALUES, "one entry a block", "broadcasting accepted"),
        ("bias_tail_left_zero", VALUES, "no bias in the last columns", "wrong tail"),
        ("bias_grid_is_floor", VALUES, "no tails", "EM01"),
        ("relu_before_the_bias", VALUES, "stages exchanged", "ReLU before the addition"),
        ("relu_left_out", VALUES, "no activation", "a stage is missing"),
        ("relu_leaks", VALUES, "another activation", "a stage is another one"),
        ("relu_turns_nan_to_zero", VALUES, "NaN is swallowed", "class NF"),
        ("relu_cuts_tiny_sums", VALUES, "tiny sums become zero", "zeros-under-atol"),
        ("relu_caps_at_six", VALUES, "cut at 6", "near-linear-regime-skip"),
        ("bias_rounded_early", VALUES, "bias rounded to bfloat16", "early rounding in float32"),
        ("bias_sum_rounded_early", VALUES, "sum rounded to bfloat16", "early rounding in float32"),
        ("bias_result_in_float32", ("result-dtype-differs",), "float32 for bfloat16", "missing cast"),
        ("bias_of_another_dtype_accepted", MISSING, "the bias is cast", "silent dtype promotion"),
        ("bias_of_one_entry_stretched", MISSING, "(1,) serves all", "broadcasting accepted"),
        ("bias_cut_to_the_columns", MISSING, "too long is cut", "a bias of another length"),
        ("bias_as_a_row_accepted", MISSING, "(1, n) serves", "operand of another rank"),
        ("bias_part_tiles_accepted_off_target", MISSING, "tiles for the target only", "bad blocks"),
        ("bias_target_mode_falls_back", ("target-door-open",), "no TPU, no error", "silent-fallback"),
    ),
]

HONEST: list[Specimen] = [
    *_rows(
        "honest_blocked.py",
        BLOCKED,
        ("columns_first", (), "another loop order", "other loop orders"),
        ("backwards", (), "another loop order", "other loop orders"),
        ("one_axis", (), "a flat grid", "other loop orders"),
        ("larger_blocks", (), "blocks of its own", "other valid blocks"),
        ("whole_rows", (), "blocks of its own", "other valid blocks"),
        ("one_program", (), "no grid", "other valid blocks"),
        ("unpadded_tail", (), "Pallas crops", "masked instead of padded tails"),
        ("masked_tail", (), "the kernel masks", "masked instead of padded tails"),
        ("nan_in_padding", (), "cropped again", "NaN in padding that is cropped"),
        ("added_twice", (), "2x is exact either way", "x + x + y"),
        ("jitted_inside", (), "a jit around the kernel", "jitted inside"),
        ("interpreted_off_tpu", (), "the commonest idiom", "interpret=jax.default_backend() != 'tpu'"),
        ("interpreted_by_the_author", (), "settings left in", "no mode argument"),
        ("arithmetic_as_stored", (), "one rounding is left", "bfloat16 arithmetic on bfloat16"),
        ("closure_over_a_constant", (), "a constant operand", "closure over a constant"),
        ("closure_over_a_number", (), "a bound number", "closure over a constant"),
        ("through_scratch", (), "written before read", "scratch"),
        ("accumulated_over_an_inner_axis", (), "revisited while it stays", "consecutive revisit"),
        ("parallel_axes", (), "independent programs", "parallel semantics"),
        ("aliased_result", (), "padded copies may be reused", "alias of an intermediate"),
        ("two_kernels", (), "float32 between them", "two kernels"),
        ("halves_concatenated", (), "two independent parts", "two kernels"),
        ("transposed_and_back", (), "another layout", "other loop orders"),
        ("row_by_row_in_block", (), "a loop in the body", "other loop orders"),
        ("under_custom_vjp", (), "a rule around the kernel", "higher-order primitives"),
        ("under_cond", (), "a kernel in each branch", "higher-order primitives"),
        ("under_vmap", (), "a batched kernel", "higher-order primitives"),
        ("row_table_prefetched", (), "a map from a table", "scalar prefetch"),
        ("pipeline_without_a_mode", (), "never asks where it runs", "no mode argument"),
    ),
    *_rows(
        "honest_pipelined.py",
        PIPELINED,
        ("plain_blocks", (), "copies left to the compiler", "no pipeline by hand"),
        ("pipeline_columns_first", (), "another loop order", "other loop orders"),
        ("pipeline_with_nan_padding", (), "cropped again", "NaN in padding that is cropped"),
        ("copies_one_after_another", (), "each awaited at once", "copies by hand"),
        ("copies_side_by_side", (), "all awaited before use", "copies by hand"),
        ("two_slots_by_hand", (), "never the slot in use", "copies by hand"),
        ("pipeline_jitted_inside", (), "a jit around the kernel", "jitted inside"),
        ("refuses_in_other_words", (), "still names the value", "refusals"),
    ),
    *_rows(
        "bias.py",
        BIAS,
        ("bias_columns_first", (), "another loop order", "other loop orders"),
        ("bias_unpadded", (), "Pallas crops", "masked instead of padded tails"),
        ("relu_of_the_library", (), "jax.nn.relu inside", "higher-order primitives"),
        ("relu_keeps_nan_by_comparison", (), "zeros keep their sign", "signed zeros are not promised"),
    ),
]


def _hostile(file: str, expect: tuple[str, ...], why: str, source: str) -> Specimen:
    return Specimen(file, f"hostile/{file}.py", "axpy", BLOCKED, expect, why, source)


HOSTILE: list[Specimen] = [
    _hostile("exit_at_import", ("crashed",), "os._exit(0) is no success", "early-success-exit"),
    _hostile("exit_at_trace", ("crashed",), "os._exit(0) is no success", "early-success-exit"),
    _hostile("system_exit_at_import", ("import-failed",), "SystemExit(0) is no success", "early-success-exit"),
    _hostile("segfault_at_import", ("crashed",), "reads address zero", "a candidate that segfaults"),
    _hostile("segfault_at_trace", ("crashed",), "reads address zero", "a candidate that segfaults"),
    _hostile("sleep_at_import", ("timed-out",), "never imported", "a candidate that sleeps for ever"),
    _hostile("sleep_at_trace", ("timed-out",), "never traced", "a candidate that sleeps for ever"),
    _hostile("endless_program", ("timed-out",), "traced and exported, never done", "a program that hangs"),
    _hostile("huge_request", ("out-of-memory",), "64 GiB of NumPy", "a candidate that asks for 64 GiB"),
    _hostile("huge_program", ("out-of-memory",), "64 GiB inside the program", "a program that asks for 64 GiB"),
    _hostile("forged_stdout", ("forged-output", "values-differ"), "prints a verdict", "self-reported-metric"),
    _hostile("forged_file", ("forged-output", "values-differ"), "writes results", "file-or-shm-replay"),
    _hostile("forged_at_exit", ("forged-output", "values-differ"), "rewrites results", "exit-hook-rewrite"),
    _hostile("rebinds_numpy_testing", ("tampered",), "all comparisons agree", "comparator-monkeypatch"),
    _hostile("patches_jax_export", ("tampered",), "exports another program", "oracle-rebind"),
    _hostile("patches_jnp_add", ("tampered",), "arithmetic of others", "oracle-rebind"),
    _hostile("patches_pallas_call", ("tampered", "no-kernel"), "kernels become jnp", "oracle-rebind"),
    _hostile("patches_default_backend", ("tampered",), "answers for JAX", "caller-sniffing"),
    _hostile("patches_block_until_ready", ("tampered",), "nothing waits", "sync-monkeypatch"),
    _hostile("enables_x64", ("tampered",), "a setting of the process", "global-precision-flag"),
    _hostile("patches_kernel_audit", ("tampered", "values-differ"), "the audit itself", "oracle-rebind"),
    _hostile("kills_parent_group", ("crashed",), "SIGKILL to the parent's group", "tampering with the harness"),
    _hostile("leaves_a_child", (), "right; no process may be left", "side-stream-work"),
    _hostile("floods_stdout", (), "right; output is bounded", "stdout captured and bounded"),
    _hostile("takes_expected_values", ("values-differ", "no-kernel"), "finds none", "expected-value-theft"),
]

REGRESSION_FAULTS: list[Specimen] = _rows(
    "regression.py",
    REGRESSION,
    ("tail_not_masked", VALUES, "rows beyond the last one are used", "padding-leak"),
    ("mask_multiplied", VALUES, "rows beyond the last one are multiplied by zero", "padding-leak; NaN"),
    ("residuals_masked_and_rows_not", VALUES, "a masked residual times what lies beyond", "padding-leak; NaN"),
    ("tail_dropped", VALUES, "a grid that is rounded down", "wrong tail"),
    ("sums_not_begun", VALUES, "accumulation without initialisation", "class IN"),
    ("squares_of_the_last_block", VALUES, "overwritten where it should be added", "one result of two"),
    ("means", VALUES, "means for sums", "unweighted-means"),
    ("residuals_negated", VALUES, "right loss, gradient of the wrong sign", "only-loss-checked"),
    ("programs_share_a_row", VALUES, "partial sums overwrite one another, in the GPU form", "overlapping writes"),
    ("weights_rounded", VALUES, "the default precision of a matrix unit", "early rounding in float32"),
    ("narrow_accumulation", VALUES, "a bfloat16 accumulator", "class PR"),
)

REGRESSION_HONEST: list[Specimen] = _rows(
    "regression.py",
    REGRESSION,
    ("small_blocks", (), "masks in every block", "another block"),
    ("on_the_matrix_unit", (), "dots at HIGHEST", "another unit"),
    ("upside_down", (), "another order of the additions", "reassociation"),
)
