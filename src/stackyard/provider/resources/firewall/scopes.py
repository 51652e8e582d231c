"""Whose firewall a resource is about: the cluster's, a node's, or that of a VM or container."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.checks import between, one_of
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = [
    "FLAG_OFF",
    "GUEST_FORMS",
    "GUEST_RULES",
    "LOG_LEVEL",
    "NODE_FORM",
    "POLICY",
    "Scope",
    "check_guest",
    "check_set_owner",
    "hash_id",
    "identify_scope",
    "replace_if_moved",
    "scope_of",
]

_SELECTORS = ("node_name", "vm_id", "container_id")
_LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog")
LOG_LEVEL = one_of(*_LEVELS)
POLICY = one_of("ACCEPT", "REJECT", "DROP")
# A flag that is left out is sent as off, as bpg does it.
FLAG_OFF = Rule(default=False)
_VM_ID = between(100, 999999999)
GUEST_RULES: Mapping[str, Rule] = {"vm_id": Rule(check=_VM_ID), "container_id": Rule(check=_VM_ID)}

NODE_FORM = "node/NODE"
GUEST_FORMS = ("vm/NODE/ID", "container/NODE/ID")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A firewall.

    Attributes:
        name: How the id of an import names it.
        path: Where it is in the API.
    """

    name: str
    path: str


def scope_of(state: Mapping[str, Any]) -> Scope:
    """Return the firewall that the attributes of a resource name."""
    node, vm_id, container_id = (state.get(name) for name in _SELECTORS)
    if not node:
        return Scope(name="cluster", path="/cluster/firewall")
    at_node = f"/nodes/{proxmox.quote(node)}"
    if vm_id:
        return Scope(name=f"vm/{node}/{vm_id}", path=f"{at_node}/qemu/{vm_id}/firewall")
    if container_id:
        return Scope(name=f"container/{node}/{container_id}", path=f"{at_node}/lxc/{container_id}/firewall")
    return Scope(name=f"node/{node}", path=f"{at_node}/firewall")


def hash_id(kind: str, path: str) -> str:
    """Return the id that bpg gives to what has no name of its own."""
    return f"{kind}-{zlib.crc32(path.removeprefix('/').encode())}"


def identify_scope(given: str, forms: tuple[str, ...]) -> Object:
    """Return the attributes that the id of an import names.

    Args:
        given: The id.
        forms: What it may look like: words as they are, and NODE, ID and NAME for what is in their place.

    Raises:
        ImportIdError: It does not look like any of them.
    """
    for form in forms:
        parts, places = given.split("/"), form.split("/")
        if len(parts) == len(places) and all(map(_fits, parts, places)):
            found = dict(zip(places, parts, strict=True))
            number = {"vm": "vm_id", "container": "container_id"}.get(places[0])
            return {
                **({"node_name": found["NODE"]} if "NODE" in found else {}),
                **({number: int(found["ID"])} if number else {}),
                **({"name": found["NAME"]} if "NAME" in found else {}),
            }
    raise ImportIdError(f"The id has the form {' or '.join(forms)}, and {given!r} does not.")


def _fits(part: str, place: str) -> bool:
    if place == "ID":
        return part.isascii() and part.isdecimal()
    return bool(part) if place in ("NODE", "NAME") else part == place


def check_guest(config: Object) -> Iterator[Problem]:
    """Check that a configuration names one firewall."""
    node, vm_id, container_id = (config.get(name) for name in _SELECTORS)
    if vm_id is not None and container_id is not None:
        yield Problem(path=("container_id",), detail="Only one of vm_id, container_id may be set.")
    elif node is None and (vm_id is not None or container_id is not None):
        yield Problem(path=("node_name",), detail="`node_name` is needed too: the node that the guest is on.")


def check_set_owner(config: Object) -> Iterator[Problem]:
    """Check that a configuration names a firewall that has aliases and IP sets."""
    yield from check_guest(config)
    node, vm_id, container_id = (config.get(name) for name in _SELECTORS)
    if node is not None and vm_id is None and container_id is None:
        yield Problem(
            path=("node_name",),
            detail="A node has no aliases and IP sets of its own. Set vm_id or container_id too, or leave "
            "`node_name` out for the cluster.",
        )


def replace_if_moved(draft: PlanDraft) -> None:
    """Replace what is to be in another firewall; that of a guest stays the same on another node."""
    if draft.prior is not None and _owner(draft.prior) != _owner(draft.values):
        draft.replace += [(name,) for name in _SELECTORS if draft.changed(name)]


def _owner(state: Mapping[str, Any]) -> tuple[str, Any]:
    node, vm_id, container_id = (state.get(name) for name in _SELECTORS)
    if vm_id or container_id:
        return ("vm", vm_id) if vm_id else ("container", container_id)
    return ("node", node) if node is UNKNOWN or node else ("cluster", None)
