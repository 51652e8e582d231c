"""Property strings, the `key=value,key=value` text that Proxmox configurations are made of.

`parse` reads one by its schema (aliases, the key that may be left out, booleans in all their
spellings, a trailing comma), `render` prints one as Proxmox prints it: the default key first and
bare, then the required keys, then the rest, each group sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pvelab.server.params.formats import format_size
from pvelab.server.params.values import parse_boolean
from pvelab.server.params.values import parse_properties as parse

__all__ = ["PropertySchema", "parse", "parse_boolean", "render"]

PropertySchema = Mapping[str, Mapping[str, Any]]


def render(schema: PropertySchema, values: Mapping[str, Any], skip: Iterable[str] = ()) -> str:
    """Print values as a property string."""
    done = set(skip)
    parts: list[str] = []
    default_key = next((key for key, field in schema.items() if field.get("default_key")), None)
    required = [key for key in sorted(values) if key in schema and not schema[key].get("optional")]
    for key in (*((default_key,) if default_key else ()), *required, *sorted(values)):
        if key in done or values.get(key) is None:
            continue
        done.add(key)
        parts.append(_print_key(schema, values, key, done, bare=key == default_key))
    return ",".join(parts)


def _print_key(
    schema: PropertySchema, values: Mapping[str, Any], key: str, done: set[str], *, bare: bool
) -> str:
    value = _print_value(schema, key, values[key])
    # A NIC is printed `virtio=BC:24:...`: the model takes the place of the key of its address.
    combined = next((field["alias"] for field in schema.values() if field.get("keyAlias") == key), None)
    if combined is not None and values.get(combined) is not None:
        done.add(combined)
        return f"{value}={_print_value(schema, combined, values[combined])}"
    return value if bare else f"{key}={value}"


def _print_value(schema: PropertySchema, key: str, value: Any) -> str:
    if schema.get(key, {}).get("format") == "disk-size" and isinstance(value, int):
        return format_size(value)
    return str(int(value)) if isinstance(value, bool) else str(value)
