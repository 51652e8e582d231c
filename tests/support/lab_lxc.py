"""What tests of containers in the lab have in common."""

from __future__ import annotations

from typing import Any

from tests.support.lab import LabClient
from tests.support.lab_qemu import change, done, failed, used, with_lab

from pvelab.world.storage.contents import put_stand_in

__all__ = [
    "TEMPLATE",
    "L",
    "as_root",
    "change",
    "done",
    "failed",
    "make",
    "plant_template",
    "used",
    "with_lab",
]

L = "/nodes/pve1/lxc"
TEMPLATE = "local:vztmpl/ubuntu-24.04-standard_24.04-2_amd64.tar.zst"


def plant_template(api: LabClient, volid: str = TEMPLATE, node: str = "pve1") -> None:
    """Put an OS template into a storage."""
    with api.world.store.transaction():
        put_stand_in(api.world, volid, node, 100 * 2**20)


async def as_root(api: LabClient) -> LabClient:
    """Return a client with a ticket of root@pam, who may do what no token may."""
    return await api.with_password("root@pam", api.running.password)


async def make(api: LabClient, vmid: int = 100, **params: Any) -> dict[str, Any]:
    """Make a container on the first node (with a root of 1 GiB) and return its configuration."""
    plant_template(api)
    given = {"rootfs": "local-lvm:1", "ostemplate": TEMPLATE, **params}
    await done(api, await api.post(L, vmid=vmid, **given))
    config: dict[str, Any] = await api.get(f"{L}/{vmid}/config")
    return config
