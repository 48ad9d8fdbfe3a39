"""Lowers a graph to a plan and its kernels: buffers, extents, launches, and the table of failures.

A *lowering* is a function registered by `@lowers(Op)`: it is called with the plan and the op, makes kernels through
`plan.kernel(…)`, and gives each result its buffer. Elementwise ops register a scalar body with `@scalar(Op)` instead
and are fused by `elementwise.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue

from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.interface import Failure, Port
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, scalar_ir
from sardonyx.backends.llvm.registries import LOWERINGS, Lowering
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Call, Dim, Proof, Symbol, equal
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.ops import (
    AllocOp,
    CopyOp,
    InputDimOp,
    InputOp,
    KernelFuncOp,
    LaunchOp,
    MulSaturatingOp,
    OutputOp,
    PlanOp,
    WeightOp,
    YieldOp,
    single_block,
)
from sardonyx.dialects.kernel.plan_ops import OutputListOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.types import OptionalType, is_container
from sardonyx.dialects.weights import Weight
from sardonyx.errors import UnsupportedError

MAX_EXTENT_READ = 1 << 48
"""The largest extent that a run accepts from data."""


def lowers(*ops: type[SxOp]) -> Callable[[Lowering], Lowering]:
    """Register the lowering of these ops."""

    def register(lowering: Lowering) -> Lowering:
        for op in ops:
            LOWERINGS[op] = lowering
        return lowering

    return register


@dataclass
class LoweredGraph:
    """A graph at the kernel level: the IR, and the tables that the runtime needs."""

    module: ModuleOp
    inputs: list[Port]
    outputs: list[Port]
    constants: list[Weight | Any]
    failures: list[Failure]
    kernel_names: list[str] = field(default_factory=list)


class Kernel(Body):
    """One kernel under construction, and the arguments of its launch."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.region, block = single_block()
        super().__init__(block)
        self.plan = plan
        self.name = name
        self._arguments: list[SSAValue] = []
        self._writes: list[int] = []
        self._known: dict[Any, SSAValue] = {}

    def _argument(self, outer: SSAValue) -> SSAValue:
        if outer not in self._known:
            self._arguments.append(outer)
            self._known[outer] = self.block.insert_arg(outer.type, len(self.block.args))
        return self._known[outer]

    def read(self, value: SSAValue) -> SSAValue:
        """The buffer that holds a tensor value, as an argument of this kernel."""
        return self._argument(self.plan.buffer(value))

    def write(self, value: SSAValue) -> SSAValue:
        """A new buffer for a tensor value that this kernel computes."""
        return self.write_buffer(self.plan.new_buffer(value))

    def read_buffer(self, buffer: SSAValue) -> SSAValue:
        """A plan-level buffer as an argument."""
        return self._argument(buffer)

    def write_buffer(self, buffer: SSAValue) -> SSAValue:
        """A plan-level buffer that this kernel writes."""
        argument = self._argument(buffer)
        self._writes.append(self._arguments.index(buffer))
        return argument

    def extent(self, dim: Dim | int) -> SSAValue:
        """An extent inside the kernel: a constant where it is static, else an argument."""
        dim = Dim.of(dim)
        if dim.static_value is not None:
            return self.index(dim.static_value)
        return self.outer(self.plan.dim(dim))

    def outer(self, value: IndexLike) -> SSAValue:
        """An index of the plan (constants are repeated inside)."""
        from sardonyx.backends.llvm.lowering.builder import number_of

        number = number_of(value)
        if number is not None:
            return self.index(number)
        return self._argument(value)  # pyright: ignore[reportArgumentType]

    def extents(self, dims: Sequence[Dim]) -> list[SSAValue]:
        return [self.extent(d) for d in dims]

    def launch(self) -> None:
        """Finish the kernel and append its launch to the plan."""
        self.block.add_op(YieldOp())
        name = f"{self.name}_{len(self.plan.kernels)}"
        self.plan.kernels.append(KernelFuncOp(name, self.region))
        launch = LaunchOp(name, self._arguments, sorted(set(self._writes)))
        if self.plan.current is not None:
            launch.location = self.plan.current.location
        self.plan.body.block.add_op(launch)


