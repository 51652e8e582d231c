"""The files of `hypervisors/`, checked against each other and against the rest of the site."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics
from stackyard.desired import Snippet, Vm
from stackyard.sources.hypervisor.checks import check_hypervisors as check_files
from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts, StorageUse
from stackyard.sources.site.build import build_desired
from stackyard.sources.site.build_guest import NodeChoice
from stackyard.sources.site.damaged import is_lost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Desired, Guest
    from stackyard.sources.site.load import Site

__all__ = ["check_hypervisors"]

_VOLUME = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*):(import|iso|snippets|vztmpl)/\S+")


def check_hypervisors(site: Site, found: Diagnostics) -> None:
    """Check every file of a cluster or a node."""
    if not site.hypervisors:
        return
    files = [
        HypervisorFile.of(name, one.places, one.model, functools.partial(is_lost, one.places))
        for name, one in site.hypervisors.items()
    ]
    nodes = {name: node.model.node or name for name, node in site.nodes.items()}
    facts = SiteFacts(
        nodes=None if site.broken["nodes"] else nodes,
        secrets=frozenset(name for name, _ in site.secrets.values()) if _knows_secrets(site) else None,
        uses=tuple(_list_uses(site)) if any(file.section("storages") for file in files) else (),
    )
    check_files(files, facts, found)


def _knows_secrets(site: Site) -> bool:
    return site.secrets.is_known or site.secrets.is_absent


def _list_uses(site: Site) -> Iterator[StorageUse]:
    """Return the storages that envs use; an env with mistakes is left out."""
    for name, env in site.envs.items():
        if name in site.broken["envs"] or site.file is None:
            continue
        if not all(guest.is_whole for guest in site.guests(name)):
            continue
        said = env.model.node
        # One that names no node is for each that an apply may name.
        for node in (one for one in site.nodes.values() if said in (None, one.name)):
            broken = node.name in site.broken["nodes"]
            choice = NodeChoice.of(node)
            desired = None if broken else build_desired(site, name, choice, Diagnostics())
            if desired is not None:
                yield from _uses_of(site, name, desired)


def _uses_of(site: Site, env: str, desired: Desired) -> Iterator[StorageUse]:
    places = {guest.name: guest.place(("name",)) for guest in site.guests(env)}
    above = site.envs[env].places.place()
    for guest in desired.guests:
        word = "VM" if isinstance(guest, Vm) else "container"
        for storage, content in dict.fromkeys((*_drives(guest), *_volumes(guest.model_dump()))):
            yield StorageUse(
                storage=storage,
                node=guest.node,
                content=content,
                who=f"The {word} '{guest.name}'",
                where=places.get(guest.name, above),
            )
    for file in desired.files:
        yield StorageUse(
            storage=file.datastore,
            node=file.node,
            content="snippets" if isinstance(file, Snippet) else file.content,
            who=f"The file '{file.volume_id}' of the env '{env}'",
            where=above,
        )


def _drives(guest: Guest) -> Iterator[tuple[str, str]]:
    """Return the storages of the disks of a guest."""
    if not isinstance(guest, Vm):
        if guest.root_disk is not None:
            yield guest.root_disk.datastore, "rootdir"
        # Anything else is a folder of the node, or a volume that exists.
        volumes = [mount.volume for mount in guest.mounts if not set(mount.volume) & set("/:")]
        yield from ((volume, "rootdir") for volume in volumes)
        return
    for drive in (*guest.disks, guest.efi_disk, guest.tpm, guest.cloud_init):
        if drive is not None and drive.datastore is not None:
            yield drive.datastore, "images"


def _volumes(value: Any) -> Iterator[tuple[str, str]]:
    """Return the storage and content type of every volume that a value names."""
    if isinstance(value, str):
        named = _VOLUME.fullmatch(value)
        if named is not None:
            yield named[1], named[2]
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _volumes(part)
