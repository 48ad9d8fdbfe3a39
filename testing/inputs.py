"""Inputs for functions of the sx level, and small random graphs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx.activation import TanhOp
from sardonyx.dialects.sx.binary import AddOp, MulOp, SubOp
from sardonyx.dialects.sx.concat import ConcatOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.sx.unary import AbsOp, ExpOp, NegOp
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.passes import check_inputs
from sardonyx.passes.check_inputs import Inputs


def inputs_of(function: func.FuncOp, count: int = 5, seed: int = 0) -> Iterator[Inputs]:
    """Inputs of a function: ordinary numbers, special values (NaN, infinities, zeros of both signs, limits), other
    extents for its symbols, extents of 1, empty tensors, then ordinary ones again.

    Args:
        function: The function.
        count: How many.
        seed: Of the numbers in them.

    Raises:
        UnsupportedError: An argument has a type of which nothing is known.
    """
    for kind in check_inputs.kinds(count):
        yield check_inputs.inputs_for(function, kind, seed=seed)


_UNARY: tuple[type[SxOp], ...] = (NegOp, AbsOp, ExpOp, TanhOp)
_BINARY: tuple[type[SxOp], ...] = (AddOp, SubOp, MulOp)


def random_module(
    seed: int, ops: int = 12, extra: Callable[[random.Random, list[SSAValue]], SxOp | None] | None = None
) -> ModuleOp:
    """A random graph of elementwise ops, transposes and concats over an input `x: f32[n, m]`.

    Args:
        seed: Equal seeds give equal graphs.
        ops: How many ops.
        extra: Makes an op on some of the values so far, for what a pass of yours wants to see; None for none now.

    Raises:
        InvalidArgumentError: `ops` is not positive.
    """
    if ops < 1:
        raise InvalidArgumentError(f"random_module(): ops is {ops}, and at least one is needed")
    rng = random.Random(seed)
    from sardonyx.dialects.dtypes import float32

    ty = tensor_type(float32, ["n", "m"])
    module, block = create_module(f"random_{seed}", [("x", ty, None), ("y", ty, None)])
    values: list[SSAValue] = list(block.args)
    while len(values) < ops + 2:
        made = extra(rng, values) if extra is not None and rng.random() < 0.3 else None
        op = made or _random_op(rng, values)
        if op is None:
            continue
        block.add_op(op)
        values.extend(op.results)
    unread = [value for value in values[2:] if value.first_use is None]
    set_outputs(module, unread, [f"out{i}" for i in range(len(unread))])
    module.verify()
    return module


def _random_op(rng: random.Random, values: list[SSAValue]) -> SxOp | None:
    value = rng.choice(values)
    kind = rng.random()
    try:
        if kind < 0.3:
            return rng.choice(_UNARY).make(value)
        if kind < 0.6:
            return TransposeOp.make(value, perm=[1, 0])
        same = [other for other in values if dims_of(other) == dims_of(value)]
        if kind < 0.9:
            return rng.choice(_BINARY).make(value, rng.choice(same))
        return ConcatOp.make([value, rng.choice(same)], axis=rng.randrange(2))
    except SardonyxError:  # extents that do not fit: another one is drawn
        return None
