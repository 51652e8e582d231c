"""Changes of a VM's configuration: staged as pending, applied at once or at the next start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives, hotplug
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.world.storage.volume_features import owner_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Changes", "cdrom_volumes", "cloudinit_volumes", "disk_volumes", "effective"]

_TOLD_CLOUDINIT = re.compile(r"name|net\d+")
_STATE_OF_SUSPENDED = ("lock", "vmstate", "runningmachine", "runningcpu")


def effective(guest: Document) -> dict[str, Any]:
    """Return the configuration with everything pending applied, as `GET config` shows it."""
    merged = {**guest["config"], **guest["pending"]}
    return {key: value for key, value in merged.items() if key not in guest["pending_delete"] and value != ""}


def disk_volumes(world: World, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the volumes of a configuration's disks by key; CD drives, cloud-init's too, have none."""
    found = {}
    for key in drives.drive_keys(config):
        drive = drives.parse_drive(world.facts, key, str(config[key]))
        if not drives.is_cdrom(drive):
            found[key] = str(drive["file"])
    return found


def cloudinit_volumes(world: World, config: Mapping[str, Any]) -> set[str]:
    """Return the volumes of a configuration's cloud-init drives."""
    read = (drives.parse_drive(world.facts, key, str(config[key])) for key in drives.drive_keys(config))
    return {str(drive["file"]) for drive in read if drives.is_cloudinit(drive)}


def cdrom_volumes(world: World, config: Mapping[str, Any]) -> list[str]:
    """Return the images in a configuration's CD drives, cloud-init's not among them."""
    read = [drives.parse_drive(world.facts, key, str(config[key])) for key in drives.drive_keys(config)]
    inside = [str(one["file"]) for one in read if drives.is_cdrom(one) and not drives.is_cloudinit(one)]
    return [volid for volid in inside if ":" in volid]


