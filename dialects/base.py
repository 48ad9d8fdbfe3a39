"""The base of every op of the `sx` dialect: slots, custom syntax, and the protocol that all else is derived from.

An op class is the one source of truth on its op. It states

* its operands, properties and results, in xDSL's terms (`operand_def`, `prop_def`, `result_def`);
* `infer()`: the result types from the operands' types and known contents; the verifier, the tracer, the importers and
  every rewrite use this one function. It raises `InferenceError` whose text begins with the number of the constraint
  that is broken, as the class's docstring lists them: `(C1) …`;
* `infer_values()`: what is known of the contents of small integer results (see `dialects.values`);
* `evaluate(ctx, *arrays)`: the reference semantics, in NumPy;
* `ONNX`: its ONNX form;
* its traits: `Pure`, `ELEMENTWISE`, `COMMUTATIVE` (xDSL wants class constants in capitals, annotated `ClassVar`).

A *slot* is one operand place: an optional operand that is absent is a slot holding None; a variadic group is one slot
per member. ONNX's input positions are the slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    TensorType,
    UnrankedTensorType,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    OptOperandDef,
    VarOperandDef,
    VarResultDef,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import is_anonymous, tensor_type, type_dims
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.types import OptionalType, SequenceType, UnknownType, stored
from sardonyx.errors import InferenceError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

    from sardonyx.dialects.evaluate import EvalContext

SEGMENTS = (AttrSizedOperandSegments(as_property=True),)
"""`irdl_options` of an op with two or more optional or variadic operand groups."""


@dataclass(frozen=True)
class OnnxForm:
    """How an op stands in ONNX.

    Attributes:
        name: ONNX's operator.
        domain: Its domain, '' for ai.onnx.
        since: The lowest opset in which it exists with an equal meaning; `legalize-for-opset` deals with older ones.
        attributes: The op's property → ONNX's attribute, where the names differ (those absent keep their name; None:
            the property has no counterpart in ONNX).
    """

    name: str
    domain: str = ""
    since: int = 1
    attributes: Mapping[str, str | None] = field(default_factory=dict)

    def attribute(self, prop: str) -> str | None:
        return self.attributes.get(prop, prop)


PyAttr = Any
"""A property as Python sees it: bool, int, float, str, DType, or a tuple of ints, floats or strings."""


def to_attribute(value: PyAttr) -> Attribute:
    """The IR's attribute for a Python value; attributes pass through."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return IntegerAttr(int(value), i1)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, DType):
        return value.ir
    if isinstance(value, Sequence):
        items = list(value)
        if all(isinstance(v, int) for v in items):
            return DenseArrayBase.from_list(i64, items)
        if all(isinstance(v, int | float) for v in items):
            return DenseArrayBase.from_list(f64, [float(v) for v in items])
        return ArrayAttr([to_attribute(v) for v in items])
    import operator

    try:
        return IntegerAttr(operator.index(value), i64)
    except TypeError:
        raise InvalidArgumentError(f"{value!r} cannot be an attribute of an operation") from None


def to_python(attr: Attribute) -> PyAttr:
    """The Python value of an attribute that `to_attribute` makes; others pass through."""
    if isinstance(attr, IntegerAttr):
        return bool(attr.value.data) if attr.type == i1 else attr.value.data
    if isinstance(attr, FloatAttr):
        return attr.value.data
    if isinstance(attr, StringAttr):
        return attr.data
    if isinstance(attr, DenseArrayBase):
        return attr.get_values()
    if isinstance(attr, ArrayAttr):
        return tuple(to_python(a) for a in attr.data)
    dtype = DType.from_ir(attr)
    return attr if dtype is None else dtype


_PLACEHOLDER: list[Attribute] = []


def _placeholder() -> Attribute:
    if not _PLACEHOLDER:
        _PLACEHOLDER.append(UnrankedTensorType(f32))
    return _PLACEHOLDER[0]


def _is_variadic(what: object) -> bool:
    """Whether an operand definition is a group of any size (xDSL counts an optional operand among these)."""
    return isinstance(what, VarOperandDef) and not isinstance(what, OptOperandDef)


