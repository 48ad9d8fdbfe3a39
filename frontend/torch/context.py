"""Whether an export is going on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_exporting: ContextVar[bool] = ContextVar("sardonyx_exporting", default=False)


def is_in_onnx_export() -> bool:
    """Whether `sardonyx.export` is running: code of a model may ask while it is captured."""
    return _exporting.get()


@contextmanager
def exporting() -> Iterator[None]:
    """The time of an export."""
    token = _exporting.set(True)
    try:
        yield
    finally:
        _exporting.reset(token)
