"""One mistake each in the call of `audit`: name -> (what is changed of a right call, what the error must say).

Imported by tests of behaviour and by the golden texts.
"""

from __future__ import annotations

from typing import Any

from kernel_audit.contract import declared
from kernel_audit.contract.declare import audit
from kernel_audit.contract.model import Agreement
from kernel_audit.contract.words import (
    baseline,
    between,
    control,
    derived,
    door,
    multiple,
    on,
    refuse,
    row_permutation,
    sequence,
    step_time,
    values,
)


def reference(x: Any, y: Any) -> Any:
    return x + y


def add(x: Any, y: Any, *, block: int = 8) -> Any:
    return x + y


def right(**changes: Any) -> dict[str, Any]:
    """The keywords of a right call of `audit`, with changes."""
    call: dict[str, Any] = {
        "baselines": ["kernel.py:reference"],
        "args": ["x: T[m=9, n=129]", "y: like(x)"],
        "results": ["out: T[m, n]"],
        "dtypes": {"T": ["f32", "bf16"]},
        "vary": {"m": any},
        "tuning": {"block": [8, 16]},
        "worth": step_time("train.py:step", 0.02),
    }
    call.update(changes)
    return call


def declare(**changes: Any) -> Any:
    """The audit that a call declares. A `function` among the changes is decorated, otherwise the candidate is named."""
    declared.clear()
    function = changes.pop("function", None)
    given = right(**changes)
    if function is not None:
        audit(**given)(function)
    else:
        audit(**{"candidate": "kernel.py:add", "name": "add", **given})
    return declared[-1]


def outer() -> Any:
    def inner(x: Any, y: Any) -> Any:
        return x + y

    return inner


