"""What a plan does with a VM beyond the rules of single attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.table import Effect
from stackyard.fields.vm import BLOCKS
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.vm.disks import by_interface, same_disks
from stackyard.provider.resources.vm.network import complete_card
from stackyard.provider.values import UNKNOWN, known_block

if TYPE_CHECKING:
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["plan"]

_FOUND_OUT = ("ipv4_addresses", "ipv6_addresses", "network_interface_names")
_DISK_FOUND_OUT = ("file_format", "path_in_datastore", "size")
_DISK_BEGINNING = ("file_id", "import_from")


def plan(planned: PlanDraft) -> None:
    """Adjust the plan of a VM."""
    _plan_network(planned)
    if planned.prior is None:
        if planned.values.get("template") is True:
            # A template never runs. With bpg its state does not have this; it would wait for its addresses.
            planned.values["started"] = None
        return
    if planned.is_imported:
        _keep_beginning(planned, planned.prior)
    _plan_disks(planned, planned.prior)
    _plan_numa(planned, planned.prior)
    if not planned.config.get("vga"):
        # A display that no one configures is the one that is there, for example that of a template.
        planned.values["vga"] = planned.prior.get("vga")
    if planned.values.get("template"):
        # A template never runs, whatever the configuration says.
        planned.values["started"] = planned.prior.get("started")
    if planned.changed("network_device", "started"):
        for name in _FOUND_OUT:
            planned.values[name] = UNKNOWN
    if planned.changed("network_device") and not planned.is_configured("mac_addresses"):
        planned.values["mac_addresses"] = UNKNOWN
    _plan_replacement(planned, planned.prior)


def _plan_network(planned: PlanDraft) -> None:
    cards = planned.config.get("network_device")
    if not isinstance(cards, list):
        return
    before = (planned.prior or {}).get("network_device") or []
    planned.values["network_device"] = [
        complete_card(card, before[number] if number < len(before) else None)
        if isinstance(card, dict)
        else card
        for number, card in enumerate(cards)
    ]


def _keep_beginning(planned: PlanDraft, prior: Object) -> None:
    """Leave alone what counts only when a VM or a disk is made, where nobody knows what that was."""
    planned.values["clone"] = prior.get("clone") or []
    disks, known = planned.values.get("disk"), by_interface(prior.get("disk"))
    for disk in disks if isinstance(disks, list) else ():
        had = known.get(str(disk.get("interface"))) if isinstance(disk, dict) else None
        for name in _DISK_BEGINNING:
            if had is not None and not had.get(name):
                disk[name] = had.get(name)


def _plan_disks(planned: PlanDraft, prior: Object) -> None:
    before, after = prior.get("disk") or [], planned.values.get("disk")
    if not isinstance(after, list) or any(not isinstance(disk, dict) for disk in after):
        return
    known, configured = by_interface(before), by_interface(planned.config.get("disk"))
    planned.replace = [path for path in planned.replace if path[0] != "disk"]
    for number, disk in enumerate(after):
        interface = str(disk.get("interface"))
        _keep_found(disk, configured.get(interface) or {}, known.get(interface))
        _check_size(disk, known.get(interface), number)
        had = known.get(interface)
        if had is not None and (had.get("file_id") or "") != (disk.get("file_id") or ""):
            planned.replace.append(("disk", number, "file_id"))
    if same_disks(before, after):
        planned.values["disk"] = before


def _keep_found(disk: Object, configured: Object, known: Object | None) -> None:
    """Take what the apply finds out from the disk on the same interface, wherever it is in the list."""
    for name in _DISK_FOUND_OUT:
        if configured.get(name) is not None:
            continue
        if known is not None and (name != "size"):
            disk[name] = known.get(name)
        elif known is None and name != "size":
            disk[name] = UNKNOWN


def _check_size(disk: Object, known: Object | None, number: int) -> None:
    size, had = disk.get("size"), (known or {}).get("size")
    if isinstance(size, int) and isinstance(had, int) and size < had:
        raise AttributeValueError(
            f"Disk {disk.get('interface')} has {had} GiB, and a disk cannot be made smaller.",
            ("disk", number, "size"),
        )


def _plan_numa(planned: PlanDraft, prior: Object) -> None:
    before, after = prior.get("numa") or [], planned.values.get("numa") or []
    if _by_device(before) == _by_device(after):
        planned.values["numa"] = before


def _by_device(nodes: Any) -> dict[str, Object]:
    return {str(node.get("device")): node for node in nodes if isinstance(node, dict)}


def _plan_replacement(planned: PlanDraft, prior: Object) -> None:
    values, replace = planned.values, planned.replace
    number = values.get("vm_id")
    if number != prior.get("vm_id") and str(number) != str(prior.get("id")):
        replace.append(("vm_id",))
    if planned.changed("node_name") and not values.get("migrate"):
        replace.append(("node_name",))
    if bool(prior.get("clone")) != bool(values.get("clone")):
        replace.append(("clone",))
    for block, table in BLOCKS.items():
        old, new = known_block(prior, block) or {}, known_block(values, block) or {}
        for row in table.rows_with(Effect.REPLACE):
            if old.get(row.name) and new.get(row.name) not in (None, "", old[row.name]):
                replace.append((block, 0, row.name))
    if prior.get("template") and values.get("template") is False:
        raise AttributeValueError("A template cannot become a VM again.", ("template",))
