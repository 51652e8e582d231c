"""Files that are on a storage already, or that others use: used where they are the same, never deleted.

Two targets may want the same image on a node, and an image may have been there before any of them. The one
that downloaded a file owns it. Others use it, and the registry of targets says that they do, so that the
owner does not take it away with its own guests.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.clients import proxmox
from stackyard.clients.proxmox import quote
from stackyard.desired import Download, Upload
from stackyard.engine.tofu import PlanMode
from stackyard.guard import Finding
from stackyard.guard.destruction import FILES
from stackyard.guard.subjects import data_files, short_type
from stackyard.path.known_state import read_known_state
from stackyard.path.owners import StateLocality, node_fingerprints, place_of
from stackyard.render.references import address_of_file, data_addresses
from stackyard.render.userdata import is_generated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.desired import Desired
    from stackyard.guard import Cluster
    from stackyard.path.known_state import KnownState
    from stackyard.path.run import Run
    from stackyard.path.target import Resolved
    from stackyard.state.inside import Instance
    from stackyard.state.managed import ManagedResources
    from stackyard.state.targets import TargetRecord

__all__ = ["Files", "SharedFiles", "look_at_files", "shared_names"]

FILE_DIFFERS = Kind(
    code="E-GUARD-FILE-DIFFERS",
    summary="Another file already has the name of a file to upload",
    remedy="Give the new file another name (`file_name`), or remove the one that is there from the storage.",
)
FILE_KEPT = Kind(
    code="W-GUARD-FILE-KEPT",
    summary="A file is taken out of the state and stays on its storage",
    remedy="Nothing has to be done: others use it. Remove it from the storage when they no longer do.",
    severity=Severity.WARNING,
)

# Files that a guest uses as long as it exists; of images and templates it has a copy.
_IN_USE = ("iso", "snippets")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFiles:
    """What becomes of the files of a target.

    Attributes:
        desired: The model, with files that are there already marked as shared.
        refused: Files that are in the way of others.
        notes: Files that stay.
        forget: Addresses of files that leave the state and stay on their storage.
        moves: Files that are in the state under one address and in the model under another.
    """

    desired: Desired
    refused: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    forget: frozenset[str] = frozenset()
    moves: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What is known before files are looked at.

    Attributes:
        known: What the state has.
        cluster: What the cluster has.
        record: What the registry has of the target.
        managed: What the other states have.
    """

    known: KnownState
    cluster: Cluster
    record: TargetRecord | None
    managed: ManagedResources


def shared_names(desired: Desired, cluster: Cluster) -> tuple[str, ...]:
    """Return the files that a model uses and does not own, as the registry names them."""
    shared = (file for file in desired.files if file.kind != "snippet" and file.is_shared)
    return tuple(sorted(_name(cluster, file.node, file.volume_id) for file in shared))


def _name(cluster: Cluster, node: str, volume: str) -> str:
    """Return the one name of a file: on a storage that nodes share, it is the same on all of them."""
    storage = cluster.storage(node, volume.partition(":")[0])
    return f"{'*' if storage is not None and storage.is_shared else node} {volume}"


async def look_at_files(run: Run, before: Files, *, mode: PlanMode) -> SharedFiles:
    """Look which files of a target are there already, and which of those that leave it others use.

    Raises:
        ProxmoxError: The cluster does not answer.
        StoreError: The store cannot say.
    """
    desired, known, cluster = run.resolved.desired, before.known, before.cluster
    if not known.is_readable:
        return SharedFiles(desired=desired)
    new = () if mode is not PlanMode.NORMAL else tuple(_new_files(run, desired, known))
    leaving = tuple(_list_leaving(run.resolved, known, mode))
    moves = _moves(new, leaving)
    new = tuple(file for file in new if address_of_file(file) not in moves.values())
    leaving = tuple(one for one in leaving if one.address not in moves)
    listed = await _list_volumes(run, new)
    there = [file for file in new if (file.node, file.volume_id) in listed]
    if not there and not leaving:
        return SharedFiles(desired=desired, moves=tuple(moves.items()))
    others = await _OtherStates.read(run, before)
    used = set() if before.record is None else set(before.record.files)
    to_compare = [file for file in there if _name(cluster, file.node, file.volume_id) not in used]
    verdicts = await asyncio.gather(*(_compare(run, file, listed, others) for file in to_compare))
    differing = {file.key: why for file, why in zip(to_compare, verdicts, strict=True) if why}
    same = {file.key for file in there if file.key not in differing}
    kept = {one.address: who for one in leaving if (who := await _user_of(run, one, others, before))}
    return SharedFiles(
        desired=_mark_shared(desired, same),
        refused=tuple(Finding(kind=FILE_DIFFERS, detail=why) for why in differing.values()),
        notes=tuple(
            Finding(kind=FILE_KEPT, detail=f"{known.instances[address].attributes.get('id')}: {who}.")
            for address, who in kept.items()
        ),
        forget=frozenset(kept),
        moves=tuple(moves.items()),
    )


