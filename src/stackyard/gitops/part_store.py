"""Plans of single targets that jobs of a matrix made: each an object of its own in the store, sealed.

Jobs of one pull request run at the same time. None of them changes its record: the last one takes what they
left here, shows it, and records it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.clients.objects import ANYTHING, StoreDamagedError
from stackyard.gitops.record import read_target
from stackyard.sources.store.sealed import open_sealed
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.clients.objects import Objects
    from stackyard.gitops.model import TargetPlan
    from stackyard.sources.store import ChosenStore

__all__ = ["PlannedPart", "PullParts"]

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """The plan of one target.

    Attributes:
        head: The commit that it is of.
        tree: The tree of the merge that it was made of.
        target: The plan.
    """

    head: str
    tree: str
    target: TargetPlan


@dataclass(frozen=True, slots=True)
class PullParts:
    """The plans of single targets of one pull request.

    Args:
        store: The store.
        repository: `owner/name`.
        number: The pull request.
    """

    store: ChosenStore
    repository: str
    number: int

    def put(self, part: PlannedPart) -> None:
        """Store a plan, in place of an older one of its target; its lease is held meanwhile.

        Raises:
            StoreError: It cannot be stored.
        """
        said = {**asdict(part), "format": _FORMAT}
        with closing(self.store.open()) as objects:
            open_sealed(self.store, objects).put(
                self._key(part.target.target), orjson.dumps(said), expect=ANYTHING
            )

    def list(self) -> tuple[PlannedPart, ...]:
        """Return what is there.

        Raises:
            StoreError: The store cannot say, or what it holds is damaged.
        """
        with closing(self.store.open()) as objects:
            return tuple(part for _, part in self._read(open_sealed(self.store, objects)))

    def drop(self, is_done: Callable[[PlannedPart], bool]) -> None:
        """Remove those that are of no more use.

        Raises:
            StoreError: The store cannot be used.
        """
        with closing(self.store.open()) as objects:
            for key, part in list(self._read(open_sealed(self.store, objects))):
                if is_done(part):
                    objects.delete(key)

    def _key(self, target: str) -> str:
        return layout.gitops(self.repository, "parts", f"{self.number}/{target}")

    def _read(self, objects: Objects) -> Iterator[tuple[str, PlannedPart]]:
        prefix, after = self._key("x")[:-1], ""
        while listed := objects.list(prefix, after=after):
            for one in listed:
                stored = objects.get(one.key)
                if stored is None:
                    continue
                try:
                    said = parse_json(stored.data, LARGE)
                    if said["format"] != _FORMAT:
                        raise ValueError("another format")
                    target = read_target(said["target"])
                    part = PlannedPart(head=said["head"], tree=said["tree"], target=target)
                except (JsonError, ValueError, KeyError, TypeError) as err:
                    text = f"{one.key} is damaged, or of a newer version of stackyard."
                    raise StoreDamagedError(text) from err
                yield one.key, part
            after = listed[-1].key
