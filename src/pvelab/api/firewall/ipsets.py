"""IP sets and their entries: addresses, networks and aliases, to match or (`nomatch`) not to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.firewall.config import (
    CLUSTER,
    Entry,
    FirewallConfig,
    edit_config,
    load,
    read_config,
    scope_of,
    with_digest,
)
from pvelab.api.firewall.paths import with_sets
from pvelab.server.params.firewall_formats import ALIAS, clean_cidr, strip_full_prefix
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = [
    "add_entry",
    "create_ipset",
    "delete_entry",
    "delete_ipset",
    "list_entries",
    "list_ipsets",
    "read_entry",
    "update_entry",
]


@route(*with_sets("GET ipset"))
def list_ipsets(call: Call) -> Any:
    """List the IP sets by name."""
    return with_digest(_list_sets(read_config(call)))[0]


@route(*with_sets("POST ipset"))
def create_ipset(call: Call) -> None:
    """Add an IP set; with `rename`, give an existing one another name or comment."""
    name, old = call.params["name"], call.params.get("rename")
    with edit_config(call) as config:
        if old is not None:
            check_digest(with_digest(_list_sets(config))[1], call.params.get("digest"))
            _rename(config, old, name)
        elif name in config.ipset:
            raise bad_parameter("name", f"IPSet '{name}' already exists")
        else:
            config.ipset[name] = []
        if "comment" in call.params:
            config.ipset_comments[name] = call.params["comment"]


@route(*with_sets("DELETE ipset/{name}"))
def delete_ipset(call: Call) -> None:
    """Remove an IP set that is empty, or any with `force`."""
    name = call.params["name"]
    with edit_config(call) as config:
        if config.require_ipset(name) and not call.params.get("force"):
            raise PveError(f"IPSet '{name}' is not empty")
        del config.ipset[name]


@route(*with_sets("GET ipset/{name}"))
def list_entries(call: Call) -> Any:
    """List the entries of an IP set."""
    return _entries(call)


@route(*with_sets("POST ipset/{name}"))
def add_entry(call: Call) -> None:
    """Add an entry to an IP set."""
    with edit_config(call) as config:
        entries = config.require_ipset(call.params["name"])
        cidr = _resolve_entry(call, config)
        if any(entry["cidr"] == cidr for entry in entries):
            raise bad_parameter("cidr", f"address '{cidr}' already exists")
        if cidr.endswith("/0"):
            raise bad_parameter("cidr", "a zero prefix is not allowed in ipset entries")
        entries.insert(0, {**_properties(call), "cidr": cidr})


@route(*with_sets("GET ipset/{name}/{cidr}"))
def read_entry(call: Call) -> Any:
    """Answer one entry."""
    return _find(_entries(call), call)


@route(*with_sets("PUT ipset/{name}/{cidr}"))
def update_entry(call: Call) -> None:
    """Replace comment and `nomatch` of an entry; what is not sent is unset."""
    with edit_config(call) as config:
        entries = config.require_ipset(call.params["name"])
        _check_unchanged(call, entries)
        entry = _find(entries, call)
        entries[entries.index(entry)] = {**_properties(call), "cidr": entry["cidr"]}


@route(*with_sets("DELETE ipset/{name}/{cidr}"))
def delete_entry(call: Call) -> None:
    """Remove an entry, if it is there."""
    name = call.params["name"]
    with edit_config(call) as config:
        entries = config.require_ipset(name)
        _check_unchanged(call, entries)
        config.ipset[name] = [entry for entry in entries if entry["cidr"] != call.params["cidr"]]


def _list_sets(config: FirewallConfig) -> list[Entry]:
    comments = config.ipset_comments
    return [
        {"name": name, **({"comment": comments[name]} if name in comments else {})}
        for name in sorted(config.ipset)
    ]


def _rename(config: FirewallConfig, old: str, new: str) -> None:
    if old not in config.ipset:
        raise bad_parameter("name", f"IPSet '{old}' does not exist")
    if new in config.ipset and new != old:
        raise bad_parameter("name", f"IPSet '{new}' does already exist")
    config.ipset[new] = config.ipset.pop(old)
    comment = config.ipset_comments.pop(old, None)
    if comment:
        config.ipset_comments[new] = comment


def _entries(call: Call) -> list[Entry]:
    config = read_config(call)
    return with_digest(config.require_ipset(call.params["name"]))[0]


def _find(entries: list[Entry], call: Call) -> Entry:
    for entry in entries:
        if entry["cidr"] == call.params["cidr"]:
            return entry
    raise bad_parameter("cidr", "no such IP/Network")


def _check_unchanged(call: Call, entries: list[Entry]) -> None:
    check_digest(with_digest(entries)[1], call.params.get("digest"))


def _properties(call: Call) -> Entry:
    return {key: call.params[key] for key in ("comment", "nomatch") if call.params.get(key)}


def _resolve_entry(call: Call, config: FirewallConfig) -> str:
    """Return an entry as the set keeps it: an alias that exists, or an address or network in plain form."""
    cidr = str(call.params["cidr"])
    parts = ALIAS.fullmatch(cidr)
    if not parts:
        return strip_full_prefix(clean_cidr(cidr))
    place, alias = parts[1] or "", parts[2].lower()
    cluster = config if scope_of(call) is CLUSTER else load(call.store, CLUSTER.key)
    places = [config] if cluster is not config and place != "dc/" else []
    places += [cluster] if place != "guest/" else []
    if not any(alias in found.aliases for found in places):
        raise PveError(f"no such alias '{parts[2]}'")
    return cidr
