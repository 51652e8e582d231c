"""SDN zones, vnets, subnets and the applier: written as pending, live once applied."""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.provider.checks import is_address, is_cidr, matches, one_of
from stackyard.provider.creating import create_object, note_seen
from stackyard.provider.fields import COMMA_SET, FLAG, NUMBER, TEXT, Field, Form, changes, params, values
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object, given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stackyard.provider.kinds import Work

__all__ = ["ALL"]

_APPLY_S = 300.0
# What a pending change shows for a property that is to be removed.
_DELETED = "deleted"
_SDN_ID = matches("[A-Za-z][A-Za-z0-9]{1,7}", "be 2 to 8 letters and digits and begin with a letter")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """A kind of SDN object: where it is, and what it has.

    Attributes:
        collection: The path of the list for an object's state.
        key: The name of its id in the API.
        wire_id: Returns the id to make it with.
        kind: Its type, for zones.
        fields: Its attributes and properties.
        own_state: Adds attributes that have no property.
    """

    collection: Callable[[Object], str]
    key: str
    fields: Sequence[Field]
    wire_id: Callable[[Object], str]
    kind: str = ""
    own_state: Callable[[Object, Mapping[str, Any]], Object]

    async def create(self, work: Work, planned: Object) -> Object:
        sent: dict[str, Any] = {self.key: self.wire_id(planned), **params(self.fields, planned)}
        if self.kind:
            sent["type"] = self.kind
        was_there = await create_object(
            work,
            self._identity(planned),
            # A subnet is made by its CIDR and listed under a name with its zone.
            sent={name: value for name, value in sent.items() if name != self.key},
            make=lambda: work.client.post(self.collection(planned), sent),
            look=lambda: self._find(work, planned),
        )
        state = self._state(planned, await self._find(work, planned) or {})
        work.keep(state)
        return await self.update(work, state, {**planned, "id": state["id"]}) if was_there else state

    def _identity(self, state: Object) -> str:
        """Return what names the object among all of its kind, as an import is given it."""
        return f"{state['vnet']}/{state['cidr']}" if "vnet" in state else str(state["id"])

    async def read(self, work: Work, state: Object) -> Object | None:
        await note_seen(work, self._identity(state))
        found = await self._find(work, state)
        return None if found is None else self._state(state, found)

    async def update(self, work: Work, prior: Object, planned: Object) -> Object:
        sent, unset = changes(self.fields, prior, planned)
        await work.client.put(self._path(prior), {**sent, "delete": ",".join(unset) or None})
        found = await self._find(work, prior) or {}
        return self._state(planned, found)

    async def delete(self, work: Work, state: Object) -> None:
        await note_seen(work, self._identity(state))
        await work.client.delete(self._path(state))

    def _path(self, state: Object) -> str:
        return f"{self.collection(state)}/{proxmox.quoted(state['id'])}"

    async def _find(self, work: Work, state: Object) -> dict[str, Any] | None:
        """Find the object in the list of its kind, which one call for all of them reads."""
        try:
            listed = await work.client.get(self.collection(state), {"pending": 1}, max_age_s=0.5)
        except proxmox.MissingError:
            return None
        wanted = self._wanted(state)
        return next((one for one in listed if wanted(one) and one.get("state") != _DELETED), None)

    def _wanted(self, state: Object) -> Callable[[Mapping[str, Any]], bool]:
        if state.get("id") not in (None, UNKNOWN):
            return lambda one: one.get(self.key) == state["id"]
        suffix = "-" + self.wire_id(state).replace("/", "-")
        return lambda one: str(one.get(self.key, "")).endswith(suffix)

    def _state(self, known: Object, found: Mapping[str, Any]) -> Object:
        pending = found.get("pending") or {}
        merged = {**found, **pending}
        current = {name: value for name, value in merged.items() if value != _DELETED}
        return {**known, **values(self.fields, current), **self.own_state(known, found)}


