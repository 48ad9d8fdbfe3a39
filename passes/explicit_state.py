"""`explicit-state`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import BlockArgument, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.module import NAME, input_names, main_function, output_names, output_values, set_outputs
from sardonyx.dialects.sx.concat import ConcatOp
from sardonyx.dialects.sx.state import CacheAppendOp, CacheOp, CacheReadOp, StateOp, StateReadOp, StateWriteOp
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass


@dataclass(frozen=True)
class ExplicitStatePass(SxPass):
    """Make the buffers that outlive a run inputs and outputs of the graph.

    Cases:
    1. What a graph reads of a buffer is an input named as the buffer, behind the others; several reads are one input,
       and a read that nobody reads is none.
    2. What a graph writes to a buffer is an output. An output that has this value already is it; else one named
       `<buffer>_out` stands behind the others.
    3. A cache that the graph appends to is an input of the length `rows` and an output that is longer, as
       before `attach_kv_cache()`; the append is a concat.
    4. Not: a graph without such buffers, and caches that have their memory.

    Whoever runs the graph then hands the outputs of one run to the next.

    Requires: nothing. Ensures: no op reads or writes a buffer.
    Promise: exact.
    """

    name = "explicit-state"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        ops = [op for op in module.walk() if isinstance(op, StateOp) and not _is_bound(op)]
        if not ops:
            return
        inputs = _Inputs(module)
        written: dict[str, SSAValue] = {}
        for op in ops:
            if not run.allows("explicit-state", op):
                continue
            name, location = op.name, op.location
            if isinstance(op, StateReadOp | CacheReadOp):
                if op.output.first_use is not None:
                    op.output.replace_all_uses_with(inputs.of(op.buffer_name, op.output))
            elif isinstance(op, CacheAppendOp):
                written[op.buffer_name] = _concat(op, inputs)
            elif isinstance(op, StateWriteOp):
                written[op.buffer_name] = op.value
            run.rewritten("explicit-state", name, location)
            op.detach()
            op.erase()
        values, names = list(output_values(module)), output_names(module)
        for state, value in written.items():
            if not any(value is v for v in values):
                values.append(value)
                names.append(free_name(f"{state}_out", {*names, *input_names(module)}))
        set_outputs(module, values, names)


def _is_bound(op: StateOp) -> bool:
    """Whether a cache's op has its memory already."""
    return isinstance(op, CacheOp) and op.memory[0] is not None


class _Inputs:
    """The inputs that stand for buffers."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.known: dict[str, BlockArgument] = {}

    def of(self, state: str, like: SSAValue) -> BlockArgument:
        """The input of a buffer, of the type of a value that holds its contents."""
        if state not in self.known:
            self.known[state] = add_input(self.module, state, like)
        return self.known[state]


def _concat(op: CacheAppendOp, inputs: _Inputs) -> SSAValue:
    """The append as a concat behind what the cache held."""
    axis, dims = op.attr("axis") % len(dims_of(op.new)), list(dims_of(op.new))
    dims[axis] = Dim.symbol(op.attr("rows"))
    like = ConcatOp.create(result_types=[tensor_type(dtype_of(op.new), dims)])  # for its type alone
    held = inputs.of(op.buffer_name, like.results[0])
    made = ConcatOp.make([held, op.new], axis=axis, location=op.location)
    made.output.name_hint = op.output.name_hint
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(made, op)
    op.output.replace_all_uses_with(made.output)
    return made.output


def add_input(module: ModuleOp, wanted: str, like: SSAValue) -> BlockArgument:
    """A new input behind the others, of a value's type."""
    function = main_function(module)
    name = free_name(wanted, {*input_names(module), *output_names(module)})
    names = input_names(module)
    entries = function.properties.get("arg_attrs")
    old = list(entries.data) if isinstance(entries, ArrayAttr) else []
    old += [DictionaryAttr({NAME: StringAttr(n)}) for n in names[len(old) :]]
    block = function.body.block
    argument = block.insert_arg(like.type, len(block.args))
    argument.name_hint = name if SSAValue.is_valid_name(name) else None
    if isinstance(like.owner, StateOp):
        argument.location = like.owner.location
    function.properties["arg_attrs"] = ArrayAttr([*old, DictionaryAttr({NAME: StringAttr(name)})])
    return argument


def free_name(wanted: str, taken: set[str]) -> str:
    """The name, or with a number where it is taken."""
    name, number = wanted, 1
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name
