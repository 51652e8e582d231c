"""Ids and names of guests: once each, and in the range that Proxmox has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.sources.site.layers import vmid_of

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = ["check_ids"]

LEAST_VMID, MOST_VMID = 100, 999_999_999

VMID_TWICE = Kind(
    code="E-SITE-VMID-TWICE",
    summary="Two guests have the same vmid",
    remedy="Give one of them another `vmid`, or move `vmid_base`.",
)
VMID_SHARED = Kind(
    code="W-SITE-VMID-SHARED",
    summary="Guests of two envs have the same vmid",
    remedy="Move `vmid_base` of one of them, unless the two never run on the same cluster.",
    severity=Severity.WARNING,
)
VMID_RANGE = Kind(
    code="E-SITE-VMID-RANGE",
    summary="A vmid is out of range",
    remedy=f"Proxmox knows ids from {LEAST_VMID} to {MOST_VMID}: move `vmid_base`.",
)
NAME_TWICE = Kind(
    code="E-SITE-NAME-TWICE",
    summary="Two guests have the same name",
    remedy="Give one of them another name.",
)


def check_ids(site: Site, found: Diagnostics) -> None:
    """Check names and ids within each env, and ids between envs."""
    elsewhere: dict[int, tuple[str, str | None, GuestEntry]] = {}
    for name, env in site.envs.items():
        names: dict[str, GuestEntry] = {}
        ids: dict[int, GuestEntry] = {}
        for guest in site.guests(name):
            if names.setdefault(guest.name, guest) is not guest:
                found.add(NAME_TWICE, f"'{guest.name}' is there twice in this env.", guest.place(("name",)))
            vmid = vmid_of(guest, env.model.vmid_base)
            if vmid is None or not guest.is_whole:
                continue
            if not LEAST_VMID <= vmid <= MOST_VMID:
                found.add(VMID_RANGE, f"'{guest.name}' would have the vmid {vmid}.", guest.place(("vmid",)))
            elif ids.setdefault(vmid, guest) is not guest:
                _add_twice(found, vmid, ids[vmid], guest)
            else:
                _check_elsewhere(found, elsewhere, vmid, (name, env.model.node, guest))


def _add_twice(found: Diagnostics, vmid: int, first: GuestEntry, second: GuestEntry) -> None:
    detail = f"'{first.name}' and '{second.name}' both have the vmid {vmid}."
    found.add(VMID_TWICE, detail, second.place(("vmid",), ("vm_id",)))


def _check_elsewhere(
    found: Diagnostics,
    elsewhere: dict[int, tuple[str, str | None, GuestEntry]],
    vmid: int,
    here: tuple[str, str | None, GuestEntry],
) -> None:
    env, node, guest = here
    other_env, other_node, other = elsewhere.setdefault(vmid, here)
    if other_env != env:
        kind = VMID_TWICE if node is not None and node == other_node else VMID_SHARED
        found.add(
            kind,
            f"'{guest.name}' has the vmid {vmid}, and so has '{other.name}' of the env '{other_env}'.",
            guest.place(("vmid",), ("vm_id",)),
            also=(other.place(("vmid",), ("vm_id",)),),
        )
