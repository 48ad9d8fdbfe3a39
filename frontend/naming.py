"""Names of nodes for people: those that an exported model has, as far as they can be told without exporting.

Inputs are nodes; so are constants, which an exported model has as initializers. A node that was imported keeps its
name; others are called after their ONNX operator and a counter, as `backends.onnx.names` hands them out.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sardonyx.backends.onnx.names import NameSpace, node_name, value_names
from sardonyx.dialects.attributes import WeightAttr
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.module import input_names, main_function, output_names, return_op
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.custom import CustomOp


@dataclass(frozen=True)
class Names:
    """The names of a graph's nodes and values."""

    inputs: tuple[str, ...]
    nodes: dict[Operation, str]
    values: dict[SSAValue, str]

    @staticmethod
    def of(module: ModuleOp) -> Names:
        function = main_function(module)
        block = function.body.block
        ops = [op for op in block.ops if not isinstance(op, func.ReturnOp)]
        inputs, outputs = input_names(module), output_names(module)
        values: dict[SSAValue, str] = dict(zip(block.args, inputs))
        for value, name in zip(return_op(function).operands, outputs):
            values.setdefault(value, name)
        nodes, space = _name_nodes(ops), NameSpace([*inputs, *outputs])
        _name_values(ops, nodes, values, space)
        return Names(tuple(inputs), nodes, values)


def operator_name(op: Operation) -> str:
    """ONNX's name of an op, else its own without the dialect."""
    if isinstance(op, CustomOp):
        return op.operator
    form = op.ONNX if isinstance(op, SxOp) else None
    return form.name if form is not None else op.name.partition(".")[2]


def _name_nodes(ops: list[Operation]) -> dict[Operation, str]:
    space, names = NameSpace(), dict[Operation, str]()
    # From the end: where a pass made several ops from one, the last computes its value and gets its name.
    for op in reversed(ops):
        wanted = node_name(op.location)
        if wanted and not isinstance(op, ConstantOp):
            names[op] = space.claim(wanted)
    for op in ops:
        if op not in names and not isinstance(op, ConstantOp):
            names[op] = space.claim_numbered(operator_name(op))
    return names


def _name_values(
    ops: list[Operation], nodes: dict[Operation, str], values: dict[SSAValue, str], space: NameSpace
) -> None:
    for op in reversed(ops):
        for result, name in zip(op.results, value_names(op.location, len(op.results))):
            if name and result not in values:
                values[result] = space.claim(name)
    for op in ops:
        if isinstance(op, ConstantOp):
            if op.output not in values:
                key = op.value.data.key if isinstance(op.value, WeightAttr) else None
                values[op.output] = space.claim(key) if key else space.claim_numbered("constant")
            nodes[op] = values[op.output]
            continue
        for index, result in enumerate(op.results):
            if result not in values:
                suffix = f"_output_{index}" if len(op.results) > 1 else "_output"
                values[result] = space.claim(nodes[op] + suffix)
