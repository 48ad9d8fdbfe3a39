"""The element types of tensors: one table that ties the name, NumPy's dtype, the IR's type and ONNX's number.

`DType` objects are what users see (`sardonyx.float32`). Signed integers are signless in the IR (`i64`), unsigned
ones bear their sign (`ui8`), bool is `i1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sardonyx.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import Attribute


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """An element type.

    `kind` is 'b' (bool), 'i' (signed), 'u' (unsigned) or 'f' (float); `bits` is the width of an element's value and
    `onnx` its number in `onnx.TensorProto.DataType`. Compares equal to the NumPy dtype and the name it stands for.
    """

    name: str
    kind: str
    bits: int
    onnx: int

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype; bfloat16 is that of `ml_dtypes`."""
        return _numpy_dtype(self.name)

    @property
    def ir(self) -> Attribute:
        """The xDSL type of an element."""
        return _ir_type(self.name)

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def itemsize(self) -> int:
        """The size of an element in memory, in bytes."""
        return max(1, self.bits // 8)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str):
            return self.name == other
        if other is None:
            return False
        try:
            return self.name == DType.of(other).name
        except InvalidArgumentError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"sardonyx.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return _by_name, (self.name,)

    @staticmethod
    def of(value: Any) -> DType:
        """The DType of a DType, a name, a NumPy dtype or scalar type, or an IR element type.

        Raises:
            InvalidArgumentError: There is no such element type.
        """
        if isinstance(value, DType):
            return value
        if isinstance(value, str) and value in DTYPES:
            return DTYPES[value]
        if isinstance(value, str) and value in _SHORT:
            return DTYPES[_SHORT[value]]
        from xdsl.ir import Attribute

        if isinstance(value, Attribute):
            found = _from_ir().get(value)
            if found is None:
                raise InvalidArgumentError(f"{value} is not an element type that Sardonyx knows")
            return found
        import numpy as np

        try:
            dtype = np.dtype(value)
        except TypeError:
            dtype = None
        found = DTYPES.get(dtype.name) if dtype is not None else None
        if found is None:
            known = ", ".join(DTYPES)
            raise InvalidArgumentError(f"{value!r} is not a dtype that Sardonyx knows", hint=f"known: {known}")
        return found


bool_ = DType("bool", "b", 1, 9)
int8 = DType("int8", "i", 8, 3)
int16 = DType("int16", "i", 16, 5)
int32 = DType("int32", "i", 32, 6)
int64 = DType("int64", "i", 64, 7)
uint8 = DType("uint8", "u", 8, 2)
uint16 = DType("uint16", "u", 16, 4)
uint32 = DType("uint32", "u", 32, 12)
uint64 = DType("uint64", "u", 64, 13)
float16 = DType("float16", "f", 16, 10)
bfloat16 = DType("bfloat16", "f", 16, 16)
float32 = DType("float32", "f", 32, 1)
float64 = DType("float64", "f", 64, 11)

DTYPES: dict[str, DType] = {
    t.name: t
    for t in (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64)
}
_SHORT = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16",
    "ui32": "uint32", "ui64": "uint64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
}  # fmt: skip

SIGNED_INTEGERS = (int8, int16, int32, int64)
UNSIGNED_INTEGERS = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED_INTEGERS + UNSIGNED_INTEGERS
FLOATS = (float16, bfloat16, float32, float64)
NUMERIC = INTEGERS + FLOATS
ALL = (bool_, *NUMERIC)

BY_ONNX: dict[int, DType] = {t.onnx: t for t in DTYPES.values()}


def _by_name(name: str) -> DType:
    return DTYPES[name]


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    import numpy as np

    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@cache
def _ir_type(name: str) -> Attribute:
    from xdsl.dialects import builtin

    floats = {"float16": builtin.f16, "bfloat16": builtin.bf16, "float32": builtin.f32, "float64": builtin.f64}
    if name in floats:
        return floats[name]
    dtype = DTYPES[name]
    if dtype.kind == "u":
        return builtin.IntegerType(dtype.bits, builtin.Signedness.UNSIGNED)
    return builtin.IntegerType(dtype.bits)


@cache
def _from_ir() -> dict[Attribute, DType]:
    return {t.ir: t for t in DTYPES.values()}
