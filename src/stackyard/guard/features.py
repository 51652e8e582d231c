"""What stackyard can be allowed to do on a cluster, and the privileges that each part of it needs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["DEFAULT_FEATURES", "Feature", "NeededPrivilege", "list_privileges"]


class Feature(enum.StrEnum):
    """A part of what stackyard does, which a token may do or not."""

    READ = "read"
    GUESTS = "guests"
    IMAGES = "images"
    POOLS = "pools"
    NETWORKS = "networks"
    START_ORDER = "start-order"
    HA = "ha"
    REPLICATION = "replication"


# What a site with guests needs; the others change the cluster itself.
DEFAULT_FEATURES = (Feature.READ, Feature.GUESTS, Feature.IMAGES, Feature.POOLS)

_AGENT = "read the addresses of guests from their agent"
_TABLE: Mapping[Feature, Mapping[str, str]] = {
    Feature.READ: {
        "Datastore.Audit": "list datastores and what is on them",
        "Mapping.Audit": "list mapped devices",
        "Pool.Audit": "list pools",
        "SDN.Audit": "list zones and virtual networks",
        "Sys.Audit": "read the size, time and name servers of nodes, and the status of the cluster",
        "VM.Audit": "list guests and read their configuration",
        "VM.GuestAgent.Audit": _AGENT,
        # What the agent needs before version 9, which does not know it any more.
        "VM.Monitor": _AGENT,
    },
    Feature.GUESTS: {
        "Datastore.AllocateSpace": "create and grow disks",
        "Mapping.Use": "give guests mapped devices",
        "SDN.Use": "connect guests to bridges and virtual networks",
        "VM.Allocate": "create and remove guests",
        "VM.Clone": "clone templates",
        "VM.Config.CDROM": "set CD drives",
        "VM.Config.CPU": "set processors",
        "VM.Config.Cloudinit": "set cloud-init data",
        "VM.Config.Disk": "set disks",
        "VM.Config.HWType": "set the machine type and devices",
        "VM.Config.Memory": "set memory",
        "VM.Config.Network": "set network cards",
        "VM.Config.Options": "set names, tags and options",
        "VM.Migrate": "move guests to other nodes",
        "VM.PowerMgmt": "start and stop guests",
    },
    Feature.IMAGES: {
        "Datastore.Allocate": "find the folder of snippets, and remove images",
        "Datastore.AllocateTemplate": "upload and download images and templates",
        "Sys.AccessNetwork": "let a node download an image from its address",
    },
    Feature.POOLS: {"Pool.Allocate": "create, change and remove pools"},
    Feature.NETWORKS: {
        "SDN.Allocate": "create zones, virtual networks and subnets",
        "Sys.Modify": "create bridges and VLANs on nodes",
    },
    Feature.START_ORDER: {"Sys.Modify": "set the start order of guests"},
    Feature.HA: {"Sys.Console": "put guests under high availability"},
    Feature.REPLICATION: {"VM.Replicate": "keep copies of guests' disks on other nodes"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededPrivilege:
    """A privilege, what for, and of which feature."""

    privilege: str
    why: str
    feature: Feature

    def document(self) -> dict[str, str]:
        """Return the JSON view."""
        return {"privilege": self.privilege, "feature": self.feature.value, "why": self.why}


def list_privileges(
    features: Iterable[Feature], known: Iterable[str] | None = None
) -> tuple[NeededPrivilege, ...]:
    """Return what features need; everything needs to read.

    Args:
        features: What stackyard is to do.
        known: The privileges that the version of Proxmox knows; None for all of them.
    """
    chosen = {Feature.READ, *features}
    there = None if known is None else frozenset(known)
    return tuple(
        NeededPrivilege(privilege=privilege, why=why, feature=feature)
        for feature, needed in _TABLE.items()
        if feature in chosen
        for privilege, why in needed.items()
        if there is None or privilege in there
    )
