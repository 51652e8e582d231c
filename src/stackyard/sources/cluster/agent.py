"""Whether the image of a node can have the QEMU guest agent: a VM without one would be waited for in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.cluster.resolve import choose_schematic
from stackyard.talosapi.schematic import VANILLA_ID

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["is_agent_wanted", "lacks_agent", "may_have_agent"]


def is_agent_wanted(read: ClusterInput) -> bool:
    """Return whether the agent is on: it is where nothing is said."""
    advanced = read.fields.proxmox_vm_advanced
    return advanced is None or advanced.qemu_agent is not False


def lacks_agent(read: ClusterInput, index: int) -> bool:
    """Return whether the image of a node certainly has no agent; an id alone mostly does not say."""
    choice, content = choose_schematic(read, index)
    return choice.value == VANILLA_ID or (content is not None and not content.has_guest_agent)


def may_have_agent(read: ClusterInput, index: int) -> bool:
    """Return whether the agent of a node is waited for."""
    return is_agent_wanted(read) and not lacks_agent(read, index)
