"""The file of a node in the site, made from what the node says of itself."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import usable_address
from stackyard.scenario.actions.setup import run_json
from stackyard.scenario.failures import MachineUnfitError
from stackyard.scenario.model import ActionResult
from stackyard.sources.site.edit import merge_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.scenario.context import Context

__all__ = ["GenerateNodeConfig", "format_merge_message", "read_machine_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateNodeConfig:
    """Writes nodes/NAME.yaml. What it says already stays, unless the user wants it overwritten."""

    async def run(self, context: Context) -> ActionResult:
        """Ask the node and write the file."""
        name = await read_machine_name(context)
        node = (await context.sh("hostname -s")).strip()
        fields = await _fields(context, name, node)
        merged = merge_node(context.root, name, fields, overwrites=context.options.force)
        updates = {"node_name": name, "node_file": str(merged.path)}
        return ActionResult(success=True, message=format_merge_message(merged), context_updates=updates)


def format_merge_message(merged: Any) -> str:
    """Say what became of a file of the site."""
    if merged.is_new:
        return f"{merged.path} was written."
    kept = (
        f" It says otherwise about {', '.join(merged.kept)}: kept (--force changes that)."
        if merged.kept
        else ""
    )
    changed = f"{merged.path}: {', '.join(merged.changed)} written." if merged.changed else ""
    return (changed or f"{merged.path} is there already.") + kept


async def read_machine_name(context: Context) -> str:
    """Return what the site calls the machine, or is to call it: its own name, by default."""
    if context.name is None:
        context.name = (await context.sh("hostname -s", as_root=False)).strip()
    return context.name


async def _fields(context: Context, name: str, node: str) -> dict[str, Any]:
    address = await _address(context, node)
    endpoint = "localhost" if context.machine.is_local or address is None else address
    shown = f"[{endpoint}]" if ":" in endpoint else endpoint
    fields: dict[str, Any] = {
        "node": node if node != name else None,
        "host": name if name in context.needed_site.hosts else None,
        "api_endpoint": f"https://{shown}:8006",
        "api_fingerprint": await _fingerprint(context, node),
        "datastore": await _datastore(context, node),
        "ip": address,
    }
    return {key: value for key, value in fields.items() if value is not None}


async def _address(context: Context, node: str) -> str | None:
    """Return the address of the first bridge that has one, else of any interface."""
    known = await run_json(context, f"pvesh get {shlex.quote(f'/nodes/{node}/network')}")
    ordered = sorted(known, key=lambda one: (one.get("iface") != "vmbr0", one.get("type") != "bridge"))
    return next((found for one in ordered if (found := usable_address(one.get("address")))), None)


async def _datastore(context: Context, node: str) -> str:
    storages = await run_json(
        context, f"pvesh get {shlex.quote(f'/nodes/{node}/storage')} --content images --enabled 1"
    )
    usable = [one for one in storages if one.get("active", 1)]
    if not usable:
        raise MachineUnfitError(
            f"{node} has no active storage for disks of guests.",
            remedy="Make one (`pvesm add`), or allow `images` on one that is there, and run this again.",
        )
    # A storage made for disks goes before the folder that everything else is in, too.
    return str(sorted(usable, key=lambda one: (one["storage"] == "local", one["storage"]))[0]["storage"])


async def _fingerprint(context: Context, node: str) -> str | None:
    """Return what the certificate of the API is known by; that of a user goes before Proxmox's own."""
    known: list[Mapping[str, Any]] = await run_json(
        context, f"pvesh get {shlex.quote(f'/nodes/{node}/certificates/info')}"
    )
    by_name = {str(one.get("filename")): one.get("fingerprint") for one in known}
    found = by_name.get("pveproxy-ssl.pem") or by_name.get("pve-ssl.pem")
    return None if found is None else str(found)
