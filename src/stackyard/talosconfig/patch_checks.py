"""What is wrong with a patch by itself: misspelt keys, documents that a release does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.talosconfig.contract import NEWEST, release_of_kind
from stackyard.talosconfig.deletes import DIRECTIVE, is_delete

if TYPE_CHECKING:
    from stackyard.talosconfig.contract import TalosContract
    from stackyard.talosconfig.documents import Patch

__all__ = ["MOVED", "check_patch"]

UNKNOWN_KEY = Kind(
    code="E-TALOS-PATCH-KEY",
    summary="A patch has a key that Talos does not know",
    remedy="Correct the key; the reference of the machine configuration lists all of them.",
)
UNKNOWN_KIND = Kind(
    code="E-TALOS-PATCH-KIND",
    summary="A patch has a document that this release of Talos does not know",
    remedy="Use the form of this release, or a newer version of Talos.",
)
UNKNOWN_DIRECTIVE = Kind(
    code="E-TALOS-PATCH-DIRECTIVE",
    summary="A patch has a directive that Talos does not know",
    remedy="Use `$patch: delete`; it is the only one.",
)
CONFLICT = Kind(
    code="E-TALOS-PATCH-CONFLICT",
    summary="A patch sets what another document of the configuration sets",
    remedy="Patch the document that is named.",
)

_TOP = ("version", "debug", "persist", "machine", "cluster")
_MACHINE = (
    "type token ca acceptedCAs certSANs controlPlane kubelet pods network disks install files env time "
    "sysctls sysfs registries systemDiskEncryption features udev logging kernel seccompProfiles "
    "baseRuntimeSpecOverrides nodeLabels nodeAnnotations nodeTaints"
).split()
_CLUSTER = (
    "id secret controlPlane clusterName network token aescbcEncryptionSecret secretboxEncryptionSecret ca "
    "acceptedCAs aggregatorCA serviceAccount apiServer controllerManager proxy scheduler discovery etcd "
    "coreDNS externalCloudProvider extraManifests extraManifestHeaders inlineManifests adminKubeconfig "
    "allowSchedulingOnMasters allowSchedulingOnControlPlanes"
).split()
_SECTIONS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    (): _TOP,
    ("machine",): tuple(_MACHINE),
    ("cluster",): tuple(_CLUSTER),
}

# Sections that became documents, since which release, and what the document is called.
MOVED: Mapping[tuple[str, ...], tuple[int, str]] = {
    ("machine", "network", "hostname"): (12, "HostnameConfig"),
    ("machine", "network", "nameservers"): (14, "ResolverConfig"),
    ("machine", "time"): (14, "TimeSyncConfig"),
    ("machine", "install"): (14, "UnattendedInstallConfig"),
    ("machine", "kubelet"): (14, "KubeletConfig"),
    ("machine", "nodeLabels"): (14, "KubeNodeConfig"),
    ("cluster", "network"): (14, "KubeNetworkConfig"),
    ("cluster", "apiServer"): (14, "KubeAPIServerConfig"),
    ("cluster", "controllerManager"): (14, "KubeControllerManagerConfig"),
    ("cluster", "scheduler"): (14, "KubeSchedulerConfig"),
    ("cluster", "proxy"): (14, "KubeProxyConfig"),
    ("cluster", "coreDNS"): (14, "KubeCoreDNSConfig"),
    ("cluster", "allowSchedulingOnControlPlanes"): (14, "KubeNodeConfig"),
}


def check_patch(patch: Patch, contract: TalosContract, found: Diagnostics) -> None:
    """Add what is wrong with a patch for a release of Talos."""
    _check_directives(patch.data, (), patch, found)
    kind = patch.data.get("kind")
    if kind is None:
        _check_sections(patch, found)
        _check_conflicts(patch, contract, found)
    else:
        _check_kind(str(kind), patch, contract, found)


def _check_sections(patch: Patch, found: Diagnostics) -> None:
    for path, names in _SECTIONS.items():
        section: Any = patch.data
        for key in path:
            section = section.get(key) if isinstance(section, Mapping) else None
        for key in section if isinstance(section, Mapping) else ():
            if key not in names and key != DIRECTIVE:
                dotted = ".".join((*path, str(key)))
                hint = did_you_mean(str(key), names)
                found.add(UNKNOWN_KEY, f"There is no `{dotted}`.{hint}", patch.place(*path, key))


def _check_conflicts(patch: Patch, contract: TalosContract, found: Diagnostics) -> None:
    for path, (minor, kind) in MOVED.items():
        value: Any = patch.data
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if contract.minor >= minor and value not in (None, "", [], {}) and not is_delete(value):
            found.add(
                CONFLICT,
                f"From Talos 1.{minor} on, the document {kind} has this, not `{'.'.join(path)}`.",
                patch.place(*path),
            )


def _check_kind(kind: str, patch: Patch, contract: TalosContract, found: Diagnostics) -> None:
    first = release_of_kind(kind)
    if patch.data.get("apiVersion") != "v1alpha1":
        found.add(
            UNKNOWN_KIND, f"A document of kind {kind} needs `apiVersion: v1alpha1`.", patch.place("kind")
        )
    if first is None and contract.minor < NEWEST:
        found.add(
            UNKNOWN_KIND, f"Talos 1.{contract.minor} has no documents of kind {kind}.", patch.place("kind")
        )
    elif first is not None and first > contract.minor:
        detail = f"Documents of kind {kind} came with Talos 1.{first}; the cluster has 1.{contract.minor}."
        found.add(UNKNOWN_KIND, detail, patch.place("kind"))


def _check_directives(value: Any, place: tuple[str | int, ...], patch: Patch, found: Diagnostics) -> None:
    if isinstance(value, Mapping):
        if DIRECTIVE in value and not is_delete(value):
            found.add(
                UNKNOWN_DIRECTIVE, f"There is no `{DIRECTIVE}: {value[DIRECTIVE]}`.", patch.place(*place)
            )
        for key, one in value.items():
            _check_directives(one, (*place, key), patch, found)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            _check_directives(one, (*place, index), patch, found)
