"""Kernels as ops that every MLIR tool knows: `func`, `scf`, `memref`, `arith`, `math` and `cf`, and nothing else.

Each `kernel.func` becomes a `func.func` of the same name and arguments, buffers as `memref<?xT>`. What is said of it
here is what the op's definition says: loops run in order (or as `scf.parallel`), a contraction is its plain loops, a
failed requirement is a `cf.assert`. So mlir-opt can check what the lowering made, lower it on its own, and run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, cf, func, math, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    bf16,
    f16,
    f32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sardonyx.dialects.kernel import ops as kernel
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.kernel.nontemporal import FetchOp, NontemporalOp, ScratchOp
from sardonyx.errors import UnsupportedError

INDEX = IndexType()
_UNARY: dict[str, type[Any]] = {
    "sqrt": math.SqrtOp, "exp": math.ExpOp, "log": math.LogOp, "sin": math.SinOp, "cos": math.CosOp, "tan": math.TanOp,
    "atan": math.AtanOp, "tanh": math.TanhOp, "erf": math.ErfOp, "ceil": math.CeilOp, "floor": math.FloorOp,
    "expm1": math.ExpM1Op, "exp2": math.Exp2Op, "log1p": math.Log1pOp, "log2": math.Log2Op, "rsqrt": math.RsqrtOp,
    "round_half_even": math.RoundEvenOp, "trunc": math.TruncOp, "exp_nonpositive": math.ExpOp,
}  # fmt: skip
"""Functions of one operand by `kernel.math`'s names."""

_BINARY: dict[str, type[Any]] = {
    "smin": arith.MinSIOp, "smax": arith.MaxSIOp, "umin": arith.MinUIOp, "umax": arith.MaxUIOp,
    "copysign": math.CopySignOp, "pow": math.PowFOp,
}  # fmt: skip

_DIVISIONS: dict[str, type[Any]] = {
    "floordiv": arith.FloorDivSIOp, "floormod": arith.FloorDivSIOp, "sdiv": arith.DivSIOp, "udiv": arith.DivUIOp,
    "srem": arith.RemSIOp, "urem": arith.RemUIOp,
}  # fmt: skip


def to_upstream(lowered: ModuleOp) -> ModuleOp:
    """A module with a function for each kernel of a lowered graph; the plan is left out.

    Raises:
        UnsupportedError: A kernel uses what upstream's dialects have no op for; the error names it.
    """
    functions: list[Operation] = []
    for op in lowered.body.block.ops:
        if isinstance(op, kernel.KernelFuncOp):
            functions.append(_Function(op).convert())
    return ModuleOp(functions)


def _memref(ty: Attribute) -> Attribute:
    return MemRefType(ty.element, [DYNAMIC_INDEX]) if isinstance(ty, kernel.BufferType) else ty