# name -> (changes, part of `what`, part of `where`, part of `got`)
MISTAKES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "vary-unknown-dimension": ({"vary": {"mm": any}}, "unknown dimension", "vary['mm']", "did you mean 'm'?"),
    "vary-unreadable": ({"vary": {"m": "some"}}, "rule that cannot be read", "vary['m']", "'some'"),
    "vary-refuses-declared-size": ({"vary": {"m": multiple(8)}}, "does not admit", "vary['m']", "m=9"),
    "vary-between-refuses": ({"vary": {"m": between(1, 8)}}, "does not admit", "vary['m']", "m=9"),
    "vary-choices-refuse": ({"vary": {"m": [1, 2]}}, "does not admit", "vary['m']", "m=9"),
    "no-baseline": ({"baselines": []}, "no reference", "baselines", "an empty list"),
    "same-baseline-twice": ({"baselines": ["kernel.py:a", "other.py:a"]}, "two baselines", "baselines", "'a'"),
    "candidate-as-baseline": ({"baselines": ["kernel.py:add"]}, "its own baseline", "baselines", "kernel.py:add"),
    "baseline-place-unreadable": (
        {"baselines": ["kernel.py"]},
        "place that cannot be read",
        "baselines[0]",
        "'kernel.py'",
    ),
    "no-operands": ({"args": [], "dtypes": {}, "results": [], "vary": {}}, "no operands", "args", "an empty list"),
    "operand-unreadable": ({"args": ["x float32[m=1]"]}, "operand that cannot be read", "args[0]", "x float32[m=1]"),
    "operand-no-text": ({"args": [3]}, "operand that cannot be read", "args[0]", "3"),
    "operand-twice": ({"args": ["x: f32[m=1]", "x: f32[m]"]}, "two operands", "args[1]", "'x'"),
    "operand-like-nothing": (
        {"args": ["x: T[m=9, n=129]", "y: like(xx)"]},
        "like another",
        "args[1]",
        "did you mean 'x'?",
    ),
    "unknown-dtype": ({"args": ["x: float31[m=9, n=129]"]}, "unknown dtype", "args[0]", "'float31' (did you mean"),
    "unjudged-dtype": ({"args": ["x: f64[m=9, n=129]"]}, "cannot be judged yet", "args[0]", "'float64'"),
    "unjudged-choice": ({"dtypes": {"T": ["f32", "i64"]}}, "cannot be judged yet", "dtypes['T']", "'int64'"),
    "unknown-choice": ({"dtypes": {"T": ["bf61"]}}, "unknown dtype", "dtypes['T']", "did you mean 'bf16'"),
    "dtypes-as-a-list": ({"dtypes": ["f32", "bf16"]}, "dtypes of another form", "dtypes", "['f32', 'bf16']"),
    "vary-as-a-list": ({"vary": ["m"]}, "vary of another form", "vary", "['m']"),
    "modes-as-a-list": ({"modes": ["causal"]}, "modes of another form", "modes", "['causal']"),
    "fixed-as-text": ({"fixed": "mode"}, "fixed of another form", "fixed", "'mode'"),
    "dtype-without-choices": ({"dtypes": {"T": []}}, "without choices", "dtypes['T']", "[]"),
    "dtype-choices-as-text": ({"dtypes": {"T": "f32"}}, "without choices", "dtypes['T']", "'f32'"),
    "dtype-unused": ({"dtypes": {"T": ["f32"], "S": ["f32"]}}, "no operand uses", "dtypes", "'S'"),
    "size-below-one": ({"args": ["x: T[m=0, n=129]"]}, "below one", "args[0]", "m=0"),
    "fixed-size-below-one": ({"args": ["x: T[m=9, n=129, 0]"]}, "below one", "args[0]", "0"),
    "dimension-with-two-sizes": ({"args": ["x: T[m=9, n=129]", "y: T[m=8, n]"]}, "two sizes", "args[1]", "m=8"),
    "dimension-without-size": ({"args": ["x: T[m=9, n]"]}, "without a size", "args", "'n' with no size"),
    "result-without-size": ({"results": ["out: T[m, k]"]}, "without a size", "results", "'k' with no size"),
    "result-named-like-operand": ({"results": ["x: T[m, n]"]}, "two operands of one name", "results", "'x'"),
    "shapes-unknown-dimension": ({"shapes": [{"m": 1, "n": 129, "k": 2}]}, "unknown dimension", "shapes", "'k'"),
    "shapes-dimension-left-out": ({"shapes": [{"m": 1}]}, "leaves a dimension out", "shapes", "{'m': 1}"),
    "shapes-not-admitted": ({"shapes": [{"m": 1, "n": 7}]}, "does not admit", "shapes", "'n': 7"),
    "sequence-empty": ({"fixtures": [sequence("s", seed=1, shapes=[])]}, "empty list of shapes", "fixtures: s", "[]"),
    "sequence-shape-twice": (
        {"fixtures": [sequence("s", seed=1, shapes=[{"m": 1, "n": 129}] * 2)]},
        "shape stated twice",
        "fixtures: s",
        "{'m': 1, 'n': 129}",
    ),
    "sequence-twice": (
        {"fixtures": [sequence("s", seed=1, shapes=[{"m": 1, "n": 129}])] * 2},
        "two fixture sequences",
        "fixtures",
        "s, s",
    ),
    "tuning-unknown-parameter": (
        {"function": add, "tuning": {"blok": [8]}},
        "parameter that the candidate does not have",
        "'blok'",
        "did you mean 'block'?",
    ),
    "tuning-without-choices": ({"tuning": {"block": []}}, "without choices", "tuning['block']", "[]"),
    "element-limit": ({"element_limit": 0}, "limit that no plan can keep", "element_limit", "0"),
    "tuning-of-another-form": ({"tuning": ["tpu"]}, "tuning of another form", "tuning", "['tpu']"),
    "tuning-of-nothing": ({"tuning": []}, "tuning of another form", "tuning", "[]"),
    "tuning-for-no-target": ({"tuning": [on(block=[8])]}, "choices for no target", "tuning[0]", "on(block=[8])"),
    "tuning-for-what-is-no-target": (
        {"tuning": [on("tpu", block=[8]), on("cpu", block=[16])]},
        "target that cannot be read",
        "tuning[1]",
        "'cpu'",
    ),
    "tuning-on-without-choices": ({"tuning": [on("tpu", block=8)]}, "without choices", "tuning[0]['block']", "8"),
    "tuning-not-for-a-target": (
        {"tuning": [on("tpu", block=[8])], "targets": ["tpu:v5e", "gpu:h200"]},
        "target without a configuration",
        "tuning",
        "only for tpu",
    ),
    "tuning-and-mode-on-a-target": (
        {"tuning": [on("tpu"), on("gpu", block=[8])], "modes": {"block": [1]}},
        "stated twice",
        "block",
        "'block'",
    ),
    "tuning-and-mode": ({"modes": {"block": [1]}}, "stated twice", "block", "'block'"),
    "lambda-as-baseline": ({"baselines": [lambda x, y: x]}, "cannot find", "baselines[0]", "<lambda>"),
    "lambda-as-candidate": ({"candidate": lambda x, y: x}, "cannot find", "candidate", "<lambda>"),
    "inner-function-as-oracle": ({"oracle": outer()}, "cannot find", "oracle", "outer.<locals>.inner"),
    "unknown-arithmetic": ({"arithmetic": "f23"}, "unknown arithmetic dtype", "arithmetic", "did you mean 'f32'"),
    "integer-arithmetic": ({"arithmetic": "i32"}, "no float dtype", "arithmetic", "int32"),
    "unknown-family": ({"values": values("norml")}, "unknown value family", "values", "did you mean 'normal'"),
    "unknown-subnormals": ({"values": values(subnormals="keep")}, "unknown policy", "subnormals", "'keep'"),
    "unknown-nonfinite": ({"values": values(nonfinite="propagated")}, "unknown policy", "nonfinite", "'propagate'"),
    "invariant-unknown-dimension": (
        {"invariants": [row_permutation("mm")]},
        "unknown dimension",
        "row-permutation",
        "did you mean 'm'?",
    ),
    "invariant-without-results": (
        {"invariants": [row_permutation("m")], "results": None},
        "no result has",
        "row-permutation",
        "'m'",
    ),
    "refusal-twice": (
        {"refuses": [refuse("r", x="f32[1,1]", raises=ValueError)] * 2},
        "two refusals",
        "refuses: r",
        "'r'",
    ),
    "refusal-of-nothing": ({"refuses": [refuse("r", raises=ValueError)]}, "changes nothing", "refuses: r", "no change"),
    "refusal-unknown-operand": (
        {"refuses": [refuse("r", z="f32[1,1]", raises=ValueError)]},
        "unknown operand",
        "refuses: r",
        "'z'",
    ),
    "refusal-unreadable": (
        {"refuses": [refuse("r", x="f32[m]", raises=ValueError)]},
        "concrete array",
        "refuses: r",
        "f32[m]",
    ),
    "factor-outside-reason": ({"agreement": derived(17.0)}, "outside reason", "agreement", "17.0"),
    "negative-tolerance": (
        {"agreement": Agreement(kind="ulp", ulps=-1, derivation="none")},
        "negative tolerance",
        "agreement",
        "-1",
    ),
    "margin-no-share": ({"worth": step_time("s.py:f", 2.0)}, "no share", "worth", "2.0"),
    "unspeakable-name": ({"name": "two words"}, "cannot be a name", "name", "'two words'"),
    "baseline-object-twice": (
        {"baselines": [baseline("a.py:f", strong="one", name="same"), baseline("b.py:g", strong="two", name="same")]},
        "two baselines",
        "baselines",
        "'same'",
    ),
    "targets-as-text": ({"targets": "tpu:v5e"}, "another kind", "audit 'add'", "$.targets"),
    "unknown-target": ({"targets": ["tpux"]}, "target that cannot be read", "targets", "'tpux'"),
    "agreement-as-text": ({"agreement": "exact"}, "another kind", "audit 'add'", "$.agreement"),
    "size-as-text": ({"shapes": [{"m": "1", "n": 129}]}, "another kind", "audit 'add'", "$.shapes"),
    "parameter-no-json": ({"fixed": {"kind": object}}, "another kind", "audit 'add'", "type"),
    "parameter-not-finite": ({"fixed": {"scale": float("nan")}}, "another kind", "audit 'add'", "not finite"),
    "choice-twice": ({"tuning": {"block": [8, 16, 8]}}, "choice stated twice", "block", "8"),
    "family-twice": ({"values": values("normal", "normal")}, "family stated twice", "values", "'normal'"),
    "control-of-the-tools-name": ({"controls": [control("zeros", "k.py:z")]}, "two controls", "controls", "'zeros'"),
    "refusal-of-the-tools-name": (
        {"refuses": [refuse("door", x="f32[1,1]", raises=ValueError)]},
        "tool uses itself",
        "refuses: door",
        "'door'",
    ),
    "sequence-with-a-slash": (
        {"fixtures": [sequence("a/b", seed=1, shapes=[{"m": 1, "n": 129}])]},
        "cannot be a name",
        "fixtures",
        "'a/b'",
    ),
    "frequencies-of-other-regimes": ({"frequencies": {"float32": 1.0}}, "of other regimes", "frequencies", "float32"),
    "frequencies-that-sum-to-less": (
        {"frequencies": {"float32": 0.5, "bfloat16": 0.4}},
        "not shares of a whole",
        "frequencies",
        "together 0.9",
    ),
    "ablations-as-a-list": ({"ablations": [add]}, "ablations of another form", "ablations", "function add"),
    "ablation-as-a-number": ({"ablations": {"flat": 3}}, "ablation of another form", "ablations['flat']", "3"),
    "ablation-as-a-lambda": ({"ablations": {"flat": lambda x, y: x}}, "cannot find", "ablations['flat']", "<lambda>"),
    "ablation-place-unreadable": (
        {"ablations": {"flat": "kernel.py"}},
        "place that cannot be read",
        "ablations['flat']",
        "'kernel.py'",
    ),
    "ablation-named-in-two-words": (
        {"ablations": {"one buffer": {"block": 4}}},
        "cannot be a name",
        "ablations['one buffer']",
        "'one buffer'",
    ),
    "ablation-of-a-baselines-name": (
        {"ablations": {"reference": "kernel.py:flat"}},
        "name that is taken",
        "ablations['reference']",
        "'reference'",
    ),
    "ablation-of-the-candidates-name": (
        {"ablations": {"candidate": "kernel.py:flat"}},
        "name that is taken",
        "ablations['candidate']",
        "'candidate'",
    ),
    "ablation-that-is-the-candidate": (
        {"ablations": {"flat": "kernel.py:add"}},
        "changes nothing",
        "ablations['flat']",
        "kernel.py:add",
    ),
    "ablation-without-a-change": ({"ablations": {"flat": {}}}, "changes nothing", "ablations['flat']", "{}"),
    "ablation-as-it-was": (
        {"ablations": {"flat": {"depth": 2}}, "fixed": {"depth": 2}},
        "changes nothing",
        "ablations['flat']",
        "{'depth': 2}",
    ),
    "ablation-of-a-mode": (
        {"ablations": {"flat": {"causal": False}}, "modes": {"causal": [False, True]}},
        "changes what is promised",
        "ablations['flat']",
        "'causal'",
    ),
    "ablation-of-the-door": (
        {"ablations": {"flat": {"mode": "cpu"}}, "door": door(mode="tpu", raises=RuntimeError)},
        "changes what is promised",
        "ablations['flat']",
        "'mode'",
    ),
    "ablation-unknown-keyword": (
        {"function": add, "ablations": {"flat": {"blok": 4}}},
        "parameter that the candidate does not have",
        "ablations['flat']: 'blok'",
        "did you mean 'block'?",
    ),
    "ablation-without-the-tuning": (
        {"ablations": {"flat": reference}},
        "parameter that the ablation does not have",
        "ablations['flat']: 'block'",
        "'block'",
    ),
    "ablation-keyword-no-json": ({"ablations": {"flat": {"block": object}}}, "another kind", "audit 'add'", "type"),
    "no-program-allowed": ({"program_limit": 0}, "limit that no plan can keep", "program_limit", "0"),
}
