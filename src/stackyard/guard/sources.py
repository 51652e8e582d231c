"""What guests are made from: images, templates, snippets and sources of clones have to be there, and fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.base.suggestions import closest
from stackyard.desired import Container, Download, Vm
from stackyard.desired.check import list_used_files
from stackyard.fields.properties import GIB, parse, parse_size
from stackyard.guard.facts import METADATA, contents_of, guest_config, metadata_of, rights_on, volume_info
from stackyard.guard.findings import Finding
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Guest
    from stackyard.desired.files import AnyFile, File
    from stackyard.guard.cluster import Cluster, ClusterGuest
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "ask_clones",
    "ask_sizes",
    "ask_volumes",
    "find_clones",
    "find_small_disks",
    "find_volumes",
    "volumes_of",
]

MISSING_SOURCE = Kind(
    code="E-PREFLIGHT-IMAGE",
    summary="The source of a guest is missing",
    remedy="Put it on the datastore, or correct the name in the input; `images` in site.yaml says where "
    "images come from.",
)
SMALL_DISK = Kind(
    code="E-GUARD-DISK-TOO-SMALL",
    summary="A disk is smaller than its image",
    remedy="Make the disk at least as large as the image: Proxmox never makes a disk smaller.",
)

# A file may be larger than the disk in it by what its format adds.
_FORMAT_SHARE = 1.02
# Attributes of the provider that name a file which is read each time that a guest starts.
_READ_AT_START = {"hook_script": "hook_script_file_id", "cdrom": "cdrom", "cloud_init": "initialization"}
_SEEING = ("Datastore.Audit", "Datastore.AllocateSpace", "Datastore.Allocate")


def volumes_of(
    guest: Guest, attributes: frozenset[str] | None = None
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Return the volumes of the cluster that have to be there for a guest, with the field of each.

    Args:
        guest: The guest.
        attributes: What of it changes; None for one that is created.
    """
    for path, used in list_used_files(guest):
        if not isinstance(used, str) or (guest.imported and attributes is None and path[0] in _MADE_OF):
            continue
        if attributes is None or _READ_AT_START.get(str(path[0])) in attributes:
            yield path, used


_MADE_OF = ("disks", "template")


