"""What is asked of the API for a check, and what it answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox import quote
from stackyard.guard.ownership import Owners

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.guard.cluster import Cluster

__all__ = [
    "METADATA",
    "PERMISSIONS",
    "ROOT",
    "VERSION",
    "VNETS",
    "ApiRead",
    "Facts",
    "Operator",
    "contents_of",
    "cpu_flags_of",
    "cpu_models_of",
    "guest_config",
    "machines_of",
    "mappings",
    "metadata_of",
    "pci_devices_of",
    "permissions_on",
    "rights_on",
    "volume_info",
]

ROOT = "root@pam"
# What tells the size of a file before it is downloaded.
METADATA = "query-url-metadata"
_GUESTS = "/vms"
# The contents that are part of the name of a volume.
_CONTENTS = ("import", "iso", "snippets", "vztmpl")


@dataclass(frozen=True, slots=True, order=True)
class ApiRead:
    """One read of the API: `GET path`, with a query.

    Attributes:
        path: The path.
        params: The query.
        is_optional: Whether an error is no news: another row finds out why.
        is_pending: Whether the changes are asked for that were written and not activated, and not the list.
    """

    path: str
    params: tuple[tuple[str, str], ...] = ()
    is_optional: bool = False
    is_pending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """This machine, as the nodes see it.

    Attributes:
        api: The address that calls of the API come from; empty where that is not known.
        ssh: The address that SSH comes from.
        endpoint: The address of the node whose API is called.
    """

    api: str = ""
    ssh: str = ""
    endpoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the cluster tells.

    Attributes:
        cluster: Nodes, storages and guests.
        answers: What was answered.
        unanswered: Why there is no answer, in the words of Proxmox.
        caller: The user or token that asks; empty where that is not known.
        owners: What other states have.
        operator: Where this machine reaches the cluster from; None where nobody looked.
    """

    cluster: Cluster
    answers: Mapping[ApiRead, Any] = field(default_factory=dict)
    unanswered: Mapping[ApiRead, str] = field(default_factory=dict)
    caller: str = ""
    owners: Owners = field(default_factory=Owners)
    operator: Operator | None = None

    @property
    def is_root(self) -> bool:
        """Whether root@pam itself asks, with its password: no token counts as root."""
        return self.caller == ROOT

    def get_privileges(self, path: str) -> frozenset[str] | None:
        """Return the privileges of the caller on a path; None where they are not known.

        Proxmox lists the paths that entries of its access list name, and those of members of pools. A path
        without an own entry has what the nearest one above passes on. One whose entry takes everything away
        (`NoAccess`) is not listed either: what was asked of a path itself counts before the list.
        """
        own = self.answers.get(permissions_on(path))
        listed = self.answers.get(PERMISSIONS)
        if isinstance(own, dict):
            listed = {path: own.get(path) or {}}
        if not isinstance(listed, dict):
            return None
        if path in listed:
            # Of the path above all guests, what single guests inherit.
            return frozenset(name for name, passed_on in listed[path].items() if passed_on or path != _GUESTS)
        above = path
        while above not in ("", "/"):
            above = above.rpartition("/")[0] or "/"
            if above in listed:
                return frozenset(name for name, passed_on in listed[above].items() if passed_on)
        return frozenset()

    def may(self, path: str, *privileges: str) -> bool | None:
        """Return whether the caller has one of some privileges on a path; None where that is not known."""
        held = self.get_privileges(path)
        return None if held is None else not held.isdisjoint(privileges)

    def rows(self, question: ApiRead) -> list[Mapping[str, Any]]:
        """Return the rows of an answer that is a list; none where there is no answer."""
        answer = self.answers.get(question)
        listed = answer if isinstance(answer, list) else []
        return [row for row in listed if isinstance(row, dict)]

    def zones(self) -> dict[str, str]:
        """Return the SDN zone of each vnet that is known."""
        rows = self.answers.get(VNETS)
        listed = rows if isinstance(rows, list) else []
        return {str(row["vnet"]): str(row.get("zone", "")) for row in listed if "vnet" in row}


# All privileges of the caller, in one answer.
PERMISSIONS = ApiRead("/access/permissions")
# The networks of the SDN; where they may not be listed, bridges count as those of nodes.
VNETS = ApiRead("/cluster/sdn/vnets", is_optional=True)
VERSION = ApiRead("/version")


def contents_of(node: str, volume: str) -> ApiRead:
    """Return the question for the volumes beside one: on the same datastore, of the same content."""
    datastore, _, name = volume.partition(":")
    content = name.partition("/")[0]
    params = (("content", content),) if content in _CONTENTS else ()
    return ApiRead(f"/nodes/{quote(node)}/storage/{quote(datastore)}/content", params)


def volume_info(node: str, volume: str) -> ApiRead:
    """Return the question for the size of a volume: of an image, that of the disk inside."""
    datastore = volume.partition(":")[0]
    path = f"/nodes/{quote(node)}/storage/{quote(datastore)}/content/{quote(volume)}"
    return ApiRead(path, is_optional=True)


def metadata_of(node: str, url: str, *, verify: bool) -> ApiRead:
    """Return the question for what a server says of a file that a node would download."""
    return ApiRead(
        f"/nodes/{quote(node)}/{METADATA}",
        (("url", url), ("verify-certificates", "1" if verify else "0")),
    )


def guest_config(node: str, kind: str, vm_id: int) -> ApiRead:
    """Return the question for the configuration of a guest."""
    return ApiRead(f"/nodes/{quote(node)}/{kind}/{vm_id}/config")


def permissions_on(path: str) -> ApiRead:
    """Return the question for what the caller may do on one path, whatever is inherited or taken away."""
    return ApiRead("/access/permissions", (("path", path),), is_optional=True)


def rights_on(*paths: str) -> Iterator[ApiRead]:
    """Return the questions that tell what the caller may do on some paths."""
    yield PERMISSIONS
    yield from map(permissions_on, paths)


def cpu_models_of(node: str) -> ApiRead:
    """Return the question for the CPU models that a node offers."""
    return ApiRead(f"/nodes/{quote(node)}/capabilities/qemu/cpu")


def cpu_flags_of(node: str) -> ApiRead:
    """Return the question for the CPU flags that a guest may set; Proxmox answers it since version 9.1."""
    return ApiRead(f"/nodes/{quote(node)}/capabilities/qemu/cpu-flags", is_optional=True)


def machines_of(node: str) -> ApiRead:
    """Return the question for the machine types of a node, with their versions."""
    return ApiRead(f"/nodes/{quote(node)}/capabilities/qemu/machines")


def pci_devices_of(node: str) -> ApiRead:
    """Return the question for all PCI devices of a node."""
    return ApiRead(f"/nodes/{quote(node)}/hardware/pci", (("pci-class-blacklist", ""), ("verbose", "0")))


def mappings(kind: str) -> ApiRead:
    """Return the question for the mappings of the cluster: `pci` or `usb`."""
    return ApiRead(f"/cluster/mapping/{kind}")
