"""Storages: each place once, with the contents that guests, files and backups of the site need."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import parse_address
from stackyard.base.diagnostics import Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.hypervisor.checks.owners import find_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts, StorageUse

__all__ = ["BAD_CONTENT", "SAME_PLACE", "check_storages", "shared_place"]

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
    _check_apart(files, site, found)
    for file in files:
        for storage in file.section("storages"):
            path = storage.values.get("path")
            if path is not None and not path.startswith("/"):
                found.add(BAD_PATH, f"'{path}' does not begin with `/`.", file.place(storage, "path"))
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


def _check_apart(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check that no two storages of a cluster are in the same place, in whichever files they are."""
    seen: dict[str | None, list[tuple[HypervisorFile, Entry]]] = {}
    for file in files:
        for storage in file.section("storages"):
            before = seen.setdefault(find_cluster(file, site), [])
            for its, first in before:
                place = shared_place((first.name, first.values), (storage.name, storage.values))
                if place and _share_a_node(storage, first):
                    detail = f"'{first.name}' and '{storage.name}' are both {place}."
                    found.add(SAME_PLACE, detail, file.place(storage), also=(its.place(first),))
                    break
            before.append((file, storage))


def shared_place(one: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]]) -> str:
    """Return the place that two storages share, by their names and what files say of them; empty for none."""
    places = [{_place_of(values), *_mount_of(name, values)} for name, values in (one, other)]
    return next((" ".join(place) for place in sorted(places[0] & places[1])), "")


def _mount_of(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Return the folder in which Proxmox mounts a share."""
    if values["type"] in ("nfs", "cifs"):
        yield (f"/mnt/pve/{name}",)


def _place_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where the volumes of a storage are, from what a file says of it."""
    kind = values["type"]
    if kind == "directory":
        return (_clean(values["path"]),)
    if kind == "nfs":
        return "nfs", f"{_host(values['server'])}:{_clean(values['export'])}"
    if kind == "cifs":
        parts = (_host(values["server"]), values["share"], values.get("subdirectory") or "")
        return "cifs", "//" + "/".join(part.strip("/") for part in parts).rstrip("/").lower()
    if kind == "pbs":
        namespace = (values.get("namespace") or "").strip("/")
        return "pbs", f"{_host(values['server'])}:{values['datastore']}", namespace
    if kind == "zfspool":
        return "zfspool", values["zfs_pool"].strip("/")
    return kind, "/".join((values["volume_group"], values.get("thin_pool") or "")).rstrip("/")


def _clean(path: str) -> str:
    """Return a path in its shortest form; two slashes at its beginning are one."""
    return posixpath.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def _host(server: str) -> str:
    """Return a server as everybody would write it."""
    try:
        return str(parse_address(server.strip("[]")))
    except ValueError:
        return server.rstrip(".").lower()


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
