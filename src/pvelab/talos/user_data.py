"""The machine configuration in the NoCloud user data of a VM, in place of maintenance mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.talos.configuration import (
    ConfigurationError,
    MachineConfig,
    ParseError,
    parse_configuration,
    validate,
)

if TYPE_CHECKING:
    from pvelab.talos.machine import TalosMachine

__all__ = ["read_user_data"]


def read_user_data(machine: TalosMachine) -> MachineConfig | None:
    """Return the configuration that a VM was given by its cloud-init drive, None without a usable one."""
    config = machine.guest["config"]
    given = dict(part.partition("=")[::2] for part in str(config.get("cicustom", "")).split(","))
    if machine.platform != "nocloud" or "user" not in given:
        return None
    volume = machine.world.volumes.find(given["user"], str(machine.guest["node"]))
    if volume is None or "sha256" not in volume:
        return None
    data = machine.world.blobs.read(volume["sha256"])
    # User data of other systems begins with their mark; Talos looks no further then.
    if data.startswith((b"#cloud-config", b"#!")):
        return None
    try:
        found = parse_configuration(data, machine.version)
        validate(found, needs_install=False)
    except (ParseError, ConfigurationError) as err:
        machine.events.add_error("initialize", f"failed to load config: {err}")
        return None
    return found if found.main is not None else None
