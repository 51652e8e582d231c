"""Files in a datastore: their ids, and what a node lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.problems import ImportIdError

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft

__all__ = [
    "ORIGINAL_SIZE",
    "NodeDatastore",
    "VolumeId",
    "find_file",
    "identify_file",
    "plan_changed_size",
    "remove_file",
    "wait_for_file",
]

# How a read remembers the size that the state had.
ORIGINAL_SIZE = "original_state_size"

# Storage that several nodes share may list a new file only a moment later.
_PAUSES_S = (0.2, 0.4, 0.8, 1.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeId:
    """The id of a file: `DATASTORE:CONTENT/NAME`."""

    datastore: str
    content: str
    name: str

    def __str__(self) -> str:
        return f"{self.datastore}:{self.content}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDatastore:
    """A datastore as a node sees it."""

    node: str
    datastore: str

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"/nodes/{proxmox.quote(self.node)}/storage/{proxmox.quote(self.datastore)}"


async def find_file(work: Work, place: NodeDatastore, volume: str, content: str) -> dict[str, Any] | None:
    """Return what a node lists for a file, or None."""
    listed = await work.client.get(f"{place.path}/content", {"content": content or None}, max_age_s=0.5)
    return next((file for file in listed or () if file.get("volid") == volume), None)


async def wait_for_file(work: Work, place: NodeDatastore, volume: VolumeId) -> dict[str, Any] | None:
    """Return what a node lists for a file that was just written, or None if it does not show up."""
    for pause_s in (*_PAUSES_S, None):
        found = await find_file(work, place, str(volume), volume.content)
        if found is not None or pause_s is None:
            return found
        await work.client.pause(pause_s)
    return None


async def remove_file(work: Work, place: NodeDatastore, volume: str) -> None:
    """Remove a file; one that is gone already is no error."""
    try:
        upid = await work.client.delete(f"{place.path}/content/{proxmox.quote(volume)}")
    except proxmox.MissingError:
        return
    if upid:
        await proxmox.wait_for(work.client, upid, timeout_s=300.0)


def plan_changed_size(planned: PlanDraft) -> bool:
    """Plan to write a file again that somebody changed, if it may be overwritten; tell whether it is so."""
    prior = planned.prior
    before = planned.private.get(ORIGINAL_SIZE)
    if prior is None or not planned.values["overwrite"] or before in (None, prior.get("size") or 0):
        return False
    planned.values["size"] = before
    planned.replace.append(("size",))
    size = prior.get("size")
    planned.warn("The file was changed by somebody else", f"It had {before} bytes and has {size} now.")
    return True


def identify_file(given: str) -> tuple[str, VolumeId]:
    """Return the node and the file in `NODE/DATASTORE:CONTENT/NAME`.

    Raises:
        ImportIdError: It has another form.
    """
    node, _, volume = given.partition("/")
    datastore, _, rest = volume.partition(":")
    content, _, name = rest.partition("/")
    if not (node and datastore and content and name):
        raise ImportIdError(
            f"The id of a file has the form NODE/DATASTORE:CONTENT/NAME, and {given!r} does not."
        )
    return node, VolumeId(datastore=datastore, content=content, name=name)