def _moves(new: Iterable[Download | Upload], leaving: Iterable[Instance]) -> dict[str, str]:
    """Return the files that only have another address: the same volume, of the same kind of resource."""
    by_volume = {
        (one.type, one.attributes.get("node_name"), one.attributes.get("id")): one.address for one in leaving
    }
    found = {}
    for file in new:
        address = address_of_file(file)
        old = by_volume.get((address.partition(".")[0], file.node, file.volume_id))
        if old is not None:
            found[old] = address
    return found


def _mark_shared(desired: Desired, keys: set[str]) -> Desired:
    if not keys:
        return desired
    files = tuple(
        file.model_copy(update={"is_shared": True}) if file.key in keys else file for file in desired.files
    )
    return desired.model_copy(update={"files": files})


def _new_files(run: Run, desired: Desired, known: KnownState) -> Iterator[Download | Upload]:
    """Return the files that the state does not have, and that no killed run of ours was writing."""
    entries = () if run.served is None else run.served.journal.entries
    begun = {entry.subject.name for entry in entries}
    for file in desired.files:
        is_new = not isinstance(file, Download | Upload) or address_of_file(file) not in known.instances
        if is_new and isinstance(file, Download | Upload) and f"{file.node}/{file.volume_id}" not in begun:
            yield file


def _list_leaving(resolved: Resolved, known: KnownState, mode: PlanMode) -> Iterator[Instance]:
    """Return the files of the state that would be deleted; the data of single guests is no one else's."""
    desired, stay, modules = resolved.desired, set[str](), tuple[str, ...]()
    if mode is PlanMode.NORMAL:
        # What becomes of files in own code, that code says.
        modules = resolved.code.prefixes
        stay = {address_of_file(file) for file in desired.files}
        stay |= {address for vm in desired.vms for address in data_addresses(vm.key)}
    data = set(_generated(known, resolved.target.state_name))
    for address, instance in known.instances.items():
        kind = short_type(instance.type)
        is_kept = address in stay or address.startswith(modules)
        if kind not in FILES or is_kept or instance.attributes.get("id") in data:
            continue
        yield instance


def _generated(known: KnownState, scope: str) -> Iterator[str]:
    """Return the volume ids of the cloud-init data that was generated for single guests."""
    for guest in known.guests.values():
        vm_id = guest.attributes.get("vm_id")
        for attribute, volume in data_files(guest.attributes).items():
            name, field = volume.rpartition("/")[2], attribute.removesuffix("_file_id")
            if is_generated(name, field, scope=scope, vm_id=vm_id):
                yield volume


