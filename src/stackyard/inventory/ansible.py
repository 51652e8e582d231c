"""Ansible's own forms of an inventory: a YAML file, and what a program answers to `--list`.

Groups come from what guests are: their tags, their app, their node, and whether they are virtual machines or
containers. A name that Ansible would not take as a group is written with underscores; where two names become
one that way, their hosts are in one group. Each host has its variables once.

Every value is data. Ansible takes a text of an inventory for a template, which can read files and start
programs on the machine of anyone who runs it; so whatever could be one is marked as text that is not to be
looked into: `!unsafe` in YAML, `__ansible_unsafe` in JSON. It does not matter where the text is from: guests
and the cluster can write some of it, and what a site says is no template either.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from stackyard.inventory.contract import PCT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.inventory.contract import Inventory

__all__ = ["as_list", "as_yaml", "dump_yaml", "group_name", "mark_unsafe"]

_NOT_IN_GROUPS = re.compile(r"[^A-Za-z0-9_]")
_APP_TAG = "app_"
# No template can be written in these; a text that has others is marked.
_ONLY_TEXT = re.compile(r"[A-Za-z0-9_.:/@+-]*")
# Groups that every inventory has, and what is no group in the answer to `--list`.
_RESERVED = frozenset(("all", "ungrouped", "_meta"))
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
    """Return a name as Ansible takes it for a group; one that Ansible uses itself ends with an underscore."""
    name = _NOT_IN_GROUPS.sub("_", text)
    if name in _RESERVED:
        return f"{name}_"
    return f"_{name}" if name[:1].isdigit() else name


def as_list(inventory: Inventory) -> dict[str, Any]:
    """Return what a dynamic inventory answers to `--list`."""
    hosts = {key: mark_unsafe(_variables(inventory, row)) for key, row, _ in inventory.hosts()}
    groups = _groups(inventory)
    return {
        "_meta": {"hostvars": hosts},
        "all": {"children": [*groups, "ungrouped"]},
        **{name: {"hosts": members} for name, members in groups.items()},
    }


def as_yaml(inventory: Inventory) -> str:
    """Return the file, with every text in quotes, and marked where it could be a template."""
    document = {
        "all": {
            "hosts": {key: _variables(inventory, row) for key, row, _ in sorted(inventory.hosts())},
            "children": {
                name: {"hosts": dict.fromkeys(members, _Empty())}
                for name, members in _groups(inventory).items()
            },
        }
    }
    return dump_yaml(document)


def dump_yaml(document: Mapping[str, Any]) -> str:
    """Return a document in YAML, with every text in quotes, and marked where it could be a template."""
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


def _variables(inventory: Inventory, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a host; none of them is a secret."""
    variables = {**_address(row), **_connection(inventory, row)}
    known = {name: row[key] for name, key in _COPIED.items() if row.get(key) not in (None, [])}
    return {**variables, **known}


def _address(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"ansible_host": row["ip"]} if row["ip"] else {}


def _connection(inventory: Inventory, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a host is reached where that is not by SSH at its own address.

    With `pct` the host of the connection is the node, and the guest is named by its id (`proxmox_vmid`).
    """
    connection, node = row["ansible_connection"], inventory.node_host(row["node"])
    if connection == "ssh" or node is None:
        return {}
    if connection != PCT:
        return {"ansible_connection": connection}
    own = {"container_ip": row["ip"]} if row["ip"] else {}
    return {"ansible_connection": connection, "ansible_host": node, "ansible_pct_vmid": row["vmid"], **own}


def mark_unsafe(value: Any) -> Any:
    """Return a value with the mark of JSON on every text in it that could be a template."""
    if isinstance(value, dict):
        return {name: mark_unsafe(one) for name, one in value.items()}
    if isinstance(value, list):
        return [mark_unsafe(one) for one in value]
    return {"__ansible_unsafe": value} if _may_be_template(value) else value


def _may_be_template(value: Any) -> bool:
    return isinstance(value, str) and _ONLY_TEXT.fullmatch(value) is None


class _Empty(dict[str, Any]):
    """A host in a group, which says nothing more."""


class _Dumper(yaml.SafeDumper):
    """Quotes every text, so that `yes`, `1e3` and `0755` stay what they are, and templates stay texts."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        del data
        return True


def _represent_unsafe(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    if _may_be_template(data):
        return dumper.represent_scalar("!unsafe", data, style='"')
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", data) and data.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if is_plain else '"')


_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_Dumper.add_representer(str, _represent_unsafe)
_Dumper.add_representer(_Empty, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data))
