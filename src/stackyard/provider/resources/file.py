"""`proxmox_virtual_environment_file`: a file that we upload into a datastore.

Images and templates go through the API. It takes no other content, so that snippets and the rest are written
to the datastore's folder on the node, over SSH.
"""

from __future__ import annotations

import contextlib
import posixpath
import shlex
import urllib.parse
from typing import TYPE_CHECKING, Any, BinaryIO

from stackyard.clients import proxmox
from stackyard.provider import sources
from stackyard.provider.checks import matches, one_of
from stackyard.provider.create_once import make_subject, note_seen, was_not_done
from stackyard.provider.datastore_files import (
    NodeDatastore,
    VolumeId,
    find_file,
    identify_file,
    remove_file,
    wait_for_file,
)
from stackyard.provider.file_tasks import await_tasks, latest_tasks, refuse_file, was_written_by
from stackyard.provider.kinds import Resource
from stackyard.provider.node_shell import open_shell, sudo
from stackyard.provider.problems import AttributeValueError, Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN, Object, is_whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from stackyard.base.errors import StackyardError
    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft

__all__ = ["RESOURCE"]

_CONTENTS = ("backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl")
_THROUGH_API = ("iso", "vztmpl", "import")
_BY_ENDING = {
    ".tar.gz": "vztmpl",
    ".tar.xz": "vztmpl",
    ".tar.zst": "vztmpl",
    ".qcow2": "import",
    ".raw": "import",
    ".vmdk": "import",
    ".img": "iso",
    ".iso": "iso",
    ".yaml": "snippets",
    ".yml": "snippets",
}
_TASK = "imgcopy"
# The folder of a datastore that holds a content, where the two names differ.
_FOLDERS = {"backup": "dump", "iso": "template/iso", "vztmpl": "template/cache"}


def _place(state: Object) -> NodeDatastore:
    return NodeDatastore(node=state["node_name"], datastore=state["datastore_id"])


def _block(state: Object, name: str) -> Object:
    blocks = state.get(name)
    return blocks[0] if blocks else {}


def _volume(state: Object) -> VolumeId:
    """Return the id that the file will have.

    Raises:
        AttributeValueError: There is no source, or its name does not tell the content.
    """
    file, raw = _block(state, "source_file"), _block(state, "source_raw")
    path = str(file.get("path") or "")
    name = str(raw.get("file_name") or file.get("file_name") or "")
    if not name:
        name = posixpath.basename(urllib.parse.urlsplit(path).path if "://" in path else path)
    if not name:
        raise AttributeValueError(
            "A file needs `source_file` or `source_raw`, with a name.", ("source_file",)
        )
    content = state.get("content_type")
    if content in (None, "", UNKNOWN):
        ends = (path or name).lower()
        content = next((kind for ending, kind in _BY_ENDING.items() if ends.endswith(ending)), None)
    if content is None:
        raise AttributeValueError(f"The name {name} does not tell `content_type`.", ("content_type",))
    return VolumeId(datastore=state["datastore_id"], content=str(content), name=name)


def _source(work: Work, file: Object) -> str:
    path = str(file["path"])
    return path if "://" in path else str(work.session.folder / path)


async def _create(work: Work, planned: Object) -> Object:
    volume, place, journal = _volume(planned), _place(planned), work.session.journal
    subject = make_subject(work, _identity(planned, str(volume)))
    entry = journal.take(subject)
    if entry is not None:
        says, timeout_s = _names_target(volume), float(planned["timeout_upload"])
        await await_tasks(work, entry, kind=_TASK, says=says, timeout_s=timeout_s)
    found = await find_file(work, place, str(volume), volume.content)
    if found is not None and entry is None:
        if not planned["overwrite"]:
            raise AttributeValueError(f"The file {volume} is there already.", ("overwrite",))
        work.warn("A file was overwritten", f"{volume} was there already.")
    async with _content(work, planned) as content:
        if found is not None and entry is not None and not planned["overwrite"]:
            # What a killed run of ours wrote may be half a file; it is written again.
            await _require_ours(work, planned, entry, found, content)
        entry = await _begin(work, planned, entry, volume)
        try:
            await _put(work, planned, entry, content)
        except (proxmox.ProxmoxError, proxmox.ProxmoxUnreachableError) as err:
            if was_not_done(err) or await _left_nothing(work, place, volume, err):
                await journal.close(entry)
            raise
        finally:
            journal.leave(entry)
    state = {**planned, "id": str(volume), "file_name": volume.name, "content_type": volume.content}
    work.keep(state)
    await wait_for_file(work, place, volume)
    return await _current(work, state) or state


