"""The objects of a file, in the model that is rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.desired import ClusterObject, Desired, ObjectKey, Secret
from stackyard.sources.hypervisor.credentials import build_credentials, is_token_grant
from stackyard.sources.hypervisor.models import resource_type
from stackyard.sources.hypervisor.sections import CLUSTER, NODE, Layout, Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired.values import Value

__all__ = ["Entry", "build_desired", "is_secret", "list_entries", "sections_of"]

_WORD = re.compile(r"[A-Za-z0-9_.@!-]+")
_ADDRESS = re.compile(r"[0-9a-fA-F:.]+/\d+")
_ADDRESS_SIGNS = re.compile(r"[.:/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a section.

    Attributes:
        section: The section.
        path: Where it is in the file.
        kind: The kind of resource that it is.
        name: What it is called, unique among its kind in the file.
        values: What it says, by the names in the file.
    """

    section: Section
    path: tuple[str | int, ...]
    kind: str
    name: str
    values: Mapping[str, Any]

    @property
    def key(self) -> ObjectKey:
        """What names its object."""
        return ObjectKey(type=resource_type(self.kind), name=self.name)


def sections_of(model: Value) -> tuple[Section, ...]:
    """Return the sections that a file may have."""
    return NODE if hasattr(model, "node") else CLUSTER


def list_entries(model: Value) -> Iterator[Entry]:
    """Return everything that a file has, section by section."""
    said = model.model_dump(exclude_unset=True)
    for section in sections_of(model):
        found: Any = said
        for key in section.path:
            found = (found or {}).get(key)
        if found is not None:
            yield from _entries(section, found)


def _entries(section: Section, found: Any) -> Iterator[Entry]:
    if section.layout is Layout.ONE:
        yield _entry(section, section.path, section.path[-1], found)
    elif section.layout is Layout.LIST:
        for index, values in enumerate(found):
            yield _entry(section, (*section.path, index), _name_listed(section, values), values)
    else:
        for name, values in found.items():
            yield _entry(section, (*section.path, name), name, values)


def _entry(section: Section, path: tuple[str | int, ...], name: str, values: Mapping[str, Any]) -> Entry:
    kind = section.kinds[values.get("type", "") if len(section.kinds) > 1 else ""]
    return Entry(section=section, path=path, kind=kind, name=name, values=values)


def _name_listed(section: Section, values: Mapping[str, Any]) -> str:
    """Return the name of an entry of a list: what tells it apart, so that its place does not matter."""
    parts = [str(values[name]) for name in section.identity if values.get(name) is not None]
    plain = [_ADDRESS_SIGNS.sub("-", part) if _ADDRESS.fullmatch(part) else part for part in parts]
    return section.between.join(part.removeprefix("/") for part in plain)


def build_desired(model: Value, node: str | None = None) -> Desired:
    """Return what a file says should be there.

    Args:
        model: The file.
        node: What Proxmox calls the node that it is of.
    """
    everything = list(list_entries(model))
    entries = [entry for entry in everything if not is_token_grant(entry.kind, entry.values)]
    node = node or getattr(model, "node", None)
    return Desired(
        objects=tuple(_build(entry, entries, node) for entry in entries),
        credentials=build_credentials(model, [(one.kind, one.name, one.values) for one in everything]),
    )


def _build(entry: Entry, others: list[Entry], node: str | None) -> ClusterObject:
    section = entry.section
    attributes: dict[str, Any] = {}
    secrets: dict[str, Secret] = {}
    for name, value in entry.values.items():
        if name in section.apart:
            continue
        attribute = section.names.get(name, name)
        if is_secret(value):
            secrets[attribute] = Secret(secret=value["secret"])
        elif not (name == "type" and len(section.kinds) > 1):
            attributes[attribute] = _with_secrets(value) if name in section.secret_texts else value
    if section.key:
        attributes[section.key] = entry.name
    if section.node:
        attributes[section.node] = node
    words = set(_words([entry.name, *entry.values.values()]))
    after = [
        one.key
        for one in others
        if one.section.name in section.after
        and (one.section.layout is not Layout.BY_NAME or one.name in words)
    ]
    return ClusterObject(key=entry.key, attributes=attributes, secrets=secrets, after=tuple(after))


def is_secret(value: Any) -> bool:
    """Return whether a value of an entry is the name of a secret."""
    return isinstance(value, dict) and set(value) == {"secret"}


def _with_secrets(texts: Any) -> Any:
    """Return a mapping with the secrets that it names."""
    named = texts.items() if isinstance(texts, dict) else ()
    return {key: Secret(secret=one["secret"]) if is_secret(one) else one for key, one in named}


def _words(value: Any) -> Iterator[str]:
    """Return every text in a value, and the words in them: what may be the name of another object."""
    if isinstance(value, str):
        yield value
        for word in _WORD.findall(value):
            yield word
            # A VLAN has the name of its interface in its own.
            yield word.partition(".")[0]
    elif isinstance(value, dict):
        yield from _words(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _words(part)
