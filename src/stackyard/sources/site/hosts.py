"""Who a host is: a Proxmox node with its API, or a machine that is reached by SSH alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stackyard.base.addresses import parse_address
from stackyard.base.errors import InvalidInputError
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.site.discovery import SITE_FILE
from stackyard.sources.site.scope import divide, files_of_host
from stackyard.sources.site.specs import DEFAULT_USER

if TYPE_CHECKING:
    from stackyard.sources.site.entities.hosts import HostFile
    from stackyard.sources.site.entities.nodes import NodeFile
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.tree import LoadedFile

__all__ = [
    "HostConfig",
    "HostNotFoundError",
    "host_address",
    "make_unnamed_host",
    "node_address",
    "resolve_host",
]

DEFAULT_SSH_USER = "root"
DEFAULT_RELEASE = "latest"


class HostNotFoundError(InvalidInputError):
    """Neither nodes/ nor hosts/ has a file of this name."""

    code = "E-SITE-HOST"
    summary = "There is no such host"
    default_remedy = "Write nodes/NAME.yaml for a Proxmox node, or hosts/NAME.yaml for a machine before that."


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """Everything that is known of a host, merged: site.yaml, its own file, secrets.yaml.

    Attributes:
        name: The stem of its file.
        config_file: That file.
        is_host_only: Whether it is a machine that is reached by SSH alone; then there is nothing of an API.
        node_name: What Proxmox calls it.
        api_endpoint: Where its API is.
        ssh_host: Where its SSH is.
        api_token: Opens the API; never shown.
    """

    name: str
    config_file: str
    is_host_only: bool
    node_name: str
    api_endpoint: str
    api_fingerprint: str | None
    datastore: str
    ssh_host: str
    ssh_port: int
    ssh_user: str
    automation_user: str
    packer_release: str
    dns_servers: tuple[str, ...]
    spec_server: str
    api_token: str = field(repr=False)
    # Whether a file of the site says them; what OpenSSH's own settings say counts otherwise.
    has_ssh_user: bool = True
    has_ssh_port: bool = True
    # Whether its guests are reached through its SSH.
    ssh_jump: bool = False
    # How its guests call this machine; found out when absent.
    controller_address: str | None = None
    controller_port: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the JSON view, without the token."""
        fields = ("name", "config_file", "is_host_only", "node_name", "api_endpoint", "api_fingerprint")
        more = (
            "datastore",
            "ssh_host",
            "ssh_port",
            "ssh_user",
            "ssh_jump",
            "automation_user",
            "packer_release",
            "spec_server",
        )
        document = {key: getattr(self, key) for key in (*fields, *more)}
        return {**document, "dns_servers": list(self.dns_servers), "has_api_token": bool(self.api_token)}


def resolve_host(site: Site, name: str) -> HostConfig:
    """Return a host: nodes/NAME.yaml, else hosts/NAME.yaml.

    Raises:
        HostNotFoundError: Neither is there.
        InvalidInputError: Its file is there and wrong.
    """
    if name in site.nodes:
        return _node(site, site.nodes[name])
    if name in site.hosts and name not in site.broken["nodes"]:
        return _host(site, site.hosts[name])
    if name in site.broken["nodes"] | site.broken["hosts"]:
        divide(site, files_of_host(site, name))[0].raise_errors(f"The host '{name}'")
    known = {*site.nodes, *site.hosts}
    hint = did_you_mean(name, known) or (f" There are {', '.join(sorted(known)[:10])}." if known else "")
    raise HostNotFoundError(
        f"Neither nodes/{name}.yaml nor hosts/{name}.yaml is in {site.root} (beside {SITE_FILE}).{hint}"
    )


def _common(site: Site) -> dict[str, Any]:
    defaults = site.settings.defaults
    return {
        "automation_user": defaults.automation_user or defaults.vm_user or DEFAULT_USER,
        "packer_release": defaults.packer_release or defaults.image_release or DEFAULT_RELEASE,
        "dns_servers": tuple(defaults.dns_servers),
        "spec_server": defaults.spec_server or defaults.server_url or "",
    }


def _site_user(site: Site) -> str | None:
    defaults = site.settings.defaults
    return defaults.ssh_user or defaults.host_user


def _node(site: Site, node: LoadedFile[NodeFile]) -> HostConfig:
    model = node.model
    host = site.hosts.get(model.host or "")
    port = model.ssh_port or (host.model.access.ssh_port if host else None)
    return HostConfig(
        name=node.name,
        config_file=node.places.path,
        is_host_only=False,
        node_name=model.node or node.name,
        api_endpoint=model.api_endpoint,
        api_fingerprint=model.api_fingerprint,
        datastore=model.datastore,
        ssh_host=urlsplit(model.api_endpoint).hostname or "",
        ssh_port=port or 22,
        has_ssh_port=port is not None,
        ssh_user=(said := model.ssh_user or model.host_user or _site_user(site)) or DEFAULT_SSH_USER,
        has_ssh_user=said is not None,
        api_token=site.secret_values.api_tokens.get(model.api_token or node.name, ""),
        ssh_jump=model.ssh_jump,
        controller_address=model.controller_address,
        controller_port=model.controller_port,
        **_common(site),
    )


def _host(site: Site, host: LoadedFile[HostFile]) -> HostConfig:
    access = host.model.access
    return HostConfig(
        name=host.name,
        config_file=host.places.path,
        is_host_only=True,
        node_name=host.name,
        api_endpoint="",
        api_fingerprint=None,
        datastore="",
        ssh_host=host_address(host) or "",
        ssh_port=access.ssh_port or 22,
        has_ssh_port=access.ssh_port is not None,
        ssh_user=(said := access.ssh_user or access.host_user or _site_user(site)) or DEFAULT_SSH_USER,
        has_ssh_user=said is not None,
        api_token="",
        **_common(site),
    )


def make_unnamed_host(site: Site, name: str) -> HostConfig:
    """Return a machine that no file of the site names: what the site says of all of them holds for it."""
    return HostConfig(
        name=name,
        config_file="",
        is_host_only=True,
        node_name=name,
        api_endpoint="",
        api_fingerprint=None,
        datastore="",
        ssh_host="localhost",
        ssh_port=22,
        has_ssh_port=False,
        ssh_user=_site_user(site) or DEFAULT_SSH_USER,
        has_ssh_user=_site_user(site) is not None,
        api_token="",
        **_common(site),
    )


def host_address(host: LoadedFile[HostFile]) -> str | None:
    """Return the address of a machine: its own, else that of its first bridge that has one."""
    model = host.model
    if model.ip is not None:
        return model.ip
    interfaces = model.network.interfaces
    ordered = sorted(interfaces.items(), key=lambda item: item[0] != "vmbr0")
    return next((i.address.partition("/")[0] for _, i in ordered if i.address is not None), None)


def node_address(node: LoadedFile[NodeFile]) -> str | None:
    """Return the address of a node: its own, else that of its API where it has one of its own."""
    if node.model.ip is not None:
        return node.model.ip
    name = urlsplit(node.model.api_endpoint).hostname or ""
    try:
        address = parse_address(name)
    except ValueError:
        return None
    return None if address.is_loopback else str(address)
