"""`download_file`: a file that a node fetches from a URL into a datastore."""

from __future__ import annotations

import contextlib
import hashlib
import re
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.checks import matches, one_of
from stackyard.provider.create_once import is_unsure, make_subject, note_seen
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
from stackyard.provider.file_tasks import later_tasks, latest_tasks, refuse_file, was_written_by
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import Problem
from stackyard.provider.schema import Rule
from stackyard.provider.time_limits import time_limit
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft

__all__ = ["RESOURCE"]

_TIMEOUT_S = 600
_EXISTS = "refusing to override existing file"
_TASK = "download"
# How an entry of the journal notes the URL.
_SOURCE = "source"
_ORIGIN = ("url", "checksum", "checksum_algorithm", "decompression_algorithm")
_LOGGED = re.compile(r"downloading (\S+) to /(?:.*/)?([^/]+)")


def _place(state: Object) -> NodeDatastore:
    return NodeDatastore(node=state["node_name"], datastore=state["datastore_id"])


async def _metadata(work: Work, state: Object) -> dict[str, Any]:
    query = {"url": state["url"], "verify-certificates": bool(state["verify"])}
    found: dict[str, Any] = await work.client.get(
        f"/nodes/{proxmox.quote(state['node_name'])}/query-url-metadata", query
    )
    return found


async def _create(work: Work, planned: Object) -> Object:
    what = f"The download to {planned['datastore_id']} on {planned['node_name']}"
    async with time_limit(float(planned["upload_timeout"]), what=what, setting="upload_timeout"):
        return await _make(work, planned)


async def _make(work: Work, planned: Object) -> Object:
    name = planned["file_name"]
    if name is UNKNOWN or name is None:
        name = (await _metadata(work, planned))["filename"]
    volume = VolumeId(datastore=planned["datastore_id"], content=planned["content_type"], name=name)
    state = {**planned, "file_name": name, "id": str(volume)}
    await _fetch(work, state)
    work.keep({**state, "size": None})
    found = await wait_for_file(work, _place(state), volume)
    return {**state, "size": None if found is None else found.get("size")}


async def _fetch(work: Work, state: Object) -> None:
    """Let the node download the file, in place of one that may go."""
    journal, subject = work.session.journal, make_subject(work, _identity(state))
    entry = journal.take(subject)
    if entry is not None:
        await _clear(work, state, entry)
    sent = {**await latest_tasks(work, state["node_name"], _TASK), _SOURCE: _mark(work, state["url"])}
    if entry is None:
        entry = await journal.begin(subject, node=state["node_name"], vm_id=0, sent=sent)
    else:
        entry = await journal.change(entry, sent=sent, upid="")
    try:
        await _download_over(work, state, entry)
    except (proxmox.ProxmoxError, proxmox.ProxmoxUnreachableError) as err:
        if await _left_nothing(work, state, err):
            await journal.close(entry)
        raise
    finally:
        journal.leave(entry)


async def _download_over(work: Work, state: Object, entry: Entry) -> None:
    """Download, in place of a file that nothing manages where the user lets that go."""
    try:
        await _download(work, state, entry)
    except proxmox.ProxmoxError as err:
        # Said at once or by the task, depending on the version of Proxmox.
        if _EXISTS not in err.detail or not state["overwrite_unmanaged"]:
            raise
        await remove_file(work, _place(state), state["id"])
        await _download(work, state, entry)


async def _left_nothing(
    work: Work, state: Object, err: proxmox.ProxmoxError | proxmox.ProxmoxUnreachableError
) -> bool:
    """Tell whether a download that failed wrote no file and will write none."""
    if isinstance(err, proxmox.TaskFailedError) and _EXISTS not in err.detail:
        return await find_file(work, _place(state), state["id"], state["content_type"]) is None
    if isinstance(err, proxmox.AnswerLostError | proxmox.TaskTimeoutError):
        return False
    # A refused call was looked after; a read that failed says nothing.
    return _EXISTS in err.detail or err.call.method != "GET"


async def _clear(work: Work, state: Object, entry: Entry) -> None:
    """Remove what a killed run downloaded, once that has ended: it may come from another source.

    Raises:
        ObjectExistsError: There is a file, and nothing shows that the killed run downloaded it.
    """
    name, node = str(state["file_name"]), str(state["node_name"])
    upid = await proxmox.find_running_task(work.client, node, kind=_TASK, about=name)
    if upid is not None:
        with contextlib.suppress(proxmox.TaskFailedError):
            await proxmox.wait_for(work.client, upid, timeout_s=float(state["upload_timeout"]))
    found = await find_file(work, _place(state), state["id"], state["content_type"])
    if found is None:
        return
    is_ours = await was_written_by(work, entry, found, kind=_TASK, says=_make_log_matcher(work, state, entry))
    if is_ours or state["overwrite_unmanaged"]:
        await remove_file(work, _place(state), state["id"])
    elif not state["checksum"]:
        # With a checksum the node itself takes the file that is there, if it is the same.
        raise await refuse_file(work, entry, _identity(state), option="overwrite_unmanaged")


