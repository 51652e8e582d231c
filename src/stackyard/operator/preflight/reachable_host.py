"""What the checks of a host share: the subject, the open API, and what all of them ask of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox import RefusedError, quote
from stackyard.desired import Download
from stackyard.guard.implied import ImpliedCalls
from stackyard.path.survey import survey
from stackyard.render.userdata import with_data_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.proxmox import Client
    from stackyard.desired import Desired
    from stackyard.guard import Cluster
    from stackyard.operator.preflight.subject import PreflightSubject
    from stackyard.path.target import Resolved

__all__ = ["Datastore", "ReachableHost", "open_scene"]

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class Datastore:
    """A datastore as a node sees it.

    Attributes:
        contents: What it takes: `images`, `snippets`, ...
        is_active: Whether it can be used now.
        free_bytes: How much room is left.
    """

    contents: frozenset[str]
    is_active: bool
    free_bytes: int


@dataclass(frozen=True, kw_only=True)
class ReachableHost:
    """A host whose API answers.

    Attributes:
        subject: What is looked at.
        resolved: The same, resolved.
        client: Speaks to its API.
        version: Its version of Proxmox VE.
        cluster: What the cluster has.
        datastores: The datastores of the nodes that are used, by node and name.
        present: Volumes on the datastores that files are to be on, by node; those that may not be listed are
            left out.
    """

    subject: PreflightSubject
    resolved: Resolved
    client: Client
    version: str
    cluster: Cluster
    datastores: Mapping[tuple[str, str], Datastore]
    present: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def implied(self) -> ImpliedCalls:
        """What the run asks of the cluster: guests that are there need no more than they have."""
        there = {guest.vm_id for guest in self.cluster.guests}
        names = {guest.name for guest in self.cluster.guests}
        new = (g.key for g in self.desired.guests if g.vm_id not in there and g.name not in names)
        files = (f.key for f in self.desired.files if (f.node, f.volume_id) not in self.present)
        return ImpliedCalls(
            desired=self.desired,
            created=frozenset(new),
            files=frozenset(files),
            overcommit=self.resolved.overcommit,
        )

    @property
    def node(self) -> str:
        """What Proxmox calls the host."""
        return self.subject.host.node_name

    @cached_property
    def desired(self) -> Desired:
        """What is to be there, with the snippets that it comes to."""
        return _with_snippets(self.resolved)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the cluster that are used and online."""
        known = ((name, self.cluster.node(name)) for name in list_used_nodes(self.subject, self.desired))
        return tuple(name for name, node in known if node is not None and node.is_online)


def _with_snippets(resolved: Resolved) -> Desired:
    return with_data_files(resolved.desired, resolved.target.state_name)


def list_used_nodes(subject: PreflightSubject, desired: Desired) -> list[str]:
    """Return the nodes of the cluster that are used."""
    placed = (*desired.guests, *desired.files, *desired.bridges, *desired.vlans)
    return sorted({subject.host.node_name, *(thing.node for thing in placed)})


async def open_scene(
    subject: PreflightSubject, resolved: Resolved, client: Client, version: str
) -> ReachableHost:
    """Ask a host what all checks want to know.

    Raises:
        ProxmoxError: It does not answer, or not to us.
    """
    nodes = list_used_nodes(subject, _with_snippets(resolved))
    cluster = await survey(client, nodes)
    online = [name for name in nodes if (node := cluster.node(name)) is not None and node.is_online]
    listed = await asyncio.gather(*(client.get(f"/nodes/{quote(name)}/storage") for name in online))
    datastores = {
        (name, str(row["storage"])): _datastore(row)
        for name, rows in zip(online, listed, strict=True)
        for row in rows
    }
    downloads = [file for file in resolved.desired.files if isinstance(file, Download)]
    places = sorted({(file.node, file.datastore) for file in downloads} & set(datastores))
    contents = await asyncio.gather(*(_volumes(client, *place) for place in places))
    return ReachableHost(
        subject=subject,
        resolved=resolved,
        client=client,
        version=version,
        cluster=cluster,
        datastores=datastores,
        present=frozenset(one for found in contents for one in found),
    )


async def _volumes(client: Client, node: str, datastore: str) -> list[tuple[str, str]]:
    """Return the volumes on a datastore; none where we may not look, which the check of rights says."""
    try:
        rows = await client.get(f"/nodes/{quote(node)}/storage/{quote(datastore)}/content")
    except RefusedError as err:
        if err.status == _FORBIDDEN:
            return []
        raise
    return [(node, str(row["volid"])) for row in rows]


def _datastore(row: Mapping[str, Any]) -> Datastore:
    return Datastore(
        contents=frozenset(str(row.get("content", "")).split(",")),
        is_active=bool(row.get("active", 1)) and bool(row.get("enabled", 1)),
        free_bytes=int(row.get("avail", 0)),
    )
