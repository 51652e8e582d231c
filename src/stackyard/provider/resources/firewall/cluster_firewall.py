"""`proxmox_virtual_environment_cluster_firewall`: the firewall options of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import flag
from stackyard.provider.checks import at_least, matches, one_of
from stackyard.provider.fields import FLAG, TEXT, Field, Form
from stackyard.provider.resources.firewall.scopes import FLAG_OFF, POLICY
from stackyard.provider.schema import Rule
from stackyard.provider.singletons import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "SETTINGS"]

_ID = "cluster-firewall"
_LIMIT: Mapping[str, Any] = {"enabled": True, "burst": 5, "rate": "1/second"}


def _write_limit(blocks: list[Mapping[str, Any]]) -> str:
    # A block without anything in it is null in the older SDK, and stands for what Proxmox does by itself.
    given = {**_LIMIT, **{name: value for name, value in (blocks[0] or {}).items() if value is not None}}
    return f"enable={int(given['enabled'])},burst={given['burst']},rate={given['rate']}"


def _read_limit(text: Any) -> list[Object]:
    parts = [part.strip().partition("=") for part in str(text).split(",") if part.strip()]
    # `enable` may be given without its name.
    found = {name if sep else "enable": value if sep else name for name, sep, value in parts}
    return [
        {
            "enabled": flag(found.get("enable", "1")),
            "burst": int(found.get("burst", _LIMIT["burst"])),
            "rate": found.get("rate", _LIMIT["rate"]),
        }
    ]


_FIELDS = (
    Field(attribute="ebtables", form=FLAG),
    # A number: the time at which a trial began, where it is neither 0 nor 1.
    Field(attribute="enabled", key="enable", form=Form(write=int, read=flag)),
    Field(attribute="forward_policy", key="policy_forward", form=TEXT),
    Field(attribute="input_policy", key="policy_in", form=TEXT),
    Field(
        attribute="log_ratelimit",
        form=Form(write=_write_limit, read=_read_limit),
        off=[],
    ),
    Field(attribute="output_policy", key="policy_out", form=TEXT),
)
# What Proxmox does where an option is not set.
_UNSET = {
    "ebtables": True,
    "enabled": False,
    "forward_policy": "ACCEPT",
    "input_policy": "DROP",
    "output_policy": "ACCEPT",
}


def _fill(known: Object, found: Mapping[str, Any]) -> Object:
    absent = {field.attribute for field in _FIELDS if found.get(field.name) is None}
    filled: Object = {name: value for name, value in _UNSET.items() if name in absent}
    if "log_ratelimit" in absent:
        filled["log_ratelimit"] = [dict(_LIMIT)] if known.get("log_ratelimit") else []
    return filled


SETTINGS = Settings(
    path="/cluster/firewall/options",
    fields=_FIELDS,
    identity=lambda state: _ID,
    own_state=_fill,
    # They stay: a firewall that is off all of a sudden would be worse than one that nobody manages.
    removed=None,
)
RESOURCE = SETTINGS.resource(
    ("proxmox_virtual_environment_cluster_firewall",),
    identify=lambda given: {"id": _ID},
    rules={
        "ebtables": FLAG_OFF,
        "enabled": FLAG_OFF,
        "forward_policy": Rule(default="ACCEPT", check=one_of("ACCEPT", "DROP")),
        "input_policy": Rule(default="DROP", check=POLICY),
        "output_policy": Rule(default="ACCEPT", check=POLICY),
        "log_ratelimit.enabled": Rule(default=True),
        "log_ratelimit.burst": Rule(default=5, check=at_least(0)),
        "log_ratelimit.rate": Rule(
            default="1/second",
            check=matches(
                "[1-9][0-9]*/(second|minute|hour|day)", "be a number for a time, such as 10/minute"
            ),
        ),
    },
)
