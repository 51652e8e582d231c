"""The memory of a running VM written to a volume, for snapshots with memory and for suspending to disk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.power import RUNNING_MACHINE
from pvelab.server.problems import PveError
from pvelab.world.guests.rows import memory_bytes
from pvelab.world.storage.allocation import Worker, allocate
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volumes import NewVolume

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["allocate_state", "blockers", "check_can_save", "state_storage"]

_MIB = 2**20
_DRIVER_STATE = 500 * _MIB
_BLOCKERS = {"amd-sev": r"amd-sev", "intel-tdx": r"intel-tdx", "virtiofs": r"virtiofs\d+"}
_FALLBACK = "local"
_DEFAULT_CPU = "kvm64"


def blockers(config: Mapping[str, Any]) -> list[str]:
    """Return what a VM has whose state cannot be written down or sent elsewhere."""
    return [name for name, pattern in _BLOCKERS.items() if any(re.fullmatch(pattern, key) for key in config)]


def check_can_save(config: Mapping[str, Any]) -> None:
    """Refuse to write down the memory of a VM that has what cannot be written down.

    Raises:
        PveError: It has.
    """
    found = blockers(config)
    if found:
        raise PveError(
            f"Cannot live-migrate, snapshot (with RAM), or hibernate a VM with: {', '.join(found)}"
        )


def state_storage(world: World, config: Mapping[str, Any]) -> str:
    """Return where the memory goes: the storage that the VM says, else one that it has disks on."""
    if config.get("vmstatestorage"):
        return str(config["vmstatestorage"])
    chosen: dict[bool, str] = {}
    for key in sorted(config):
        storage = str(config[key]).partition(":")[0]
        if re.fullmatch(r"(?:scsi|virtio|sata|ide)\d+", key) and storage in world.storages.all():
            definition = world.storages.config(storage)
            shared = world.storages.is_shared(definition)
            if "media=cdrom" not in str(config[key]) and (shared not in chosen or type_of(definition).files):
                chosen[shared] = storage
    return chosen.get(True, chosen.get(False, _FALLBACK))


async def allocate_state(
    world: World, worker: Worker, guest: Document, name: str, storage: str | None = None
) -> dict[str, Any]:
    """Allocate the volume for the memory of a VM and return what its configuration says of it.

    Raises:
        PveError: The storage refuses.
    """
    config = guest["config"]
    chosen = storage or state_storage(world, config)
    files = type_of(world.storages.config(chosen)).files
    new = NewVolume(
        storage=chosen,
        node=str(guest["node"]),
        vmid=int(guest["vmid"]),
        # Twice the memory: what changes while it is written is written again.
        size=2 * memory_bytes(config) + _DRIVER_STATE,
        format="raw",
        name=f"vm-{guest['vmid']}-state-{name}" + (".raw" if files else ""),
    )
    model = str(config.get("cpu", _DEFAULT_CPU)).partition(",")[0].removeprefix("cputype=")
    return {
        "vmstate": await allocate(world, worker, new),
        "runningmachine": RUNNING_MACHINE,
        "runningcpu": f"{model},enforce,+kvm_pv_eoi,+kvm_pv_unhalt",
    }
