"""`torch.compile(model, backend="sardonyx")`: what torch captures runs natively.

torch finds the function by the entry point `torch_dynamo_backends`. A graph with an operator that has no translation or
no native form is refused with an error that says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.dialects.module import set_outputs
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.torch.arrays import array_of, is_torch_tensor, tensor_of
from sardonyx.frontend.torch.capture import decompositions
from sardonyx.frontend.torch.errors import export_errors
from sardonyx.frontend.torch.recorder import Recorder
from sardonyx.frontend.torch.translate import Slot, Translator


def sardonyx(module: Any, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """The compiler that torch.compile calls: a captured graph and example inputs to a callable.

    Raises:
        UnsupportedError: An operator has no translation, or no native form.
    """
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=_compile, bw_compiler=_compile, decompositions=decompositions({}))(
        module, example_inputs
    )


def _compile(module: Any, example_inputs: Sequence[Any]) -> Any:
    from functorch.compile import make_boxed_func

    with export_errors():
        return make_boxed_func(_Compiled(module))


class _Compiled:
    """A graph of ATen operators as native code."""

    def __init__(self, module: Any) -> None:
        translator = Translator(_Graph(module), "compiled")
        nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.kept = [i for i, n in enumerate(nodes) if hasattr(n.meta.get("val"), "shape") or _is_size(n)]
        slots = [Slot(nodes[i].name, nodes[i].name) for i in self.kept]
        recorder = translator.recorder = Recorder(
            "compiled", [translator.spec(s, nodes[i]) for s, i in zip(slots, self.kept)]
        )
        values, names = [], []
        self.results: list[Any] = []
        """Per result, the place of the graph's output, or (a number,)."""
        with recorder.recording():
            for i, tensor in zip(self.kept, recorder.inputs):
                translator.values[nodes[i]] = (
                    translator.symbol_input(nodes[i], tensor) if _is_size(nodes[i]) else tensor
                )
            for value in translator.block_of(module):
                if value is None or isinstance(value, bool | int | float):
                    self.results.append((value,))
                    continue
                tensor = value.scalar() if isinstance(value, Extent) else to_tensor(value)
                self.results.append(len(values) if not isinstance(value, Extent) else (len(values), int))
                names.append(f"output_{len(values)}")
                values.append(recorder.value_of(tensor))
        set_outputs(recorder.module, values, names)
        self.graph = ModelGraph(recorder.module, recorder.store)
        self.runs = bool(values)
        if self.runs:
            self.graph.optimize()
            self.graph.finalize()

    def __call__(self, *args: Any) -> list[Any]:
        given = [array_of(args[i]) if is_torch_tensor(args[i]) else array_of(int(args[i])) for i in self.kept]
        found = self.graph.run(given) if self.runs else []
        return [self._result(place, found) for place in self.results]

    def _result(self, place: Any, found: Sequence[Any]) -> Any:
        if isinstance(place, int):
            return tensor_of(found[place].numpy())
        return place[0] if len(place) == 1 else int(found[place[0]].numpy())


class _Graph:
    """What a translator wants of a program, of a bare graph."""

    def __init__(self, module: Any) -> None:
        self.graph_module = module
        self.graph = module.graph


def _is_size(node: Any) -> bool:
    import torch

    return isinstance(node.meta.get("val"), torch.SymInt)
