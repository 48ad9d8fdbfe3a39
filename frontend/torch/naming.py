"""Names of a program's inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.torch.dims import dim_of
from sardonyx.frontend.torch.errors import invalid


def output_namer(program: Any, given: Sequence[str] | None) -> Callable[[list[str]], list[str]]:
    """A function that names the outputs, given the inputs' names: the user's, else by their place in what is returned.

    A dict's keys name its entries (`logits`, `past_key_values_0_key`), all others are `output_0`, `output_1`, ….
    """
    paths = output_paths(program)

    def names(inputs: list[str]) -> list[str]:
        if given is not None and len(given) > len(paths):
            raise invalid(f"output_names has {len(given)} names, but the model returns {len(paths)} values")
        taken = set(inputs) | set(given or ())
        found: list[str] = list(given or ())
        for index in range(len(found), len(paths)):
            name, number = paths[index], 1
            while name in taken:
                name, number = f"{paths[index]}_out" + (f"_{number}" if number > 1 else ""), number + 1
            taken.add(name)
            found.append(name)
        return found

    return names


def output_paths(program: Any) -> list[str]:
    """A name for each output, from the structure of what the model returns."""
    import torch

    signature = program.graph_signature
    count = sum(1 for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT")
    plain = [f"output_{i}" for i in range(count)]
    try:
        whole = torch.utils._pytree.tree_unflatten(list(range(count)), program.call_spec.out_spec)
        paths, _ = torch.utils._pytree.tree_flatten_with_path(whole)
    except (AttributeError, TypeError, ValueError):
        return plain
    found = list(plain)
    for path, place in paths:
        words = [w for w in re.split(r"[^0-9A-Za-z_]+", torch.utils._pytree.keystr(path)) if w]
        if words and not words[0].isdigit() and isinstance(place, int) and place < count:
            found[place] = "_".join(words)
    return found if len(set(found)) == count else plain


def output_axes(program: Any, graph: ModelGraph, symbols: Mapping[str, str]) -> dict[str, dict[int, str]]:
    """What dims of outputs are called in the model where torch knows more of them than can be proved here.

    torch assumes that a slice of `seq` rows of a table has `seq` rows; here it has as many as there are.
    """
    metas = []
    for node in program.graph.nodes:
        if node.op == "output":
            for spec, value in zip(program.graph_signature.output_specs, node.args[0]):
                if spec.kind.name == "USER_OUTPUT":
                    metas.append(getattr(value, "meta", {}).get("val"))
    found: dict[str, dict[int, str]] = {}
    for spec, meta in zip(graph.output_specs(), [m for m in metas if hasattr(m, "shape")]):
        names = dict(enumerate(dim_of(size, symbols) for size in meta.shape))
        ours = spec.extents or ()
        kept = {
            a: str(d) for a, d in names.items() if d is not None and not d.is_static and a < len(ours) and d != ours[a]
        }
        if kept:
            found[spec.name] = kept
    return found


def input_namer(program: Any, given: Sequence[str] | None, count: int) -> list[str | None]:
    """The user's names for the inputs, in order."""
    names = list(given or ())
    if len(names) > count:
        raise invalid(f"input_names has {len(names)} names, but the model takes {count} tensors")
    return [*names, *([None] * (count - len(names)))]
