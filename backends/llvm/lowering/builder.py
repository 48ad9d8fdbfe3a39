"""Builds the bodies of kernels: scalar ops by element type, loops, loads and stores.

`Body` is used for kernels and for the plan alike. Scalars are SSA values of the kernel level, where integers are
signless; whoever calls says by a `DType` how they are read. Index arithmetic on known numbers is folded at once, so
that static kernels stay short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sardonyx.backends.llvm.codegen.small_types import UNBOUNDED
from sardonyx.dialects.dtypes import DType, float32, int8, uint8
from sardonyx.dialects.kernel.ops import (
    INDEX,
    IfOp,
    LoadOp,
    LoopOp,
    MathOp,
    RequireOp,
    StoreOp,
    YieldOp,
    single_block,
)

IndexLike = SSAValue | int


def is_narrow(dtype: DType) -> bool:
    """Whether the kernel level holds elements of the dtype as a byte with their bits (see codegen/small_types.py)."""
    return dtype.packed or (dtype.is_float and dtype.bits <= 8)


def scalar_ir(dtype: DType) -> Attribute:
    """The kernel level's element type: signless integers, floats as they are, bytes for the narrow dtypes."""
    if is_narrow(dtype):
        return IntegerType(8)
    return IntegerType(dtype.bits) if dtype.kind in "iub" else dtype.ir


def compute_dtype(dtype: DType) -> DType:
    """The type in which values of a dtype are computed: 16-bit floats in float32, others in their own (narrow ones are
    not computed with, they are moved and converted)."""
    return float32 if dtype.is_float and dtype.bits == 16 else dtype


_PROPERTIES: dict[type[Operation], dict[str, Attribute]] = {}


def _binary(cls: type[Any], a: SSAValue, b: SSAValue) -> Operation:
    """An op of two operands and a result of one type, as `cls(a, b)` makes it, in a quarter of the time."""
    properties = _PROPERTIES.get(cls)
    if properties is None:
        made: Operation = cls(a, b)
        _PROPERTIES[cls] = dict(made.properties)
        return made
    return cls.create(operands=(a, b), result_types=(a.type,), properties=dict(properties))


def _constant(value: IntegerAttr[Any] | FloatAttr[Any]) -> Operation:
    return arith.ConstantOp.create(result_types=(value.type,), properties={"value": value})


