"""`verify`: whether a model computes what its source does, at every size and in every execution that is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sardonyx.backends.onnx.parity import provider_name
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.module import main_function
from sardonyx.dialects.types import is_tensor
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.verify.align import same_inputs, value_hashes
from sardonyx.frontend.verify.bindings import bindings_of, fixed_dims, free_dims, frozen_dims, parse_dims
from sardonyx.frontend.verify.executions import Execution, executions
from sardonyx.frontend.verify.inputs import Case, cases_of_generator, generate, load_cases
from sardonyx.frontend.verify.locate import Culprit, locate, maker_of, moved
from sardonyx.frontend.verify.observe import Memory, Plan, Trace, observe
from sardonyx.frontend.verify.probe import locate_execution
from sardonyx.frontend.verify.sources import Outputs, Source, feeds_for, graph_source, plain, source_of
from sardonyx.frontend.verify.tolerance import KIND_ORDER, Difference, Limits, Tolerance, compare, compare_outputs
from sardonyx.frontend.verify.unreadable import explain

Metric = Callable[[Mapping[str, Any], Mapping[str, Any]], float]
"""A task metric over expected and actual outputs by name."""

PASSED, FAILED, UNTESTED, REFUSED = "passed", "failed", "untested", "refused"
SEMANTICS = "semantics"
"""The execution that compares the reference of the model with the reference of its source: what separates the two is
neither precision nor a runtime, so that its limits are close, and a changed epsilon shows."""
CLOSE = Limits({k: Tolerance(rtol=2e-5, atol=2e-5) for k in ("float32", "float64")})
SUSPICIOUS = 5e-6
"""Of the scale: a difference of the two references that rounding can make, but seldom does. Then a node that moves what
it makes (`locate.moved`) is at fault, though the outputs are within the limits."""
SCALES = (1, 16, 64)
"""How much larger dims are made, one after the other, where the source refuses all generated inputs."""


@dataclass(frozen=True)
class CaseResult:
    """One execution on one set of inputs.

    Attributes:
        execution: What ran.
        origin, binding: Which inputs.
        status: 'passed', 'failed', 'untested' (the execution is not to be had here) or 'refused' (the source itself
            refuses these inputs, so that nothing can be said).
        differences: One for each output.
        error: The message of what went wrong.
        culprit: The node at fault, where one was found.
        metrics: The user's metrics.
    """

    execution: str
    origin: str
    binding: Mapping[str, int]
    status: str
    differences: tuple[Difference, ...] = ()
    error: str = ""
    culprit: Culprit | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "execution": self.execution,
            "inputs": self.origin,
            "dims": dict(self.binding),
            "status": self.status,
            "outputs": [d.to_json() for d in self.differences],
        }
        if self.error:
            found["error"] = self.error
        if self.culprit is not None:
            found["culprit"] = self.culprit.to_json()
        if self.metrics:
            found["metrics"] = dict(self.metrics)
        return found


@dataclass(frozen=True)
class Worst:
    """The inputs with the largest error: what was expected and what came."""

    execution: str
    case: Case
    expected: Mapping[str, Any]
    actual: Mapping[str, Any]
    use: float

    def arrays(self) -> dict[str, Any]:
        """What a file of it holds: `inputs/…`, `expected/…` and `actual/…`, as far as they are arrays."""
        groups = {"inputs": self.case.feeds, "expected": self.expected, "actual": self.actual}
        return {
            f"{group}/{name}": value
            for group, values in groups.items()
            for name, value in values.items()
            if isinstance(value, np.ndarray)
        }


@dataclass(frozen=True)
class Verification:
    """What a verification found.

    Attributes:
        model, source: What was compared.
        limits: The tolerances.
        dims: The dynamic dims of the model, which stayed symbolic.
        frozen: Dims that sizes were asked for and that the model has not: it was exported for one size.
        results: By case and execution.
        worst: The inputs with the largest error.
        records: Each set of inputs that the source took, with its outputs.
    """

    model: str
    source: str
    limits: Limits
    dims: tuple[str, ...]
    frozen: tuple[str, ...]
    results: tuple[CaseResult, ...]
    worst: Worst | None = None
    records: tuple[tuple[Case, Mapping[str, Any]], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing failed, something passed, and every execution that could be tried was."""
        return not self.frozen and not self.failures and any(r.status == PASSED for r in self.results)

    @property
    def failures(self) -> list[CaseResult]:
        return [r for r in self.results if r.status == FAILED]

    @property
    def untested(self) -> dict[str, str]:
        """Executions that could not be tried, with the reason."""
        return {r.execution: r.error for r in self.results if r.status == UNTESTED}

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "source": self.source,
            "ok": self.ok,
            "dims": list(self.dims),
            "frozen": list(self.frozen),
            **self.limits.to_json(),
            "results": [r.to_json() for r in self.results],
        }


