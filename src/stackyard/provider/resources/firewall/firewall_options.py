"""`proxmox_virtual_environment_firewall_options`: the firewall options of a VM or container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import FLAG, TEXT, Field
from stackyard.provider.problems import Problem
from stackyard.provider.resources.firewall.scopes import (
    FLAG_OFF,
    GUEST_FORMS,
    GUEST_RULES,
    LOG_LEVEL,
    POLICY,
    check_guest,
    hash_id,
    identify_scope,
    replace_if_moved,
    scope_of,
)
from stackyard.provider.schema import Rule
from stackyard.provider.singletons import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_FIELDS = (
    Field(attribute="dhcp", form=FLAG),
    Field(attribute="enabled", key="enable", form=FLAG),
    Field(attribute="input_policy", key="policy_in", form=TEXT),
    Field(attribute="ipfilter", form=FLAG),
    Field(attribute="log_level_in", form=TEXT),
    Field(attribute="log_level_out", form=TEXT),
    Field(attribute="macfilter", form=FLAG),
    Field(attribute="ndp", form=FLAG),
    Field(attribute="output_policy", key="policy_out", form=TEXT),
    Field(attribute="radv", form=FLAG),
)
# What Proxmox does where an option is not set.
_UNSET = {
    "dhcp": False,
    "enabled": False,
    "input_policy": "DROP",
    "ipfilter": False,
    "log_level_in": "nolog",
    "log_level_out": "nolog",
    "macfilter": True,
    "ndp": True,
    "output_policy": "ACCEPT",
    "radv": False,
}


def _path(state: Object) -> str:
    return f"{scope_of(state).path}/options"


def _id(state: Object) -> str:
    return hash_id("options", _path(state))


def _fill(known: Object, found: Mapping[str, Any]) -> Object:
    absent = {field.attribute for field in _FIELDS if found.get(field.name) is None}
    return {name: value for name, value in _UNSET.items() if name in absent}


def _identify(given: str) -> Object:
    named = identify_scope(given, GUEST_FORMS)
    return {**named, "id": _id(named)}


def _check(config: Object) -> Iterator[Problem]:
    yield from check_guest(config)
    if config.get("vm_id") is None and config.get("container_id") is None:
        yield Problem(detail="One of vm_id, container_id must be set.")


RESOURCE = Settings(
    path=_path,
    fields=_FIELDS,
    identity=_id,
    own_state=_fill,
    # They stay: a firewall that is off all of a sudden would be worse than one that nobody manages.
    removed=None,
).resource(
    ("proxmox_virtual_environment_firewall_options",),
    identify=_identify,
    rules={
        **GUEST_RULES,
        **dict.fromkeys(("dhcp", "enabled", "ipfilter", "ndp"), FLAG_OFF),
        **dict.fromkeys(("macfilter", "radv"), Rule(default=True)),
        **dict.fromkeys(("log_level_in", "log_level_out"), Rule(default="nolog", check=LOG_LEVEL)),
        "input_policy": Rule(default="DROP", check=POLICY),
        "output_policy": Rule(default="ACCEPT", check=POLICY),
    },
    plan=replace_if_moved,
    validate=_check,
)
