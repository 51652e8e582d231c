"""Package repositories of a node: `/nodes/{node}/apt/repositories`, which one call lists by their files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["find_repositories", "is_standard", "repositories_path", "repository_values", "standard_values"]

# One list serves all reads of a refresh.
_AGE_S = 0.5
_FOLDER = "/etc/apt/sources.list.d"
_CHANNELS = ("enterprise", "no-subscription", "test")
# The releases of Ceph that bpg knows; it finds neither file nor index of others.
_CEPH = ("quincy", "reef", "squid")
_CEPH_FILES = (f"{_FOLDER}/ceph.sources", f"{_FOLDER}/ceph.list")
_ENTERPRISE_FILES = (f"{_FOLDER}/pve-enterprise.sources", f"{_FOLDER}/pve-enterprise.list")
_MAIN_FILES = (f"{_FOLDER}/proxmox.sources", "/etc/apt/sources.list")


def repositories_path(state: Object) -> str:
    """Return the path of the repositories of a node."""
    return f"/nodes/{proxmox.quote(state['node'])}/apt/repositories"


async def find_repositories(work: Work, state: Object) -> Mapping[str, Any]:
    """Return the repositories of a node, and which of the standard ones are among them."""
    found: Mapping[str, Any] = await work.client.get(repositories_path(state), max_age_s=_AGE_S)
    return found


def repository_values(state: Object, found: Mapping[str, Any]) -> Object:
    """Return the attributes of a repository; where it is gone, they are null."""
    path, index = state["file_path"], int(state["index"])
    files = {one["path"]: one["repositories"] for one in found.get("files") or ()}
    listed = files.get(path) or []
    row = listed[index] if index < len(listed) else None
    place = _plain(str(path).removeprefix("/")).lower()
    return {
        "id": f"apt_repository_{str(state['node']).lower()}_{place}_{index}",
        "comment": None if row is None or row.get("Comment") is None else row["Comment"].removesuffix("\n"),
        "components": None if row is None else row.get("Components"),
        "enabled": None if row is None else flag(row.get("Enabled")),
        "file_type": None if row is None else row["FileType"],
        "package_types": None if row is None else row["Types"],
        "suites": None if row is None else row["Suites"],
        "uris": None if row is None else row["URIs"],
    }


def is_standard(state: Object, found: Mapping[str, Any]) -> bool:
    """Tell whether a standard repository is configured, enabled or not."""
    row = _standard_row(state, found)
    return row is not None and row.get("status") is not None


def standard_values(state: Object, found: Mapping[str, Any]) -> Object:
    """Return the attributes of a standard repository."""
    handle, row = str(state["handle"]), _standard_row(state, found) or {}
    index = _find_index(handle, found)
    paths = [one["path"] for one in found.get("files") or () if one["path"] in _files_of(handle)]
    status = row.get("status")
    return {
        "id": f"apt_standard_repository_{str(state['node']).lower()}_{_plain(handle)}" if row else None,
        "description": row.get("description"),
        "file_path": paths[-1] if paths and index is not None else None,
        "index": index,
        "name": row.get("name"),
        "status": None if status is None else int(status),
    }


def _plain(text: str) -> str:
    # The digit 0 is among what bpg replaces.
    return re.sub(r"[^a-zA-Z1-9_]", "_", text)


def _standard_row(state: Object, found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((row for row in found.get("standard-repos") or () if row["handle"] == state["handle"]), None)


def _parts(handle: str) -> tuple[str, str]:
    """Return the release of Ceph, empty for Proxmox itself, and the channel of a standard repository."""
    for release in _CEPH:
        if handle.startswith(f"ceph-{release}-"):
            return release, handle.removeprefix(f"ceph-{release}-")
    return "", handle


def _files_of(handle: str) -> tuple[str, ...]:
    release, channel = _parts(handle)
    if release:
        return _CEPH_FILES
    if channel not in _CHANNELS:
        return ()
    return _ENTERPRISE_FILES if channel == "enterprise" else _MAIN_FILES


def _find_index(handle: str, found: Mapping[str, Any]) -> int | None:
    release, channel = _parts(handle)
    # Before Proxmox VE 9 the component of the test channel had no dash.
    components = {channel} if release else {f"pve-{channel}", f"pve{channel}"}
    for one in found.get("files") or ():
        for index, row in enumerate(one["repositories"]):
            if components.isdisjoint(row.get("Components") or ()):
                continue
            if any(release in uri for uri in row["URIs"]):
                return index
    return None
