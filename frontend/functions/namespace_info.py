"""What this namespace of the array API offers: `__array_namespace_info__()`."""

from __future__ import annotations

from sardonyx.dialects import dtypes
from sardonyx.dialects.dtypes import DType
from sardonyx.errors import InvalidArgumentError

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": (),
}


class NamespaceInfo:
    """Capabilities, devices and dtypes, as the standard's inspection API has them."""

    def capabilities(self) -> dict[str, object]:
        """Boolean indexing and data-dependent shapes work eagerly; a traced graph has the latter, too."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return "cpu"

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of numbers where nobody says one."""
        _check(device)
        return {"real floating": dtypes.float32, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's dtypes, of a kind or of several."""
        _check(device)
        kinds = tuple(_KINDS) if kind is None else (kind,) if isinstance(kind, str) else kind
        found: dict[str, DType] = {}
        for entry in kinds:
            parts = {"integral": ("signed integer", "unsigned integer"), "numeric": tuple(_KINDS)[1:]}.get(
                entry, (entry,)
            )
            for part in parts:
                if part not in _KINDS:
                    raise InvalidArgumentError(f"there is no kind of dtypes '{entry}'")
                found.update({name: DType.of(name) for name in _KINDS[part]})
        return found

    def devices(self) -> list[str]:
        return ["cpu"]


def _check(device: str | None) -> None:
    if device not in (None, "cpu"):
        raise InvalidArgumentError(f"there is no device {device!r}", hint="the only one is 'cpu'")


def __array_namespace_info__() -> NamespaceInfo:
    """What this namespace offers."""
    return NamespaceInfo()
