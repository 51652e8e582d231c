"""The JSON Schemas of all kinds of files, for editors and for programs that write such files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from stackyard.sources.hypervisor.models import cluster_model, node_model
from stackyard.sources.site.entities.envs import EnvFile
from stackyard.sources.site.entities.guests import TemplateFile
from stackyard.sources.site.entities.hosts import HostFile
from stackyard.sources.site.entities.manifests import Manifest
from stackyard.sources.site.entities.nodes import NodeFile
from stackyard.sources.site.entities.postures import Posture
from stackyard.sources.site.entities.presets import PresetFile
from stackyard.sources.site.entities.secrets import SecretsFile
from stackyard.sources.site.entities.site import SiteFile
from stackyard.sources.site.entities.specs import SpecFile
from stackyard.sources.site.entities.stacks import RepositoryFile, StackFile
from stackyard.sources.site.schema_names import ENTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["schema_of"]

_TYPES: Mapping[str, Any] = {
    "site": SiteFile,
    "secrets": SecretsFile,
    "host": HostFile,
    "node": NodeFile,
    "template": TemplateFile,
    "preset": PresetFile,
    "posture": Posture,
    "env": EnvFile,
    "spec": SpecFile,
    "manifest": Manifest,
    "stack": StackFile,
    "repository": RepositoryFile,
}
# Those that are made from a table when they are asked for.
_MADE: Mapping[str, Callable[[], Any]] = {"hypervisor": cluster_model, "hypervisor-node": node_model}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(entity: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file.

    Args:
        entity: One of `ENTITIES`.
    """
    kind = _MADE[entity]() if entity in _MADE else _TYPES[entity]
    schema = TypeAdapter(kind).json_schema(mode="validation")
    _allow_comments(schema)
    return {"$schema": _DIALECT, **schema, "title": f"stackyard {entity}: {ENTITIES[entity]}"}


def _allow_comments(schema: Any) -> None:
    """Let every mapping that refuses unknown keys have keys that begin with an underscore."""
    if isinstance(schema, list):
        for part in schema:
            _allow_comments(part)
    elif isinstance(schema, dict):
        if schema.get("additionalProperties") is False:
            schema["patternProperties"] = {"^_": {}}
        for part in list(schema.values()):
            _allow_comments(part)