def _zone_state(known: Object, found: Mapping[str, Any]) -> Object:
    pending = found.get("pending") or {}
    is_pending = any(value not in (None, "", 0) for value in pending.values())
    return {"id": known["id"], "state": found.get("state") or None, "pending": True if is_pending else None}


_ZONE_FIELDS = (
    Field(attribute="ipam", form=TEXT),
    Field(attribute="dns", form=TEXT),
    Field(attribute="reverse_dns", key="reversedns", form=TEXT),
    Field(attribute="dns_zone", key="dnszone", form=TEXT),
    Field(attribute="nodes", form=COMMA_SET),
    # Once set, Proxmox cannot go back to its own value.
    Field(attribute="mtu", form=NUMBER, clears=False),
)


def _zone(kind: str, *fields: Field, rules: Mapping[str, Rule] | None = None) -> Resource:
    zone = _Object(
        collection=lambda _: "/cluster/sdn/zones",
        key="zone",
        wire_id=lambda state: str(state["id"]),
        kind=kind,
        fields=(*_ZONE_FIELDS, *fields),
        own_state=_zone_state,
    )
    return Resource(
        names=(f"proxmox_sdn_zone_{kind}", f"proxmox_virtual_environment_sdn_zone_{kind}"),
        create=zone.create,
        read=zone.read,
        update=zone.update,
        delete=zone.delete,
        identify=lambda given: {"id": given},
        rules={"id": Rule(replace=True, check=_SDN_ID), "mtu": Rule(keep=True), **(rules or {})},
    )


_vnet = _Object(
    collection=lambda _: "/cluster/sdn/vnets",
    key="vnet",
    wire_id=lambda state: str(state["id"]),
    fields=(
        Field(attribute="zone", form=TEXT, clears=False),
        Field(attribute="alias", form=TEXT),
        Field(attribute="isolate_ports", key="isolate-ports", form=FLAG),
        Field(attribute="tag", form=NUMBER),
        Field(attribute="vlan_aware", key="vlanaware", form=FLAG),
    ),
    own_state=lambda known, _: {"id": known["id"]},
)
_VNET = Resource(
    names=("proxmox_sdn_vnet", "proxmox_virtual_environment_sdn_vnet"),
    create=_vnet.create,
    read=_vnet.read,
    update=_vnet.update,
    delete=_vnet.delete,
    identify=lambda given: {"id": given},
    rules={
        "id": Rule(replace=True, check=_SDN_ID),
        "zone": Rule(check=_SDN_ID),
        "alias": Rule(
            check=matches(r"[()._a-zA-Z0-9\s-]{1,256}", "be at most 256 letters, digits, spaces and ()._-")
        ),
    },
)


def _write_range(range_: Object) -> str:
    return f"start-address={range_['start_address']},end-address={range_['end_address']}"


def _read_range(ranges: Any) -> Object | None:
    first = ranges[0] if isinstance(ranges, list) and ranges else ranges
    # A pending range comes as it was written, one in force in its parts.
    if isinstance(first, str):
        first = dict(part.partition("=")[::2] for part in first.split(","))
    if not isinstance(first, dict):
        return None
    return {"start_address": first.get("start-address"), "end_address": first.get("end-address")}


def _subnet_state(known: Object, found: Mapping[str, Any]) -> Object:
    wire_id = str(found.get("subnet") or known["id"])
    network = wire_id.partition("-")[2]
    return {"id": wire_id, "vnet": found.get("vnet") or known["vnet"], "cidr": network.replace("-", "/")}


_subnet = _Object(
    collection=lambda state: f"/cluster/sdn/vnets/{proxmox.quoted(state['vnet'])}/subnets",
    key="subnet",
    wire_id=lambda state: str(state["cidr"]),
    kind="subnet",
    fields=(
        Field(attribute="dhcp_dns_server", key="dhcp-dns-server", form=TEXT),
        Field(attribute="dhcp_range", key="dhcp-range", form=Form(write=_write_range, read=_read_range)),
        Field(attribute="dns_zone_prefix", key="dnszoneprefix", form=TEXT),
        Field(attribute="gateway", form=TEXT),
        Field(attribute="snat", form=FLAG),
    ),
    own_state=_subnet_state,
)


