"""Rewrite rules written as two Python functions: a pattern and its replacement, traced, and checked when they are made.

    from sardonyx.frontend.rules import Rule
    from sardonyx.passes.base import reassociates

    MERGE_SCALES = Rule(
        "merge-scales",
        lambda x, a, b: x * a * b,
        lambda x, a, b: x * (a * b),
        "x: f32[n, m], a: f32[], b: f32[]",
        promise=reassociates(2),
    )

A rule is a pattern for `RewriteDriver` like any other. Both functions are traced by the signature; when the rule is
made, the reference runs both on generated inputs (special values, several extents, empty ones), and a replacement that
gives other values than the promise allows is refused there and then.

What matches: the same ops with the same attributes; an input matches any value of its dtype and rank, equal dims where
the signature has equal names, and the same value wherever it stands; numbers in the pattern match constants. Operands
of commutative ops match in either order. Values inside the pattern may be read by nobody else, unless the replacement
computes them no more (`shared=True` allows it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, type_dims
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.module import main_function, return_op
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import InferenceError, InvalidArgumentError, SardonyxError
from sardonyx.passes import check_inputs
from sardonyx.passes.base import EXACT, Promise
from sardonyx.passes.check_inputs import Inputs
from sardonyx.passes.check_values import compare, run_function
from sardonyx.passes.constants import constant_of, small_array
from sardonyx.passes.driver import SxPattern, SxRewriter
from sardonyx.passes.matching import is_filled_with, same_shape

if TYPE_CHECKING:
    from sardonyx.dialects.evaluate import Array

Sampler = Callable[[np.random.Generator, tuple[int, ...]], "Array"]
"""Makes the contents of an input for the check, where a guard allows only some."""

CHECKED_INPUTS = 6


@dataclass(frozen=True)
class Match:
    """What a pattern matched: the ops, and by name the values that its inputs stand for."""

    root: Operation
    ops: tuple[Operation, ...]
    values: Mapping[str, SSAValue]

    def __getitem__(self, name: str) -> SSAValue:
        return self.values[name]


@dataclass
class _Bindings:
    """What a match has bound so far."""

    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    dims: dict[str, Dim] = field(default_factory=dict[str, Dim])
    ops: dict[Operation, None] = field(default_factory=dict[Operation, None])

    def copy(self) -> _Bindings:
        return _Bindings(dict(self.values), dict(self.dims), dict(self.ops))


@dataclass(eq=False)
class Rule(SxPattern[SxOp]):
    """A rewrite rule.

    Attributes:
        name: As reports, traces and locations name it.
        pattern: What is matched, a function of tensors that returns one tensor.
        replacement: What stands in its place, a function of the same inputs.
        signature: The inputs, as `"x: f32[n, m], a: f32[]"`; names of dims match any extents, equal names equal ones.
        promise: By how much values may change.
        where: A guard: called with the `Match`, it says whether the rule fires.
        sample: Contents of inputs for the check, by name, where the guard needs special ones.
        shared: Whether values inside of the pattern may be read elsewhere, too.

    Raises:
        InvalidArgumentError: The functions cannot be traced, do not fit each other, or give different values.
    """

    name: str
    pattern: Callable[..., Any]
    replacement: Callable[..., Any]
    signature: str
    promise: Promise = EXACT
    where: Callable[[Match], bool] | None = None
    sample: Mapping[str, Sampler] = field(default_factory=dict[str, Sampler])
    shared: bool = False

    OPS: ClassVar[tuple[type[Operation], ...]] = (SxOp,)

    def __post_init__(self) -> None:
        self._from = _traced(self.pattern, self.signature, f"the pattern of rule '{self.name}'")
        self._to = _traced(self.replacement, self.signature, f"the replacement of rule '{self.name}'")
        function = main_function(self._from)
        (result,) = return_op(function).operands
        root = result.owner
        if not isinstance(root, SxOp) or isinstance(root, ConstantOp) or len(root.results) != 1:
            raise InvalidArgumentError(f"rule '{self.name}': the pattern is no op of one result")
        self._root = root
        self._names = dict(zip(function.body.block.args, _names(self.signature), strict=True))
        unused = [name for argument, name in self._names.items() if argument.first_use is None]
        if unused:
            raise InvalidArgumentError(f"rule '{self.name}': the pattern does not use {', '.join(unused)}")
        # Of this pattern, not of the class.
        vars(self).update(NAME=self.name, OPS=(type(root),), REACH=_depth(root))
        self.check()

    # ---- the check
    def check(self, inputs: int = CHECKED_INPUTS) -> None:
        """Compare pattern and replacement by value.

        Raises:
            InvalidArgumentError: They differ by more than the promise allows, in type or shape, or one is refused.
        """
        before, after = main_function(self._from), main_function(self._to)
        compared = 0
        for number, kind in enumerate(check_inputs.kinds(inputs)):
            made = self._sampled(check_inputs.inputs_for(before, kind), number)
            try:
                want = run_function(before, made)
            except SardonyxError:
                continue  # extents that the pattern refuses
            try:
                got = run_function(after, made)
            except SardonyxError as error:
                raise InvalidArgumentError(
                    f"rule '{self.name}': the replacement is refused where the pattern is not: {error}",
                    notes=[f"with {made}"],
                ) from error
            compared += 1
            found = compare(
                want,
                got,
                self.promise,
                lambda rng, made=made: run_function(before, made, rng),
                lambda rng, made=made: run_function(after, made, rng),
            )
            if found is not None:
                raise InvalidArgumentError(
                    f"rule '{self.name}' changes values: {found} (promise: {self.promise})", notes=[f"with {made}"]
                )
        if not compared:
            raise InvalidArgumentError(f"rule '{self.name}' could not be checked: the pattern refuses all inputs")

    def _sampled(self, made: Inputs, seed: int) -> Inputs:
        values = list(made.values)
        for number, name in enumerate(_names(self.signature)):
            sampler = self.sample.get(name)
            if sampler is not None:
                array = np.asarray(values[number])
                drawn = np.asarray(sampler(np.random.default_rng([seed, number]), array.shape))
                values[number] = drawn.astype(array.dtype).reshape(array.shape)
        return Inputs(tuple(values), made.kind, made.bindings, made.attempt, made.states)

    # ---- matching
    def match(self, op: Operation) -> Match | None:
        """What the pattern matches with its root at this op, the guard left aside."""
        found = self._match_op(self._root, op, _Bindings())
        if found is None:
            return None
        values = {name: found.values[argument] for argument, name in self._names.items() if argument in found.values}
        return Match(op, tuple(found.ops), values)

    def _match_op(self, wanted: SxOp, op: Operation, bound: _Bindings) -> _Bindings | None:
        if type(op) is not type(wanted) or op.properties != wanted.properties or op.regions:
            return None
        if len(op.operands) != len(wanted.operands):
            return None
        bound.ops[op] = None
        orders = [tuple(op.operands)]
        if wanted.COMMUTATIVE and len(op.operands) == 2:
            orders.append((op.operands[1], op.operands[0]))
        for order in orders:
            attempt: _Bindings | None = bound.copy()
            for mine, value in zip(wanted.operands, order, strict=True):
                attempt = self._match_value(mine, value, attempt)
                if attempt is None:
                    break
            if attempt is not None:
                return attempt
        return None

    def _match_value(self, wanted: SSAValue, value: SSAValue, bound: _Bindings) -> _Bindings | None:
        known = bound.values.get(wanted)
        if known is not None:
            return bound if known is value else None
        constant = constant_of(wanted)
        if isinstance(wanted, BlockArgument):
            fits = _fits(wanted.type, value, bound)
        elif constant is not None:
            fits = _is_same_constant(constant, value)
        else:
            owner = wanted.owner
            if not isinstance(value, OpResult) or not isinstance(owner, SxOp) or not isinstance(wanted, OpResult):
                return None
            if value.index != wanted.index:
                return None
            found = self._match_op(owner, value.op, bound.copy())
            if found is not None:
                found.values[wanted] = value
            return found
        if not fits:
            return None
        bound.values[wanted] = value
        return bound

    # ---- rewriting
    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        """Put the replacement in place of what the pattern matches here."""
        found = self.match(op)
        if found is None:
            return
        if not self.shared:
            inside = set(found.ops)
            for inner in found.ops:
                if inner is not op and any(use.operation not in inside for r in inner.results for use in r.uses):
                    return rewriter.decline(f"{inner.name} inside of the pattern is read elsewhere, too")
        if self.where is not None and not self.where(found):
            return rewriter.decline("the rule's guard refuses")
        try:
            made, result = self._build(found)
        except InferenceError as error:
            return rewriter.decline(f"the replacement does not fit: {error.message}")
        if dtype_of(result) != dtype_of(op.results[0]) or not same_shape(result, op.results[0]):
            return rewriter.decline(f"the replacement has the type {result.type}, which is not certainly the same")
        rewriter.replace(op, made, [result])

    def _build(self, found: Match) -> tuple[list[Operation], SSAValue]:
        function = main_function(self._to)
        mapped: dict[SSAValue, SSAValue] = {
            argument: found.values[name]
            for argument, name in zip(function.body.block.args, _names(self.signature), strict=True)
        }
        made: list[Operation] = []
        for op in function.body.block.ops:
            if isinstance(op, func.ReturnOp):
                return made, mapped[op.operands[0]]
            new = op.clone(mapped)  # notes the results in `mapped`
            if isinstance(new, SxOp):
                for number, ty in enumerate(new.infer()):
                    new.results[number]._type = ty
            new.location = found.root.location if isinstance(new, ConstantOp) else new.location
            made.append(new)
        raise InvalidArgumentError(f"rule '{self.name}': the replacement returns nothing")


def _names(signature: str) -> list[str]:
    from sardonyx.frontend.signature import parse_signature

    return [spec.name for spec in parse_signature(signature)]


def _traced(fn: Callable[..., Any], signature: str, what: str) -> ModuleOp:
    from sardonyx.frontend.trace import trace

    try:
        graph = trace(fn, signature, name="rule").graph
    except SardonyxError as error:
        error.message = f"{what}: {error.message}"
        raise
    if len(return_op(main_function(graph.module)).operands) != 1:
        raise InvalidArgumentError(f"{what} returns several tensors; a rule is of one")
    return graph.module


def _depth(op: Operation) -> int:
    """How many steps up the pattern goes."""
    inner = [value.op for value in op.operands if isinstance(value, OpResult)]
    return 1 + max((_depth(one) for one in inner), default=0)


def _fits(ty: Attribute, value: SSAValue, bound: _Bindings) -> bool:
    """Whether a value may stand for an input of this type; binds the names of its dims."""
    if not isinstance(value.type, TensorType) or dtype_of(ty) != dtype_of(value):
        return False
    wanted, dims = type_dims(ty), dims_of(value)
    if len(wanted) != len(dims):
        return False
    names = dict(bound.dims)
    for mine, theirs in zip(wanted, dims, strict=True):
        symbol = mine.symbol_name
        if symbol is None:
            if equal(mine.substitute(names) if names else mine, theirs) is not Proof.PROVED:
                return False
        elif symbol not in names:
            names[symbol] = theirs
        elif equal(names[symbol], theirs) is not Proof.PROVED:
            return False
    bound.dims = names
    return True


def _is_same_constant(wanted: ConstantOp, value: SSAValue) -> bool:
    if dtype_of(wanted.output) != dtype_of(value):
        return False
    array = small_array(wanted.output)
    if array is None:
        return False
    if array.ndim == 0 and array.dtype.kind in "fiu":
        number = array.item()
        return is_filled_with(value, number, negative_zero=bool(np.signbit(array.astype(np.float64))) and number == 0)
    other = small_array(value)
    return other is not None and other.shape == array.shape and other.tobytes() == array.tobytes()