class Body:
    """Appends ops to a block; `loop` and `when` nest."""

    def __init__(self, block: Block, parent: Body | None = None) -> None:
        self.block = block
        self.parent = parent
        self._numbers: dict[int, SSAValue] = {}

    def add(self, op: Operation) -> Any:
        """Append an op; returns its only result (or the op, where it has none or several)."""
        self.block.add_op(op)
        return op.results[0] if len(op.results) == 1 else op

    # ---- indices
    def index(self, value: IndexLike) -> SSAValue:
        """An index: itself, or the constant of a number."""
        if isinstance(value, SSAValue):
            return value
        at: Body | None = self
        while at is not None:  # a constant of an enclosing block was made before this one and can be used
            if value in at._numbers:
                return at._numbers[value]
            at = at.parent
        made: SSAValue = self.add(_constant(IntegerAttr(value, INDEX)))
        self._numbers[value] = made
        return made

    def plus(self, a: IndexLike, b: IndexLike) -> SSAValue:
        x, y = number_of(a), number_of(b)
        if x is not None and y is not None:
            return self.index(x + y)
        if x == 0:
            return self.index(b)
        if y == 0:
            return self.index(a)
        return self.add(_binary(arith.AddiOp, self.index(a), self.index(b)))

    def minus(self, a: IndexLike, b: IndexLike) -> SSAValue:
        x, y = number_of(a), number_of(b)
        if x is not None and y is not None:
            return self.index(x - y)
        if y == 0:
            return self.index(a)
        return self.add(_binary(arith.SubiOp, self.index(a), self.index(b)))

    def times(self, a: IndexLike, b: IndexLike) -> SSAValue:
        x, y = number_of(a), number_of(b)
        if x is not None and y is not None:
            return self.index(x * y)
        if 0 in (x, y):
            return self.index(0)
        if x == 1:
            return self.index(b)
        if y == 1:
            return self.index(a)
        return self.add(_binary(arith.MuliOp, self.index(a), self.index(b)))

    def index_math(self, fn: str, a: IndexLike, b: IndexLike) -> SSAValue:
        """`floordiv`, `ceildiv`, `floormod`, `min` or `max` of indices; division by zero gives 0."""
        x, y = number_of(a), number_of(b)
        if x is not None and y is not None and (y or fn in ("min", "max")):
            folded = {
                "floordiv": lambda: x // y, "ceildiv": lambda: -(-x // y), "floormod": lambda: x % y,
                "min": lambda: min(x, y), "max": lambda: max(x, y),
            }[fn]()  # fmt: skip
            return self.index(folded)
        if fn == "ceildiv":
            return self.minus(0, self.index_math("floordiv", self.minus(0, a), b))
        names = {"min": "smin", "max": "smax"}
        return self.math(names.get(fn, fn), INDEX, self.index(a), self.index(b))

    def compare(self, predicate: str, a: IndexLike, b: IndexLike) -> SSAValue:
        """An i1 of two indices; `predicate` is arith's (`slt`, `eq` …)."""
        return self.add(arith.CmpiOp(self.index(a), self.index(b), predicate))

    # ---- scalars
    def const(self, dtype: DType, value: float | int | bool) -> SSAValue:
        """A constant of the dtype's scalar type."""
        ty = scalar_ir(dtype)
        if is_narrow(dtype):
            return self.const(int8, stored_byte(dtype, value))
        if dtype.is_float:
            return self.add(_constant(FloatAttr(float(value), ty)))  # pyright: ignore[reportCallIssue, reportArgumentType]
        number = int(value)
        if dtype.kind == "u" and number >= 1 << (dtype.bits - 1):
            number -= 1 << dtype.bits  # the same bits, read as signed
        return self.add(_constant(IntegerAttr(number, ty)))  # pyright: ignore[reportCallIssue, reportArgumentType]

    def true(self) -> SSAValue:
        return self.add(_constant(IntegerAttr(1, i1)))

    def math(self, fn: str, result: Attribute, *args: SSAValue) -> SSAValue:
        """A `kernel.math` function."""
        return self.add(MathOp(fn, args, result))

    def arithmetic(self, fn: str, dtype: DType, a: SSAValue, b: SSAValue) -> SSAValue:
        """`add`, `sub`, `mul`, `div`, `max` or `min` of two scalars of a dtype (`div` truncates on integers)."""
        if dtype.is_float:
            made = {
                "add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "div": arith.DivfOp,
                "max": arith.MaximumfOp, "min": arith.MinimumfOp,
            }[fn]  # fmt: skip
            return self.add(_binary(made, a, b))
        if fn == "div":
            return self.math("udiv" if dtype.kind == "u" else "sdiv", a.type, a, b)
        if fn in ("max", "min"):
            unsigned = dtype.kind in "ub"
            made = {
                ("max", False): arith.MaxSIOp, ("min", False): arith.MinSIOp,
                ("max", True): arith.MaxUIOp, ("min", True): arith.MinUIOp,
            }[fn, unsigned]  # fmt: skip
            return self.add(made(a, b))
        return self.add(_binary({"add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp}[fn], a, b))

    def compare_scalars(self, relation: str, dtype: DType, a: SSAValue, b: SSAValue) -> SSAValue:
        """`eq`, `ne`, `lt`, `le`, `gt` or `ge`; false where a float is NaN, but `ne` is true."""
        if dtype.is_float:
            return self.add(arith.CmpfOp(a, b, "une" if relation == "ne" else "o" + relation))
        if relation in ("eq", "ne"):
            return self.add(arith.CmpiOp(a, b, relation))
        return self.add(arith.CmpiOp(a, b, ("u" if dtype.kind in "ub" else "s") + relation))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(arith.SelectOp(condition, a, b))

    def both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Bitwise and (of two conditions: both)."""
        return self.add(_binary(arith.AndIOp, a, b))

    def either(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(_binary(arith.OrIOp, a, b))

    def negate(self, condition: SSAValue) -> SSAValue:
        return self.add(arith.XOrIOp(condition, self.true()))

    def convert(
        self, value: SSAValue, source: DType, target: DType, saturating: bool = True, round_mode: str = "up"
    ) -> SSAValue:
        """The value as another dtype by ONNX's Cast: truncation to integers (saturating; NaN gives 0), wrap-around
        between integers and to those of fewer than 8 bits, `!= 0` to bool, one rounding to nearest even between floats.
        `saturating` and `round_mode` are for floats of 8 bits and fewer."""
        if source == target:
            return value
        if is_narrow(source):
            wide = float32 if source.is_float else uint8 if source.kind == "u" else int8
            value = self.math(f"from_{source.name}", scalar_ir(wide), value)
            return self.convert(value, wide, target, saturating, round_mode)
        if is_narrow(target):
            return self._to_narrow(value, source, target, saturating, round_mode)
        to = scalar_ir(target)
        if target.name == "bool":
            return self.compare_scalars("ne", source, value, self.const(source, 0))
        if source.is_float and target.is_float:
            if target.bits > source.bits:
                return self.add(arith.ExtFOp(value, to))
            if target.bits == source.bits:  # float16 and bfloat16
                return self.convert(self.convert(value, source, float32), float32, target)
            return self.add(arith.TruncFOp(value, to))
        if source.is_float:
            wide = compute_dtype(source)
            return self.math(
                "fptoui_sat" if target.kind == "u" else "fptosi_sat", to, self.convert(value, source, wide)
            )
        if target.is_float:
            wide = float32 if target.bits == 16 and source.bits <= 16 else target
            if target.bits == 16 and source.bits > 16:
                return self.math("int_to_half_unsigned" if source.kind == "u" else "int_to_half", to, value)
            made = arith.UIToFPOp if source.kind in "ub" else arith.SIToFPOp
            return self.convert(self.add(made(value, scalar_ir(wide))), wide, target)  # pyright: ignore[reportArgumentType]
        if target.bits < source.bits:
            return self.add(arith.TruncIOp(value, to))  # pyright: ignore[reportArgumentType]
        if target.bits > source.bits:
            made = arith.ExtUIOp if source.kind in "ub" else arith.ExtSIOp
            return self.add(made(value, to))  # pyright: ignore[reportArgumentType]
        return value  # the same width, read with another sign

    def _to_narrow(self, value: SSAValue, source: DType, target: DType, saturating: bool, round_mode: str) -> SSAValue:
        """The byte of a value in a narrow dtype."""
        if target.is_integer:
            if source.is_float:
                value = self.convert(value, source, compute_dtype(source))
            else:
                value = self.convert(value, source, int8)
            return self.math(f"to_{target.name}", scalar_ir(target), value)
        if source.is_float and source.bits > 32:
            value = self.math("to_odd", scalar_ir(float32), value)
        elif source.is_integer and source.bits > 16:
            fn = "int_to_odd_unsigned" if source.kind == "u" else "int_to_odd"
            value = self.math(fn, scalar_ir(float32), value)
        else:
            value = self.convert(value, source, float32)
        fn = f"to_{target.name}" + (f"_{round_mode}" if target.name == "float8e8m0" else "")
        return self.math(fn if saturating else fn + UNBOUNDED, scalar_ir(target), value)

    def to_index(self, value: SSAValue, dtype: DType) -> SSAValue:
        """An integer scalar as an index."""
        if dtype.bits < 64:
            made = arith.ExtUIOp if dtype.kind in "ub" else arith.ExtSIOp
            value = self.add(made(value, IntegerType(64)))
        return self.add(arith.IndexCastOp(value, INDEX))

    def from_index(self, value: SSAValue, dtype: DType) -> SSAValue:
        """An index as a scalar of a dtype (floats are rounded once)."""
        from sardonyx.dialects.dtypes import int64

        wide = self.add(arith.IndexCastOp(value, IntegerType(64)))
        return self.convert(wide, int64, dtype)

    # ---- memory
    def load(self, buffer: SSAValue, offset: IndexLike, ahead: int | None = None) -> SSAValue:
        op = LoadOp.create(operands=(buffer, self.index(offset)), result_types=(buffer.type.element,))  # pyright: ignore[reportAttributeAccessIssue]
        if ahead is not None:
            op.ahead = IntegerAttr(ahead, 64)
        return self.add(op)

    def store(self, value: SSAValue, buffer: SSAValue, offset: IndexLike, past: SSAValue | None = None) -> None:
        """`past` says whether it goes past the caches."""
        operands = (value, buffer, self.index(offset))
        self.block.add_op(StoreOp.create(operands=operands if past is None else (*operands, past)))

    # ---- structure
    def loop(
        self,
        upper: IndexLike,
        body: Callable[[Body, SSAValue, Sequence[SSAValue]], Sequence[SSAValue] | None],
        carried: Sequence[tuple[str, SSAValue]] = (),
        *,
        lower: IndexLike = 0,
        step: int = 1,
        vector: bool = False,
        parallel: bool = False,
    ) -> tuple[SSAValue, ...]:
        """`for i in range(lower, upper, step)`; `carried` holds (kind of reduction, initial value).

        `body(b, i, carried values)` returns the carried values' next state.
        """
        low, high = self.index(lower), self.index(upper)
        region, block = single_block([INDEX, *(v.type for _, v in carried)])
        inner = Body(block, self)
        results = body(inner, block.args[0], block.args[1:])
        block.add_op(YieldOp(results or ()))
        op = LoopOp(
            low, high, region, [v for _, v in carried], [k for k, _ in carried],
            step=step, vector=vector, parallel=parallel,
        )  # fmt: skip
        self.block.add_op(op)
        return tuple(op.results)

    def when(
        self,
        condition: SSAValue,
        then: Callable[[Body], Sequence[SSAValue] | None],
        otherwise: Callable[[Body], Sequence[SSAValue] | None] | None = None,
    ) -> tuple[SSAValue, ...]:
        """A two-way choice on a condition that is the same for all lanes."""
        first_region, first = single_block()
        second_region, second = single_block()
        a = then(Body(first, self)) or ()
        first.add_op(YieldOp(a))
        b = (otherwise(Body(second, self)) if otherwise is not None else None) or ()
        second.add_op(YieldOp(b))
        op = IfOp(condition, first_region, second_region, [v.type for v in a])
        self.block.add_op(op)
        return tuple(op.results)

    def require(self, condition: SSAValue, failure: int, *shown: IndexLike) -> None:
        """End the run with failure number `failure` (see `Plan.failure`) where the condition is false."""
        self.block.add_op(RequireOp(condition, failure, [self.index(s) for s in shown]))


def stored_byte(dtype: DType, value: float | int) -> int:
    """The byte, read as signed, of a number that a narrow dtype holds."""
    import numpy as np

    from sardonyx.dialects.sx.numeric import convert

    return int(convert(np.asarray(value, np.float64), dtype).reshape(1).view(np.int8)[0])


def number_of(value: IndexLike) -> int | None:
    """The number of a constant index, or None."""
    if isinstance(value, int):
        return value
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None
