"""Applying a configuration to a machine that has one: at once, with a reboot, later, or for a while."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status

from pvelab.talos import disks
from pvelab.talos.maintenance import check_configuration
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pvelab.talos.configuration import MachineConfig
    from pvelab.talos.machine import TalosMachine

__all__ = ["apply_configuration"]

_MODES = pb.ApplyConfigurationRequest.Mode
_LIVE_MACHINE = frozenset(
    (
        "ca acceptedCAs time certSANs install network sysfs sysctls logging controlPlane kubelet kernel"
        " registries pods seccompProfiles nodeAnnotations nodeLabels nodeTaints"
    ).split()
)
_LIVE_FEATURES = frozenset(
    "kubernetesTalosAPIAccess kubePrism hostDNS imageCache nodeAddressSortAlgorithm".split()
)
_TRY_S = 60.0


async def apply_configuration(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    """Answer `ApplyConfiguration` of a machine that has a configuration."""
    config = check_configuration(machine, request.data)
    old = machine.config
    if config.main is None or old is None:
        text = "the applied machine configuration doesn't contain v1alpha1 config"
        raise GRPCError(Status.INVALID_ARGUMENT, text)
    needs_reboot = _fixed_part(config) != _fixed_part(old)
    mode = request.mode
    if mode == _MODES.AUTO:
        mode = _MODES.REBOOT if needs_reboot else _MODES.NO_REBOOT
    if mode in (_MODES.NO_REBOOT, _MODES.TRY) and needs_reboot:
        text = "the configuration change can't be applied in immediate mode"
        raise GRPCError(Status.INVALID_ARGUMENT, f"{text}\ndiff: the fixed part of the configuration changes")
    details = _DETAILS[mode]
    if request.dry_run:
        details = f"Dry run summary:\n{details} (skipped in dry-run)."
    yield pb.ApplyConfigurationResponse(messages=[pb.ApplyConfiguration(mode=mode, mode_details=details)])
    if not request.dry_run:
        _do(machine, config, mode, float(request.try_mode_timeout.seconds) or _TRY_S)


_DETAILS: Mapping[int, str] = {
    _MODES.REBOOT: "Applied configuration with a reboot",
    _MODES.NO_REBOOT: "Applied configuration without a reboot",
    _MODES.STAGED: "Staged configuration to be applied after the next reboot",
    _MODES.TRY: "Applied configuration without a reboot\n"
    "The config is applied in 'try' mode and will be automatically reverted back",
}


def _do(machine: TalosMachine, config: MachineConfig, mode: int, try_s: float) -> None:
    if mode == _MODES.REBOOT:
        machine.command("apply", config=config)
    elif mode == _MODES.STAGED:
        disks.write_state(machine, staged=config.text)
    else:
        before = disks.read_state(machine).get("config")
        disks.write_state(machine, config=config.text)
        if mode == _MODES.TRY:
            machine.later(_revert(machine, config.text, str(before), try_s))


async def _revert(machine: TalosMachine, tried: str, before: str, seconds: float) -> None:
    await machine.world.clock.sleep(seconds)
    # Another configuration may have been applied meanwhile, which stays.
    if disks.read_state(machine).get("config") == tried:
        disks.write_state(machine, config=before)


def _fixed_part(config: MachineConfig) -> Any:
    """Return what of a configuration a running machine cannot change."""
    main: Any = copy.deepcopy(dict(config.main or {}))
    for name in ("debug", "cluster"):
        main.pop(name, None)
    machine = main.get("machine") or {}
    for name in _LIVE_MACHINE:
        machine.pop(name, None)
    features = machine.get("features")
    if isinstance(features, dict):
        machine["features"] = {key: value for key, value in features.items() if key not in _LIVE_FEATURES}
        if not machine["features"]:
            del machine["features"]
    return main
