"""Each fault really is one and each honest specimen really is right, shown with JAX and NumPy alone.

Independent of the audit, so that a specimen that has quietly become harmless is noticed here and does not
pass for a fault that the audit misses. Hostile specimens are not run.
"""

import contextlib
import importlib.util
import io
import itertools
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.extend.core import jaxpr_as_fun

from kernel_audit.kernels.axpy_references import axpy_oracle
from kernel_audit.kernels.bias_relu_references import bias_relu_oracle
from kernel_audit.kernels.blocked_axpy import blocked_axpy
from kernel_audit.kernels.fused_bias_relu import fused_bias_relu
from kernel_audit.kernels.pipelined_axpy import _simulated_mesh, pipelined_axpy

HERE = Path(__file__).parent
PIPELINED, BIAS = "axpy", "bias-relu"
ORACLES = {"blocked-axpy": axpy_oracle, PIPELINED: axpy_oracle, BIAS: bias_relu_oracle}


def load(path):
    name = f"specimen_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


corpus = load(HERE / "corpus.py")


def function_of(specimen):
    return getattr(load(HERE / "specimens" / specimen.file), specimen.function)


# Fixtures ---------------------------------------------------------------------------------------------------------

BLOCKED_SHAPES = [(3, 5), (6, 12), (1, 1), (6, 4), (2, 12), (8, 16), (13, 17), (1, 11), (7, 1)]
PIPELINED_SHAPES = [(9, 129), (24, 384), (1, 1), (24, 128), (8, 384), (17, 257)]

FAMILIES = ("zeros", "not-finite", "large", "cancellation", "integers")


def values(contract, family, shape, dtype, seed):
    """Two operands of one family of values, as stored in `dtype`."""
    x, y = matrices(family, shape, dtype, seed)
    if contract == BIAS and family == "cancellation":  # small values, so that what is left of them is tiny
        return x * x.dtype.type(2.0**-14), x[0] * x.dtype.type(-(2.0**-14) * (1 - 2.0**-6))
    return (x, y[0]) if contract == BIAS else (x, y)


