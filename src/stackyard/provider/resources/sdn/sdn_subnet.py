"""`proxmox_sdn_subnet`: the addresses of a vnet."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import parse
from stackyard.provider.checks import is_address, is_cidr
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, TEXT, Field, Form
from stackyard.provider.kinds import both_names
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.resources.sdn.pending import PENDING, SDN_ID, current
from stackyard.provider.schema import Rule
from stackyard.provider.values import Object, get_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


__all__ = ["RESOURCE", "SUBNET_FIELDS", "list_subnets_at"]


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


def list_subnets_at(state: Mapping[str, Any]) -> str:
    """Return the path of the subnets of a vnet."""
    return f"/cluster/sdn/vnets/{proxmox.quote(state['vnet'])}/subnets"


SUBNET_FIELDS = (
    Field(attribute="dhcp_dns_server", key="dhcp-dns-server", form=TEXT),
    Field(attribute="dhcp_range", key="dhcp-range", form=Form(write=_write_range, read=_read_range)),
    Field(attribute="dns_zone_prefix", key="dnszoneprefix", form=TEXT),
    Field(attribute="gateway", form=TEXT),
    Field(attribute="snat", form=FLAG),
)

RESOURCE = Collection(
    path=list_subnets_at,
    key="subnet",
    attribute="cidr",
    listed_as="id",
    identity=lambda state: f"{state['vnet']}/{state['cidr']}",
    made_with={"type": "subnet"},
    fields=SUBNET_FIELDS,
    own_state=_subnet_state,
    query=PENDING,
    is_row=_is_subnet,
    current=current,
).resource(
    both_names("sdn_subnet"),
    identify=_identify_subnet,
    rules={
        # bpg replaces a subnet for any change, because it forgets its id; Proxmox changes it in place.
        "id": Rule(keep=True),
        "cidr": Rule(replace=True, check=is_cidr),
        "vnet": Rule(replace=True, check=SDN_ID),
        "gateway": Rule(check=is_address),
        "dhcp_dns_server": Rule(check=is_address),
        "dhcp_range.start_address": Rule(check=is_address),
        "dhcp_range.end_address": Rule(check=is_address),
    },
    validate=_check_subnet,
)
