"""`proxmox_network_linux_bond`: several network cards of a node as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import matches, one_of
from stackyard.provider.fields import TEXT, Field
from stackyard.provider.resources.network.interfaces import (
    PORTS,
    SHARED_RULES,
    identify,
    interfaces,
    ports_as_ordered,
    state_of_interface,
)
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_SLAVES = Field(attribute="slaves", form=PORTS, off=[])
_MODES = (
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
)


def _bond_state(known: Object, row: Mapping[str, Any]) -> Object:
    return {**state_of_interface(known, row), **ports_as_ordered(known, row, _SLAVES)}


RESOURCE = interfaces(
    "bond",
    (
        _SLAVES,
        # Proxmox has a mode of its own where none is set.
        Field(attribute="bond_mode", form=TEXT, clears=False),
        Field(attribute="bond_primary", key="bond-primary", form=TEXT),
        Field(attribute="bond_xmit_hash_policy", form=TEXT),
    ),
    _bond_state,
).resource(
    ("proxmox_network_linux_bond",),
    identify=identify,
    rules={
        **SHARED_RULES,
        "name": Rule(
            replace=True,
            check=matches(
                "[A-Za-z][A-Za-z0-9]{0,9}", "be letters and digits, begin with a letter, and have at most 10"
            ),
        ),
        "bond_mode": Rule(keep=True, check=one_of(*_MODES)),
        "bond_xmit_hash_policy": Rule(check=one_of("layer2", "layer2+3", "layer3+4")),
    },
)
