"""`proxmox_node_firewall`: the firewall options of a node."""

from __future__ import annotations

from stackyard.clients import proxmox
from stackyard.provider.checks import at_least, matches
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.resources.firewall.scopes import LOG_LEVEL
from stackyard.provider.schema import Rule
from stackyard.provider.singletons import Settings

__all__ = ["RESOURCE"]

_LEVELS = ("log_level_forward", "log_level_in", "log_level_out", "smurf_log_level", "tcp_flags_log_level")

RESOURCE = Settings(
    path=lambda state: f"/nodes/{proxmox.quote(state['node_name'])}/firewall/options",
    fields=(
        Field(attribute="enabled", key="enable", form=FLAG),
        *(Field(attribute=name, form=TEXT) for name in _LEVELS),
        Field(attribute="ndp", form=FLAG),
        Field(attribute="nf_conntrack_max", form=NUMBER),
        Field(attribute="nf_conntrack_tcp_timeout_established", form=NUMBER),
        Field(attribute="nftables", form=FLAG),
        Field(attribute="nosmurfs", form=FLAG),
    ),
    identity=lambda state: str(state["node_name"]),
).resource(
    both_names("node_firewall"),
    identify=lambda given: {"id": given, "node_name": given},
    rules={
        "id": Rule(keep=True),
        "node_name": Rule(replace=True, check=matches(".+", "name a node")),
        **dict.fromkeys(("enabled", "ndp", "nosmurfs"), Rule(default=True)),
        "nftables": Rule(default=False),
        "nf_conntrack_max": Rule(default=262144, check=at_least(32768)),
        "nf_conntrack_tcp_timeout_established": Rule(default=432000, check=at_least(7875)),
        **dict.fromkeys(_LEVELS, Rule(default="nolog", check=LOG_LEVEL)),
    },
)
