"""What is highly available, and who asks: documents and small questions about them.

Documents: `ha_resources/<sid>` with the options of a resource, `ha_rules/<id>` with those of a rule (its
`resources` and `nodes` as texts), `ha_commands/<number>` with the `text` of an order that the manager has not
read yet, and `ha/status`, the state of the manager as Proxmox writes it to a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.world.ha.groups import failback_of

if TYPE_CHECKING:
    from pvelab.world.guests.guests import Guests
    from pvelab.world.store import Document, Store

__all__ = [
    "COMMANDS",
    "RESOURCES",
    "RULES",
    "STATUS",
    "add_resource",
    "effective",
    "forget_resource",
    "full_sid",
    "guest_status",
    "is_configured",
    "is_managed",
    "order",
    "read_listed_state",
    "require_managed",
    "service_state",
    "sid_of",
    "status",
    "verbose_state",
]

RESOURCES, RULES, COMMANDS = "ha_resources", "ha_rules", "ha_commands"
STATUS = ("ha", "status")

_TYPES = {"qemu": "vm", "lxc": "ct"}


def sid_of(kind: str, vmid: int | str) -> str:
    """Return what HA calls a guest: `vm:100` or `ct:100`."""
    return f"{_TYPES[kind]}:{vmid}"


def full_sid(guests: Guests, sid: str) -> str:
    """Return a resource's whole name, for a vmid alone too.

    Raises:
        PveError: That is no name, or there is no such guest.
    """
    if sid.isdecimal():
        guest = guests.get(sid)
        if guest is None:
            raise PveError(f"unable to detect SID from VMID - VM/CT {sid} does not exist")
        return sid_of(str(guest["type"]), sid)
    if not re.fullmatch(r"\S+:\S+", sid):
        raise PveError(f"unable to parse service id '{sid}'")
    return sid


def status(store: Store) -> Document:
    """Return the state of the manager; empty as long as there was nothing to manage."""
    return store.get(*STATUS) or {}


def is_configured(store: Store, sid: str) -> bool:
    """Return whether a guest is a resource, in whatever state."""
    return store.get(RESOURCES, sid) is not None


def is_managed(store: Store, sid: str) -> bool:
    """Return whether HA manages a guest: those in the state `ignored` it does not."""
    found = store.get(RESOURCES, sid)
    if found is None or found.get("state") == "ignored":
        return False
    disarm = status(store).get("disarm")
    return not (disarm and disarm["mode"] == "ignore")


def require_managed(store: Store, sid: str) -> None:
    """Refuse an order for what HA does not manage.

    Raises:
        PveError: It is none of its resources, or ignored.
    """
    if not is_managed(store, sid):
        raise PveError(f"resource '{sid}' is not HA managed")


def service_state(store: Store, sid: str) -> str | None:
    """Return the state in which the manager sees a resource, None before it has looked."""
    found = status(store).get("service_status", {}).get(sid)
    return None if found is None else str(found["state"])


def read_listed_state(store: Store, sid: str) -> str | None:
    """Return the state of a resource that lists of guests show: the manager's, or what is wanted of it."""
    resource = store.get(RESOURCES, sid)
    if resource is None:
        return None
    return service_state(store, sid) or resource.get("state")


def guest_status(store: Store, sid: str) -> dict[str, Any]:
    """Return what the status of a guest says of HA."""
    if not is_managed(store, sid):
        return {"managed": 0}
    state = service_state(store, sid)
    return {"managed": 1} if state is None else {"managed": 1, "state": state}


def effective(store: Store, guests: Guests) -> dict[str, dict[str, Any]]:
    """Return all resources with the defaults in place, and the node of each guest that there is."""
    found: dict[str, dict[str, Any]] = {}
    for sid, resource in store.items(RESOURCES).items():
        data = {"state": "started", "failback": 1, "max_restart": 1, "max_relocate": 1, **resource}
        if (failback := failback_of(store, resource)) is not None:
            data["failback"] = failback
        if data["state"] == "enabled":
            data["state"] = "started"
        data["type"] = sid.partition(":")[0]
        guest = guests.get(sid.partition(":")[2])
        if guest is not None and sid_of(str(guest["type"]), guest["vmid"]) == sid:
            data["node"] = guest["node"]
        found[sid] = data
    return found


def verbose_state(service: Document | None, resource: Document | None) -> str:
    """Return the state of a resource in the words of status lists."""
    if resource is None:
        return "deleting"
    wanted = str(resource.get("state", "ignored"))
    if wanted == "ignored":
        return "ignored"
    if resource.get("node") is None:
        return "not found"
    if service is None:
        return "queued"
    return _predict_state(service, wanted)


def _predict_state(service: Document, wanted: str) -> str:
    """Return what a service is about to be, which people want to read rather than what it still is."""
    state = str(service["state"])
    if state == "stopped":
        return {"started": "starting", "disabled": "disabled"}.get(wanted, state)
    if state == "started":
        if not service.get("running"):
            return "starting"
        return "stopping" if wanted in ("stopped", "disabled") else state
    if state == "error" and wanted == "disabled":
        return "clearing error flag"
    return state


def add_resource(store: Store, sid: str, state: str) -> None:
    """Make a new guest a resource, in the running transaction."""
    store.put(RESOURCES, sid, {"type": sid.partition(":")[0], "state": state})


def order(store: Store, text: str) -> None:
    """Leave an order for the manager, in the running transaction: `migrate vm:100 pve2`."""
    numbers = [int(number) for number in store.items(COMMANDS)]
    store.put(COMMANDS, str(max(numbers, default=0) + 1), {"text": text})


def forget_resource(store: Store, sid: str, *, purge: bool) -> None:
    """Remove a resource and, with `purge`, its name from all rules; a rule without resources goes."""
    store.delete(RESOURCES, sid)
    for ident, rule in list(store.items(RULES).items()) if purge else ():
        left = [one for one in split_list(str(rule["resources"])) if one != sid]
        if not left:
            store.delete(RULES, ident)
        elif len(left) != len(split_list(str(rule["resources"]))):
            store.put(RULES, ident, {**rule, "resources": ",".join(left)})
