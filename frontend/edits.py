"""Edits on a graph: insert, replace, remove, rename. What is put in is written as a function on tensors.

An edit is done as a whole or not at all; the graph is not finalized afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.module import (
    NAME,
    input_names,
    main_function,
    output_names,
    output_values,
    return_op,
    set_outputs,
    sync_signature,
)
from sardonyx.dialects.values import forget
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.containers import flatten
from sardonyx.frontend.nodes import Node
from sardonyx.frontend.operands import is_tensor_like, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.trace import Trace
from sardonyx.passes.propagate import propagate

if TYPE_CHECKING:
    from sardonyx.dialects.weights import WeightStore


class InsertionTrace(Trace):
    """A trace whose ops go into a graph, in front of one of its ops."""

    def __init__(self, name: str, module: ModuleOp, store: WeightStore, before: Operation) -> None:
        super().__init__(name, [])
        self.module, self.store, self.before = module, store, before
        block = before.parent_block()
        assert block is not None
        self.block = self.root = block
        self.added: list[Operation] = []

    def append_to_root(self, op: Operation) -> None:
        self.root.insert_op_before(op, self.before)
        self.added.append(op)


class Edits:
    """The methods of `ModelGraph` that edit it."""

    _module: ModuleOp
    _store: WeightStore

    if TYPE_CHECKING:

        def node(self, name: str) -> Node: ...
        def edit(self, call: str = "edit") -> AbstractContextManager[ModuleOp]: ...
        @property
        def name(self) -> str: ...

    def insert(self, after: str, fn: Callable[[Tensor], Any]) -> None:
        """Put what a function computes of a value in that value's place: all that read it read the result.

        Args:
            after: An input, a node of one output, or a value, by name.
            fn: It is called with the value and returns one tensor.

        Raises:
            InvalidArgumentError: There is no such value, or what reads it cannot take the result.
        """
        value = self._value("insert", after)
        readers = list(value.uses)
        owner = value.owner
        first = owner.next_op if isinstance(owner, Operation) else owner.first_op

        def change(module: ModuleOp) -> list[Operation]:
            recorder, (made,) = self._record("insert", fn, [value], first or return_op(main_function(module)), 1)
            for use in readers:
                use.operation.operands[use.index] = made
            return [*recorder.added, *(use.operation for use in readers)]

        self._apply("insert", change)

    def replace(self, node: str, fn: Callable[..., Any]) -> None:
        """Let a function compute what a node computed: it is called with the node's inputs (None for an absent one) and
        returns as many tensors as the node has outputs.

        Raises:
            InvalidArgumentError: There is no such node, or what reads it cannot take the results.
        """
        found = self.node(node)
        op = found.op
        if op is None:
            raise InvalidArgumentError(f"replace(): '{node}' is an input; insert() puts something behind it")
        slots = list(getattr(op, "slots", op.operands))

        def change(module: ModuleOp) -> list[Operation]:
            recorder, made = self._record("replace", fn, slots, op, len(op.results))
            readers = [use.operation for result in op.results for use in result.uses]
            for old, new in zip(op.results, made, strict=True):
                if new is old:
                    raise InvalidArgumentError(f"replace(): the function returns what the node '{node}' computes")
                old.replace_all_uses_with(new)
            op.detach()
            op.erase()
            return [*recorder.added, *readers]

        self._apply("replace", change)

    def remove(self, name: str) -> None:
        """Remove a node, so that what read it reads its first input; or an input that nobody reads.

        Raises:
            InvalidArgumentError: There is none, the input is read, or the node has several outputs that are read.
        """
        found = self.node(name)
        if found.op is None:
            self._remove_input(name, found.values[0])
            return
        op = found.op
        read = [result for result in op.results if result.first_use is not None]
        if read and (len(read) > 1 or not op.operands):
            what = "several outputs of the node" if len(read) > 1 else "the node without inputs"
            raise InvalidArgumentError(f"remove(): others read {what} '{name}'; replace() it")

        def change(module: ModuleOp) -> list[Operation]:
            readers = [use.operation for result in read for use in result.uses]
            for result in read:
                result.replace_all_uses_with(op.operands[0])
            op.detach()
            op.erase()
            return readers

        self._apply("remove", change)

    def remove_output(self, name: str) -> None:
        """Take an output out of the graph's signature.

        Raises:
            InvalidArgumentError: There is none of that name, or it is the only one.
        """
        names = output_names(self._module)
        if name not in names:
            raise InvalidArgumentError(f"remove_output(): the graph '{self.name}' has no output '{name}'")
        if len(names) == 1:
            raise InvalidArgumentError(f"remove_output(): '{name}' is the only output")
        with self.edit("remove_output") as module:
            kept = [(n, v) for n, v in zip(names, output_values(module), strict=True) if n != name]
            set_outputs(module, [v for _, v in kept], [n for n, _ in kept])

    def rename(self, old: str, new: str) -> None:
        """Give an input, an output or a node another name.

        Raises:
            InvalidArgumentError: There is none of the old name, or the new one is taken.
        """
        if not isinstance(new, str) or not new:
            raise InvalidArgumentError("rename(): a name is a str that isn't empty")
        inputs, outputs = input_names(self._module), output_names(self._module)
        op = None if old in inputs or old in outputs else self.node(old).op
        if new in inputs or new in outputs:
            raise InvalidArgumentError(f"rename(): the graph has an input or output '{new}' already")
        with self.edit("rename") as module:
            if op is not None:
                op.location = locations.name_location(new, op.location)
                return
            function = main_function(module)
            for key, names in (("arg_attrs", inputs), ("res_attrs", outputs)):
                if old in names:
                    _set_name(function, key, names, names.index(old), new)
            for name, argument in zip(inputs, function.body.block.args, strict=True):
                if name == old:
                    argument.name_hint = new if SSAValue.is_valid_name(new) else None

    # ---- how
    def _value(self, call: str, name: str) -> SSAValue:
        found = self.node(name)
        named = [output.value for output in found.outputs() if output.name == name]
        if not named and len(found.values) != 1:
            raise InvalidArgumentError(
                f"{call}(): the node '{name}' has {len(found.values)} outputs; name one of "
                f"{', '.join(o.name for o in found.outputs())}"
            )
        return named[0] if named else found.values[0]

    def _record(
        self, call: str, fn: Callable[..., Any], given: Sequence[SSAValue | None], before: Operation, count: int
    ) -> tuple[InsertionTrace, list[SSAValue]]:
        """Let a function record its ops in front of one, and return its results."""
        recorder = InsertionTrace(self.name, self._module, self._store, before)
        with recorder.recording():
            returned = fn(*(None if v is None else Tensor.of_value(recorder, v) for v in given))
            leaves = [leaf for _, leaf in flatten(returned)[0]]
            wrong = next((leaf for leaf in leaves if not is_tensor_like(leaf)), None)
            if len(leaves) != count or wrong is not None:
                what = f"{len(leaves)} values" if len(leaves) != count else type(wrong).__name__
                wanted = "one tensor" if count == 1 else f"{count} tensors"
                raise InvalidArgumentError(f"{call}(): the function returns {wanted}, not {what}", location=user_line())
            made = [recorder.value_of(to_tensor(leaf)) for leaf in leaves]
        if recorder.new_states:
            raise InvalidArgumentError(f"{call}(): the function writes to a tensor that it captures in place")
        return recorder, made

    def _apply(self, call: str, change: Callable[[ModuleOp], list[Operation]]) -> None:
        """Change the module, and let types follow; where that fails, the module is as it was."""
        backup = _Backup(self._module)
        try:
            with self.edit(call) as module:
                retyped = change(module)
                for op in retyped:
                    for result in op.results:
                        forget(result)
                _retype(retyped)
                sync_signature(main_function(module))
        except BaseException:
            backup.restore()
            raise

    def _remove_input(self, name: str, value: SSAValue) -> None:
        if value.first_use is not None:
            raise InvalidArgumentError(f"remove(): the input '{name}' is read; replace what reads it first")
        with self.edit("remove") as module:
            function = main_function(module)
            names = input_names(module)
            kept = [n for n in names if n != name]
            entries = function.properties.get("arg_attrs")
            if isinstance(entries, ArrayAttr):
                function.properties["arg_attrs"] = ArrayAttr(
                    [e for e, n in zip(entries.data, names, strict=True) if n in kept]
                )
            function.body.block.erase_arg(function.body.block.args[names.index(name)])


def _retype(ops: Sequence[Operation]) -> None:
    """Infer the types of these ops and of what reads them anew, since they may be others than before."""
    queue, seen = list(dict.fromkeys(ops)), set[Operation]()
    while queue:
        op = queue.pop(0)
        if op in seen or op.parent is None or isinstance(op, func.ReturnOp):
            continue
        seen.add(op)
        before = [r.type for r in op.results]
        if not op.regions and op.operands and hasattr(op, "infer"):
            for result, ty in zip(op.results, op.infer(), strict=True):  # pyright: ignore[reportAttributeAccessIssue]
                result._type = ty
        else:
            propagate([op])
        if [r.type for r in op.results] != before:
            for result in op.results:
                forget(result)
                for use in result.uses:
                    seen.discard(use.operation)
                    queue.append(use.operation)


def _set_name(function: func.FuncOp, key: str, names: Sequence[str], index: int, new: str) -> None:
    entries = function.properties.get(key)
    old = list(entries.data) if isinstance(entries, ArrayAttr) else []
    old += [DictionaryAttr({NAME: StringAttr(n)}) for n in names[len(old) :]]
    old[index] = DictionaryAttr({**old[index].data, NAME: StringAttr(new)})
    function.properties[key] = ArrayAttr(old)


class _Backup:
    """A module as it was; `restore` puts the same ops back where they stood."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.copy = module.clone()
        for mine, theirs in zip(module.walk(), self.copy.walk(), strict=True):
            theirs.location = mine.location

    def restore(self) -> None:
        block = self.module.body.block
        for op in list(block.ops):
            op.detach()
            op.drop_all_references()
        for op in list(self.copy.body.block.ops):
            op.detach()
            block.add_op(op)
        self.module.attributes = self.copy.attributes
