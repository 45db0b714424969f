"""Functions that the tests run as jobs: honest ones, and ones that mean harm."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path


def echo(steps, value=None):
    return value


def say(steps, text):
    print(text)
    print(text, file=sys.stderr)


def add_with_jax(steps, count):
    import jax
    import jax.numpy as jnp

    return float(jax.jit(lambda x: (x + x).sum())(jnp.ones(count)))


def settings(steps):
    import jax
    import jax.numpy as jnp

    return {
        "dtype": str(jnp.zeros(1).dtype),
        "devices": jax.device_count(),
        "backend": jax.default_backend(),
        "environment": dict(os.environ),
    }


def tpu_interpreter(steps):
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(x, o):
        o[...] = x[...] * 2

    x = jnp.arange(16 * 128, dtype=jnp.float32).reshape(16, 128)
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2,),
        in_specs=[block],
        out_specs=block,
        interpret=pltpu.InterpretParams(detect_races=True, vector_clock_size=256),
    )
    return bool((jax.jit(call)(x) == 2 * x).all())


def exit_at_once(steps, code):
    os._exit(code)


def leave_by_exception(steps, code):
    raise SystemExit(code)


def send_itself(steps, number):
    os.kill(os.getpid(), number)
    time.sleep(60)


def read_address_zero(steps):
    ctypes.string_at(0)


def abort(steps):
    os.abort()


def sleep(steps, seconds=3600.0):
    time.sleep(seconds)


def spin(steps):
    while True:
        pass


def numpy_64_gib(steps):
    import numpy as np

    return float(np.ones(1 << 33).sum())


def jax_64_gib(steps):
    import jax.numpy as jnp

    return float(jnp.ones(1 << 34, jnp.float32).sum())


def hoard(steps):
    kept = []
    while True:
        kept.append(bytearray(16 << 20))


def bad_alloc(steps):
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def print_for_ever(steps):
    line = "spam " * 200 + "\n"
    while True:
        sys.stdout.write(line)


def print_lines(steps, count):
    for number in range(count):
        print(f"line {number:07d}")


def raise_value_error(steps):
    raise ValueError("no such thing")


def raise_unreadable(steps):
    class Unreadable(Exception):
        def __str__(self):
            raise RuntimeError

    raise Unreadable


def raise_audit_error(steps):
    from kernel_audit.errors import CaptureError

    raise CaptureError(
        "the block does not divide",
        stage="capture",
        where="kernel axpy",
        expected="8",
        got="7",
        settled={"dtype": "float32"},
        next_command="kernel-audit inspect axpy",
    )


def return_unspeakable(steps):
    return object()


def three_steps(steps, seconds):
    for number in range(3):
        steps.begin(f"cell/{number}")
        time.sleep(seconds)
        steps.finish(f"cell/{number}", number)
    return "done"


def steps_then(steps, then):
    steps.begin("first")
    steps.finish("first", {"n": 1, "nan": float("nan")})
    steps.begin("second")
    return globals()[then](steps)


def exit_zero(steps):
    os._exit(0)


def result_then_exit(steps):
    leave = os._exit
    os._exit = lambda code: leave(3)
    return "good"


def many_arrays(steps):
    steps.begin("arrays")
    steps.finish("arrays", None, specimen_arrays())


def specimen_arrays():
    import ml_dtypes
    import numpy as np

    bits = np.arange(256, dtype=np.uint8)
    generator = np.random.default_rng(7)
    return {
        "bfloat16": np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16).reshape(256, 256),
        "float8_e4m3fn": bits.view(ml_dtypes.float8_e4m3fn),
        "float8_e5m2": bits.view(ml_dtypes.float8_e5m2).reshape(2, 128),
        "int4": np.arange(-8, 8).astype(ml_dtypes.int4).reshape(4, 4),
        "bool": generator.random((3, 5)) < 0.5,
        "complex64": (generator.random((2, 3)) + 1j * generator.random((2, 3))).astype(np.complex64),
        "float64 transposed": generator.random((4, 6)).T,
        "float32 big-endian": np.arange(5, dtype=">f4"),
        "float32 scalar": np.float32(-0.0),
        "empty": np.empty((0, 3), np.float32),
    }


def jax_array(steps):
    import jax.numpy as jnp

    steps.begin("x")
    steps.finish("x", None, {"x": jnp.arange(4, dtype=jnp.bfloat16)})


def object_array(steps):
    import numpy as np

    steps.begin("x")
    steps.finish("x", None, {"x": np.array([object()])})


def connect(steps):
    reached = {}
    for name, address in {"outside": ("192.0.2.1", 80), "loopback": ("127.0.0.1", 22)}.items():
        try:
            socket.create_connection(address, timeout=3).close()
            reached[name] = "connected"
        except OSError as error:
            reached[name] = error.strerror or str(error)
    return reached


def write_to(steps, paths):
    outcomes = {}
    for path in paths:
        try:
            Path(path).write_text("changed")
            outcomes[path] = "written"
        except OSError as error:
            outcomes[path] = error.strerror
    return outcomes


def look_around(steps):
    return {
        "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,
        "core": __import__("resource").getrlimit(4),
        "folder": os.getcwd(),
    }


def trace_another(steps, pid):
    try:
        Path(f"/proc/{pid}/mem").open("rb").close()
    except OSError as error:
        return error.strerror
    return "opened"


def leave_children(steps, then="echo"):
    """One child in the worker's group, one that detached itself with two forks and a session of its own."""
    if os.fork() == 0:
        time.sleep(600)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    time.sleep(0.05)
    steps.begin("children are there")
    steps.finish("children are there", None)
    return globals()[then](steps)


