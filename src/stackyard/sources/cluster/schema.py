"""The JSON Schemas of the files of a cluster, for editors and for programs that write such files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.bootstrap_file import BootstrapFields
from stackyard.sources.cluster.field_words import CLUSTER_WORDS, NODE_WORDS, SECRET_WORDS
from stackyard.sources.cluster.fields import (
    REQUIRED,
    REQUIRED_OF_NODE,
    NodesFile,
    secret_model,
    whole_model,
)
from stackyard.sources.cluster.resolve import DEFAULTS
from stackyard.sources.cluster.toml_layout import FIELDS, SECRETS, toml_model
from stackyard.sources.cluster.values import to_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FILES", "cluster_schema"]

# The kinds of files, and what they are called.
FILES: Mapping[str, str] = {
    "cluster": "cluster.yaml",
    "nodes": "nodes.yaml",
    "cluster-secrets": "cluster.sops.yaml, decrypted",
    "cluster-toml": "cluster.toml",
    "bootstrap": "bootstrap.yaml",
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def cluster_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file.

    Args:
        kind: One of `FILES`.
    """
    makers = {
        "cluster": _cluster,
        "nodes": _nodes,
        "cluster-secrets": _secrets,
        "cluster-toml": _toml,
        "bootstrap": _bootstrap,
    }
    return {"$schema": _DIALECT, **_drop_nulls(makers[kind]()), "title": f"stackyard {kind}: {FILES[kind]}"}


def _cluster() -> dict[str, Any]:
    schema = whole_model().model_json_schema()
    for name in schema["properties"]:
        _describe(schema, (name,), name)
    schema["required"] = list(REQUIRED)
    # A key that begins with an underscore is a comment.
    schema["patternProperties"] = {"^_": {}}
    return schema


def _nodes() -> dict[str, Any]:
    schema = NodesFile.model_json_schema()
    _add_node_words(schema)
    schema["required"] = ["nodes"]
    return schema


def _secrets() -> dict[str, Any]:
    schema = secret_model().model_json_schema()
    for name in schema["properties"]:
        _describe(schema, (name,), name)
    return schema


def _toml() -> dict[str, Any]:
    schema = toml_model(is_whole=True).model_json_schema()
    for name, path in {**FIELDS, **SECRETS}.items():
        _describe(schema, path, name)
    _add_node_words(schema)
    schema["required"] = ["network", "kubernetes", "nodes"]
    return schema


def _bootstrap() -> dict[str, Any]:
    schema = BootstrapFields.model_json_schema()
    schema["$defs"]["ChartFields"]["required"] = ["name", "chart"]
    return schema


def _add_node_words(schema: dict[str, Any]) -> None:
    node = schema["$defs"]["NodeFields"]
    for name, words in NODE_WORDS.items():
        node["properties"][name]["description"] = words
    node["required"] = list(REQUIRED_OF_NODE)
    node["patternProperties"] = {"^_": {}}


def _describe(schema: dict[str, Any], path: tuple[str, ...], name: str) -> None:
    """Add what a field is for, and its default."""
    part = schema
    for key in path:
        value = part["properties"][key]
        target = next((one["$ref"] for one in value.get("anyOf", [value]) if "$ref" in one), None)
        part = schema["$defs"][target.rpartition("/")[2]] if target and key != path[-1] else value
    if words := {**CLUSTER_WORDS, **SECRET_WORDS}.get(name):
        part["description"] = words
    if name in DEFAULTS:
        part["default"] = to_plain(DEFAULTS[name])


def _drop_nulls(value: Any) -> Any:
    """Leave out that a field may be absent: that it is not required says so."""
    if isinstance(value, list):
        return [_drop_nulls(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _drop_nulls(one) for key, one in value.items() if not (key == "default" and one is None)}
    kept = {key: one for key, one in kept.items() if key != "title" or isinstance(one, dict)}
    if isinstance(kept.get("enum"), list):
        # Python gives a choice the order of whoever made the same one first.
        kept["enum"] = sorted(kept["enum"], key=str)
    choices = [one for one in kept.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) == 1 and len(kept["anyOf"]) > 1:
        kept = {**choices[0], **{key: one for key, one in kept.items() if key != "anyOf"}}
    elif choices:
        kept["anyOf"] = choices
    return kept
