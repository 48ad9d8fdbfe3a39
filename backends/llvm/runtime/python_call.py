"""Makes Python's side of a call native: the functions of `codegen/python_call.py`, bound to one graph.

They read the fields of CPython's and NumPy's objects where they lie. Whether those lie there is looked up on real
objects first (`is_available`); where they do not, graphs run by ctypes.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.backends.llvm.codegen.python_call import API, MAX_RANK, RECORD, SMALL, TABLE, emit_call
from sardonyx.backends.llvm.interface import Port
from sardonyx.backends.llvm.runtime import cache, jit

if TYPE_CHECKING:
    from sardonyx.backends.llvm.runtime.call import CompiledGraph

NEW_FROM_DESCR, ARRAY_TYPE = 94, 2
"""Where NumPy's table of functions has them (numpy/core/code_generators/numpy_api.py), which never changes."""
_FASTCALL, _ONE_OBJECT = 0x80, 0x08

Quick = Callable[[Any], "list[Any] | None"]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _arrays_are_known() -> bool:
    """Whether this NumPy lays out its arrays as native code reads them."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    at = id(array)
    head = (ctypes.c_int64 * 9).from_address(at)
    dims = head[4]
    return (
        head[2] == array.ctypes.data
        and (head[3] & 0xFFFFFFFF) == 2
        and tuple((ctypes.c_int64 * 2).from_address(dims)) == (2, 3)
        and head[7] == id(array.dtype)
        and (head[8] & 1) == 1
    )


def _lists_are_known() -> bool:
    """Whether this Python lays out lists and tuples as native code reads them."""
    items = [object(), object(), object()]
    row = tuple(items)
    at, inside = id(items), id(row)
    return (
        (_word(at + 8), _word(inside + 8)) == (id(list), id(tuple))
        and (_word(at + 16), _word(inside + 16)) == (3, 3)
        and _word(_word(at + 24) + 16) == _word(inside + 40) == id(items[2])
    )


@functools.cache
def is_available() -> bool:
    """Whether native code may read this Python's objects and call its functions."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    return ctypes.sizeof(ctypes.c_void_p) == 8 and _arrays_are_known() and _lists_are_known()


@functools.cache
def _numpy_functions() -> Any:
    """NumPy's table of functions; None where it is not what is expected."""
    core = getattr(np, "_core", None) or np.core
    capsule = getattr(getattr(core, "_multiarray_umath", None), "_ARRAY_API", None)
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    table = (ctypes.c_void_p * (NEW_FROM_DESCR + 1)).from_address(pointer(capsule, None))
    return table if table[ARRAY_TYPE] == id(np.ndarray) else None


@functools.cache
def _library() -> jit.Library:
    """The functions, told where those of Python and NumPy are."""
    with cache.uncounted():
        made = jit.Library(jit.to_object(emit_call(jit.native_target())), ("call_setup", "enter", "quick"))
    functions = _numpy_functions()
    addresses = (ctypes.c_void_p * len(API))(
        *(
            functions[NEW_FROM_DESCR] if name == "PyArray_NewFromDescr" and functions is not None
            else None if name == "PyArray_NewFromDescr"
            else ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
            for name in API
        )
    )  # fmt: skip
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(made.addresses["call_setup"])(addresses)
    return made


class _Bound:
    """What a function's table and definition point at; the function keeps it as its module."""

    def __init__(
        self, graph: CompiledGraph, name: str, flags: int, words: dict[str, int], tables: Sequence[Any]
    ) -> None:
        stated = {"entry": graph.library.addresses["entry_py"], "none": id(None), **words}
        self.table = (ctypes.c_int64 * len(TABLE))(*(stated.get(word, 0) for word in TABLE))
        self.method = _Method(name.encode(), _library().addresses[name], flags, None)
        self.kept = (graph.library, *tables)

    def function(self) -> Callable[..., Any]:
        capsule, make = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCFunction_NewEx
        capsule.argtypes, capsule.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
        make.argtypes, make.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object], ctypes.py_object
        made: Callable[..., Any] = make(
            ctypes.addressof(self.method), capsule(ctypes.addressof(self.table), None, None), self
        )
        return made


def enter_function(graph: CompiledGraph) -> Callable[..., int]:
    """`enter(context, *inputs, *outputs) -> status`: the graph's `entry_py` on arrays; None for an output that native
    code allocates."""
    return _Bound(graph, "enter", _FASTCALL, {}, ()).function()


def quick_function(graph: CompiledGraph, wrapper: type, slot: str, idle: list[int]) -> Quick | None:
    """`quick(inputs)`: a small run as one native call, which gives None where it is none; None where it always would.

    Inputs and results may be of the type `wrapper`, whose objects hold an array in a slot of that name.
    """
    offset = _slot_offset(wrapper, slot)
    outputs = [_record(port, graph.inputs) for port in graph.outputs]
    if not is_available() or _numpy_functions() is None or offset is None or None in outputs:
        return None
    if any(port.kind != "tensor" for port in (*graph.inputs, *graph.outputs)):
        return None
    ranks = (ctypes.c_int64 * max(1, len(graph.inputs)))(*(len(port.dims) for port in graph.inputs))
    words = [word for record in outputs for word in record or ()]
    records = (ctypes.c_int64 * max(1, len(words)))(*words)
    stated = {
        "inputs": len(graph.inputs), "outputs": len(outputs), "idle": id(idle), "list": id(list), "tuple": id(tuple),
        "ndarray": id(np.ndarray), "wrapper": id(wrapper), "slot": offset, "ranks": ctypes.addressof(ranks),
        "records": ctypes.addressof(records),
    }  # fmt: skip
    dtypes = [port.dtype.numpy for port in graph.outputs]
    return _Bound(graph, "quick", _ONE_OBJECT, stated, (ranks, records, dtypes, idle, wrapper, graph)).function()


def _slot_offset(wrapper: type, slot: str) -> int | None:
    """Where an object has the slot: seen on one."""
    sample, mark = object.__new__(wrapper), np.empty(0)
    setattr(sample, slot, mark)
    found = [at for at in range(16, wrapper.__basicsize__, 8) if _word(id(sample) + at) == id(mark)]
    return found[0] if len(found) == 1 else None


def _record(port: Port, inputs: Sequence[Port]) -> list[int] | None:
    """How `quick` finds the output's extents; None where it cannot, or where they are always large."""
    if port.kind != "tensor" or len(port.dims) > MAX_RANK:
        return None
    places: dict[Any, int] = {}
    for number, given in enumerate(inputs):
        for axis, dim in enumerate(given.dims):
            if dim.is_symbol:
                places.setdefault(dim, -1 - (number * 64 + axis))
    size, extents = port.dtype.numpy.itemsize, list[int]()
    for dim in port.dims:
        known = dim.static_value
        if known is None and dim not in places:
            return None
        extents.append(places[dim] if known is None else known)
        size *= 1 if known is None else known
    if size >= SMALL:
        return None
    dtype = port.dtype.numpy
    return [id(dtype), dtype.itemsize, len(extents), *extents, *[0] * (RECORD - 3 - len(extents))]
