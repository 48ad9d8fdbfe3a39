"""The shape of a graph in the IR: one `builtin.module` with one `func.func @main`.

Names of inputs and outputs are the argument and result attributes `sx.name`; the module's attributes hold the graph's
name (`sx.graph`), the opset it came with (`sx.opset`), producer and metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from sardonyx.errors import InvalidArgumentError

MAIN = "main"
NAME = "sx.name"
GRAPH_NAME = "sx.graph"
OPSET = "sx.opset"
PRODUCER = "sx.producer"


def create_module(name: str, inputs: Sequence[tuple[str, Attribute, LocationAttr | None]]) -> tuple[ModuleOp, Block]:
    """An empty graph with these inputs (name, type, location); returns the module and the body to fill.

    `set_outputs` ends it.
    """
    block = Block(arg_types=[ty for _, ty, _ in inputs])
    for argument, (input_name, _, location) in zip(block.args, inputs, strict=True):
        argument.name_hint = _hint(input_name)
        if location is not None:
            argument.location = location
    function = func.FuncOp(MAIN, FunctionType.from_lists([ty for _, ty, _ in inputs], []), Region(block))
    function.properties["arg_attrs"] = _names_attr([n for n, _, _ in inputs])
    module = ModuleOp([function])
    module.attributes[GRAPH_NAME] = StringAttr(name)
    return module, block


def set_outputs(module: ModuleOp, values: Sequence[SSAValue], names: Sequence[str]) -> None:
    """State the graph's outputs: the return op, the function's type and the result names."""
    function = main_function(module)
    block = function.body.block
    last = block.last_op
    if isinstance(last, func.ReturnOp):
        last.detach()
        last.erase()
    block.add_op(func.ReturnOp(*values))
    function.properties["res_attrs"] = _names_attr(names)
    sync_signature(function)


def sync_signature(function: func.FuncOp) -> None:
    """Make the function's type follow its arguments and its return."""
    block = function.body.block
    returned = return_op(function).operands
    types = FunctionType.from_lists([a.type for a in block.args], [v.type for v in returned])
    function.properties["function_type"] = types


def main_function(module: ModuleOp) -> func.FuncOp:
    """The graph's function: `@main`, or the only one.

    Raises:
        InvalidArgumentError: The module has no such function.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    for function in functions:
        if function.sym_name.data == MAIN:
            return function
    if len(functions) == 1:
        return functions[0]
    raise InvalidArgumentError(f"the module has {len(functions)} functions and none is called @{MAIN}")


def return_op(function: func.FuncOp) -> func.ReturnOp:
    last = function.body.block.last_op
    if not isinstance(last, func.ReturnOp):
        raise InvalidArgumentError(f"function @{function.sym_name.data} does not end with func.return")
    return last


def input_values(module: ModuleOp) -> tuple[BlockArgument[Any], ...]:
    return tuple(main_function(module).body.block.args)


def output_values(module: ModuleOp) -> tuple[SSAValue, ...]:
    return tuple(return_op(main_function(module)).operands)


def input_names(module: ModuleOp) -> list[str]:
    """The inputs' names; one that has none is called `arg<i>`."""
    function = main_function(module)
    return _read_names(function.properties.get("arg_attrs"), len(function.body.block.args), "arg")


def output_names(module: ModuleOp) -> list[str]:
    """The outputs' names; one that has none is called `out<i>`."""
    function = main_function(module)
    return _read_names(function.properties.get("res_attrs"), len(return_op(function).operands), "out")


def get_text(module: ModuleOp, key: str) -> str | None:
    found = module.attributes.get(key)
    return found.data if isinstance(found, StringAttr) else None


def get_opset(module: ModuleOp) -> int | None:
    """The opset that the graph was imported with."""
    found = module.attributes.get(OPSET)
    return found.value.data if isinstance(found, IntegerAttr) else None


def set_opset(module: ModuleOp, opset: int) -> None:
    module.attributes[OPSET] = IntegerAttr(opset, i64)


def _names_attr(names: Sequence[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({NAME: StringAttr(n)}) for n in names])


def _read_names(attr: Attribute | None, count: int, prefix: str) -> list[str]:
    entries: Sequence[Any] = attr.data if isinstance(attr, ArrayAttr) else ()
    out: list[str] = []
    for i in range(count):
        name = entries[i].data.get(NAME) if i < len(entries) and isinstance(entries[i], DictionaryAttr) else None
        out.append(name.data if isinstance(name, StringAttr) else f"{prefix}{i}")
    return out


def _hint(name: str) -> str | None:
    return name if SSAValue.is_valid_name(name) else None