def ask_volumes(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the lists in which the volumes should be, and whether the token sees them."""
    for guest, attributes in implied.touched_guests:
        for _, volume in volumes_of(guest, attributes):
            if cluster.storage(guest.node, volume.partition(":")[0]) is not None:
                yield contents_of(guest.node, volume)
            yield from rights_on(f"/storage/{volume.partition(':')[0]}")


def find_volumes(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report images, templates, ISO files and snippets that are not on their datastore."""
    for guest, attributes in implied.touched_guests:
        for path, volume in volumes_of(guest, attributes):
            missing = _missing(guest, volume, facts)
            if missing:
                yield Finding(
                    kind=MISSING_SOURCE,
                    detail=f"{guest.name} {_describe_use(path)} {volume}, which {missing}",
                    label=label(guest.key),
                    field=path,
                )


def _describe_use(path: tuple[str | int, ...]) -> str:
    return "uses" if path[0] in _MADE_OF else "reads"


def _missing(guest: Guest, volume: str, facts: Facts) -> str:
    """Say where a volume is missing; nothing where it is there, or where the token may not look."""
    datastore, _, name = volume.partition(":")
    # Proxmox lists snippets only to those who may administrate the datastore.
    seeing = ("Datastore.Allocate",) if name.startswith("snippets/") else _SEEING
    if not facts.may(f"/storage/{datastore}", *seeing):
        return ""
    node = facts.cluster.node(guest.node)
    if node is None or not node.is_online:
        return ""
    if facts.cluster.storage(guest.node, datastore) is None:
        known = ", ".join(sorted(s.name for s in facts.cluster.storages if s.node == guest.node)) or "none"
        return f"is on a datastore that {guest.node} does not have; it has {known}."
    rows = facts.answers.get(contents_of(guest.node, volume))
    listed = None if not isinstance(rows, list) else [str(row.get("volid")) for row in rows]
    if listed is None or volume in listed:
        return ""
    close = closest(volume, listed)
    return f"is not on {guest.node}." + (f" There is {close}." if close else "")


def ask_sizes(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask how large the images are; of those that are not there yet, how large the files."""
    del cluster
    for guest, _, used, _ in _disks_from_images(implied):
        question = _size_question(implied, guest, used)
        if question is not None:
            yield question


def find_small_disks(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report disks that are smaller than the image that they are created from."""
    for guest, path, used, size_gib in _disks_from_images(implied):
        question = _size_question(implied, guest, used)
        answer = None if question is None else facts.answers.get(question)
        size = (answer or {}).get("size") if isinstance(answer, dict) else None
        if not isinstance(size, int):
            continue
        file = implied.file(used)
        is_file_size = question is not None and question.path.endswith(METADATA)
        least = size / _FORMAT_SHARE if is_file_size else size
        if size_gib * GIB < least:
            name = used if file is None else file.volume_id
            yield Finding(
                kind=SMALL_DISK,
                detail=f"{guest.name} has a disk of {size_gib} GiB, and its image {name} has "
                f"{'at least ' if is_file_size else ''}{least / GIB:.1f} GiB.",
                label=label(guest.key),
                field=path,
            )


def _disks_from_images(implied: ImpliedCalls) -> Iterator[tuple[Guest, tuple[str | int, ...], File, int]]:
    for guest in implied.new_guests:
        if isinstance(guest, Vm) and not guest.imported:
            for index, disk in enumerate(guest.disks):
                if disk.file is not None:
                    yield guest, ("disks", index, "size_gib"), disk.file, disk.size_gib


def _size_question(implied: ImpliedCalls, guest: Guest, used: File) -> ApiRead | None:
    if isinstance(used, str):
        return volume_info(guest.node, used)
    file = implied.file(used)
    if file is None:
        return None
    if file.key not in implied.files:
        return volume_info(file.node, file.volume_id)
    if not isinstance(file, Download):
        return None
    twin = next((other for other in implied.desired.files if _is_twin(file, other, implied)), None)
    if twin is not None:
        return volume_info(twin.node, twin.volume_id)
    return metadata_of(file.node, file.url, verify=file.verify_tls)


def _is_twin(file: Download, other: AnyFile, implied: ImpliedCalls) -> bool:
    """Tell whether a file is the same image, and there already: by its checksum, as servers replace files."""
    is_same = isinstance(other, Download) and (other.url, other.checksum) == (file.url, file.checksum)
    return is_same and file.checksum is not None and other.key not in implied.files


def ask_clones(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the configurations of the guests that others are copied from."""
    for guest in implied.new_guests:
        if guest.clone is not None and not guest.imported:
            source = _source(guest, cluster)
            yield from rights_on(f"/vms/{guest.clone.vm_id}")
            if source is not None and isinstance(guest, Vm) and guest.disks:
                yield guest_config(source.node, source.kind, source.vm_id)


def find_clones(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report sources of clones that are not there, on another node, or larger than the clone."""
    for guest in implied.new_guests:
        if guest.clone is None or guest.imported:
            continue
        said = f"{guest.name} is a clone of the guest {guest.clone.vm_id}"
        source = _source(guest, facts.cluster)
        # One that this very plan makes is there when it is needed.
        is_made_first = any(other.vm_id == guest.clone.vm_id for other in implied.desired.guests)
        wrong = None
        if source is None:
            may_see = facts.may(f"/vms/{guest.clone.vm_id}", "VM.Audit")
            wrong = "which is not there" if may_see and not is_made_first else None
        elif (source.kind == "lxc") != isinstance(guest, Container):
            wrong = f"which is a {'container' if source.kind == 'lxc' else 'virtual machine'}"
        elif source.node != (guest.clone.node or guest.node):
            wrong = f"which is on {source.node}, and the input says {guest.clone.node or guest.node}"
        if wrong is not None:
            yield _clone_finding(MISSING_SOURCE, guest, f"{said}, {wrong}.", ("clone",))
        elif source is not None and isinstance(guest, Vm):
            yield from _find_small_clones(guest, said, facts.answers.get(_config_of(source)))


def _config_of(source: ClusterGuest) -> ApiRead:
    return guest_config(source.node, source.kind, source.vm_id)


def _find_small_clones(guest: Vm, said: str, config: Any) -> Iterator[Finding]:
    if not isinstance(config, dict):
        return
    for index, disk in enumerate(guest.disks):
        has = _size_in(config.get(disk.interface))
        if has > disk.size_gib * GIB:
            detail = f"{said}, whose {disk.interface} has {has / GIB:.1f} GiB; {disk.size_gib} is less."
            yield _clone_finding(SMALL_DISK, guest, detail, ("disks", index, "size_gib"))


def _clone_finding(kind: Kind, guest: Guest, detail: str, path: tuple[str | int, ...]) -> Finding:
    return Finding(kind=kind, detail=detail, label=label(guest.key), field=path)


def _source(guest: Guest, cluster: Cluster) -> ClusterGuest | None:
    wanted = None if guest.clone is None else guest.clone.vm_id
    return next((one for one in cluster.guests if one.vm_id == wanted), None)


def _size_in(drive: Any) -> int:
    return parse_size(parse(drive or "", "file").get("size")) or 0