async def _begin(work: Work, planned: Object, entry: Entry | None, volume: VolumeId) -> Entry:
    """Write down that the file is about to be written, and which tasks of the node were before it."""
    journal, node = work.session.journal, str(planned["node_name"])
    sent: dict[str, Any] | None = None
    if volume.content in _THROUGH_API and not planned["overwrite"]:
        sent = await latest_tasks(work, node, _TASK)
    if entry is not None:
        return await journal.change(entry, sent=sent, upid="")
    subject = make_subject(work, _identity(planned, str(volume)))
    return await journal.begin(subject, node=node, vm_id=0, sent=sent)


async def _require_ours(
    work: Work, planned: Object, entry: Entry, found: dict[str, Any], content: Callable[[], BinaryIO]
) -> None:
    """Refuse to write over a file, unless it is certainly what the run of an entry wrote.

    Raises:
        ObjectExistsError: Nothing shows that it is.
    """
    volume = _volume(planned)
    if volume.content in _THROUGH_API:
        is_ours = await was_written_by(work, entry, found, kind=_TASK, says=_names_target(volume))
    else:
        is_ours = await _begins_alike(work, planned, found, content)
    if not is_ours:
        raise await refuse_file(work, entry, _identity(planned, str(volume)), option="overwrite")


def _names_target(volume: VolumeId) -> Callable[[str], bool]:
    """Return what recognises the line in the log of an upload that says where the file goes."""
    return lambda line: line.startswith("target file: /") and line.endswith(f"/{volume.name}")


async def _begins_alike(
    work: Work, planned: Object, found: dict[str, Any], content: Callable[[], BinaryIO]
) -> bool:
    """Tell whether a file that no task wrote is the beginning of the content, or all of it."""
    with content() as stream:
        size = int(found.get("size") or 0)
        beginning = stream.read(size)
    if len(beginning) < size:
        return False
    path = await _path(work, _volume(planned))
    async with open_shell(work, planned["node_name"]) as shell:
        said = await shell.run(f"{sudo(shell)}cat {shlex.quote(path)}")
    return said == beginning.decode(errors="replace")


async def _left_nothing(work: Work, place: NodeDatastore, volume: VolumeId, err: StackyardError) -> bool:
    """Tell whether an upload that failed wrote no file and will write none."""
    if not isinstance(err, proxmox.RefusedError | proxmox.TaskFailedError):
        return False
    return await find_file(work, place, str(volume), volume.content) is None


def _identity(state: Object, volume: str) -> str:
    return f"{state['node_name']}/{volume}"


async def _put(work: Work, planned: Object, entry: Entry, content: Callable[[], BinaryIO]) -> None:
    volume = _volume(planned)
    if volume.content in _THROUGH_API:
        await _upload(work, planned, entry, content)
    else:
        await _write(work, planned, volume, content)


@contextlib.asynccontextmanager
async def _content(work: Work, planned: Object) -> AsyncIterator[Callable[[], BinaryIO]]:
    file, raw = _block(planned, "source_file"), _block(planned, "source_raw")
    if raw:
        yield sources.raw_content(str(raw["data"]), resize=int(raw.get("resize") or 0))
        return
    async with sources.open_file(
        _source(work, file),
        checksum=str(file.get("checksum") or ""),
        trust=_trust(file),
        temporary=work.session.settings.temporary,
    ) as content:
        yield content


def _trust(source: Object) -> sources.SourceTrust:
    return sources.SourceTrust(
        insecure=bool(source.get("insecure")), min_tls=str(source.get("min_tls") or "")
    )


async def _upload(work: Work, planned: Object, entry: Entry, content: Callable[[], BinaryIO]) -> None:
    volume, timeout_s = _volume(planned), float(planned["timeout_upload"])
    file = proxmox.Upload(fields={"content": volume.content}, filename=volume.name, open=content)
    upid = await work.client.upload(f"{_place(planned).path}/upload", file, timeout_s=timeout_s)
    await work.session.journal.change(entry, upid=upid)
    await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)


