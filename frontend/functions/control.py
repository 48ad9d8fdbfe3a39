"""Structured control flow: `cond`, `while_loop`, `fori_loop`, `scan`, under JAX's names.

While tracing they record `sx.if`, `sx.loop` and `sx.scan`: the functions are called to record the regions, and may use
tensors from outside and write to them in place. Without a trace they are Python's `if` and `while`, so one function
runs either way. What is carried may be a tensor, or nested lists, tuples and dicts of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from xdsl.ir import Region

from sardonyx.dialects.dtypes import DType, bool_, int64
from sardonyx.dialects.sx.control import IfOp
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.containers import Structure, flatten
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.operands import cast, is_scalar, scalar, to_tensor
from sardonyx.frontend.regions import (
    Loop,
    Recorded,
    Scan,
    carried_leaf,
    carry_and_rows,
    condition_flag,
    record_op,
    snapshot,
    value_in,
)
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.trace import Trace, current

T = TypeVar("T")


# ---- cond


def cond(pred: Any, true_fn: Callable[..., T], false_fn: Callable[..., T], *operands: Any) -> T:
    """`true_fn(*operands)` where `pred` is true, else `false_fn(*operands)`.

    Args:
        pred: A bool, or a tensor of one bool.
        true_fn: What is computed where it is true.
        false_fn: What else; it returns tensors of the same dtypes in the same structure. Extents may differ.
        operands: What the functions are called with.

    Raises:
        InvalidArgumentError: The results of the two don't go together, or `pred` is not one bool.
    """
    trace = current()
    if trace is None or not (isinstance(pred, Tensor) and pred.is_traced):
        return snapshot((true_fn if _truth(pred, "cond") else false_fn)(*operands))
    condition = condition_flag(pred, "cond")
    branches = [Recorded(trace, (), lambda fn=fn: fn(*operands)) for fn in (true_fn, false_fn)]
    first, second = branches
    if first.structure != second.structure:
        raise InvalidArgumentError(
            f"cond: true_fn returns {_described(first)}, false_fn {_described(second)}", location=user_line()
        )
    leaves = [_alike(path, a, b, "true_fn", "false_fn") for (path, a), (_, b) in zip(first.leaves, second.leaves)]
    written = first.region.written | second.region.written
    regions: list[Region] = []
    for number, branch in enumerate(branches):
        values = [value_in(trace, branch, pair[number]) for pair in leaves]
        values += [branch.region.values.get(key, before) for key, (_, before) in written.items()]
        regions.append(branch.close(values))
    op = record_op(
        trace, lambda: IfOp.make(trace.value_of(condition), results=len(leaves) + len(written), regions=regions)
    )
    return _results(trace, op, first.structure, len(leaves), written.values())


# ---- loops


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """`val = body_fun(val)`, from `init_val` on, as long as `cond_fun(val)` is true.

    Args:
        cond_fun: Returns one bool.
        body_fun: Returns the next value, of the same structure and dtypes; extents may differ from turn to turn.
        init_val: The first value.

    Raises:
        InvalidArgumentError: A turn's value does not go together with the one before.
    """
    trace = current()
    if trace is None:
        while _truth(cond_fun(init_val), "while_loop"):
            init_val = _checked_turn(body_fun(init_val), init_val, "while_loop")
        return init_val

    def body(loop: Loop, _: Tensor, carried: Any) -> tuple[Any, Any]:
        after = body_fun(carried)
        loop.check_structure(after)
        return condition_flag(cond_fun(after), "while_loop"), after

    return Loop(trace, "while_loop", init_val, body, cond_fun).record(None)[0]


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Tensor, Any], Any], init_val: Any) -> Any:
    """`val = body_fun(i, val)` for i from `lower` to `upper`, that excluded.

    Args:
        lower: The first number: an int, an extent or a tensor of one integer.
        upper: The number behind the last one.
        body_fun: Called with an int64 tensor [] and the value; returns the next value.
        init_val: The first value.

    Raises:
        InvalidArgumentError: A turn's value does not go together with the one before.
    """
    trace = current()
    if trace is None:
        for number in range(_count(lower), _count(upper)):
            made = body_fun(Tensor.of_array(np.asarray(number, np.int64)), init_val)
            init_val = _checked_turn(made, init_val, "fori_loop")
        return init_val
    start, stop = _index(lower, "fori_loop"), _index(upper, "fori_loop")

    def body(loop: Loop, number: Tensor, carried: Any) -> tuple[None, Any]:
        return None, body_fun(number + start, carried)

    return Loop(trace, "fori_loop", init_val, body).record(stop - start)[0]


fori = fori_loop


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: Any = None, reverse: bool = False
) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` for each slice x of `xs` along the first axis; the last carry, and all y stacked.

    Args:
        f: Called with the carry and the slices; returns the next carry and what is stacked (None for nothing).
        init: The first carry.
        xs: A tensor, or nested ones, all of the same first extent; None where nothing is taken apart.
        length: How many turns, where `xs` is None.
        reverse: Whether the last slice comes first; the ys then stand as the xs do.

    Raises:
        InvalidArgumentError: The carries of two turns don't go together, or the first extents differ.
    """
    trace = current()
    leaves = [] if xs is None else [(path, to_tensor(leaf)) for path, leaf in flatten(xs)[0]]
    if not leaves and length is None:
        raise InvalidArgumentError("scan: without xs it takes a length", location=user_line())
    if any(not leaf.ndim for _, leaf in leaves):
        raise InvalidArgumentError("scan: what is scanned has at least one axis", location=user_line())
    if trace is None:
        return _scan_now(f, init, xs, leaves, length, reverse)
    if leaves:
        return Scan(trace, f, init, flatten(xs)[1], [leaf for _, leaf in leaves], reverse).record()

    def body(loop: Loop, number: Tensor, carried: Any) -> tuple[None, Any, Any]:
        return None, *carry_and_rows(f(carried, None))

    carry, rows = Loop(trace, "scan", init, body).record(_index(length, "scan"))
    if reverse and rows is not None:
        from sardonyx.frontend.functions.joining import flip

        found, structure = flatten(rows)
        rows = structure.build([flip(row, axis=0) for _, row in found])
    return carry, rows