def _mark(work: Work, url: str) -> str:
    """Return what recognises a URL in the log of a task; it may hold a password, which no journal keeps."""
    return hashlib.sha256(work.client.redactor(url).encode()).hexdigest()


def _make_log_matcher(work: Work, state: Object, entry: Entry) -> Callable[[str], bool]:
    """Return what recognises the line of a log that names the URL of an entry, and the file."""
    wanted = ((entry.sent or {}).get(_SOURCE), state["file_name"])

    def says(line: str) -> bool:
        found = _LOGGED.fullmatch(line)
        return found is not None and (_mark(work, found[1]), found[2]) == wanted

    return says


def _identity(state: Object) -> str:
    return f"{state['node_name']}/{state['id']}"


async def _download(work: Work, state: Object, entry: Entry) -> None:
    place, timeout_s = _place(state), float(state["upload_timeout"])
    sent = {
        "content": state["content_type"],
        "filename": state["file_name"],
        "url": state["url"],
        "checksum": state["checksum"],
        "checksum-algorithm": state["checksum_algorithm"],
        "compression": state["decompression_algorithm"],
        "verify-certificates": bool(state["verify"]),
    }
    try:
        upid = await work.client.post(f"{place.path}/download-url", sent)
    except proxmox.ProxmoxError as err:
        if not is_unsure(err) or _EXISTS in err.detail:
            raise
        tasks = await later_tasks(work, entry, kind=_TASK, says=_make_log_matcher(work, state, entry))
        if not tasks:
            raise
        upid = str(tasks[0]["upid"])
    await work.session.journal.change(entry, upid=upid)
    await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _identity(state))
    found = await find_file(work, _place(state), state["id"], state["content_type"])
    if found is None:
        return None
    if state.get("size") is not None:
        work.private[ORIGINAL_SIZE] = state["size"]
    if state.get("overwrite") and state.get("url"):
        work.private["url_size"] = await _url_size(work, state)
    return {**state, "size": found.get("size")}


async def _url_size(work: Work, state: Object) -> int:
    """Return the size of the file at its source; -1 when that cannot be told now."""
    try:
        size = (await _metadata(work, state)).get("size")
    except proxmox.ProxmoxError:
        return -1
    return -1 if size is None else int(size)


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    found = await find_file(work, _place(prior), prior["id"], prior["content_type"])
    return {**planned, "size": prior.get("size") if found is None else found.get("size")}


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _identity(state))
    await remove_file(work, _place(state), state["id"])


def _plan_size(planned: PlanDraft) -> None:
    """Plan another download when the file was changed, here or at its source, and may be overwritten."""
    prior = planned.prior
    if prior is None or not planned.values["overwrite"] or plan_changed_size(planned):
        return
    size, at_source = prior.get("size"), planned.private.get("url_size")
    if at_source is None or planned.values["url"] != prior["url"]:
        return
    if at_source < 0:
        planned.warn("The source of the file cannot be read", f"{prior['url']} gives no size.")
    elif at_source != size and not prior.get("decompression_algorithm"):
        planned.values["size"] = at_source
        planned.replace.append(("size",))
        planned.warn(
            "The file has changed at its source", f"It has {at_source} bytes there, and {size} here."
        )


def _plan(planned: PlanDraft) -> None:
    if planned.prior is not None and planned.prior.get("url") is None:
        # Nobody knows where an imported file came from: what the configuration says is believed.
        planned.replace = [path for path in planned.replace if path[0] not in _ORIGIN]
    _plan_size(planned)


def _check(config: Object) -> Iterator[Problem]:
    for name, other in (("checksum", "checksum_algorithm"), ("checksum_algorithm", "checksum")):
        if config.get(name) not in (None, UNKNOWN) and config.get(other) is None:
            yield Problem(path=(name,), detail=f"`{name}` needs `{other}` beside it.")


def _identify(given: str) -> Object:
    node, volume = identify_file(given)
    return {
        "id": str(volume),
        "node_name": node,
        "datastore_id": volume.datastore,
        "content_type": volume.content,
        "file_name": volume.name,
    }


RESOURCE = Resource(
    names=("proxmox_download_file", "proxmox_virtual_environment_download_file"),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    plan=_plan,
    validate=_check,
    rules={
        "id": Rule(keep=True),
        "content_type": Rule(replace=True, check=one_of("iso", "vztmpl", "import")),
        "file_name": Rule(replace=True, keep=True),
        "datastore_id": Rule(replace=True),
        "node_name": Rule(replace=True),
        "size": Rule(keep=True),
        "upload_timeout": Rule(default=_TIMEOUT_S),
        "url": Rule(replace=True, check=matches("https?://.+", "begin with http:// or https://")),
        "checksum": Rule(replace=True),
        "checksum_algorithm": Rule(
            replace=True, check=one_of("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
        ),
        "decompression_algorithm": Rule(replace=True, check=one_of("gz", "lzo", "zst", "bz2")),
        "verify": Rule(default=True),
        "overwrite": Rule(default=True),
        "overwrite_unmanaged": Rule(default=False),
    },
)
