"""Functions of users that speak ONNX: onnxscript functions, and symbolic functions of the old exporter."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sardonyx.frontend.extent import Extent
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.errors import invalid
from sardonyx.frontend.torch.registry import Translation
from sardonyx.frontend.trace import Trace, current


def _trace() -> Trace:
    found = current()
    if found is None:
        raise invalid("a function that adds ONNX nodes is called outside of an export")
    return found


def _values(trace: Trace, arguments: Any) -> list[Any]:
    found = []
    for argument in arguments:
        if argument is None:
            found.append(None)
        elif isinstance(argument, list | tuple) and not any(isinstance(a, Tensor | Extent) for a in argument):
            found.append(trace.value_of(Tensor.of_array(np.asarray(argument))))
        elif isinstance(argument, list | tuple):
            from sardonyx.frontend.functions.shape import shape_tensor

            found.append(trace.value_of(shape_tensor(list(argument))))
        else:
            found.append(trace.value_of(to_tensor(argument)))
    return found


def of_onnxscript(function: Any) -> Translation:
    """An onnxscript function as a translation: its body is put in the node's place."""
    proto = function.to_function_proto()
    functions = [proto]
    called = getattr(getattr(function, "function_ir", None), "get_called_functions", None)
    if called is not None:
        functions += [f.to_function_proto() for f in called().values() if hasattr(f, "to_function_proto")]
    names = list(inspect.signature(function.function).parameters)
    defaults = {n: p.default for n, p in inspect.signature(function.function).parameters.items()}

    def translate(*args: Any, **kwargs: Any) -> Any:
        from sardonyx.frontend.onnx.snippet import add_node

        trace = _trace()
        if len(args) > len(names):
            raise invalid(f"the onnxscript function '{proto.name}' takes {len(names)} arguments, got {len(args)}")
        given = {**dict(zip(names, args)), **{k: v for k, v in kwargs.items() if k in names}}
        inputs = [given.get(n) for n in proto.input]
        attributes = {n: v for n, v in given.items() if n not in proto.input and v is not None}
        missing = [n for n in proto.attribute if n not in attributes and defaults.get(n) is inspect.Parameter.empty]
        if missing:
            raise invalid(f"the onnxscript function '{proto.name}' wants a value for '{missing[0]}'")
        opsets = {o.domain: o.version for f in functions for o in f.opset_import}
        results = add_node(
            trace.block, trace.store, proto.name, proto.domain, _values(trace, inputs), len(proto.output), attributes,
            opsets={**opsets, proto.domain: 1}, functions=functions, location=trace.location(),
        )  # fmt: skip
        found = tuple(Tensor.of_value(trace, value) for value in results)
        return found[0] if len(found) == 1 else found

    return translate


class _NodeAdder:
    """What calls of onnxscript's operators (`op.Add(x, y)`) do while a translation of the user's runs: they add nodes.

    It has the methods of an evaluator of onnxscript, of its older and its newer releases.
    """

    def eval(self, schema: Any, inputs: Any, attributes: Any) -> Any:
        """Add a node of an operator."""
        from sardonyx.frontend.onnx.snippet import add_node

        trace = _trace()
        places = [p.name for p in schema.inputs]
        given = list(inputs) + [None] * (len(places) - len(inputs))
        found: dict[str, Any] = {}
        for name, value in attributes.items():
            if name in places:
                given[places.index(name)] = value
            elif value is not None:
                found[name] = value
        while given and given[-1] is None:
            given.pop()
        formal = [schema.inputs[min(at, len(places) - 1)].type_str for at in range(len(given))] if places else []
        dtypes = {kind: v.dtype for kind, v in zip(formal, given) if isinstance(v, Tensor)}
        typed = [
            to_tensor(v, dtypes[kind]) if isinstance(v, bool | int | float) and kind in dtypes else v
            for kind, v in zip(formal, given)
        ]
        results = add_node(
            trace.block, trace.store, schema.name, schema.domain, _values(trace, typed), _count(schema, found), found,
            opsets={schema.domain: schema.since_version}, location=trace.location(),
        )  # fmt: skip
        made = tuple(Tensor.of_value(trace, value) for value in results)
        return made[0] if len(made) == 1 else made

    def eval_op(self, op: Any, args: Any, kwargs: Any) -> Any:
        """Add a node of an operator."""
        return self.eval(op.op_schema, args, kwargs)

    def eval_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Put the body of an onnxscript function in place."""
        return of_onnxscript(function)(*args, **kwargs)


def _count(schema: Any, attributes: Mapping[str, Any]) -> int:
    """How many results a node of an operator has whose caller does not say."""
    if schema.outputs and schema.outputs[-1].option.name == "Variadic":
        return int(attributes.get("num_outputs") or len(attributes.get("split") or ()) or 1)
    return int(schema.min_output or len(schema.outputs))


@contextmanager
def onnxscript_adds_nodes() -> Iterator[None]:
    """Calls of onnxscript's operators add nodes to the running trace meanwhile; nothing where it isn't loaded."""
    if "onnxscript" not in sys.modules:
        yield
        return
    from onnxscript import evaluator  # pyright: ignore[reportMissingImports]

    with evaluator.default_as(_NodeAdder()):
        yield


class SymbolicGraph:
    """What a symbolic function gets: `op` adds a node."""

    def op(self, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """Add a node; attributes end in `_i`, `_f`, `_s` or `_t` (integers, floats, texts, tensors)."""
        from sardonyx.frontend.onnx.snippet import add_node

        trace = _trace()
        domain, _, name = opname.rpartition("::")
        attributes: dict[str, Any] = {}
        for key, value in kwargs.items():
            stem, _, kind = key.rpartition("_")
            if kind not in ("i", "f", "s", "t") or not stem:
                raise invalid(f"the attribute '{key}' of {opname} ends in _i, _f, _s or _t")
            attributes[stem] = (
                np.asarray(value)
                if kind == "t"
                else float(value)
                if kind == "f" and not isinstance(value, list | tuple)
                else value
            )
        normal = "" if domain in ("", "onnx", "ai.onnx") else domain
        results = add_node(
            trace.block, trace.store, name, normal, _values(trace, raw_args), outputs, attributes,
            location=trace.location(),
        )  # fmt: skip
        found = tuple(Tensor.of_value(trace, value) for value in results)
        return found[0] if outputs == 1 else found


def of_symbolic(function: Callable[..., Any]) -> Translation:
    """A symbolic function as a translation."""

    def translate(*args: Any, **kwargs: Any) -> Any:
        return function(SymbolicGraph(), *args, **kwargs)

    return translate
