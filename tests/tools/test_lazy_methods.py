"""Methods of dataclasses that are compiled when they are first called: classes work as they do otherwise."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import FrozenInstanceError
from types import ModuleType
from typing import Any

import pytest

from sardonyx.tools.lazy_methods import defer_methods

pytestmark = pytest.mark.skipif(
    not hasattr(dataclasses, "_create_fn"), reason="this Python makes the methods of dataclasses otherwise"
)


@pytest.fixture
def lazy(monkeypatch: pytest.MonkeyPatch):
    """Methods wait until the test is over."""
    monkeypatch.setattr(dataclasses, "_create_fn", vars(dataclasses)["_create_fn"])
    defer_methods()


CLASSES = """
from dataclasses import dataclass, field

@dataclass(frozen=True, order=True)
class Point:
    x: int
    y: list = field(default_factory=list, compare=False)

    def __post_init__(self):
        if self.x < 0:
            raise ValueError("x is negative")

@dataclass(frozen=True, order=True)
class Place(Point):
    name: str = "here"
"""


@pytest.fixture
def place(lazy: None, monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    """A class of a module of ours."""
    module = ModuleType("sardonyx.here")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(CLASSES, vars(module))
    return module.Place


def waits(owner: type, name: str) -> bool:
    return vars(owner)[name].__module__ == "sardonyx.tools.lazy_methods"


def test_a_method_is_made_at_its_first_call(place: type[Any]):
    assert waits(place, "__init__") and waits(place, "__hash__")
    place(1)
    assert not waits(place, "__init__") and waits(place, "__hash__")
    assert place.__init__.__qualname__ == "Place.__init__"
    assert waits(place.__mro__[1], "__init__")  # the base has its own


def test_a_class_works_as_it_does_otherwise(place: type[Any]):
    one, other = place(1), place(1, [2], name="here")
    assert one == other and hash(one) == hash(other) and one < place(2) and one != place(1, name="there")
    assert one.y == [] and one.y is not place(1).y
    assert repr(other) == "Place(x=1, y=[2], name='here')"
    assert dataclasses.replace(one, x=5).x == 5
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 3
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x
    with pytest.raises(ValueError, match="x is negative"):
        place(-1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        place(1, z=2)
    point = place.__mro__[1]
    assert point(1) == point(1) and point(1) != one


def test_classes_of_others_are_left_alone(lazy: None, monkeypatch: pytest.MonkeyPatch):
    module = ModuleType("elsewhere")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(CLASSES, vars(module))
    assert not waits(module.Place, "__init__")


def test_another_way_of_making_dataclasses_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    def other(cls: type, name: str) -> None: ...

    monkeypatch.setattr(dataclasses, "_create_fn", other)
    defer_methods()
    assert vars(dataclasses)["_create_fn"] is other


RUN = """
import io, sys
from sardonyx.tools.opt import run
text = '''func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %1 = sx.neg %0 : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %1 : tensor<?x3xf32, #sx.dims<n, _>>
}'''
status = run(["-p", "default"], io.StringIO(text), sys.stdout, sys.stderr, alone=sys.argv[1] == "alone")
from xdsl.dialects.builtin import MemRefType
print(vars(MemRefType)["__eq__"].__module__)
sys.exit(status)
"""


def test_the_driver_prints_the_same_either_way():
    def ran(how: str) -> tuple[str, str]:
        command = [sys.executable, "-P", "-c", RUN, how]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return text[: text.rindex("}")], text.split()[-1]

    (alone, late), (other, early) = ran("alone"), ran("not")
    assert alone == other and "return %x" in alone
    assert (late, early) == ("sardonyx.tools.lazy_methods", "xdsl.dialects.builtin")
