"""Whether what guests are made from is there, or can be had."""

from __future__ import annotations

import asyncio
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.desired import Container, Download, Upload
from stackyard.diagnostics import Diagnostics
from stackyard.guard.cluster import TOO_MUCH_STORAGE
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.model import Seen
from stackyard.proxmox import RefusedError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.desired import File, Guest
    from stackyard.operator.preflight.scene import Scene

__all__ = ["check_images"]

_FORBIDDEN = 403


async def check_images(scene: Scene) -> Seen:
    """Check that images, templates and sources of clones are there, or that the host can download them."""
    found = Diagnostics()
    volumes = {
        (guest.node, volume): guest.name for guest in scene.desired.guests for volume in _volumes(guest)
    }
    downloads = [file for file in scene.desired.files if isinstance(file, Download)]
    places = {(node, volume.partition(":")[0]) for node, volume in volumes}
    places |= {(file.node, file.datastore) for file in downloads}
    there = await _contents(scene, sorted(places & set(scene.datastores)))
    for (node, volume), who in sorted(volumes.items()):
        listed = there.get((node, volume.partition(":")[0]))
        if listed is not None and volume not in listed:
            close = difflib.get_close_matches(volume, listed, 1)
            hint = f" There is {close[0]}." if close else ""
            found.add(kinds.IMAGE, f"{who} is made from {volume}, which is not on {node}.{hint}")
    missing = [d for d in downloads if d.volume_id not in (there.get((d.node, d.datastore)) or ())]
    await _check_downloads(scene, missing, found)
    _check_local(scene, found)
    count = len(volumes) + len(downloads)
    absent = sum(finding.kind is kinds.IMAGE for finding in found)
    parts = ((count - len(missing) - absent, "there"), (len(missing), "to download"), (absent, "missing"))
    text = ", ".join(f"{number} {word}" for number, word in parts if number) or "none needed"
    return Seen(text=text, findings=tuple(found))


def _volumes(guest: Guest) -> Iterator[str]:
    """Return the volumes that have to be there already."""
    files: list[File | None] = []
    if guest.imported:
        return
    if isinstance(guest, Container):
        files.append(guest.template)
    else:
        files += [disk.file for disk in guest.disks]
        files.append(guest.cdrom.file if guest.cdrom is not None else None)
    files.append(guest.hook_script)
    yield from (file for file in files if isinstance(file, str))


async def _contents(
    scene: Scene, places: Sequence[tuple[str, str]]
) -> Mapping[tuple[str, str], frozenset[str] | None]:
    """Return the volumes on datastores; nothing where we may not look, which the check of rights says."""

    async def listed(node: str, datastore: str) -> frozenset[str] | None:
        path = f"/nodes/{quoted(node)}/storage/{quoted(datastore)}/content"
        try:
            rows = await scene.client.get(path)
        except RefusedError as err:
            if err.status == _FORBIDDEN:
                return None
            raise
        return frozenset(str(row["volid"]) for row in rows)

    answers = await asyncio.gather(*(listed(*place) for place in places))
    return dict(zip(places, answers, strict=True))


async def _check_downloads(scene: Scene, missing: Sequence[Download], found: Diagnostics) -> None:
    """Let the hosts ask for what they would download, so that their own way out is what is tried."""
    reachable = [file for file in missing if file.node in scene.nodes]
    answers = await asyncio.gather(*(_metadata(scene, file) for file in reachable))
    sizes: dict[tuple[str, str], int] = {}
    for file, answer in zip(reachable, answers, strict=True):
        if isinstance(answer, str):
            found.add(kinds.DOWNLOAD, f"{file.node} cannot download {file.url}: {answer}.")
        elif answer is not None:
            place = (file.node, file.datastore)
            sizes[place] = sizes.get(place, 0) + int(answer.get("size") or 0)
    for (node, name), size_bytes in sizes.items():
        datastore = scene.datastores.get((node, name))
        if datastore is not None and size_bytes > datastore.free_bytes:
            found.add(
                TOO_MUCH_STORAGE,
                f"Downloads need {_gib(size_bytes)} on {name} on {node}; "
                f"room is for {_gib(datastore.free_bytes)}.",
            )


async def _metadata(scene: Scene, file: Download) -> dict[str, Any] | str | None:
    """Return what the server says of a file, or why it cannot be had; nothing where we may not ask."""
    path = f"/nodes/{quoted(file.node)}/query-url-metadata"
    try:
        answer: dict[str, Any] = await scene.client.get(
            path, {"url": file.url, "verify-certificates": file.verify_tls}
        )
    except RefusedError as err:
        return None if err.status == _FORBIDDEN else err.refusal.reason.strip(" .")
    return answer


def _check_local(scene: Scene, found: Diagnostics) -> None:
    for file in scene.desired.files:
        if isinstance(file, Upload) and "://" not in file.path and not Path(file.path).is_file():
            found.add(
                kinds.IMAGE, f"The file {file.path}, which is to be uploaded as {file.key}, is not there."
            )
    there = {guest.vm_id for guest in scene.cluster.guests}
    for guest in scene.desired.guests:
        if guest.clone is not None and guest.clone.vm_id not in there and guest.vm_id not in there:
            found.add(
                kinds.IMAGE, f"{guest.name} is a clone of the guest {guest.clone.vm_id}, which is not there."
            )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
