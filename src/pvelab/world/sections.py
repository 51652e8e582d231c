"""Section configuration: the files of typed objects that most cluster settings are kept in.

A file is a collection of the store, an object one document with its `type` and its options. Each type says
which options it has; the digest of an object is that of the whole file, as Proxmox's is.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.world.digests import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pvelab.world.store import Document, Store

__all__ = ["Kind", "SectionFile", "check_digest", "prefix_errors"]

CHANGED = "detected modified configuration - file changed by other user? Try again."
# The status of what Proxmox does not give one of its own.
PLAIN = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One type of object.

    Attributes:
        name: What is in `type`.
        required: The options that it cannot be without.
        optional: The options that it may have.
        fixed: Those of the options that cannot change once it exists.
    """

    name: str
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()

    def validate(self, given: Mapping[str, Any], *, create: bool) -> dict[str, Any]:
        """Return settings as the file keeps them, the type among them.

        Raises:
            PveError: An option is not one of this type, is fixed, or is missing from a new object.
        """
        for key, value in given.items():
            if not create and key in self.fixed:
                raise PveError(f"can't change value of fixed parameter '{key}'")
            if key not in self.required and key not in self.optional:
                raise PveError(f"unexpected property '{key}'")
            if "\n" in str(value) or "\r" in str(value):
                raise PveError("property contains a line feed")
        for key in sorted(self.required) if create else ():
            if key not in given:
                raise PveError(f"missing value for required option '{key}'")
        return {"type": self.name, **given}

    def without(
        self, section: Mapping[str, Any], names: Iterable[str], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return an object without some of its options.

        Raises:
            PveError: An option does not exist, cannot be removed, or is given a value by the same call.
        """
        for name in names:
            if name not in self.required and name not in self.optional:
                raise PveError(f"no such option '{name}'")
            if name in self.required:
                raise PveError(f"unable to delete required option '{name}'")
            if name in self.fixed:
                raise PveError(f"unable to delete fixed option '{name}'")
            if name in given:
                raise PveError(f"cannot set and delete property '{name}' at the same time!")
        return {key: value for key, value in section.items() if key not in set(names)}


class SectionFile:
    """The objects of one file."""

    def __init__(self, store: Store, collection: str) -> None:
        self._store = store
        self.collection = collection

    def all(self) -> Mapping[str, Document]:
        """Return the objects by id, in the order in which they came."""
        return self._store.items(self.collection)

    def get(self, ident: str) -> Document | None:
        """Return an object, or None."""
        return self._store.get(self.collection, ident)

    def put(self, ident: str, section: Mapping[str, Any]) -> None:
        """Write an object; an empty text does not outlive the file."""
        kept = {key: value for key, value in section.items() if value != ""}
        self._store.put(self.collection, ident, kept)

    def remove(self, ident: str) -> None:
        """Remove an object, if it is there."""
        self._store.delete(self.collection, ident)

    @property
    def digest(self) -> str:
        """The digest of the whole file."""
        return digest_of(dict(self.all()))

    def check_digest(self, given: str | None) -> None:
        """Refuse a change on the ground of another state of the file.

        Raises:
            PveError: Someone else changed it.
        """
        check_digest(self.digest, given)


def check_digest(current: str, given: str | None) -> None:
    """Refuse a change by someone who saw another digest than the current one.

    Raises:
        PveError: They differ.
    """
    if given and given != current:
        raise PveError(CHANGED)


@contextlib.contextmanager
def prefix_errors(text: str) -> Iterator[None]:
    """Put a text before what goes wrong in the block, as Proxmox does for changes under a lock.

    A wrong parameter becomes a plain error this way, with the names of the parameters in its later lines.
    """
    try:
        yield
    except PveError as err:
        raise PveError(f"{text}: {_format_error(err)}") from err


def _format_error(err: PveError) -> str:
    first = err.text if err.status == PLAIN else f"{err.status} {err.text}"
    return "\n".join([first, *(f"{key}: {value}" for key, value in (err.errors or {}).items())])
