"""What is about to be made, written down first, so that a killed run leaves nothing behind that nobody knows.

Before the call that makes a guest, an entry says which one: the number, the node, and a token that the guest
will carry. The entry stays until someone shows that the engine has the guest in its state: a read of it, or
`confirm_all` after a run that ended well. A run that finds an entry for what it needs to make looks whether a
guest with that number carries the token, and takes it over in place of making another.

The engine does not tell a provider the address of a resource, so that an entry is found again by what its
user calls the guest: its number when the configuration gives one, else its name, else all of its values.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import os
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import directories
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.files import read_text, replace_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.provider.values import Object

__all__ = ["Entry", "Journal", "JournalSubject", "subject_of"]

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSubject:
    """What someone plans to create, as it will be recognised in another run.

    Attributes:
        type_name: The resource's type.
        name: The name of the guest; empty when it has none.
        key: What a later run will say again: see `subject_of`.
    """

    type_name: str
    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that is being created, or was created and may not be in a state yet.

    Attributes:
        token: Carried by the guest itself; a UUID.
        state: The state that it belongs to.
        subject: What it is.
        node: Where it is created.
        vm_id: Its number.
        upid: The task that makes it, once it is known.
        sent: What the call that makes it says, for an object that cannot carry the token.
    """

    token: str
    state: str
    subject: JournalSubject
    node: str
    vm_id: int
    upid: str = ""
    sent: Mapping[str, Any] | None = field(default=None, hash=False)


def subject_of(type_name: str, planned: Object) -> JournalSubject:
    """Return how a guest is recognised: by the number or name that its user gave it, else by its values."""
    name = planned.get("name")
    shown = name if isinstance(name, str) else ""
    number = planned.get("vm_id")
    if isinstance(number, int):
        return JournalSubject(type_name=type_name, name=shown, key=f"id {number}")
    if shown:
        return JournalSubject(type_name=type_name, name=shown, key=f"name {shown}")
    text = orjson.dumps(planned, default=lambda value: str(value), option=orjson.OPT_SORT_KEYS)
    return JournalSubject(type_name=type_name, name="", key=f"like {hashlib.sha256(text).hexdigest()}")


class Journal:
    """The entries of one state; without a folder it lives as long as the process.

    Args:
        folder: Where the entries are kept; it is created when it is missing.
        state: The name of the state that the run works on.
    """

    def __init__(self, folder: Path | None = None, state: str = "") -> None:
        self._folder = folder
        self._state = state
        self._entries = self._load()
        # What this run makes or has taken over: not to be taken for what another run left.
        self._in_hand: set[str] = set()
        self._at_work: set[str] = set()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is not known to be in the state yet."""
        return tuple(self._entries.values())

    async def begin(
        self, subject: JournalSubject, *, node: str, vm_id: int, sent: Mapping[str, Any] | None = None
    ) -> Entry:
        """Write down what is about to be created; when this returns it is on the disk.

        Raises:
            FileError: It cannot be written; nothing may be created then.
        """
        token = str(uuid.uuid4())
        entry = Entry(token=token, state=self._state, subject=subject, node=node, vm_id=vm_id, sent=sent)
        self._in_hand.add(entry.token)
        self._at_work.add(entry.token)
        await self._write(entry)
        return entry

    async def change(self, entry: Entry, **values: Any) -> Entry:
        """Write down something more about an entry: another number or node, or the task."""
        changed = dataclasses.replace(entry, **values)
        await self._write(changed)
        return changed

    def take(self, subject: JournalSubject) -> Entry | None:
        """Return an entry of an earlier run for the same thing, which no one else can take from now on."""
        for entry in self._entries.values():
            if entry.subject.key == subject.key and entry.subject.type_name == subject.type_name:
                if entry.token in self._in_hand:
                    continue
                self._in_hand.add(entry.token)
                self._at_work.add(entry.token)
                return entry
        return None

    def leave(self, entry: Entry) -> None:
        """End the work on an entry; it stays until the engine's state is known to have the guest."""
        self._at_work.discard(entry.token)

    async def close(self, entry: Entry) -> None:
        """Forget an entry: nothing was created, or what was created is gone or known."""
        self._at_work.discard(entry.token)
        if self._entries.pop(entry.token, None) is not None and self._folder is not None:
            await asyncio.to_thread(self._remove, entry.token)

    async def confirm(self, type_name: str, vm_id: int) -> None:
        """Forget the entry of a guest that was seen in the engine's state, or is gone."""
        for entry in self.entries:
            if (
                entry.vm_id == vm_id
                and entry.subject.type_name == type_name
                and entry.token not in self._at_work
            ):
                await self.close(entry)

    async def forget(self, subject: JournalSubject) -> None:
        """Forget the entries of something that was seen in the engine's state, or is gone."""
        for entry in self.entries:
            is_it = (entry.subject.type_name, entry.subject.key) == (subject.type_name, subject.key)
            if is_it and entry.token not in self._at_work:
                await self.close(entry)

    async def confirm_all(self) -> None:
        """Forget every entry of this run: the engine has ended well, and its state is stored."""
        for entry in self.entries:
            if entry.token in self._in_hand and entry.token not in self._at_work:
                await self.close(entry)

    def begin_run(self) -> None:
        """Note that another run of the engine begins: its state may lack what the one before made."""
        self._in_hand &= self._at_work

    async def _write(self, entry: Entry) -> None:
        self._entries[entry.token] = entry
        if self._folder is not None:
            data = orjson.dumps(entry, option=orjson.OPT_INDENT_2)
            await asyncio.to_thread(replace_file, self._folder / f"{entry.token}{_SUFFIX}", data)

    def _remove(self, token: str) -> None:
        if self._folder is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._folder / f"{token}{_SUFFIX}")
            sync_folder(self._folder)

    def _load(self) -> dict[str, Entry]:
        if self._folder is None:
            return {}
        directories.ensure_private(self._folder)
        found = [_read(path) for path in sorted(self._folder.glob(f"*{_SUFFIX}"))]
        return {entry.token: entry for entry in found if entry is not None and entry.state == self._state}


def _read(path: Path) -> Entry | None:
    try:
        fields = parse_json(read_text(path))
        return Entry(**{**fields, "subject": JournalSubject(**fields["subject"])})
    except (ValueError, TypeError, KeyError):
        # Written by something else: an entry of ours is whole or not there.
        return None
