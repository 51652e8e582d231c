"""CPUs of VMs: which models and flags there are, and how many of them a node can give to one VM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.capabilities import CPU_FLAGS, CPU_MODELS
from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["check_cpu", "require_cpu", "require_vcpus"]

_OWN = "custom-"
# There never was such a processor for clients; Proxmox takes the one for servers.
_RENAMED = {"Icelake-Client": "Icelake-Server", "Icelake-Client-noTSX": "Icelake-Server-noTSX"}


def check_cpu(world: World, settings: Mapping[str, Any]) -> None:
    """Refuse settings of a VM whose CPU is of no known model or has flags that a VM may not set.

    Raises:
        PveError: 400, with what is wrong about `cpu`.
    """
    if not settings.get("cpu"):
        return
    try:
        _check(world, _parse(str(settings["cpu"])))
    except PveError as problem:
        raise bad_parameter("cpu", f"invalid format - {problem.text}\n") from problem


def require_cpu(world: World, config: Mapping[str, Any]) -> None:
    """Refuse to start a VM with a CPU that its architecture does not have, or with none that is known.

    Raises:
        PveError: There is no such model.
    """
    if not config.get("cpu"):
        return
    cpu = _parse(str(config["cpu"]))
    _check(world, cpu)
    name, arch = str(cpu["cputype"]), str(config.get("arch", "x86_64"))
    if name.startswith(_OWN):
        name = str(world.store.items("cpu_models")[name.removeprefix(_OWN)].get("reported-model", "kvm64"))
    name = _RENAMED.get(name, name)
    if name not in CPU_MODELS[arch]:
        raise PveError(f"CPU model '{name}' does not exist for configured vCPU architecture '{arch}'")


def require_vcpus(world: World, config: Mapping[str, Any], node: str) -> None:
    """Refuse to start a VM with more virtual CPUs than its node has CPUs.

    Raises:
        PveError: It has more.
    """
    allowed = int(world.cluster.require_node(node)["cpus"])
    if int(config.get("sockets", 1)) * int(config.get("cores", 1)) > allowed:
        raise PveError(f"MAX {allowed} vcpus allowed per VM on this node")


def _parse(text: str) -> Mapping[str, Any]:
    return properties.parse(PROPERTY_FORMATS["pve-vm-cpu-conf"], text)


def _check(world: World, cpu: Mapping[str, Any]) -> None:
    name = str(cpu.get("cputype", ""))
    if not name:
        raise PveError("CPU is missing cputype")
    if name.startswith(_OWN):
        own = name.removeprefix(_OWN)
        if own not in world.store.items("cpu_models"):
            raise PveError(f"Custom cputype '{own}' not found")
    elif name not in _RENAMED and not any(name in models for models in CPU_MODELS.values()):
        raise PveError(f"Built-in cputype '{name}' is not defined (missing 'custom-' prefix?)")
    if any(flag[1:] not in CPU_FLAGS for flag in split_list(str(cpu.get("flags", "")))):
        raise PveError(f"VM-specific CPU flags must be a subset of: {', '.join(sorted(CPU_FLAGS))}")
    if "reported-model" in cpu:
        raise PveError("Property 'reported-model' not allowed in VM-specific CPU config.")
