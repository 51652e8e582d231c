"""What a machine without a configuration answers, beside its resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status

from pvelab.talos.configuration import (
    ConfigurationError,
    MachineConfig,
    ParseError,
    parse_configuration,
    validate,
)
from pvelab.talos.hardware import find_install_disk, list_disks
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pvelab.talos.machine import TalosMachine

__all__ = ["ANSWERS", "check_configuration"]

_DRY_RUN = "Dry run summary:\nNode is running in maintenance mode and does not have a config yet.\n"
_MODES = pb.ApplyConfigurationRequest.Mode


async def _apply(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    if request.mode not in (_MODES.AUTO, _MODES.REBOOT, _MODES.TRY):
        name = _MODES.Name(request.mode).lower().replace("_", "-")
        text = f"apply configuration --mode='{name}' is not supported in maintenance mode"
        raise GRPCError(Status.UNIMPLEMENTED, text)
    config = check_configuration(machine, request.data)
    if config.main is None:
        # Documents of the network alone are taken, and the machine stays in maintenance mode.
        yield pb.ApplyConfigurationResponse(messages=[pb.ApplyConfiguration()])
        return
    details = _DRY_RUN if request.dry_run else ""
    yield pb.ApplyConfigurationResponse(messages=[pb.ApplyConfiguration(mode_details=details)])
    if not request.dry_run:
        machine.command("apply", config=config)


def check_configuration(machine: TalosMachine, data: bytes) -> MachineConfig:
    """Return a configuration that a machine takes.

    Raises:
        GRPCError: It cannot be read, is not valid, or does not fit the machine; in this order.
    """
    try:
        config = parse_configuration(data, machine.version)
    except ParseError as err:
        raise GRPCError(Status.UNKNOWN, f"failed to parse config: {err}") from err
    try:
        validate(config, needs_install=machine.mode == "metal")
    except ConfigurationError as err:
        raise GRPCError(Status.INVALID_ARGUMENT, f"configuration validation failed: {err}") from err
    selector = config.install.get("diskSelector")
    if selector and find_install_disk(list_disks(machine.world, machine.guest), config.install) is None:
        text = "1 error occurred:\n\t* no disk found matching provided parameters\n\n"
        raise GRPCError(Status.INVALID_ARGUMENT, f"runtime configuration validation failed: {text}")
    return config


async def list_disks_of(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    """Answer `StorageService/Disks`."""
    found = [disk.message() for disk in list_disks(machine.world, machine.guest)]
    yield pb.DisksResponse(messages=[pb.Disks(disks=found)])


ANSWERS: Mapping[str, Callable[[TalosMachine, Any], AsyncIterator[Any]]] = {
    "ApplyConfiguration": _apply,
    "Disks": list_disks_of,
}
