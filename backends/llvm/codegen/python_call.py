"""Emits the way in from Python: functions of CPython's own calling convention, in a library of their own.

`enter(context, array0, …)` runs `entry_py` on arrays and returns the status; an output that is None is allocated by
native code. `quick(inputs)` is a whole small run: it takes a list or tuple of arrays, or of objects that hold one in a
slot, allocates the results as NumPy does, takes an idle context, runs, and returns the results in such objects. Where
anything is out of the ordinary it returns None: whoever called it then runs the careful way, from the beginning.

Their `self` is a capsule with the address of a table, 8-byte words that are named in `TABLE`. `ranks` points to the
rank of each input, `records` to `RECORD` words for each output: dtype, bytes of an element, rank, extents. An extent
below 0 is that of an input: -1 - (number * 64 + axis). Python's lock is held except while `entry_py` runs, so nothing
that is read here changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.backends.llvm.codegen.text import I1, I32, I64, PTR, FunctionBuilder, LType, ModuleText, Target

API = (
    "PyCapsule_GetPointer", "PyLong_AsVoidPtr", "PyLong_FromLongLong", "PyEval_SaveThread", "PyEval_RestoreThread",
    "Py_IncRef", "Py_DecRef", "PyList_New", "PyList_Append", "PyType_GenericAlloc", "PyArray_NewFromDescr",
)  # fmt: skip
"""The functions of Python and NumPy that are called: `call_setup(addresses)` is told where they are."""
TABLE = (
    "entry", "inputs", "outputs", "idle", "none", "list", "tuple", "ndarray", "wrapper", "slot", "ranks", "records",
)  # fmt: skip
MAX_RANK = 8
RECORD = 3 + MAX_RANK
SMALL = 1 << 18
"""Bytes of a result from which on `quick` leaves a run to Python, which has large blocks to use again."""

# Offsets in CPython's objects, which the runtime checks before any of this is used.
OBJECT_TYPE, SIZE, ITEMS = 8, 16, 24
ARRAY_DATA, ARRAY_NDIM, ARRAY_DIMS, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 56, 64
"""Offsets in PyArrayObject_fields (numpy/core/include/numpy/ndarraytypes.h) behind a 16-byte PyObject head."""


def emit_call(target: Target) -> ModuleText:
    """The library: `call_setup(addresses)`, `enter(self, args, count)`, `quick(self, inputs)`."""
    module = ModuleText(target)
    module.globals["api"] = f"internal global [{len(API)} x ptr] zeroinitializer, align 64"
    b = FunctionBuilder(module, "call_setup", [(PTR, "addresses")])

    def copy(k: str, _: list[str]) -> list[str]:
        b.store(PTR, b.load(PTR, b.gep(PTR, "%addresses", k), 8), b.gep(PTR, "@api", k), 8)
        return []

    b.loop("0", str(len(API)), "1", copy)
    b.emit("ret void")
    b.finish()
    _Enter(module).emit()
    _Quick(module).emit()
    return module


class _Call:
    """What both functions need: the table, the calls of Python's functions."""

    def __init__(self, module: ModuleText, name: str, args: list[tuple[LType | str, str]]) -> None:
        self.b = FunctionBuilder(module, name, args, PTR)
        self.table = self.api("PyCapsule_GetPointer", PTR, (PTR, "%self"), (PTR, "null"))

    def api(self, name: str, ret: LType | str, *args: tuple[LType, str]) -> str:
        b = self.b
        function = b.load(PTR, b.gep(PTR, "@api", str(API.index(name))), 8)
        text = f"call {ret} {function}({', '.join(f'{ty} {value}' for ty, value in args)})"
        if ret == "void":
            b.emit(text)
            return ""
        return b.op(text)

    def word(self, name: str, ty: LType = PTR) -> str:
        return self.b.load(ty, self.b.gep(I64, self.table, str(TABLE.index(name))), 8)

    def field(self, ty: LType, of: str, offset: int | str) -> str:
        return self.b.load(ty, self.b.gep("i8", of, str(offset)), 4 if ty == I32 else 8)

    def run(self, context: str, arrays: str) -> str:
        """`entry_py` with Python's lock released; the status."""
        context = self.api("PyLong_AsVoidPtr", PTR, (PTR, context))
        entry = self.word("entry")
        thread = self.api("PyEval_SaveThread", PTR)
        status = self.b.op(f"call i64 {entry}(ptr {context}, ptr {arrays})")
        self.api("PyEval_RestoreThread", "void", (PTR, thread))
        return status

    def each(self, upper: str, body: Callable[[str], None], lower: str = "0") -> None:
        def step(k: str, _: list[str]) -> list[str]:
            body(k)
            return []

        self.b.loop(lower, upper, "1", step)


