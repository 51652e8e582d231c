"""What a manifest says, held against the site: presets, images, specs, ids, hosts, and what fits where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.manifest.model import NodeType
from stackyard.sources.manifest.scopes import env_name, with_scopes
from stackyard.sources.site.checks import check_site
from stackyard.sources.site.checks.guests import UNKNOWN_IMAGE
from stackyard.sources.site.checks.ids import VMID_SHARED
from stackyard.sources.site.checks.references import DANGLING

if TYPE_CHECKING:
    from stackyard.sources.manifest.model import Manifest, Node, Scope
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = ["check_manifest", "check_nodes_alone"]

UNKNOWN_HOST = Kind(
    code="E-MANIFEST-NO-HOST",
    summary="A node is on a host that the site does not have",
    remedy="Correct the name, or add nodes/NAME.yaml.",
)
TOO_LARGE = Kind(
    code="E-MANIFEST-CAPACITY",
    summary="What runs inside of a node needs more than the node has",
    remedy="Give the outer node more, or those inside of it less.",
)
CANNOT_PULL = Kind(
    code="E-MANIFEST-PULL",
    summary="A container cannot configure itself",
    remedy="Let the operator do it (`execution: {mode: push}`): Proxmox runs no cloud-init in containers.",
)
_OF_ONE_NODE = (DANGLING, UNKNOWN_IMAGE, UNKNOWN_HOST, CANNOT_PULL)
_UNITS = {"memory": "MiB of memory", "disk": "GiB of disk"}


def check_manifest(site: Site, manifest: Manifest, found: Diagnostics) -> None:
    """Check everything that needs the site; what is wrong with the site itself is not repeated."""
    scoped = with_scopes(site, manifest)
    of_guests = Diagnostics()
    check_site(scoped, of_guests)
    # The same id at two depths is two guests: each Proxmox has its own.
    found.extend(
        finding
        for finding in of_guests
        if finding.where is not None
        and finding.where.path == manifest.places.path
        and finding.kind is not VMID_SHARED
    )
    for node in manifest.nodes:
        _check_node(site, manifest, node, found)
    for scope in manifest.scopes:
        _check_room(scoped, manifest, scope, found)


def check_nodes_alone(site: Site, manifest: Manifest, found: Diagnostics) -> None:
    """Check what each node says by itself: presets, templates, images, specs, and how large it is."""
    of_all = Diagnostics()
    check_manifest(site, manifest, of_all)
    found.extend(finding for finding in of_all if finding.kind in _OF_ONE_NODE)


def _check_node(site: Site, manifest: Manifest, node: Node, found: Diagnostics) -> None:
    path = ("nodes", node.index)
    host = node.scope.host
    if host is not None and host not in site.nodes:
        detail = f"There is no node '{host}' in the site.{did_you_mean(host, site.nodes)}"
        found.add(UNKNOWN_HOST, detail, manifest.places.place((*path, "host")))
    if node.type is NodeType.CT and node.mode == "pull":
        detail = f"'{node.name}' is a container, and is to fetch its spec itself."
        found.add(CANNOT_PULL, detail, manifest.places.place((*path, "execution")))


def _check_room(site: Site, manifest: Manifest, scope: Scope, found: Diagnostics) -> None:
    if scope.parent is None:
        return
    outer = manifest.by_name[scope.parent]
    around = {guest.name: guest for guest in site.guests(env_name(manifest, outer.scope))}
    inside = site.guests(env_name(manifest, scope))
    for key, unit in _UNITS.items():
        room = _number(around[outer.name], key)
        wanted = sum(_number(guest, key) or 0 for guest in inside)
        if room is not None and wanted > room:
            detail = f"'{outer.name}' has {room} {unit}, and the guests inside it need {wanted}."
            found.add(TOO_LARGE, detail, manifest.places.place(("nodes", outer.index)))


def _number(guest: GuestEntry, key: str) -> int | None:
    value: Any = guest.values.get(key)
    return value if isinstance(value, int) else None
