"""The firewall configuration of a scope, read from and written to the store.

Documents: `firewall/cluster`, `firewall/node/<node>`, `firewall/guest/<vmid>` and `firewall/vnet/<vnet>`,
each with what its file has of `options`, `rules`, `aliases`, `ipset`, `ipset_comments`, `groups` and
`group_comments`. Nothing is kept of an empty configuration.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import read_applied
from pvelab.server.params.firewall_formats import ip_version, strip_full_prefix
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pvelab.server.call import Call
    from pvelab.world.store import Store

__all__ = [
    "CLUSTER",
    "Entry",
    "FirewallConfig",
    "Scope",
    "comment_line",
    "edit_config",
    "load",
    "read_config",
    "save",
    "scope_of",
    "with_digest",
]

_COLLECTION = "firewall"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a firewall guards.

    Attributes:
        key: The key of its document.
        lock: The lock of its file.
        environment: What Proxmox's texts call it.
    """

    key: str
    lock: str
    environment: str


CLUSTER = Scope(key="cluster", lock="firewall-cluster", environment="cluster")


@dataclass(slots=True, kw_only=True)
class FirewallConfig:
    """A configuration to read, or a copy of it to change."""

    options: Entry = field(default_factory=dict)
    rules: list[Entry] = field(default_factory=list)
    aliases: dict[str, Entry] = field(default_factory=dict)
    ipset: dict[str, list[Entry]] = field(default_factory=dict)
    ipset_comments: dict[str, str] = field(default_factory=dict)
    groups: dict[str, list[Entry]] = field(default_factory=dict)
    group_comments: dict[str, str] = field(default_factory=dict)

    def require_ipset(self, name: str) -> list[Entry]:
        """Return the entries of an IP set.

        Raises:
            PveError: There is no such set.
        """
        found = self.ipset.get(name)
        if found is None:
            raise PveError(f"no such IPSet '{name}'")
        return found

    def require_group(self, name: str) -> list[Entry]:
        """Return the rules of a security group.

        Raises:
            PveError: There is no such group.
        """
        found = self.groups.get(name)
        if found is None:
            raise PveError(f"no such security group '{name}'")
        return found


def scope_of(call: Call) -> Scope:
    """Return the scope that the path of a call names."""
    params = call.params
    if "vnet" in params:
        vnet = params["vnet"]
        return Scope(key=f"vnet/{vnet}", lock=f"firewall-vnet-{vnet}", environment="vnet")
    if "vmid" in params:
        guest = call.world.guests.get(call.vmid)
        container = guest is not None and guest["type"] == "lxc"
        return Scope(
            key=f"guest/{call.vmid}",
            lock=f"firewall-vm-{call.vmid}",
            environment="ct" if container else "vm",
        )
    if "node" in params:
        return Scope(key=f"node/{call.node}", lock=f"firewall-host-{call.node}", environment="host")
    return CLUSTER


def load(store: Store, key: str) -> FirewallConfig:
    """Return a copy of a configuration, an empty one if there is none."""
    return FirewallConfig(**copy.deepcopy(dict(store.get(_COLLECTION, key) or {})))


def save(store: Store, key: str, config: FirewallConfig) -> None:
    """Write a configuration as its file would give it back, in the running transaction."""
    config.rules = [_normalize_rule(rule, iface=True) for rule in config.rules]
    config.aliases = {key: _normalize_alias(alias) for key, alias in sorted(config.aliases.items())}
    config.ipset = {
        name: _normalize_entries(config.ipset[spelt]) for name, spelt in _lower_names(config.ipset)
    }
    config.groups = {
        name: [_normalize_rule(rule, iface=False) for rule in config.groups[spelt]]
        for name, spelt in _lower_names(config.groups)
    }
    config.ipset_comments = _normalize_comments(config.ipset_comments, config.ipset)
    config.group_comments = _normalize_comments(config.group_comments, config.groups)
    parts = {part.name: getattr(config, part.name) for part in fields(config)}
    document = {name: part for name, part in parts.items() if part}
    if document:
        store.put(_COLLECTION, key, document)
    else:
        store.delete(_COLLECTION, key)


def read_config(call: Call) -> FirewallConfig:
    """Return the configuration of a call's scope."""
    _check_vnet(call, "SDN.Audit", "SDN.Allocate")
    return load(call.store, scope_of(call).key)


@contextlib.contextmanager
def edit_config(call: Call) -> Iterator[FirewallConfig]:
    """Hand out the configuration of a call's scope under its lock, and keep what the block makes of it."""
    _check_vnet(call, "SDN.Allocate")
    scope = scope_of(call)
    with call.world.cluster.lock_file(scope.lock):
        config = load(call.store, scope.key)
        yield config
        save(call.store, scope.key, config)


def with_digest(entries: Sequence[Mapping[str, Any]]) -> tuple[list[Entry], str]:
    """Return copies of entries that all carry the digest of the whole list, and the digest."""
    lines = "".join(_digest_lines(entry) for entry in entries)
    digest = hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()
    return [{**entry, "digest": digest} for entry in entries], digest


def _digest_lines(entry: Mapping[str, Any]) -> str:
    """Return what the digest of an entry counts; what is wrong with a rule is not part of it."""
    return "".join(f"{key}:{entry[key]}\n" for key in sorted(entry) if not isinstance(entry[key], dict))


def comment_line(comment: Any) -> str:
    """Return what the end of a line keeps of a comment."""
    return str(comment or "").partition("\n")[0].strip()


def _check_vnet(call: Call, *privileges: str) -> None:
    """Check what the declared API leaves to the handlers of virtual networks."""
    name = call.params.get("vnet")
    if name is None:
        return
    vnet = read_applied(call.store, "vnets").get(name)
    if vnet is None:
        raise PveError("invalid vnet specified")
    call.check(f"/sdn/zones/{vnet['zone']}/{name}", *privileges, any_of=True)


def _normalize_rule(rule: Entry, *, iface: bool) -> Entry:
    # The line of a rule that names a group has no place for conditions.
    dropped = {"pos", "digest", "errors", "enable", "comment"} | (set() if iface else {"iface"})
    if rule["type"] == "group":
        dropped |= rule.keys() - {"type", "action", "iface"}
    kept = {key: value for key, value in rule.items() if key not in dropped}
    kept["enable"] = int(bool(rule.get("enable", 1)))
    comment = comment_line(rule.get("comment"))
    return {**kept, "comment": comment} if comment else kept


def _normalize_alias(alias: Entry) -> Entry:
    cidr = strip_full_prefix(str(alias["cidr"]))
    kept = {"name": alias["name"], "cidr": cidr, "ipversion": ip_version(cidr)}
    comment = comment_line(alias.get("comment"))
    return {**kept, "comment": comment} if comment else kept


def _normalize_entries(entries: list[Entry]) -> list[Entry]:
    kept: dict[str, Entry] = {}
    for entry in entries:
        line: Entry = {"cidr": entry["cidr"]}
        if entry.get("nomatch"):
            line["nomatch"] = 1
        comment = comment_line(entry.get("comment"))
        if comment:
            line["comment"] = comment
        kept.setdefault(str(entry["cidr"]), line)
    return [kept[cidr] for cidr in sorted(kept)]


def _lower_names(named: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names in small letters, as they are read back; of two that fall together the last stays."""
    for spelt in sorted(named):
        yield spelt.lower(), spelt


def _normalize_comments(comments: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, str]:
    kept = {name: comment_line(comments[spelt]) for name, spelt in _lower_names(comments)}
    return {name: comment for name, comment in kept.items() if comment and name in named}
