"""Every resource and data source by its names, with its schema.

What exists is what has a file: a module in `resources` or `data_sources`, or in a folder of a family there,
that has the name of a kind in the facts. It has the kind as `RESOURCE` or `DATA_SOURCE`. Modules with other
names are what several kinds share. A module is imported and a schema read when its name is first asked for,
so a run costs what its configuration uses, not what there is.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stackyard import bpg_schema
from stackyard.provider import data_sources, resources
from stackyard.provider.schema import Schema, read_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from stackyard.provider.kinds import DataSource, Resource

__all__ = ["KnownDataSource", "KnownResource", "Registry", "load"]


@dataclass(frozen=True, slots=True)
class KnownResource:
    """A resource under one of its names."""

    kind: Resource
    schema: Schema


@dataclass(frozen=True, slots=True)
class KnownDataSource:
    """A data source under one of its names."""

    kind: DataSource
    schema: Schema


_Known = TypeVar("_Known")


class _LoadedWhenAsked(Mapping[str, _Known], Generic[_Known]):
    """What there is, by name, each loaded when it is first asked for."""

    def __init__(self, names: Mapping[str, bpg_schema.Named], load: Callable[[str], _Known]) -> None:
        self._names = names
        self._load = functools.cache(load)

    def __getitem__(self, name: str) -> _Known:
        if name not in self._names:
            raise KeyError(name)
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """Give the schema of each as a message."""
        return ((name, named.message) for name, named in self._names.items())


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Everything that the provider has."""

    provider_message: bytes
    resources: _LoadedWhenAsked[KnownResource]
    data_sources: _LoadedWhenAsked[KnownDataSource]

    @functools.cached_property
    def provider(self) -> Schema:
        """The schema of the provider block."""
        return read_schema(bpg_schema.load_provider(), {})


def load() -> Registry:
    """Find what there is, and the facts about it."""
    index = bpg_schema.load_index()
    return Registry(
        provider_message=index.provider,
        resources=_find(resources, index.resources, "RESOURCE", KnownResource),
        data_sources=_find(data_sources, index.data_sources, "DATA_SOURCE", KnownDataSource),
    )


def _find(
    package: ModuleType,
    declared: Mapping[str, bpg_schema.Named],
    attribute: str,
    make: Callable[[Any, Schema], _Known],
) -> _LoadedWhenAsked[_Known]:
    """Find the kinds of a package that have a module."""
    modules = _find_modules(package, {named.kind for named in declared.values()})
    section = package.__name__.rpartition(".")[2]

    def load_one(name: str) -> _Known:
        kind = declared[name].kind
        found = getattr(importlib.import_module(modules[kind]), attribute)
        return make(found, read_schema(bpg_schema.load_kind(section, kind, name), found.rules))

    names = {name: named for name, named in declared.items() if named.kind in modules}
    return _LoadedWhenAsked(names, load_one)


def _find_modules(package: ModuleType, kinds: set[str]) -> dict[str, str]:
    """Return the modules of kinds, in a package itself and in the folders of families inside."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.name in kinds:
            found[module.name] = f"{package.__name__}.{module.name}"
        elif module.ispkg:
            family = f"{package.__name__}.{module.name}"
            folders = [f"{path}/{module.name}" for path in package.__path__]
            found |= {
                one.name: f"{family}.{one.name}" for one in pkgutil.iter_modules(folders) if one.name in kinds
            }
    return found