class SxOp(IRDLOperation):
    """An op on tensors; see the module's docstring for what a subclass states."""

    traits = traits_def(Pure())

    ONNX: ClassVar[OnnxForm | None] = None
    IS_IMPORTED: ClassVar[bool] = True
    """Whether the operator of that form becomes this op. If not, it becomes the body by which ONNX defines it."""
    DEFAULTS: ClassVar[Mapping[str, PyAttr]] = {}
    """The values of properties that may be absent."""
    ELEMENTWISE: ClassVar[bool] = False
    """Result element i depends on the operands' elements i (after broadcasting) only."""
    COMMUTATIVE: ClassVar[bool] = False

    # ---- building
    @classmethod
    def make(
        cls,
        *slots: SSAValue | None | Sequence[SSAValue],
        results: int | None = None,
        location: LocationAttr | None = None,
        result_types: Sequence[Attribute] | None = None,
        regions: Sequence[Region] = (),
        **properties: PyAttr,
    ) -> Self:
        """Build the op and infer its result types.

        Args:
            slots: One entry per operand definition: a value, None for an absent optional one, a sequence for a
                variadic group. Trailing absent ones may be left out.
            results: The number of results of a variadic result group.
            location: Where the op comes from.
            result_types: Types that are known; what inference finds is checked against and merged with them.
            properties: By name; None leaves one out, as does a value equal to the property's default.

        Raises:
            InferenceError: A constraint of the op is broken.
        """
        definition = cls.get_irdl_definition()
        flat: list[SSAValue] = []
        segments: list[int] = []
        if len(slots) > len(definition.operands):
            raise InvalidArgumentError(f"{cls.name} takes {len(definition.operands)} operands, got {len(slots)}")
        padded = [*slots, *([None] * (len(definition.operands) - len(slots)))]
        for (name, what), given in zip(definition.operands, padded, strict=True):
            if isinstance(what, OptOperandDef):
                group = [] if given is None else [given]
            elif isinstance(what, VarOperandDef):
                group = list(given) if isinstance(given, Sequence) else ([] if given is None else [given])
            elif given is None:
                raise InvalidArgumentError(f"{cls.name}: operand '{name}' is missing")
            else:
                group = [given]
            flat.extend(group)
            segments.append(len(group))
        props: dict[str, Attribute] = {}
        for name, value in properties.items():
            if name not in definition.properties:
                raise InvalidArgumentError(f"{cls.name} has no property '{name}'")
            if value is None or (name in cls.DEFAULTS and _same(value, cls.DEFAULTS[name])):
                continue
            props[name] = to_attribute(value)
        if any(isinstance(option, AttrSizedOperandSegments) for option in definition.options):
            props["operandSegmentSizes"] = DenseArrayBase.from_list(IntegerType(32), segments)
        count = len(definition.results)
        if count and isinstance(definition.results[-1][1], VarResultDef):
            count = count - 1 + (results if results is not None else 1)
        types = list(result_types) if result_types is not None else [_placeholder()] * count
        op = cls.create(operands=flat, result_types=types, properties=props, regions=list(regions))
        if location is not None:
            op.location = location
        try:
            inferred = op.infer()
        except InferenceError as error:
            error.op = error.op or cls.name
            raise error.at(locations.describe(location)) from None
        for result, ty in zip(op.results, inferred, strict=True):
            if result_types is None:
                result._type = ty
            else:
                result._type = refine(result.type, ty, op)
        return op

    # ---- access
    @property
    def slots(self) -> tuple[SSAValue | None, ...]:
        """The operands by ONNX position; None where an optional one is absent."""
        out: list[SSAValue | None] = []
        for name, what in self.get_irdl_definition().operands:
            value = getattr(self, name)
            if _is_variadic(what):
                out.extend(value)
            else:
                out.append(value)
        while out and out[-1] is None:
            out.pop()
        return tuple(out)

    def attr(self, name: str) -> PyAttr:
        """A property as a Python value, or its default (None where it has none)."""
        found = self.properties.get(name)
        return self.DEFAULTS.get(name) if found is None else to_python(found)

    def python_properties(self) -> dict[str, PyAttr]:
        """All properties that are set, as Python values."""
        return {k: to_python(v) for k, v in self.properties.items() if k != "operandSegmentSizes"}

    # ---- the protocol
    def infer(self) -> Sequence[Attribute]:
        """The result types.

        Raises:
            InferenceError: A constraint is broken.
        """
        raise NotImplementedError(f"{self.name} does not define infer()")

    def infer_values(self) -> Sequence[tuple[Dim | None, ...] | None]:
        """Per result, the contents as dims (flat, None per unknown element), or None where nothing is known."""
        return [None] * len(self.results)

    def evaluate(self, ctx: EvalContext, *arrays: np.ndarray[Any, Any] | None) -> Sequence[np.ndarray[Any, Any]]:
        """The results by the reference semantics; `arrays` are the slots' contents, padded with None."""
        raise NotImplementedError(f"{self.name} does not define evaluate()")

    def verify_(self) -> None:
        try:
            for result, ty in zip(self.results, self.infer(), strict=True):
                refine(result.type, ty, self)
        except InferenceError as error:
            raise VerifyException(str(error)) from error

    def fail(self, message: str) -> InferenceError:
        """The error of a broken constraint, ready to raise."""
        return InferenceError(message, op=self.name, location=locations.describe(self.location))

    # ---- syntax: sx.name %a, _, %b {axis = 1 : i64} ({…}, {…}) : (tensor<…>, tensor<…>) -> tensor<…>
    def print(self, printer: Printer) -> None:
        slots = self.slots
        if slots:
            printer.print_string(" ")
            printer.print_list(slots, lambda v: printer.print_string("_") if v is None else printer.print_ssa_value(v))
        attributes = {k: v for k, v in self.properties.items() if k != "operandSegmentSizes"} | self.attributes
        if attributes:
            printer.print_string(" ")
            printer.print_attr_dict(attributes)
        printer.print_regions(self.regions)
        printer.print_string(" : (")
        printer.print_list([o.type for o in self.operands], printer.print_attribute)
        printer.print_string(") -> ")
        types = [r.type for r in self.results]
        if len(types) == 1:
            printer.print_attribute(types[0])
        else:
            with printer.in_parens():
                printer.print_list(types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        definition = cls.get_irdl_definition()
        unresolved: list[Any] = []
        while True:
            if parser.parse_optional_keyword("_") is not None:
                unresolved.append(None)
            else:
                operand = parser.parse_optional_unresolved_operand()
                if operand is None:
                    break
                unresolved.append(operand)
            if parser.parse_optional_punctuation(",") is None:
                break
        attributes = parser.parse_optional_attr_dict()
        regions: list[Region] = []
        if parser.parse_optional_punctuation("(") is not None:  # without, the first would be read as attributes
            regions.append(parser.parse_region())
            while parser.parse_optional_punctuation(",") is not None:
                regions.append(parser.parse_region())
            parser.parse_punctuation(")")
        parser.parse_punctuation(":")
        function_type = parser.parse_function_type()
        given = [u for u in unresolved if u is not None]
        values = iter(parser.resolve_operands(given, function_type.inputs.data, parser.pos))
        props = {k: v for k, v in attributes.items() if k in definition.properties}
        rest = {k: v for k, v in attributes.items() if k not in definition.properties}
        if any(isinstance(option, AttrSizedOperandSegments) for option in definition.options):
            segments: list[int] = []
            at = 0
            fixed_after = len(definition.operands)
            for _, what in definition.operands:
                fixed_after -= 1
                if _is_variadic(what):
                    size = max(0, len(unresolved) - at - fixed_after)
                    segments.append(size)
                    at += size
                else:
                    present = at < len(unresolved) and unresolved[at] is not None
                    segments.append(int(present))
                    at += 1
            props["operandSegmentSizes"] = DenseArrayBase.from_list(IntegerType(32), segments)
        op = cls.create(
            operands=list(values),
            result_types=list(function_type.outputs.data),
            properties=props,
            attributes=rest,
            regions=regions,
        )
        return op


def _same(value: PyAttr, default: PyAttr) -> bool:
    if isinstance(value, Attribute):
        return value == to_attribute(default) if default is not None else False
    if isinstance(value, list):
        value = tuple(value)
    return type(value) is type(default) and value == default


def refine(known: Attribute, inferred: Attribute, op: Operation | None = None) -> Attribute:
    """The better of a type that stands in the IR and the one that inference finds.

    Raises:
        InferenceError: They contradict each other.
    """
    if known == inferred or known is _placeholder() or isinstance(known, UnknownType):
        return inferred
    if isinstance(inferred, UnknownType):
        return known
    for cls in (SequenceType, OptionalType):
        if isinstance(known, cls) and isinstance(inferred, cls):
            return cls(_refine_element(known.element, inferred.element, op))
    if not isinstance(known, TensorType | UnrankedTensorType) or not isinstance(
        inferred, TensorType | UnrankedTensorType
    ):
        raise _contradiction(known, inferred, op)
    if known.element_type != inferred.element_type:
        raise _contradiction(known, inferred, op)
    if isinstance(known, UnrankedTensorType):
        return inferred
    if isinstance(inferred, UnrankedTensorType):
        return known
    ours, theirs = type_dims(known), type_dims(inferred)
    if len(ours) != len(theirs):
        raise _contradiction(known, inferred, op)
    merged: list[Dim] = []
    for a, b in zip(ours, theirs, strict=True):
        if equal(a, b) is Proof.REFUTED:
            raise _contradiction(known, inferred, op)
        if b.is_static or (not is_anonymous(b) and not a.is_static and is_anonymous(a)):
            merged.append(b)
        else:
            merged.append(a)
    return tensor_type(DType.of(known.element_type), merged)


def _refine_element(known: Attribute, inferred: Attribute, op: Operation | None) -> Attribute:
    """The better of two element types. A dim without a name may differ between elements, so it gets no symbol."""
    if not isinstance(known, TensorType) or not isinstance(inferred, TensorType):
        return refine(known, inferred, op)
    ours, theirs = type_dims(known), type_dims(inferred)
    if known.element_type != inferred.element_type or len(ours) != len(theirs):
        raise _contradiction(known, inferred, op)
    merged: list[Dim | None] = []
    for a, b in zip(ours, theirs, strict=True):
        if equal(a, b) is Proof.REFUTED:
            raise _contradiction(known, inferred, op)
        better = b if is_anonymous(a) or b.is_static else a
        merged.append(None if is_anonymous(better) else better)
    return stored(known, merged)


def _contradiction(known: Attribute, inferred: Attribute, op: Operation | None) -> InferenceError:
    where = locations.describe(op.location) if op is not None else None
    return InferenceError(
        f"the type is stated as {known}, but {inferred} follows from the operands",
        op=op.name if op is not None else None,
        location=where,
    )
