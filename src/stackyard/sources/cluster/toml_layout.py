"""`cluster.toml`: which of its tables and keys is which field of a cluster.

The tables are those of the public template that keeps its clusters in such a file; `[cluster]`, `[proxmox]`,
`[state]` and the keys about versions and images are ours.
"""

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from stackyard.desired.values import Line, Many, Value
from stackyard.sources.cluster.fields import ClusterFields, NodeFields, cluster_model, secret_model
from stackyard.sources.cluster.words import Ip

__all__ = ["FIELDS", "SECRETS", "flatten", "take_secrets", "toml_model"]

_Path = tuple[str, ...]

# Where each field is.
FIELDS: Mapping[str, _Path] = {
    "cluster_name": ("cluster", "name"),
    "node_cidr": ("network", "node_cidr"),
    "node_dns_servers": ("network", "dns_servers"),
    "node_ntp_servers": ("network", "ntp_servers"),
    "node_default_gateway": ("network", "default_gateway"),
    "node_vlan_tag": ("network", "vlan_tag"),
    "cluster_pod_cidr": ("kubernetes", "pod_cidr"),
    "cluster_svc_cidr": ("kubernetes", "svc_cidr"),
    "kubernetes_version": ("kubernetes", "version"),
    "cluster_api_addr": ("kubernetes", "api", "addr"),
    "cluster_api_tls_sans": ("kubernetes", "api", "tls_sans"),
    "cluster_gateway_addr": ("gateways", "internal"),
    "cluster_dns_gateway_addr": ("gateways", "dns"),
    "cloudflare_gateway_addr": ("gateways", "external"),
    "repository_branch": ("repository", "branch"),
    "cloudflare_domain": ("domain", "name"),
    "cilium_loadbalancer_mode": ("cilium", "loadbalancer_mode"),
    "cilium_bgp_router_addr": ("cilium", "bgp", "router_addr"),
    "cilium_bgp_router_asn": ("cilium", "bgp", "router_asn"),
    "cilium_bgp_node_asn": ("cilium", "bgp", "node_asn"),
    "schematic_id": ("talos", "schematic_id"),
    "talos_schematic": ("talos", "schematic"),
    "registry_mirrors": ("talos", "registry_mirrors"),
    "node_labels": ("talos", "node_labels"),
    "talos_version": ("talos", "version"),
    "talos_factory": ("talos", "factory"),
    "talos_image": ("talos", "image"),
    "talos_arch": ("talos", "arch"),
    "tfstate_address": ("state", "address"),
    **{
        name: ("proxmox", name.removeprefix("proxmox_"))
        for name in ClusterFields.model_fields
        if name.startswith("proxmox_")
    },
}
SECRETS: Mapping[str, _Path] = {
    "cloudflare_token": ("dns", "token"),
    "proxmox_api_token_id": ("proxmox", "api_token_id"),
    "proxmox_api_token_secret": ("proxmox", "api_token_secret"),
    "tfstate_username": ("state", "username"),
    "tfstate_password": ("state", "password"),
    "state_encryption_passphrase": ("state", "encryption_passphrase"),
    "state_encryption_passphrase_previous": ("state", "encryption_passphrase_previous"),
}
# What only such a file has.
_MORE: Mapping[_Path, Any] = {
    ("kubernetes", "coredns_addr"): Ip | None,
    ("repository", "url"): Annotated[Line, Field(pattern=r"^(https?://|ssh://git@)[^/]+/.+$")] | None,
    ("repository", "webhook_provider"): Literal["github", "gitlab", "generic-hmac", "none"] | None,
    ("repository", "known_hosts"): str | None,
    ("dns", "provider"): Literal["cloudflare", "none"] | None,
    ("ingress", "mode"): Literal["cloudflare-tunnel", "direct", "none"] | None,
    ("spegel", "enabled"): bool | None,
}


@functools.cache
def toml_model(*, is_whole: bool = False) -> type[Value]:
    """Return the model of the file.

    Args:
        is_whole: Whether it has the nodes and the secret keys, as for a schema; they are validated apart.
    """
    known = cluster_model().model_fields
    leaves: dict[_Path, Any] = {path: known[name].annotation for name, path in FIELDS.items()}
    leaves |= _MORE
    if is_whole:
        leaves |= {path: secret_model().model_fields[name].annotation for name, path in SECRETS.items()}
    tree: dict[str, Any] = {}
    for path, annotation in leaves.items():
        branch = tree
        for key in path[:-1]:
            branch = branch.setdefault(key, {})
        branch[path[-1]] = annotation
    return _make_model("ClusterToml", tree, {"nodes": (Many[NodeFields] | None, None)} if is_whole else {})


def _make_model(name: str, tree: Mapping[str, Any], more: Mapping[str, Any]) -> type[Value]:
    fields: dict[str, Any] = dict(more)
    for key, inner in tree.items():
        is_table = isinstance(inner, dict)
        kind: Any = _make_model(f"{name}{key.title()}", inner, {}) if is_table else inner
        fields[key] = (kind | None if is_table else kind, None)
    return create_model(name, __base__=Value, __doc__="A cluster in one file.", **fields)


def take_secrets(data: dict[str, Any]) -> dict[str, Any]:
    """Remove the secret keys from the values of a file, and return them by the names of their fields."""
    taken = {}
    for name, (table, key) in SECRETS.items():
        inner = data.get(table)
        if isinstance(inner, dict) and key in inner:
            taken[name] = inner.pop(key)
    return taken


def flatten(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the values of a file give, by the names of the fields."""
    found = {}
    for name, path in FIELDS.items():
        value: Any = data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            found[name] = value
    return found
