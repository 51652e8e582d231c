"""Which privilege each option of a container needs, and what Proxmox keeps to root@pam."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.api.nodes.lxc.networks import is_network, parse_network
from pvelab.server.params import properties
from pvelab.server.params.texts import split_list
from pvelab.server.problems import not_permitted
from pvelab.world.bridges import zone_of
from pvelab.world.storage.volume_access import check_volume_access

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["OptionCheck", "check_bridge", "check_container"]

_PRIVILEGES: Mapping[str, tuple[str, ...]] = {
    "VM.Config.CPU": ("cores", "cpuunits", "cpulimit"),
    "VM.Config.Memory": ("memory", "swap"),
    "VM.Config.Network": ("nameserver", "searchdomain", "hostname"),
}
_BY_OPTION = {option: privilege for privilege, options in _PRIVILEGES.items() for option in options}
_NOTHING: Mapping[str, Any] = {}


def check_container(call: Call, *privileges: str, vmid: int | None = None, pool: str | None = None) -> None:
    """Refuse unless the caller has privileges on a container, or on the pool that it is to be in.

    Raises:
        PveError: 403.
    """
    if pool is None or not call.may(f"/pool/{pool}", *privileges):
        call.check(f"/vms/{call.vmid if vmid is None else vmid}", *privileges)


def check_bridge(call: Call, text: str) -> None:
    """Refuse a network device on a bridge (or a VLAN of it) that the caller may not use.

    Raises:
        PveError: 403.
    """
    network = parse_network(call.world, text)
    bridge = network.get("bridge")
    if call.is_root or not bridge:
        return
    path = f"/sdn/zones/{zone_of(call.store, str(bridge))}/{bridge}"
    tags = [str(network["tag"])] if network.get("tag") else []
    tags += split_list(str(network.get("trunks", "")))
    for tag in tags:
        call.check(f"{path}/{tag}", "SDN.Use")
    if not tags:
        call.check(path, "SDN.Use")


class OptionCheck:
    """Checks the options that one call sets or removes.

    Args:
        call: The call.
        old: The configuration as it is.
        unprivileged: Whether the container is (to be) unprivileged.
        pool: The pool that it is to be in.
    """

    def __init__(
        self,
        call: Call,
        *,
        unprivileged: bool,
        old: Mapping[str, Any] | Document = _NOTHING,
        pool: str | None = None,
    ) -> None:
        self._call = call
        self._old = old
        self._unprivileged = unprivileged
        self._pool = pool

    def check_set(self, values: Mapping[str, Any]) -> None:
        """Refuse unless the caller may give options these values.

        Raises:
            PveError: 403, or the text by which Proxmox keeps an option to root.
        """
        for option, value in values.items():
            self._check(option, str(value))

    def check_delete(self, options: Iterable[str]) -> None:
        """Refuse unless the caller may remove options.

        Raises:
            PveError: 403, or the text by which Proxmox keeps an option to root.
        """
        for option in options:
            self._check(option, None)

    def _check(self, option: str, value: str | None) -> None:
        if self._call.is_root:
            return
        if mountpoints.is_mount_point(option):
            self._check_mount_point(option, value)
        elif is_network(option):
            self._check_network(option, value)
        elif re.fullmatch(r"dev\d+", option):
            raise not_permitted("configuring device passthrough is only allowed for root@pam")
        elif option == "features":
            self._check_features(value)
        elif option == "hookscript":
            raise not_permitted("changing the hookscript is only allowed for root@pam")
        else:
            self._require(_BY_OPTION.get(option, "VM.Config.Options"))

    def _check_mount_point(self, option: str, value: str | None) -> None:
        self._require("VM.Config.Disk")
        if value is None:
            return
        volume = str(mountpoints.parse_mount_point(self._call.world.facts, option, value)["volume"])
        kind = mountpoints.mount_type(volume)
        if kind is not MountType.VOLUME:
            raise not_permitted(f"mount point type {kind} is only allowed for root@pam")
        new = mountpoints.parse_new_disk(volume)
        if new is not None:
            self._call.check(f"/storage/{new[0]}", "Datastore.AllocateSpace")
        elif ":" in volume:
            check_volume_access(self._call, volume, "rootdir", self._call.vmid)

    def _check_network(self, option: str, value: str | None) -> None:
        self._require("VM.Config.Network")
        for text in (self._old.get(option), value):
            if text:
                check_bridge(self._call, str(text))

    def _check_features(self, value: str | None) -> None:
        if not self._unprivileged:
            raise not_permitted(
                "changing feature flags for privileged container is only allowed for root@pam"
            )
        old, new = self._features(self._old.get("features")), self._features(value)
        changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
        if changed - {"nesting"}:
            raise not_permitted("changing feature flags (except nesting) is only allowed for root@pam")
        if changed:
            self._require("VM.Allocate")

    def _features(self, text: Any) -> dict[str, Any]:
        schema = self._call.world.facts.schema("POST /nodes/{node}/lxc", "features")["format"]
        return properties.parse(schema, str(text)) if text else {}

    def _require(self, privilege: str) -> None:
        check_container(self._call, privilege, pool=self._pool)
