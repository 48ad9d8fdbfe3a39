"""Error codes and exceptions of Sardonyx; imports nothing else of the package.

Every error that a user can meet is a `SardonyxError`. `str(error)` is one line that names the node and
the user's location; `hint`, `op` and `notes` are attributes that the command line prints below it.
"""

from __future__ import annotations

from collections.abc import Sequence


class SardonyxError(Exception):
    """The base of all errors.

    Args:
        message: What is wrong, in one line.
        code_name: The error's code, such as ``INVALID_ARGUMENT``.
        location: Where in the user's source or model, such as ``model.py:12`` or ``node 'conv1'``.
        hint: What the user can do about it.
        op: The operation's name, such as ``sx.matmul``.
        notes: Further lines, printed by the command line only.
    """

    default_code = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        code_name: str | None = None,
        location: str | None = None,
        hint: str | None = None,
        op: str | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code_name = code_name or self.default_code
        self.location = location
        self.hint = hint
        self.op = op
        self.notes = tuple(notes)
        self.operation: object | None = None
        """The IR operation at fault, for callers in this process; it is not pickled."""

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.code_name, self.location, self.hint, self.op, self.notes)

    def at(self, location: str | None) -> SardonyxError:
        """Set the location where none is known yet; returns the error itself, ready to raise."""
        if self.location is None:
            self.location = location
        return self


def _rebuild(
    cls: type[SardonyxError],
    message: str,
    code_name: str,
    location: str | None,
    hint: str | None,
    op: str | None,
    notes: tuple[str, ...],
) -> SardonyxError:
    return cls(message, code_name=code_name, location=location, hint=hint, op=op, notes=notes)


class InvalidArgumentError(SardonyxError):
    """A wrong argument, shape, dtype or value, or (as `FAILED_PRECONDITION`) a call at the wrong time."""

    default_code = "INVALID_ARGUMENT"


class OutOfRangeError(InvalidArgumentError, IndexError):
    """An index or an axis that a tensor does not have; Python's protocols and the array API want an IndexError."""


class FailedPreconditionError(InvalidArgumentError):
    """A call that the object's state forbids, such as `run` before `finalize`."""

    default_code = "FAILED_PRECONDITION"


class UnsupportedError(SardonyxError):
    """Something valid that Sardonyx, a backend or a format cannot state (`NOT_IMPLEMENTED…`)."""

    default_code = "NOT_IMPLEMENTED"


class InferenceError(InvalidArgumentError):
    """An operation's operands or attributes break one of its constraints."""


class MissingWeightError(FailedPreconditionError):
    """An operation needs the bytes of a weight that the store does not hold."""


class ExecutionError(SardonyxError):
    """A run failed on the data that it was given (an index out of range, sizes that disagree)."""

    default_code = "INVALID_ARGUMENT"


class OnnxLossWarning(UserWarning):
    """Something that an ONNX model declares beside its computation does not come through; the text names it."""
