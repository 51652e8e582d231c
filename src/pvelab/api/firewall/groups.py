"""Security groups: rules under a name, for the rules of other scopes to refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.firewall.config import (
    Entry,
    FirewallConfig,
    edit_config,
    load,
    read_config,
    save,
    with_digest,
)
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_group", "delete_group", "list_groups"]


@route("GET /cluster/firewall/groups")
def list_groups(call: Call) -> Any:
    """List the security groups by name."""
    return with_digest(_list_groups(read_config(call)))[0]


@route("POST /cluster/firewall/groups")
def create_group(call: Call) -> None:
    """Add a security group; with `rename`, give an existing one another name or comment."""
    name, old = call.params["group"], call.params.get("rename")
    with edit_config(call) as config:
        if old is not None:
            check_digest(with_digest(_list_groups(config))[1], call.params.get("digest"))
            _rename(call, config, old, name)
        elif name in config.groups:
            raise bad_parameter("group", f"Security group '{name}' already exists")
        else:
            config.groups[name] = []
        if "comment" in call.params:
            config.group_comments[name] = call.params["comment"]


@route("DELETE /cluster/firewall/groups/{group}")
def delete_group(call: Call) -> None:
    """Remove a security group without rules."""
    name = call.params["group"]
    with edit_config(call) as config:
        if config.require_group(name):
            raise PveError(f"Security group '{name}' is not empty")
        del config.groups[name]


def _list_groups(config: FirewallConfig) -> list[Entry]:
    comments = config.group_comments
    return [
        {"group": name, **({"comment": comments[name]} if name in comments else {})}
        for name in sorted(config.groups)
    ]


def _rename(call: Call, config: FirewallConfig, old: str, new: str) -> None:
    if old not in config.groups:
        raise bad_parameter("group", f"Security group '{old}' does not exist")
    if new == old:
        return
    if new in config.groups:
        raise bad_parameter("group", f"Security group '{new}' does already exist")
    config.groups[new] = config.groups.pop(old)
    config.group_comments[new] = config.group_comments.pop(old, "")
    _refer_to(config.rules, old, new)
    # The rules of nodes and guests that name the group follow it.
    for key in list(call.store.items("firewall")):
        if key.startswith(("node/", "guest/")):
            other = load(call.store, key)
            if _refer_to(other.rules, old, new):
                save(call.store, key, other)


def _refer_to(rules: list[Entry], old: str, new: str) -> bool:
    found = [rule for rule in rules if rule["type"] == "group" and rule["action"] == old]
    for rule in found:
        rule["action"] = new
    return bool(found)
