"""Lowerings of the ops that draw random numbers: Philox4x32-10 in vector lanes, with the reference's keys and counters
(see `sardonyx.dialects.sx.philox`), so that equal seeds give equal numbers. Without a seed every run takes a new key
from the system.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.number import Number, bits
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import DType, bool_, float32, float64, int64
from sardonyx.dialects.kernel.entropy import EntropyOp
from sardonyx.dialects.sx import philox
from sardonyx.dialects.sx.random import (
    BernoulliOp,
    DropoutOp,
    MultinomialOp,
    RandomNormalLikeOp,
    RandomNormalOp,
    RandomUniformLikeOp,
    RandomUniformOp,
)
from sardonyx.dialects.sx.support import float_attr

_LOW = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


class Generator:
    """The random words of a key (an index of the plan) inside a kernel."""

    def __init__(self, kernel: Kernel, key: SSAValue) -> None:
        given = Number.index(kernel, kernel.outer(key)).to(int64)
        low, high = given & bits(kernel, _LOW), given.fn("lshr", 32)
        self.keys: list[tuple[Number, Number]] = []
        for turn in range(philox.ROUNDS):
            first, second = bits(kernel, turn * _WEYL[0] & _LOW), bits(kernel, turn * _WEYL[1] & _LOW)
            mask = bits(kernel, _LOW)
            self.keys.append(((low + first) & mask, (high + second) & mask))
        self.kernel = kernel

    def words(self, block: Number) -> tuple[Number, Number, Number, Number]:
        """The four words of a block, each in the low half of an int64."""
        kernel = self.kernel
        mask, zero = bits(kernel, _LOW), bits(kernel, 0)
        count = block.to(int64)
        a, b, c, d = count & mask, count.fn("lshr", 32), zero, zero
        for first, second in self.keys:
            left, right = a * bits(kernel, _MULTIPLIERS[0]), c * bits(kernel, _MULTIPLIERS[1])
            a, b, c, d = (
                _xor(_xor(right.fn("lshr", 32), b), first),
                right & mask,
                _xor(_xor(left.fn("lshr", 32), d), second),
                left & mask,
            )
        return a, b, c, d

    def pair(self, block: Number) -> tuple[Number, Number]:
        """The two numbers in [0, 1) that a block makes, float64."""
        a, b, c, d = self.words(block)
        return _unit(a, b), _unit(c, d)

    def uniform(self, index: Number) -> Number:
        """Number `index` in [0, 1)."""
        first, second = self.pair(index // 2)
        return (index % 2).eq(0).where(first, second)

    def normal(self, index: Number) -> Number:
        """Number `index` of the standard normal distribution."""
        first, second = self.pair(index // 2)
        radius = ((-first).fn("log1p") * -2.0).fn("sqrt")
        angle = second * (2.0 * 3.141592653589793)
        return radius * (index % 2).eq(0).where(angle.fn("cos"), angle.fn("sin"))


def _xor(a: Number, b: Number) -> Number:
    """Bitwise, of int64: what either has, without what both have."""
    return (a | b) - (a & b)


def _unit(high: Number, low: Number) -> Number:
    wide = high.fn("lshr", 5).to(float64) * 2.0**26 + low.fn("lshr", 6).to(float64)
    return wide * 2.0**-53


def _key(plan: Plan, seed: float | int | None) -> SSAValue:
    """The key of a seed, an index of the plan; without a seed one of the run."""
    if seed is None:
        return plan.body.add(EntropyOp())
    key = philox.key_of(seed)
    return plan.body.index(key - (1 << 64) if key >= 1 << 63 else key)


def _seed(op: RandomNormalOp | BernoulliOp | MultinomialOp) -> float | None:
    seed = op.attr("seed")
    return None if seed is None else float(seed)


@lowers(RandomNormalOp, RandomNormalLikeOp, RandomUniformOp, RandomUniformLikeOp)
def _draw(plan: Plan, op: RandomNormalOp | RandomUniformOp) -> None:
    dtype = dtype_of(op.output)
    normal = isinstance(op, RandomNormalOp | RandomNormalLikeOp)
    key = _key(plan, _seed(op))  # pyright: ignore[reportArgumentType]
    kernel = plan.kernel("random_normal" if normal else "random_uniform")
    write, generator = kernel.write(op.output), Generator(kernel, key)
    names = ("mean", "scale") if normal else ("low", "high")
    first, second = (float_attr(op, name) for name in names)

    def element(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        index = Number.index(b, i)
        if normal:
            value = generator.normal(index) * second + first
            value.store(write, index, dtype, b)
            return
        value = (generator.uniform(index) * (second - first) + first).to(dtype)
        if second > first:
            value = _below(value, first, second, dtype)
        value.store(write, index, dtype, b)

    kernel.loop(kernel.outer(plan.count(dims_of(op.output))), element, vector=True, parallel=True)
    kernel.launch()


def _below(value: Number, low: float, high: float, dtype: DType) -> Number:
    """Rounding to the dtype may reach the bound, which does not belong to the range."""
    import numpy as np

    least, bound = (np.asarray(v).astype(dtype.numpy) for v in (low, high))
    instead = least if dtype == "bfloat16" else np.nextafter(bound, least)
    wide = float64 if dtype == float64 else float32
    reached = value.to(wide).ge(float(bound.astype(np.float64)))
    return reached.where(Number.const(value.body, float(np.asarray(instead).astype(np.float64)), dtype), value)


@lowers(BernoulliOp)
def _bernoulli(plan: Plan, op: BernoulliOp) -> None:
    source, dtype = dtype_of(op.input), dtype_of(op.output)
    key = _key(plan, _seed(op))
    kernel = plan.kernel("bernoulli")
    read, write = kernel.read(op.input), kernel.write(op.output)
    generator = Generator(kernel, key)

    def element(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        index = Number.index(b, i)
        drawn = generator.uniform(index).lt(Number.load(b, read, index, source, float64))
        drawn.store(write, index, dtype, b)

    kernel.loop(kernel.outer(plan.count(dims_of(op.output))), element, vector=True, parallel=True)
    kernel.launch()


@lowers(MultinomialOp)
def _multinomial(plan: Plan, op: MultinomialOp) -> None:
    """The sums of a row's weights go into workspace; a draw is the number of sums that it is not below."""
    dims, source, dtype = dims_of(op.input), dtype_of(op.input), dtype_of(op.output)
    count, body = op.attr("sample_size"), plan.body
    body.require(body.compare("sgt", plan.dim(dims[1]), 0), plan.failure("there is no class to draw"))
    key = _key(plan, _seed(op))
    held = plan.workspace(float64, [plan.dim(d) for d in dims])
    kernel = plan.kernel("multinomial")
    read, sums, write = kernel.read(op.input), kernel.write_buffer(held), kernel.write(op.output)
    classes, generator = Number.index(kernel, kernel.extent(dims[1])), Generator(kernel, key)
    failure = plan.failure("the weights of row {0} are all 0, infinite or NaN")

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        first = Number.index(b, number) * classes

        def largest(v: Body, j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            value = Number.load(v, read, first + Number.index(v, j), source, float64)
            return [Number(v, carried[0], float64).max(value).value]

        low = kernel.const(float64, float("-inf"))
        best = Number(b, b.loop(classes.value, largest, [("max", low)], vector=True)[0], float64)
        b.require(best.abs().lt(float("inf")).value, failure, number)

        def add(v: Body, j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            at = first + Number.index(v, j)
            weight = (Number.load(v, read, at, source, float64) - best).fn("exp")
            total = Number(v, carried[0], float64) + weight
            total.store(sums, at, float64, v)
            return [total.value]

        total = Number(b, b.loop(classes.value, add, [("serial", kernel.const(float64, 0))])[0], float64)

        def draw(d: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            index = Number.index(b, number) * count + Number.index(d, k)
            mark = generator.uniform(index) * total

            def seen(v: Body, j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                beyond = Number.load(v, sums, first + Number.index(v, j), float64).le(mark)
                return [(Number(v, carried[0], int64) + beyond.to(int64)).value]

            found = Number(d, d.loop(classes.value, seen, [("add", kernel.const(int64, 0))])[0], int64)
            found.to_index().min(classes - 1).to(int64).to(dtype).store(write, index, dtype, d)

        b.loop(count, draw)

    kernel.loop(kernel.extent(dims[0]), row, parallel=True)
    kernel.launch()


@lowers(DropoutOp)
def _dropout(plan: Plan, op: DropoutOp) -> None:
    dtype, body = dtype_of(op.data), plan.body
    for value, what in ((op.ratio, "ratio"), (op.training_mode, "training_mode")):
        if value is not None:
            size = plan.count(dims_of(value))
            body.require(body.compare("eq", size, 1), plan.failure(f"{what} has {{0}} elements, not one"), size)
    share = Number.const(body, 0.5)
    if op.ratio is not None:
        share = Number.load(body, plan.buffer(op.ratio), 0, dtype_of(op.ratio), float64)
    body.require((share.ge(0.0) & share.lt(1.0)).value, plan.failure("ratio is not in [0, 1)"))
    key = body.index(0) if op.training_mode is None else _key(plan, op.attr("seed"))
    kernel = plan.kernel("dropout")
    read, write, mask = kernel.read(op.data), kernel.write(op.output), kernel.write(op.mask)
    part = Number(kernel, kernel.outer(share.value), float64)
    size = Number.index(kernel, kernel.outer(plan.count(dims_of(op.data))))
    training: Number | None = None
    if op.training_mode is not None:
        training = Number.load(kernel, kernel.read(op.training_mode), 0, bool_) & part.gt(0.0)
    generator = Generator(kernel, key)

    def kept(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        Number.load(b, read, i, dtype).store(write, i, dtype, b)
        b.store(b.const(bool_, True), mask, i)

    def dropped(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        index = Number.index(b, i)
        stays = generator.uniform(index).ge(part)
        value = Number.load(b, read, index, dtype, float64) / (1.0 - part)
        stays.where(value, 0.0).store(write, index, dtype, b)
        stays.store(mask, index, bool_, b)

    if training is None:
        kernel.loop(size.value, kept, vector=True, parallel=True)
    else:
        one = training
        kernel.when(
            one.value,
            lambda b: b.loop(size.value, dropped, vector=True, parallel=True) and None,
            lambda b: b.loop(size.value, kept, vector=True, parallel=True) and None,
        )
    kernel.launch()
