"""`manifests/*.yaml`: recognised here, read by whoever runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from stackyard.site.entities.values import Entity, Line, Named

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Manifest", "ManifestV1", "ManifestV2", "manifest_model"]

Parts = Annotated[list[dict[str, Any]], Field(min_length=1)]


class ManifestV1(Entity):
    """A manifest of levels, each inside the one before."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    name: Line
    description: str | None = None
    levels: Parts
    settings: Named[Any] = Field(default_factory=dict)


class ManifestV2(Entity):
    """A manifest of nodes with parents."""

    schema_version: Annotated[int, Field(ge=2, le=2)]
    name: Line
    description: str | None = None
    pattern: Literal["flat", "tiered"] = "flat"
    execution: Named[Any] = Field(default_factory=dict)
    nodes: Parts
    settings: Named[Any] = Field(default_factory=dict)


Manifest = ManifestV1 | ManifestV2


def manifest_model(data: Mapping[str, object]) -> type[Manifest]:
    """Return which version of the format a file is in."""
    is_first = data.get("schema_version", 1) == 1 and "nodes" not in data
    return ManifestV1 if is_first else ManifestV2