def matrices(family, shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    if family == "integers":
        x = np.arange(x.size, dtype=np.float32).reshape(shape)
        y = x[::-1, ::-1] + 1
    elif family == "zeros":
        x, y = np.copysign(0, x), np.copysign(0, y)
    elif family == "cancellation":
        y = np.where(y > 0, -2 * x, -2 * x * np.float32(1 + 2.0**-10))
    elif family == "large":
        x, y = x * np.float32(2.0**122), y * np.float32(2.0**122)
    elif family == "not-finite":
        x.flat[:: max(1, x.size // 5)] = np.inf
        y.flat[1 :: max(1, x.size // 3)] = np.nan
    return x.astype(jnp.dtype(dtype)), y.astype(jnp.dtype(dtype))


def fixtures(contract):
    """(family, shape, dtype): every family on a matrix with tails, then ordinary values on every other
    shape.
    """
    tail, *others = PIPELINED_SHAPES if contract in (PIPELINED, BIAS) else BLOCKED_SHAPES
    dtypes = itertools.cycle(["float32", "bfloat16"])
    chosen = [("normal", tail, "float32"), ("normal", tail, "bfloat16")]
    chosen += [(family, tail, dtype) for family, dtype in zip(FAMILIES, dtypes, strict=False)]
    chosen += [("normal", shape, dtype) for shape, dtype in zip(others, dtypes, strict=False)]
    return chosen


def configurations(contract):
    if contract == BIAS:
        return [{}, {"block": (16, 256)}]
    if contract != PIPELINED:
        return [{}, {"block": (4, 8)}]
    return [{}, {"buffers": 3}, {"no_pipelining": True}, {"block": (16, 256)}]


# Running ----------------------------------------------------------------------------------------------------------

INTERPRETERS = ("generic", "tpu")


@contextlib.contextmanager
def interpreted(interpreter):
    """Every kernel made inside runs in this interpreter, whatever its author asked for."""
    authored = pl.pallas_call
    parameters = pltpu.InterpretParams(detect_races=True, vector_clock_size=256)
    chosen = True if interpreter == "generic" else parameters
    pl.pallas_call = lambda body, **options: authored(body, **{**options, "interpret": chosen})
    try:
        with jax.sharding.use_abstract_mesh(_simulated_mesh()):
            yield
    finally:
        pl.pallas_call = authored


def race_seen(text):
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call

    return "RACE DETECTED" in text or bool(getattr(interpret_pallas_call.races, "races_found", False))


def run_codes(contract, function, x, y, interpreter, options):
    """Finding codes of one run against NumPy."""
    expected = ORACLES[contract](x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    shapes = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (x, y))
    printed = io.StringIO()
    try:
        with interpreted(interpreter):
            program = jax.make_jaxpr(lambda x, y: function(x, y, **options))(*shapes)
    except Exception:
        return {"refused-valid-input"}
    run = jax.jit(jaxpr_as_fun(program))
    try:
        with contextlib.redirect_stdout(printed):
            (result,) = run(jnp.asarray(x), jnp.asarray(y))
            result = np.asarray(result)
    except Exception as error:
        return {"race-detected" if race_seen(str(error)) else "raised"}
    finally:
        pltpu.reset_tpu_interpret_mode_state()
    codes = set()
    if interpreter == "tpu" and race_seen(printed.getvalue()):
        codes.add("race-detected")
    if result.shape != expected.shape:
        codes.add("result-shape-differs")
    elif result.dtype != expected.dtype:
        codes.add("result-dtype-differs")
    elif not same_bits(contract, result, expected):
        codes.add("values-differ")
    return codes


def same_bits(contract, a, b):
    """Equal in every bit, except that one NaN is as good as another, and after a ReLU one zero."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    either = (np.isnan(a) & np.isnan(b)) | ((a == 0) & (b == 0) & (contract == BIAS))
    return bool(np.all((a.view(unsigned) == b.view(unsigned)) | either))


def runs(contract):
    """(family, shape, dtype, interpreter, seed), the cheaper interpreter first."""
    for interpreter in INTERPRETERS:
        for seed, (family, shape, dtype) in enumerate(fixtures(contract)):
            yield family, shape, dtype, interpreter, seed


def found_by_running(specimen, function):
    """The first codes that are expected of the specimen, or every code that any run gave."""
    seen = set()
    for (family, shape, dtype, interpreter, seed), options in itertools.product(
        runs(specimen.contract), configurations(specimen.contract)
    ):
        operands = values(specimen.contract, family, shape, dtype, seed)
        seen |= run_codes(specimen.contract, function, *operands, interpreter, options)
        if seen & set(specimen.expect):
            break
    return seen


# Reading ----------------------------------------------------------------------------------------------------------


def traced(contract, function, shape=(9, 129), dtype="float32", backend="cpu", **options):
    operands = [jax.ShapeDtypeStruct(each, jnp.dtype(dtype)) for each in (shape, shape[contract == BIAS :])]
    authored = jax.default_backend
    jax.default_backend = lambda: backend
    try:
        with jax.sharding.use_abstract_mesh(_simulated_mesh()):
            return jax.make_jaxpr(lambda x, y: function(x, y, **options))(*operands)
    finally:
        jax.default_backend = authored


def text_of(program):
    without_addresses = re.sub(r"0x[0-9a-f]+", "", str(program))
    return re.sub(r"interpret=(InterpretParams\(.*?\)|True|False)", "", without_addresses)


def live_kernels(program):
    """Kernel equations at the top level that a result depends on."""
    needed, found = {v for v in program.jaxpr.outvars if not hasattr(v, "val")}, []
    for equation in reversed(program.jaxpr.eqns):
        if needed & set(equation.outvars):
            needed |= {v for v in equation.invars if not hasattr(v, "val")}
            if "pallas_call" in str(equation):
                found.append(equation)
    return found


def found_by_reading(contract, function):
    """Codes that need no run."""
    codes = set()
    outcomes = []
    for backend in ("tpu", "cpu", "cpu"):
        try:
            outcomes.append(traced(contract, function, backend=backend))
        except Exception:
            return codes | {"refused-valid-input"}
    on_tpu, on_cpu, again = map(text_of, outcomes)
    codes |= {"backend-dependent"} if on_tpu != on_cpu else set()
    codes |= {"retrace-differs"} if again != on_cpu else set()
    kernels = live_kernels(outcomes[1])
    if not kernels:
        codes.add("kernel-unused" if "pallas_call" in on_cpu else "no-kernel")
    for kernel in kernels:
        if kernel.primitive.name == "pallas_call":
            body = kernel.params["jaxpr"]
            inputs = body.invars[: kernel.params["grid_mapping"].num_inputs]
            stored = {e.invars[0] for e in body.eqns if e.primitive.name == "swap"}
            codes |= {"writes-input"} if stored & set(inputs) else set()
        elif any(kernel.params.get("donated_invars", ())):
            codes.add("donates-input")
    return codes | (target_codes(contract, function) if contract in (PIPELINED, BIAS) else set())


def target_codes(contract, function):
    """What mode "tpu" does without a TPU and with a claimed one."""
    codes = set()
    try:
        traced(contract, function, mode="tpu")
        codes.add("target-door-open")
    except (RuntimeError, jax.errors.ConcretizationTypeError):
        pass
    try:
        opened = str(traced(contract, function, mode="tpu", backend="tpu"))
    except (RuntimeError, jax.errors.ConcretizationTypeError):
        return codes | {"target-mode-raises"}
    if "pallas_call" not in opened:
        return codes | {"no-kernel"}
    return codes | ({"simulation-in-target-mode"} if "interpret=InterpretParams" in opened else set())


def bad_calls(contract):
    """(x, y, options, the value at fault as text)."""
    full = (8, 128)

    def of(shape=full, dtype="float32"):
        return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))

    if contract == BIAS:
        yield from bad_biases(of)
        return
    yield of(), of(dtype="bfloat16"), {}, "bfloat16"
    yield of(dtype="bfloat16"), of(), {}, "bfloat16"
    for dtype in ("int32", "float16"):
        yield of(dtype=dtype), of(dtype=dtype), {}, dtype
    yield of(), of((1, 128)), {}, "(1, 128)"
    for shape in ((128,), (2, 8, 128), (0, 128), (8, 0)):
        yield of(shape), of(shape), {}, str(shape)
    for block in ((8,), (0, 128), (8, -128), (8.5, 128)):
        yield of(), of(), {"block": block}, str(block)
    if contract == PIPELINED:
        yield of(), of(), {"block": (4, 128)}, "(4, 128)"
        yield of(), of(), {"buffers": 4}, "4"
        yield of(), of(), {"mode": "gpu"}, "gpu"


def bad_biases(of):
    """The same for a matrix and a bias."""
    bias = of((128,))
    yield of(), of((128,), "bfloat16"), {}, "bfloat16"
    for dtype in ("int32", "float16"):
        yield of(dtype=dtype), of((128,), dtype), {}, dtype
    for shape in ((127,), (129,), (1,), (1, 128)):
        yield of(), of(shape), {}, str(shape)
    for shape in ((128,), (2, 8, 128), (0, 128)):
        yield of(shape), bias, {}, str(shape)
    for block in ((8,), (0, 128), (8, -128), (8.5, 128), (4, 128)):
        yield of(), bias, {"block": block}, str(block)
    yield of(), bias, {"mode": "simulate"}, "simulate"


def found_by_refusals(contract, function):
    codes = set()
    for x, y, options, named in bad_calls(contract):
        try:
            with jax.sharding.use_abstract_mesh(_simulated_mesh()):
                jax.make_jaxpr(lambda x, y, options=options: function(x, y, **options))(x, y)
            codes.add("refusal-missing")
        except ValueError as refusal:
            codes |= {"refusal-unnamed"} if named not in str(refusal) else set()
        except Exception:
            codes.add("refusal-wrong-exception")
    return codes


# Tests ------------------------------------------------------------------------------------------------------------

RUN = {"values-differ", "raised", "race-detected", "result-shape-differs", "result-dtype-differs"}
REFUSALS = {"refusal-missing", "refusal-unnamed", "refusal-wrong-exception"}


def test_corpus_is_complete_and_names_things_once():
    everything = corpus.FAULTS + corpus.HONEST + corpus.HOSTILE
    assert len(corpus.FAULTS) >= 55 and len(corpus.HONEST) >= 22
    assert len({specimen.name for specimen in everything}) == len(everything)
    for specimen in everything:
        source = (HERE / "specimens" / specimen.file).read_text()
        assert f"def {specimen.function}(" in source, specimen.name
        assert set(specimen.expect) <= corpus.CODES and specimen.why and specimen.source
    assert all(specimen.expect for specimen in corpus.FAULTS)
    assert not any(specimen.expect for specimen in corpus.HONEST)


# Every specimen was shown wrong, or right, once when it was written; three seconds each is too much for every run, and
# test_corpus.py puts all of them through the tool. One in four here shows that this check still tells them apart.
SAMPLE = 4


@pytest.mark.slow
@pytest.mark.parametrize("specimen", corpus.FAULTS[::SAMPLE], ids=lambda specimen: specimen.name)
def test_fault_is_a_fault(specimen):
    function, expected = function_of(specimen), set(specimen.expect)
    found = found_by_reading(specimen.contract, function)
    if not found & expected and expected & REFUSALS:
        found |= found_by_refusals(specimen.contract, function)
    if not found & expected and expected & (RUN | {"refused-valid-input"}):
        found |= found_by_running(specimen, function)
    assert found & expected, f"expected one of {sorted(expected)}, found {sorted(found)}"


CLEAN = [
    corpus.Specimen(f.__name__, "", f.__name__, contract, (), "the built-in kernel", "")
    for f, contract in ((blocked_axpy, "blocked-axpy"), (pipelined_axpy, PIPELINED), (fused_bias_relu, BIAS))
]


@pytest.mark.slow
@pytest.mark.parametrize("specimen", CLEAN + corpus.HONEST[::SAMPLE], ids=lambda specimen: specimen.name)
def test_honest_specimen_is_right(specimen):
    clean = {kernel.__name__: kernel for kernel in (blocked_axpy, pipelined_axpy, fused_bias_relu)}
    function = clean[specimen.name] if specimen.name in clean else function_of(specimen)
    assert not found_by_reading(specimen.contract, function)
    assert not found_by_refusals(specimen.contract, function)
    options = itertools.cycle(configurations(specimen.contract))
    for (family, shape, dtype, interpreter, seed), chosen in zip(runs(specimen.contract), options, strict=False):
        operands = values(specimen.contract, family, shape, dtype, seed)
        codes = run_codes(specimen.contract, function, *operands, interpreter, chosen)
        assert not codes, f"{sorted(codes)}: {family} {shape} {dtype} {interpreter} {chosen}"


@pytest.mark.slow
def test_race_is_missed_by_the_default_clock():
    """The planted race is worth its place: with the default clock the values are right and nothing is said."""
    (race,) = [s for s in corpus.FAULTS if s.name == "two_copies_into_one_buffer"]
    authored = pltpu.InterpretParams
    x, y = values(PIPELINED, "normal", (9, 129), "float32", 0)
    pltpu.InterpretParams = lambda **options: authored(detect_races=options.get("detect_races", False))
    try:
        assert not run_codes(PIPELINED, function_of(race), x, y, "tpu", {})
    finally:
        pltpu.InterpretParams = authored