class Plan:
    """The state of one graph's lowering. `body` builds the plan itself (indices, copies, requirements)."""

    def __init__(self, module: ModuleOp, function: func.FuncOp, target: Target) -> None:
        self.source = module
        self.target = target
        self.function = function
        self.region, block = single_block()
        self.body = Body(block)
        self.kernels: list[KernelFuncOp] = []
        self.failures: list[Failure] = []
        self.constants: list[Weight | Any] = []
        self.current: Operation | None = None
        self._buffers: dict[SSAValue, SSAValue] = {}
        self._dims: dict[Dim, SSAValue] = {}
        self._symbols: dict[str, SSAValue] = {}
        self._output_numbers: dict[SSAValue, int] = {}
        self._checked: set[tuple[Dim, Dim]] = set()
        self.containers: dict[SSAValue, Any] = {}
        """What sequences and optionals are (`containers.py`)."""
        self.strided: dict[SSAValue, Any] = {}
        """Values that are parts of larger buffers (`strided.py`)."""
        self.places: dict[SSAValue, Callable[[Sequence[SSAValue], Attribute], SSAValue]] = {}
        """Values whose buffer a region's op gives, from extents and element type: what a loop carries or collects."""
        self.growing = 0
        self.record_words: int | None = None

    # ---- regions
    @contextmanager
    def scope(self, argument_types: Sequence[Attribute] = ()) -> Iterator[tuple[Region, Body]]:
        """A region of plan ops: what is lowered inside goes into it, and what is learned there is forgotten again."""
        region, block = single_block(argument_types)
        outer = self.body, self._buffers, self._dims, self._symbols, self._checked, self.containers
        self.body = Body(block, outer[0])
        self._buffers, self._dims, self._symbols = dict(outer[1]), dict(outer[2]), dict(outer[3])
        self._checked, self.containers = set(outer[4]), dict(outer[5])
        current = self.current
        try:
            yield region, self.body
        finally:
            self.body, self._buffers, self._dims, self._symbols, self._checked, self.containers = outer
            self.current = current

    def set_buffer(self, value: SSAValue, buffer: SSAValue) -> None:
        """Let a tensor value lie in a buffer that is there; a graph output gets a copy, since its memory is the
        caller's."""
        if value in self._output_numbers:
            target = self.new_buffer(value)
            size = self.product(self.count(dims_of(value)), dtype_of(value).itemsize)
            self.body.block.add_op(CopyOp(buffer, target, size))
        else:
            self._buffers[value] = buffer

    def output_number(self, value: SSAValue) -> int | None:
        """The number of the graph output that a value is computed as."""
        return self._output_numbers.get(value)

    def bind_all(self, equations: Sequence[tuple[Dim, SSAValue, str]]) -> None:
        """Say what extents are, each with the words for it: binds symbols where it can, and checks the rest."""
        later: list[tuple[Dim, SSAValue, str]] = []
        for d, actual, what in equations:
            symbol = next(iter(d.symbols())) if d.is_symbol else None
            if symbol is not None and symbol not in self._symbols:
                self._symbols[symbol] = actual
            else:
                later.append((d, actual, what))
        for d, actual, what in self._solve(later):
            expected = self.dim(d)
            if expected is not actual:
                failure = self.failure(f"{what} is {{0}}, expected {{1}}")
                self.body.require(self.body.compare("eq", actual, expected), failure, actual, expected)

    # ---- extents
    def dim(self, dim: Dim | int) -> SSAValue:
        """An extent as an index of the plan.

        Raises:
            UnsupportedError: A symbol of the expression is not known at this point of the plan.
        """
        dim = Dim.of(dim)
        known = self._dims.get(dim)
        if known is not None:
            return known
        if dim.static_value is not None:
            value = self.body.index(dim.static_value)
        else:
            value = self._sum(dim)
        self._dims[dim] = value
        return value

    def _sum(self, dim: Dim) -> SSAValue:
        total: IndexLike | None = None
        for coefficient, atoms in dim.terms():
            product: IndexLike = coefficient if not atoms else abs(coefficient)
            for atom in atoms:
                product = self.product(product, self._atom(atom))
            if atoms and coefficient < 0:
                total = self.body.minus(0 if total is None else total, product)
            else:
                total = product if total is None else self.body.plus(total, product)
        return self.body.index(0 if total is None else total)

    def _atom(self, atom: Symbol | Call) -> SSAValue:
        if isinstance(atom, Symbol):
            found = self._symbols.get(atom.name)
            if found is None:
                raise UnsupportedError(
                    f"the extent {atom.text} is not known before the run", location=self.where(), op=self.op_name()
                )
            return found
        args = [self.dim(a) for a in atom.args]
        if atom.fn == "broadcast":
            result = args[0]
            for other in args[1:]:
                result = self._broadcast(result, other)
            return result
        result = args[0]
        fn = {"mod": "floormod"}.get(atom.fn, atom.fn)
        for other in args[1:]:
            result = self.body.index_math(fn, result, other)
        return result

    def _broadcast(self, a: SSAValue, b: SSAValue) -> SSAValue:
        body = self.body
        one = body.compare("eq", a, 1)
        ok = body.either(one, body.either(body.compare("eq", b, 1), body.compare("eq", a, b)))
        body.require(ok, self.failure("the extents {0} and {1} do not broadcast"), a, b)
        return body.select(one, b, a)

    def product(self, a: IndexLike, b: IndexLike) -> SSAValue:
        """The product of two extents, saturating instead of overflowing."""
        from sardonyx.backends.llvm.lowering.builder import number_of

        x, y = number_of(a), number_of(b)
        if x in (0, 1) or y in (0, 1) or (x is not None and y is not None):
            return self.body.times(a, b)
        return self.body.add(MulSaturatingOp(self.body.index(a), self.body.index(b)))

    def count(self, dims: Sequence[Dim | int]) -> SSAValue:
        """The number of elements of a shape."""
        return self.dim(Dim.product(dims)) if all(Dim.of(d).is_static for d in dims) else self._count(dims)

    def _count(self, dims: Sequence[Dim | int]) -> SSAValue:
        total: IndexLike = 1
        for d in dims:
            total = self.product(total, self.dim(d))
        return self.body.index(total)

    def bind(self, dim: Dim, value: IndexLike, what: str) -> None:
        """Say what an extent of a result is, where data decides it: binds a fresh symbol, else checks."""
        body = self.body
        fresh = dim.is_symbol and next(iter(dim.symbols())) not in self._symbols
        if fresh:
            index = body.index(value)
            ok = body.both(body.compare("sge", index, 0), body.compare("sle", index, MAX_EXTENT_READ))
            body.require(ok, self.failure(f"{what} is {{0}}"), index)
            self._symbols[next(iter(dim.symbols()))] = index
            return
        index = body.index(value)
        body.require(
            body.compare("eq", index, self.dim(dim)),
            self.failure(f"{what} is {{0}}, expected {{1}}"),
            index,
            self.dim(dim),
        )

    def is_bound(self, dim: Dim) -> bool:
        """Whether all symbols of the extent are known at this point."""
        return all(name in self._symbols for name in dim.symbols())

    def require_equal(self, a: Dim, b: Dim, message: str) -> None:
        """Check two extents at run time unless they are proved equal; `{0}` and `{1}` show them."""
        if equal(a, b) is Proof.PROVED or (a, b) in self._checked:
            return
        self._checked.add((a, b))
        x, y = self.dim(a), self.dim(b)
        self.body.require(self.body.compare("eq", x, y), self.failure(message), x, y)

    # ---- failures
    def failure(self, message: str) -> int:
        """The number of a failure at the op being lowered."""
        entry = Failure(message, self.where(), self.op_name())
        if entry in self.failures:
            return self.failures.index(entry)
        self.failures.append(entry)
        return len(self.failures) - 1

    def where(self) -> str | None:
        return locations.describe(self.current.location) if self.current is not None else None

    def op_name(self) -> str | None:
        return self.current.name if self.current is not None else None

    # ---- buffers
    def buffer(self, value: SSAValue) -> SSAValue:
        """The plan-level buffer of a tensor value that has been computed, or is an input or a constant."""
        found = self._buffers.get(value)
        if found is None and value in self.strided:
            from sardonyx.backends.llvm.lowering.strided import copied

            return copied(self, value)
        if found is None:
            raise UnsupportedError(f"no kernel computes {value}", location=self.where(), op=self.op_name())
        return found

    def new_buffer(self, value: SSAValue) -> SSAValue:
        """A buffer for a tensor value: the graph output's, or workspace."""
        dims, element = dims_of(value), scalar_ir(dtype_of(value))
        extents = [self.dim(d) for d in dims]
        number = self._output_numbers.get(value)
        place = self.places.get(value)
        if number is not None:
            buffer = self.body.add(OutputOp(number, extents, element))
        elif place is not None:
            buffer = place(extents, element)
        else:
            buffer = self.body.add(AllocOp(extents, element))
        self._buffers[value] = buffer
        return buffer

    def workspace(self, dtype: DType, extents: Sequence[IndexLike]) -> SSAValue:
        """A buffer that belongs to no tensor value (padding, packing, partial results)."""
        return self.body.add(AllocOp([self.body.index(e) for e in extents], scalar_ir(dtype)))

    def alias(self, value: SSAValue, source: SSAValue) -> None:
        """Let a value share the buffer of another with the same elements in the same order (reshape and the like).

        A graph output gets a copy: its memory is the caller's.
        """
        if value in self._output_numbers:
            self.copy(value, source)
        else:
            self._buffers[value] = self.buffer(source)

    def copy(self, value: SSAValue, source: SSAValue) -> None:
        """Give a value its own buffer with the elements of another."""
        target = self.new_buffer(value)
        size = self.product(self.count(dims_of(value)), dtype_of(value).itemsize)
        self.body.block.add_op(CopyOp(self.buffer(source), target, size))

    def kernel(self, name: str) -> Kernel:
        """A new kernel; `launch()` ends it."""
        return Kernel(self, name)

    def read_ints(self, value: SSAValue, count: int) -> list[SSAValue]:
        """The elements of a small integer tensor as indices of the plan (read at run time, or known contents)."""
        from sardonyx.dialects.values import contents

        known = contents(value)
        out: list[SSAValue] = []
        for i in range(count):
            d = known[i] if known is not None and i < len(known) else None
            if d is not None and self.is_bound(d):
                out.append(self.dim(d))
            else:
                out.append(self.body.to_index(self.body.load(self.buffer(value), i), dtype_of(value)))
        return out

    # ---- the graph
    def lower_inputs(self, names: Sequence[str]) -> list[Port]:
        """Bind the symbols of the inputs' dims in order, and check what they say twice."""
        ports: list[Port] = []
        body = self.body
        later: list[tuple[Dim, SSAValue, str]] = []
        for number, (argument, name) in enumerate(zip(self.function.body.block.args, names, strict=True)):
            if is_container(argument.type):
                ports.append(self._container_input(number, argument, name))
                continue
            dims = dims_of(argument)
            ports.append(Port(name, dtype_of(argument), dims))
            self._buffers[argument] = body.add(InputOp(number, scalar_ir(dtype_of(argument))))
            for axis, d in enumerate(dims):
                if d.is_static:
                    continue  # the runtime compares static extents before it enters
                actual = body.add(InputDimOp(number, axis))
                what = f"input '{name}' axis {axis}"
                symbol = next(iter(d.symbols())) if d.is_symbol else None
                if symbol is not None and symbol not in self._symbols:
                    self._symbols[symbol] = actual
                else:
                    later.append((d, actual, what))
        for d, actual, what in self._solve(later):
            message = f"{what} is {{0}}, but the other inputs make {d} {{1}}"
            body.require(body.compare("eq", actual, self.dim(d)), self.failure(message), actual, self.dim(d))
        return ports

    def _container_input(self, number: int, argument: SSAValue, name: str) -> Port:
        from sardonyx.backends.llvm.lowering.containers import Container, container_port, holds_sequence

        body = self.body
        count = body.add(InputDimOp(number, 0))
        present = body.compare("ne", body.add(InputDimOp(number, 1)), 0) if holds_sequence(argument.type) else None
        self.containers[argument] = Container(body.add(InputOp(number, i64)), count, present)
        return container_port(self, name, argument.type)

    def _solve(self, equations: list[tuple[Dim, SSAValue, str]]) -> list[tuple[Dim, SSAValue, str]]:
        """Bind symbols that stand only in expressions such as `2*seq`; returns all equations, to be checked."""
        pending = list(equations)
        progress = True
        while progress:
            progress = False
            for d, actual, _ in pending:
                unknown = [s for s in d.symbols() if s not in self._symbols]
                if len(unknown) == 1 and self._solve_one(d, actual, unknown[0]):
                    progress = True
        return equations

    def _solve_one(self, d: Dim, actual: SSAValue, name: str) -> bool:
        coefficient, rest = 0, Dim.of(0)
        for c, atoms in d.terms():
            if len(atoms) == 1 and isinstance(atoms[0], Symbol) and atoms[0].name == name:
                coefficient = c
                continue
            term = Dim.of(c)
            for atom in atoms:
                if not isinstance(atom, Symbol) or atom.name == name:
                    return False
                term = term * Dim.symbol(atom.name)
            rest = rest + term
        if not coefficient:
            return False
        left = self.body.minus(actual, self.dim(rest))
        self._symbols[name] = self.body.index_math("floordiv", left, coefficient)
        return True

    def constant(self, op: ConstantOp) -> None:
        """Enter a constant in the table of the compiled module."""
        source = op.value
        from sardonyx.dialects.attributes import WeightAttr

        entry: Weight | Any = source.data.source if isinstance(source, WeightAttr) else None
        if entry is None:
            entry = op.array()
        self.constants.append(entry)
        self._buffers[op.output] = self.body.add(WeightOp(len(self.constants) - 1, scalar_ir(dtype_of(op.output))))

    def constant_array(self, array: Any, dtype: DType) -> SSAValue:
        """The buffer of an array that the compiler made (a packed weight, a table)."""
        self.constants.append(array)
        return self.body.add(WeightOp(len(self.constants) - 1, scalar_ir(dtype)))

    def mark_outputs(self, values: Sequence[SSAValue]) -> None:
        """A value's first place among the outputs is computed in place; inputs, constants and repeats are copied."""
        for number, value in enumerate(values):
            if is_container(value.type):
                continue
            if isinstance(value.owner, Operation) and not isinstance(value.owner, ConstantOp):
                self._output_numbers.setdefault(value, number)

    def finish_outputs(self, values: Sequence[SSAValue]) -> None:
        """Copy the outputs that no kernel writes in place."""
        for number, value in enumerate(values):
            if is_container(value.type):
                self._finish_container(number, value)
                continue
            if self._output_numbers.get(value) == number:
                continue
            dims, dtype = dims_of(value), dtype_of(value)
            target = self.body.add(OutputOp(number, [self.dim(d) for d in dims], scalar_ir(dtype)))
            size = self.product(self.count(dims), dtype.itemsize)
            self.body.block.add_op(CopyOp(self.buffer(value), target, size))

    def _finish_container(self, number: int, value: SSAValue) -> None:
        from sardonyx.backends.llvm.lowering.containers import container, is_present, record_words

        found = container(self, value)
        present = is_present(self, value) if isinstance(value.type, OptionalType) else self.body.true()
        self.body.add(OutputListOp(number, record_words(self), found.table, found.count, present))

    def build(self) -> ModuleOp:
        """The module of kernels and plan."""
        self.body.block.add_op(YieldOp())
        return ModuleOp([*self.kernels, PlanOp("main", self.region)])
