"""What a machine configuration says about Kubernetes: versions, addresses, names, and what runs at first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pvelab.kubernetes.authority import Authority
from pvelab.talos.pki import authority_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.talos.configuration import MachineConfig

__all__ = [
    "API_PORT",
    "authority_of",
    "endpoint_of",
    "kubelet_version",
    "list_labels",
    "list_names",
    "list_taints",
    "list_vips",
    "server_version",
]

API_PORT = 6443
_TAG = re.compile(r":(v[\w.+-]+)(?:@sha256:[0-9a-f]+)?$")
# What each release of Talos runs where the configuration names nothing.
_DEFAULTS = {
    (1, 9): "v1.32.0",
    (1, 10): "v1.33.0",
    (1, 11): "v1.34.0",
    (1, 12): "v1.35.0",
    (1, 13): "v1.36.0",
}


def server_version(config: MachineConfig, talos: str) -> str:
    """Return the version of the API server: that of its image, or the release's own."""
    return _tag(config.cluster.get("apiServer"), talos)


def kubelet_version(config: MachineConfig, talos: str) -> str:
    """Return the version of the kubelet, as above."""
    return _tag(config.machine.get("kubelet"), talos)


def _tag(section: Any, talos: str) -> str:
    found = _TAG.search(str(_mapping(section).get("image", "")))
    if found is not None:
        return found[1]
    number = re.match(r"v(\d+)\.(\d+)", talos)
    release = (int(number[1]), int(number[2])) if number else max(_DEFAULTS)
    return _DEFAULTS.get(release, _DEFAULTS[max(_DEFAULTS) if release > max(_DEFAULTS) else min(_DEFAULTS)])


def authority_of(config: MachineConfig) -> Authority | None:
    """Return the CA of Kubernetes with its key, None where the configuration has none."""
    ca = _mapping(config.cluster.get("ca"))
    found = authority_from(ca.get("crt", ""), ca.get("key", ""))
    if found is None or not found.key_pem:
        return None
    return Authority(certificate_pem=found.certificate_pem, key_pem=found.key_pem)


def endpoint_of(config: MachineConfig) -> tuple[str, int]:
    """Return the host and the port of the cluster's endpoint."""
    parts = urlsplit(str(_mapping(config.cluster.get("controlPlane")).get("endpoint", "")))
    try:
        port = parts.port
    except ValueError:
        port = None
    host = parts.hostname or ""
    return "127.0.0.1" if host == "localhost" else host, port or 443


def list_vips(config: MachineConfig) -> list[str]:
    """Return the addresses that the control plane machines share."""
    interfaces = _mapping(config.machine.get("network")).get("interfaces")
    rows = [_mapping(one) for one in interfaces] if isinstance(interfaces, list) else []
    rows += [_mapping(vlan) for row in rows for vlan in row.get("vlans") or ()]
    found = [str(_mapping(row.get("vip")).get("ip", "")) for row in rows]
    found += [str(one.get("name", "")) for one in config.others if one.get("kind") == "Layer2VIPConfig"]
    return [one for one in found if one]


def list_names(config: MachineConfig) -> list[str]:
    """Return the names that the certificate of the API has beside those of the machine."""
    more = _mapping(config.cluster.get("apiServer")).get("certSANs")
    host, _ = endpoint_of(config)
    return [host, *list_vips(config), *(str(one) for one in (more if isinstance(more, list) else ()))]


def list_labels(config: MachineConfig) -> dict[str, str]:
    """Return the labels that the configuration gives the node."""
    return {str(key): str(value) for key, value in _mapping(config.machine.get("nodeLabels")).items()}


def list_taints(config: MachineConfig) -> list[tuple[str, str, str]]:
    """Return the taints of the node: key, value and effect."""
    found = []
    cluster = config.cluster
    is_open = cluster.get("allowSchedulingOnControlPlanes") or cluster.get("allowSchedulingOnMasters")
    if config.is_control_plane and not is_open:
        found.append(("node-role.kubernetes.io/control-plane", "", "NoSchedule"))
    for key, text in _mapping(config.machine.get("nodeTaints")).items():
        value, _, effect = str(text).rpartition(":")
        found.append((str(key), value, effect))
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
