"""One run on a target, stage by stage. What is known when a stage fails is what the record of the failure holds."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

from kernel_audit.contract import FunctionRef
from kernel_audit.errors import AuditError
from kernel_audit.fixture import data_digest, originals, represented, seed_of
from kernel_audit.matrix.compare import compare, gaps
from kernel_audit.matrix.loading import load_function, tampered, watched_state
from kernel_audit.oracle import as_leaves, expectation
from kernel_audit.program import Target, capture
from kernel_audit.program.kernels import find_kernels
from kernel_audit.program.raised import deepest_own_frame, without_folders
from kernel_audit.records import Fixture, digest_file
from kernel_audit.target.benchmark import benchmark_on
from kernel_audit.target.devices import lies_on, platform_of
from kernel_audit.target.request import Request
from kernel_audit.target.supervised import Send

# Ordinary values first: they are the ones timed. Then sums at the boundary of a ReLU, NaN and infinities.
FAMILIES = ("normal", "cancellation", "non-finite")
SEED = 42


class Failed(Exception):
    """A stage failed on the target: what was expected, and what came."""

    def __init__(self, stage: str, what: str, expected: str, got: str) -> None:
        super().__init__(what)
        self.stage, self.what, self.expected, self.got = stage, what, expected, got

    def record(self) -> dict[str, str]:
        """As plain data."""
        return {"stage": self.stage, "what": self.what, "expected": self.expected, "got": self.got}


@dataclass
class Attempt:
    """A request on a device of `target`. `record` grows stage by stage: plain data, no path, no name of a machine. `send` is
    told of each stage as it begins, with the record so far."""

    request: Request
    target: str
    device: jax.Device
    file: Path
    send: Send = lambda message: None
    record: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        """All stages. Raises Failed for whatever goes wrong on the target, the model's own exceptions included."""
        self._identify()
        before = watched_state()
        with self._stage("load", "the model file could not be imported"):
            named = FunctionRef(file=self.file.name, name=self.request.lesson.function)
            written = load_function(named, [self.file.parent])
        with self._stage("trace", "the kernel could not be traced"):
            candidate = self._on_target(written)
            require_compiled_kernels(candidate, self._specs())
        _require_untouched(before)
        baseline = self._of_contract(self._contract.baselines[0].function)
        self.record["correctness"] = []
        placed = {family: self._fixture(family) for family in FAMILIES}
        for family, (inputs, arrays) in placed.items():
            for side, function in (("candidate", candidate), ("baseline", baseline)):
                with self._stage("run", f"the {side} failed on the target"):
                    output = jax.block_until_ready(jax.jit(function)(*inputs))
                self._compare(side, family, output, arrays)
        with self._stage("time", "the measurement failed on the target"):
            self.record["timing"] = benchmark_on(self.target, candidate, baseline, placed[FAMILIES[0]][0])

    @property
    def _contract(self) -> Any:
        return self.request.lesson.contract()

    def _identify(self) -> None:
        request, audit = self.request, self._contract
        self.record |= {
            "kernel": request.lesson.function,
            "source": {"file": self.file.name, "digest": digest_file(self.file)},
            "configuration": {"shape": list(request.shape), **_plain(request.configuration())},
            "device": {
                "actual_backend": jax.default_backend(),
                "platform": platform_of(self.device),
                "device_kind": self.device.device_kind,
            },
            "versions": {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "python": platform.python_version()},
            "precision": {"operands": request.dtype, "arithmetic": audit.precision.arithmetic, "result": request.dtype},
            "baseline": audit.baselines[0].name,
        }

    @contextmanager
    def _stage(self, name: str, what: str) -> Iterator[None]:
        """Whatever is raised inside, an attempt to end the process included, becomes a failure of this stage."""
        self.send({"stage": name, "record": self.record})
        try:
            yield
        except Failed:
            raise
        except BaseException as error:
            place = deepest_own_frame(error)
            expected = f"{self.request.lesson.function} to complete on {self.device.device_kind}"
            raise Failed(name, what, expected, _said(error) + (f" ({place})" if place else "")) from error

    def _on_target(self, written: Callable[..., Any]) -> Callable[..., Any]:
        """The model's function for this target. The model knows a mode for a TPU; for a GPU its kernels are set to compile."""
        configuration = self.request.configuration()
        if self.target == "tpu":
            return lambda *operands: written(*operands, **configuration, mode="tpu")
        program = capture(written, self._specs(), keywords=configuration, device_kind=self.device.device_kind)
        compiled = program.executable(Target("cuda"))
        return lambda *operands: compiled(operands)[0]

    def _of_contract(self, reference: FunctionRef) -> Callable[..., Any]:
        return load_function(reference, [])

    def _sizes(self) -> dict[str, int]:
        return dict(zip(("m", "n"), self.request.shape, strict=True))

    def _specs(self) -> list[jax.ShapeDtypeStruct]:
        shapes = [each.shape(self._sizes()) for each in self._contract.operands]
        return [jax.ShapeDtypeStruct(shape, np.dtype(self.request.dtype)) for shape in shapes]

    def _fixture(self, family: str) -> tuple[list[jax.Array], dict[str, np.ndarray]]:
        """(inputs placed on the device, expected values) of a value family."""
        audit, binding = self._contract, {"T": self.request.dtype}
        seed = SEED if family == FAMILIES[0] else seed_of(str(SEED), family)
        fixture = Fixture(name=family, dims=self._sizes(), family=family, seed=seed)
        data = originals(audit, fixture)
        stored = represented(audit, data, binding)
        oracle = self._of_contract(audit.oracle.function)
        arrays = expectation(
            audit, fixture, binding, [self.request.dtype], lambda given: as_leaves(oracle(*given.values())), {}
        )
        with self._stage("place", "the inputs could not be placed on the target"):
            inputs = [jax.device_put(each, self.device) for each in stored.values()]
        if not lies_on(self.target, inputs):
            raise Failed("place", "the inputs do not lie on the target", self.target, str(inputs[0].devices()))
        self.record.setdefault("fixtures", {})[family] = {"seed": seed, "digest": data_digest(data)}
        return inputs, arrays

    def _compare(self, side: str, family: str, output: Any, arrays: dict[str, np.ndarray]) -> None:
        """The complete logical output against the oracle on the same stored inputs."""
        with self._stage("compare", f"the {side}'s output cannot be read"):
            actual = [np.asarray(each) for each in jax.tree.leaves(output)]
        found = compare(self._contract, actual, arrays)
        self.record["correctness"].append(
            {
                "side": side,
                "fixture": family,
                "elements": sum(each.size for each in actual),
                "differing": found.differing,
                "kernel_error_max": found.error_max,
                "representation_gap_max": gaps(arrays)[0],
            }
        )
        if not found.agrees:
            first = found.first[0] if found.first else None
            got = f"at {first.position} {first.actual} instead of {first.expected}" if first else found.detail
            expected = f"every value of the represented-input oracle, fixture {family!r}"
            raise Failed("compare", f"the {side}'s output differs from the oracle", expected, f"{found.code}: {got}")


