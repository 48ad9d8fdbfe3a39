"""Types that are no tensors: sequences, optionals, and what nobody knows; and how types of several values are joined.

`!sx.seq<T>` is a list of values of type T, `!sx.opt<T>` a value of type T or none. A dim of T that has no name and no
number may differ from element to element, so each element that is taken out gets a symbol of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from sardonyx.dialects.attributes import DimsAttr, dtype_of, fresh_dim, tensor_type, type_dims, unranked_type
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType
from sardonyx.errors import InferenceError


@irdl_attr_definition
class SequenceType(ParametrizedAttribute, TypeAttribute):
    """A list of values of one type; their dims may differ where the type does not name them."""

    name = "sx.seq"
    element: Attribute


@irdl_attr_definition
class OptionalType(ParametrizedAttribute, TypeAttribute):
    """A value of a type, or none."""

    name = "sx.opt"
    element: Attribute


@irdl_attr_definition
class UnknownType(ParametrizedAttribute, TypeAttribute):
    """The type of a result of an unknown operator for which the model declares none."""

    name = "sx.unknown"


@irdl_attr_definition
class MapType(ParametrizedAttribute, TypeAttribute):
    """A map from whole numbers or texts to scalars: a dict. `element` is the type of its values, a tensor of rank 0."""

    name = "sx.map"
    key: Attribute
    element: Attribute


TYPES = (SequenceType, OptionalType, UnknownType, MapType)


def is_tensor(ty: Attribute) -> bool:
    return isinstance(ty, TensorType | UnrankedTensorType)


def is_numeric(ty: Attribute) -> bool:
    """Whether it is a tensor of numbers, not of strings."""
    return is_tensor(ty) and dtype_of(ty).kind != "s"


def is_container(ty: Attribute) -> bool:
    return isinstance(ty, SequenceType | OptionalType | MapType)


def innermost(ty: Attribute) -> Attribute:
    """The type inside all sequences, optionals and maps."""
    while isinstance(ty, SequenceType | OptionalType | MapType):
        ty = ty.element
    return ty


def describe_type(ty: Attribute) -> str:
    """The type for a person: `seq(float32)`, `optional(seq(float32))`, `float32`."""
    if isinstance(ty, SequenceType):
        return f"seq({describe_type(ty.element)})"
    if isinstance(ty, OptionalType):
        return f"optional({describe_type(ty.element)})"
    if isinstance(ty, MapType):
        return f"map({DType.of(ty.key)}, {describe_type(ty.element)})"
    return str(dtype_of(ty)) if is_tensor(ty) else "unknown"


def element_of(value: SSAValue, constraint: str) -> Attribute:
    """The element type of a sequence.

    Raises:
        InferenceError: The value is no sequence.
    """
    if not isinstance(value.type, SequenceType):
        raise InferenceError(f"{constraint} expected a sequence, found {value.type}")
    return value.type.element


def taken(ty: Attribute) -> Attribute:
    """The type of one element that is taken out: dims that may differ between elements get new symbols."""
    return tensor_type(dtype_of(ty), type_dims(ty)) if isinstance(ty, TensorType) else ty


def stored(ty: Attribute, dims: Iterable[Dim | None]) -> Attribute:
    """A ranked tensor type whose dims may differ between elements where they are None."""
    extents = list(dims)
    static = [DYNAMIC_INDEX if d is None or d.static_value is None else d.static_value for d in extents]
    named = [None if d is None or d.is_static else d for d in extents]
    encoding = DimsAttr(tuple(named)) if any(d is not None for d in named) else NoneAttr()
    return TensorType(dtype_of(ty).ir, static, encoding)


# ---- joining


def join(a: Attribute, b: Attribute, free: frozenset[str] = frozenset(), nested: bool = False) -> Attribute:
    """The type of a value that has either type: what is certain of both stays, other dims are new symbols.

    Args:
        a: A type.
        b: Another one.
        free: Symbols of `a` that stand for any extent, so that they stay.
        nested: The types are those of elements: a dim that is not certain may differ between them.

    Raises:
        InferenceError: The dtypes differ, or one is a sequence and the other isn't.
    """
    if a == b:
        return a
    if isinstance(a, UnknownType) or isinstance(b, UnknownType):
        return UnknownType()
    for cls in (SequenceType, OptionalType):
        if isinstance(a, cls) and isinstance(b, cls):
            return cls(join(a.element, b.element, free, nested=True))
    if isinstance(a, OptionalType) != isinstance(b, OptionalType):  # a value is an optional that holds it
        ours, theirs = (ty.element if isinstance(ty, OptionalType) else ty for ty in (a, b))
        return OptionalType(join(ours, theirs, free, nested=True))
    if not is_tensor(a) or not is_tensor(b) or dtype_of(a) != dtype_of(b):
        raise InferenceError(f"the types {a} and {b} differ in kind or dtype")
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return unranked_type(dtype_of(a))
    if len(a.get_shape()) != len(b.get_shape()):
        return unranked_type(dtype_of(a))
    dims: list[Dim | None] = []
    for x, y in zip(type_dims(a), type_dims(b), strict=True):
        same = equal(x, y) is Proof.PROVED or (x.symbol_name is not None and x.symbol_name in free)
        dims.append(x if same else None if nested else fresh_dim())
    return stored(a, dims) if nested else tensor_type(dtype_of(a), [d for d in dims if d is not None])


def escaped(ty: Attribute, known: frozenset[str], nested: bool = False) -> Attribute:
    """A type as it is seen outside of a region: dims with symbols that only the region knows are new there."""
    if isinstance(ty, SequenceType | OptionalType):
        return type(ty)(escaped(ty.element, known, nested=True))
    if not isinstance(ty, TensorType):
        return ty
    dims = type_dims(ty)
    kept: list[Dim | None] = [d if d.symbols() <= known else None for d in dims]
    if None not in kept:
        return ty
    return stored(ty, kept) if nested else tensor_type(dtype_of(ty), [d or fresh_dim() for d in kept])


def symbols_of(ty: Attribute) -> frozenset[str]:
    """The names in a type's dims."""
    ty = innermost(ty)
    encoding = ty.encoding if isinstance(ty, TensorType) else None
    if not isinstance(encoding, DimsAttr):
        return frozenset()
    return frozenset(name for dim in encoding.data if dim is not None for name in dim.symbols())


def captures(op: Operation) -> list[SSAValue]:
    """The values that an op's regions read and that are defined outside of it, each once."""
    inside: set[SSAValue] = set()
    read: dict[SSAValue, None] = {}
    stack = [op]
    while stack:
        at = stack.pop()
        for region in at.regions:
            for block in region.blocks:
                inside.update(block.args)
                for child in block.ops:
                    inside.update(child.results)
                    read.update(dict.fromkeys(child.operands))
                    if child.regions:
                        stack.append(child)
    return [value for value in read if value not in inside]


def known_symbols(op: Operation) -> frozenset[str]:
    """The symbols that an op and its regions know from outside: those of operands and of captured values."""
    found: set[str] = set()
    for value in (*op.operands, *captures(op)):
        found |= symbols_of(value.type)
    return frozenset(found)


def with_dtype_of(ty: Attribute) -> DType:
    """The dtype of the tensors in a type.

    Raises:
        InferenceError: It is not known.
    """
    return dtype_of(innermost(ty))
