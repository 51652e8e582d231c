"""Aliases: names for addresses and networks, unique whatever the case of their letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.firewall.config import Entry, FirewallConfig, edit_config, read_config, with_digest
from pvelab.api.firewall.paths import with_sets
from pvelab.server.problems import bad_parameter
from pvelab.server.routing import route
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_alias", "delete_alias", "list_aliases", "read_alias", "update_alias"]


@route(*with_sets("GET aliases"))
def list_aliases(call: Call) -> Any:
    """List the aliases by name."""
    return with_digest(_list_entries(read_config(call)))[0]


@route(*with_sets("GET aliases/{name}"))
def read_alias(call: Call) -> Any:
    """Answer one alias."""
    return _require(call, read_config(call))


@route(*with_sets("POST aliases"))
def create_alias(call: Call) -> None:
    """Add an alias."""
    with edit_config(call) as config:
        name = call.params["name"]
        if name.lower() in config.aliases:
            raise bad_parameter("name", f"alias '{name}' already exists")
        config.aliases[name.lower()] = _read_alias(call)


@route(*with_sets("PUT aliases/{name}"))
def update_alias(call: Call) -> None:
    """Replace an alias, and give it another name if one is sent."""
    with edit_config(call) as config:
        _check_unchanged(call, config)
        _require(call, config)
        old, new = call.params["name"], call.params.get("rename", call.params["name"])
        del config.aliases[old.lower()]
        if new.lower() != old.lower() and new.lower() in config.aliases:
            raise bad_parameter("name", f"alias '{new}' already exists")
        name = new if new.lower() != old.lower() else old
        config.aliases[new.lower()] = {**_read_alias(call), "name": name}


@route(*with_sets("DELETE aliases/{name}"))
def delete_alias(call: Call) -> None:
    """Remove an alias, if it is there."""
    with edit_config(call) as config:
        _check_unchanged(call, config)
        config.aliases.pop(call.params["name"].lower(), None)


def _list_entries(config: FirewallConfig) -> list[Entry]:
    return [config.aliases[key] for key in sorted(config.aliases)]


def _require(call: Call, config: FirewallConfig) -> Entry:
    found = config.aliases.get(call.params["name"].lower())
    if found is None:
        raise bad_parameter("name", "no such alias")
    return found


def _check_unchanged(call: Call, config: FirewallConfig) -> None:
    check_digest(with_digest(_list_entries(config))[1], call.params.get("digest"))


def _read_alias(call: Call) -> Entry:
    return {key: call.params[key] for key in ("name", "cidr", "comment") if key in call.params}
