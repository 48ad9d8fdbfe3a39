"""Where an export comes from: a function, a torch module, a graph or a model, with what it is verified against."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sardonyx.errors import InvalidArgumentError
from sardonyx.tools.arguments import UsageError
from sardonyx.tools.objects import UserFiles, is_object


@dataclass
class Opened:
    """A source that was opened.

    Attributes:
        graph: Its graph.
        source: What the export is verified against.
        write: Writes the model.
        warnings: What the user should know, such as frozen dims.
        example: Inputs by name that the source was traced with; None for none.
        graph_dims: Whether the graph has dynamic dims.
        reloads: Whether `sardonyx verify` gets the same source by its name alone.
        recomputes_semantics: Whether it then has a graph, too.
        function: The Python function that was traced; None for none.
    """

    graph: Any
    source: Any
    write: Callable[[Path, Any], None]
    warnings: list[str] = field(default_factory=list)
    example: Mapping[str, Any] | None = None
    graph_dims: bool = True
    reloads: bool = True
    recomputes_semantics: bool = True
    function: Callable[..., Any] | None = None


def open_source(options: Any, files: UserFiles) -> Opened:
    """Open what the command line names.

    Raises:
        SardonyxError: It cannot be read, traced or translated.
    """
    if not is_object(options.source):
        _takes(options)
        return _of_model(options.source)
    found = files.load(options.source)
    if any(c.__module__.startswith("torch.nn.") and c.__name__ == "Module" for c in type(found).__mro__):
        _takes(options, "dynamic")
        return _of_torch(found, options, files)
    from sardonyx.frontend.graph import ModelGraph

    if isinstance(found, ModelGraph):
        _takes(options)
        return _of_graph(found, found)
    if _is_network(found):
        _takes(options)
        graph = found.graph()
        return _of_graph(graph, graph)
    if callable(found):
        _takes(options, "signature")
        return _of_function(found, options)
    raise InvalidArgumentError(
        f"'{options.source}' is {type(found).__name__}: neither a function, a torch module, a layer network nor a graph"
    )


def _takes(options: Any, *names: str) -> None:
    """Refuse options that say nothing of this kind of source.

    Raises:
        UsageError: One is given.
    """
    for name, whose in (("signature", "a Python function"), ("dynamic", "a torch module")):
        if getattr(options, name) and name not in names:
            raise UsageError(f"--{name} is for {whose}, and '{options.source}' is none")


def _is_network(found: Any) -> bool:
    from sardonyx.frontend.layers.network import Network

    return isinstance(found, Network)


def _of_model(path: str) -> Opened:
    from sardonyx.frontend.onnx.model import OnnxModel

    if not path.endswith((".onnx", ".onnxtxt")):
        raise InvalidArgumentError(f"'{path}' is no source", hint="a source is FILE.py:NAME or FILE.onnx")
    return _of_graph(OnnxModel.open(path).compile(), path)


def _of_graph(graph: Any, source: Any) -> Opened:
    def write(path: Path, options: Any) -> None:
        work = graph.clone()
        if not options.no_optimize:
            work.optimize()
        work.export_onnx(
            path,
            opset_version=options.opset,
            optimize=not options.no_optimize,
            save_as_external_data=options.external_data,
        )

    return Opened(graph, source, write)


def _of_function(function: Callable[..., Any], options: Any) -> Opened:
    from sardonyx.frontend.signature import parse_signature, stored_signature
    from sardonyx.frontend.trace import trace
    from sardonyx.frontend.verify.sources import graph_source
    from sardonyx.tools.modules import blaming

    path, _, name = options.source.rpartition(":")
    if options.signature is None and not hasattr(function, "__sardonyx_signature__"):
        raise InvalidArgumentError(
            f"the signature of '{name}' is not known",
            hint=f"give one with --signature 'x: f32[batch,37]', or put @sardonyx.signature('...') on '{name}'",
        )
    with blaming(Path(path), f"tracing '{name}' failed"):
        signature = parse_signature(options.signature) if options.signature else stored_signature(function)
        graph = trace(function, signature, name=name).graph
    opened = _of_graph(graph, graph_source(graph, options.source))
    opened.reloads = options.signature is None
    opened.function = function
    return opened


def _of_torch(module: Any, options: Any, files: UserFiles) -> Opened:
    from sardonyx.frontend.export import export
    from sardonyx.frontend.verify.sources import source_of

    if options.inputs is None:
        raise InvalidArgumentError(
            f"'{options.source}' is a torch module: it is captured with example inputs",
            hint="give them with --inputs FILE.py:FUNCTION (or .npz, .npy), their dynamic dims with --dynamic",
        )
    names = list(inspect.signature(module.forward).parameters)
    example = _example(files.inputs(options.inputs), names)
    axes = _dynamic_axes(options.dynamic, example)
    module.eval()
    tensors = {name: _tensor(value) for name, value in example.items()}
    program = export(
        module,
        (),
        None,
        kwargs=tensors,
        input_names=list(example),
        dynamic_axes=axes,
        opset_version=options.opset or None,
        optimize=not options.no_optimize,
    )
    warnings = [
        f"'{name}' axis {axis} is frozen at {size}; name it with --dynamic {name}={_suggestion(value, axes.get(name))}"
        for name, value in example.items()
        for axis, size in enumerate(value.shape)
        if axis not in axes.get(name, {}) and axis == 0
    ]

    def write(path: Path, options: Any) -> None:
        program.save(path, external_data=bool(options.external_data))

    source = replace(source_of(module, list(example)), name=options.source, graph=program.graph)
    return Opened(program.graph, source, write, warnings, example, bool(axes), recomputes_semantics=False)


def _tensor(value: Any) -> Any:
    import sys

    return sys.modules["torch"].from_numpy(value)


def _example(given: Any, names: list[str]) -> dict[str, Any]:
    from sardonyx.frontend.verify.inputs import cases_of_generator, load_cases, read_arrays

    if callable(given):
        found = given()
        if isinstance(found, Mapping):
            names = [str(n) for n in found]
        elif isinstance(found, list | tuple):
            names = names[: len(found)]
        else:
            names = names[:1]
        return dict(next(iter(cases_of_generator(lambda: found, [{}], names, 0, "the example"))).feeds)
    arrays = read_arrays(Path(given))
    if isinstance(arrays, dict):
        kept = [n for n in names if n in arrays]
        if not kept:
            raise InvalidArgumentError(f"'{given}' has none of the parameters of forward: {', '.join(names)}")
        return {n: arrays[n] for n in kept}
    return dict(load_cases(given, names[:1])[0].feeds)


def _dynamic_axes(texts: list[str], example: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for text in texts:
        name, separator, dims = text.partition("=")
        entries = [d.strip() for d in dims.split(",")] if dims else []
        if not separator or name not in example:
            known = ", ".join(example)
            raise InvalidArgumentError(f"--dynamic {text}: there is no input '{name}'", hint=f"inputs are: {known}")
        if len(entries) > example[name].ndim:
            raise InvalidArgumentError(f"--dynamic {text}: '{name}' has {example[name].ndim} axes")
        found[name] = {axis: entry for axis, entry in enumerate(entries) if entry not in ("_", "")}
    return found


def _suggestion(value: Any, axes: Mapping[int, str] | None) -> str:
    known = axes or {}
    return ",".join("batch" if axis == 0 else known.get(axis, "_") for axis in range(value.ndim))
