"""Higher-order operators: torch.cond, while_loop and scan as `sx.if`, `sx.loop` and `sx.scan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, Block, Region, SSAValue

from sardonyx.dialects.attributes import fresh_dim, tensor_type, type_dims
from sardonyx.dialects.dtypes import bool_, int64
from sardonyx.dialects.sx.control import IfOp, LoopOp, ScanOp, YieldOp
from sardonyx.dialects.types import join, symbols_of
from sardonyx.errors import InferenceError
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions import elementwise as e, shape as s
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten

MAX_GUESSES = 4
"""How often a body is translated until the dims of what it carries fit; then they are any."""


def _inside(n: Call, graph: Any, given: Sequence[Any]) -> list[SSAValue]:
    """Translate a graph with these arguments into the region that is open; returns what it yields."""
    translator = n.translator
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    translator.values.update(zip(placeholders, given))
    returned = translator.block_of(graph)
    metas = [m.meta.get("val") if hasattr(m, "meta") else m for m in _returned(graph)]
    return [translator.recorder.value_of(_as_tensor(n, v, m)) for v, m in zip(returned, metas)]


def _returned(graph: Any) -> list[Any]:
    output = next(node for node in graph.graph.nodes if node.op == "output").args[0]
    return list(output) if isinstance(output, tuple | list) else [output]


def _as_tensor(n: Call, value: Any, meta: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Extent):
        return value.scalar()
    if isinstance(value, bool):
        return to_tensor(value, bool_)
    if isinstance(value, int | float):
        return to_tensor(value)
    raise n.refuse(f"a branch or body that results in {type(value).__name__}")


def _yield(n: Call, block: Block, values: Sequence[SSAValue]) -> None:
    end = YieldOp.create(operands=list(values))
    location = n.translator.recorder.location()
    if location is not None:
        end.location = location
    block.add_op(end)


def _flag(value: Any) -> Tensor:
    tensor = to_tensor(value)
    return e.cast(s.reshape(tensor, ()) if tensor.ndim else tensor, bool_)


@aten("hop::cond")
def cond(n: Call, predicate: Any, true_graph: Any, false_graph: Any, operands: Any = ()) -> Any:
    if isinstance(predicate, bool):
        chosen = true_graph if predicate else false_graph
        placeholders = [node for node in chosen.graph.nodes if node.op == "placeholder"]
        n.translator.values.update(zip(placeholders, operands))
        return tuple(n.translator.block_of(chosen))
    recorder = n.translator.recorder
    flag = recorder.value_of(_flag(predicate))
    regions, counts = [], []
    for graph in (true_graph, false_graph):
        with recorder.region() as region:
            values = _inside(n, graph, operands)
            _yield(n, region.block, values)
        regions.append(Region(region.block))
        counts.append(len(values))
    op = IfOp.make(flag, results=counts[0], regions=regions, location=recorder.location())
    recorder.append(op)
    return _results(n, op.results)


def _results(n: Call, results: Sequence[SSAValue]) -> tuple[Any, ...]:
    """The results of an op with regions; integers that torch counts with are extents again."""
    metas = n.meta if isinstance(n.meta, tuple | list) else [n.meta] * len(results)
    found: list[Any] = []
    for value, meta in zip(results, metas):
        tensor = Tensor.of_value(n.translator.recorder, value)
        found.append(tensor if hasattr(meta, "dtype") else n.translator.extent_of(meta, s.reshape(tensor, (1,))))
    return tuple(found)


def _general(ty: Attribute) -> Attribute:
    return tensor_type(ty.element_type, [fresh_dim() for _ in ty.get_shape()])  # pyright: ignore[reportAttributeAccessIssue]


@aten("hop::wrap_with_set_grad_enabled", "hop::wrap_with_autocast", "hop::invoke_subgraph")
def wrapped(n: Call, *args: Any) -> Any:
    """A graph in a context that changes no value: it is put in the node's place."""
    import torch

    where = next(i for i, a in enumerate(args) if isinstance(a, torch.fx.GraphModule))
    graph, given = args[where], args[where + 1 :]
    if given and isinstance(given[0], str):  # invoke_subgraph names the graph
        given = given[1:]
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    n.translator.values.update(zip(placeholders, given))
    return tuple(n.translator.block_of(graph))


