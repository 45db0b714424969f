"""Traces a callable once, and gives the traced program in each mode: to run, to export, to read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import export as jax_export

from kernel_audit.errors import CaptureError
from kernel_audit.program import compat, placement
from kernel_audit.program.canonical import canonical_digest, without_addresses
from kernel_audit.program.describe import described, platform_of
from kernel_audit.program.executable import Executable, advice_left_out, array_text
from kernel_audit.program.kernels import find_kernels
from kernel_audit.program.known import refuse_by_name
from kernel_audit.program.modes import Generic, Mode, Target, TpuInterpreter, interpret_value
from kernel_audit.program.packed import Sidecar, pack
from kernel_audit.program.pipelines import EmittedPipeline, recorded_pipelines
from kernel_audit.program.raised import CandidateRaised, without_folders
from kernel_audit.program.rewrite import set_interpret
from kernel_audit.records import CaptureRecord, Kernel


def capture(
    fn: Callable[..., Any],
    operands: Sequence[Any],
    *,
    keywords: Mapping[str, Any] | None = None,
    device_kind: str = "TPU v5 lite",
    donate: Sequence[int] | None = None,
) -> Program:
    """`fn(*operands, **keywords)` traced once, as a Program; `fn` is never called again.

    `operands` are arrays, `jax.ShapeDtypeStruct`s or pytrees of them (of a sharded program with a `NamedSharding`
    over a Mesh or an AbstractMesh, which needs no devices). Static arguments go into `keywords`. `device_kind` is the
    device that Pallas sees. `donate` lists flat operands to donate; None takes them from a candidate that is one
    jitted function.

    Raises CandidateRaised with what the candidate raised, EnvironmentFault for an unsupported JAX.
    """
    compat.require_supported_jax()
    leaves, in_tree = jax.tree.flatten(tuple(operands))
    specs = [_spec(leaf) for leaf in leaves]
    out_tree: Any = None

    def flat(*flat_operands: Any) -> list[Any]:
        nonlocal out_tree
        results = fn(*jax.tree.unflatten(in_tree, flat_operands), **dict(keywords or {}))
        flat_results, out_tree = jax.tree.flatten(results)
        return flat_results

    with described(device_kind), recorded_pipelines() as pipelines:
        try:
            jaxpr = jax.make_jaxpr(flat)(*specs)
        except (Exception, SystemExit) as error:
            raise CandidateRaised(error, where=_name_of(fn)) from error
    _refuse_leaked_tracers(jaxpr, where=_name_of(fn))
    donated = _donated(jaxpr) if donate is None else tuple(sorted(donate))
    return Program(jaxpr, specs, in_tree, out_tree, donated, device_kind, pipelines)


class Program:
    """One captured program. `jaxpr` is as traced, in the author's own mode; nothing here changes it.

    `digest` identifies the program whatever the mode ("sha256:<hex>"); it belongs to one JAX version. `kernels` are
    records, `operands` and `results` texts such as "float32[8,128]", `donated` flat operand indices, `out_tree` the
    tree of the results, `specs` one ShapeDtypeStruct for each flat operand, `pipelines` what each `emit_pipeline` that
    was traced for it was given.
    """

    def __init__(
        self,
        jaxpr: Any,
        specs: list[jax.ShapeDtypeStruct],
        in_tree: Any,
        out_tree: Any,
        donated: tuple[int, ...],
        device_kind: str,
        pipelines: Sequence[EmittedPipeline] = (),
    ) -> None:
        self.jaxpr = jaxpr
        self.specs = specs
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.donated = donated
        self.device_kind = device_kind
        self.pipelines = tuple(pipelines)
        self.operands = [array_text(each.shape, each.dtype) for each in specs]
        self.results = [array_text(each.shape, each.dtype) for each in jaxpr.out_avals]
        self.kernels = find_kernels(jaxpr)
        trees = [without_addresses(str(tree)) for tree in (in_tree, out_tree)]
        self.digest = canonical_digest((jaxpr, trees, donated))
        self._executables: dict[Mode, Executable] = {}

    def live_kernels(self) -> list[Kernel]:
        """The kernels that a result depends on; a compiler drops the others. Described as in the generic interpreter:
        the TPU interpreter, where the author asks for it, has effects that keep any kernel alive."""
        return find_kernels(compat.without_dead_code(self.in_mode(Generic())))

    def in_mode(self, mode: Mode) -> Any:
        """The jaxpr with every kernel set to run in `mode`."""
        return set_interpret(self.jaxpr, interpret_value(mode), platform_of(self.device_kind))

    def executable(self, mode: Mode) -> Executable:
        """A kept callable, list of arrays to list of arrays; the same object when asked again.

        Raises EnvironmentFault for a known fault of this JAX, or too few devices for a sharded program.
        """
        refuse_by_name(self, mode)
        if mode not in self._executables:
            self._executables[mode] = self.fresh_executable(mode)
        return self._executables[mode]

    def fresh_executable(self, mode: Mode) -> Executable:
        """A callable of its own, traced and compiled when it is first called. Raises EnvironmentFault as `executable`."""
        axes = placement.mesh_axes(self.specs)
        shardings = placement.lay_over(axes, [placement.spec_of(each) for each in self.specs]) if axes else None
        options: dict[str, Any] = {}
        if not isinstance(mode, Target):  # on a real target the device speaks for itself
            num_cores = mode.num_cores if isinstance(mode, TpuInterpreter) else 1
            options["surroundings"] = functools.partial(described, self.device_kind, num_cores)
        return Executable(
            self._flat(mode),
            self.specs,
            donated=self.donated,
            shardings=shardings,
            simulated=isinstance(mode, TpuInterpreter),
            **options,
        )

    def _flat(self, mode: Mode) -> Callable[..., list[Any]]:
        jaxpr = self.in_mode(mode)

        def program(*leaves: Any) -> list[Any]:
            return compat.evaluate(jaxpr, leaves)

        return program

    def export(self, mode: Mode) -> bytes:
        """The program for `mode` as bytes: for the CPU in Generic, for the target's platform in Target.

        Raises CaptureError where JAX refuses: host callbacks (the TPU interpreter is made of them), a kernel that
        does not lower for the target.
        """
        refuse_by_name(self, mode)
        if isinstance(mode, TpuInterpreter):
            raise self._not_exportable(
                mode, "the TPU interpreter runs by host callbacks, in the capturing process only"
            )
        platform = "cpu" if isinstance(mode, Generic) else mode.platform
        jitted = jax.jit(self._flat(mode), donate_argnums=self.donated)
        checks = compat.allowed_custom_calls(platform)
        with described(self.device_kind), compat.folders_left_out(), advice_left_out():
            try:
                exporter = jax_export.export(jitted, platforms=[platform], disabled_checks=checks)
                exported = exporter(*self.specs).serialize()
            except Exception as error:
                reason = f"{type(error).__name__}: {without_folders(str(error))}"
                raise self._not_exportable(mode, reason) from error
        return pack(self._sidecar(mode.name, platform), bytes(exported))

    def _not_exportable(self, mode: Mode, reason: str) -> CaptureError:
        names = ", ".join(kernel.name for kernel in self.kernels) or "none"
        return CaptureError(
            "the program cannot be exported",
            stage="export",
            where=f"mode {mode.name}, kernels {names}",
            got=reason,
            settled={"operands": ", ".join(self.operands)},
        )

    def _sidecar(self, mode: str, platform: str) -> Sidecar:
        return Sidecar(
            digest=self.digest,
            mode=mode,
            platform=platform,
            jax_version=jax.__version__,
            device_kind=self.device_kind,
            donated=list(self.donated),
            kernels=self.kernels,
            operands=self.operands,
            results=self.results,
            mesh=placement.mesh_axes(self.specs),
            specs=[placement.spec_of(each) for each in self.specs],
            out_tree=without_folders(without_addresses(str(self.out_tree))),
        )

    def record(
        self,
        *,
        key: str,
        side: str,
        configuration: Mapping[str, Any],
        mode: Mapping[str, Any],
        exports: Mapping[str, str],
    ) -> CaptureRecord:
        """The record of this program: `exports` maps "generic" and "target" to digests of the exported bytes."""
        return CaptureRecord(
            key=key,
            side=side,
            configuration=dict(configuration),
            mode=dict(mode),
            operands=self.operands,
            results=self.results,
            digest=self.digest,
            kernels=self.kernels,
            donated=list(self.donated),
            exports=dict(exports),
            jax_version=jax.__version__,
            simulated_device=self.device_kind,
            live_kernels=len(self.live_kernels()),
        )


def _spec(leaf: Any) -> jax.ShapeDtypeStruct:
    """Shape, dtype and a named sharding of an operand; a Python scalar stays weakly typed."""
    if not hasattr(leaf, "dtype"):
        return jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.result_type(leaf), weak_type=True)
    sharding = getattr(leaf, "sharding", None)
    named = sharding if isinstance(sharding, jax.sharding.NamedSharding) else None
    dtype = leaf.dtype
    if not jax.dtypes.issubdtype(dtype, jax.dtypes.extended):  # as JAX would: no 64 bits unless they are enabled
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=named)


def _refuse_leaked_tracers(jaxpr: Any, *, where: str) -> None:
    """A value kept from another trace becomes a constant of this one and would fail only when the program runs."""
    leaked = [each for each in compat.constants(jaxpr) if isinstance(each, compat.Tracer)]
    if leaked:
        what = ", ".join(array_text(each.aval.shape, each.aval.dtype) for each in leaked)
        error = jax.errors.UnexpectedTracerError(f"the candidate uses a value kept from an earlier trace: {what}")
        raise CandidateRaised(error, where=where)


def _donated(jaxpr: Any) -> tuple[int, ...]:
    """The donation of a candidate that is one jitted function, as flat operand indices."""
    outer = compat.open_jaxpr(jaxpr)
    if len(outer.eqns) != 1 or "donated_invars" not in outer.eqns[0].params:
        return ()
    equation = outer.eqns[0]
    positions = {variable: position for position, variable in enumerate(outer.invars)}
    donated = zip(equation.invars, equation.params["donated_invars"], strict=True)
    variables = [each for each, given in donated if given and not isinstance(each, compat.Literal)]
    return tuple(sorted(positions[each] for each in variables if each in positions))


def _name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
