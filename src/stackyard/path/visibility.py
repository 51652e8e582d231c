"""Not visible is not gone: what the state has and the cluster does not list must be shown to be gone.

Proxmox leaves out of its lists what a token may not see, and a provider takes what is not listed for gone:
the engine would plan to create it once more, and the state would forget it. So before an engine looks,
everything that the state has is looked for with the question whether our token could see it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.clients.proxmox import quote
from stackyard.guard.subjects import KINDS, name_in, short_type
from stackyard.render.references import guest_kind, vm_id_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from stackyard.guard import Cluster
    from stackyard.path.known_state import KnownState
    from stackyard.state.inside import Instance

__all__ = ["NotVisibleError", "require_visible"]

NO_PRIVILEGE = Kind(
    code="E-PLAN-MAY-NOT-LOOK",
    summary="The token may not look whether something is still there",
    remedy="Give the token the privilege that the finding names, or use the token that applied it.",
)
NO_ANSWER = Kind(
    code="E-PLAN-NODE-SILENT",
    summary="A node is offline, so that nothing shows whether a guest is still there",
    remedy="Start the node, or wait until it answers. A node that never comes back has to be removed from "
    "the cluster, as the manual of Proxmox VE describes.",
)
STILL_THERE = Kind(
    code="E-PLAN-STILL-THERE",
    summary="A node has a guest that the cluster does not list",
    remedy="Wait until the cluster has settled (`pvecm status`), and repeat.",
)


class NotVisibleError(StackyardError):
    """Something in the state cannot be seen on the cluster, and nothing shows that it is gone."""

    code = "E-PLAN-NOT-VISIBLE"
    summary = "The cluster does not show what the state has"
    default_remedy = (
        "Read the findings. What is certainly gone is taken out of the state by `stackyard state forget`."
    )

    def __init__(self, detail: str, findings: tuple[Diagnostic, ...]) -> None:
        super().__init__(detail)
        self._findings = findings

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding."""
        return self._findings


@dataclass(frozen=True, slots=True, kw_only=True)
class _RequiredRight:
    """What has to be allowed to see something: one of some privileges on a path."""

    path: str
    privileges: tuple[str, ...]


async def require_visible(client: proxmox.Client, known: KnownState, cluster: Cluster) -> None:
    """Make sure that whatever the state has and the cluster does not show is gone.

    Raises:
        NotVisibleError: The token may not look, or a node does not answer; with every finding.
        ProxmoxError: The cluster does not answer.
    """
    listed = {guest.vm_id for guest in cluster.guests}
    missing = [one for one in known.guests.values() if _vm_id(one) is not None and _vm_id(one) not in listed]
    looks = {one.address: look for one in _to_look(known, missing) if (look := _look_of(one)) is not None}
    held = await _read_privileges(client, {look.path for look in looks.values()})
    findings = [
        Diagnostic(kind=NO_PRIVILEGE, detail=_may_not(known.instances[address], look))
        for address, look in looks.items()
        if not held[look.path].intersection(look.privileges)
    ]
    if missing and not findings:
        findings = [found async for found in _ask_nodes(client, missing, cluster)]
    if findings:
        count = f"{len(missing)} guests of the state are" if len(missing) != 1 else "1 guest of the state is"
        what = f"{count} not listed" if missing else "Parts of the state cannot be looked at"
        raise NotVisibleError(f"{what}; nothing was planned, and nothing was changed.", tuple(findings))


def _to_look(known: KnownState, missing: Iterable[Instance]) -> Iterator[Instance]:
    yield from missing
    guests = known.guests
    yield from (one for address, one in known.instances.items() if address not in guests)


def _vm_id(instance: Instance) -> int | None:
    return vm_id_in(instance.attributes)