@aten("hop::with_effects")
def with_effects(n: Call, token: Any, target: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """An operator whose order matters to torch (a check): its token is nothing here."""
    from sardonyx.frontend.torch.translate import DROPPED, no_translation

    if str(target) in DROPPED:
        return None, None
    translation = n.translator.translation_of(target)
    if translation is None:
        raise no_translation(str(target))
    found = translation(n, *args, **kwargs)
    return None, *(found if isinstance(found, tuple | list) else (found,))


@aten("hop::while_loop")
def while_loop(n: Call, cond_graph: Any, body_graph: Any, carried: Any, extra: Any = ()) -> Any:
    recorder = n.translator.recorder
    metas = [m.meta.get("val") if hasattr(m, "meta") else m for m in n.node.args[2]]
    initial = [recorder.value_of(_as_tensor(n, v, m)) for v, m in zip(carried, metas)]
    types: list[Attribute] = [tensor_type(v.type.element_type, type_dims(v.type)) for v in initial]  # pyright: ignore[reportAttributeAccessIssue]
    free: frozenset[str] = frozenset()
    for guess in range(MAX_GUESSES + 1):
        if guess == MAX_GUESSES:
            types = [_general(ty) for ty in types]
            free = frozenset(name for ty in types for name in symbols_of(ty))
        with recorder.region([tensor_type(int64, []), tensor_type(bool_, []), *types]) as region:
            block = region.block
            after = _inside(n, body_graph, [*(_state(n, v, m) for v, m in zip(block.args[2:], metas)), *extra])
            wider = _joined(n, types, after, free)
            if wider == types:
                again = [_state(n, v, m) for v, m in zip(after, metas)]
                going = _inside(n, cond_graph, [*again, *extra])
                flag = recorder.value_of(_flag(Tensor.of_value(recorder, going[0])))
                _yield(n, block, [flag, *after])
        if wider == types:
            first = _first_condition(n, cond_graph, carried, extra)
            op = LoopOp.make(
                None, first, initial, results=len(initial), regions=[Region(block)], location=recorder.location()
            )
            recorder.append(op)
            return _results(n, op.results)
        _discard(block)
        free |= {name for old, new in zip(types, wider) for name in symbols_of(new) - symbols_of(old)}
        types = wider
    raise n.refuse("the types of what the loop carries do not settle")


def _first_condition(n: Call, graph: Any, carried: Any, extra: Any) -> SSAValue:
    recorder = n.translator.recorder
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    n.translator.values.update(zip(placeholders, [*carried, *extra]))
    return recorder.value_of(_flag(n.translator.block_of(graph)[0]))


def _state(n: Call, value: SSAValue, meta: Any) -> Any:
    """A carried value as the body sees it: a tensor, or a size."""
    tensor = Tensor.of_value(n.translator.recorder, value)
    if hasattr(meta, "dtype"):
        return tensor
    return Extent(fresh_dim(), lambda: s.reshape(tensor, (1,)))


def _joined(n: Call, types: Sequence[Attribute], after: Sequence[SSAValue], free: frozenset[str]) -> list[Attribute]:
    found: list[Attribute] = []
    for index, (ty, value) in enumerate(zip(types, after)):
        try:
            found.append(join(ty, value.type, free))
        except InferenceError as error:
            raise n.refuse(f"the carried value {index} changes: {error.message}") from None
    return found


def _discard(block: Block) -> None:
    """Drop a block that was filled in vain, so that nothing outside is read by it."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                _discard(inner)
        op.detach()
        op.erase(safe_erase=False)


@aten("hop::scan")
def scan(n: Call, combine: Any, init: Any, scanned: Any, additional: Any = ()) -> Any:
    recorder = n.translator.recorder
    states = [recorder.value_of(to_tensor(v)) for v in init]
    inputs = [recorder.value_of(to_tensor(v)) for v in scanned]
    types: list[Attribute] = [tensor_type(v.type.element_type, type_dims(v.type)) for v in states]  # pyright: ignore[reportAttributeAccessIssue]
    slices = [tensor_type(v.type.element_type, type_dims(v.type)[1:]) for v in inputs]  # pyright: ignore[reportAttributeAccessIssue]
    with recorder.region([*types, *slices]) as region:
        given = [Tensor.of_value(recorder, v) for v in region.block.args]
        values = _inside(n, combine, [*given, *additional])
        _yield(n, region.block, values)
    op = ScanOp.make(
        [*states, *inputs],
        results=len(values),
        regions=[Region(region.block)],
        location=recorder.location(),
        num_scan_inputs=len(inputs),
    )
    recorder.append(op)
    return _results(n, op.results)
