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

from stackyard import proxmox
from stackyard.desired import Download, Upload
from stackyard.diagnostics import Kind, Severity
from stackyard.engine.tofu import PlanMode
from stackyard.guard import Finding
from stackyard.guard.destruction import FILES
from stackyard.guard.subjects import short_type
from stackyard.path.known_state import read_known_state
from stackyard.path.owners import is_elsewhere, node_fingerprints
from stackyard.proxmox import quoted
from stackyard.render.references import address_of_file
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.desired import Desired
    from stackyard.guard import Cluster
    from stackyard.path.known_state import KnownState
    from stackyard.path.run import Run
    from stackyard.state.inside import Instance

__all__ = ["SharedFiles", "look_at_files", "shared_names"]

FILE_DIFFERS = Kind(
    code="E-GUARD-FILE-DIFFERS",
    summary="Another file has the name of one that is to be written",
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
_BETWEEN_LABELS = "_x2f_"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFiles:
    """What becomes of the files of a target.

    Attributes:
        desired: The model, with files that are there already marked as shared.
        refused: Files that are in the way of others.
        notes: Files that stay.
        forget: Addresses of files that leave the state and stay on their storage.
    """

    desired: Desired
    refused: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    forget: frozenset[str] = frozenset()


def shared_names(desired: Desired) -> tuple[str, ...]:
    """Return the files that a model uses and does not own, as the registry names them."""
    shared = (file for file in desired.files if file.kind != "snippet" and file.is_shared)
    return tuple(sorted(_name(file.node, file.volume_id) for file in shared))


def _name(node: str, volume: str) -> str:
    return f"{node} {volume}"


async def look_at_files(
    run: Run, desired: Desired, known: KnownState, cluster: Cluster, *, mode: PlanMode
) -> SharedFiles:
    """Look which files of a target are there already, and which of those that leave it others use.

    Raises:
        ProxmoxError: The cluster does not answer.
        StoreError: The store cannot say.
    """
    if not known.is_readable:
        return SharedFiles(desired=desired)
    new = () if mode is not PlanMode.NORMAL else tuple(_new_files(run, desired, known))
    leaving = tuple(_leaving(desired, known, mode))
    listed = await _listed(run, new)
    there = [file for file in new if _name(file.node, file.volume_id) in listed]
    if not there and not leaving:
        return SharedFiles(desired=desired)
    others = await _Others.read(run, cluster)
    verdicts = await asyncio.gather(*(_compare(run, file, listed, others) for file in there))
    differing = {file.key: why for file, why in zip(there, verdicts, strict=True) if why}
    same = {file.key for file in there if file.key not in differing}
    kept = {one.address: who for one in leaving if (who := await _user_of(run, one, others, cluster))}
    return SharedFiles(
        desired=_marked(desired, same),
        refused=tuple(Finding(kind=FILE_DIFFERS, detail=why) for why in differing.values()),
        notes=tuple(
            Finding(kind=FILE_KEPT, detail=f"{known.instances[address].attributes.get('id')}: {who} uses it.")
            for address, who in kept.items()
        ),
        forget=frozenset(kept),
    )


def _marked(desired: Desired, keys: set[str]) -> Desired:
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


def _leaving(desired: Desired, known: KnownState, mode: PlanMode) -> Iterator[Instance]:
    """Return the files of the state that would be deleted; the data of single guests is nobody else's."""
    stay = {address_of_file(file) for file in desired.files} if mode is PlanMode.NORMAL else set()
    for address, instance in known.instances.items():
        kind = short_type(instance.type)
        if kind not in FILES or address in stay or (kind == "file" and _BETWEEN_LABELS in address):
            continue
        yield instance


async def _listed(run: Run, files: Iterable[Download | Upload]) -> Mapping[str, Mapping[str, Any]]:
    """Return what the storages list, by the names that the registry uses."""
    places = sorted({(file.node, file.datastore, file.content) for file in files})
    answers = await asyncio.gather(*(_content(run.client, *place) for place in places))
    return {
        _name(node, str(row["volid"])): row
        for (node, _, _), rows in zip(places, answers, strict=True)
        for row in rows
    }


async def _content(
    client: proxmox.Client, node: str, datastore: str, content: str
) -> list[Mapping[str, Any]]:
    path = f"/nodes/{quoted(node)}/storage/{quoted(datastore)}/content"
    try:
        rows: list[Mapping[str, Any]] = await client.get(path, {"content": content})
    except proxmox.RefusedError:
        # A storage that does not exist, or that we may not look into, is for others to report.
        return []
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others:
    """What other states on the same cluster have and use of files: the states, by the name of the file."""

    owners: Mapping[str, str]
    users: Mapping[str, str]

    @classmethod
    async def read(cls, run: Run, cluster: Cluster) -> _Others:
        managed = await asyncio.to_thread(read_managed, run.states, but=run.resolved.target.state_name)
        nodes = {node.name for node in cluster.nodes}
        prints = await node_fingerprints(run)
        here = [state for state in managed.holdings if not is_elsewhere(run, state, nodes, prints)]
        owners = {
            _name(node, identity): state
            for state in here
            for kind, node, identity in managed.holdings[state]
            if short_type(kind) in FILES
        }
        users = {
            name: record.state
            for record in run.states.targets.all()
            # What a target used counts as long as something of it is left.
            if record.state in here and managed.holdings[record.state]
            for name in record.files
        }
        return cls(owners=owners, users=users)


async def _compare(
    run: Run, file: Download | Upload, listed: Mapping[str, Mapping[str, Any]], others: _Others
) -> str:
    """Say why the file that is there is not the one that is wanted; nothing where it is."""
    name = _name(file.node, file.volume_id)
    size = listed[name].get("size")
    said = f"{file.volume_id} is on {file.node} already"
    owner = others.owners.get(name)
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
        return f"{said}; of a file that is unpacked nobody can tell whether it is the same."
    path = f"/nodes/{quoted(file.node)}/query-url-metadata"
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
        if (values.get("node_name"), values.get("id")) != (file.node, file.volume_id):
            continue
        if values.get("url") != file.url:
            return f"{said}, from {values.get('url')}; here it comes from {file.url}."
        checksums = {text.lower() for text in (values.get("checksum"), file.checksum) if text}
        return "" if len(checksums) < 2 else f"{said}, with another checksum."
    return f"{said}, which cannot be read."


async def _user_of(run: Run, instance: Instance, others: _Others, cluster: Cluster) -> str:
    """Say who else uses a file; nothing where nobody does."""
    values = instance.attributes
    node, volume = str(values.get("node_name")), str(values.get("id"))
    state = others.users.get(_name(node, volume)) or others.owners.get(_name(node, volume))
    if state is not None:
        return f"the state {state}"
    return await _guest_with(run, cluster, volume) if values.get("content_type") in _IN_USE else ""


async def _guest_with(run: Run, cluster: Cluster, volume: str) -> str:
    """Return a guest of somebody else whose configuration names a file."""
    own = read_known_state(run.states, run.resolved.target.state_name).vm_ids
    guests = [guest for guest in cluster.guests if guest.vm_id not in own]
    paths = [f"/nodes/{quoted(guest.node)}/{guest.kind}/{guest.vm_id}/config" for guest in guests]
    answers = await asyncio.gather(*(run.client.get(path) for path in paths), return_exceptions=True)
    for guest, config in zip(guests, answers, strict=True):
        if isinstance(config, dict) and any(volume in str(value) for value in config.values()):
            return f"{guest.name} ({guest.vm_id} on {guest.node})"
    return ""
