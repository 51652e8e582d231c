"""Ansible's own forms of an inventory: a YAML file, and what a program answers to `--list`.

Groups come from what guests are: their tags, their app, their node, and whether they are virtual machines or
containers. A name that Ansible would not take as a group is written with underscores; where two names become
one that way, their hosts are in one group. Each host has its variables once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.inventory.contract import Inventory

__all__ = ["as_list", "as_yaml", "group_name"]

_NOT_IN_GROUPS = re.compile(r"[^A-Za-z0-9_]")
_APP_TAG = "app_"
# Variables of a host by what they are in the document; `tags` alone would be a word of Ansible's own.
_COPIED = {
    "ansible_user": "ansible_user",
    "fqdn": "fqdn",
    "proxmox_vmid": "vmid",
    "proxmox_node": "node",
    "proxmox_mac": "mac",
    "proxmox_pool": "pool_id",
    "proxmox_tags": "tags",
}


def group_name(text: str) -> str:
    """Return a name as Ansible takes it for a group."""
    name = _NOT_IN_GROUPS.sub("_", text)
    return f"_{name}" if name[:1].isdigit() else name


def as_list(inventory: Inventory) -> dict[str, Any]:
    """Return what a dynamic inventory answers to `--list`."""
    hosts = {key: _variables(row) for key, row, _ in inventory.hosts()}
    groups = _groups(inventory)
    return {
        "_meta": {"hostvars": hosts},
        "all": {"children": [*groups, "ungrouped"]},
        **{name: {"hosts": members} for name, members in groups.items()},
    }


def as_yaml(inventory: Inventory) -> str:
    """Return the file, with every text in quotes."""
    document = {
        "all": {
            "hosts": {key: _variables(row) for key, row, _ in sorted(inventory.hosts())},
            "children": {
                name: {"hosts": dict.fromkeys(members, _Empty())}
                for name, members in _groups(inventory).items()
            },
        }
    }
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)


def _groups(inventory: Inventory) -> dict[str, list[str]]:
    groups: dict[str, set[str]] = {}
    for key, row, is_container in inventory.hosts():
        names = [*row["tags"], row["node"], "containers" if is_container else "vms"]
        names += [tag.removeprefix(_APP_TAG) for tag in row["tags"] if tag.startswith(_APP_TAG)]
        if row["pool_id"]:
            names.append(f"pool_{row['pool_id']}")
        for name in names:
            groups.setdefault(group_name(name), set()).add(key)
    # A group of a host's own name would shadow it.
    hosts = {key for key, _, _ in inventory.hosts()}
    return {name: sorted(members) for name, members in sorted(groups.items()) if name not in hosts}


def _variables(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a host; none of them is a secret."""
    variables = {"ansible_host": row["ip"]} if row["ip"] else {}
    known = {name: row[key] for name, key in _COPIED.items() if row.get(key) not in (None, [])}
    return {**variables, **known}


class _Empty(dict[str, Any]):
    """A host in a group, which says nothing more."""


class _Dumper(yaml.SafeDumper):
    """Quotes every text, so that `yes`, `1e3` and `0755` stay what they are."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        del data
        return True


def _quoted(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", data) and data.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if is_plain else '"')


_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_Dumper.add_representer(str, _quoted)
_Dumper.add_representer(_Empty, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data))
