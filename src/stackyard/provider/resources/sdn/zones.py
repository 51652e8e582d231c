"""What zones of every type have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.crud import Collection
from stackyard.provider.fields import COMMA_SET, FLAG, NUMBER, TEXT, Field, values
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.resources.sdn.pending import PENDING, SDN_ID, check_names, check_type, current
from stackyard.provider.schema import UNSET, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.provider.values import Object


__all__ = ["ZONES", "ZONE_FIELDS", "list_zone_fields", "make_zone", "zone_values"]

ZONES = "/cluster/sdn/zones"

_COMMON = (
    Field(attribute="ipam", form=TEXT),
    Field(attribute="dns", form=TEXT),
    Field(attribute="reverse_dns", key="reversedns", form=TEXT),
    Field(attribute="dns_zone", key="dnszone", form=TEXT),
    Field(attribute="nodes", form=COMMA_SET, off=[]),
    # Once set, Proxmox cannot go back to its own value.
    Field(attribute="mtu", form=NUMBER, clears=False),
)
_BRIDGE = Field(attribute="bridge", form=TEXT, clears=False)
# What zones of each type have beside that.
ZONE_FIELDS: Mapping[str, Sequence[Field]] = {
    "simple": (Field(attribute="dhcp", form=TEXT),),
    "vlan": (_BRIDGE,),
    "qinq": (
        _BRIDGE,
        Field(attribute="service_vlan", key="tag", form=NUMBER, clears=False),
        Field(attribute="service_vlan_protocol", key="vlan-protocol", form=TEXT, clears=False),
    ),
    "vxlan": (Field(attribute="peers", form=COMMA_SET, clears=False, off=[]),),
    "evpn": (
        Field(attribute="controller", form=TEXT, clears=False),
        Field(attribute="vrf_vxlan", key="vrf-vxlan", form=NUMBER, clears=False),
        Field(attribute="advertise_subnets", key="advertise-subnets", form=FLAG, clears=False),
        Field(
            attribute="disable_arp_nd_suppression",
            key="disable-arp-nd-suppression",
            form=FLAG,
            clears=False,
        ),
        Field(attribute="exit_nodes", key="exitnodes", form=COMMA_SET, off=[]),
        Field(attribute="exit_nodes_local_routing", key="exitnodes-local-routing", form=FLAG, clears=False),
        Field(attribute="primary_exit_node", key="exitnodes-primary", form=TEXT),
        Field(attribute="rt_import", key="rt-import", form=TEXT),
    ),
}


def list_zone_fields(kind: str) -> Sequence[Field]:
    """Return the fields of zones of a type."""
    return (*_COMMON, *ZONE_FIELDS[kind])


def zone_values(kind: str, found: Mapping[str, Any]) -> Object:
    """Return the attributes of a zone; what is in no set is an empty one."""
    fields = list_zone_fields(kind)
    empty: Object = {field.attribute: [] for field in fields if field.form is COMMA_SET}
    read = {name: value for name, value in values(fields, found).items() if value is not None}
    return {
        **{field.attribute: None for field in fields},
        **empty,
        **read,
        "state": found.get("state") or None,
        "pending": True if found.get("pending") else None,
    }


def make_zone(kind: str, *, rules: Mapping[str, Rule] | None = None) -> Resource:
    """Return the resource of zones of a type."""
    fields = list_zone_fields(kind)
    sets = [field.attribute for field in fields if field.form is COMMA_SET]
    flags = [field.attribute for field in fields if field.form is FLAG]
    defaults = {name: rule.default for name, rule in (rules or {}).items() if rule.default is not UNSET}

    def own_state(known: Object, found: Mapping[str, Any]) -> Object:
        check_type(f"The zone {known['id']}", found, "type", kind)
        read = zone_values(kind, found)
        # What Proxmox keeps nothing for is as it does it by itself.
        unsaid = {name: value for name, value in defaults.items() if read[name] is None}
        return {**read, **unsaid, **{name: bool(read[name]) for name in flags}}

    return Collection(
        path=ZONES,
        key="zone",
        made_with={"type": kind},
        fields=fields,
        own_state=own_state,
        query=PENDING,
        filtered=True,
        current=current,
    ).resource(
        both_names(f"sdn_zone_{kind}"),
        rules={
            "id": Rule(replace=True, check=SDN_ID),
            "mtu": Rule(keep=True),
            **{name: Rule(check=check_names) for name in sets},
            **{name: Rule(default=False) for name in flags},
            **(rules or {}),
        },
    )
