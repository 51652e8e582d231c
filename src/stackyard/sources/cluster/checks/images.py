"""Images: each node has a schematic, its id fits its content, and a guest agent is there where one is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.sources.cluster.agent import is_agent_wanted, lacks_agent
from stackyard.sources.cluster.resolve import choose_schematic, convert_schematic, is_virtual
from stackyard.talosapi.schematic import QEMU_GUEST_AGENT, schematic_id

if TYPE_CHECKING:
    from stackyard.sources.cluster.fields import SchematicFields
    from stackyard.sources.cluster.input import ClusterInput
    from stackyard.sources.site.document import Key

__all__ = ["check_images"]

NO_SCHEMATIC = Kind(
    code="E-CLUSTER-NO-SCHEMATIC",
    summary="A node has no schematic",
    remedy="Give the node a `schematic_id`, or the cluster one for all: `schematic_id` or `talos_schematic`.",
)
OTHER_SCHEMATIC = Kind(
    code="E-CLUSTER-OTHER-SCHEMATIC",
    summary="The id of a schematic is not that of its content",
    remedy="Remove the id, which is computed from the content, or correct the content.",
)
NO_AGENT = Kind(
    code="E-CLUSTER-NO-AGENT",
    summary="The guest agent is on, and an image does not have it",
    remedy=f"Add the extension {QEMU_GUEST_AGENT} to the schematic, or say `qemu_agent: false`.",
)
AGENT_OFF = Kind(
    code="W-CLUSTER-AGENT-OFF",
    summary="An image has no guest agent, so that none is waited for",
    remedy=f"Add the extension {QEMU_GUEST_AGENT} to the schematic, or say `qemu_agent: false` to mean it.",
    severity=Severity.WARNING,
)


def check_images(read: ClusterInput, found: Diagnostics) -> None:
    """Refuse nodes without an image, ids that are wrong, and an agent that no image has."""
    fields = read.fields
    _check_content(read, found, fields.schematic_id, fields.talos_schematic, ("schematic_id",))
    for index, node in enumerate(read.nodes):
        keys = ("nodes", index, "schematic_id")
        _check_content(read, found, node.schematic_id, node.schematic, keys)
        if choose_schematic(read, index)[0].value is None and not _is_wrong(read, index):
            name = read.places.name("nodes", index)
            found.add(NO_SCHEMATIC, f"`{name}` has none, and the cluster has none.", read.places.place(*keys))
    if is_virtual(fields):
        _check_agent(read, found)


def _check_content(
    read: ClusterInput,
    found: Diagnostics,
    given: str | None,
    content: SchematicFields | None,
    keys: tuple[Key, ...],
) -> None:
    if given is None or content is None:
        return
    computed = schematic_id(convert_schematic(content))
    if computed != given:
        detail = f"`{read.places.name(*keys)}` is {given}, and the content has the id {computed}."
        found.add(OTHER_SCHEMATIC, detail, read.places.place(*keys))


def _is_wrong(read: ClusterInput, index: int) -> bool:
    """Return whether a schematic was given and left out, because it is wrong by itself."""
    places = read.places
    is_of_node = places.has("nodes", index, "schematic_id") or places.has("nodes", index, "schematic")
    return is_of_node or read.is_wrong("schematic_id") or read.is_wrong("talos_schematic")


def _check_agent(read: ClusterInput, found: Diagnostics) -> None:
    if not is_agent_wanted(read):
        return
    without = [index for index in range(len(read.nodes)) if lacks_agent(read, index)]
    if not without:
        return
    names = ", ".join(read.places.name("nodes", index) for index in without)
    advanced = read.fields.proxmox_vm_advanced
    if advanced is not None and advanced.qemu_agent:
        where = read.places.place("proxmox_vm_advanced", "qemu_agent")
        name = read.places.name("proxmox_vm_advanced", "qemu_agent")
        found.add(NO_AGENT, f"`{name}` is on, and the image of {names} has no agent.", where)
        return
    keys = choose_schematic(read, without[0])[0].keys
    where = read.places.place(*keys) if keys else read.places.place("nodes")
    found.add(AGENT_OFF, f"The image of {names} has none.", where)