async def _list_volumes(
    run: Run, files: Iterable[Download | Upload]
) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Return what the storages list, by node and volume."""
    places = sorted({(file.node, file.datastore, file.content) for file in files})
    answers = await asyncio.gather(*(_content(run.client, *place) for place in places))
    return {
        (node, str(row["volid"])): row
        for (node, _, _), rows in zip(places, answers, strict=True)
        for row in rows
    }


async def _content(
    client: proxmox.Client, node: str, datastore: str, content: str
) -> list[Mapping[str, Any]]:
    path = f"/nodes/{quote(node)}/storage/{quote(datastore)}/content"
    try:
        rows: list[Mapping[str, Any]] = await client.get(path, {"content": content})
    except proxmox.RefusedError:
        # A storage that does not exist, or that we may not look into, is for others to report.
        return []
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _OtherStates:
    """What other states on the same cluster have and use of files: the states, by the name of the file."""

    cluster: Cluster
    owners: Mapping[str, str]
    users: Mapping[str, str]

    @classmethod
    async def read(cls, run: Run, before: Files) -> _OtherStates:
        own, cluster, managed = run.resolved.target.state_name, before.cluster, before.managed
        nodes = {node.name for node in cluster.nodes}
        prints = await node_fingerprints(run)

        def is_here(state: str) -> bool:
            return place_of(run, state, nodes, prints) is not StateLocality.ELSEWHERE

        owners = {
            _name(cluster, node, identity): state
            for state, held in managed.holdings.items()
            if is_here(state)
            for kind, node, identity in held
            if short_type(kind) in FILES
        }
        users = {
            name: record.state
            for record in run.states.targets.all()
            # What a target used counts as long as something of it is left, or no one can tell.
            if record.state != own and managed.holdings.get(record.state) != () and is_here(record.state)
            for name in record.files
        }
        return cls(cluster=cluster, owners=owners, users=users)

    def owner_of(self, node: str, volume: str) -> str | None:
        return self.owners.get(_name(self.cluster, node, volume))

    def user_of(self, node: str, volume: str) -> str | None:
        return self.users.get(_name(self.cluster, node, volume)) or self.owner_of(node, volume)


async def _compare(
    run: Run,
    file: Download | Upload,
    listed: Mapping[tuple[str, str], Mapping[str, Any]],
    others: _OtherStates,
) -> str:
    """Say why the file that is there is not the one that is wanted; nothing where it is."""
    size = listed[file.node, file.volume_id].get("size")
    said = f"{file.volume_id} is on {file.node} already"
    owner = others.owner_of(file.node, file.volume_id)
    if owner is not None and isinstance(file, Download):
        known = await asyncio.to_thread(read_known_state, run.states, owner)
        return _against(known.instances.values(), file, f"{said}, for {owner}")
    if isinstance(file, Upload):
        try:
            wanted: object = os.stat(file.path).st_size
        except OSError as err:
            return f"{said}, and {file.path} cannot be read: {err.strerror}."
        return "" if wanted == size else f"{said}, with {size} bytes; {file.path} has {wanted}."
    if file.decompression is not None:
        return f"{said}; stackyard cannot compare the content of an unpacked file."
    path = f"/nodes/{quote(file.node)}/query-url-metadata"
    try:
        found = await run.client.get(path, {"url": file.url, "verify-certificates": file.verify_tls})
    except proxmox.ProxmoxError as err:
        return f"{said}, and {file.url} cannot be compared with it: {err.detail}"
    wanted = (found or {}).get("size")
    return "" if wanted == size else f"{said}, with {size} bytes; {file.url} has {wanted}."


def _against(instances: Iterable[Instance], file: Download, said: str) -> str:
    """Compare a download with the one that another state has of the same name."""
    for one in instances:
        values = one.attributes
        # Another node may have downloaded it to a storage that they share.
        if values.get("id") != file.volume_id:
            continue
        if values.get("url") != file.url:
            return f"{said}, from {values.get('url')}; here it comes from {file.url}."
        checksums = {text.lower() for text in (values.get("checksum"), file.checksum) if text}
        return "" if len(checksums) < 2 else f"{said}, with another checksum."
    return f"{said}, which cannot be read."


async def _user_of(run: Run, instance: Instance, others: _OtherStates, before: Files) -> str:
    """Say who else uses a file; nothing where no one does."""
    values = instance.attributes
    node, volume = str(values.get("node_name")), str(values.get("id"))
    state = others.user_of(node, volume)
    if state is not None:
        return f"the state {state} uses it"
    return await _guest_with(run, before, volume) if values.get("content_type") in _IN_USE else ""


async def _guest_with(run: Run, before: Files, volume: str) -> str:
    """Return a guest of someone else whose configuration names a file, or may do so."""
    own = before.known.vm_ids
    guests = [guest for guest in before.cluster.guests if guest.vm_id not in own]
    paths = [f"/nodes/{quote(guest.node)}/{guest.kind}/{guest.vm_id}/config" for guest in guests]
    answers = await asyncio.gather(*(run.client.get(path) for path in paths), return_exceptions=True)
    for guest, config in zip(guests, answers, strict=True):
        who = f"{guest.name} ({guest.vm_id} on {guest.node})"
        if isinstance(config, proxmox.ProxmoxError):
            return f"{who} may use it, and its configuration cannot be read"
        if isinstance(config, BaseException):
            raise config
        if isinstance(config, dict) and any(volume in str(value) for value in config.values()):
            return f"{who} uses it"
    return ""
