"""The inventory of a stack: the Proxmox guests in its state, and what its output `ansible_inventory` adds.

The output may describe hosts of any provider:

    output "ansible_inventory" {
      value = {
        hosts  = { web1 = { ansible_host = "10.0.0.5", groups = ["k3s"] } }
        groups = { k3s = { k3s_version = "v1.36" } }
      }
    }

Nothing in an inventory is a secret: it is a file that Ansible reads in clear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import usable_address
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.inventory.ansible import dump_yaml, group_name, mark_unsafe
from stackyard.inventory.contract import IncompleteError
from stackyard.inventory.facts import list_static_addresses, read_facts
from stackyard.state.guests import read_guests
from stackyard.state.inside import read_view

if TYPE_CHECKING:
    from stackyard.state.guests import StateGuest
    from stackyard.state.inside import StateOutput

__all__ = ["StackHosts", "read_stack_hosts"]

OUTPUT = "ansible_inventory"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SECRET = re.compile(r"(^|_)(password|pass|passwd|secret|token|private_key|vault)(_|$)")

NO_ADDRESS = Kind(
    code="E-INVENTORY-NO-ADDRESS",
    summary="A guest that runs has no address",
    remedy="Wait until its agent answers and apply again, give it a static address, or name its "
    "`ansible_host` in the output `ansible_inventory`.",
)
TWICE = Kind(
    code="E-INVENTORY-TWICE",
    summary="Two guests of a stack have the same name",
    remedy="Rename one of them: Ansible knows hosts by their names.",
)
NOT_A_NAME = Kind(
    code="E-INVENTORY-NAME",
    summary="A host has a name that Ansible cannot use",
    remedy="Use letters, digits, `.`, `-` and `_`.",
)
SECRET = Kind(
    code="E-INVENTORY-SECRET",
    summary="An inventory would hold a secret in clear",
    remedy="Leave it out of the output, and let Ansible read it from a vault.",
)
WRONG_SHAPE = Kind(
    code="E-INVENTORY-OUTPUT",
    summary="The output `ansible_inventory` has another form than expected",
    remedy="Give it `hosts` (a map of names to variables) and `groups` (a map of names to variables).",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackHosts:
    """The inventory of a stack.

    Attributes:
        hosts: The variables of each host.
        groups: The hosts of each group.
        variables: The variables of each group.
    """

    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that Ansible could use."""
        return not self.hosts and not self.variables

    def as_yaml(self) -> str:
        """Return the file for a folder that Ansible reads; each variable of a host is in it once."""
        children: dict[str, Any] = {}
        for name, members in self.groups.items():
            children[name] = {"hosts": {member: {} for member in members}}
            if self.variables.get(name):
                children[name]["vars"] = dict(self.variables[name])
        return dump_yaml(
            {"all": {"hosts": {name: dict(one) for name, one in self.hosts.items()}, "children": children}}
        )

    def as_document(self) -> dict[str, Any]:
        """Return it for a program that is not Ansible."""
        return {
            "hosts": {name: dict(one) for name, one in self.hosts.items()},
            "groups": {
                name: {"hosts": list(members), "vars": dict(self.variables.get(name, {}))}
                for name, members in self.groups.items()
            },
        }

    def as_list(self) -> dict[str, Any]:
        """Return what a dynamic inventory answers to `--list`."""
        groups: dict[str, Any] = {name: {"hosts": list(one)} for name, one in self.groups.items()}
        for name, values in self.variables.items():
            if values:
                groups[name]["vars"] = mark_unsafe(dict(values))
        hostvars = {name: mark_unsafe(dict(one)) for name, one in self.hosts.items()}
        return {"_meta": {"hostvars": hostvars}, "all": {"children": [*self.groups, "ungrouped"]}, **groups}


def read_stack_hosts(
    target: str, state: bytes | None, seen: Mapping[str, Sequence[str]] | None = None
) -> StackHosts:
    """Read the inventory of a stack from its state.

    Args:
        target: The stack, for messages.
        state: Its state; None where there is none yet.
        seen: Addresses that guests reported since, by the addresses of their resources.

    Raises:
        IncompleteError: A guest has no address or no usable name, or the output is wrong; each is named.
        EncryptedStateError: The engine encrypted the state.
    """
    if state is None:
        return StackHosts()
    collector = _Collector(Diagnostics())
    facts = read_facts(state, in_modules=True)
    for guest in read_guests(state):
        if guest.is_reliable and not guest.attributes.get("template"):
            known = facts[guest.address].addresses or tuple((seen or {}).get(guest.address, ()))
            collector.add_guest(guest, known or tuple(_static_addresses(guest)))
    output = read_view(state).outputs.get(OUTPUT)
    if output is not None:
        collector.add_output(output)
    collector.require_addresses()
    if collector.found.errors:
        raise IncompleteError(f"The inventory of {target} is not whole.", tuple(collector.found.errors))
    return collector.build()


