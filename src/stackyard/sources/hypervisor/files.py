"""The files of `hypervisors/` as checks see them, and what the rest of the site says beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from stackyard.sources.hypervisor.build import list_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackyard.base.errors import Location
    from stackyard.desired.values import Value
    from stackyard.sources.hypervisor.build import Entry

__all__ = ["HypervisorFile", "Places", "SiteFacts", "StorageUse"]

Key = str | int


class Places(Protocol):
    """The values of a file, and where they are in it."""

    @property
    def data(self) -> dict[str, Any]:
        """The plain values."""

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a value is, or the nearest place above it that the file has."""

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where the key of a value is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervisorFile:
    """A file of a cluster or a node.

    Attributes:
        name: Its name.
        places: Its values and their places.
        model: What it says; of a file with mistakes, what is left of it.
        entries: Everything that it has.
        is_lost: Tells whether something at a place was left out, because it is wrong.
    """

    name: str
    places: Places
    model: Value
    entries: tuple[Entry, ...]
    is_lost: Callable[..., bool]

    @classmethod
    def of(cls, name: str, places: Places, model: Value, is_lost: Callable[..., bool]) -> HypervisorFile:
        """Return a file that was read."""
        entries = tuple(list_entries(model))
        return cls(name=name, places=places, model=model, entries=entries, is_lost=is_lost)

    @property
    def is_node(self) -> bool:
        """Whether it is the file of a node."""
        return hasattr(self.model, "node")

    @property
    def node(self) -> str | None:
        """The node that it is of; None for a cluster, or where it does not say a valid one."""
        return getattr(self.model, "node", None)

    def section(self, *names: str) -> list[Entry]:
        """Return the entries of sections, by the names of those (`sdn.zones`)."""
        return [entry for entry in self.entries if entry.section.name in names]

    def names(self, section: str) -> set[str]:
        """Return what the entries of a section are called."""
        return {entry.name for entry in self.section(section)}

    def may_have(self, section: str, name: str) -> bool:
        """Return whether a section has an entry of a name, or may have: one with mistakes was left out."""
        return name in self.names(section) or self.is_lost(*section.split("."), name)

    def place(self, entry: Entry, *keys: Key) -> Location:
        """Return where a value of an entry is, also where a short form has no name for it."""
        return self.places.place(self._path(entry, keys))

    def has_lost(self, entry: Entry, *keys: Key) -> bool:
        """Return whether something of a value of an entry was left out, because it is wrong."""
        return self.is_lost(*self._path(entry, keys))

    def _path(self, entry: Entry, keys: Sequence[Key]) -> tuple[Key, ...]:
        found: Any = self.places.data
        for key in entry.path:
            found = found[key] if _has(found, key) else None
        is_short = bool(keys) and keys[0] == entry.section.short and not isinstance(found, dict)
        return *entry.path, *(keys[1:] if is_short else keys)

    def key_place(self, entry: Entry) -> Location:
        """Return where the name of an entry is."""
        return self.places.key_place(entry.path)


def _has(value: Any, key: Key) -> bool:
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageUse:
    """That something of the site uses a storage.

    Attributes:
        storage: The storage.
        node: The node that it is used on, as Proxmox calls it.
        content: The content type that it has to allow there.
        who: What uses it, as part of a sentence.
        where: Where it says so.
    """

    storage: str
    node: str
    content: str
    who: str
    where: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """What the rest of the site says.

    Attributes:
        nodes: The nodes, as Proxmox calls them, by the names of their files; None where not all are known.
        secrets: The names of the secrets; None where they cannot be read.
        uses: The storages that guests and files of envs are on.
    """

    nodes: dict[str, str] | None
    secrets: frozenset[str] | None
    uses: tuple[StorageUse, ...] = ()
