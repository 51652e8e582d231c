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
import copy
import dataclasses
import hashlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import parse_json
from stackyard.clients.objects import ANYTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.objects import Objects
    from stackyard.provider.values import Object

__all__ = ["Entry", "Journal", "JournalSubject", "decode_entry", "encode_entry", "subject_of"]

# What the keys of entries of other clusters than the usual one begin with.
_SCOPE = "at "


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
    """The entries of one state; without a store it lives as long as the process.

    Args:
        objects: Where the entries are kept.
        state: The name of the state that the run works on.
        prefix: What the names of the entries of that state begin with.

    Raises:
        StoreError: The store cannot be read: what was being created is then not known.
    """

    def __init__(self, objects: Objects | None = None, state: str = "", prefix: str = "journal/") -> None:
        self._objects = objects
        self._state = state
        self._prefix = prefix
        self._entries = {} if objects is None else self._load(objects)
        # What this run makes or has taken over: not to be taken for what another run left.
        self._in_hand: set[str] = set()
        self._at_work: set[str] = set()
        self._scope = ""

    def within(self, endpoint: str) -> Journal:
        """Return the same journal for another cluster, where the same names mean other things."""
        scoped = copy.copy(self)
        scoped._scope = f"{_SCOPE}{endpoint} "
        return scoped

    def _is_here(self, entry: Entry) -> bool:
        key = entry.subject.key
        return key.startswith(self._scope) if self._scope else not key.startswith(_SCOPE)

    def _here(self, subject: JournalSubject) -> JournalSubject:
        return dataclasses.replace(subject, key=self._scope + subject.key)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is not known to be in the state yet."""
        return tuple(self._entries.values())

    async def begin(
        self, subject: JournalSubject, *, node: str, vm_id: int, sent: Mapping[str, Any] | None = None
    ) -> Entry:
        """Write down what is about to be created; when this returns it is stored.

        Raises:
            StoreError: It cannot be stored; nothing may be created then.
        """
        token, subject = str(uuid.uuid4()), self._here(subject)
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
        subject = self._here(subject)
        for token, entry in self._entries.items():
            # Nearly all are of this run, and are passed over without a look at them.
            if token in self._in_hand:
                continue
            if entry.subject.key == subject.key and entry.subject.type_name == subject.type_name:
                self._in_hand.add(token)
                self._at_work.add(token)
                return entry
        return None

    def leave(self, entry: Entry) -> None:
        """End the work on an entry; it stays until the engine's state is known to have the guest."""
        self._at_work.discard(entry.token)

    async def close(self, entry: Entry) -> None:
        """Forget an entry: nothing was created, or what was created is gone or known."""
        self._at_work.discard(entry.token)
        if self._entries.pop(entry.token, None) is not None and self._objects is not None:
            await asyncio.to_thread(self._objects.delete, self._prefix + entry.token)

    async def confirm(self, type_name: str, vm_id: int) -> None:
        """Forget the entry of a guest that was seen in the engine's state, or is gone."""
        for entry in self.entries:
            if (
                entry.vm_id == vm_id
                and self._is_here(entry)
                and entry.subject.type_name == type_name
                and entry.token not in self._at_work
            ):
                await self.close(entry)

    async def forget(self, subject: JournalSubject) -> None:
        """Forget the entries of something that was seen in the engine's state, or is gone."""
        subject = self._here(subject)
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
        if self._objects is not None:
            data = encode_entry(entry)
            await asyncio.to_thread(self._objects.put, self._prefix + entry.token, data, expect=ANYTHING)

    def _load(self, objects: Objects) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        after = ""
        while listed := objects.list(self._prefix, after=after):
            after = listed[-1].key
            stored = [objects.get(one.key) for one in listed]
            entries = [decode_entry(one.data) for one in stored if one is not None]
            found |= {one.token: one for one in entries if one is not None and one.state == self._state}
        return found


def encode_entry(entry: Entry) -> bytes:
    """Return an entry as it is stored."""
    return orjson.dumps(entry, option=orjson.OPT_INDENT_2)


def decode_entry(data: bytes) -> Entry | None:
    """Return an entry that was stored; None for something else: an entry of ours is whole or not there."""
    try:
        fields = parse_json(data)
        return Entry(**{**fields, "subject": JournalSubject(**fields["subject"])})
    except (ValueError, TypeError, KeyError):
        return None
