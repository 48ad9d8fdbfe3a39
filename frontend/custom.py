"""`CustomOp`: an operator of the user's own, with its own shape rule and kernel.

It works eagerly, in traces, natively and, if it says how, in ONNX. Graphs name it; a process that loads a pickled graph
has to import the module that defines it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import to_attribute
from sardonyx.dialects.sx import custom, opaque
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import apply
from sardonyx.frontend.containers import flatten
from sardonyx.frontend.operands import is_tensor_like, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor

Shape = Callable[..., Any]
OnnxNode = tuple[str, str] | tuple[str, str, int]
"""ONNX's operator of a custom domain: (domain, name) or (domain, name, version)."""


class CustomOp:
    """An operator of the user's own; called with tensors and attributes by keyword.

    Args:
        name: Its name, such as `mine.times_two`; one operator has it.
        shape: The shape rule: called with a `TensorSpec` for each operand and the attributes by keyword; returns a
            `TensorSpec` (whose name does not count), or a list of them.
        kernel: Called with NumPy arrays, which it may not write to, and the attributes; returns an array, or a list.
        lower: A lowering to the kernel dialect, called with the plan and the op as those of `@lowers` are; without one,
            a native run calls the kernel between two native parts.
        onnx: How it is exported: (domain, name[, version]) of an operator, or a function on tensors with the same
            meaning. Without it, a graph that has the operator is not exported.
        deterministic: Whether equal operands give equal results.

    Raises:
        InvalidArgumentError: An argument is of another kind, or the name is taken.
    """

    def __init__(
        self,
        name: str,
        shape: Shape,
        kernel: Callable[..., Any],
        *,
        lower: Callable[[Any, Any], None] | None = None,
        onnx: OnnxNode | Callable[..., Any] | None = None,
        deterministic: bool = True,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError("the name of a custom operator is a str that isn't empty")
        for what, function in (("shape", shape), ("kernel", kernel), ("lower", lower)):
            if not callable(function) and (what != "lower" or function is not None):
                raise InvalidArgumentError(f"{what} of the operator '{name}' is a function, not {function!r}")
        if onnx is not None and not callable(onnx) and not _is_node(onnx):
            raise InvalidArgumentError(
                f"onnx of the operator '{name}' is (domain, name[, version]) or a function, not {onnx!r}"
            )
        known = custom.DEFINITIONS.get(name)
        if known is not None and _origin(known.kernel) != _origin(kernel):
            raise InvalidArgumentError(f"there is a custom operator '{name}' already")
        self.name, self._shape, self._kernel, self._onnx = name, shape, kernel, onnx
        custom.DEFINITIONS[name] = custom.Definition(
            name,
            self._infer,
            _Kernel(kernel),
            lower,
            None if onnx is None else self._expand,
            deterministic,
            None if onnx is None or callable(onnx) else (onnx[0], onnx[2] if len(onnx) == 3 else 1),
        )

    def __call__(self, *tensors: Any, **attributes: Any) -> Any:
        """The result, or a list of several.

        Raises:
            InferenceError: The shape rule refuses the operands.
            ExecutionError: The kernel failed, or its result does not follow the shape rule.
        """
        given = [to_tensor(t) for t in tensors]
        attrs = DictionaryAttr({k: to_attribute(v) for k, v in attributes.items() if v is not None})
        specs = [_spec_of(t) for t in given]
        rule = self._specs(specs, {k: v for k, v in attributes.items() if v is not None})
        properties: dict[str, Any] = {"op": self.name}
        if attributes:
            properties["attrs"] = attrs
        made = apply("sx.custom", given, results=len(rule[0]), **properties)
        return list(made) if rule[1] else made[0]

    def __repr__(self) -> str:
        return f"<custom operator '{self.name}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _registered, (self.name, self._kernel)

    # ---- the shape rule
    def _specs(self, specs: Sequence[TensorSpec], attributes: Mapping[str, Any]) -> tuple[list[TensorSpec], bool]:
        """The results' specs, and whether they are several."""
        made = self._shape(*specs, **attributes)
        several = isinstance(made, list | tuple)
        found = list(made) if several else [made]
        for spec in found:
            if not isinstance(spec, TensorSpec):
                raise InvalidArgumentError(
                    f"the shape rule of '{self.name}' returns TensorSpec, not {type(spec).__name__}",
                    location=user_line(),
                )
        return found, several

    def _infer(self, types: Sequence[Attribute], attributes: Mapping[str, Any]) -> Sequence[Attribute]:
        return [s.ir for s in self._specs([TensorSpec.of_type("", ty) for ty in types], attributes)[0]]

    # ---- ONNX
    def _expand(self, module: ModuleOp, op: custom.CustomOp) -> None:
        block = op.parent_block()
        assert block is not None
        if callable(self._onnx):
            from sardonyx.frontend.edits import InsertionTrace

            recorder = InsertionTrace(self.name, module, WeightStore(), op)
            with recorder.recording():
                made = self._onnx(*(Tensor.of_value(recorder, v) for v in op.inputs), **op.arguments)
                leaves = [leaf for _, leaf in flatten(made)[0]]
                values = [recorder.value_of(to_tensor(leaf)) for leaf in leaves if is_tensor_like(leaf)]
            for added in recorder.added:
                added.location = op.location
            if len(values) != len(op.outputs):
                raise InvalidArgumentError(
                    f"onnx of the operator '{self.name}' returns {len(values)} tensors, not {len(op.outputs)}"
                )
            for old, new in zip(op.outputs, values, strict=True):
                if dtype_of(old) != dtype_of(new) or len(dims_of(old)) != len(dims_of(new)):
                    raise InvalidArgumentError(
                        f"onnx of the operator '{self.name}' returns {new.type}, its shape rule says {old.type}"
                    )
        else:
            assert self._onnx is not None
            domain, operator, *version = self._onnx
            node = opaque.OpaqueOp.make(
                list(op.inputs),
                results=len(op.outputs),
                result_types=[r.type for r in op.outputs],
                location=op.location,
                op_type=StringAttr(operator),
                domain=StringAttr(domain),
                version=IntegerAttr(version[0] if version else 1, i64),
                attrs=op.attrs or DictionaryAttr({}),
            )
            block.insert_op_before(node, op)
            values = list(node.outputs)
        for old, new in zip(op.outputs, values, strict=True):
            new.name_hint = new.name_hint or old.name_hint
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()


class _Kernel:
    """The user's kernel; its results are a list."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *arrays: Any, **attributes: Any) -> list[Any]:
        made = self.fn(*arrays, **attributes)
        return list(made) if isinstance(made, list | tuple) else [made]


def custom_op(name: str, shape: Shape, **options: Any) -> Callable[[Callable[..., Any]], CustomOp]:
    """A decorator that makes an operator of a NumPy kernel; the options are those of `CustomOp`."""
    return lambda kernel: CustomOp(name, shape, kernel, **options)


def _spec_of(tensor: Tensor) -> TensorSpec:
    if tensor.is_traced:
        return TensorSpec.of_type("", tensor.value.type)
    return TensorSpec("", tensor.dtype, tensor.shape)


def _is_node(given: object) -> bool:
    if not isinstance(given, tuple) or len(given) not in (2, 3) or not all(isinstance(p, str) and p for p in given[:2]):
        return False
    return len(given) == 2 or (isinstance(given[2], int) and given[2] >= 1)


def _origin(function: Any) -> object:
    """Where a function is defined: a module that is loaded again defines the same operator."""
    fn = getattr(function, "fn", function)
    return getattr(fn, "__module__", None), getattr(fn, "__qualname__", None) or id(fn)


def _registered(name: str, kernel: Any) -> CustomOp:
    """The operator of that name, once the module of its kernel is imported."""
    importlib.import_module(kernel.__module__)
    definition = custom.DEFINITIONS.get(name)
    owner = getattr(definition and definition.infer, "__self__", None)
    if not isinstance(owner, CustomOp):
        raise InvalidArgumentError(f"the custom operator '{name}' is not registered in this process")
    return owner
