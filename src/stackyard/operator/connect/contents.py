"""What the datastore of files has to take, and rarely does on a new Proxmox: snippets and disk images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.guard.features import Feature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.operator.connect.model import ConnectRequest
    from stackyard.operator.connect.survey import NodeSeen

__all__ = ["ContentChange", "add_contents", "find_missing_contents"]

# Datastores of these types keep files; the others keep nothing but disks.
_FILE_TYPES = frozenset(("btrfs", "cephfs", "cifs", "dir", "nfs"))
_NEEDED = {"snippets": 0, "import": 9}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentChange:
    """A datastore that is to take more.

    Attributes:
        datastore: Its name.
        added: What it is to take in addition.
        content: Everything that it takes then.
    """

    datastore: str
    added: tuple[str, ...]
    content: tuple[str, ...]

    @property
    def what(self) -> str:
        """What it does, in a few words."""
        return f"let the datastore {self.datastore} take {' and '.join(self.added)}"


def find_missing_contents(
    nodes: Sequence[NodeSeen], stores: Sequence[str], request: ConnectRequest, version: str
) -> tuple[ContentChange, ...]:
    """Return what datastores of files have to take in addition for images and snippets.

    Args:
        nodes: The nodes.
        stores: The datastore of files of each node.
        request: What is asked for.
        version: The version of Proxmox VE.
    """
    if Feature.IMAGES not in request.features:
        return ()
    major = version.partition(".")[0]
    since = int(major) if major.isdecimal() else 0
    found: dict[str, ContentChange] = {}
    for node, name in zip(nodes, stores, strict=True):
        for store in node.datastores:
            added = tuple(k for k, first in _NEEDED.items() if k not in store.content and since >= first)
            if store.name == name and store.type in _FILE_TYPES and added:
                content = (*store.content, *added)
                found[name] = ContentChange(datastore=name, added=added, content=content)
    return tuple(found.values())


async def add_contents(client: proxmox.Client, changes: Sequence[ContentChange]) -> None:
    """Let datastores take more.

    Raises:
        ProxmoxError: Proxmox refuses it.
    """
    for change in changes:
        path = f"/storage/{proxmox.quote(change.datastore)}"
        await client.put(path, {"content": ",".join(change.content)})