def _scan_now(
    f: Callable[[Any, Any], Any], carry: Any, xs: Any, leaves: list[tuple[str, Tensor]], length: Any, reverse: bool
) -> tuple[Any, Any]:
    lengths = {leaf.shape[0] for _, leaf in leaves} or {_count(length)}
    if len(lengths) > 1 or (leaves and length is not None and _count(length) not in lengths):
        raise InvalidArgumentError(f"scan: the first extents are {sorted(lengths)}, length is {length}",
                                   location=user_line())  # fmt: skip
    structure = None if xs is None else flatten(xs)[1]
    rows: list[list[Any]] = []
    shape: Structure | None = None
    turns = range(lengths.pop())
    for number in reversed(turns) if reverse else turns:
        x = None if structure is None else structure.build([Tensor.of_array(t.numpy()[number]) for _, t in leaves])
        after, y = carry_and_rows(f(carry, x))
        carry = _checked_turn(after, carry, "scan")
        if y is not None:
            found, shape = flatten(y)
            rows.append([to_tensor(leaf).numpy() for _, leaf in found])
    if shape is None:
        if not turns:
            raise InvalidArgumentError(
                "scan: without a turn the shape of what is stacked is not known; trace it", location=user_line()
            )
        return carry, None
    columns = zip(*(rows[::-1] if reverse else rows), strict=True)
    return carry, shape.build([Tensor.of_array(np.stack(column)) for column in columns])


# ---- parts


def _results(trace: Trace, op: Any, structure: Structure, count: int, written: Any) -> Any:
    for (tensor, _), result in zip(written, op.results[count:], strict=True):
        trace.rebind(tensor, result)
    return structure.build([Tensor.of_value(trace, r) for r in op.results[:count]])


def _alike(path: str, a: Any, b: Any, one: str, other: str) -> tuple[Tensor, Tensor]:
    """The results of two branches; a Python number takes the dtype of the other branch."""
    x, y = to_tensor(a), to_tensor(b)
    if x.dtype != y.dtype:
        if is_scalar(a):
            return scalar(a, y.dtype), y
        if is_scalar(b):
            return x, scalar(b, x.dtype)
        where = f" at {path}" if path else ""
        raise InvalidArgumentError(
            f"cond: {one} returns {x.dtype}{where}, {other} {y.dtype}; convert one of them (astype)",
            location=user_line(),
        )
    return x, y


def _described(recorded: Recorded) -> str:
    count = recorded.structure.size
    kind = recorded.structure.kind
    return "one tensor" if kind is None else f"a {kind.__name__} of {count} tensors"


def _truth(value: Any, call: str) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    tensor = to_tensor(value)
    if tensor.size != 1 or tensor.dtype != bool_:
        raise InvalidArgumentError(
            f"{call}: the condition is one bool, not {tensor.dtype}{list(tensor.shape)}", location=user_line()
        )
    return bool(tensor)


def _index(value: Any, call: str) -> Tensor:
    """A count as an int64 tensor []."""
    tensor = to_tensor(value.scalar() if isinstance(value, Extent) else value)
    if not tensor.dtype.is_integer or tensor.ndim:
        raise InvalidArgumentError(f"{call}: a count is one integer, not {tensor.dtype}", location=user_line())
    return cast(tensor, int64)


def _count(value: Any) -> int:
    import operator

    if isinstance(value, Tensor):
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"a count is an int, not {type(value).__name__}", location=user_line()) from None


def _checked_turn(after: Any, before: Any, call: str) -> Any:
    """What is carried on after a turn: tensors of the dtypes and in the structure that they had before."""
    (old, shape), (new, structure) = flatten(before), flatten(after)
    if shape != structure:
        raise InvalidArgumentError(
            f"{call}: what is carried has {shape.size} tensors, but the function returns {structure.size} in another "
            "structure",
            location=user_line(),
        )
    leaves: list[Tensor] = []
    for (path, was), (_, leaf) in zip(old, new, strict=True):
        made = carried_leaf(call, path, leaf)
        wanted: DType = made.dtype if is_scalar(was) else carried_leaf(call, path, was).dtype
        if made.dtype != wanted and not is_scalar(leaf):
            where = f" at {path}" if path else ""
            raise InvalidArgumentError(
                f"{call}: what is carried{where} is {wanted} at first, but {made.dtype} after a turn; convert it "
                "(astype)",
                location=user_line(),
            )
        leaves.append(made.__copy__() if made.dtype == wanted else scalar(leaf, wanted))
    return structure.build(leaves)
