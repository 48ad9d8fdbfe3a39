"""`sardonyx new-pass NAME`: writes a pass, its lit file and its test, which run as they are.

The pass rewrites `neg(neg(x))` until its author writes something better: it shows a pattern with its types, what it
asks of values, how it declines, and where its cases, its promise and its options stand.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TextIO

from sardonyx.errors import InvalidArgumentError
from sardonyx.tools.diagnostics import EXIT_OK

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

PASS = '''\
"""`{name}`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from sardonyx.dialects.sx.unary import NegOp
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import defined_by, forward, has_one_use
from xdsl.dialects.builtin import ModuleOp


@dataclass
class {cls}Pattern(SxPattern[NegOp]):
    """Let the readers of `neg(neg(x))` read `x`."""

    aggressive: bool
    OPS: ClassVar = (NegOp,)

    def rewrite(self, op: NegOp, rewriter: SxRewriter) -> None:
        """Rewrite the op, or say why not."""
        inner = defined_by(op.operands[0], NegOp)
        if inner is None:
            return
        if not self.aggressive and not has_one_use(inner.results[0]):
            return rewriter.decline("the inner negation is read elsewhere, too")
        forward(op, inner.operands[0], rewriter)


@dataclass(frozen=True)
class {cls}Pass(SxPass):
    """Remove pairs of negations.

    Cases:

    1. The readers of `neg(neg(x))` read `x`.
    2. Not: where the inner negation is read elsewhere, unless `aggressive`.

    Options: `aggressive`, whether case 2 is one, too.
    Requires: nothing. Ensures: none of the cases is left.
    Promise: exact.
    """

    name = "{name}"
    PROMISE: ClassVar[Promise] = EXACT

    aggressive: bool = field(default=False, metadata={{"help": "also where the inner negation is read elsewhere"}})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        """Apply the patterns until none fires."""
        RewriteDriver([{cls}Pattern(self.aggressive)], run).rewrite(module)
'''

LIT = """\
// RUN: sardonyx-opt %s --load %S/{module}.py -p {name} | filecheck %s
// RUN: sardonyx-opt %s --load %S/{module}.py -p '{name}{{aggressive}}' | filecheck %s --check-prefix AGGRESSIVE
// Case 1, with a dim that is known by its name only.
// CHECK-LABEL: func.func @pair
// CHECK-NEXT:  %[[E:[0-9]+]] = sx.exp %x
// CHECK-NEXT:  func.return %[[E]]
func.func @pair(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {{
  %0 = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.neg %0 : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.exp %1 : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %2 : tensor<?x3xf32, #sx.dims<n, _>>
}}

// Case 2: not.
// CHECK-LABEL:      func.func @shared
// CHECK:            sx.neg
// CHECK:            sx.neg
// AGGRESSIVE-LABEL: func.func @shared
// AGGRESSIVE-NEXT:  %[[N:[0-9]+]] = sx.neg %x
// AGGRESSIVE-NEXT:  func.return %[[N]], %x
func.func @shared(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
  %0 = sx.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = sx.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}
"""

TEST = '''\
"""`{name}`: values, promises, and where it must not fire."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sardonyx.dialects.sx.unary import NegOp
from sardonyx.passes.registry import load_file
from sardonyx.testing import check_confluence, check_pass, random_module, run_file

HERE = Path(__file__).parent
load_file(HERE / "{module}.py")

PAIR = """
func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {{
  %0 = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.neg %0 : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %1 : tensor<?x3xf32, #sx.dims<n, _>>
}}
"""


def test_lit_file():
    run_file(HERE / "{module}.mlir")


def test_a_pair_goes():
    assert "sx.neg" not in check_pass("{name}", PAIR, changes=True).text


def test_one_negation_stays():
    check_pass("{name}", PAIR.replace("sx.neg %0", "sx.abs %0"), changes=False)


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs(seed: int):
    def negation(rng: random.Random, values: list) -> NegOp:
        return NegOp.make(rng.choice(values[-2:]))

    module = random_module(seed, extra=negation)
    check_pass("{name}{{aggressive}}", module)
    check_confluence(["{name}", "cse", "compose-transposes"], module, orders=2, same_text=False)
'''

FILES = {"{module}.py": PASS, "{module}.mlir": LIT, "test_{module}.py": TEST}


EPILOG = """examples:
  sardonyx new-pass drop-pairs                writes drop_pairs.py, drop_pairs.mlir and test_drop_pairs.py
  sardonyx new-pass drop-pairs -o passes

exit status: 0 written, 1 the name is none, or a file is there already, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", metavar="NAME", help="the pass's name on the command line, as my-pass")
    parser.add_argument("-o", "--output", default=".", metavar="DIR", help="the folder for the files (default: here)")


def run(options: argparse.Namespace, out: TextIO) -> int:
    """Write the files; none is overwritten.

    Raises:
        InvalidArgumentError: The name is none, a pass has it, or a file is there already.
    """
    folder = Path(options.output)
    written = write(options.name, folder)
    module = options.name.replace("-", "_")
    for path in written:
        out.write(f"{path}\n")
    out.write(
        f"\nrun it:   sardonyx-opt graph.mlir --load {folder / module}.py -p {options.name}\n"
        f"test it:  pytest {folder / f'test_{module}.py'}\n"
        f"CHECK lines anew:  python -m sardonyx.testing.lit {folder / f'{module}.mlir'}\n"
    )
    return EXIT_OK


def write(name: str, folder: Path) -> list[Path]:
    """Write the files of a pass; returns their names."""
    from sardonyx.passes import registry

    if not NAME.fullmatch(name):
        raise InvalidArgumentError(f"'{name}' is no name of a pass", hint="write it like my-pass: a-z, 0-9 and dashes")
    if name in registry.entries():
        raise InvalidArgumentError(f"there is a pass '{name}' already", hint="see sardonyx-opt --list-passes=all")
    module = name.replace("-", "_")
    values = {"name": name, "module": module, "cls": "".join(part.capitalize() for part in name.split("-"))}
    files = {folder / path.format(**values): content.format(**values) for path, content in FILES.items()}
    present = [str(path) for path in files if path.exists()]
    if present:
        raise InvalidArgumentError(f"not overwritten: {', '.join(present)}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(f"cannot write to '{folder}': {error.strerror or error}") from error
    return list(files)
