"""Job of the subject worker: a complete step with one side in place, run on logical devices, partition after partition.

What it hands over are values as they lie on each device; the parent compares them with the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import msgspec
import numpy as np

from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.errors import AuditError
from kernel_audit.matrix.loading import as_keywords, load_function
from kernel_audit.matrix.subject_job import Subject, traced_for
from kernel_audit.program import CandidateRaised, claimed_backend
from kernel_audit.program.checkpoint_policies import frozen_policy
from kernel_audit.records import StepPartition
from kernel_audit.workload.collectives import collectives_of, gathered_arrays
from kernel_audit.workload.inputs import (
    FINITE,
    POISON,
    Arrays,
    digests,
    drawn,
    laid_out,
    places_of,
    repeated,
    represented,
)
from kernel_audit.workload.laid_step import LaidStep, copies, lay, observed_operands, observed_results

STEP = "step"


def run_steps(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    function: dict[str, Any],
    keywords: dict[str, Any],
    step: dict[str, Any],
    binding: dict[str, str],
    partitions: list[dict[str, Any]],
) -> None:
    """One step of the job a partition. `function` is the side under audit with its keywords, `step` the factory of the step."""
    declared = msgspec.convert(audit, Audit)
    backend, device_kind = traced_for(declared)
    assert declared.workload is not None
    with frozen_policy(declared.workload.remat), claimed_backend(backend):
        subject = Subject(steps, audit, function, roots)
        steps.begin(STEP)
        bench = bench_of(subject, step, keywords, {"binding": binding, "device_kind": device_kind})
        steps.finish(STEP, {"tampered": subject.tampered()})
        for partition in msgspec.convert(partitions, list[StepPartition]):
            steps.begin(partition.name)
            told, arrays = bench.run(partition)
            steps.finish(partition.name, {**told, "tampered": subject.tampered()}, arrays or None)


def bench_of(subject: Subject, step: dict[str, Any], keywords: dict[str, Any], about: dict[str, Any]) -> StepBench:
    """The bench of a named step. Raises AuditFileError where it is not there, CandidateRaised where it does not load."""
    try:
        factory = load_function(msgspec.convert(step, FunctionRef), subject.roots)
    except AuditError:
        raise
    except Exception as error:
        raise CandidateRaised(error, where=step["name"]) from error
    return StepBench(subject, factory, as_keywords(keywords), about)


class StepBench:
    """A side and the factory of a step that it is put into, at one choice of dtypes."""

    def __init__(
        self, subject: Subject, factory: Callable[..., Any], keywords: dict[str, Any], about: dict[str, Any]
    ) -> None:
        workload = subject.audit.workload
        assert workload is not None
        self.workload = workload
        self.factory = factory
        self.about = about
        self.local = _local(subject, keywords)
        self.inputs = load_function(workload.inputs, subject.roots) if workload.inputs else None

    def run(self, partition: StepPartition) -> tuple[dict[str, Any], Arrays]:
        """What is told of one partition, and the values of its runs."""
        told: dict[str, Any] = {}
        arrays: Arrays = {}
        try:
            step = self.lay(partition)
        except CandidateRaised as error:
            return {"refused": f"{error.type_name}: {error.message}"[:400], "at": error.location}, {}
        except Exception as error:
            return {"raised": f"{type(error).__name__}: {error}"[:400]}, {}
        told.update(_of_program(step))
        try:
            self._sequence(step, partition, told, arrays)
        except Exception as error:  # a deleted buffer, an error of XLA: an outcome of this partition
            told["raised"] = f"{type(error).__name__}: {error}"[:400]
        return told, arrays

    def lay(self, partition: StepPartition) -> LaidStep:
        """The compiled step. Raises as `laid_step.lay`."""
        return lay(self.workload, self.factory, self.local, partition, **self.about)

    def operands(self, partition: StepPartition) -> Arrays:
        """The operands as drawn, in float64."""
        return drawn(self.workload, self.inputs, partition.examples)

    def filled(self, arrays: Arrays, partition: StepPartition, where: list[np.ndarray], filling: str) -> Arrays:
        """Operands as drawn, rounded and laid out for a partition."""
        return laid_out(
            self.workload, represented(self.workload, arrays, self.about["binding"]), partition, where, filling
        )

    def _sequence(self, step: LaidStep, partition: StepPartition, told: dict[str, Any], arrays: Arrays) -> None:
        as_drawn = self.operands(partition)
        told["inputs"] = digests(as_drawn)
        places = places_of(self.workload, partition)

        def placed(filling: str, where: list[np.ndarray]) -> list[jax.Array]:
            return step.place(self.filled(as_drawn, partition, where, filling))

        now = placed(POISON, places)
        told["operands"] = msgspec.to_builtins(observed_operands(step, now, partition))
        found = []
        for update in range(self.workload.updates):
            told["update"] = update
            results = step(now)
            if not found:
                told["results"] = msgspec.to_builtins(observed_results(step, results))
            found.append(self.values(step, results))
            now = step.carried(now, results)
        arrays.update({name: np.stack([each[name] for each in found]) for name in found[0]})
        others = {"repeated": placed(POISON, repeated(places))}
        if not partition.whole:
            others[FINITE] = placed(FINITE, places)
        for name, operands_there in others.items():
            values = self.values(step, step(operands_there))
            arrays.update({f"{name}-{key}": value[None] for key, value in values.items()})

    def values(self, step: LaidStep, results: list[jax.Array]) -> Arrays:
        """Loss, gradients and state as they lie on each device of this process."""
        places = {"loss": self.workload.loss}
        places |= {f"gradient:{name}": place for name, place in self.workload.gradient.items()}
        places |= {f"state:{name}": place for name, place in self.workload.state.items()}
        return {name: copies(results[place], step.mesh) for name, place in places.items()}


def _local(subject: Subject, keywords: dict[str, Any]) -> Callable[..., Any]:
    """The side under audit as the step calls it, on the operands of one device."""
    function, left = subject.made(keywords, subject.audit.declared_dims)

    def local(*operands: Any) -> Any:
        return function(*operands, **left)

    return local


def _of_program(step: LaidStep) -> dict[str, Any]:
    text = step.compiled.as_text()
    names = [each.name for each in step.workload.operands]
    told: dict[str, Any] = {
        "program": step.program.digest,
        "kernels": [each.name for each in step.program.live_kernels()],
        "donated": [names[index] for index in step.program.donated],
        "check_vma": step.vma,
        "gathered": gathered_arrays(text),
        "compile_s": step.compile_s,
    }
    try:
        told["collectives"] = msgspec.to_builtins(collectives_of(text, step.mesh.size))
    except ValueError as error:
        told["collectives_unread"] = str(error)
    return told
