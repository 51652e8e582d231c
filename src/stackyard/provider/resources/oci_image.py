"""`oci_image`: an image of a container that a node pulls from a registry into a datastore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import matches
from stackyard.provider.create_once import note_seen
from stackyard.provider.datastore_files import (
    ORIGINAL_SIZE,
    NodeDatastore,
    VolumeId,
    find_file,
    identify_file,
    plan_changed_size,
    remove_file,
    wait_for_file,
)
from stackyard.provider.file_tasks import is_of_task
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import ImportIdError
from stackyard.provider.schema import Rule
from stackyard.provider.task_objects import TaskCreation, create_in_task
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_TIMEOUT_S = 600
# Proxmox keeps images among the templates of containers.
_CONTENT = "vztmpl"
_ENDING = ".tar"
_HOST = r"[a-zA-Z\d](?:[a-zA-Z\d-]*[a-zA-Z\d])?"
_PART = r"[a-z\d]+(?:(?:[._]|__|-*)[a-z\d]+)*"
_REFERENCE = rf"(?:{_HOST}(?:\.{_HOST})*(?::\d+)?/)?{_PART}(?:/{_PART})*:\w[\w.-]{{0,127}}"


def _place(state: Object) -> NodeDatastore:
    return NodeDatastore(node=state["node_name"], datastore=state["datastore_id"])


def _identity(state: Object) -> str:
    return f"{state['node_name']}/{state['id']}"


def _file_name(planned: Object) -> str:
    """Return the name that is wanted, or the last part of the reference with its tag."""
    name = planned["file_name"]
    if name not in (None, UNKNOWN):
        return str(name)
    return str(planned["reference"]).rpartition("/")[2].replace(":", "_") + _ENDING


async def _find(work: Work, state: Object) -> dict[str, Any] | None:
    return await find_file(work, _place(state), state["id"], _CONTENT)


async def _create(work: Work, planned: Object) -> Object:
    name = _file_name(planned)
    volume = VolumeId(datastore=planned["datastore_id"], content=_CONTENT, name=name)
    state = {**planned, "file_name": name, "id": str(volume), "size": None}
    if planned["overwrite_unmanaged"] and await _find(work, state) is not None:
        await remove_file(work, _place(state), state["id"])
    creation = TaskCreation(
        identity=_identity(state),
        node=str(planned["node_name"]),
        kind="ociregistrypull",
        about=name,
        path=f"{_place(state).path}/oci-registry-pull",
        # Proxmox adds the ending itself.
        params={"reference": planned["reference"], "filename": name.removesuffix(_ENDING)},
        timeout_s=float(planned["upload_timeout"]),
        look=lambda: _find(work, state),
        is_of_task=is_of_task,
    )
    await create_in_task(work, creation, state)
    work.keep(state)
    found = await wait_for_file(work, _place(state), volume)
    return {**state, "size": None if found is None else found.get("size")}


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _identity(state))
    found = await _find(work, state)
    if found is None:
        return None
    if state.get("size") is not None:
        work.private[ORIGINAL_SIZE] = state["size"]
    return {**state, "size": found.get("size")}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    found = await _find(work, prior)
    return {**planned, "size": prior.get("size") if found is None else found.get("size")}


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _identity(state))
    await remove_file(work, _place(state), state["id"])


def _plan(planned: PlanDraft) -> None:
    plan_changed_size(planned)
    prior = planned.prior
    # Proxmox does not tell what an imported image was pulled from.
    if prior is not None and prior.get("reference") is not None and planned.changed("reference"):
        planned.replace.append(("reference",))


def _identify(given: str) -> Object:
    node, volume = identify_file(given)
    if volume.content != _CONTENT:
        raise ImportIdError(
            f"The id of an image has the form NODE/DATASTORE:{_CONTENT}/NAME, and {given!r} does not."
        )
    return {"id": str(volume), "node_name": node, "datastore_id": volume.datastore, "file_name": volume.name}


RESOURCE = Resource(
    names=both_names("oci_image"),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    plan=_plan,
    rules={
        "id": Rule(keep=True),
        # Proxmox would store a name with other characters under another name.
        "file_name": Rule(
            replace=True,
            keep=True,
            check=matches(r"[\w.-]+\.tar", "end with .tar, and consist of letters, digits, `_`, `.` and `-`"),
        ),
        "datastore_id": Rule(replace=True),
        "node_name": Rule(replace=True),
        "reference": Rule(
            check=matches(_REFERENCE, "be a reference with its tag, such as docker.io/library/debian:13")
        ),
        "size": Rule(keep=True),
        "upload_timeout": Rule(default=_TIMEOUT_S),
        "overwrite": Rule(default=True),
        "overwrite_unmanaged": Rule(default=False),
    },
)
