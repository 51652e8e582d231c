"""The interfaces file of a node: the one in force, the one that waits for a reload, and what is up."""

from __future__ import annotations

import datetime
import difflib
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.network.reach import is_reached, list_parents
from pvelab.api.nodes.network.read import read_interfaces
from pvelab.api.nodes.network.rules import check_file
from pvelab.api.nodes.network.write import write_interfaces
from pvelab.faults.cut_off import set_reached
from pvelab.world.bridges import INTERFACES

if TYPE_CHECKING:
    from pvelab.api.nodes.network.read import Interfaces
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["bring_up", "load", "pending_changes", "put_in_force", "revert", "save"]

_PATH = "/etc/network/interfaces"
_DEFAULT_MTU = 1500


def load(world: World, node: str) -> Interfaces:
    """Read the interfaces of a node, pending changes made."""
    document = _document(world, node)
    return read_interfaces(
        document.get("new") or document["text"], links=document["links"], active=document["live"]
    )


def save(world: World, node: str, interfaces: Interfaces) -> None:
    """Check and write interfaces; they wait for the next reload.

    Raises:
        PveError: They do not fit together.
    """
    for interface in interfaces.by_name.values():
        for key in ("cidr", "cidr6"):
            cidr = interface.pop(key, None)
            if cidr is not None:
                interface.setdefault(key.replace("cidr", "address"), cidr)
    check_file(interfaces)
    document = _document(world, node)
    text = write_interfaces(interfaces)
    world.store.put(INTERFACES, node, {**document, "new": text, "new_time": world.clock.now()})


def pending_changes(world: World, node: str) -> str | None:
    """Return what a reload would change, as a diff, or None for nothing."""
    document = _document(world, node)
    if not document.get("new"):
        return None
    lines = difflib.unified_diff(
        str(document["text"]).splitlines(),
        str(document["new"]).splitlines(),
        _PATH,
        f"{_PATH}.new",
        _time(float(document["time"])),
        _time(float(document["new_time"])),
        lineterm="",
    )
    return "".join(f"{line}\n" for line in lines) or None


def revert(world: World, node: str) -> None:
    """Forget pending changes."""
    document = _document(world, node)
    kept = {key: value for key, value in document.items() if key not in ("new", "new_time")}
    world.store.put(INTERFACES, node, kept)


def put_in_force(world: World, node: str) -> None:
    """Make the pending file the one in force; the interfaces themselves follow with `bring_up`."""
    document = _document(world, node)
    if document.get("new"):
        changed = {"text": document["new"], "time": document["new_time"]}
        world.store.put(INTERFACES, node, {**document, **changed})
        revert(world, node)


def bring_up(world: World, node: str, *, at_boot: bool = False) -> None:
    """Bring up what starts by itself, with all that it depends on, and take down what is gone."""
    document = _document(world, node)
    interfaces = read_interfaces(document["text"], links=document["links"])
    live: dict[str, Any] = {}
    waiting = [name for name, interface in interfaces.by_name.items() if interface.get("autostart")]
    # What was brought up by hand or for another interface stays up as long as it is in the file.
    waiting += [name for name in document["live"] if name in interfaces.by_name and not at_boot]
    while waiting:
        name = waiting.pop()
        interface = interfaces.by_name.get(name)
        if interface is not None and name not in live:
            live[name] = {
                "type": interface["type"],
                "vlan_aware": int(bool(interface.get("bridge_vlan_aware"))),
                "mtu": int(interface.get("mtu") or _DEFAULT_MTU),
            }
            waiting += list_parents(name, interface)
    world.store.put(INTERFACES, node, {**document, "live": dict(sorted(live.items()))})
    address = world.cluster.nodes()[node]["ip"]
    set_reached(world, node, is_reached=is_reached(interfaces, live, document["links"], address))


def _document(world: World, node: str) -> Document:
    # Every node is planted with one.
    return world.store.items(INTERFACES)[node]


def _time(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f000 +0000")
