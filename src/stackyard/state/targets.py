"""The registry of applied targets: what was applied into each state, from where, and on which cluster.

A state outlives its input: a file may be renamed or removed while the guests that it described are still
there. The record of a target is written before its first apply, in the store of the states, so that every
verb that needs only the state works without the input.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.clients.objects import ConflictError, StoreDamagedError
from stackyard.clients.objects.base import ABSENT
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackyard.clients.objects import Objects

__all__ = ["TargetRecord", "Targets"]

_FORMAT = 1
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRecord:
    """What was applied into a state.

    Attributes:
        state: The state.
        kind: Which source the target comes from.
        name: What it is called there.
        node: The node or cluster that it is for.
        source: The folder or object that it was read from.
        endpoint: The API of the cluster that it was applied to.
        nodes: The nodes of that cluster, each with the fingerprint of its certificate.
        applied_at: When it was applied last, in seconds since 1970.
        files: Files that its guests use and that it does not own: `NODE DATASTORE:CONTENT/NAME`.
        first_boots: What each guest was created from, by its key: a fingerprint of its image and of its data
            for the first boot.
        path: The folder of a stack, from the top of its repository.
        backend: Where the state of a stack is.
        commit: The commit of a stack that was applied in whole; empty where it was that of no commit.
        is_destroyed: Whether all of a stack was destroyed since.
        credentials: The tokens and passwords of a cluster that were made, without any secret.
    """

    state: str
    kind: str
    name: str
    node: str
    source: str = ""
    endpoint: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    applied_at: float = 0.0
    files: tuple[str, ...] = ()
    first_boots: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    path: str = ""
    backend: str = ""
    commit: str = ""
    is_destroyed: bool = False
    credentials: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The target as users name it."""
        return f"{self.kind}:{self.name}"


class Targets:
    """The records of all targets in a store.

    Args:
        objects: The store.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def read(self, state: str) -> TargetRecord | None:
        """Return the record of a state; None where nothing was applied into it by a stackyard that keeps one.

        Raises:
            StoreError: The store cannot say, or what it holds is damaged.
        """
        stored = self._objects.get(layout.target(state))
        return None if stored is None else _load(stored.data, state)

    def all(self) -> Iterator[TargetRecord]:
        """Yield every record.

        Raises:
            StoreError: The store cannot say, or what it holds is damaged.
        """
        after = ""
        while entries := self._objects.list(layout.TARGETS, after=after):
            for entry in entries:
                stored = self._objects.get(entry.key)
                if stored is not None:
                    yield _load(stored.data, entry.key)
            after = entries[-1].key

    def change(self, state: str, decide: Callable[[TargetRecord | None], TargetRecord]) -> TargetRecord:
        """Replace a record by what becomes of it, no matter who else writes at the same time.

        Raises:
            StoreError: It cannot be stored.
            ConflictError: Others kept writing it.
        """
        key = layout.target(state)
        for attempt in range(1, _ATTEMPTS + 1):
            stored = self._objects.get(key)
            new = decide(None if stored is None else _load(stored.data, state))
            data = orjson.dumps({"format": _FORMAT, "target": new}, option=orjson.OPT_SORT_KEYS)
            if stored is not None and stored.data == data:
                return new
            try:
                self._objects.put(key, data, expect=ABSENT if stored is None else stored.tag)
            except ConflictError:
                if attempt == _ATTEMPTS:
                    raise
                continue
            return new
        raise ConflictError(key)


def _load(data: bytes, key: str) -> TargetRecord:
    try:
        document: dict[str, Any] = parse_json(data, SMALL)
        if document["format"] > _FORMAT:
            raise StoreDamagedError(
                f"The record of {key} was written by a newer stackyard.",
                remedy="Use the newer stackyard for this store.",
            )
        fields = {item.name for item in dataclasses.fields(TargetRecord)}
        found = {name: value for name, value in document["target"].items() if name in fields}
        return TargetRecord(**{**found, "files": tuple(found.get("files", ()))})
    except (JsonError, KeyError, TypeError, AttributeError) as err:
        raise StoreDamagedError(f"The record of {key} is damaged.") from err
