"""What QEMU on a node can do: `/nodes/{node}/capabilities`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.machine_versions import BOARDS, REVISIONS, VERSIONS, text_of
from pvelab.server.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = [
    "CPU_FLAGS",
    "CPU_MODELS",
    "index_capabilities",
    "index_qemu",
    "list_cpus",
    "list_flags",
    "list_machines",
    "read_migration",
]

_X86, _ARM = "x86_64", "aarch64"
_INTEL = (
    *("486", "pentium", "pentium2", "pentium3", "coreduo", "core2duo", "Conroe", "Penryn", "Nehalem"),
    *("Nehalem-IBRS", "Westmere", "Westmere-IBRS", "SandyBridge", "SandyBridge-IBRS", "IvyBridge"),
    *("IvyBridge-IBRS", "Haswell", "Haswell-IBRS", "Haswell-noTSX", "Haswell-noTSX-IBRS", "Broadwell"),
    *("Broadwell-IBRS", "Broadwell-noTSX", "Broadwell-noTSX-IBRS", "Skylake-Client", "Skylake-Client-IBRS"),
    *("Skylake-Server", "Skylake-Server-IBRS", "Cascadelake-Server", "Cascadelake-Server-noTSX"),
    *("Cooperlake", "KnightsMill", "Icelake-Server", "Icelake-Server-noTSX", "SapphireRapids"),
    *("GraniteRapids", "SierraForest", "ClearwaterForest"),
)
_AMD = (
    *("athlon", "phenom", "Opteron_G1", "Opteron_G2", "Opteron_G3", "Opteron_G4", "Opteron_G5", "EPYC"),
    *("EPYC-IBPB", "EPYC-Rome", "EPYC-Milan", "EPYC-Genoa", "EPYC-Turin"),
)
_PLAIN = ("kvm32", "kvm64", "qemu32", "qemu64", "max")
_LEVELS = ("x86-64-v2", "x86-64-v2-AES", "x86-64-v3", "x86-64-v4")
_ARMS = ("a64fx", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a76", "neoverse-n1", "neoverse-v1")
CPU_MODELS: Mapping[str, Mapping[str, str]] = {
    _X86: {
        **dict.fromkeys(_INTEL, "GenuineIntel"),
        **dict.fromkeys(_AMD, "AuthenticAMD"),
        **dict.fromkeys((*_PLAIN, *_LEVELS, "host"), "default"),
    },
    _ARM: {**dict.fromkeys(_ARMS, "ARM"), "max": "default"},
}
CPU_FLAGS = (
    *("aes", "amd-no-ssb", "amd-ssbd", "hv-evmcs", "hv-tlbflush", "ibpb", "md-clear", "nested-virt", "pcid"),
    *("pdpe1gb", "spec-ctrl", "ssbd", "virt-ssbd"),
)


@route("GET /nodes/{node}/capabilities")
def index_capabilities(_call: Call) -> Any:
    """List the kinds of guests."""
    return [{"name": "qemu"}]


@route("GET /nodes/{node}/capabilities/qemu")
def index_qemu(_call: Call) -> Any:
    """List what there is of QEMU."""
    return [{"name": name} for name in ("cpu", "cpu-flags", "machines", "migration")]


@route("GET /nodes/{node}/capabilities/qemu/cpu")
def list_cpus(call: Call) -> Any:
    """List the models of CPUs, those of the cluster's own to who may see them."""
    models = CPU_MODELS[str(call.params.get("arch", _X86))]
    rows = [{"name": name, "custom": 0, "vendor": vendor} for name, vendor in models.items()]
    for name, model in call.store.items("cpu_models").items():
        if call.may("/nodes", "Sys.Audit") or call.may(f"/nodes/{call.node}", "Sys.Audit"):
            vendor = models.get(str(model.get("reported-model", "kvm64")), "default")
            rows.append({"name": f"custom-{name.removeprefix('custom-')}", "custom": 1, "vendor": vendor})
    return rows


@route("GET /nodes/{node}/capabilities/qemu/cpu-flags")
def list_flags(call: Call) -> Any:
    """List the flags of CPUs that a VM may set."""
    if call.params.get("arch", _X86) != _X86:
        return []
    return [{"name": name, "supported-on": list(call.world.cluster.nodes())} for name in CPU_FLAGS]


@route("GET /nodes/{node}/capabilities/qemu/machines")
def list_machines(call: Call) -> Any:
    """List the machine types with their versions and the revisions of Proxmox, the newest first."""
    is_arm = call.params.get("arch", _X86) == _ARM
    boards = {board: kind for board, kind in BOARDS.items() if (kind == "virt") == is_arm}
    rows: list[dict[str, Any]] = []
    for version in sorted(VERSIONS, reverse=True):
        for revision in range(REVISIONS.get(version, 0), -1, -1):
            said = f"{text_of(version)}{f'+pve{revision}' if revision else ''}"
            rows += ({"id": f"{name}-{said}", "type": kind, "version": said} for name, kind in boards.items())
    return rows


@route("GET /nodes/{node}/capabilities/qemu/migration")
def read_migration(_call: Call) -> Any:
    """Answer what a migration can take along."""
    return {"has-dbus-vmstate": 1}
