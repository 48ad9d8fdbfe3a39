"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.nn.module import Module


class ModuleList(Module):
    """Modules by number; it computes nothing itself."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        if not isinstance(module, Module):
            raise InvalidArgumentError(f"a list of modules holds modules, not {type(module).__name__}")
        setattr(self, str(len(self._modules)), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: int) -> Any:
        return list(self._modules.values())[index]


class ModuleDict(Module):
    """Modules by name; it computes nothing itself."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        for name, module in modules.items():
            setattr(self, name, module)

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class Sequential(ModuleList):
    """Modules one after the other: each is called with the result of the one before."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:
        for module in self:
            x = module(x)
        return x
