"""An audit as plain records: what a worker makes of an audit file, and all that the parent ever reads of it."""

from __future__ import annotations

from typing import Any

from kernel_audit.contract.tuning import Tuning, choices_of, configurations
from kernel_audit.records import Record


class FunctionRef(Record, kw_only=True):
    """A function by place: `module` (dotted) or `file` (relative to the audit's folder), and its name there.

    `factory`: it is no kernel but makes one. It is called with the configuration, the mode, the fixed keywords, and the
    sizes of those dimensions that are among its parameters; what it gives back takes the operands.
    """

    module: str | None = None
    file: str | None = None
    name: str
    factory: bool = False

    @property
    def text(self) -> str:
        return f"{self.module or self.file}:{self.name}"


class Dimension(Record, kw_only=True):
    """A named dimension: its declared size and what sizes the contract admits.

    `vary` is "fixed", "any" (one or more), "multiple" (of `values[0]`), "between" (`values[0]` to `values[1]`, both
    included) or "choices".
    """

    name: str
    size: int
    vary: str = "fixed"
    values: list[int] = []

    def admits(self, size: int) -> bool:
        """Whether the contract promises anything at this size."""
        if size < 1:
            return False
        if self.vary == "any":
            return True
        if self.vary == "multiple":
            return size % self.values[0] == 0
        if self.vary == "between":
            return self.values[0] <= size <= self.values[1]
        return size in (self.values or [self.size])


class Operand(Record, kw_only=True):
    """An array by name: `dtype` is a dtype's name or a dtype variable; `dims` are dimension names or fixed sizes."""

    name: str
    dtype: str
    dims: list[str | int]

    def shape(self, dims: dict[str, int]) -> tuple[int, ...]:
        """Its shape when the named dimensions have these sizes."""
        return tuple(dims[each] if isinstance(each, str) else each for each in self.dims)


class Precision(Record, kw_only=True):
    """How results are rounded: arithmetic in one dtype, `casts` roundings to the result's dtype at the very end.

    `oracle` is the dtype in which the oracle calculates: the arithmetic itself where agreement is exact, else float64.
    """

    arithmetic: str
    casts: int = 1
    oracle: str


class Agreement(Record, kw_only=True):
    """When a result agrees with the represented-input oracle.

    "exact": the same value, NaN matching NaN. "ulp": within `ulps` units in the last place of the result's dtype.
    "derived": within a budget measured from the baseline's own arithmetic (see oracle/budget.py), times `factor`.
    """

    kind: str
    ulps: int = 0
    factor: float = 1.0
    derivation: str


class Values(Record, kw_only=True):
    """What the contract promises for unusual values.

    `subnormals`: "preserve", "flush" (operands and results become zeros of their sign) or "either". `nonfinite`:
    "propagate" (as IEEE arithmetic does) or "unspecified" (run and recorded, not judged). `signed_zeros`: whether the
    sign of a zero counts. `families`: the value families to draw.
    """

    families: list[str]
    subnormals: str = "either"
    nonfinite: str = "unspecified"
    signed_zeros: bool = False


class Invariant(Record, kw_only=True):
    """`row-permutation`: permuting dimension `dim` of every operand that has it permutes the results, bit for bit."""

    kind: str
    dim: str


class Refusal(Record, kw_only=True):
    """An input that must be rejected before launch.

    `operands` replaces operands by name ("bfloat16[8,128]"; the empty text leaves one out); `keywords` are passed to the
    candidate; `raises` is the exception type's name; each of `names` must be in its message.
    """

    name: str
    operands: dict[str, str] = {}
    keywords: dict[str, Any] = {}
    raises: str
    names: list[str] = []


class Door(Record, kw_only=True):
    """The keywords by which a candidate itself is told to run on a target: `raises` without one, never simulates.

    `placed`: it raises also for operands that do not lie on the target. `runs_closed`: without these keywords it runs here as
    it stands.
    """

    keywords: dict[str, Any]
    raises: str
    placed: bool = False
    runs_closed: bool = False

    def checks(self) -> list[str]:
        """What is tried of it, by name."""
        further = [name for name, asked in (("door-unplaced", self.placed), ("door-closed", self.runs_closed)) if asked]
        return ["door", "door-opened", *further]


class Probe(Record, kw_only=True):
    """A builder of the candidate's kernel without its guard, to ask compilers what they take; `sweeps` are parameters that only
    the builder has, with the choices to try."""

    function: FunctionRef
    sweeps: dict[str, list[Any]] = {}


class Baseline(Record, kw_only=True):
    """An ordinary or library formulation under the same contract, with a line why it is strong."""

    name: str
    function: FunctionRef
    strong: str


class Ablation(Record, kw_only=True):
    """A twin of the candidate with one optimisation off, under the same contract and called as the candidate is: another
    `function`, or, where that is None, the candidate itself with `changed` keywords. It informs, and decides nothing."""

    name: str
    function: FunctionRef | None = None
    changed: dict[str, Any] = {}


class Oracle(Record, kw_only=True):
    """`independent`: host NumPy written by hand. `lifted`: the first baseline in float64; shares its mathematics."""

    kind: str
    function: FunctionRef | None = None


class ControlFunction(Record, kw_only=True):
    """A wrong variant of the oracle, written like it, which the comparison must reject."""

    name: str
    function: FunctionRef


class Sequence(Record, kw_only=True):
    """Fixtures drawn one after another from one generator: `default_rng(seed)`, operands in order, shapes in order."""

    name: str
    seed: int
    shapes: list[dict[str, int]]


