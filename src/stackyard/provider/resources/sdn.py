"""SDN zones, vnets, subnets and the applier: written as pending, live once applied."""

from __future__ import annotations

import ipaddress
import time
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import parse
from stackyard.provider.checks import is_address, is_cidr, matches, one_of
from stackyard.provider.crud import Collection, both_names
from stackyard.provider.fields import COMMA_SET, FLAG, NUMBER, TEXT, Field, Form
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import Object, get_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work

__all__ = ["ALL"]

_APPLY_S = 300.0
# What a pending change shows for a property that is to be removed.
_DELETED = "deleted"
_PENDING = {"pending": 1}
_SDN_ID = matches("[A-Za-z][A-Za-z0-9]{1,7}", "be 2 to 8 letters and digits and begin with a letter")


def _current(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an object with what is pending; None when its removal is."""
    if row.get("state") == _DELETED:
        return None
    merged = {**row, **(row.get("pending") or {})}
    return {name: value for name, value in merged.items() if value != _DELETED}


def _zone_state(known: Object, found: Mapping[str, Any]) -> Object:
    pending = found.get("pending") or {}
    is_pending = any(value not in (None, "", 0) for value in pending.values())
    return {"state": found.get("state") or None, "pending": True if is_pending else None}


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
    return Collection(
        path="/cluster/sdn/zones",
        key="zone",
        made_with={"type": kind},
        fields=(*_ZONE_FIELDS, *fields),
        own_state=_zone_state,
        query=_PENDING,
        current=_current,
    ).resource(
        both_names(f"sdn_zone_{kind}"),
        rules={"id": Rule(replace=True, check=_SDN_ID), "mtu": Rule(keep=True), **(rules or {})},
    )


_VNET = Collection(
    path="/cluster/sdn/vnets",
    key="vnet",
    fields=(
        Field(attribute="zone", form=TEXT, clears=False),
        Field(attribute="alias", form=TEXT),
        Field(attribute="isolate_ports", key="isolate-ports", form=FLAG),
        Field(attribute="tag", form=NUMBER),
        Field(attribute="vlan_aware", key="vlanaware", form=FLAG),
    ),
    query=_PENDING,
    current=_current,
).resource(
    both_names("sdn_vnet"),
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
        first = parse(first, "")
    if not isinstance(first, dict):
        return None
    return {"start_address": first.get("start-address"), "end_address": first.get("end-address")}


def _subnet_state(known: Object, found: Mapping[str, Any]) -> Object:
    wire_id = str(found.get("subnet") or known["id"])
    network = wire_id.partition("-")[2]
    return {"id": wire_id, "vnet": found.get("vnet") or known["vnet"], "cidr": network.replace("-", "/")}


def _is_subnet(state: Object, row: Mapping[str, Any]) -> bool:
    """Tell whether a row is a subnet, which is made by its CIDR and listed under a name with its zone."""
    if get_known(state, "id") is not None:
        return bool(row.get("subnet") == state["id"])
    return str(row.get("subnet", "")).endswith("-" + str(state["cidr"]).replace("/", "-"))


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
    cidr = get_known(config, "cidr")
    if cidr is None:
        return
    network = ipaddress.ip_network(cidr, strict=False)
    range_ = get_known(config, "dhcp_range") or {}
    places: dict[tuple[str, ...], Any] = {
        ("gateway",): get_known(config, "gateway"),
        ("dhcp_dns_server",): get_known(config, "dhcp_dns_server"),
    }
    places |= {("dhcp_range", name): get_known(range_, name) for name in ("start_address", "end_address")}
    for path, address in places.items():
        if address is not None and ipaddress.ip_address(address) not in network:
            yield Problem(path=path, detail=f"`{'.'.join(path)}` is {address}, which is not in {cidr}.")
    first, last = get_known(range_, "start_address"), get_known(range_, "end_address")
    if first and last and int(ipaddress.ip_address(first)) > int(ipaddress.ip_address(last)):
        yield Problem(path=("dhcp_range",), detail=f"The range begins at {first}, after its end at {last}.")


_SUBNET = Collection(
    path=lambda state: f"/cluster/sdn/vnets/{proxmox.quote(state['vnet'])}/subnets",
    key="subnet",
    attribute="cidr",
    listed_as="id",
    identity=lambda state: f"{state['vnet']}/{state['cidr']}",
    made_with={"type": "subnet"},
    fields=(
        Field(attribute="dhcp_dns_server", key="dhcp-dns-server", form=TEXT),
        Field(attribute="dhcp_range", key="dhcp-range", form=Form(write=_write_range, read=_read_range)),
        Field(attribute="dns_zone_prefix", key="dnszoneprefix", form=TEXT),
        Field(attribute="gateway", form=TEXT),
        Field(attribute="snat", form=FLAG),
    ),
    own_state=_subnet_state,
    query=_PENDING,
    is_row=_is_subnet,
    current=_current,
).resource(
    both_names("sdn_subnet"),
    identify=_identify_subnet,
    rules={
        # bpg replaces a subnet for any change, because it forgets its id; Proxmox changes it in place.
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
