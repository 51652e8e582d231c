"""Machine configurations: read and checked as Talos checks them, in the same order and words.

Only what the lab needs to know is checked: documents and their kinds, the names of the first two levels, and
what validation insists on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from pvelab.talos.pki import authority_from
from stackyard.base.documents.limits import LARGE
from stackyard.base.documents.yamltext import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.base.serving.certificate import Certificate

__all__ = ["ConfigurationError", "MachineConfig", "ParseError", "parse_configuration", "validate"]

_MARK = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_TOP = frozenset(("version", "debug", "persist", "machine", "cluster"))
_MACHINE = frozenset(
    (
        "type token ca acceptedCAs certSANs controlPlane kubelet pods network disks install files env time"
        " sysctls sysfs registries systemDiskEncryption features udev logging kernel seccompProfiles"
        " baseRuntimeSpecOverrides nodeLabels nodeAnnotations nodeTaints"
    ).split()
)
_CLUSTER = frozenset(
    (
        "id secret controlPlane clusterName network token aescbcEncryptionSecret secretboxEncryptionSecret ca"
        " acceptedCAs aggregatorCA serviceAccount apiServer controllerManager proxy scheduler discovery etcd"
        " coreDNS externalCloudProvider extraManifests extraManifestHeaders inlineManifests adminKubeconfig"
        " allowSchedulingOnMasters allowSchedulingOnControlPlanes"
    ).split()
)
# By the release that has them first.
_KINDS: Mapping[tuple[int, int], str] = {
    (
        1,
        9,
    ): "VolumeConfig ExtensionServiceConfig NetworkDefaultActionConfig NetworkRuleConfig SideroLinkConfig"
    " EventSinkConfig KmsgLogConfig KubeSpanEndpointsConfig WatchdogTimerConfig TrustedRootsConfig",
    (1, 10): "EthernetConfig UserVolumeConfig PCIDriverRebindConfig",
    (1, 11): "RawVolumeConfig ExistingVolumeConfig SwapVolumeConfig ZswapConfig",
    (1, 12): "HostnameConfig LinkConfig LinkAliasConfig BondConfig BridgeConfig VLANConfig WireguardConfig"
    " DummyLinkConfig DHCPv4Config DHCPv6Config Layer2VIPConfig HCloudVIPConfig ResolverConfig"
    " StaticHostConfig TimeSyncConfig OOMConfig RegistryMirrorConfig RegistryAuthConfig RegistryTLSConfig",
    (1, 13): "EnvironmentConfig ExternalVolumeConfig ImageVerificationConfig KubeSpanConfig RoutingRuleConfig"
    " BlackholeRouteConfig VRFConfig TCPProbeConfig",
}


class ParseError(Exception):
    """A configuration cannot be read; the text is what Talos says."""


class ConfigurationError(Exception):
    """A configuration does not fit the machine; the text is what Talos says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineConfig:
    """A configuration: its text, the main document, and the others."""

    text: str
    main: Mapping[str, Any] | None
    others: tuple[Mapping[str, Any], ...] = ()

    @property
    def machine(self) -> Mapping[str, Any]:
        """The section `machine`."""
        return _mapping((self.main or {}).get("machine"))

    @property
    def cluster(self) -> Mapping[str, Any]:
        """The section `cluster`."""
        return _mapping((self.main or {}).get("cluster"))

    @property
    def is_control_plane(self) -> bool:
        """Whether it is for a control plane machine."""
        return self.machine.get("type") in ("controlplane", "init")

    @property
    def authority(self) -> Certificate | None:
        """The OS CA; a worker's has no key."""
        ca = _mapping(self.machine.get("ca"))
        return authority_from(ca.get("crt", ""), ca.get("key", ""))

    @property
    def hostname(self) -> str | None:
        """The name that it gives the machine, None if Talos makes one."""
        for document in self.others:
            if document.get("kind") == "HostnameConfig" and document.get("hostname"):
                return str(document["hostname"])
        found = _mapping(self.machine.get("network")).get("hostname")
        return str(found) if found else None

    @property
    def install(self) -> Mapping[str, Any]:
        """The section `machine.install`."""
        return _mapping(self.machine.get("install"))

    @property
    def names(self) -> list[str]:
        """What else its certificate is good for."""
        found = self.machine.get("certSANs")
        return [str(one) for one in found] if isinstance(found, list) else []

    def first_address(self) -> str | None:
        """Return the static IPv4 address with prefix of its first interface, None without one."""
        interfaces = _mapping(self.machine.get("network")).get("interfaces")
        links = [one for one in self.others if one.get("kind") == "LinkConfig"]
        for interface in [*(interfaces if isinstance(interfaces, list) else ()), *links]:
            for one in _mapping(interface).get("addresses") or ():
                text = str(one.get("address", "")) if isinstance(one, dict) else str(one)
                if re.fullmatch(r"[\d.]+/\d+", text):
                    return text
        return None


