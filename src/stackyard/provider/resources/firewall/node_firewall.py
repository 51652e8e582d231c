"""`proxmox_node_firewall`: the firewall options of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.checks import at_least, matches
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.resources.firewall.scopes import LOG_LEVEL
from stackyard.provider.schema import Rule
from stackyard.provider.singletons import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "SETTINGS"]

_LEVELS = ("log_level_forward", "log_level_in", "log_level_out", "smurf_log_level", "tcp_flags_log_level")

_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(("enabled", "ndp", "nosmurfs"), True),
    "nftables": False,
    "nf_conntrack_max": 262144,
    "nf_conntrack_tcp_timeout_established": 432000,
    **dict.fromkeys(_LEVELS, "nolog"),
}
_FIELDS = (
    Field(attribute="enabled", key="enable", form=FLAG),
    *(Field(attribute=name, form=TEXT) for name in _LEVELS),
    Field(attribute="ndp", form=FLAG),
    Field(attribute="nf_conntrack_max", form=NUMBER),
    Field(attribute="nf_conntrack_tcp_timeout_established", form=NUMBER),
    Field(attribute="nftables", form=FLAG),
    Field(attribute="nosmurfs", form=FLAG),
)


def _fill(known: Object, found: Mapping[str, Any]) -> Object:
    """Return what the node does where an option is not set: for bpg, that is a difference."""
    return {one.attribute: _DEFAULTS[one.attribute] for one in _FIELDS if found.get(one.name) is None}


SETTINGS = Settings(
    path=lambda state: f"/nodes/{proxmox.quote(state['node_name'])}/firewall/options",
    fields=_FIELDS,
    identity=lambda state: str(state["node_name"]),
    own_state=_fill,
)
RESOURCE = SETTINGS.resource(
    both_names("node_firewall"),
    identify=lambda given: {"id": given, "node_name": given},
    rules={
        "id": Rule(keep=True),
        "node_name": Rule(replace=True, check=matches(".+", "name a node")),
        **{name: Rule(default=value) for name, value in _DEFAULTS.items()},
        "nf_conntrack_max": Rule(default=_DEFAULTS["nf_conntrack_max"], check=at_least(32768)),
        "nf_conntrack_tcp_timeout_established": Rule(
            default=_DEFAULTS["nf_conntrack_tcp_timeout_established"], check=at_least(7875)
        ),
        **dict.fromkeys(_LEVELS, Rule(default="nolog", check=LOG_LEVEL)),
    },
)
