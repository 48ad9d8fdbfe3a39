"""The element types of tensors: one table that ties the name, NumPy's dtype, the IR's type and ONNX's number.

`DType` objects are what users see (`sardonyx.float32`). Signed integers are signless in the IR (`i64`), unsigned
ones bear their sign (`ui8`), bool is `i1`. A new element type is one line here, its name in the groups below it, and
what `numeric.convert` has to say of it.

An element takes whole bytes in memory, as in NumPy; where `packed`, files hold several in a byte (see `packing`).
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

    `kind` is 'b' (bool), 'i' (signed), 'u' (unsigned), 'f' (float) or 's' (string); `bits` is the width of an
    element's value, `onnx` its number in `onnx.TensorProto.DataType`, `text` the IR's spelling, and `array` the name of
    NumPy's dtype (of one of `ml_dtypes` where NumPy has none) if it differs. Compares equal to the NumPy dtype and the
    name it stands for.
    """

    name: str
    kind: str
    bits: int
    onnx: int
    text: str
    array: str = ""

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype, or that of `ml_dtypes`."""
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

    @property
    def packed(self) -> bool:
        """Whether an element takes less than a byte in files (bool takes one)."""
        return self.bits < 8 and self.kind != "b"

    def stored_size(self, count: int) -> int:
        """The bytes that so many elements take in ONNX's files, where several share a byte."""
        return -(-count * self.bits // 8) if self.packed else count * self.itemsize

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
    def from_ir(ty: Attribute) -> DType | None:
        """The DType of an IR element type; None for any other attribute."""
        return _from_ir().get(ty)

    @staticmethod
    def of_array(array: Any) -> DType:
        """The DType of an array that is known to be one of ours: one of objects holds strings."""
        return DTYPES["string"] if array.dtype.kind == "O" else DType.of(array.dtype)

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
        if isinstance(value, str) and value in _by_array_name():
            return _by_array_name()[value]
        from xdsl.ir import Attribute

        if isinstance(value, Attribute):
            found = DType.from_ir(value)
            if found is None:
                raise InvalidArgumentError(f"{value} is not an element type that Sardonyx knows")
            return found
        import numpy as np

        try:
            found = _by_array_name().get(np.dtype(value).name)
        except TypeError:
            found = None
        if found is None:
            known = ", ".join(DTYPES)
            raise InvalidArgumentError(f"{value!r} is not a dtype that Sardonyx knows", hint=f"known: {known}")
        return found


bool_ = DType("bool", "b", 1, 9, "i1")
int2 = DType("int2", "i", 2, 26, "i2")
int4 = DType("int4", "i", 4, 22, "i4")
int8 = DType("int8", "i", 8, 3, "i8")
int16 = DType("int16", "i", 16, 5, "i16")
int32 = DType("int32", "i", 32, 6, "i32")
int64 = DType("int64", "i", 64, 7, "i64")
uint2 = DType("uint2", "u", 2, 25, "ui2")
uint4 = DType("uint4", "u", 4, 21, "ui4")
uint8 = DType("uint8", "u", 8, 2, "ui8")
uint16 = DType("uint16", "u", 16, 4, "ui16")
uint32 = DType("uint32", "u", 32, 12, "ui32")
uint64 = DType("uint64", "u", 64, 13, "ui64")
float4e2m1 = DType("float4e2m1", "f", 4, 23, "f4E2M1FN", "float4_e2m1fn")
float6e2m3 = DType("float6e2m3", "f", 6, 27, "f6E2M3FN", "float6_e2m3fn")
float6e3m2 = DType("float6e3m2", "f", 6, 28, "f6E3M2FN", "float6_e3m2fn")
float8e4m3fn = DType("float8e4m3fn", "f", 8, 17, "f8E4M3FN", "float8_e4m3fn")
float8e4m3fnuz = DType("float8e4m3fnuz", "f", 8, 18, "f8E4M3FNUZ", "float8_e4m3fnuz")
float8e5m2 = DType("float8e5m2", "f", 8, 19, "f8E5M2", "float8_e5m2")
float8e5m2fnuz = DType("float8e5m2fnuz", "f", 8, 20, "f8E5M2FNUZ", "float8_e5m2fnuz")
float8e8m0 = DType("float8e8m0", "f", 8, 24, "f8E8M0FNU", "float8_e8m0fnu")
float16 = DType("float16", "f", 16, 10, "f16")
bfloat16 = DType("bfloat16", "f", 16, 16, "bf16")
float32 = DType("float32", "f", 32, 1, "f32")
float64 = DType("float64", "f", 64, 11, "f64")

SIGNED_INTEGERS = (int8, int16, int32, int64)
UNSIGNED_INTEGERS = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED_INTEGERS + UNSIGNED_INTEGERS
FLOATS = (float16, bfloat16, float32, float64)
NUMERIC = INTEGERS + FLOATS
ALL = (bool_, *NUMERIC)
"""The dtypes that arithmetic is done in, and bool."""

SMALL_INTEGERS = (int2, int4, uint2, uint4)
FLOATS_8 = (float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz)
"""Those of the 8-bit floats that quantised data have; float8e8m0, powers of two, is for scales."""
SMALL_FLOATS = (float4e2m1, float6e2m3, float6e3m2, *FLOATS_8, float8e8m0)
NARROW = SMALL_INTEGERS + SMALL_FLOATS
"""The dtypes in which data are stored only: they are moved, cast, quantised, and computed with as another dtype."""
ANY = (*ALL, *NARROW)
"""All dtypes of numbers. An op that allows these only moves elements, so it allows strings, too (`support`)."""

string = DType("string", "s", 64, 8, "!sx.string", "object")
"""Texts: arrays of Python's str, in the reference only."""

DTYPES: dict[str, DType] = {t.name: t for t in (*ANY, string)}
_SHORT = {"u" + t.text[2:]: t.name for t in ANY if t.kind == "u"} | {t.text: t.name for t in ANY}

BY_ONNX: dict[int, DType] = {t.onnx: t for t in DTYPES.values()}


def _by_name(name: str) -> DType:
    return DTYPES[name]


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    import numpy as np

    array = DTYPES[name].array or name
    if array in np.sctypeDict:
        return np.dtype(array)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, array))


@cache
def _by_array_name() -> dict[str, DType]:
    """The dtypes by the name of NumPy's or `ml_dtypes`' dtype. An array of objects may hold anything: see
    `of_array`."""
    return {t.array or t.name: t for t in ANY}


@cache
def _ir_type(name: str) -> Attribute:
    from xdsl.dialects import builtin

    dtype = DTYPES[name]
    if dtype.kind == "s":
        from sardonyx.dialects.string_type import StringType

        return StringType()
    if dtype.is_float:
        return getattr(builtin, dtype.text)
    sign = builtin.Signedness.UNSIGNED if dtype.kind == "u" else builtin.Signedness.SIGNLESS
    return builtin.IntegerType(dtype.bits, sign)


@cache
def _from_ir() -> dict[Attribute, DType]:
    return {t.ir: t for t in DTYPES.values()}
