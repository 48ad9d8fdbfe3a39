"""The ways in which a model is run: our reference, our native code, onnxruntime's execution providers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.backends.onnx.parity import installed_providers, ort_session, ort_version, provider_name
from sardonyx.errors import SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.verify.inputs import Feeds
from sardonyx.frontend.verify.sources import Outputs, plain

CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Execution:
    """One way to run a model.

    Attributes:
        name: 'reference', 'native', or 'onnxruntime:' and a provider.
        run: Gives the outputs by name; raises `SardonyxError`. None where it cannot be tried here.
        reason: Why it cannot.
    """

    name: str
    run: Callable[[Feeds], Outputs] | None
    reason: str = ""


def executions(
    graph: ModelGraph,
    path: str | os.PathLike[str] | None,
    providers: Sequence[str] = ("cpu",),
    only: Sequence[str] | None = None,
) -> list[Execution]:
    """Reference, native, and onnxruntime with each of the providers; `only` those of these names.

    One that cannot be tried here (a provider that is not installed, an op without a native form) says so: it counts
    as untested, not as passed.
    """
    found: list[Execution] = []
    if only is None or "reference" in only:
        found.append(_reference(graph))
    if only is None or "native" in only:
        found.append(_native(graph))
    if only is None or "onnxruntime" in only:
        wanted = dict.fromkeys(provider_name(p) for p in providers)
        found += [_onnxruntime(graph, path, provider) for provider in wanted]
    return found


def _reference(graph: ModelGraph) -> Execution:
    def run(feeds: Feeds) -> Outputs:
        return dict(zip(graph.output_names(), map(plain, graph.evaluate(dict(feeds)))))

    return Execution("reference", run)


def _native(graph: ModelGraph) -> Execution:
    compiled = graph.clone()
    try:
        compiled.finalize()
    except SardonyxError as error:
        return Execution("native", None, str(error))

    def run(feeds: Feeds) -> Outputs:
        return dict(zip(compiled.output_names(), map(plain, compiled.run(dict(feeds)))))

    return Execution("native", run)


def _onnxruntime(graph: ModelGraph, path: str | os.PathLike[str] | None, provider: str) -> Execution:
    name = f"onnxruntime:{provider.removesuffix('ExecutionProvider').lower()}"
    if ort_version() is None:
        return Execution(name, None, "onnxruntime is not installed")
    if provider not in installed_providers():
        return Execution(name, None, f"the onnxruntime that is installed has no {provider}")
    if path is None:
        return Execution(name, None, "the model is no ONNX file")
    try:
        session = ort_session(path, [provider] if provider == CPU else [provider, CPU])
    except SardonyxError as error:
        return Execution(name, _failing(error))
    return Execution(name, lambda feeds: dict(zip(graph.output_names(), session(feeds))))


def _failing(error: SardonyxError) -> Callable[[Feeds], Outputs]:
    def run(feeds: Feeds) -> Outputs:
        raise error

    return run
