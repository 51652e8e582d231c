"""What stops for a while: running guests, and the network of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.clients.proxmox import quote
from stackyard.engine.changes import Action
from stackyard.fields import container, vm
from stackyard.fields.table import Effect
from stackyard.guard.facts import ApiRead
from stackyard.guard.findings import Finding, Permit
from stackyard.guard.subjects import describe, is_guest, name_of, node_of, short_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.changes import Change, Changes
    from stackyard.fields.table import Table
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "ALLOW_NETWORK_RELOAD",
    "ALLOW_REBOOT",
    "ask_pending_interfaces",
    "find_network_reloads",
    "find_pending_interfaces",
    "find_reboots",
    "is_note",
    "list_interface_changes",
]

ALLOW_REBOOT = "--allow-reboot"
ALLOW_NETWORK_RELOAD = "--allow-network-reload"

REBOOTS_GUEST = Kind(
    code="E-GUARD-REBOOTS-GUEST",
    summary="A running guest would be stopped or rebooted",
    remedy="Choose the moment, then name the guest with --allow-reboot.",
)
_HARMLESS = (Action.NOTHING, Action.READ, Action.FORGET)
# What no packet notices.
_NOTES = ("comment", "timeout_reload", "id")
RELOADS_NETWORK = Kind(
    code="E-GUARD-RELOADS-NETWORK",
    summary="The network of a node would be reloaded",
    remedy="Make sure that the node stays reachable, then name it with --allow-network-reload.",
)


def _live_attributes(basics: Table, blocks: Mapping[str, Table]) -> frozenset[str]:
    """Return what Proxmox changes while a guest runs."""
    whole = {name for name, table in blocks.items() if table.effect is Effect.LIVE}
    return frozenset(row.name for row in basics.rows_with(Effect.LIVE)) | whole


# Beside the rows of fields: what changes live, and what matters only to the provider.
_LIVE_VM = _live_attributes(vm.BASICS, vm.BLOCKS) | set(
    "tags pool_id on_boot migrate stop_on_destroy reboot_after_update timeout_clone timeout_create "
    "timeout_migrate timeout_reboot timeout_shutdown_vm timeout_start_vm timeout_stop_vm purge_on_destroy "
    "delete_unreferenced_disks_on_destroy id ipv4_addresses ipv6_addresses mac_addresses "
    "network_interface_names node_name clone".split()
)
_LIVE_CONTAINER = _live_attributes(container.BASICS, container.BLOCKS) | set(
    "tags pool_id timeout_clone timeout_create timeout_delete timeout_update id ipv4 ipv6 clone "
    "wait_for_ip".split()
)
_MEDIUM = frozenset(("file_id",))
_LIVE_DISK = frozenset(
    row.name for table in (vm.DISK, container.ROOT_DISK) for row in table.rows_with(Effect.LIVE)
) | {"size", "speed", "file_format", "path_in_datastore", "file_id", "import_from"}


def find_reboots(changes: Changes) -> Iterator[Finding]:
    """Report running guests that an update would stop or reboot."""
    for change in changes.planned:
        if change.action is not Action.UPDATE or not is_guest(change) or not _runs(change):
            continue
        why = sorted(_list_stopping_attributes(change))
        if why:
            yield Finding(
                kind=REBOOTS_GUEST,
                detail=f"{describe(change)} would stop or reboot for {', '.join(why)}.",
                permit=Permit(option=ALLOW_REBOOT, name=name_of(change)),
                address=change.address,
                label=change.name,
            )


def _runs(change: Change) -> bool:
    return (change.before or {}).get("started") is True


def _list_stopping_attributes(change: Change) -> set[str]:
    """Return the attributes that cannot change while the guest runs."""
    after = change.after or {}
    if after.get("started") is False:
        return {"started"}
    is_vm = short_kind(change) == "vm"
    if is_vm and after.get("reboot_after_update") is False:
        # The change waits for the next start, whenever the user makes one.
        return set()
    live = _LIVE_VM if is_vm else _LIVE_CONTAINER
    return {
        difference.name
        for difference in change.differences
        if difference.path[0] not in live and not _is_live_part(difference.path)
    }


def _is_live_part(path: tuple[str | int, ...]) -> bool:
    """Return whether a part of a drive changes while the guest runs; so does the medium of a CD-ROM drive."""
    parts = {"disk": _LIVE_DISK, "cdrom": _MEDIUM}.get(str(path[0]), frozenset())
    return any(part in parts for part in path[1:])


def find_network_reloads(changes: Changes, *, are_notes_harmless: bool = False) -> Iterator[Finding]:
    """Report nodes whose network would be reloaded, with what for.

    Args:
        changes: What a plan does.
        are_notes_harmless: Whether a node is left out of which only comments change: its reload finds nothing
            to do, unless others left changes pending (`find_pending_interfaces`).
    """
    for node, mine in sorted(list_interface_changes(changes).items()):
        if not (are_notes_harmless and all(map(is_note, mine))):
            yield _make_reload(node, f"would reload its network for {_describe_all(mine)}.")


def ask_pending_interfaces(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Read what is pending on the nodes of whose interfaces only comments change."""
    for node, mine in list_interface_changes(implied.changes).items():
        found = cluster.node(node)
        if all(map(is_note, mine)) and found is not None and found.is_online:
            yield _pending_of(node)


def find_pending_interfaces(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report nodes of which only comments change, and whose reload would activate changes of others."""
    for node, mine in sorted(list_interface_changes(implied.changes).items()):
        if all(map(is_note, mine)) and facts.answers.get(_pending_of(node), "unknown"):
            detail = (
                f"would reload its network for {_describe_all(mine)}, and activate changes of its interfaces "
                "that others have left pending."
            )
            yield _make_reload(node, detail)


def _pending_of(node: str) -> ApiRead:
    return ApiRead(f"/nodes/{quote(node)}/network", is_pending=True)


def _describe_all(changes: list[Change]) -> str:
    return ", ".join(sorted(map(describe, changes)))


def _make_reload(node: str, detail: str) -> Finding:
    permit = Permit(option=ALLOW_NETWORK_RELOAD, name=node)
    return Finding(kind=RELOADS_NETWORK, detail=f"{node} {detail}", permit=permit)


def list_interface_changes(changes: Changes) -> dict[str, list[Change]]:
    """Return what a plan does to the interfaces of each node."""
    found: dict[str, list[Change]] = {}
    for change in changes.planned:
        if short_kind(change).startswith("network_linux_") and change.action not in _HARMLESS:
            found.setdefault(node_of(change) or "?", []).append(change)
    return found


def is_note(change: Change) -> bool:
    """Return whether a change of an interface is one that no packet notices."""
    is_update = change.action is Action.UPDATE
    return is_update and all(one.path[0] in _NOTES for one in change.differences)
