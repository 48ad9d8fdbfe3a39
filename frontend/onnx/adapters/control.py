"""Adapters of control flow: the graphs in the attributes of If, Loop and Scan become regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from sardonyx.backends.onnx.tensors import dtype_from_onnx
from sardonyx.dialects.attributes import (
    dims_of,
    dtype_of,
    fresh_dim,
    static_shape,
    tensor_type,
    type_dims,
    unranked_type,
)
from sardonyx.dialects.dtypes import bool_, int64
from sardonyx.dialects.sx.control import IfOp, LoopOp, ScanOp, YieldOp
from sardonyx.dialects.sx.support import is_unranked
from sardonyx.dialects.types import OptionalType, SequenceType, is_tensor, join, symbols_of
from sardonyx.errors import InferenceError, InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.body import discard, import_body
from sardonyx.frontend.onnx.inline import known_branch
from sardonyx.frontend.onnx.node import NodeContext
from sardonyx.frontend.onnx.types import type_of

MAX_GUESSES = 3
"""How often a body is imported until the types of what it carries fit; then they are only as known as they must be."""
NESTED_GUESSES = 3
"""In loops that are nested deeper than that nothing is guessed: each guess multiplies the work of those inside."""


@adapts("SequenceEmpty")
def sequence_empty(n: NodeContext) -> Sequence[SSAValue]:
    number = n.attr("dtype")
    dtype = None if number is None else dtype_from_onnx(number, "its attribute 'dtype'")
    return [n("sequence_empty", dtype=dtype)]


@adapts("Optional")
def optional(n: NodeContext) -> Sequence[SSAValue]:
    proto = n.attr("type")
    return [n("optional", n.input(0), type=None if proto is None else type_of(proto, "its attribute 'type'"))]


def _graph(n: NodeContext, name: str) -> onnx.GraphProto:
    graph = n.attr(name)
    if not isinstance(graph, onnx.GraphProto):
        raise InvalidArgumentError(f"its attribute '{name}' is missing")
    return graph


@adapts("If")
def if_(n: NodeContext) -> Sequence[SSAValue]:
    known = known_branch(n.importer, n, n.scope)
    if known is not None:
        return known
    then, then_yields = import_body(n, _graph(n, "then_branch"), [])
    other, _ = import_body(n, _graph(n, "else_branch"), [])
    op = IfOp.make(n.required(0), results=len(then_yields), regions=[then, other], location=n.location)
    return n.importer.add(op).results


@adapts("Loop")
def loop(n: NodeContext) -> Sequence[SSAValue]:
    body = _graph(n, "body")
    initial = [n.required(index) for index in range(2, len(n.inputs))]
    trips, condition = n.input(0), n.input(1)
    flag = tensor_type(bool_, [1]) if condition is not None and static_shape(condition) == (1,) else None
    leading = [tensor_type(int64, []), flag or tensor_type(bool_, [])]
    if len(body.output) < 1 + len(initial):
        raise InvalidArgumentError(f"its body has {len(body.output)} outputs for {len(initial)} carried values")

    def yielded(yields: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return yields[1 : 1 + len(initial)]

    region, yields = _fitting(n, body, leading, initial, [], yielded)
    op = LoopOp.make(trips, condition, initial, results=len(yields) - 1, regions=[region], location=n.location)
    return n.importer.add(op).results


@adapts("Scan")
def scan(n: NodeContext) -> Sequence[SSAValue]:
    inputs = [n.required(index) for index in range(len(n.inputs))]
    count = n.attr("num_scan_inputs")
    lists = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")
    properties = {name: n.attr(name) for name in lists if n.has(name)}
    return _scan(n, inputs, count, properties)


@adapts("Scan", until=8)
def scan_8(n: NodeContext) -> Sequence[SSAValue]:
    """Over batches: an outer scan over axis 0 of all operands, whose body is the scan of one entry of the batch."""
    lengths = n.input(0)
    inputs = [n.required(index) for index in range(1, len(n.inputs))]
    count = n.attr("num_scan_inputs")
    if not isinstance(count, int) or not 1 <= count <= len(inputs):
        raise InvalidArgumentError(f"num_scan_inputs {count} of {len(inputs)} inputs is out of range")
    directions = {"scan_input_directions": n.attr("directions")} if n.has("directions") else {}
    outer = [*inputs, *([] if lengths is None else [lengths])]
    slices = [_slice(value, 0) for value in outer]
    block = Block(arg_types=slices)
    with n.importer.into(block):
        given: list[SSAValue] = list(block.args[: len(inputs)])
        states = len(inputs) - count
        if lengths is not None:
            last = n("unsqueeze", n("cast", block.args[-1], to=int64), n.constant([0]))
            for index in range(states, len(inputs)):
                given[index] = n("slice", given[index], n.constant([0]), last, n.constant([0]))
        results = list(_scan(n, given, count, directions))
        if lengths is not None:  # rows beyond an entry's length are zeros
            extent = n("shape", block.args[states], start=0, end=1)
            pads = n("concat", [n.constant([0]), n("sub", extent, last)], axis=0)
            for index in range(states, len(results)):
                results[index] = n("pad", results[index], pads, None, n.constant([0]))
        end = YieldOp.create(operands=results)
        end.location = n.location
        block.add_op(end)
    op = ScanOp.make(
        outer, results=len(results), regions=[Region(block)], location=n.location, num_scan_inputs=len(outer)
    )
    return n.importer.add(op).results


def _scan(n: NodeContext, inputs: Sequence[SSAValue], count: int, properties: dict[str, Any]) -> Sequence[SSAValue]:
    if not isinstance(count, int) or not 1 <= count <= len(inputs):
        raise InvalidArgumentError(f"num_scan_inputs {count} of {len(inputs)} inputs is out of range")
    axes = properties.get("scan_input_axes", (0,) * count)
    if len(axes) != count:
        raise InvalidArgumentError(f"scan_input_axes has {len(axes)} entries for {count} scan inputs")
    initial, scanned = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    slices = [_slice(value, axis) for value, axis in zip(scanned, axes, strict=True)]
    body = _graph(n, "body")
    if len(body.output) < len(initial):
        raise InvalidArgumentError(f"its body has {len(body.output)} outputs for {len(initial)} states")
    region, yields = _fitting(n, body, [], initial, slices, lambda values: values[: len(initial)])
    op = ScanOp.make(
        inputs, results=len(yields), regions=[region], location=n.location, num_scan_inputs=count, **properties
    )
    return n.importer.add(op).results


def _slice(value: SSAValue, axis: int) -> Attribute:
    if not is_tensor(value.type):
        raise InvalidArgumentError(f"a scan input is a tensor, not {value.type}")
    if is_unranked(value):
        return unranked_type(dtype_of(value))
    dims = list(dims_of(value))
    if not -len(dims) <= axis < len(dims):
        raise InvalidArgumentError(f"axis {axis} of a scan input is out of range for rank {len(dims)}")
    del dims[axis]
    return tensor_type(dtype_of(value), dims)


def _fitting(
    n: NodeContext,
    body: onnx.GraphProto,
    leading: Sequence[Attribute],
    initial: Sequence[SSAValue],
    trailing: Sequence[Attribute],
    carried: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
) -> tuple[Region, list[SSAValue]]:
    """The body with types of the carried values that fit before and after each iteration.

    The first guess is what they have at first. What does not stay so in the body (a dim that changes) is a new symbol
    in the next guess, and so on.
    """
    types = [_settled(v.type) for v in initial]
    free: frozenset[str] = frozenset()
    first = 0 if n.scope.loops < NESTED_GUESSES else MAX_GUESSES + 1
    n.scope.loops += 1
    try:
        for guess in range(first, MAX_GUESSES + 2):
            if guess >= MAX_GUESSES:  # all that is certain is the rank, then not even that
                types = [_general(ty, ranked=guess == MAX_GUESSES) for ty in types]
                free = frozenset(name for ty in types for name in symbols_of(ty))
            region, yields = import_body(n, body, [*leading, *types, *trailing])
            wider: list[Attribute] = []
            for index, (ty, after) in enumerate(zip(types, carried(yields), strict=True)):
                try:
                    wider.append(join(ty, after.type, free))
                except InferenceError as error:
                    raise InvalidArgumentError(f"its carried value {index} changes: {error.message}") from None
            if wider == types:
                return region, yields
            discard(region)
            free |= {name for old, new in zip(types, wider) for name in symbols_of(new) - symbols_of(old)}
            types = wider
    finally:
        n.scope.loops -= 1
    raise InvalidArgumentError("the types of what its body carries do not settle")


def _settled(ty: Attribute) -> Attribute:
    """A type whose dims all have names or numbers."""
    return tensor_type(dtype_of(ty), type_dims(ty)) if isinstance(ty, TensorType) else ty


def _general(ty: Attribute, ranked: bool) -> Attribute:
    """The type of all tensors of that dtype (and rank)."""
    if isinstance(ty, SequenceType | OptionalType):
        return type(ty)(_general(ty.element, ranked=False))
    if not ranked or not isinstance(ty, TensorType):
        return unranked_type(dtype_of(ty)) if is_tensor(ty) else ty
    return tensor_type(dtype_of(ty), [fresh_dim() for _ in ty.get_shape()])