class Worth(Record, kw_only=True):
    """What is worth having: one objective with its margin (a share), others as margins not to lose.

    Objective "not-stated": the audit says nothing of it, so that nothing can be decided. `break_even`: the number of steps
    after which what a cold compile costs more than the baseline's has to be earned back; None where it does not matter.
    """

    objective: str = "not-stated"
    margin: float = 0.0
    step: str | None = None
    not_to_lose: dict[str, float] = {}
    break_even: int | None = None

    @property
    def session_margin(self) -> float:
        """What a timing session must be able to tell: the margin, between a hundredth and a twentieth."""
        return min(max(self.margin, 0.01), 0.05)


class StepPrecision(Record, kw_only=True):
    """Dtypes of the complete step: what it calculates in, what its parameters are kept in, what its results have."""

    compute: str
    parameters: str
    output: str


class Workload(Record, kw_only=True):
    """The complete sharded step that the candidate is a part of, frozen: what it computes, on what, and who says what is right.

    `step` makes the step: `step(local, mesh, counts, **options) -> (function, specs)` (docs/workload.md). `operands` are those
    of the step, `declared` their stated sizes, `dims` sizes that a CPU can run. `examples` is the dimension along which
    examples lie: operands that have it are split over all devices, the others are on every device. `state` maps an operand to
    the place of the result that replaces it in the next step, `gradient` to that of its gradient, where the step gives one;
    `loss` is the place of the loss.

    `host` is the reference: host NumPy in float64, `host(*operands) -> (loss, {operand: gradient}, {operand: new value})`, of
    any number of examples; None: nothing but a falling loss can be seen. `inputs(rng, dims) -> {operand: array}` makes the
    operands from `default_rng(seed)`; None: standard normal, in order. `within` bounds loss, gradients and state after each of
    `updates` steps: normwise relative to the reference. `candidate_step`: the step that comes with the candidate, where it has
    one of its own. `region` is the candidate's place in the step, `remat` the checkpoint policy of the step.
    """

    step: FunctionRef
    host: FunctionRef | None = None
    inputs: FunctionRef | None = None
    candidate_step: FunctionRef | None = None
    options: dict[str, Any] = {}
    operands: list[Operand]
    declared: dict[str, int]
    dims: dict[str, int]
    examples: str
    state: dict[str, int]
    loss: int
    gradient: dict[str, int] = {}
    seed: int = 0
    updates: int = 5
    within: float = 1e-6
    precision: StepPrecision
    region: str = "local-arithmetic"
    remat: str = "none"


class Audit(Record, kw_only=True):
    """One question about one candidate, frozen. Its digest is the question's identity.

    Without baselines, or without a stated worth, it can be inspected and compiled, and nothing else.

    `part` says which named part of the workload the candidate is; empty where the audit does not say.
    """

    schema: str = "kernel-audit/audit/1"
    name: str
    candidate: FunctionRef
    baselines: list[Baseline]
    ablations: list[Ablation] = []
    oracle: Oracle
    operands: list[Operand]
    results: list[Operand]
    dimensions: list[Dimension]
    dtypes: dict[str, list[str]]
    modes: dict[str, list[Any]] = {}
    tuning: Tuning = {}
    fixed: dict[str, Any] = {}
    precision: Precision
    agreement: Agreement
    values: Values
    invariants: list[Invariant] = []
    refusals: list[Refusal] = []
    door: Door | None = None
    probe: Probe | None = None
    controls: list[ControlFunction] = []
    shapes: list[dict[str, int]] = []
    sequences: list[Sequence] = []
    alone: bool = False
    program_limit: int = 256
    element_limit: int = 1 << 26
    targets: list[str] | None = None
    worth: Worth = Worth()
    workload: Workload | None = None
    part: str = ""
    prediction: str = ""
    frequencies: dict[str, float] = {}

    def dimension(self, name: str) -> Dimension:
        return next(each for each in self.dimensions if each.name == name)

    @property
    def missing_to_decide(self) -> list[str]:
        """The words of `audit` that are not stated and without which a kernel cannot be checked or decided about."""
        stated = {"baselines": bool(self.baselines), "worth": self.worth.objective != "not-stated"}
        return [word for word, there in stated.items() if not there]

    @property
    def measured_precision(self) -> dict[str, str]:
        """What a receipt says of precision: the contract's, and that products which say none of their own are JAX's default."""
        told = {
            "arithmetic": self.precision.arithmetic,
            "casts": str(self.precision.casts),
            "oracle": self.precision.oracle,
        }
        return {**told, "default_matmul_precision": "default"}

    @property
    def declared_dims(self) -> dict[str, int]:
        """Each dimension at its declared size."""
        return {each.name: each.size for each in self.dimensions}

    def dtype_bindings(self) -> list[dict[str, str]]:
        """Every choice of the dtype variables; one empty choice where there is none."""
        return choices_of(self.dtypes)

    def mode_choices(self) -> list[dict[str, Any]]:
        """Every choice of the modes; one empty choice where there is none."""
        return choices_of(self.modes)

    def configurations(self) -> list[dict[str, Any]]:
        """Every choice of tuning, in order, whatever target it is for."""
        return configurations(self.tuning)

    def configurations_for(self, target: str) -> list[dict[str, Any]]:
        """Those declared for a target, such as "tpu:v5e", or for some target of a kind, "tpu"; perhaps none."""
        return configurations(self.tuning, target)

    def admits(self, dims: dict[str, int]) -> bool:
        """Whether the contract promises anything at these sizes."""
        return all(each.admits(dims[each.name]) for each in self.dimensions)
