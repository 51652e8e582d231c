"""Whether what guests are created from is there, or can be had."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics
from stackyard.clients.proxmox import RefusedError, quote
from stackyard.desired import Download, Upload
from stackyard.guard.capacity import TOO_MUCH_STORAGE
from stackyard.guard.sources import MISSING_SOURCE, volumes_of
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.guard_checks import find_guard_refusals
from stackyard.operator.preflight.model import Observation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.operator.preflight.reachable_host import ReachableHost

__all__ = ["check_images"]

_FORBIDDEN = 403


async def check_images(reachable: ReachableHost) -> Observation:
    """Check that images, templates and sources of clones are there, or that the host can download them."""
    found = Diagnostics()
    found.extend(await find_guard_refusals(reachable, "images"))
    volumes = {volume for guest in reachable.implied.new_guests for _, volume in volumes_of(guest)}
    downloads = [file for file in reachable.desired.files if isinstance(file, Download)]
    missing = [file for file in downloads if file.key in reachable.implied.files]
    await _check_downloads(reachable, missing, found)
    _check_local(reachable, found)
    count = len(volumes) + len(downloads)
    absent = sum(finding.kind is MISSING_SOURCE for finding in found)
    parts = ((count - len(missing) - absent, "there"), (len(missing), "to download"), (absent, "missing"))
    text = ", ".join(f"{number} {word}" for number, word in parts if number > 0) or "none needed"
    return Observation(text=text, findings=tuple(found))


async def _check_downloads(reachable: ReachableHost, missing: Sequence[Download], found: Diagnostics) -> None:
    """Let the hosts ask for what they would download, so that their own way out is what is tried."""
    downloads = [file for file in missing if file.node in reachable.nodes]
    answers = await asyncio.gather(*(_metadata(reachable, file) for file in downloads))
    sizes: dict[tuple[str, str], int] = {}
    for file, answer in zip(downloads, answers, strict=True):
        if isinstance(answer, str):
            found.add(kinds.DOWNLOAD, f"{file.node} cannot download {file.url}: {answer}.")
        elif answer is not None:
            place = (file.node, file.datastore)
            sizes[place] = sizes.get(place, 0) + int(answer.get("size") or 0)
    for (node, name), size_bytes in sizes.items():
        datastore = reachable.datastores.get((node, name))
        if datastore is not None and size_bytes > datastore.free_bytes:
            found.add(
                TOO_MUCH_STORAGE,
                f"Downloads need {_gib(size_bytes)} on {name} on {node}; "
                f"room is for {_gib(datastore.free_bytes)}.",
            )


async def _metadata(reachable: ReachableHost, file: Download) -> dict[str, Any] | str | None:
    """Return what the server says of a file, or why it cannot be had; nothing where we may not ask."""
    path = f"/nodes/{quote(file.node)}/query-url-metadata"
    try:
        answer: dict[str, Any] = await reachable.client.get(
            path, {"url": file.url, "verify-certificates": file.verify_tls}
        )
    except RefusedError as err:
        return None if err.status == _FORBIDDEN else err.refusal.reason.strip(" .")
    return answer


def _check_local(reachable: ReachableHost, found: Diagnostics) -> None:
    for file in reachable.desired.files:
        if isinstance(file, Upload) and "://" not in file.path and not Path(file.path).is_file():
            found.add(MISSING_SOURCE, f"The file {file.path}, which {file.key} uploads, does not exist.")


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
