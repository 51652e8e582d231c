"""Numbers for guests whose configuration gives none, without two guests ever getting the same one.

Within this process a number is handed out once. Another process may take it in the meantime: then Proxmox
refuses to make the guest, and the caller asks for another.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError

if TYPE_CHECKING:
    from stackyard.clients import proxmox
    from stackyard.provider.settings import Settings

__all__ = ["VmIdTakenError", "VmIds", "make_taken_error", "says_taken"]

_LARGEST = 999_999_999
# Anyone who takes a number in the meantime is found out when the guest is created.
_FRESH_S = 10.0
# How Proxmox refuses an id that a guest has: to create, to clone, and when asked for the next free one.
_TAKEN = re.compile(r"\b(?:VM|CT) \d+(?: already exists|: config file already exists)")
_NODE = re.compile(r"already exists on node '([^']+)'")
_KINDS = {"qemu": "VM", "lxc": "container"}


class VmIdTakenError(InvalidInputError):
    """A guest asks for a vm id that another guest of the cluster has."""

    code = "E-PROVIDER-VM-ID-TAKEN"
    summary = "The vm id is taken"
    default_remedy = "Choose another vm_id or leave it out, or import the guest that has it."


def says_taken(text: str) -> bool:
    """Return whether Proxmox refused a call because a guest has the vm id."""
    return bool(_TAKEN.search(text))


async def make_taken_error(client: proxmox.Client, vm_id: int, refusal: str) -> VmIdTakenError:
    """Return the error for a vm id that is taken: by what, where, and what to do.

    Args:
        client: The door to the API.
        vm_id: The id.
        refusal: What Proxmox said, which may name the node of a guest that we may not see.
    """
    listed: list[dict[str, Any]] = await client.get("/cluster/resources", {"type": "vm"})
    guest = next((one for one in listed if one.get("vmid") == vm_id), None)
    if guest is None:
        where = f" on {match[1]}" if (match := _NODE.search(refusal)) else ""
        return VmIdTakenError(
            f"The vm id {vm_id} is taken by a guest{where} that the token may not see.",
            remedy=f"Choose another vm_id or leave it out. To see what has it, give the token VM.Audit on "
            f"/vms/{vm_id}.",
        )
    node, kind = str(guest.get("node")), _KINDS.get(str(guest.get("type")), "guest")
    name = f" {guest['name']}" if guest.get("name") else ""
    return VmIdTakenError(
        f"The vm id {vm_id} is taken: {kind}{name} on {node} has it.",
        remedy=f"Choose another vm_id or leave it out; to manage that {kind}, import {node}/{vm_id}.",
    )


class VmIds:
    """Hands out numbers that no guest has."""

    def __init__(self) -> None:
        self._given: set[int] = set()
        self._used: set[int] = set()
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()
        self._lowest = 0

    async def reserve(self, client: proxmox.Client, settings: Settings) -> int:
        """Return a number that no guest has and no one else was given.

        Raises:
            ProxmoxError: Proxmox does not say which are free.
        """
        async with self._lock:
            if time.monotonic() - self._read_at > _FRESH_S:
                guests = await client.get("/cluster/resources", {"type": "vm"})
                self._used = {int(guest["vmid"]) for guest in guests if guest.get("vmid")}
                self._read_at = time.monotonic()
            found = await self._choose(client, settings, self._used | self._given)
            self._given.add(found)
            return found

    async def _choose(self, client: proxmox.Client, settings: Settings, used: set[int]) -> int:
        if settings.random_vm_ids is not None:
            first, last = settings.random_vm_ids
            free = [number for number in range(first, last + 1) if number not in used]
            if free:
                return random.choice(free)  # noqa: S311 - a number, not a secret
        if not self._lowest:
            # Where numbers begin is a setting of the cluster, which this call respects.
            self._lowest = int(await client.get("/cluster/nextid"))
        return next(number for number in range(self._lowest, _LARGEST) if number not in used)

    def reject(self, vm_id: int) -> None:
        """Note that a number turned out to be taken, so that it is not given again."""
        self._given.add(vm_id)
