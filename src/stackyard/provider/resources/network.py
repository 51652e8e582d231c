"""`network_linux_bridge` and `network_linux_vlan`: interfaces of a node, written and then reloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.provider.checks import at_least, is_address, is_cidr, matches
from stackyard.provider.creating import create_object, note_seen
from stackyard.provider.fields import FLAG, NUMBER, TEXT, TRIMMED, Field, Form, changes, params, values
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.provider.kinds import Work
    from stackyard.provider.planning import Planned

__all__ = ["BRIDGE", "VLAN"]

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
_BRIDGE_FIELDS = (
    *_SHARED,
    Field(attribute="ports", key="bridge_ports", form=_PORTS),
    Field(attribute="vlan_aware", key="bridge_vlan_aware", form=FLAG),
    Field(attribute="vids", key="bridge_vids", form=TEXT),
)
_VLAN_FIELDS = (
    *_SHARED,
    Field(attribute="interface", key="vlan-raw-device", form=TRIMMED, clears=False),
    Field(attribute="vlan", key="vlan-id", form=NUMBER, clears=False),
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


class _Interface:
    """What both kinds do, by their table of fields."""

    def __init__(self, kind: str, fields: Sequence[Field]) -> None:
        self._kind = kind
        self._fields = fields

    async def create(self, work: Work, planned: Object) -> Object:
        node, name = planned["node_name"], planned["name"]
        sent = {"iface": name, "type": self._kind, **self._sent(params(self._fields, planned))}
        state = {**planned, "id": _identity(planned)}
        was_there = await create_object(
            work,
            state["id"],
            sent=sent,
            make=lambda: work.client.post(f"/nodes/{node}/network", sent),
            look=lambda: self._find(work, planned),
        )
        if was_there:
            return await self.update(work, self._state(state, await self._find(work, state) or {}), state)
        return await self._finish(work, state)

    async def read(self, work: Work, state: Object) -> Object | None:
        await note_seen(work, _identity(state))
        found = await self._find(work, state)
        return None if found is None else self._state(state, found)

    async def update(self, work: Work, prior: Object, planned: Object) -> Object:
        sent, unset = changes(self._fields, prior, planned)
        if sent.get("bridge_vlan_aware") is False and prior.get("vlan_aware"):
            unset.append("bridge_vlan_aware")
        body = {"type": self._kind, **self._sent(sent), "delete": ",".join(unset) or None}
        await work.client.put(f"/nodes/{prior['node_name']}/network/{proxmox.quoted(prior['name'])}", body)
        return await self._finish(work, planned)

    async def delete(self, work: Work, state: Object) -> None:
        await note_seen(work, _identity(state))
        path = f"/nodes/{state['node_name']}/network/{proxmox.quoted(state['name'])}"
        try:
            await work.client.delete(path)
        except proxmox.RefusedError as err:
            if "interface does not exist" not in err.text:
                raise
            work.warn("The interface was gone already", f"{state['name']} did not exist any more.")
            return
        await _reload(work, state)

    async def _finish(self, work: Work, planned: Object) -> Object:
        state = self._state(planned, await self._find(work, planned) or {})
        work.keep(state)
        await _reload(work, state)
        return state

    async def _find(self, work: Work, state: Object) -> dict[str, Any] | None:
        listed = await work.client.get(f"/nodes/{state['node_name']}/network", max_age_s=0.5)
        return next((one for one in listed if one.get("iface") == state["name"]), None)

    def _state(self, known: Object, found: dict[str, Any]) -> Object:
        read = values(self._fields, found)
        read["autostart"] = bool(read["autostart"])
        # An empty comment is not stored, and ports are stored in the order of their names.
        if read["comment"] is None and known.get("comment") == "":
            read["comment"] = ""
        if "ports" in read:
            read["vlan_aware"] = bool(read["vlan_aware"])
            if sorted(read["ports"] or ()) == sorted(known.get("ports") or ()):
                read["ports"] = known.get("ports")
        return {**known, **read}

    def _sent(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return parameters without what stands for "not set" there."""
        off = {"bridge_vlan_aware": False, "bridge_ports": ""}
        return {name: value for name, value in given.items() if name not in off or value != off[name]}


def _identity(state: Object) -> str:
    return f"{state['node_name']}:{state['name']}"


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


def _plan_vids(planned: Planned) -> None:
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


_bridge = _Interface("bridge", _BRIDGE_FIELDS)
_vlan = _Interface("vlan", _VLAN_FIELDS)

BRIDGE = Resource(
    names=("proxmox_network_linux_bridge", "proxmox_virtual_environment_network_linux_bridge"),
    create=_bridge.create,
    read=_bridge.read,
    update=_bridge.update,
    delete=_bridge.delete,
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
VLAN = Resource(
    names=("proxmox_network_linux_vlan", "proxmox_virtual_environment_network_linux_vlan"),
    create=_vlan.create,
    read=_vlan.read,
    update=_vlan.update,
    delete=_vlan.delete,
    identify=_identify,
    rules={
        **_SHARED_RULES,
        "name": Rule(replace=True, check=matches(".{3,}", "have at least 3 characters")),
        "interface": Rule(keep=True),
        "vlan": Rule(keep=True),
    },
)