class _Collector:
    """Collects hosts, groups and what is wrong with them."""

    def __init__(self, found: Diagnostics) -> None:
        self.found = found
        self._hosts: dict[str, dict[str, Any]] = {}
        self._groups: dict[str, set[str]] = {}
        self._variables: dict[str, dict[str, Any]] = {}
        self._addresses: dict[str, str] = {}
        self._unreachable: dict[str, str] = {}

    def add_guest(self, guest: StateGuest, addresses: tuple[str, ...]) -> None:
        """Add a guest of the state."""
        values = guest.attributes
        is_container = guest.kind == "container"
        init = values.get("initialization")
        first = init[0] if isinstance(init, list) and init and isinstance(init[0], dict) else {}
        name = str((first.get("hostname") if is_container else values.get("name")) or guest.address)
        if name in self._addresses:
            self.found.add(TWICE, f"{name} is {self._addresses[name]} and {guest.address}.")
            return
        self._addresses[name] = guest.address
        if not self._is_name(name, guest.address):
            return
        if not addresses and guest.should_run and guest.tells_addresses:
            self._unreachable[name] = f"{name} ({guest.vm_id} on {guest.node}) has no address."
        host: dict[str, Any] = {"proxmox_vmid": guest.vm_id, "proxmox_node": guest.node}
        if addresses:
            host = {"ansible_host": addresses[0], **host}
        if user := _user(first):
            host["ansible_user"] = user
        self._hosts[name] = host
        tags = [tag for tag in values.get("tags") or () if isinstance(tag, str)]
        for group in (*tags, guest.node, "containers" if is_container else "vms"):
            self._join(group, name)

    def add_output(self, output: StateOutput) -> None:
        """Add what the output of the stack says."""
        value = output.value
        if output.is_sensitive:
            self.found.add(SECRET, f"The output `{OUTPUT}` is sensitive.")
            return
        if not isinstance(value, Mapping) or set(value) - {"hosts", "groups"}:
            self.found.add(WRONG_SHAPE, f"The output `{OUTPUT}` has no `hosts` and `groups` alone.")
            return
        for name, variables in self._maps(value, "hosts"):
            if not self._is_name(name, f"the output `{OUTPUT}`"):
                continue
            groups = variables.get("groups") or []
            own = {key: one for key, one in variables.items() if key != "groups"}
            self._require_public(name, own)
            self._hosts.setdefault(name, {}).update(own)
            for group in groups if isinstance(groups, list) else [groups]:
                self._join(str(group), name)
        for name, variables in self._maps(value, "groups"):
            self._require_public(name, variables)
            self._groups.setdefault(group_name(name), set())
            self._variables.setdefault(group_name(name), {}).update(variables)

    def require_addresses(self) -> None:
        """Report the guests that run and that nobody knows an address of, the output neither."""
        for name, detail in self._unreachable.items():
            if "ansible_host" not in self._hosts[name]:
                self.found.add(NO_ADDRESS, detail)

    def _maps(self, value: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
        part = value.get(key) or {}
        if not isinstance(part, Mapping) or not all(isinstance(one, Mapping) for one in part.values()):
            self.found.add(WRONG_SHAPE, f"`{key}` of the output `{OUTPUT}` is no map of maps.")
            return []
        return list(part.items())

    def _is_name(self, name: str, where: str) -> bool:
        if _NAME.fullmatch(name):
            return True
        self.found.add(NOT_A_NAME, f"{name!r} of {where}.")
        return False

    def _require_public(self, name: str, variables: Mapping[str, Any]) -> None:
        for key in _keys(variables):
            if _SECRET.search(key.lower()):
                self.found.add(SECRET, f"`{key}` of {name} in the output `{OUTPUT}`.")

    def _join(self, group: str, host: str) -> None:
        self._groups.setdefault(group_name(group), set()).add(host)

    def build(self) -> StackHosts:
        """Return the inventory; a group of a host's own name would shadow the host."""
        groups = {name: tuple(sorted(one)) for name, one in sorted(self._groups.items())}
        return StackHosts(
            hosts=dict(sorted(self._hosts.items())),
            groups={name: members for name, members in groups.items() if name not in self._hosts},
            variables={name: one for name, one in self._variables.items() if name not in self._hosts},
        )


def _keys(value: Any) -> Iterator[str]:
    """Yield every key in a value, at any depth."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from _keys(part)


def _static_addresses(guest: StateGuest) -> Iterator[str]:
    """Yield the addresses that the code gives to a guest, which has no agent that could report them."""
    return (address for text in list_static_addresses(guest) if (address := usable_address(text)))


def _user(init: Mapping[str, Any]) -> str:
    account = init.get("user_account")
    first = account[0] if isinstance(account, list) and account and isinstance(account[0], dict) else {}
    return str(first.get("username") or "")
