"""Graphs in which the rank of a tensor is not known before a run: compiled when a run tells it.

Native code has a loop for each axis, so it is made for known ranks. Such a graph is compiled at its first run, for as
little of the inputs' shapes as settles all ranks: for the ranks alone, with dims as dynamic as before; else for the
extents of indices and of shapes too, as where a reshape has as many axes as an input has elements; else for all
extents; then for the values of single integers too, by which a graph may choose between branches; at last for those of
short vectors, which may be extents of which a squeeze drops the ones. Programs are kept, and later runs that agree in
so much use them. `RankedGraph.open` names what is open, and `programs` says what was compiled.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType

from sardonyx.backends.llvm.copies import located_copy
from sardonyx.backends.llvm.list_ranks import with_list_ranks
from sardonyx.backends.llvm.lowering.graph import refuse
from sardonyx.backends.llvm.open_ranks import is_open, open_ranks
from sardonyx.backends.llvm.settle import settle_branches
from sardonyx.backends.llvm.single_ranks import settle_singles
from sardonyx.backends.llvm.unread_states import settle_unread
from sardonyx.dialects.attributes import dims_of, dtype_of, static_shape, tensor_type
from sardonyx.dialects.module import input_names, main_function, sync_signature
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.types import SequenceType, is_tensor, stored
from sardonyx.errors import InferenceError, InvalidArgumentError
from sardonyx.passes.base import PassError
from sardonyx.passes.pipeline import run

MOST_PROGRAMS = 64
"""How many programs a graph keeps; the one that was compiled first goes first."""

PIPELINE = "fold-constants,simplify,infer-types,simplify,fold-constants,simplify,infer-types,remove-dead-nodes"
"""What follows from known ranks: types, and branches that shapes choose between. A branch that is not taken may not
fit, so those that are known go first."""

LEVELS = ("ranks", "indices", "shapes", "values", "vectors")
"""How much of the inputs a program is made for."""

LONGEST_VECTOR = 8
"""A vector of so many integers may be a shape."""

Shape = tuple[int, ...]
Form = tuple[int | None, ...] | None
"""An input's shape, as far as a program depends on it; None where it is no tensor, or nothing is asked of it."""
Value = tuple[int, ...] | None
"""What an input holds, as far as a program depends on it."""
Key = tuple[str, tuple[Form, ...], tuple[Value, ...]]
"""A level, the inputs' forms, and with `values` and `vectors` what the integers among them are."""


def simplified(module: ModuleOp) -> ModuleOp:
    """A copy in which ranks are known as far as they follow from the inputs' types."""
    return _specialised(module, [None] * len(input_names(module)), ())


def _specialised(module: ModuleOp, forms: Sequence[Form], values: Sequence[Value]) -> ModuleOp:
    """A copy for inputs of these forms, and with `values` of these contents."""
    copy = located_copy(module)
    function = main_function(copy)
    for name, argument, form in zip(input_names(copy), function.body.block.args, forms, strict=True):
        if form is None:
            continue
        if isinstance(argument.type, SequenceType):
            if isinstance(argument.type.element, UnrankedTensorType):
                argument._type = SequenceType(stored(argument.type.element, [None] * len(form)))
            continue
        known = (None,) * len(form) if is_open(argument) else dims_of(argument)
        dims = [extent if extent is not None else own if own is not None else f"{name}_{axis}"
                for axis, (extent, own) in enumerate(zip(form, known, strict=True))]  # fmt: skip
        argument._type = tensor_type(dtype_of(argument), dims)
    for argument, value in zip(list(function.body.block.args), values, strict=False):
        if value is not None:
            constant = ConstantOp.dense(np.array(value, dtype_of(argument).numpy).reshape(static_shape(argument) or ()))
            function.body.block.insert_op_before(constant, function.body.block.first_op)  # pyright: ignore[reportArgumentType]
            argument.replace_all_uses_with(constant.output)
    settle_branches(function.body.block)
    sync_signature(function)
    run(copy, PIPELINE)
    listed = with_list_ranks(copy)
    if listed is not copy:
        run(listed, PIPELINE)
    while open_ranks(listed) and settle_singles(listed) | settle_unread(listed):
        run(listed, PIPELINE)
    return listed


