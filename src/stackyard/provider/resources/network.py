"""`network_linux_bridge` and `network_linux_vlan`: interfaces of a node, written and then reloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import flag
from stackyard.provider.checks import at_least, is_address, is_cidr, matches
from stackyard.provider.crud import Collection, both_names
from stackyard.provider.fields import FLAG, NUMBER, TEXT, TRIMMED, Field, Form
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft

__all__ = ["BRIDGE", "VLAN"]

OwnState = Callable[[Object, Mapping[str, Any]], Object]

_RELOAD_S = 100
# What `ifreload` ends with while another one is still at work.
_RELOAD_BUSY = "exit code 89"
_RELOAD_ATTEMPTS = 5

_PORTS = Form(
    write=lambda ports: " ".join(sorted(port.strip() for port in ports if port.strip())),
    read=lambda text: str(text).split(),
)
_SHARED = (
    Field(attribute="address", key="cidr", form=TEXT),
    Field(attribute="gateway", form=TEXT),
    Field(attribute="address6", key="cidr6", form=TEXT),
    Field(attribute="gateway6", form=TEXT),
    Field(attribute="autostart", form=FLAG, clears=False),
    Field(attribute="mtu", form=NUMBER),
    Field(attribute="comment", key="comments", form=TRIMMED),
)
_SHARED_RULES = {
    "id": Rule(keep=True),
    "node_name": Rule(replace=True),
    "autostart": Rule(default=True),
    "timeout_reload": Rule(default=_RELOAD_S, check=at_least(5)),
    "address": Rule(check=is_cidr),
    "address6": Rule(check=is_cidr),
    "gateway": Rule(check=is_address),
    "gateway6": Rule(check=is_address),
}
_BRIDGE_NAME = matches(
    "[A-Za-z][A-Za-z0-9_]{0,9}",
    "be letters, digits and underscores, begin with a letter, and have at most 10",
)
_VLAN_IDS = matches(
    r"\d+(-\d+)?( \d+(-\d+)?)*", 'be VLAN ids and ranges with spaces between, such as "1 20-30"'
)


def _state(known: Object, row: Mapping[str, Any]) -> Object:
    read: Object = {"autostart": flag(row.get("autostart"))}
    # An empty comment is not stored, and ports are stored in the order of their names.
    if row.get("comments") is None and known.get("comment") == "":
        read["comment"] = ""
    return read


def _bridge_state(known: Object, row: Mapping[str, Any]) -> Object:
    read = {**_state(known, row), "vlan_aware": flag(row.get("bridge_vlan_aware"))}
    if sorted(str(row.get("bridge_ports") or "").split()) == sorted(known.get("ports") or ()):
        read["ports"] = known.get("ports")
    return read


async def _reload(work: Work, state: Object) -> None:
    node, timeout_s = state["node_name"], float(state.get("timeout_reload") or _RELOAD_S)

    async def reload() -> None:
        for attempt in range(1, _RELOAD_ATTEMPTS + 1):
            upid = await work.client.put(f"/nodes/{node}/network")
            try:
                await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)
            except proxmox.TaskFailedError as err:
                if _RELOAD_BUSY not in err.ended or attempt == _RELOAD_ATTEMPTS:
                    raise
                await work.client.pause(attempt)
            else:
                return

    await work.session.commits.run(("network", node), reload)


def _identify(given: str) -> Object:
    node, _, name = given.partition(":")
    if not node or not name or ":" in name:
        raise ImportIdError(f"The id of an interface has the form NODE:INTERFACE, and {given!r} does not.")
    return {"id": given, "node_name": node, "name": name}


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


def _interfaces(kind: str, fields: Sequence[Field], own_state: OwnState) -> Collection:
    return Collection(
        path=lambda state: f"/nodes/{state['node_name']}/network",
        key="iface",
        attribute="name",
        identity=lambda state: f"{state['node_name']}:{state['name']}",
        named={"type": kind},
        fields=(*_SHARED, *fields),
        own_state=own_state,
        finish=_reload,
        gone="The interface was gone already",
    )


BRIDGE = _interfaces(
    "bridge",
    (
        Field(attribute="ports", key="bridge_ports", form=_PORTS, off=[]),
        Field(attribute="vlan_aware", key="bridge_vlan_aware", form=FLAG, off=False),
        Field(attribute="vids", key="bridge_vids", form=TEXT),
    ),
    _bridge_state,
).resource(
    both_names("network_linux_bridge"),
    identify=_identify,
    rules={
        **_SHARED_RULES,
        "name": Rule(replace=True, check=_BRIDGE_NAME),
        "vlan_aware": Rule(keep=True),
        "vids": Rule(check=_VLAN_IDS),
    },
    plan=_plan_vids,
    validate=_check_bridge,
)
VLAN = _interfaces(
    "vlan",
    (
        Field(attribute="interface", key="vlan-raw-device", form=TRIMMED, clears=False),
        Field(attribute="vlan", key="vlan-id", form=NUMBER, clears=False),
    ),
    _state,
).resource(
    both_names("network_linux_vlan"),
    identify=_identify,
    rules={
        **_SHARED_RULES,
        "name": Rule(replace=True, check=matches(".{3,}", "have at least 3 characters")),
        "interface": Rule(keep=True),
        "vlan": Rule(keep=True),
    },
)
