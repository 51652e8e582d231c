"""Storages: each place once, with the contents that guests, files and backups of the site need."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.base.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts, StorageUse

__all__ = ["SAME_PLACE", "check_storages", "place_of"]

SAME_PLACE = Kind(
    code="E-HYPERVISOR-STORAGE",
    summary="Two storages are in the same place",
    remedy="Keep one of them: Proxmox would lock, count and delete the same volumes under two names.",
)
BAD_PATH = Kind(
    code="E-HYPERVISOR-PATH",
    summary="A path is not absolute",
    remedy="Write the whole path of the folder on the node, as /srv/data.",
)
BAD_CONTENT = Kind(
    code="E-HYPERVISOR-CONTENT",
    summary="A storage lacks a content type",
    remedy="Add the type to `content`, or move what needs it to another storage.",
)

_FILES = frozenset({"backup", "images", "import", "iso", "none", "rootdir", "snippets", "vztmpl"})
_VOLUMES = frozenset({"images", "none", "rootdir"})
# What a type of storage can have, as Proxmox says.
_CONTENTS = {
    "directory": _FILES,
    "nfs": _FILES,
    "cifs": _FILES,
    "lvm": _VOLUMES,
    "lvmthin": _VOLUMES,
    "zfspool": _VOLUMES,
    "pbs": frozenset({"backup", "none"}),
}


def check_storages(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check the storages of every cluster."""
    for file in files:
        storages = file.section("storages")
        for number, storage in enumerate(storages):
            path = storage.values.get("path")
            if path is not None and not path.startswith("/"):
                found.add(BAD_PATH, f"'{path}' does not begin with `/`.", file.place(storage, "path"))
            for first in storages[:number]:
                if place_of(storage.values) == place_of(first.values) and _share_a_node(storage, first):
                    detail = (
                        f"'{first.name}' and '{storage.name}' are both {' '.join(place_of(storage.values))}."
                    )
                    found.add(SAME_PLACE, detail, file.place(storage), also=(file.place(first),))
                    break
            for index, content in enumerate(storage.values.get("content") or ()):
                known = _CONTENTS[storage.values["type"]]
                if content not in known:
                    words = ", ".join(sorted(known - {"none"}))
                    meant = did_you_mean(content, known)
                    detail = (
                        f"A storage of the type {storage.values['type']} has {words}, not '{content}'.{meant}"
                    )
                    found.add(BAD_CONTENT, detail, file.place(storage, "content", index))
        _check_backups(file, found)
    _check_uses(files, site, found)


def place_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where the volumes of a storage are, from what a file says of it."""
    kind = values["type"]
    if kind == "directory":
        return (posixpath.normpath(values["path"]),)
    if kind == "nfs":
        return "nfs", f"{values['server']}:{posixpath.normpath(values['export'])}"
    if kind == "cifs":
        below = (values.get("subdirectory") or "").strip("/")
        return "cifs", f"//{values['server']}/{values['share']}/{below}".rstrip("/").lower()
    if kind == "pbs":
        return "pbs", f"{values['server']}:{values['datastore']}", values.get("namespace") or ""
    if kind == "zfspool":
        return "zfspool", values["zfs_pool"].strip("/")
    return kind, "/".join((values["volume_group"], values.get("thin_pool") or "")).rstrip("/")


def _share_a_node(one: Entry, other: Entry) -> bool:
    nodes = [set(storage.values.get("nodes") or ()) for storage in (one, other)]
    return not all(nodes) or bool(nodes[0] & nodes[1])


def _check_backups(file: HypervisorFile, found: Diagnostics) -> None:
    storages = {storage.name: storage for storage in file.section("storages")}
    for job in file.section("backups"):
        storage = storages.get(job.values["storage"])
        if storage is not None and _lacks(file, storage, "backup"):
            detail = (
                f"The backup job '{job.name}' needs `backup` on '{storage.name}', whose `content` lacks it."
            )
            found.add(BAD_CONTENT, detail, file.place(job, "storage"), also=(file.place(storage, "content"),))


def _lacks(file: HypervisorFile, storage: Entry, content: str) -> bool:
    """Return whether a storage says its contents, and not this one."""
    said = storage.values.get("content")
    return said is not None and content not in said and not file.is_lost(*storage.path)


def _check_uses(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check that a storage has what guests and files of envs need; once for each content type."""
    reported: set[tuple[str, str]] = set()
    for use in site.uses:
        declared = list(_find(files, use))
        # With two clusters it is not known whose storage is meant.
        if len(declared) != 1 or (use.storage, use.content) in reported:
            continue
        file, storage = declared[0]
        if _lacks(file, storage, use.content):
            reported.add((use.storage, use.content))
            detail = f"{use.who} needs `{use.content}` on '{storage.name}', whose `content` lacks it."
            found.add(BAD_CONTENT, detail, file.place(storage, "content"), also=(use.where,))


def _find(files: Sequence[HypervisorFile], use: StorageUse) -> Iterator[tuple[HypervisorFile, Entry]]:
    for file in files:
        for storage in file.section("storages"):
            if storage.name == use.storage and use.node in (storage.values.get("nodes") or (use.node,)):
                yield file, storage