def _identify_subnet(given_id: str) -> Object:
    vnet, _, subnet = given_id.partition("/")
    if not vnet or not subnet:
        raise ImportIdError(
            f"The id of a subnet has the form VNET/SUBNET or VNET/CIDR, and {given_id!r} does not."
        )
    if "/" in subnet:
        return {"vnet": vnet, "cidr": subnet}
    return {"id": subnet, "vnet": vnet, "cidr": subnet.partition("-")[2].replace("-", "/")}


def _check_subnet(config: Object) -> Iterator[Problem]:
    """Check that the addresses are inside of the subnet, once all of them are known."""
    cidr = given(config, "cidr")
    if cidr is None:
        return
    network = ipaddress.ip_network(cidr, strict=False)
    range_ = given(config, "dhcp_range") or {}
    places: dict[tuple[str, ...], Any] = {
        ("gateway",): given(config, "gateway"),
        ("dhcp_dns_server",): given(config, "dhcp_dns_server"),
    }
    places |= {("dhcp_range", name): given(range_, name) for name in ("start_address", "end_address")}
    for path, address in places.items():
        if address is not None and ipaddress.ip_address(address) not in network:
            yield Problem(path=path, detail=f"`{'.'.join(path)}` is {address}, which is not in {cidr}.")
    first, last = given(range_, "start_address"), given(range_, "end_address")
    if first and last and int(ipaddress.ip_address(first)) > int(ipaddress.ip_address(last)):
        yield Problem(path=("dhcp_range",), detail=f"The range begins at {first}, after its end at {last}.")


_SUBNET = Resource(
    names=("proxmox_sdn_subnet", "proxmox_virtual_environment_sdn_subnet"),
    create=_subnet.create,
    read=_subnet.read,
    update=_subnet.update,
    delete=_subnet.delete,
    identify=_identify_subnet,
    rules={
        # bpg makes a subnet anew for any change, because it forgets its id; Proxmox changes it in place.
        "id": Rule(keep=True),
        "cidr": Rule(replace=True, check=is_cidr),
        "vnet": Rule(replace=True, check=_SDN_ID),
        "gateway": Rule(check=is_address),
        "dhcp_dns_server": Rule(check=is_address),
        "dhcp_range.start_address": Rule(check=is_address),
        "dhcp_range.end_address": Rule(check=is_address),
    },
    validate=_check_subnet,
)


async def _apply(work: Work) -> None:
    async def apply() -> None:
        upid = await work.client.put("/cluster/sdn")
        if upid:
            await proxmox.wait_for(work.client, upid, timeout_s=_APPLY_S)

    await work.session.commits.run("sdn", apply)


async def _create_applier(work: Work, planned: Object) -> Object:
    if planned["on_create"]:
        await _apply(work)
    return {**planned, "id": str(time.time_ns() // 1_000_000)}


async def _read_applier(_work: Work, state: Object) -> Object:
    return state


async def _delete_applier(work: Work, state: Object) -> None:
    if state["on_destroy"]:
        await _apply(work)


def _identify_applier(given_id: str) -> Object:
    raise ImportIdError("An applier is an act, not an object; there is nothing that could be imported.")


_APPLIER = Resource(
    names=("proxmox_sdn_applier", "proxmox_virtual_environment_sdn_applier"),
    create=_create_applier,
    read=_read_applier,
    delete=_delete_applier,
    identify=_identify_applier,
    rules={"on_create": Rule(default=True, replace=True), "on_destroy": Rule(default=True, replace=True)},
)

ALL = (
    _zone("simple", Field(attribute="dhcp", form=TEXT), rules={"dhcp": Rule(check=one_of("dnsmasq"))}),
    _zone("vlan", Field(attribute="bridge", form=TEXT, clears=False)),
    _zone("vxlan", Field(attribute="peers", form=COMMA_SET, clears=False)),
    _VNET,
    _SUBNET,
    _APPLIER,
)
