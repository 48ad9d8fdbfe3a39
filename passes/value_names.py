"""The values of a graph by the names that people have for them: inputs and outputs, values and nodes of an imported
model, what the text prints, lines of the user's program."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.module import input_names, main_function, output_names, output_values
from sardonyx.errors import InvalidArgumentError


def printed_names(module: ModuleOp) -> dict[SSAValue, str]:
    """The names that values have in the module's text, without `%`."""
    from xdsl.printer import Printer

    names: dict[SSAValue, str] = {}

    class Names(Printer):
        def print_ssa_value(self, value: SSAValue) -> str:
            name = super().print_ssa_value(value)
            names[value] = name.removeprefix("%")
            return name

    printer = Names(stream=io.StringIO())
    printer.print_op(module)
    return names


class ValueNames:
    """Finds values of the graph's own body; what is inside of other ops' bodies has no place among them."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.function = main_function(module)
        self.inputs: dict[str, SSAValue] = dict(zip(input_names(module), self.function.body.block.args, strict=True))
        self.outputs = dict(zip(output_names(module), output_values(module), strict=True))
        self._ops = [op for op in self.function.body.block.ops if not isinstance(op, func.ReturnOp)]
        self._values: dict[str, SSAValue] = {}
        self._nodes: dict[str, Operation] = {}
        # Where a pass made several ops from one node, the last computes its value and has its name.
        for op in self._ops:
            node = locations.node_name(op.location)
            if node:
                self._nodes[node] = op
            for value, name in zip(op.results, locations.value_names(op.location, len(op.results)), strict=True):
                if name:
                    self._values[name] = value
        self._printed: dict[str, SSAValue] | None = None

    def find(self, name: str) -> list[SSAValue]:
        """The values that a name means: one, or for a line all that is made there and read elsewhere.

        Raises:
            InvalidArgumentError: There is none; the hint names the nearest.
        """
        for known in (self.inputs, self.outputs, self._values):
            if name in known:
                return [known[name]]
        printed = self._of_text().get(name.removeprefix("%"))
        if printed is not None:
            return [printed]
        if name in self._nodes:
            return list(self._nodes[name].results)
        found = self._of_line(name)
        if found:
            return found
        known = [*self.inputs, *self.outputs, *self._values, *self._nodes, *self._of_text()]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "an input, an output, a value, a node, or a line as net.py:12"
        raise InvalidArgumentError(f"the graph has no value '{name}'", hint=hint)

    def _of_text(self) -> dict[str, SSAValue]:
        if self._printed is None:
            block = self.function.body.block
            own = {*block.args, *(result for op in self._ops for result in op.results)}
            self._printed = {name: value for value, name in printed_names(self.module).items() if value in own}
        return self._printed

    def _of_line(self, place: str) -> list[SSAValue]:
        there = {op for op in self._ops if place in places_of(op)}
        return [
            result
            for op in self._ops
            if op in there
            for result in op.results
            if any(_top(use.operation, there) is None for use in result.uses) or result.first_use is None
        ]


def _top(op: Operation | None, among: set[Operation]) -> Operation | None:
    """The op, or the one around it, that is among these."""
    while op is not None and op not in among:
        op = op.parent_op()
    return op


def places_of(op: Operation) -> Iterable[str]:
    """The lines that an op comes from, with the file's path and by its name alone."""
    for leaf in locations.leaves(op.location):
        if isinstance(leaf, FileLineColLoc):
            path, line = leaf.filename.data, leaf.line.data
            yield f"{path}:{line}"
            yield f"{path.rpartition('/')[2]}:{line}"


def find_all(names: ValueNames, wanted: Sequence[str]) -> dict[str, SSAValue]:
    """The values of several names, by a name for each: the one that was asked for, else (of a line or a node of
    several results) it with a number.

    Raises:
        InvalidArgumentError: A name stands for nothing, or a value is named twice.
    """
    found: dict[str, SSAValue] = {}
    seen: dict[SSAValue, str] = {}
    for name in wanted:
        values = names.find(name)
        for index, value in enumerate(values):
            if value in seen:
                raise InvalidArgumentError(f"'{name}' and '{seen[value]}' are the same value")
            seen[value] = name
            plain = name.removeprefix("%")
            found[plain if len(values) == 1 else f"{plain}_{index}"] = value
    return found
