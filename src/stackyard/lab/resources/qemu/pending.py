"""Changes of a VM's configuration: staged as pending, applied at once or at the next start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError
from stackyard.lab.resources.qemu import drives
from stackyard.lab.resources.qemu.disks import owner_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["Changes", "effective"]

# What QEMU need not know of, so that it takes effect on a running VM at once.
_AT_ONCE = frozenset(
    (
        *("description", "name", "onboot", "startup", "protection", "tags", "lock", "hookscript", "shares"),
        *("vmstatestorage", "migrate_downtime", "migrate_speed", "cpulimit", "cpuunits", "boot", "bootdisk"),
        *("cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys"),
        *("balloon", "autostart", "template", "hotplug", "affinity"),
    )
)
_DEFAULT_HOTPLUG = "network,disk,usb"


def effective(guest: Document) -> dict[str, Any]:
    """Return the configuration with everything pending applied, as `GET config` shows it."""
    merged = {**guest["config"], **guest["pending"]}
    return {key: value for key, value in merged.items() if key not in guest["pending_delete"]}


class Changes:
    """One change of one VM, made inside a transaction."""

    def __init__(self, world: World, guest: Document) -> None:
        self._world = world
        self._guest = guest
        self.config: dict[str, Any] = dict(guest["config"])
        self.pending: dict[str, Any] = dict(guest["pending"])
        self.pending_delete: dict[str, Any] = dict(guest["pending_delete"])

    @property
    def _running(self) -> bool:
        return bool(self._guest["status"] == "running")

    def delete(self, options: Iterable[str], *, force: bool = False) -> None:
        """Stage the removal of options; those that are not set do not matter.

        Raises:
            PveError: The VM is protected and the option is a disk.
        """
        for option in options:
            value = self.config.get(option, self.pending.get(option))
            if value is None:
                continue
            staged = self.pending.pop(option, None)
            if option.startswith("unused"):
                self._protect(f"can't remove unused disk '{value}'")
                self._free(str(value).partition(",")[0])
                self.config.pop(option, None)
                continue
            if drives.is_drive(option):
                self._protect(f"can't remove drive '{option}'")
                if staged is not None:
                    self._retire(option, str(staged))
            self._leave_boot_order(option)
            if option in self.config:
                self.pending_delete[option] = int(force)

    def set(self, values: Mapping[str, Any]) -> None:
        """Stage new values."""
        for option, value in values.items():
            staged = self.pending.get(option)
            if staged is not None and drives.is_drive(option) and staged != value:
                self._retire(option, str(staged), by=str(value))
            self.pending[option] = value
            self.pending_delete.pop(option, None)

    def revert(self, options: Iterable[str]) -> None:
        """Drop what is staged for options."""
        for option in options:
            staged = self.pending.pop(option, None)
            if staged is not None and drives.is_drive(option):
                self._retire(option, str(staged))
            self.pending_delete.pop(option, None)

    def apply(self, *, at_start: bool = False) -> Document:
        """Apply what can be applied now, keep the rest staged, and save the VM."""
        for option, force in list(self.pending_delete.items()):
            if at_start or not self._running or self._can_hotplug(option, self.config.get(option)):
                self._apply_delete(option, force=bool(force))
        for option, value in list(self.pending.items()):
            if value == self.config.get(option):
                del self.pending[option]
            elif at_start or not self._running or self._can_hotplug(option, value):
                self._apply_set(option, value)
        return self._world.guests.update(
            self._guest, config=self.config, pending=self.pending, pending_delete=self.pending_delete
        )

    def _apply_delete(self, option: str, *, force: bool) -> None:
        del self.pending_delete[option]
        old = self.config.pop(option, None)
        if old is not None and drives.is_drive(option):
            self._retire(option, str(old), force=force)

    def _apply_set(self, option: str, value: Any) -> None:
        del self.pending[option]
        old = self.config.get(option)
        self.config[option] = value
        if old is not None and drives.is_drive(option):
            self._retire(option, str(old), by=str(value))

    def _retire(self, option: str, text: str, *, by: str | None = None, force: bool = False) -> None:
        """Let go of a drive's volume: cloud-init is freed, a disk of the VM's own is kept as unused."""
        drive = drives.parse_drive(self._world.facts, option, text)
        volume = str(drive["file"])
        if by is not None and drives.parse_drive(self._world.facts, option, by)["file"] == volume:
            return
        if drives.is_cloudinit(drive):
            self._free(volume)
        elif not drives.is_cdrom(drive) and ":" in volume and owner_of(volume) == self._guest["vmid"]:
            if force:
                self._free(volume)
            elif not self._is_used(volume):
                self.config[self._unused_key()] = volume

    def _is_used(self, volume: str) -> bool:
        values = (*self.config.items(), *self.pending.items())
        return any(
            str(value).partition(",")[0] == volume
            for key, value in values
            if drives.is_drive(key) or key.startswith("unused")
        )

    def _unused_key(self) -> str:
        return next(f"unused{n}" for n in range(256) if f"unused{n}" not in self.config)

    def _free(self, volume: str) -> None:
        if ":" in volume:
            self._world.volumes.free(volume, str(self._guest["node"]))

    def _leave_boot_order(self, option: str) -> None:
        boot = str(self.pending.get("boot", self.config.get("boot", "")))
        order = split_list(boot.removeprefix("order=")) if boot.startswith("order=") else []
        if option in order:
            order.remove(option)
            self.pending["boot"] = f"order={';'.join(order)}" if order else ""

    def _protect(self, what: str) -> None:
        if self.config.get("protection"):
            raise PveError(f"{what} - protection mode enabled")

    def _can_hotplug(self, option: str, value: Any) -> bool:
        if option in _AT_ONCE or re.fullmatch(r"ipconfig\d+|unused\d+", option):
            return True
        features = str(self.config.get("hotplug", _DEFAULT_HOTPLUG))
        enabled = split_list(_DEFAULT_HOTPLUG if features == "1" else features)
        if re.fullmatch(r"net\d+", option):
            return "network" in enabled
        if re.fullmatch(r"usb\d+", option):
            return "usb" in enabled
        if drives.is_drive(option):
            cdrom = "media=cdrom" in str(value) and "media=cdrom" in str(self.config.get(option, value))
            return cdrom or ("disk" in enabled and option.startswith(("scsi", "virtio")))
        if option in ("cores", "sockets", "vcpus"):
            return option == "vcpus" and "cpu" in enabled
        return option == "memory" and "memory" in enabled
