"""`--verify-roundtrip`: what is printed has to parse back to the same IR, in the custom and in the generic form."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from sardonyx.errors import SardonyxError
from sardonyx.passes.base import CheckError
from sardonyx.passes.context import make_context
from sardonyx.tools.opt_print import PrintOptions, diff, print_module
from sardonyx.tools.text import Text, parse_text


def check_roundtrip(module: ModuleOp, allow_unregistered: bool, what: str) -> None:
    """Print, parse, compare, with and without locations.

    Raises:
        CheckError: The text does not parse, or parses to something else; the notes show where.
    """
    for generic in (False, True):
        for located in (False, True):
            _check(module, allow_unregistered, what, PrintOptions(generic, located))


def _check(module: ModuleOp, allow_unregistered: bool, what: str, style: PrintOptions) -> None:
    form = ("generic" if style.generic else "custom") + (" text with locations" if style.locations else " text")
    printed = print_module(module, style)
    try:
        again = parse_text(make_context(allow_unregistered), Text(printed, f"<{form} of {what}>"))
    except SardonyxError as error:
        excerpt = getattr(error, "excerpt", ())
        raise CheckError(
            f"the {form} of {what} does not parse back: {error.message}", location=error.location, notes=excerpt
        ) from error
    second = print_module(again, style)
    if second != printed:
        lines = diff(printed, second, "printed", "printed again").splitlines()
        raise CheckError(f"the {form} of {what} comes back as something else", notes=lines[:12])
    if not style.locations and not module.is_structurally_equivalent(again):
        raise CheckError(f"the {form} of {what} parses back to another module, which prints alike")