def _element_shape(value: Any) -> Shape | None:
    """A shape of the rank that all tensors of a list have; None where they have none in common."""
    if not isinstance(value, list | tuple) or not value:
        return None
    ranks = {np.ndim(getattr(element, "_array", element)) for element in value}
    return (1,) * ranks.pop() if len(ranks) == 1 else None


def _form(level: str, shape: Shape | None, is_integer: bool) -> Form:
    """What a level of specialisation keeps of an input's shape."""
    if shape is None or level in ("shapes", "values", "vectors"):
        return shape
    if level == "indices" and is_integer and shape:
        return (*(None for _ in shape[:-1]), shape[-1])
    return tuple(None for _ in shape)


def _is_told(shape: Shape, level: str) -> bool:
    """Whether a program of this level depends on what an input of this shape holds."""
    return math.prod(shape) == 1 or (level == "vectors" and len(shape) == 1 and 0 < shape[0] <= LONGEST_VECTOR)


class RankedGraph:
    """A graph that is compiled for the forms of inputs that runs have. `run` is as that of `CompiledGraph`.

    Raises:
        UnsupportedError: An op has no native form, whatever the ranks.
    """

    def __init__(self, module: ModuleOp, compile_ranked: Callable[[ModuleOp], Any], check: bool = True) -> None:
        if check:
            refuse(module, ranks=False)
        self._module, self._compile = module, compile_ranked
        arguments = main_function(module).body.block.args
        self._tensors = [is_tensor(a.type) for a in arguments]
        self._integers = [is_tensor(a.type) and dtype_of(a).kind in "iub" for a in arguments]
        self._names = input_names(module)
        self.open = open_ranks(module)
        self.programs: dict[Key, Any] = {}
        """What was compiled: by a level and the inputs' forms. None: so much does not settle all ranks."""
        self._lock = threading.Lock()

    def run(self, arrays: Sequence[Any], out: Sequence[Any] | None = None) -> list[Any]:
        """Run the program for inputs of such forms, compiled now if there is none.

        Raises:
            InvalidArgumentError: An input does not fit.
            UnsupportedError: A rank depends on the inputs' contents; the error names the node.
            ExecutionError: The run failed on the data.
        """
        return self.program(arrays).run(arrays, out)

    def program(self, arrays: Sequence[Any]) -> Any:
        """The program for these inputs."""
        if len(arrays) != len(self._tensors):
            raise InvalidArgumentError(f"the graph takes {len(self._tensors)} inputs, got {len(arrays)}")
        shapes = [
            np.shape(getattr(value, "_array", value)) if tensor else _element_shape(value)
            for value, tensor in zip(arrays, self._tensors, strict=True)
        ]
        keys: list[Key] = []
        for level in LEVELS:
            forms = tuple(_form(level, s, i) for s, i in zip(shapes, self._integers, strict=True))
            keys.append((level, forms, self._values(arrays, shapes, level) if level in ("values", "vectors") else ()))
        found = next((p for p in map(self.programs.get, keys) if p is not None), None)
        if found is not None:
            return found
        with self._lock:
            for key in keys:
                if key not in self.programs:
                    self._keep(key, self._made(key))
                found = self.programs[key]
                if found is not None:
                    break
        return found

    def _values(self, arrays: Sequence[Any], shapes: Sequence[Shape | None], level: str) -> tuple[Value, ...]:
        """What the single integers among the inputs are, and with `vectors` the short vectors."""
        return tuple(
            tuple(np.asarray(getattr(value, "_array", value)).reshape(-1).tolist())
            if integer and shape is not None and _is_told(shape, level)
            else None
            for value, shape, integer in zip(arrays, shapes, self._integers, strict=True)
        )

    def _made(self, key: Key) -> Any:
        """The program of a key; None where so much does not settle all ranks."""
        is_last = key[0] == LEVELS[-1]
        try:
            module = _specialised(self._module, key[1], key[2])
        except (InferenceError, PassError):
            # A branch that is not taken may not fit: only what chooses it can tell.
            if is_last:
                raise
            return None
        return self._compile(module) if is_last or not open_ranks(module) else None

    def _keep(self, key: Key, program: Any) -> None:
        if len(self.programs) >= MOST_PROGRAMS:
            self.programs.pop(next(iter(self.programs)))
        self.programs[key] = program
