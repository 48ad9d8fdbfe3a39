"""The process's thread pool: started when a run first needs it, rebuilt in forked children.

The number of threads is `SARDONYX_NUM_THREADS`, else `OMP_NUM_THREADS`, else the cores that the process may use; the
calling thread counts as one. Results do not depend on it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

from sardonyx.backends.llvm.codegen.pool import MAX_CHUNKS, emit_pool, supports_pool
from sardonyx.backends.llvm.runtime import jit
from sardonyx.errors import InvalidArgumentError

_lock = threading.Lock()


def thread_count() -> int:
    """How many threads a run may use.

    Raises:
        InvalidArgumentError: An environment variable holds no positive number.
    """
    for name in ("SARDONYX_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if not text:
            continue
        if not text.isdigit() or int(text) < 1:
            raise InvalidArgumentError(f"{name} is '{text}', not a positive number")
        return min(int(text), MAX_CHUNKS)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, MAX_CHUNKS)


class Pool:
    """The workers and the address of `pool_run`; one per process. Native code starts them when a run needs them."""

    def __init__(self) -> None:
        self.library: jit.Library | None = None
        self.wanted = 0
        self._want: Any = None
        self._reset: Any = None

    def address(self, threads: int) -> int:
        """`pool_run`'s address, with `threads - 1` workers to come; 0 where there is to be no pool."""
        if threads < 2 or not supports_pool(jit.native_target()):
            return 0
        with _lock:
            if self.library is None:
                body = jit.to_object(emit_pool(jit.native_target()))
                self.library = jit.Library(body, ("pool_run", "pool_want", "pool_reset"))
                self._want = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.library.addresses["pool_want"])
                self._reset = ctypes.CFUNCTYPE(None)(self.library.addresses["pool_reset"])
            self.wanted = max(self.wanted, threads - 1)
            self._want(self.wanted)
        return self.library.addresses["pool_run"]

    def after_fork(self) -> None:
        """A child has none of its parent's threads."""
        global _lock
        _lock = threading.Lock()
        if self._reset is not None:
            self._reset()
            self._want(self.wanted)


POOL = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.after_fork)
