"""Which sizes a model is tried at: the product of what each dynamic dim may be."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from sardonyx.dialects.attributes import is_anonymous
from sardonyx.dialects.dims import Dim
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.spec import TensorSpec

Binding = Mapping[str, int]
"""An extent for each dim, by its name; a dim that nobody named is called `input.axis`."""

USUAL = (2, 1, 3)
"""What a dynamic dim is tried at where the user names nothing: an ordinary size, one, and an odd one."""
IMAGE = 32
"""What the usual sizes are multiplied by for an image's height and width, which nets halve several times."""
MOST = 1000


def parse_dims(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The sizes of dims from `batch=1,8,32` texts.

    Raises:
        InvalidArgumentError: One is malformed or names a dim twice.
    """
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, separator, sizes = text.rpartition("=")
        try:
            values = tuple(int(size) for size in sizes.split(","))
        except ValueError:
            values = ()
        if not separator or not name or not values or min(values) < 0:
            raise InvalidArgumentError(f"'{text}' states no sizes of a dim", hint="write --dim batch=1,8,32")
        if name in found:
            raise InvalidArgumentError(f"the dim '{name}' is stated twice")
        found[name] = values
    return found


def dim_name(spec: TensorSpec, axis: int) -> str:
    """What a dim of an input is called here."""
    dim = (spec.extents or ())[axis]
    return f"{spec.name}.{axis}" if is_anonymous(dim) else dim.symbol_name or str(dim)


def free_dims(specs: Sequence[TensorSpec]) -> list[str]:
    """The names of the dims that a caller chooses, in the order of the inputs."""
    found: dict[str, None] = {}
    for spec in specs:
        for axis, dim in enumerate(spec.extents or ()):
            if dim.is_static:
                continue
            if dim.symbol_name is not None or is_anonymous(dim):
                found.setdefault(dim_name(spec, axis))
            else:
                for symbol in sorted(dim.symbols()):
                    found.setdefault(symbol)
    return list(found)


def frozen_dims(specs: Sequence[TensorSpec], asked: Mapping[str, Sequence[int]]) -> list[str]:
    """Names that the user wants sizes for and that are no dynamic dim of the model."""
    free = set(free_dims(specs))
    return [name for name in asked if name not in free]


def fixed_dims(
    source: Sequence[TensorSpec], model: Sequence[TensorSpec], asked: Mapping[str, Sequence[int]]
) -> list[str]:
    """The dynamic dims of a source's inputs that are fixed in the model, unless that size alone was asked for."""
    twins = {spec.name: spec for spec in source}
    if len(source) == len(model) and any(spec.name not in twins for spec in model):
        twins = {ours.name: theirs for ours, theirs in zip(model, source)}
    found: dict[str, None] = {}
    for spec in model:
        twin = twins.get(spec.name)
        if twin is None or twin.rank != spec.rank:
            continue
        for axis, (ours, theirs) in enumerate(zip(spec.extents or (), twin.extents or ())):
            name = dim_name(twin, axis)
            if ours.is_static and not theirs.is_static and set(asked.get(name, ())) != {ours.static_value}:
                found.setdefault(name)
    return list(found)


def image_dims(specs: Sequence[TensorSpec]) -> set[str]:
    """The dims that look like the height and width of an image: several dynamic ones of four axes, behind the first."""
    found: set[str] = set()
    for spec in specs:
        if spec.rank == 4 and spec.dtype.kind == "f":
            names = {dim_name(spec, a) for a, d in enumerate(spec.extents or ()) if a and not d.is_static}
            found |= names if len(names) > 1 else set()
    return found


def leading_dims(specs: Sequence[TensorSpec]) -> set[str]:
    """The dims that only ever stand first, as a batch does."""
    places: dict[str, set[int]] = {}
    for spec in specs:
        for axis, dim in enumerate(spec.extents or ()):
            if not dim.is_static:
                places.setdefault(dim_name(spec, axis), set()).add(axis)
    return {name for name, axes in places.items() if axes == {0}}


def bindings_of(
    specs: Sequence[TensorSpec], sizes: Mapping[str, Sequence[int]], scale: int = 1, usual: Sequence[int] = USUAL
) -> list[dict[str, int]]:
    """All combinations of the sizes asked for; dims that are not named walk through `usual` together.

    Those that do not lead are `scale` times as large: nets over images take no image of two pixels.

    Raises:
        InvalidArgumentError: There would be more than a thousand.
    """
    free, leading, images = free_dims(specs), leading_dims(specs), image_dims(specs)
    asked = [name for name in free if name in sizes]
    rest = [name for name in free if name not in sizes]
    count = 1
    for name in asked:
        count *= len(sizes[name])
    steps = usual if rest else usual[:1]
    if count * len(steps) > MOST:
        raise InvalidArgumentError(f"{count * len(steps)} combinations of sizes are more than {MOST}")
    found: list[dict[str, int]] = []
    for values in itertools.product(*(sizes[name] for name in asked)):
        for step in range(len(steps)):
            # Dims with different sizes show a mix-up that equal ones hide.
            others = {
                name: IMAGE * steps[step]
                if name in images
                else _usual(steps[step], place, len(rest)) * (1 if name in leading else scale)
                for place, name in enumerate(rest)
            }
            found.append({**dict(zip(asked, values)), **others})
    return found


def _usual(size: int, place: int, count: int) -> int:
    return size if size == 1 or count == 1 else size + place


def shape_of(spec: TensorSpec, binding: Binding) -> tuple[int, ...]:
    """The shape of an input under a binding.

    Raises:
        InvalidArgumentError: Its rank is not known, or a dim cannot be worked out.
    """
    if spec.extents is None:
        raise InvalidArgumentError(
            f"the rank of the input '{spec.name}' is not known", hint="give inputs with --inputs FILE.npz"
        )
    shape: list[int] = []
    for axis, dim in enumerate(spec.extents):
        name = dim_name(spec, axis)
        shape.append(binding[name] if name in binding else _evaluate(spec, dim, binding))
    return tuple(shape)


def _evaluate(spec: TensorSpec, dim: Dim, binding: Binding) -> int:
    try:
        value = dim.evaluate(dict(binding))
    except (KeyError, InvalidArgumentError):
        value = None
    if value is None or value < 0:
        raise InvalidArgumentError(f"the dim '{dim}' of the input '{spec.name}' has no size under {dict(binding)}")
    return value
