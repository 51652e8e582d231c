"""Every resource and data source by its names, with its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.provider import data_sources, facts, resources
from stackyard.provider.schema import Schema, read_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Everything that the provider has."""

    provider: Schema
    resources: Mapping[str, KnownResource]
    data_sources: Mapping[str, KnownDataSource]


def load() -> Registry:
    """Read the facts and put them together with what we do."""
    known = facts.load()
    return Registry(
        provider=read_schema(known["provider"], {}),
        resources={
            name: KnownResource(kind, read_schema(known["resources"][name], kind.rules))
            for kind in resources.ALL
            for name in kind.names
        },
        data_sources={
            name: KnownDataSource(source, read_schema(known["data_sources"][name], source.rules))
            for source in data_sources.ALL
            for name in source.names
        },
    )
