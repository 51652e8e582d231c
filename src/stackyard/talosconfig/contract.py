"""What the machine configuration of each release of Talos looks like: one name for each difference."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackyard.base.errors import InvalidInputError

__all__ = ["NEWEST", "OLDEST", "TalosContract", "UnsupportedTalosError", "find_contract", "release_of_kind"]

OLDEST, NEWEST = 10, 14
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.|$)")

# The first release of 1.x that has each kind of document; 9 stands for that and all before it.
_KINDS = {
    9: (
        "VolumeConfig ExtensionServiceConfig NetworkDefaultActionConfig NetworkRuleConfig SideroLinkConfig "
        "EventSinkConfig KmsgLogConfig KubeSpanEndpointsConfig WatchdogTimerConfig TrustedRootsConfig"
    ),
    10: "EthernetConfig UserVolumeConfig PCIDriverRebindConfig",
    11: "RawVolumeConfig ExistingVolumeConfig SwapVolumeConfig ZswapConfig",
    12: (
        "HostnameConfig LinkConfig LinkAliasConfig BondConfig BridgeConfig VLANConfig WireguardConfig "
        "DummyLinkConfig DHCPv4Config DHCPv6Config Layer2VIPConfig HCloudVIPConfig ResolverConfig "
        "StaticHostConfig TimeSyncConfig OOMConfig RegistryMirrorConfig RegistryAuthConfig RegistryTLSConfig"
    ),
    13: (
        "EnvironmentConfig ExternalVolumeConfig ImageVerificationConfig KubeSpanConfig RoutingRuleConfig "
        "BlackholeRouteConfig VRFConfig TCPProbeConfig"
    ),
}
_FIRST_RELEASE = {kind: minor for minor, kinds in _KINDS.items() for kind in kinds.split()}


class UnsupportedTalosError(InvalidInputError):
    """No configuration can be made for a version of Talos: it is too old, or too new."""

    code = "E-TALOS-VERSION"
    summary = "This version of Talos is not supported"
    default_remedy = f"Use Talos 1.{OLDEST} to 1.{NEWEST}."


@dataclass(frozen=True, slots=True, order=True)
class TalosContract:
    """The form of the machine configuration of one release, 1.`minor`."""

    minor: int

    @property
    def has_hidden_features(self) -> bool:
        """Whether role-based access and its kin are always on, and no longer settings."""
        return self.minor >= 12

    @property
    def has_volume_encryption(self) -> bool:
        """Whether the encryption of system partitions is part of `VolumeConfig` documents."""
        return self.minor >= 11

    @property
    def has_network_documents(self) -> bool:
        """Whether host name, links and registries are documents."""
        return self.minor >= 12

    @property
    def has_kubernetes_documents(self) -> bool:
        """Whether Kubernetes, discovery, installation, servers and kernel modules are documents."""
        return self.minor >= 14


def find_contract(version: str) -> TalosContract:
    """Return the form for a version such as `1.12.1`.

    Raises:
        UnsupportedTalosError: It is not a version, or not one that is known.
    """
    found = _VERSION.match(version)
    if found is None or int(found[1]) != 1 or not OLDEST <= int(found[2]) <= NEWEST:
        raise UnsupportedTalosError(f"There is no machine configuration for Talos `{version}`.")
    return TalosContract(int(found[2]))


def release_of_kind(kind: str) -> int | None:
    """Return the first release, 1.x, that has a kind of document; None for a kind that is not in the list.

    Kinds that came with 1.14 are not in it: a newer kind cannot be told from a misspelt one.
    """
    return _FIRST_RELEASE.get(kind)
