"""Changes of a container's configuration: staged as pending, applied at once or at the next start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.disks import free_volume
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.api.nodes.lxc.networks import complete_network, is_network
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from pvelab.world.storage.allocation import Worker
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Changes", "effective"]

_AT_ONCE = frozenset(
    ("description", "onboot", "startup", "protection", "hostname", "hookscript", "cores", "tags", "lock")
)
_THROUGH_CGROUPS = frozenset(("cpulimit", "cpuunits", "memory", "swap"))
_REQUIRED = frozenset(("memory", "rootfs", "ostype"))


def effective(guest: Document) -> dict[str, Any]:
    """Return the configuration with everything pending applied, as `GET config` shows it."""
    merged = {**guest["config"], **guest["pending"]}
    return {key: value for key, value in merged.items() if key not in guest["pending_delete"]}


class Changes:
    """One change of one container, made inside a transaction."""

    def __init__(self, world: World, guest: Document, worker: Worker) -> None:
        self._world = world
        self._guest = guest
        self._worker = worker
        self._vmid = int(guest["vmid"])
        self.config: dict[str, Any] = dict(guest["config"])
        self.pending: dict[str, Any] = dict(guest["pending"])
        self.pending_delete: dict[str, Any] = dict(guest["pending_delete"])

    @property
    def _running(self) -> bool:
        return bool(self._guest["status"] == "running")

    def revert(self, options: Iterable[str]) -> None:
        """Drop what is staged for options."""
        for option in options:
            self.pending.pop(option, None)
            self.pending_delete.pop(option, None)

    def delete(self, options: Iterable[str]) -> None:
        """Stage the removal of options; those that are not set do not matter.

        Raises:
            PveError: The option is required or read-only, or a volume of a protected container.
        """
        for option in options:
            if option not in self.config and option not in self.pending:
                continue
            if option in _REQUIRED:
                raise PveError(f"unable to delete required option '{option}'")
            if option == "unprivileged":
                raise PveError(f"unable to delete read-only option: '{option}'")
            if re.fullmatch(r"(?:unused|mp)\d+", option):
                self._protect(f"can't remove CT {self._vmid} drive '{option}'")
            self.pending.pop(option, None)
            if option in self.config:
                self.pending_delete[option] = 0

    def set(self, values: Mapping[str, Any]) -> None:
        """Stage new values.

        Raises:
            PveError: A volume of a protected container is among them.
        """
        for option, value in values.items():
            if mountpoints.is_mount_point(option):
                self._protect(f"can't update CT {self._vmid} drive '{option}'")
            self.pending[option] = value
            self.pending_delete.pop(option, None)

    def list_mounts(self, options: Container[str] | None = None) -> dict[str, str]:
        """Return the staged mount points that `apply` would mount now, before their volumes are created."""
        return {
            option: str(value)
            for option, value in self.pending.items()
            if re.fullmatch(r"mp\d+", option)
            and (options is None or (option in options and self._can_apply(option)))
            and value != self.config.get(option)
        }

    def apply(self, options: Container[str] | None = None) -> Document:
        """Apply those of some options that can be applied now, and save the container.

        Args:
            options: The options that a call changed; None applies everything, as a start does.
        """
        for option in sorted(self.pending_delete):
            if options is None or (option in options and self._can_remove(option)):
                self._apply_delete(option)
        for option in sorted(self.pending):
            if self.pending[option] == self.config.get(option):
                del self.pending[option]
            elif options is None or (option in options and self._can_apply(option)):
                self._apply_set(option)
        self._tidy()
        return self._world.guests.update(
            self._guest, config=self.config, pending=self.pending, pending_delete=self.pending_delete
        )

    def _can_remove(self, option: str) -> bool:
        if not self._running or option in _AT_ONCE or option in ("swap", "cpulimit", "cpuunits"):
            return True
        return re.fullmatch(r"unused\d+|net\d+", option) is not None

    def _can_apply(self, option: str) -> bool:
        if not self._running or option in _AT_ONCE or option in _THROUGH_CGROUPS or is_network(option):
            return True
        # A new mount point or device is plugged in; one in place of another waits for the next start.
        return re.fullmatch(r"(?:mp|dev)\d+", option) is not None and option not in self.config

    def _apply_delete(self, option: str) -> None:
        del self.pending_delete[option]
        value = self.config.pop(option, None)
        if value is None:
            return
        if re.fullmatch(r"mp\d+", option):
            self._retire(option, str(value))
        elif option.startswith("unused") and not self._is_used(str(value)):
            free_volume(self._world, self._vmid, str(value), str(self._guest["node"]), self._worker)

    def _apply_set(self, option: str) -> None:
        value = self.pending.pop(option)
        if is_network(option):
            value = complete_network(self._world, str(value))
        old = self.config.get(option)
        self.config[option] = value
        if value == "":
            del self.config[option]
        if old is not None and re.fullmatch(r"mp\d+", option):
            self._retire(option, str(old))

    def _retire(self, option: str, text: str) -> None:
        """Keep the volume of a mount point that went as unused, unless something else needs it."""
        volume = str(mountpoints.parse_mount_point(self._world.facts, option, text)["volume"])
        if mountpoints.mount_type(volume) is MountType.VOLUME and not self._is_used(volume):
            mountpoints.add_unused(self.config, volume)

    def _is_used(self, volume: str) -> bool:
        snapshots = [found["config"] for found in self._guest["snapshots"].values()]
        return mountpoints.is_volume_used(self._world.facts, volume, self.config, self.pending, *snapshots)

    def _tidy(self) -> None:
        """Drop unused volumes that are mounted again."""
        for key in [key for key in self.config if key.startswith("unused")]:
            if mountpoints.is_volume_used(self._world.facts, str(self.config[key]), self.config):
                del self.config[key]

    def _protect(self, what: str) -> None:
        if self.config.get("protection"):
            raise PveError(f"{what} - protection mode enabled")
