"""`proxmox_network_linux_bridge`: a bridge of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import flag
from stackyard.provider.checks import matches
from stackyard.provider.fields import FLAG, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.problems import Problem
from stackyard.provider.resources.network.interfaces import (
    PORTS,
    SHARED_RULES,
    identify,
    interfaces,
    ports_as_ordered,
    state_of_interface,
)
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.plan import PlanDraft

__all__ = ["RESOURCE"]

_PORTS = Field(attribute="ports", key="bridge_ports", form=PORTS, off=[])
_BRIDGE_NAME = matches(
    "[A-Za-z][A-Za-z0-9_]{0,9}",
    "be letters, digits and underscores, begin with a letter, and have at most 10",
)
_VLAN_IDS = matches(
    r"\d+(-\d+)?( \d+(-\d+)?)*", 'be VLAN ids and ranges with spaces between, such as "1 20-30"'
)


def _bridge_state(known: Object, row: Mapping[str, Any]) -> Object:
    read = {**state_of_interface(known, row), "vlan_aware": flag(row.get("bridge_vlan_aware"))}
    return {**read, **ports_as_ordered(known, row, _PORTS)}


def _plan_vids(planned: PlanDraft) -> None:
    """Plan the VLAN ids of a bridge: Proxmox fills them in where it is aware of VLANs, and only there."""
    if planned.is_configured("vids"):
        return
    aware = planned.values["vlan_aware"]
    if aware is UNKNOWN and not planned.is_configured("vlan_aware"):
        aware = False
    if aware is False or aware is None:
        planned.values["vids"] = None
    elif planned.prior is not None and planned.prior.get("vids") is not None:
        planned.values["vids"] = planned.prior["vids"]


def _check_bridge(config: Object) -> Iterator[Problem]:
    if config.get("vids") not in (None, UNKNOWN) and config.get("vlan_aware") in (None, False):
        yield Problem(path=("vids",), detail="`vids` has a meaning only with `vlan_aware = true`.")


RESOURCE = interfaces(
    "bridge",
    (
        _PORTS,
        Field(attribute="vlan_aware", key="bridge_vlan_aware", form=FLAG, off=False),
        Field(attribute="vids", key="bridge_vids", form=TEXT),
    ),
    _bridge_state,
).resource(
    both_names("network_linux_bridge"),
    identify=identify,
    rules={
        **SHARED_RULES,
        "name": Rule(replace=True, check=_BRIDGE_NAME),
        "vlan_aware": Rule(keep=True),
        "vids": Rule(check=_VLAN_IDS),
    },
    plan=_plan_vids,
    validate=_check_bridge,
)
