"""`sardonyx-opt`: reads a graph, runs passes over it, and writes it in the form of a target.

Standard output carries the result and nothing else; IR dumps, times, statistics and diagnostics go to standard error.
`docs/driver.md` explains it.
"""

from __future__ import annotations

import contextlib
import gc
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from sardonyx.tools.deferred import defer
from sardonyx.tools.diagnostics import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, close_stdout
from sardonyx.tools.opt_options import UsageError, parse_arguments

if TYPE_CHECKING:
    from sardonyx.tools.opt_driver import Driver

SELDOM = ("numpy", "ml_dtypes", "difflib", "hashlib", "json", "shlex")
"""What most runs do without."""


def run(args: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO, *, alone: bool = False) -> int:
    """Run the driver on the given streams; returns the exit status.

    Where the process is the driver's `alone`, classes that it imports get their methods when they are first called.
    """
    try:
        with contextlib.redirect_stdout(stdout):  # --help prints there
            options = parse_arguments(args)
    except UsageError as error:
        stderr.write(str(error))
        return EXIT_USAGE
    except SystemExit as stop:
        return int(stop.code or 0)
    if alone:
        from sardonyx.tools.lazy_methods import defer_methods

        defer_methods()
    if options.watch:
        from sardonyx.tools.opt_watch import watch

        return watch(options, stdout, stderr)
    from sardonyx.tools.opt_driver import Driver

    driver = Driver(options, stdin, stdout, stderr)
    try:
        return _run(driver)
    except BrokenPipeError:
        return EXIT_OK  # the reader had enough
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except UsageError as error:
        stderr.write(str(error))
        return EXIT_USAGE
    except Exception as error:  # noqa: BLE001 -- the outermost frame: what comes so far is reported, as a defect
        driver.came = None
        return driver.report(error)


def _run(driver: Driver) -> int:
    from sardonyx.tools.opt_driver import as_usage, write_stdout
    from sardonyx.tools.opt_report import instead

    options = driver.options
    if options.load:
        from sardonyx.passes.registry import load_file

        for path in options.load:
            load_file(path)
    content = instead(options)
    if content is not None:
        write_stdout(driver.stdout, content)
        return EXIT_OK
    if options.run_reproducer:
        from sardonyx.tools.opt_reproducer import read_head
        from sardonyx.tools.text import read_text

        content = read_text(options.input, driver.stdin)
        with as_usage():
            words = read_head(content, driver.source, options.load)
        rest = [word for word in options.arguments if word != "--run-reproducer"]
        again = parse_arguments([*words, *rest])
        driver = type(driver)(
            again, io.TextIOWrapper(io.BytesIO(content.encode()), "utf-8"), driver.stdout, driver.stderr
        )
    return driver.run()


def main() -> None:
    """The console script."""
    gc.disable()  # one command, one graph: collecting costs a fifth of the time and frees nothing of size
    defer(*SELDOM)
    sys.exit(close_stdout(run(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr, alone=True)))


if __name__ == "__main__":
    main()
