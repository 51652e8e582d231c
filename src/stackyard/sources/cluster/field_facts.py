"""What is known of each field: what it is for, what it may be, and where it is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.field_words import CLUSTER_WORDS, NODE_WORDS, PART_WORDS, SECRET_WORDS
from stackyard.sources.cluster.fields import REQUIRED, REQUIRED_OF_NODE, list_secret_names
from stackyard.sources.cluster.model import VmHardware
from stackyard.sources.cluster.resolve import SIZES
from stackyard.sources.cluster.schema import cluster_schema
from stackyard.sources.cluster.toml_layout import FIELDS, SECRETS
from stackyard.sources.cluster.values import to_plain
from stackyard.sources.site.fields import describe_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FieldFacts", "find_field", "list_field_names", "list_fields"]

_TEMPLATES = "Passed on to templates; stackyard itself does not use it."


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFacts:
    """A field.

    Attributes:
        name: Its name.
        file: The file that it belongs in.
        words: What it is for.
        kind: What its value may be.
        default: What counts when it is absent; empty for nothing.
        toml: What it is called in cluster.toml; empty where that has none.
        is_required: Whether it has to be there.
        is_secret: Whether it is secret.
    """

    name: str
    file: str
    words: str
    kind: str
    default: str = ""
    toml: str = ""
    is_required: bool = False
    is_secret: bool = False

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return asdict(self)


def find_field(name: str) -> FieldFacts | None:
    """Return a field by its name in cluster.yaml, nodes.yaml or cluster.toml; parts go with points."""
    known = {field.name: field for field in reversed(list_fields())}
    tables = {field.toml: field for field in known.values() if field.toml}
    return known.get(name.removeprefix("nodes.")) or tables.get(name)


def list_field_names() -> list[str]:
    """Return the names of all fields."""
    return [field.name for field in list_fields()]


def list_fields() -> list[FieldFacts]:
    """Return all fields: those of the cluster and their parts, those of nodes, the secret ones."""
    schema = cluster_schema("cluster")
    secret = list_secret_names()
    found = [
        _cluster_field(name, value, schema)
        for name, value in schema["properties"].items()
        if name not in secret
    ]
    for table in [one for one in found if one.name in CLUSTER_WORDS]:
        found += _list_parts(table, schema)
    nodes = cluster_schema("nodes")
    for name, value in nodes["$defs"]["NodeFields"]["properties"].items():
        found.append(
            FieldFacts(
                name=name,
                file="nodes.yaml",
                words=NODE_WORDS[name],
                kind=_describe(value, nodes),
                toml=f"nodes.{name}",
                is_required=name in REQUIRED_OF_NODE,
            )
        )
    return found + [_secret_field(name) for name in sorted(secret)]


def _cluster_field(name: str, value: Mapping[str, Any], schema: dict[str, Any]) -> FieldFacts:
    default = value.get("default")
    return FieldFacts(
        name=name,
        file="cluster.yaml",
        words=CLUSTER_WORDS.get(name, _TEMPLATES),
        kind=_describe(dict(value), schema),
        default="" if default in (None, []) else _format(default),
        toml=".".join(FIELDS.get(name, ())),
        is_required=name in REQUIRED,
    )


def _list_parts(table: FieldFacts, schema: dict[str, Any]) -> list[FieldFacts]:
    """Return the parts of a field that is a mapping."""
    target = schema["properties"][table.name].get("$ref", "").rpartition("/")[2]
    parts = schema["$defs"].get(target, {}).get("properties", {})
    defaults = _list_defaults(table.name)
    return [
        FieldFacts(
            name=f"{table.name}.{key}",
            file="cluster.yaml",
            words=PART_WORDS[key],
            default=_format(defaults[key]) if key in defaults else "",
            kind=_describe(value, schema),
            toml=f"{table.toml}.{key}",
        )
        for key, value in parts.items()
    ]


def _list_defaults(table: str) -> dict[str, Any]:
    """Return the built-in values of the parts of a field."""
    if table == "proxmox_vm_advanced":
        hardware = VmHardware()
        return {name: to_plain(getattr(hardware, name)) for name in VmHardware.__slots__}
    role = table.removeprefix("proxmox_vm_").removesuffix("defaults").removesuffix("_")
    return dict(SIZES[role]) if table.endswith("_defaults") else {}


def _describe(value: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what a value may be; of a mapping, the names of its parts."""
    target = schema["$defs"].get(value.get("$ref", "").rpartition("/")[2], {})
    if "properties" in target:
        return f"mapping of {', '.join(target['properties'])}"
    if value.get("type") == "array" and "$ref" in value.get("items", {}):
        return f"list of {_describe(value['items'], schema)}"
    words = {"ipv4": "IPv4 address", "ipv4network": "network, as 192.0.2.0/24"}
    return words.get(value.get("format", "")) or describe_kind(value, schema)


def _secret_field(name: str) -> FieldFacts:
    return FieldFacts(
        name=name,
        file="cluster.sops.yaml",
        words=SECRET_WORDS.get(name, _TEMPLATES),
        kind="text",
        toml=".".join(SECRETS.get(name, ())),
        is_secret=True,
    )


def _format(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
