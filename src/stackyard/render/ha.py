"""High availability as resources: one for each guest under it, and one for each rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import Container
from stackyard.render.names import address, label
from stackyard.render.references import HA_RESOURCE, HA_RULE, address_of
from stackyard.render.terms import Expression, Json, expression, present

if TYPE_CHECKING:
    from stackyard.desired import Affinity, Desired, Guest, HighAvailability

__all__ = ["ha_resources"]


def ha_resources(desired: Desired) -> dict[str, dict[str, Json]]:
    """Return the resources by kind and label."""
    managed = {
        label(guest.key): _resource(guest, guest.ha) for guest in desired.guests if guest.ha is not None
    }
    rules = {label(affinity.name): _rule(affinity) for affinity in desired.affinities}
    return {HA_RESOURCE: managed, HA_RULE: rules}


def _resource(guest: Guest, ha: HighAvailability) -> dict[str, Json]:
    made = address_of(guest)
    kind = "ct" if isinstance(guest, Container) else "vm"
    return {
        **present(
            {
                "resource_id": Expression(f"{kind}:{expression(f'{made}.vm_id')}"),
                "state": "started" if guest.started else "stopped",
                "max_restart": ha.max_restart,
                "max_relocate": ha.max_relocate,
                "comment": ha.comment,
            }
        ),
        # Proxmox lets go of a guest that is removed, also when one with the same number is made in its place.
        "lifecycle": {"replace_triggered_by": [f"{made}.id"]},
    }


def _rule(affinity: Affinity) -> dict[str, Json]:
    members = sorted(address(HA_RESOURCE, key) for key in affinity.guests)
    return present(
        {
            "rule": affinity.name,
            "type": "resource-affinity",
            "affinity": affinity.kind,
            "resources": [expression(f"{member}.resource_id") for member in members],
            "comment": affinity.comment,
        }
    )
