"""`nodes/*.yaml`: a Proxmox VE node that is reached through its API."""

from typing import Annotated

from pydantic import StringConstraints

from stackyard.sources.site.entities.values import Entity, HostAddress, Line, Name, Port, Url

__all__ = ["NodeFile"]

Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}$")]


class NodeFile(Entity):
    """A Proxmox VE node; Proxmox knows it by the name of the file, unless `node` says another."""

    node: Name | None = None
    # Names hosts/NAME.yaml.
    host: Name | None = None
    # Names nodes/NAME.yaml: the node that this one is a guest of.
    parent_node: Name | None = None
    api_endpoint: Url
    # Names `api_tokens` in secrets.yaml; the name of this file when absent.
    api_token: Line | None = None
    # SHA-256 of the certificate of the API, where no authority vouches for it.
    api_fingerprint: Fingerprint | None = None
    # Where disks go.
    datastore: Line
    # Where images and snippets go.
    file_datastore: Line = "local"
    ip: HostAddress | None = None
    # `host_user` is the newer name of `ssh_user`.
    ssh_user: Line | None = None
    host_user: Line | None = None
    ssh_port: Port | None = None
    # Whether guests of this node are reached through its SSH: their network is not one that we are on.
    ssh_jump: bool = False
    # How guests of this node call this machine when they fetch their specs from it; found out when absent.
    controller_address: HostAddress | None = None
    # On which port they do; any free one when absent.
    controller_port: Port | None = None
