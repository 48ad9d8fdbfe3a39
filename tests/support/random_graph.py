"""Random graphs of ops that transposes move through, and some that stop them."""

from __future__ import annotations

import random

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import static_shape, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import float32
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.constant import ConstantOp


class RandomGraph:
    """Values whose shapes are orders of (2, 3, 4), joined by ops that transposes move through, and some that do not."""

    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.module, self.block = create_module(
            "g", [(f"x{i}", tensor_type(float32, [2, 3, 4]), None) for i in range(3)]
        )
        self.values: list[SSAValue] = list(self.block.args)
        steps = [self.transpose] * 5 + [self.unary, self.binary, self.binary, self.vector, self.softmax, self.keep,
                 self.drop, self.concat, self.split, self.pad, self.barrier, self.where]  # fmt: skip
        for _ in range(size):
            self.values.append(self.random.choice(steps)())
        outputs = self.random.sample(self.values[3:], 3)
        set_outputs(self.module, outputs, ["a", "b", "c"])

    def op(self, name: str, *operands: object, **props: object) -> SxOp:
        op = BY_NAME["sx." + name].make(*operands, **props)  # pyright: ignore[reportArgumentType]
        self.block.add_op(op)
        return op

    def ints(self, *values: int) -> SSAValue:
        constant = ConstantOp.dense(np.array(values, np.int64))
        self.block.add_op(constant)
        return constant.output

    def pick(self) -> SSAValue:
        return self.random.choice(self.values[-6:])

    def like(self, value: SSAValue) -> SSAValue:
        """Another value, transposed to the same shape."""
        other = self.pick()
        want, have = static_shape(value), static_shape(other)
        assert want is not None and have is not None
        return other if want == have else self.op("transpose", other, perm=[have.index(d) for d in want]).results[0]

    def transpose(self) -> SSAValue:
        return self.op("transpose", self.pick(), perm=self.random.sample(range(3), 3)).results[0]

    def unary(self) -> SSAValue:
        return self.op(self.random.choice(["relu", "neg", "abs"]), self.pick()).results[0]

    def binary(self) -> SSAValue:
        x = self.pick()
        return self.op(self.random.choice(["add", "sub", "mul"]), x, self.like(x)).results[0]

    def where(self) -> SSAValue:
        x = self.pick()
        condition = self.op("less", x, self.like(x)).results[0]
        return self.op("where", condition, x, self.like(x)).results[0]

    def vector(self) -> SSAValue:
        x = self.pick()
        shape = static_shape(x)
        assert shape is not None
        rank = self.random.randint(0, 2)
        constant = ConstantOp.dense(np.arange(np.prod(shape[3 - rank :]), dtype=np.float32).reshape(shape[3 - rank :]))
        self.block.add_op(constant)
        return self.op("add", x, constant.output).results[0]

    def softmax(self) -> SSAValue:
        return self.op("softmax", self.pick(), axis=self.random.randrange(-3, 3)).results[0]

    def keep(self) -> SSAValue:
        x = self.pick()
        return self.op("sub", x, self.op("reduce_max", x, self.ints(self.random.randrange(-3, 3))).results[0]).results[
            0
        ]

    def drop(self) -> SSAValue:
        x = self.pick()
        axis = self.random.randrange(3)
        small = self.op("reduce_min", x, self.ints(axis), keepdims=False).results[0]
        if self.random.random() < 0.5:
            small = self.op("transpose", self.op("transpose", small, perm=[1, 0]).results[0], perm=[1, 0]).results[0]
        return self.op("mul", x, self.op("unsqueeze", small, self.ints(axis)).results[0]).results[0]

    def concat(self) -> SSAValue:
        x = self.pick()
        axis = self.random.randrange(-3, 3)
        both = self.op("concat", [x, self.like(x)], axis=axis).results[0]
        shape = static_shape(x)
        assert shape is not None
        return self.op("slice", both, self.ints(1), self.ints(1 + shape[axis]), self.ints(axis)).results[0]

    def split(self) -> SSAValue:
        x = self.pick()
        axis = self.random.randrange(3)
        shape = static_shape(x)
        assert shape is not None
        parts = self.op("split", x, self.ints(1, shape[axis] - 1), axis=axis, results=2).results
        return self.op("concat", list(reversed(parts)), axis=axis - 3).results[0]

    def pad(self) -> SSAValue:
        x = self.pick()
        padded = self.op("pad", x, self.ints(0, 1, 0, 0, 0, 2)).results[0]
        return self.op("slice", padded, self.ints(0, 1, 1), self.ints(2**40, 2**40, -1)).results[0]

    def barrier(self) -> SSAValue:
        x = self.pick()
        shape = static_shape(x)
        assert shape is not None
        return self.op("reshape", self.op("reshape", x, self.ints(-1)).results[0], self.ints(*shape)).results[0]