class Changes:
    """One change of one VM, made inside a transaction.

    Attributes:
        errors: What could not be plugged into the running VM, by option; it stays pending.
    """

    def __init__(self, world: World, guest: Document) -> None:
        self._world = world
        self._guest = guest
        self.config: dict[str, Any] = dict(guest["config"])
        self.pending: dict[str, Any] = dict(guest["pending"])
        self.pending_delete: dict[str, Any] = dict(guest["pending_delete"])
        self.cloudinit: dict[str, Any] = dict(guest.get("cloudinit") or {})
        self.errors: dict[str, str] = {}

    @property
    def _running(self) -> bool:
        return bool(self._guest["status"] == "running")

    def delete(self, options: Iterable[str], *, force: bool = False) -> None:
        """Stage the removal of options; those that are not set do not matter.

        Raises:
            PveError: The VM is protected and the option is a disk, or a snapshot needs an unused one.
        """
        for option in options:
            value = self.config.get(option, self.pending.get(option))
            if value is None:
                continue
            staged = self.pending.pop(option, None)
            self._leave_boot_order(option)
            if option.startswith("unused"):
                self._delete_unused(option, str(value).partition(",")[0])
            elif option == "vmstate":
                self._delete_state(str(value))
            else:
                if drives.is_drive(option):
                    self._protect(f"can't remove drive '{option}'")
                    if staged is not None:
                        self._retire(option, str(staged), by=str(self.config.get(option, "")))
                if option in self.config:
                    self.pending_delete[option] = int(force)

    def set(self, values: Mapping[str, Any]) -> None:
        """Stage new values; a new CD drive can be booted from, where there is an order of that."""
        for option, value in values.items():
            staged = self.pending.pop(option, None)
            if option == "cipassword":
                self._record_cloudinit(option, value)
                self.config[option] = value
            else:
                self.pending[option] = value
            if staged is not None and drives.is_drive(option):
                self._retire(option, str(staged), by=str(value))
            self.pending_delete.pop(option, None)
            if drives.is_drive(option) and "boot" not in values:
                self._join_boot_order(option, str(value))

    def revert(self, options: Iterable[str]) -> None:
        """Drop what is staged for options."""
        for option in options:
            staged = self.pending.pop(option, None)
            if staged is not None and drives.is_drive(option):
                self._retire(option, str(staged), by=str(self.config.get(option, "")))
            self.pending_delete.pop(option, None)

    def apply(self, *, at_start: bool = False) -> Document:
        """Apply what can be applied now, keep the rest staged, and save the VM."""
        cold = at_start or not self._running
        for option, force in sorted(self.pending_delete.items()):
            if option not in self.config:
                del self.pending_delete[option]
            elif cold or hotplug.can_delete(self.config, option):
                self._apply_delete(option, force=bool(force))
        for option, value in list(self.pending.items()):
            if value == self.config.get(option):
                del self.pending[option]
            elif cold or self._can_set(option, value):
                self._apply_set(option, value)
        if at_start or (self._running and "cloudinit" in hotplug.hotplug_features(self.config)):
            self.cloudinit = {}
        self._forget_attached()
        return self._world.guests.update(
            self._guest,
            config=self.config,
            pending=self.pending,
            pending_delete=self.pending_delete,
            cloudinit=self.cloudinit,
        )

    def _can_set(self, option: str, value: Any) -> bool:
        try:
            return hotplug.can_set(self._world, self.config, option, value)
        except PveError as problem:
            self.errors[option] = problem.text
            return False

    def _apply_delete(self, option: str, *, force: bool) -> None:
        del self.pending_delete[option]
        old = self.config.get(option)
        self._record_cloudinit(option, None)
        del self.config[option]
        if old is not None and drives.is_drive(option):
            self._retire(option, str(old), force=force)

    def _apply_set(self, option: str, value: Any) -> None:
        del self.pending[option]
        old = self.config.get(option)
        self._record_cloudinit(option, value)
        if value == "":
            self.config.pop(option, None)
            return
        self.config[option] = value
        if old is not None and drives.is_drive(option):
            self._retire(option, str(old), by=str(value))

    def _record_cloudinit(self, option: str, new: Any) -> None:
        """Remember what the cloud-init drive of a running VM was created from, until it is created again."""
        if not self._running or not (
            hotplug.CLOUDINIT_OPTIONS.fullmatch(option) or _TOLD_CLOUDINIT.fullmatch(option)
        ):
            return
        recorded, old = self.cloudinit.get(option, {}), self.config.get(option)
        if "value" in recorded:
            if new == recorded["value"]:
                del self.cloudinit[option]
        elif recorded:
            if new is None:
                del self.cloudinit[option]
        elif old is not None:
            self.cloudinit[option] = {"value": old}
        elif new is not None:
            self.cloudinit[option] = {"added": 1}

    def _delete_unused(self, option: str, volume: str) -> None:
        self._protect(f"can't remove unused disk '{volume}'")
        if owner_of(volume) == self._guest["vmid"]:
            if self._is_used(volume, but=option) or self._in_snapshot(volume):
                raise PveError(f"unable to delete '{volume}' - volume is still in use (snapshot?)")
            self._free(volume)
        self.config.pop(option, None)

    def _delete_state(self, volume: str) -> None:
        self._protect(f"can't remove vmstate '{volume}'")
        self._free(volume)
        for key in _STATE_OF_SUSPENDED:
            self.config.pop(key, None)

    def _retire(self, option: str, text: str, *, by: str | None = None, force: bool = False) -> None:
        """Let go of a drive's volume: cloud-init is freed, a disk of the VM's own is kept as unused."""
        drive = drives.parse_drive(self._world.facts, option, text)
        volume = str(drive["file"])
        if by and drives.parse_drive(self._world.facts, option, by)["file"] == volume:
            return
        if drives.is_cloudinit(drive):
            self._free(volume)
            self.cloudinit = {}
        elif not drives.is_cdrom(drive) and ":" in volume and owner_of(volume) == self._guest["vmid"]:
            if self._is_used(volume):
                return
            if force and not self._in_snapshot(volume):
                self._free(volume)
            else:
                self.config[self._unused_key()] = volume

    def _in_snapshot(self, volume: str) -> bool:
        return any(
            volume in disk_volumes(self._world, snapshot["config"]).values()
            for snapshot in self._guest["snapshots"].values()
        )

    def _is_used(self, volume: str, but: str = "") -> bool:
        values = (*self.config.items(), *self.pending.items())
        return any(
            str(value).partition(",")[0] == volume
            for key, value in values
            if key != but and (drives.is_drive(key) or key.startswith("unused"))
        )

    def _forget_attached(self) -> None:
        """Unlist unused disks that are disks again."""
        attached = {*disk_volumes(self._world, self.config).values()}
        attached |= {*disk_volumes(self._world, self.pending).values()}
        for key in [key for key in self.config if key.startswith("unused")]:
            if str(self.config[key]).partition(",")[0] in attached:
                del self.config[key]

    def _unused_key(self) -> str:
        free = (f"unused{n}" for n in range(256) if f"unused{n}" not in self.config)
        found = next(free, None)
        if found is None:
            raise PveError("Too many unused volumes - please delete them first.")
        return found

    def _free(self, volume: str) -> None:
        if ":" in volume:
            self._world.volumes.free(volume, str(self._guest["node"]))

    def _boot_order(self) -> list[str]:
        boot = str(self.pending.get("boot", self.config.get("boot", "")))
        return split_list(boot.removeprefix("order=")) if boot.startswith("order=") else []

    def _join_boot_order(self, option: str, value: str) -> None:
        order = self._boot_order()
        drive = drives.parse_drive(self._world.facts, option, value)
        if order and option not in order and drives.is_cdrom(drive) and not drives.is_cloudinit(drive):
            self.pending["boot"] = drives.boot_order([*order, option])

    def _leave_boot_order(self, option: str) -> None:
        order = self._boot_order()
        if option in order:
            order.remove(option)
            self.pending["boot"] = drives.boot_order(order)

    def _protect(self, what: str) -> None:
        if self.config.get("protection"):
            raise PveError(f"{what} - protection mode enabled")
