"""Secrets of a cluster that go to Kubernetes, as manifests for Flux; encrypted before they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.render.cluster.quoting import quote_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.cluster.model import Cluster

__all__ = ["render_kubernetes_secrets"]

# The folder of the app, the name of its Secret, and its keys with the fields that they come from.
_SECRETS = (
    ("cert-manager/cert-manager", "cert-manager-secret", {"api-token": "cloudflare_token"}),
    ("network/cloudflare-dns", "cloudflare-dns-secret", {"api-token": "cloudflare_token"}),
    ("network/unifi-dns", "unifi-dns-secret", {"api-key": "unifi_api_key"}),
)
# The apps whose Secret is a file that names the Proxmox cluster and a token of their own.
_PROXMOX_APPS = (
    ("csi-proxmox/proxmox-csi", "proxmox-csi-config", "proxmox_csi"),
    ("kube-system/proxmox-ccm", "proxmox-ccm-config", "proxmox_ccm"),
)


def render_kubernetes_secrets(cluster: Cluster) -> dict[str, bytes]:
    """Return the plain text of the Secrets by their path under `kubernetes/`; it must not reach a disk.

    A Secret is there if the input has all fields that it is made of.
    """
    found = {}
    for app, name, keys in _SECRETS:
        data = {key: cluster.secrets.get(field, "") for key, field in keys.items()}
        if all(data.values()):
            found[_path(app)] = _manifest(name, data)
    for app, name, prefix in _PROXMOX_APPS:
        config = _proxmox_config(cluster, prefix)
        if config:
            found[_path(app)] = _manifest(name, {"config.yaml": config})
    return found


def _path(app: str) -> str:
    return f"apps/{app}/app/secret.sops.yaml"


def _manifest(name: str, data: Mapping[str, str]) -> bytes:
    lines = ["apiVersion: v1", "kind: Secret", "metadata:", f"  name: {name}", "stringData:"]
    lines += [f"  {key}: {quote_yaml(value)}" for key, value in data.items()]
    return ("\n".join(lines) + "\n").encode()


def _proxmox_config(cluster: Cluster, prefix: str) -> str:
    """Return the configuration of an app that calls Proxmox, or nothing where it has no token of its own."""
    token = cluster.secrets.get(f"{prefix}_token_id") or cluster.values.get(f"{prefix}_token_id")
    secret = cluster.secrets.get(f"{prefix}_token_secret")
    endpoint = str(cluster.values.get("proxmox_endpoint") or "").rstrip("/").removesuffix("/api2/json")
    if not token or not secret or not endpoint:
        return ""
    is_insecure = cluster.proxmox is not None and cluster.proxmox.is_insecure
    return "\n".join(
        [
            "clusters:",
            f"  - url: {quote_yaml(f'{endpoint}/api2/json')}",
            f"    insecure: {quote_yaml(is_insecure)}",
            f"    token_id: {quote_yaml(token)}",
            f"    token_secret: {quote_yaml(secret)}",
            f"    region: {quote_yaml(cluster.values.get('proxmox_region') or 'pve')}",
            "",
        ]
    )