async def _path(work: Work, volume: VolumeId) -> str:
    """Return where a node keeps a file.

    Raises:
        AttributeValueError: The datastore is no folder.
    """
    datastore: dict[str, Any] = await work.client.get(f"/storage/{proxmox.quote(volume.datastore)}")
    base = datastore.get("path")
    if not base:
        raise AttributeValueError(
            f"The datastore {volume.datastore} has no folder, so that it holds no {volume.content}.",
            ("datastore_id",),
        )
    if volume.content not in str(datastore.get("content", "")).split(","):
        work.warn(
            "The datastore does not offer this content",
            f"{volume.datastore} is not set up for {volume.content}, only for {datastore.get('content')}.",
        )
    return posixpath.join(str(base), _FOLDERS.get(volume.content, volume.content), volume.name)


async def _write(work: Work, planned: Object, volume: VolumeId, content: Callable[[], BinaryIO]) -> None:
    path = await _path(work, volume)
    mode = int(planned["file_mode"], 8) if planned.get("file_mode") else None
    async with open_shell(work, planned["node_name"]) as shell:
        with content() as stream:
            # A user who is not root may write there only through sudo, which SFTP does not have.
            if planned["upload_mode"] == "sftp" or not sudo(shell):
                await shell.write_file(path, stream, mode=mode)
                return
            target = shlex.quote(path)
            await shell.run(f"{sudo(shell)}mkdir -p {shlex.quote(posixpath.dirname(path))}")
            await shell.run(f"{sudo(shell)}tee {target} > /dev/null", stdin=stream.read())
            if mode is not None:
                await shell.run(f"{sudo(shell)}chmod {mode:o} {target}")


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _identity(state, str(state["id"])))
    return await _current(work, state)


async def _current(work: Work, state: Object) -> Object | None:
    found = await find_file(work, _place(state), state["id"], str(state.get("content_type") or ""))
    if found is None:
        return None
    name = str(state["id"]).partition("/")[2]
    read = {**state, "file_name": name, "content_type": found.get("content")}
    source = _block(state, "source_file")
    if source:
        read |= await _compare(work, state, source)
    return read


async def _compare(work: Work, state: Object, source: Object) -> Object:
    """Return the facts of the source, and whether it has changed since the upload."""
    path = _source(work, source)
    if "://" in path:
        facts = await sources.url_facts(path, _trust(source))
    else:
        facts = sources.local_facts(path)
    if facts is None:
        return {}
    before = tuple(state.get(name) for name in ("file_modification_date", "file_size", "file_tag"))
    after = (facts.modified, facts.size, facts.tag)
    is_known = all(value not in (None, UNKNOWN, "", 0) for value in before)
    if is_known and before != after:
        return {"source_file": [{**source, "changed": True}]}
    names = ("file_modification_date", "file_size", "file_tag")
    return {**dict(zip(names, after, strict=True)), "source_file": [{**source, "changed": False}]}


async def _update(_work: Work, _prior: Object, planned: Object) -> Object:
    return planned


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _identity(state, str(state["id"])))
    await remove_file(work, _place(state), state["id"])


def _plan(planned: PlanDraft) -> None:
    """Plan what the content of the configuration tells, without waiting for the apply."""
    named = [planned.values["source_file"], planned.values["source_raw"]]
    if planned.is_new and not planned.is_configured("content_type") and is_whole(named):
        with contextlib.suppress(AttributeValueError):
            planned.values["content_type"] = _volume(planned.values).content
    prior = planned.prior
    if prior is not None and not prior.get("source_file") and not prior.get("source_raw"):
        # Nobody knows what an imported file was made from: what the configuration says is believed.
        planned.replace = [path for path in planned.replace if path[0] not in ("source_file", "source_raw")]


def _check(config: Object) -> Iterator[Problem]:
    file, raw = config.get("source_file"), config.get("source_raw")
    if file is UNKNOWN or raw is UNKNOWN:
        return
    if bool(file) == bool(raw):
        yield Problem(path=("source_file",), detail="Give one of `source_file` and `source_raw`.")


def _identify(given: str) -> Object:
    node, volume = identify_file(given)
    return {
        "id": str(volume),
        "node_name": node,
        "datastore_id": volume.datastore,
        "content_type": volume.content,
    }


RESOURCE = Resource(
    names=("proxmox_virtual_environment_file",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    plan=_plan,
    validate=_check,
    rules={
        "content_type": Rule(check=one_of(*_CONTENTS)),
        "file_mode": Rule(
            check=matches("[0-7]{3,4}", "be an octal mode of three or four digits, such as 0700")
        ),
        "upload_mode": Rule(check=one_of("sftp", "stream")),
        "source_file.min_tls": Rule(check=one_of("", *proxmox.TlsVersion)),
    },
)