def _look_of(instance: Instance) -> _RequiredRight | None:
    """Return what shows a resource; None where a refusal is an error and never an empty list."""
    kind, values = short_type(instance.type), instance.attributes
    if guest_kind(instance.type):
        return _RequiredRight(path=f"/vms/{vm_id_in(values)}", privileges=("VM.Audit",))
    if kind == "pool":
        return _RequiredRight(path=f"/pool/{values.get('pool_id')}", privileges=("Pool.Audit",))
    if kind in ("file", "download_file"):
        # Proxmox lists snippets only to those who may administrate the storage.
        is_snippet = values.get("content_type") == "snippets"
        privileges = ("Datastore.Allocate",) if is_snippet else ("Datastore.Audit", "Datastore.AllocateSpace")
        return _RequiredRight(path=f"/storage/{values.get('datastore_id')}", privileges=privileges)
    if kind.startswith("network_"):
        return _RequiredRight(path=f"/nodes/{values.get('node_name')}", privileges=("Sys.Audit",))
    if kind.startswith("sdn_zone"):
        path = f"/sdn/zones/{values.get('id')}"
        return _RequiredRight(path=path, privileges=("SDN.Audit", "SDN.Allocate"))
    if kind == "sdn_vnet":
        path = f"/sdn/zones/{values.get('zone')}/{values.get('id')}"
        return _RequiredRight(path=path, privileges=("SDN.Audit", "SDN.Allocate"))
    if kind == "sdn_subnet":
        # Its id is `ZONE-ADDRESS-LENGTH`; anyone who may look at its vnet sees it.
        zone = str(values.get("id")).partition("-")[0]
        path = f"/sdn/zones/{zone}/{values.get('vnet')}"
        return _RequiredRight(path=path, privileges=("SDN.Audit", "SDN.Allocate"))
    if kind in ("haresource", "harule"):
        return _RequiredRight(path="/", privileges=("Sys.Audit",))
    return None


async def _read_privileges(client: proxmox.Client, paths: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Return the privileges of our token on paths."""
    wanted = sorted(paths)
    answers = await asyncio.gather(*(client.get("/access/permissions", {"path": path}) for path in wanted))
    return {
        path: frozenset((answer or {}).get(path, {})) if isinstance(answer, dict) else frozenset()
        for path, answer in zip(wanted, answers, strict=True)
    }


def _may_not(instance: Instance, look: _RequiredRight) -> str:
    return f"{_describe(instance)} can be seen only with {' or '.join(look.privileges)} on {look.path}."


def _describe(instance: Instance) -> str:
    kind, values = short_type(instance.type), instance.attributes
    name = name_in(kind, values) or instance.address.rpartition(".")[2]
    about = f"{KINDS.get(kind, instance.type)} {name}"
    facts = [str(fact) for fact in (vm_id_in(values), values.get("node_name")) if fact is not None]
    return f"{about} ({' on '.join(facts)})" if guest_kind(instance.type) and facts else about


async def _ask_nodes(
    client: proxmox.Client, missing: Iterable[Instance], cluster: Cluster
) -> AsyncIterator[Diagnostic]:
    """Ask every node itself; yield what is not shown to be gone."""
    silent = [node.name for node in cluster.nodes if not node.is_online]
    online = [node.name for node in cluster.nodes if node.is_online]
    answers = await asyncio.gather(*(_guests_on(client, node) for node in online))
    by_node = dict(zip(online, answers, strict=True))
    silent += [node for node, answer in by_node.items() if answer is None]
    for instance in missing:
        there = [node for node, ids in by_node.items() if ids is not None and _vm_id(instance) in ids]
        if there:
            yield Diagnostic(kind=STILL_THERE, detail=f"{_describe(instance)} is on {there[0]}.")
        elif silent:
            detail = f"{_describe(instance)} is not listed, and {', '.join(silent)} does not answer."
            yield Diagnostic(kind=NO_ANSWER, detail=detail)


async def _guests_on(client: proxmox.Client, node: str) -> frozenset[int] | None:
    """Return the ids of the guests that a node has; None where it does not answer."""
    try:
        kinds: list[list[Mapping[str, Any]]] = await asyncio.gather(
            *(client.get(f"/nodes/{quote(node)}/{kind}") for kind in ("qemu", "lxc"))
        )
    except proxmox.ProxmoxError:
        return None
    return frozenset(int(row["vmid"]) for rows in kinds for row in rows)
