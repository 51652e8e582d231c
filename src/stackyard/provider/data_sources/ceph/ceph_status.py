"""`proxmox_ceph_status`: how the Ceph cluster is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.checks import matches
from stackyard.provider.kinds import DataSource
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read_status(work: Work, config: Object) -> Object:
    node = config.get("node_name")
    path = "/cluster/ceph/status" if node is None else f"/nodes/{proxmox.quote(node)}/ceph/status"
    found = await work.client.get(path, max_age_s=_SAME_PICTURE_S)
    fsid = str(found.get("fsid") or "")
    return {
        **config,
        "id": fsid,
        "fsid": fsid,
        "health_status": str((found.get("health") or {}).get("status") or ""),
        "quorum_names": [str(name) for name in found.get("quorum_names") or ()],
    }


DATA_SOURCE = DataSource(
    names=("proxmox_ceph_status",),
    read=_read_status,
    rules={"node_name": Rule(check=matches(r"(?s).+", "not be empty"))},
)