def verify(
    source: Any,
    model: Any,
    *,
    inputs: Any = None,
    dims: Mapping[str, Sequence[int]] | Sequence[str] | None = None,
    providers: Sequence[str] = ("cpu",),
    rtol: float | None = None,
    atol: float | None = None,
    limits: Limits | None = None,
    metrics: Mapping[str, Metric] | None = None,
    seed: int = 0,
    locate_culprit: bool = True,
    only: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Verification:
    """Hold a model against its source.

    Args:
        source: A callable over arrays, a module of torch, a graph, a model, or the path of a model or of recorded
            outputs (`.npz`); None: the model's executions are held against its reference.
        model: A path to an ONNX model, an `OnnxModel` or a `ModelGraph`.
        inputs: A path (`.npz`, `.npy`), a generator function, a dict by name, a list of those; None: generated.
        dims: The sizes that each dynamic dim is tried at, `{"batch": (1, 8)}` or `["batch=1,8"]`; others are tried at
            an ordinary size, one, and an odd one.
        providers: onnxruntime's execution providers; those that are not installed count as untested.
        rtol, atol: Other limits than the dtype's own.
        limits: All limits; by default those of the dtypes, by the model's narrowest arithmetic.
        metrics: Task metrics over expected and actual outputs.
        seed: Of generated inputs.
        locate_culprit: Whether the node at fault is looked for.
        only: The executions wanted ('reference', 'native', 'onnxruntime'); None: all.
        progress: Called with a line of text before each step.

    Raises:
        SardonyxError: The model or the inputs cannot be read.
    """
    graph, path, name = _model(model, source)
    origin = _source(source, graph)
    chosen = limits or Limits({}, _narrower(graph, origin.graph)).with_limits(rtol, atol)
    asked = dict(dims) if isinstance(dims, Mapping) else parse_dims(dims or ())
    specs = [s for s in graph.input_specs() if not s.optional]
    unknown = frozen_dims(specs, asked)
    sizes = {k: v for k, v in asked.items() if k not in unknown}
    if origin.graph is None or origin.graph is graph:
        frozen = unknown
    else:
        theirs = [s for s in origin.graph.input_specs() if not s.optional]
        fixed, dynamic = fixed_dims(theirs, specs, asked), free_dims(theirs)
        frozen = [*fixed, *(n for n in unknown if n not in fixed and n not in dynamic)]
    kept = executions(graph, path, providers, only)
    tell = progress or (lambda _: None)
    checker = _Checker(graph, origin, kept, chosen, metrics or {}, providers, locate_culprit, inputs is None, tell)
    results: list[CaseResult] = []
    for scale in SCALES:
        results = [r for case in _cases(graph, inputs, sizes, seed, scale) for r in checker.check(case)]
        if inputs is not None or any(r.status != REFUSED for r in results):
            break
    return Verification(
        name,
        origin.name,
        chosen,
        tuple(free_dims(specs)),
        tuple(frozen),
        tuple(results),
        checker.worst,
        tuple(checker.records),
    )


def cases_of(
    graph: ModelGraph, inputs: Any, dims: Mapping[str, Sequence[int]] | Sequence[str], seed: int = 0
) -> list[Case]:
    """The inputs for one size of each dim: the user's, as `verify` takes them, or generated ones.

    Raises:
        InvalidArgumentError: They cannot be read, or a dim is none of the graph's.
    """
    sizes = dict(dims) if isinstance(dims, Mapping) else parse_dims(dims)
    specs = [s for s in graph.input_specs() if not s.optional]
    unknown = frozen_dims(specs, sizes)
    if unknown:
        known = ", ".join(free_dims(specs)) or "none"
        raise InvalidArgumentError(f"'{unknown[0]}' is no dynamic dim of the model", hint=f"its dims are: {known}")
    cases = list(_cases(graph, inputs, sizes, seed, 1))
    return cases if inputs is not None or len(sizes) == len(free_dims(specs)) else cases[:1]


def precision_of(graph: ModelGraph) -> str:
    """The narrowest arithmetic of a graph, as `Limits` calls it."""
    found = "float64"
    for op in main_function(graph.module).body.block.walk():
        kinds = [dtype_of(v).name for v in (*op.operands, *op.results) if is_tensor(v.type)]
        if "quant" in op.name or op.name in ("sx.matmul_integer", "sx.conv_integer"):
            return "quantised"
        for kind in kinds:
            key = "float8" if kind.startswith(("float8", "float6e", "float4")) else kind
            if key in KIND_ORDER and KIND_ORDER.index(key) > KIND_ORDER.index(found):
                found = key
    return found


def _narrower(graph: ModelGraph, source: ModelGraph | None) -> str:
    """The narrowest arithmetic of a model and of its source: results are no more exact than either."""
    kinds = {precision_of(g) for g in (graph, source) if g is not None}
    return max(kinds, key=KIND_ORDER.index)


def _says_nothing(outputs: Mapping[str, Any]) -> bool:
    """Whether results have no number at all that could be compared."""
    floats = [v for v in outputs.values() if isinstance(v, np.ndarray) and v.dtype.kind not in "biuOSU"]
    return bool(floats) and not any(np.isfinite(v.astype(np.float64)).any() or not v.size for v in floats)


def _model(model: Any, source: Any) -> tuple[ModelGraph, str | None, str]:
    if isinstance(model, ModelGraph):
        return model, None, f"graph '{model.name}'"
    if isinstance(model, OnnxModel):
        return _compiled(model, source), None, repr(model)
    if isinstance(model, str | os.PathLike):
        return _compiled(OnnxModel.open(model), source), os.fspath(model), os.fspath(model)
    raise InvalidArgumentError(f"a model is a path, an OnnxModel or a ModelGraph, not {type(model).__name__}")


def _compiled(model: OnnxModel, source: Any) -> ModelGraph:
    """The model as a graph; the error where it is none tells which node the source has not."""
    try:
        return model.compile()
    except SardonyxError as error:
        try:
            other = None if source is None else source_of(source, ()).graph
        except SardonyxError:  # that one is told when the model can be read
            other = None
        raise error if other is None else explain(error, model, other) from None


def _source(source: Any, graph: ModelGraph) -> Source:
    if source is None:
        return graph_source(graph, "the reference")
    return source_of(source, graph.input_names())


def _cases(graph: ModelGraph, inputs: Any, sizes: Mapping[str, Sequence[int]], seed: int, scale: int) -> Sequence[Case]:
    names = graph.input_names()
    specs = [s for s in graph.input_specs() if not s.optional]
    bindings = bindings_of(specs, sizes, scale)
    if inputs is None:
        found: list[Case] = []
        for binding in bindings:
            feeds = generate(graph.module, specs, binding, seed)
            found.append(Case(f"generated (seed {seed})", binding, feeds))
        return found
    if isinstance(inputs, str | os.PathLike):
        return load_cases(inputs, names)
    if callable(inputs):
        origin = getattr(inputs, "__name__", "the generator")
        return list(cases_of_generator(inputs, bindings, names, seed, origin))
    entries = inputs if isinstance(inputs, list) and inputs and isinstance(inputs[0], Mapping | list) else [inputs]
    return list(cases_of_generator(lambda: (e for e in entries), [{}], names, seed, "the given inputs"))


@dataclass
class _Checker:
    """Runs the executions on cases, and compares."""

    graph: ModelGraph
    source: Source
    kept: Sequence[Execution]
    limits: Limits
    metrics: Mapping[str, Metric]
    providers: Sequence[str]
    find_culprit: bool
    generated: bool
    tell: Callable[[str], None]
    worst: Worst | None = None
    traces: dict[ModelGraph, Trace | None] = field(default_factory=dict)
    plans: dict[ModelGraph, Plan] = field(default_factory=dict)
    memory: Memory | None = None
    records: list[tuple[Case, Mapping[str, Any]]] = field(default_factory=list)

    def check(self, case: Case) -> list[CaseResult]:
        """The results of all executions on one set of inputs."""
        sizes = ", ".join(f"{k}={v}" for k, v in case.binding.items())
        self.tell(f"{self.source.name} on {case.origin} {sizes}".rstrip())
        names = self.graph.output_names()
        try:
            expected = self.source.run(case.feeds)
        except SardonyxError as error:
            return [CaseResult(e.name, case.origin, case.binding, REFUSED, error=str(error)) for e in self.kept]
        expected = self._named(expected, names)
        if self.generated and _says_nothing(expected):
            why = "the source gives no finite number for these inputs"
            return [CaseResult(e.name, case.origin, case.binding, REFUSED, error=why) for e in self.kept]
        self.records.append((case, expected))
        found: list[CaseResult] = []
        reference_fails = False
        self.traces.clear()
        self.memory = None
        for execution in self.kept:
            self.tell(f"{execution.name} on {case.origin} {sizes}".rstrip())
            result = self._compare(execution, case, expected, names, reference_fails)
            reference_fails |= execution.name == "reference" and result.status == FAILED
            found.append(result)
        found.extend(self._semantics(case, names))
        return found

    def _semantics(self, case: Case, names: Sequence[str]) -> list[CaseResult]:
        """The model's reference against that of its source, where that is another graph."""
        other = self.source.graph
        if other is None or not self._traced():
            return []
        self.tell(f"the references of both on {case.origin}")
        source, model = self._trace(other, case), self._trace(self.graph, case)
        if source is None or model is None or source.failed is not None or model.failed is not None:
            return []  # the other executions say so
        expected, actual = ({n: plain(v) for n, v in t.results.items()} for t in (source, model))
        wanted = self._named(expected, names)
        kept = [n for n in names if n in wanted and n in actual]
        differences = [compare(n, wanted[n], actual[n], CLOSE) for n in kept]
        bad = [d.name.partition("[")[0] for d in differences if not d.ok]
        culprit = locate(source, model, bad, self.limits.precision) if bad and self.find_culprit else None
        odd = [d for d in differences if d.max_abs > SUSPICIOUS * max(1.0, d.scale)]
        if odd and not bad:
            self.tell(f"looking for the node at which {SEMANTICS} differs")
            culprit = moved(source, model, [d.name.partition("[")[0] for d in odd], self.limits.precision)
            if culprit is not None:
                bad = [d.name for d in odd]
                why = "it is within the limits, but a node of the model computes something else than the source's"
                differences = [replace(d, ok=False, reason=why) if d in odd else d for d in differences]
        status = FAILED if bad else PASSED
        return [CaseResult(SEMANTICS, case.origin, case.binding, status, tuple(differences), "", culprit)]

    def _named(self, expected: Outputs | Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
        """The expected outputs by the model's names: a mapping's own, or in order."""
        if isinstance(expected, Mapping):
            if set(names) & set(expected) or not expected:
                return dict(expected)
            expected = list(expected.values())
        extra = [f"(output {i} of the source)" for i in range(len(names), len(expected))]
        return dict(zip([*names, *extra], expected))

    def _compare(
        self, execution: Execution, case: Case, expected: dict[str, Any], names: Sequence[str], reference_fails: bool
    ) -> CaseResult:
        if execution.run is None:
            return CaseResult(execution.name, case.origin, case.binding, UNTESTED, error=execution.reason)
        try:
            actual = self._run(execution, case)
        except SardonyxError as error:
            culprit = self._culprit(execution, case, list(names), reference_fails)
            return CaseResult(execution.name, case.origin, case.binding, FAILED, (), str(error), culprit)
        differences = compare_outputs(expected, actual, self.limits)
        differences += [
            Difference(n, False, "the source has no such output", use=np.inf) for n in names if n not in expected
        ]
        use = max((d.use for d in differences), default=0.0)
        if self.worst is None or use > self.worst.use:
            self.worst = Worst(execution.name, case, expected, actual, use)
        bad = [d.name.partition("[")[0] for d in differences if not d.ok]
        found = {m: float(f(expected, actual)) for m, f in self.metrics.items()}
        culprit = self._culprit(execution, case, bad, reference_fails) if bad else None
        status = FAILED if bad else PASSED
        return CaseResult(execution.name, case.origin, case.binding, status, tuple(differences), "", culprit, found)

    def _run(self, execution: Execution, case: Case) -> Outputs:
        """The outputs of an execution; those of the reference from the trace, where one is wanted anyway."""
        if execution.run is None:
            raise InvalidArgumentError(execution.reason)
        if execution.name == "reference" and self._traced():
            trace = self._trace(self.graph, case)
            if trace is not None and trace.failed is None and len(trace.results) == len(self.graph.output_names()):
                return {n: plain(v) for n, v in trace.results.items()}
        return execution.run(case.feeds)

    def _traced(self) -> bool:
        """Whether both references are run and held against each other."""
        other = self.source.graph
        wanted = other is not None and other is not self.graph and any(e.name == "reference" for e in self.kept)
        return wanted and self.limits.precision in ("float32", "float64")

    def _culprit(self, execution: Execution, case: Case, bad: Sequence[str], reference_fails: bool) -> Culprit | None:
        """The node at fault: where the model leaves its source, or where an execution leaves the reference."""
        if not self.find_culprit:
            return None
        self.tell(f"looking for the node at which {execution.name} differs")
        model = self._trace(self.graph, case)
        if model is None:
            return None
        if execution.name == "reference" or reference_fails:
            if self.source.graph is None or self.source.graph is self.graph:
                return None
            source = self._trace(self.source.graph, case)
            if source is None:
                return None
            dropped = [] if model.failed else [n for n in bad if n not in model.outputs and n in source.outputs]
            if dropped and len(dropped) == len(bad):
                maker = maker_of(source, dropped[0], "makes")
                if maker is not None:
                    return maker
            return locate(source, model, bad, self.limits.precision)
        providers = [provider_name(p) for p in self.providers if execution.name.endswith(p.lower())] or ["cpu"]
        providers = [provider_name(p) for p in providers]
        return locate_execution(self.graph, execution.name, providers, case.feeds, model, bad)

    def _trace(self, graph: ModelGraph, case: Case) -> Trace | None:
        """What the nodes of a graph compute on the inputs; several executions may ask for it."""
        if graph not in self.traces:
            other = self.source.graph
            if other is not None and other is not graph and other not in self.traces:
                self.traces[other] = self._observed(other, case)  # the first: the model takes from it what is the same
            self.traces[graph] = self._observed(graph, case)
        return self.traces[graph]

    def _observed(self, graph: ModelGraph, case: Case) -> Trace | None:
        try:
            arrays = graph.bind_inputs("verify", feeds_for(graph, case.feeds))
        except SardonyxError:
            return None
        other = self.source.graph
        if other is None or other is self.graph:
            return observe(self._plan(graph), arrays)
        plans = self._plan(other), self._plan(self.graph)
        by_name = same_inputs(*plans)
        hashes = [value_hashes(p, by_name, {}) for p in plans]
        if self.memory is None:
            kept = None if self.source.memories is not None else _borrowed(*plans, *hashes)
            self.memory = Memory(kept)
            if self.source.memories is not None and by_name:
                self.memory = self.source.memories.setdefault(id(case.feeds), self.memory)
        return observe(self._plan(graph), arrays, hashes[graph is self.graph], self.memory)

    def _plan(self, graph: ModelGraph) -> Plan:
        if graph not in self.plans:
            self.plans[graph] = Plan.of(graph.module, graph.output_names())
        return self.plans[graph]


def _borrowed(source: Plan, model: Plan, theirs: Sequence[str], ours: Sequence[str]) -> set[str]:
    """The hashes of the source's values that the model's other nodes read, or that it gives."""
    known = set(theirs)
    others = [s for s in model.steps if not all(ours[m] in known for m in s.makes)]
    read = {ours[n] for s in others for n in (*s.reads, *s.computed)}
    return (read | {ours[n] for n in model.outputs.values()}) & known