def parse_configuration(data: bytes, version: str) -> MachineConfig:
    """Read a configuration.

    Args:
        data: What was sent.
        version: The release that reads it: `v1.12.1`.

    Raises:
        ParseError: It cannot be read.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as err:
        raise ParseError("yaml: control characters are not allowed") from err
    main: Mapping[str, Any] | None = None
    others: list[Mapping[str, Any]] = []
    for part in _MARK.split(text):
        document = _load(part)
        if document is None:
            continue
        if "kind" in document or "apiVersion" in document:
            others.append(_check_kind(document, others, version))
        elif not set(document) & {"version", "machine", "cluster"}:
            raise ParseError("missing kind")
        elif main is not None:
            raise ParseError("not allowed to have more than one v1alpha1 config")
        else:
            main = document
            _check_names(document)
    if main is None and not others:
        raise ParseError("no configuration documents found")
    return MachineConfig(text=text, main=main, others=tuple(others))


def validate(config: MachineConfig, *, needs_install: bool) -> None:
    """Refuse what Talos refuses whatever the machine is made of.

    Raises:
        ConfigurationError: With everything that is wrong.
    """
    if config.main is None:
        return
    problems = list(_problems(config, needs_install=needs_install))
    if problems:
        count = f"{len(problems)} error{'s' if len(problems) > 1 else ''} occurred"
        raise ConfigurationError(f"{count}:\n" + "".join(f"\t* {one}\n" for one in problems) + "\n")


def _problems(config: MachineConfig, *, needs_install: bool) -> Iterable[str]:
    main, machine, cluster = config.main or {}, config.machine, config.cluster
    missing = [name for name in ("machine", "cluster") if not main.get(name)]
    yield from (f"{name} instructions are required" for name in missing)
    if main.get("persist") is False:
        yield "machine.persist should be true"
    if missing:
        return
    endpoint = _mapping(cluster.get("controlPlane")).get("endpoint")
    if not endpoint:
        yield "cluster.controlPlane.endpoint is required"
    elif not re.match(r"\w+://[^/:]+", str(endpoint)):
        yield f'invalid cluster endpoint "{endpoint}": hostname must not be blank'
    kind = machine.get("type")
    if kind not in ("controlplane", "worker", "init"):
        yield f'unknown machine type "{kind or ""}"'
    yield from _authority_problems(config)
    yield from _install_problems(config, needs_install=needs_install)
    if kind == "worker" and "etcd" in cluster:
        yield "etcd config is only allowed on control plane machines"
    names = [one for one in config.others if one.get("kind") == "HostnameConfig"]
    if names and _mapping(machine.get("network")).get("hostname"):
        yield "static hostname is already set in v1alpha1 config"
    if any(one.get("hostname") and one.get("auto") not in (None, "off") for one in names):
        yield "'auto' and 'hostname' cannot be set at the same time"


def _install_problems(config: MachineConfig, *, needs_install: bool) -> Iterable[str]:
    install = config.install
    if needs_install and not install:
        yield 'install instructions are required in "metal" mode'
    elif needs_install and not (install.get("disk") or install.get("diskSelector")):
        yield "either install disk or diskSelector should be defined"
    if install.get("extraKernelArgs") and install.get("grubUseUKICmdline"):
        yield "install.extraKernelArgs and install.grubUseUKICmdline can't be used together"


def _authority_problems(config: MachineConfig) -> Iterable[str]:
    ca, authority = config.machine.get("ca"), config.authority
    if not ca or authority is None or not authority.certificate_pem:
        yield "issuing CA certificate is required" if not ca else "invalid CA certificate in machine.ca"
    elif config.is_control_plane and not authority.key_pem:
        yield "issuing Talos API CA key is required for controlplane nodes"
    elif not config.is_control_plane and authority.key_pem:
        yield "issuing Talos API CA key is not allowed on non-controlplane nodes"


def _load(part: str) -> Mapping[str, Any] | None:
    try:
        found = parse_yaml(part, LARGE)
    except yaml.YAMLError as err:
        problem = getattr(err, "problem", None) or str(err)
        mark = getattr(err, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise ParseError(f"error decoding document: yaml: {where}{problem}") from err
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ParseError("missing kind")
    return found


def _check_kind(
    document: Mapping[str, Any], others: list[Mapping[str, Any]], version: str
) -> Mapping[str, Any]:
    kind, api = str(document.get("kind", "")), str(document.get("apiVersion", ""))
    if not kind:
        raise ParseError("missing kind")
    number = re.match(r"v(\d+)\.(\d+)", version)
    release = (int(number[1]), int(number[2])) if number else (1, 12)
    known = {name for since, names in _KINDS.items() if since <= release for name in names.split()}
    if kind not in known or api != "v1alpha1":
        raise ParseError(f'error decoding document {kind}: "{kind}" "{api}": not registered')
    name = str(document.get("name", ""))
    if any((one.get("kind"), str(one.get("name", ""))) == (kind, name) for one in others):
        raise ParseError(f"duplicate document {api}/{kind}/{name} is not allowed")
    return document


def _check_names(document: Mapping[str, Any]) -> None:
    unknown: dict[str, Any] = {key: document[key] for key in document if key not in _TOP}
    for section, known in (("machine", _MACHINE), ("cluster", _CLUSTER)):
        inner = _mapping(document.get(section))
        wrong = {key: inner[key] for key in inner if key not in known}
        if wrong:
            unknown[section] = wrong
    if unknown:
        raise ParseError(f"unknown keys found during decoding:\n{yaml.safe_dump(unknown)}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
