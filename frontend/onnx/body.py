"""Graphs in attributes (branches, bodies) as blocks of the IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.sx.control import YieldOp
from sardonyx.dialects.types import describe_type
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.types import contradicts, declared_types, stated_kind

if TYPE_CHECKING:
    from sardonyx.frontend.onnx.node import NodeContext


def import_body(n: NodeContext, graph: onnx.GraphProto, types: Sequence[Attribute]) -> tuple[Region, list[SSAValue]]:
    """A graph of a node's attribute as a region; returns it and what it yields.

    Names that the graph does not define are those of the graphs around it.

    Args:
        n: The node.
        graph: The graph.
        types: The types of the graph's inputs.

    Raises:
        InvalidArgumentError: The graph takes another number of inputs, or declares them of other kinds or dtypes.
    """
    from sardonyx.frontend.onnx.importer import Scope

    what = f"its graph '{graph.name}'"
    initializers = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    inputs = [v for v in graph.input if v.name not in initializers]
    if len(inputs) != len(types):
        raise InvalidArgumentError(f"{what} takes {len(inputs)} inputs, but gets {len(types)}")
    block = Block(arg_types=types)
    for argument, info, ty in zip(block.args, inputs, types, strict=True):
        stated = stated_kind(info.type)
        if contradicts(stated, ty):
            raise InvalidArgumentError(
                f"{what} declares its input '{info.name}' as {stated}, but gets {describe_type(ty)}"
            )
        argument.location = locations.name_location(info.name)
        argument.name_hint = info.name if SSAValue.is_valid_name(info.name) else None
    outer = n.scope
    scope = Scope(
        {v.name: a for v, a in zip(inputs, block.args, strict=True)},
        outer.opsets,
        prefix=outer.prefix,
        outer=outer,
        depth=outer.depth + 1,
        declared=declared_types(graph),
        loops=outer.loops,
    )
    with n.importer.into(block):
        n.importer.body(graph, scope)
    yields: list[SSAValue] = []
    for info in graph.output:
        value = scope.find(info.name)
        if value is None:
            raise InvalidArgumentError(f"{what} does not compute its output '{info.name}'")
        stated = stated_kind(info.type)
        if contradicts(stated, value.type):
            raise InvalidArgumentError(
                f"{what} declares its output '{info.name}' as {stated}, but it is {describe_type(value.type)}"
            )
        yields.append(value)
    end = YieldOp.create(operands=yields)
    end.location = n.location
    block.add_op(end)
    return Region(block), yields


def discard(region: Region) -> None:
    """Drop a region that was built in vain: what it reads from outside is no longer read by it."""
    for block in region.blocks:
        for op in reversed(list(block.ops)):
            _drop(op)


def _drop(op: Operation) -> None:
    for region in op.regions:
        discard(region)
    op.detach()
    op.erase(safe_erase=False)
