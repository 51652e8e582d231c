"""`proxmox_sdn_vnet`: a network of a zone."""

from __future__ import annotations

from stackyard.provider.checks import matches
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.resources.sdn.pending import PENDING, SDN_ID, current
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE", "VNETS", "VNET_FIELDS"]

VNETS = "/cluster/sdn/vnets"
VNET_FIELDS = (
    Field(attribute="zone", form=TEXT, clears=False),
    Field(attribute="alias", form=TEXT),
    Field(attribute="isolate_ports", key="isolate-ports", form=FLAG),
    Field(attribute="tag", form=NUMBER),
    Field(attribute="vlan_aware", key="vlanaware", form=FLAG),
)

RESOURCE = Collection(
    path=VNETS,
    key="vnet",
    fields=VNET_FIELDS,
    query=PENDING,
    filtered=True,
    current=current,
).resource(
    both_names("sdn_vnet"),
    rules={
        "id": Rule(replace=True, check=SDN_ID),
        "zone": Rule(check=SDN_ID),
        "alias": Rule(
            check=matches(r"[()._a-zA-Z0-9\s-]{1,256}", "be at most 256 letters, digits, spaces and ()._-")
        ),
    },
)
