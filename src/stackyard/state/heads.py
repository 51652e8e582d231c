"""Changing a head: read, decide, replace if no one else did, else decide again."""

from __future__ import annotations

import dataclasses
import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stackyard.clients.objects import ABSENT, ConflictError, Objects, StoreBusyError
from stackyard.state import codec, layout, ledger
from stackyard.state.model import Actor, AuditAction, StateHead
from stackyard.state.names import check_name, is_name
from stackyard.state.refusals import UnknownStateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackyard.state.policy import Policy

__all__ = ["Core", "Decision", "Edit", "Heads"]

T = TypeVar("T")

_GIVE_UP_AFTER_S = 30.0
_LONGEST_PAUSE_S = 0.05
# Threads that change the same state take turns; different states share a turn only by chance.
_STRIPES = 64
# A larger head is read again each time: the service may have thousands of states.
_LARGEST_KEPT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """What a change comes to: a result, and the new head with what it needs, or nothing to write."""

    result: T
    edit: Edit | None = None


@dataclass(slots=True)
class Edit:
    """A head being changed: fields set so far, and the objects that must be there before it."""

    head: StateHead
    now: float
    before: dict[str, bytes] = field(default_factory=dict)

    def set(self, **fields: Any) -> None:
        """Change fields."""
        self.head = dataclasses.replace(self.head, **fields)

    def write(self, objects: Mapping[str, bytes]) -> None:
        """Have objects written before the head."""
        self.before.update(objects)

    def audit(self, actor: Actor, action: AuditAction, **facts: Any) -> None:
        """Add an audit entry."""
        name = self.head.name
        chain, before = ledger.add_audit(
            self.head.audit, lambda n: layout.audit_segment(name, n), actor, action, at=self.now, **facts
        )
        self.set(audit=chain)
        self.write(before)


@dataclass(frozen=True, slots=True)
class _KnownHead:
    """A head and its bytes in the store."""

    key: str
    data: bytes
    head: StateHead


class Heads:
    """The heads of all states of a store.

    To make values of the bytes of a head takes longer than to read it. So the last head of each stripe is
    kept with its bytes, and used again where the store still has the same bytes.

    Args:
        objects: The store.
        clock: The time of day, in seconds since 1970.
    """

    def __init__(self, objects: Objects, clock: Callable[[], float] = time.time) -> None:
        self._objects = objects
        self._clock = clock
        self._turns = tuple(threading.Lock() for _ in range(_STRIPES))
        self._known: list[_KnownHead | None] = [None] * _STRIPES

    def read(self, name: str) -> StateHead | None:
        """Return the head of a state, None if the state was never heard of."""
        key = layout.head(name)
        stored = self._objects.get(key)
        return None if stored is None else self._load(key, stored.data)

    def names(self) -> Iterator[str]:
        """Yield the name of every state, in order."""
        after = ""
        while entries := self._objects.list(layout.HEADS, after=after):
            # What others put there under a name that no state has is not ours.
            yield from (name for entry in entries if is_name(name := layout.state_of(entry.key)))
            after = entries[-1].key

    def change(self, name: str, decide: Callable[[StateHead | None, float], Decision[T]]) -> T:
        """Change a head in one step that either happens completely or not.

        Args:
            name: The state.
            decide: Says, for the head as it is and the time, what to do. It is asked again when someone else
                was faster, and may raise to refuse. It must come to the same end when it sees its own effect,
                because a store may lose its answer.

        Raises:
            StoreBusyError: Others kept being faster.
        """
        key = layout.head(name)
        give_up_at = time.monotonic() + _GIVE_UP_AFTER_S
        pause_s = 0.001
        with self._turns[hash(key) % _STRIPES]:
            while True:
                try:
                    return self._try(key, decide)
                except ConflictError as err:
                    if time.monotonic() > give_up_at:
                        raise StoreBusyError(f"Others kept changing {name} for too long.") from err
                # Another process changes the same state: nothing tells us when it is done.
                threading.Event().wait(random.uniform(0, pause_s))  # noqa: S311 - a pause is no secret
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _try(self, key: str, decide: Callable[[StateHead | None, float], Decision[T]]) -> T:
        stored = self._objects.get(key)
        head = None if stored is None else self._load(key, stored.data)
        decision = decide(head, self._clock())
        edit = decision.edit
        if edit is not None:
            edit.set(revision=edit.head.revision + 1)
            expect = ABSENT if stored is None else stored.tag
            data = codec.dump_head(edit.head)
            self._objects.put(key, data, expect=expect, before=edit.before)
            self._keep(key, data, edit.head)
        return decision.result

    def _load(self, key: str, data: bytes) -> StateHead:
        known = self._known[hash(key) % _STRIPES]
        if known is not None and known.key == key and known.data == data:
            return known.head
        head = codec.load_head(data, key)
        self._keep(key, data, head)
        return head

    def _keep(self, key: str, data: bytes, head: StateHead) -> None:
        if len(data) <= _LARGEST_KEPT_BYTES:
            self._known[hash(key) % _STRIPES] = _KnownHead(key, data, head)


@dataclass(frozen=True, slots=True)
class Core:
    """What the parts of the service share.

    Attributes:
        objects: The store.
        heads: The heads in it.
        policy: What is allowed.
        clock: The time of day, in seconds since 1970.
    """

    objects: Objects
    heads: Heads
    policy: Policy
    clock: Callable[[], float]

    def edit(self, name: str, head: StateHead | None, now: float) -> Edit:
        """Begin to change a head, also that of a state that no one has heard of, if those are allowed.

        Raises:
            UnknownStateError: States must be registered first.
        """
        if head is None and not self.policy.create_states:
            raise UnknownStateError(f"There is no state {name}, and states must be registered here.")
        return Edit(head or StateHead(name=name, created_at=now), now)

    def change(self, name: str, change: Callable[[Edit], T]) -> T:
        """Change the head of a state that is known.

        Raises:
            UnknownStateError: It is not.
        """
        check_name(name)

        def decide(head: StateHead | None, now: float) -> Decision[T]:
            if head is None:
                raise UnknownStateError(f"There is no state {name}.")
            edit = Edit(head, now)
            result = change(edit)
            return Decision(result, edit if edit.head is not head else None)

        return self.heads.change(name, decide)

    def require(self, name: str) -> StateHead:
        """Return the head of a state that is known.

        Raises:
            UnknownStateError: It is not.
        """
        head = self.heads.read(check_name(name))
        if head is None:
            raise UnknownStateError(f"There is no state {name}.")
        return head