class _Function:
    """The conversion of one kernel."""

    def __init__(self, source: kernel.KernelFuncOp) -> None:
        self.source = source
        self.name = source.sym_name.data
        self.values: dict[SSAValue, SSAValue] = {}
        self.block = Block()

    def convert(self) -> func.FuncOp:
        """The function."""
        body = self.source.body.block
        types = [_memref(argument.type) for argument in body.args]
        function = func.FuncOp(self.name, (types, []), Region(Block(arg_types=types)))
        self.values.update(zip(body.args, function.body.block.args, strict=True))
        self.block = function.body.block
        self.ops(body.ops)
        self.add(func.ReturnOp())
        return function

    # ---- building
    def add(self, op: Operation) -> Any:
        self.block.add_op(op)
        return op.results[0] if op.results else None

    def inside(self, types: Sequence[Attribute], build: Callable[[Sequence[SSAValue]], None]) -> Region:
        """A region of one block with these arguments."""
        outer, self.block = self.block, Block(arg_types=list(types))
        inner = self.block
        build(inner.args)
        self.block = outer
        return Region(inner)

    def index(self, value: int) -> SSAValue:
        return self.add(arith.ConstantOp(IntegerAttr(value, INDEX)))

    def constant(self, value: float, ty: Attribute) -> SSAValue:
        if isinstance(ty, IndexType | IntegerType):
            return self.add(arith.ConstantOp(IntegerAttr(int(value), ty)))
        return self.add(arith.ConstantOp(FloatAttr(value, ty)))  # pyright: ignore[reportArgumentType, reportCallIssue]

    def loop(
        self,
        lower: SSAValue,
        upper: SSAValue,
        step: int,
        initial: Sequence[SSAValue],
        build: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """An `scf.for`; `build` is given the index and the carried values, and gives their next ones."""

        def body(arguments: Sequence[SSAValue]) -> None:
            self.add(scf.YieldOp(*build(arguments[0], arguments[1:])))

        made = self.inside([INDEX, *(v.type for v in initial)], body)
        op = scf.ForOp(lower, upper, self.index(step), list(initial), made)
        self.add(op)
        return list(op.results)

    def refuse(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"kernel @{self.name}: {what} has no form in upstream's dialects")

    # ---- ops
    def ops(self, ops: Any) -> None:
        for op in ops:
            self.op(op)

    def of(self, value: SSAValue) -> SSAValue:
        return self.values[value]

    def op(self, op: Operation) -> None:
        """Convert one op; a terminator is left to whoever made its block."""
        match op:
            case kernel.LoopOp():
                self._loop(op)
            case kernel.IfOp():
                self._if(op)
            case kernel.LoadOp():
                self.values[op.result] = self.add(memref.LoadOp.get(self.of(op.buffer), [self.of(op.offset)]))
            case kernel.StoreOp():
                self.add(memref.StoreOp.get(self.of(op.value), self.of(op.buffer), [self.of(op.offset)]))
            case kernel.MathOp():
                self.values[op.result] = self._math(op)
            case kernel.RequireOp():
                self.add(cf.AssertOp(self.of(op.condition), f"requirement {op.failure.value.data} does not hold"))
            case kernel.ChunkOp():
                self.values[op.result] = self.index(0)
            case ScratchOp():
                element = op.result.type.element
                self.values[op.result] = self.add(memref.AllocaOp.get(element, shape=[op.count.value.data]))
            case NontemporalOp():
                self.values[op.result] = self.add(arith.ConstantOp.from_int_and_width(0, 1))
            case kernel.TurnOp():
                self._turn(op)
            case ContractOp():
                self._contract(op)
            case kernel.YieldOp() | FetchOp():
                pass
            case _ if op.dialect_name() in ("arith", "math") and not op.regions:
                new = op.clone(self.values)
                self.block.add_op(new)
            case _:
                raise self.refuse(op.name)

    def _yielded(self, region: Region) -> list[SSAValue]:
        last = region.block.last_op
        return [] if last is None else [self.of(value) for value in last.operands]

    def _loop(self, op: kernel.LoopOp) -> None:
        lower, upper = self.of(op.lower), self.of(op.upper)
        body = op.body.block
        if op.parallel is not None and not op.initial:

            def parallel(arguments: Sequence[SSAValue]) -> None:
                self.values[body.args[0]] = arguments[0]
                self.ops(body.ops)
                self.add(scf.ReduceOp())

            region = self.inside([INDEX], parallel)
            self.add(scf.ParallelOp([lower], [upper], [self.index(op.step.value.data)], region))
            return

        def build(index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.values.update(zip(body.args, (index, *carried), strict=True))
            self.ops(body.ops)
            return self._yielded(op.body)

        initial = [self.of(value) for value in op.initial]
        results = self.loop(lower, upper, op.step.value.data, initial, build)
        self.values.update(zip(op.results, results, strict=True))

    def _if(self, op: kernel.IfOp) -> None:
        def branch(region: Region) -> Region:
            def build(_: Sequence[SSAValue]) -> None:
                self.ops(region.block.ops)
                self.add(scf.YieldOp(*self._yielded(region)))

            return self.inside([], build)

        made = scf.IfOp(
            self.of(op.condition), [r.type for r in op.results], branch(op.then_region), branch(op.else_region)
        )
        self.add(made)
        self.values.update(zip(op.results, made.results, strict=True))

    def _turn(self, op: kernel.TurnOp) -> None:
        rows, columns = map(self.of, op.extents)
        first, second = map(self.of, op.offsets)
        source_row, target_row = map(self.of, op.strides)
        source, target = self.of(op.source), self.of(op.target)
        zero = self.index(0)

        def row(r: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def column(c: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                at = self.sum(first, self.product(r, source_row), c)
                value = self.add(memref.LoadOp.get(source, [at]))
                self.add(memref.StoreOp.get(value, target, [self.sum(second, self.product(c, target_row), r)]))
                return ()

            self.loop(zero, columns, 1, (), column)
            return ()

        self.loop(zero, rows, 1, (), row)

    def sum(self, *values: SSAValue) -> SSAValue:
        total = values[0]
        for value in values[1:]:
            total = self.add(arith.AddiOp(total, value))
        return total

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(arith.MuliOp(a, b))

    # ---- functions
    def _math(self, op: kernel.MathOp) -> SSAValue:
        fn, args = op.fn.data, [self.of(value) for value in op.args]
        ty = op.result.type
        if fn in _UNARY and len(args) == 1 and not isinstance(ty, IntegerType | IndexType):
            return self.add(_UNARY[fn](args[0]))
        if fn in _BINARY and len(args) == 2:
            return self.add(_BINARY[fn](*args))
        if fn == "abs":
            return self.add((math.AbsIOp if isinstance(ty, IntegerType) else math.AbsFOp)(args[0]))
        if fn == "fma":
            return self.add(math.FmaOp(args[0], args[1], args[2]))
        if fn == "sigmoid":
            one = self.constant(1.0, ty)
            negative = self.add(arith.NegfOp(args[0]))
            return self.add(arith.DivfOp(one, self.add(arith.AddfOp(one, self.add(math.ExpOp(negative))))))
        if fn in _DIVISIONS and isinstance(ty, IntegerType | IndexType):
            return self._divided(fn, *args)
        raise self.refuse(f'kernel.math "{fn}" on {ty}')

    def _divided(self, fn: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Division by zero gives 0, and that of the least number by -1 wraps around, where upstream's is undefined."""
        zero, one = self.constant(0, a.type), self.constant(1, a.type)
        none = self.add(arith.CmpiOp(b, zero, "eq"))
        unsafe = none
        if isinstance(a.type, IntegerType) and fn not in ("udiv", "urem"):
            least = self.constant(-(1 << (a.type.width.data - 1)), a.type)
            at_least = self.add(arith.CmpiOp(a, least, "eq"))
            negated = self.add(arith.CmpiOp(b, self.constant(-1, a.type), "eq"))
            unsafe = self.add(arith.OrIOp(none, self.add(arith.AndIOp(at_least, negated))))
        divisor = self.add(arith.SelectOp(unsafe, one, b))
        found = self.add(_DIVISIONS[fn](a, divisor))
        if fn == "floormod":
            found = self.add(arith.SubiOp(a, self.product(found, divisor)))
        return self.add(arith.SelectOp(none, zero, found))

    # ---- contractions
    def _contract(self, op: ContractOp) -> None:
        """The definition of `kernel.contract` as plain loops."""
        if op.pairs is not None or op.quads is not None:
            raise self.refuse("a contraction of pairs or quads")
        m_count, n_count, k_count = map(self.of, op.extents)
        a_offset, b_offset, c_offset = map(self.of, op.offsets)
        a_m, a_k, b_k, b_n, c_m = map(self.of, op.strides)
        a, b, c = self.of(op.a), self.of(op.b), self.of(op.c)
        rows = [self.of(value) for value in op.rows]
        segments = [self.of(value) for value in op.segments]
        counts, moves = segments[::2], segments[1::2]
        zero = self.index(0)
        c_step, c_n = (c_m, None) if op.turned is None else (self.index(1), c_m)
        element = op.c.type.element  # pyright: ignore[reportAttributeAccessIssue]
        source = op.a.type.element  # pyright: ignore[reportAttributeAccessIssue]
        kept = f32 if source in (f16, bf16) or element in (f16, bf16) else element
        all_of_k = k_count
        for count in counts:
            all_of_k = self.product(all_of_k, count)

        def row(m: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if rows:
                first, inner, a_outer, c_outer = rows
                number = self.sum(first, m)
                outer = self.add(arith.FloorDivSIOp(number, inner))
                rest = self.add(arith.SubiOp(number, self.product(outer, inner)))
                a_row = self.sum(a_offset, self.product(outer, a_outer), self.product(rest, a_m))
                c_row = self.sum(c_offset, self.product(outer, c_outer), self.product(rest, c_step))
                if c_n is not None:
                    c_row = self.sum(c_offset, m)
            else:
                a_row = self.sum(a_offset, self.product(m, a_m))
                c_row = self.sum(c_offset, self.product(m, c_step))

            def column(n: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                at = self.sum(c_row, n if c_n is None else self.product(n, c_n))
                start = self.constant(0, kept)
                if op.accumulate is not None:
                    start = self._widened(self.add(memref.LoadOp.get(c, [at])), kept)
                if op.packed is not None:
                    width = self.index(op.packed.value.data)
                    panel = self.add(arith.FloorDivSIOp(n, width))
                    lane = self.add(arith.SubiOp(n, self.product(panel, width)))
                    b_start = self.sum(b_offset, self.product(self.product(panel, all_of_k), width), lane)
                    b_step = width
                else:
                    b_start, b_step = self.sum(b_offset, self.product(n, b_n)), b_k

                def term(a_at: SSAValue, b_row: SSAValue, total: SSAValue) -> SSAValue:
                    x = self._widened(self.add(memref.LoadOp.get(a, [a_at])), kept)
                    where = self.sum(b_start, self.product(b_row, b_step))
                    y = self._widened(self.add(memref.LoadOp.get(b, [where])), kept)
                    if kept == IntegerType(1):
                        return self.add(arith.OrIOp(total, self.add(arith.AndIOp(x, y))))
                    if isinstance(kept, IntegerType):
                        return self.add(arith.AddiOp(total, self.add(arith.MuliOp(x, y))))
                    return self.add(arith.AddfOp(total, self.add(arith.MulfOp(x, y))))

                def segment(depth: int, a_at: SSAValue, number: SSAValue, total: SSAValue) -> SSAValue:
                    """The sum over the segments from this level on; `number` is that of the segment so far."""
                    if depth == len(counts):
                        first = self.product(number, k_count)

                        def step(k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                            return [term(self.sum(a_at, self.product(k, a_k)), self.sum(first, k), carried[0])]

                        return self.loop(zero, k_count, 1, [total], step)[0]

                    def move(s: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                        inner = self.sum(a_at, self.product(s, moves[depth]))
                        here = self.sum(self.product(number, counts[depth]), s)
                        return [segment(depth + 1, inner, here, carried[0])]

                    return self.loop(zero, counts[depth], 1, [total], move)[0]

                total = segment(0, a_row, zero, start)
                if op.epilogue is not None:
                    self.values.update(zip(op.epilogue.block.args, (total, m, n), strict=True))
                    self.ops(op.epilogue.block.ops)
                    (total,) = self._yielded(op.epilogue)
                elif kept != element:
                    total = self.add(arith.TruncFOp(total, element))
                self.add(memref.StoreOp.get(total, c, [at]))
                return ()

            self.loop(zero, n_count, 1, (), column)
            return ()

        self.loop(zero, m_count, 1, (), row)

    def _widened(self, value: SSAValue, ty: Attribute) -> SSAValue:
        """A float in the type in which sums are kept."""
        return value if value.type == ty else self.add(arith.ExtFOp(value, ty))
