"""What Python knows of inputs and outputs before native code runs: checks, and the outputs' extents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from sardonyx.backends.llvm.interface import Port
from sardonyx.backends.llvm.runtime.lists import Packed
from sardonyx.dialects.dims import Call, Dim, Symbol
from sardonyx.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def check_inputs(ports: Sequence[Port], arrays: Sequence[Any], unranked: Collection[int] = ()) -> list[Any]:
    """The inputs as contiguous arrays of the declared dtypes, ranks and static extents; sequences and optionals packed.

    Inputs whose number is in `unranked` may have any rank.

    Raises:
        InvalidArgumentError: One does not fit; the message names it.
    """
    given = list(arrays)
    if len(given) != len(ports):
        raise InvalidArgumentError(f"the graph takes {len(ports)} inputs, got {len(given)}")
    out: list[Any] = []
    for number, (value, port) in enumerate(zip(given, ports, strict=True)):
        if port.kind != "tensor":
            out.append(Packed(port, value))
            continue
        array = getattr(value, "_array", value)
        if not isinstance(array, np.ndarray):
            array = np.asarray(array)
        native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        if native.dtype != port.dtype.numpy:
            raise InvalidArgumentError(f"input '{port.name}' has dtype {array.dtype}, expected {port.dtype}")
        if number not in unranked:
            _check_extents(port, native)
        out.append(np.ascontiguousarray(native).reshape(array.shape))
    return out


def _check_extents(port: Port, array: Array) -> None:
    if array.ndim != len(port.dims):
        expected = f"{len(port.dims)} ([{', '.join(map(str, port.dims))}])"
        raise InvalidArgumentError(f"input '{port.name}' has rank {array.ndim}, expected {expected}")
    for axis, (actual, dim) in enumerate(zip(array.shape, port.dims, strict=True)):
        if dim.static_value is not None and dim.static_value != actual:
            raise InvalidArgumentError(
                f"input '{port.name}' has {actual} elements along axis {axis}, expected {dim.static_value}"
            )


def shape_source(port: Port, inputs: Sequence[Port]) -> str | None:
    """Python source of the output's shape from the inputs' shapes `s0, s1 …`; None where data decides it."""
    if port.kind != "tensor":
        return None
    places: dict[str, str] = {}
    for number, given in enumerate(inputs):
        for axis, dim in enumerate(given.dims):
            if dim.is_symbol:
                places.setdefault(next(iter(dim.symbols())), f"s{number}[{axis}]")

    def source(dim: Dim) -> str | None:
        if dim.static_value is not None:
            return str(dim.static_value)
        parts: list[str] = []
        for coefficient, atoms in dim.terms():
            factors = [str(coefficient)] if coefficient != 1 or not atoms else []
            for atom in atoms:
                if isinstance(atom, Symbol):
                    if atom.name not in places:
                        return None
                    factors.append(places[atom.name])
                    continue
                text = call_source(atom)
                if text is None:
                    return None
                factors.append(text)
            parts.append("*".join(factors))
        return "(" + " + ".join(parts) + ")"

    def call_source(atom: Call) -> str | None:
        args = [source(a) for a in atom.args]
        if None in args:
            return None
        if atom.fn == "broadcast":  # native code checks that the extents fit
            text = args[0]
            for other in args[1:]:
                text = f"({other} if {text} == 1 else {text})"
            return text
        if atom.fn in ("min", "max"):
            return f"{atom.fn}({', '.join(map(str, args))})"
        divisor = atom.args[1].static_value
        if divisor is None or divisor == 0:
            return None
        return {"floordiv": f"({args[0]}//{args[1]})", "ceildiv": f"(-(-{args[0]}//{args[1]}))",
                "mod": f"({args[0]}%{args[1]})"}[atom.fn]  # fmt: skip

    extents = [source(d) for d in port.dims]
    if any(e is None for e in extents):
        return None
    return "(" + "".join(f"{e}, " for e in extents) + ")"
