"""The errors of an export: each is an `OnnxExporterError` and of its code's class.

This module imports no torch: the classes exist wherever Sardonyx does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from sardonyx.errors import InvalidArgumentError, SardonyxError, UnsupportedError


class OnnxExporterError(SardonyxError):
    """The base of all errors of `sardonyx.export`."""

    def __reduce__(self) -> tuple[object, ...]:
        # Classes made on the way have no name to pickle: the class of the code has, and both are made of it again.
        kind = next(c for c in type(self).__mro__ if not issubclass(c, OnnxExporterError))
        parts = (self.message, self.code_name, self.location, self.hint, self.op, self.notes)
        return _restored, (kind, *parts)


class _InvalidArgument(OnnxExporterError, InvalidArgumentError):
    """A wrong argument of an export."""


class _Unsupported(OnnxExporterError, UnsupportedError):
    """Something in a model that has no translation."""


def invalid(message: str, *, hint: str | None = None, location: str | None = None) -> OnnxExporterError:
    """A wrong argument, ready to raise."""
    return _InvalidArgument(message, hint=hint, location=location)


def unsupported(message: str, *, hint: str | None = None, location: str | None = None) -> OnnxExporterError:
    """What cannot be stated, ready to raise."""
    return _Unsupported(message, hint=hint, location=location)


@cache
def _class_for(kind: type[SardonyxError]) -> type[SardonyxError]:
    if issubclass(kind, OnnxExporterError):
        return kind
    for known in (_InvalidArgument, _Unsupported):
        if kind is known.__mro__[2]:
            return known
    return type(kind.__name__, (OnnxExporterError, kind), {"__doc__": f"{kind.__doc__}", "__module__": __name__})


def as_export_error(error: SardonyxError) -> SardonyxError:
    """The same error as an `OnnxExporterError` that is also of its own class."""
    if isinstance(error, OnnxExporterError):
        return error
    made = _class_for(type(error))(
        error.message,
        code_name=error.code_name,
        location=error.location,
        hint=error.hint,
        op=error.op,
        notes=error.notes,
    )
    made.operation = error.operation
    return made


def _restored(
    kind: type[SardonyxError],
    message: str,
    code_name: str,
    location: str | None,
    hint: str | None,
    op: str | None,
    notes: tuple[str, ...],
) -> SardonyxError:
    return as_export_error(kind(message, code_name=code_name, location=location, hint=hint, op=op, notes=notes))


@contextmanager
def export_errors(location: str | None = None) -> Iterator[None]:
    """Errors that leave this block are `OnnxExporterError`s; those that know of no place are of this one."""
    try:
        yield
    except SardonyxError as error:
        error.at(location)
        if isinstance(error, OnnxExporterError):
            raise
        raise as_export_error(error) from None