def require_compiled_kernels(candidate: Callable[..., Any], specs: list[jax.ShapeDtypeStruct]) -> None:
    """Raises Failed unless the candidate launches a Pallas kernel, and each of them for the target's compiler."""
    kernels = find_kernels(jax.make_jaxpr(candidate)(*specs))
    expected = "a Pallas kernel with interpret=False"
    if not kernels:
        raise Failed("trace", "the model runs no Pallas kernel", expected, "a program without a kernel")
    interpreted = [each for each in kernels if each.authored_interpret != "False"]
    if interpreted:
        got = f"{interpreted[0].name} with interpret={interpreted[0].authored_interpret}"
        raise Failed("trace", "the kernel would be interpreted, not run on the target", expected, got)


def _require_untouched(before: dict[tuple[str, str], int]) -> None:
    """Raises Failed where the model changed what runs, compares or times it."""
    if changed := tampered(before):
        raise Failed("load", "the model changed functions of other libraries", "none changed", ", ".join(changed[:5]))


def _said(error: BaseException) -> str:
    """An exception in a line: its type and what it says; of this package's own, what came instead."""
    text = f"{error.what}: {error.got}" if isinstance(error, AuditError) else str(error)
    return f"{type(error).__name__}: {without_folders(text)}"


def _plain(configuration: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in configuration.items()}
