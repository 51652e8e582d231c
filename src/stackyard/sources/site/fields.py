"""The fields of every kind of file in a site as a page, made from the JSON Schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.sources.site.schema import schema_of
from stackyard.sources.site.schema_names import ENTITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["describe_kind", "render"]

_OWN_PAGES = {
    "hypervisor": "hypervisors.md#files-of-a-cluster",
    "hypervisor-node": "hypervisors.md#files-of-a-node",
}

_HEADING = """\
# Fields of a site

Every kind of file, every key that it may have, and what its value may be. A key in **bold** has to be there.
Keys that begin with `_` are comments, allowed anywhere; any other key is refused. What values mean is
in [the site](site.md); the JSON Schemas that this page is made from are in [schema/](schema/).
"""


def render() -> str:
    """Return the page."""
    parts = [_HEADING]
    for entity, file in ENTITIES.items():
        schema = schema_of(entity)
        parts.append(f"## {entity}: `{file}`\n")
        if entity in _OWN_PAGES:
            parts.append(f"{schema['description']} [Its own page]({_OWN_PAGES[entity]}) has every section.\n")
            continue
        for title, part in _objects(schema):
            parts.append(f"{title}\n")
            parts.append(_table(part, schema))
    return "\n".join(parts)


def _objects(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every mapping of a schema, the outermost first."""
    named = schema.get("$defs", {})
    if "properties" in schema:
        yield schema.get("description", ""), schema
    for name, part in named.items():
        if "properties" in part:
            yield f"`{name}`: {part.get('description', '').splitlines()[0]}", part


def _table(part: dict[str, Any], schema: dict[str, Any]) -> str:
    required = part.get("required", [])
    lines = ["| key | value |", "|---|---|"]
    for key, value in part["properties"].items():
        name = f"**`{key}`**" if key in required else f"`{key}`"
        lines.append(f"| {name} | {_describe(value, schema)} |")
    return "\n".join(lines) + "\n"


def _describe(value: dict[str, Any], schema: dict[str, Any]) -> str:
    text = describe_kind(value, schema)
    default = value.get("default")
    if default is not None and not isinstance(default, dict | list):
        shown = str(default).lower() if isinstance(default, bool) else default
        text += f"; `{shown}` when absent"
    return text.replace("|", "\\|")


def describe_kind(value: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what a value may be, in words, from its part of a JSON Schema."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        target = schema["$defs"][name]
        return f"`{name}`" if "properties" in target else describe_kind(target, schema)
    for key in ("anyOf", "oneOf"):
        if key in value:
            kinds = [describe_kind(part, schema) for part in value[key] if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    return _plain(value, schema)


def _plain(value: dict[str, Any], schema: dict[str, Any]) -> str:
    kind = value.get("type")
    if kind == "array":
        return f"list of {describe_kind(value.get('items') or {}, schema)}"
    if kind == "object":
        more = value.get("additionalProperties")
        return f"mapping of names to {describe_kind(more, schema)}" if isinstance(more, dict) else "mapping"
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
    text = words.get(str(kind), "anything")
    low, high = value.get("minimum"), value.get("maximum")
    if low is not None and high is not None:
        return f"{text} from {low} to {high}"
    return f"{text}, at least {low}" if low is not None else text