class _Enter(_Call):
    """`enter(context, array0, …)`."""

    def __init__(self, module: ModuleText) -> None:
        super().__init__(module, "enter", [(PTR, "self"), (PTR, "args"), (I64, "count")])

    def emit(self) -> None:
        b, none = self.b, self.word("none")
        arrays = b.op("alloca ptr, i64 %count")

        def take(k: str) -> None:
            given = b.load(PTR, b.gep(PTR, "%args", k), 8)
            given = b.select(PTR, b.icmp("eq", PTR, given, none), "null", given)
            b.store(PTR, given, b.gep(PTR, arrays, k), 8)

        self.each("%count", take)
        status = self.run(b.load(PTR, "%args", 8), b.gep(PTR, arrays, "1"))
        b.emit(f"ret ptr {self.api('PyLong_FromLongLong', PTR, (I64, status))}")
        b.finish()


class _Quick(_Call):
    """`quick(inputs)`."""

    def __init__(self, module: ModuleText) -> None:
        super().__init__(module, "quick", [(PTR, "self"), (PTR, "inputs")])
        b = self.b
        self.count, self.made = self.word("inputs", I64), self.word("outputs", I64)
        self.ndarray, self.wrapper, self.slot = self.word("ndarray"), self.word("wrapper"), self.word("slot", I64)
        self.arrays = b.op(f"alloca ptr, i64 {b.binary('add', I64, self.count, self.made)}")
        self.extents = b.op(f"alloca i64, i64 {b.binary('mul', I64, self.made, str(MAX_RANK))}")
        self.results = b.gep(PTR, self.arrays, self.count)

    def emit(self) -> None:
        b = self.b
        self._take_inputs()
        self.each(self.made, self._find_extents)
        self.each(self.made, self._allocate)
        status = self._run()
        self.require(b.icmp("eq", I64, status, "0"), holding=self.made)
        found = self.api("PyList_New", PTR, (I64, self.made))
        self.require(b.icmp("ne", PTR, found, "null"), holding=self.made, error=True)
        places = self.field(PTR, found, ITEMS)

        def wrap(k: str) -> None:
            made = self.api("PyType_GenericAlloc", PTR, (PTR, self.wrapper), (I64, "0"))

            def fail() -> None:
                self.api("Py_DecRef", "void", (PTR, found))
                self._drop(self.made, k)
                b.emit("ret ptr null")

            with b.unless(b.icmp("ne", PTR, made, "null"), fail):
                b.store(PTR, b.load(PTR, b.gep(PTR, self.results, k), 8), b.gep("i8", made, self.slot), 8)
                b.store(PTR, made, b.gep(PTR, places, k), 8)

        self.each(self.made, wrap)
        b.emit(f"ret ptr {found}")
        b.finish()

    def require(self, condition: str, holding: str = "0", error: bool = False) -> None:
        """Return None (or null, with an error set) where the condition is false, and let go of so many results."""

        def leave() -> None:
            self._drop(holding)
            if error:
                self.b.emit("ret ptr null")
                return
            none = self.word("none")
            self.api("Py_IncRef", "void", (PTR, none))
            self.b.emit(f"ret ptr {none}")

        with self.b.unless(condition, leave):
            pass

    def _drop(self, upper: str, lower: str = "0") -> None:
        if upper != "0":
            self._references("Py_DecRef", self.results, upper, lower)

    def _references(self, change: str, pointers: str, upper: str, lower: str = "0") -> None:
        b = self.b
        self.each(upper, lambda k: b.emit(self._call_of(change, b.load(PTR, b.gep(PTR, pointers, k), 8))), lower)

    def _call_of(self, name: str, value: str) -> str:
        b = self.b
        return f"call void {b.load(PTR, b.gep(PTR, '@api', str(API.index(name))), 8)}(ptr {value})"

    def _has_type(self, value: str, wanted: str) -> str:
        return self.b.icmp("eq", PTR, self.field(PTR, value, OBJECT_TYPE), wanted)

    def _take_inputs(self) -> None:
        """The arrays of the inputs, of the ranks that are declared."""
        b, given = self.b, "%inputs"
        is_list = self._has_type(given, self.word("list"))
        self.require(b.binary("or", I1, is_list, self._has_type(given, self.word("tuple"))))
        self.require(b.icmp("eq", I64, self.field(I64, given, SIZE), self.count))
        inside = b.gep("i8", given, str(ITEMS))
        items = b.when(is_list, lambda: [b.load(PTR, inside, 8)], lambda: [inside], [PTR])[0]
        ranks = self.word("ranks")

        def take(k: str) -> None:
            value = b.load(PTR, b.gep(PTR, items, k), 8)
            held = self._has_type(value, self.wrapper)
            inner = b.gep("i8", value, self.slot)
            value = b.when(held, lambda: [b.load(PTR, inner, 8)], lambda: [value], [PTR])[0]
            self.require(b.icmp("ne", PTR, value, "null"))
            self.require(self._has_type(value, self.ndarray))
            rank = b.cast("sext", I32, self.field(I32, value, ARRAY_NDIM), I64)
            self.require(b.icmp("eq", I64, rank, b.load(I64, b.gep(I64, ranks, k), 8)))
            b.store(PTR, value, b.gep(PTR, self.arrays, k), 8)

        self.each(self.count, take)

    def _record(self, k: str) -> str:
        return self.b.gep(I64, self.word("records"), self.b.binary("mul", I64, k, str(RECORD)))

    def _own_extents(self, k: str) -> str:
        return self.b.gep(I64, self.extents, self.b.binary("mul", I64, k, str(MAX_RANK)))

    def _find_extents(self, k: str) -> None:
        """The extents of an output, which must be small."""
        b, record, own = self.b, self._record(k), self._own_extents(k)

        def axis(d: str, carried: list[str]) -> list[str]:
            stated = b.load(I64, b.gep(I64, b.gep(I64, record, "3"), d), 8)

            def of_input() -> list[str]:
                place = b.binary("sub", I64, "-1", stated)
                array = b.load(PTR, b.gep(PTR, self.arrays, b.binary("lshr", I64, place, "6")), 8)
                dims = self.field(PTR, array, ARRAY_DIMS)
                return [b.load(I64, b.gep(I64, dims, b.binary("and", I64, place, "63")), 8)]

            extent = b.when(b.icmp("slt", I64, stated, "0"), of_input, lambda: [stated], [I64])[0]
            self.require(b.icmp("ult", I64, extent, str(SMALL)))
            b.store(I64, extent, b.gep(I64, own, d), 8)
            size = b.binary("mul", I64, carried[0], extent)
            self.require(b.icmp("ult", I64, size, str(SMALL)))
            return [size]

        item = b.load(I64, b.gep(I64, record, "1"), 8)
        b.loop("0", b.load(I64, b.gep(I64, record, "2"), 8), "1", axis, [(I64, item)])

    def _allocate(self, k: str) -> None:
        """A new array; it takes the reference to its dtype."""
        b, record = self.b, self._record(k)
        dtype = b.load(PTR, record, 8)
        rank = b.cast("trunc", I64, b.load(I64, b.gep(I64, record, "2"), 8), I32)
        self.api("Py_IncRef", "void", (PTR, dtype))
        made = self.api(
            "PyArray_NewFromDescr", PTR, (PTR, self.ndarray), (PTR, dtype), (I32, rank), (PTR, self._own_extents(k)),
            (PTR, "null"), (PTR, "null"), (I32, "0"), (PTR, "null"),
        )  # fmt: skip
        self.require(b.icmp("ne", PTR, made, "null"), holding=k, error=True)
        b.store(PTR, made, b.gep(PTR, self.results, k), 8)

    def _run(self) -> str:
        """Run on a context of the list of idle ones; the inputs cannot go away meanwhile."""
        b, idle = self.b, self.word("idle")
        length = self.field(I64, idle, SIZE)
        self.require(b.icmp("sgt", I64, length, "0"), holding=self.made)
        fewer = b.binary("sub", I64, length, "1")
        context = b.load(PTR, b.gep(PTR, self.field(PTR, idle, ITEMS), fewer), 8)
        b.store(I64, fewer, b.gep("i8", idle, str(SIZE)), 8)  # what `pop` does: the reference is ours now
        self._references("Py_IncRef", self.arrays, self.count)
        status = self.run(context, self.arrays)
        self._references("Py_DecRef", self.arrays, self.count)
        kept = self.api("PyList_Append", I32, (PTR, idle), (PTR, context))
        self.api("Py_DecRef", "void", (PTR, context))
        self.require(b.icmp("eq", I32, kept, "0"), holding=self.made, error=True)
        return status