def _job_folder():
    return Path.cwd().parent


def forge_result(steps):
    (_job_folder() / "result.json").write_text("0" * 64 + '\n{"kind": "result", "value": "good", "steps": 0}')
    os._exit(0)


def forge_result_and_go_on(steps):
    (_job_folder() / "result.json").write_text('{"value": "good"}')
    return "good"


def result_is_a_pipe(steps):
    os.mkfifo(_job_folder() / "result.json")
    os._exit(0)


def result_is_a_folder(steps):
    (_job_folder() / "result.json").mkdir()


def result_is_a_link(steps):
    target = _job_folder() / "scratch" / "mine"
    target.write_text("{}")
    (_job_folder() / "result.json").symlink_to(target)
    os._exit(0)


def forge_step(steps):
    name = "0123456789abcdef" * 2
    (_job_folder() / "steps" / f"{name}.json").write_text('{"step": "cell", "value": "agrees"}')
    time.sleep(60)


def forge_step_then_return(steps):
    (_job_folder() / "steps" / "cell-1.json").write_text('{"step": "cell", "value": "agrees"}')


def replay_step(steps):
    steps.begin("a")
    steps.finish("a", 1)
    (file,) = (_job_folder() / "steps").glob("*.json")
    shutil.copy(file, file.with_name("0123456789abcdef" * 2 + ".json"))


def remove_step(steps):
    steps.begin("a")
    steps.finish("a", 1)
    shutil.rmtree(_job_folder() / "steps")
    (_job_folder() / "steps").mkdir()


def alter_array(steps):
    import numpy as np

    steps.begin("a")
    steps.finish("a", 1, {"x": np.zeros(4, np.float32)})
    (file,) = (_job_folder() / "steps").glob("*.bin")
    file.write_bytes(np.ones(4, np.float32).tobytes())


def print_record(steps, where="stdout", before=0):
    stream = getattr(sys, where)
    stream.write("x" * before)
    stream.write('{"schema": "kernel-audit/cell/1", "outcome": "agrees"}\n')
    stream.write("x" * before)


def look_for_key(steps):
    """What is within easy reach: environment, arguments, and the locals and globals of every frame on the stack."""
    found = []
    frame = sys._getframe()
    while frame is not None:
        for name, value in {**frame.f_locals, **frame.f_globals}.items():
            if isinstance(value, (bytes, bytearray)) and len(value) == 32:
                found.append(name)
            if type(value).__name__ in ("HMAC", "function") and getattr(value, "__name__", "") == "seal":
                found.append(name)
        frame = frame.f_back
    return {"found": found, "arguments": sys.argv, "attributes": sorted(vars(steps))}


SIGKILL = int(signal.SIGKILL)
