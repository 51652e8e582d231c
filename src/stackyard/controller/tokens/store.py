"""Where the keys and the list of tokens are: in the store of the site, or in the memory of one run."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.clients.objects import ABSENT, ConflictError
from stackyard.sources.store.sealed import open_sealed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects, Tag
    from stackyard.sources.store import ChosenStore

__all__ = ["Change", "IssuedToken", "MemoryStore", "SigningKey", "StoredTokens", "TokenObjects", "TokenStore"]

_FORMAT = 1
_LIST = "controller/tokens"
_MARK = "controller/tokens-changed"
_ATTEMPTS = 50
_FRESH_S = 1.0
# A list that could not be read again for so long does not count: it may lack what was revoked.
_OLDEST_S = 30.0
_Version = tuple["Tag | None", "Tag | None"]


class TokenStoreError(InvalidInputError):
    """The object with the keys and the list of tokens of a controller is damaged."""

    code = "E-TOKEN-STORE"
    summary = "The list of tokens is damaged"
    default_remedy = (
        "Remove this one object and issue new tokens: all tokens from before are refused, revoked or not."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key that signs tokens.

    Attributes:
        id: Its number.
        secret: The key itself, in hexadecimal digits.
        created_at: When it was created, in seconds since 1970.
        retires_at: When tokens that it signed stop to count; None while it is in use.
    """

    id: str
    secret: str = field(repr=False)
    created_at: float
    retires_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """A token that was issued; the token itself is kept nowhere."""

    id: str
    node: str = ""
    spec: str = ""
    repo: str = ""
    note: str = ""
    issued_at: float
    expires_at: float
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTokens:
    """Everything that a store keeps.

    Attributes:
        keys: The keys, the newest last.
        issued: The tokens that were issued.
        not_before: Tokens that were issued before this time do not count: the list that knew which of them
            are revoked was lost. In seconds since 1970.
    """

    keys: tuple[SigningKey, ...] = ()
    issued: tuple[IssuedToken, ...] = ()
    not_before: float = 0.0

    def with_issued(self, issued: IssuedToken) -> StoredTokens:
        """Return it with a token added, or changed."""
        others = tuple(one for one in self.issued if one.id != issued.id)
        return replace(self, issued=(*others, issued))


Change = Callable[[StoredTokens], StoredTokens]


class TokenStore(Protocol):
    """Keys and tokens. What `change` wrote is what the next `read` of any process returns."""

    def read(self) -> StoredTokens:
        """Return what is kept; cheap where nothing has changed."""

    def change(self, change: Change) -> StoredTokens:
        """Replace what is kept by what the function makes of it, with no one in between."""


class MemoryStore:
    """Keys and tokens of one run, which end with it."""

    def __init__(self) -> None:
        self._kept = StoredTokens()

    def read(self) -> StoredTokens:
        """Return what is kept."""
        return self._kept

    def change(self, change: Change) -> StoredTokens:
        """Replace what is kept."""
        self._kept = change(self._kept)
        return self._kept


class TokenObjects:
    """Keys and tokens in the store of the site, sealed with its key; every machine of the site has the same.

    A second, small object beside the list holds the time of the last change. It outlives the list: where the
    list is gone, or an older copy of it is back, it is not known any more what was revoked, and every token
    that was issued up to that time is refused.

    Args:
        store: The store of the site.
        clock: The time of day, in seconds since 1970.
    """

    def __init__(self, store: ChosenStore, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        # Another machine is asked over the network: what it revokes is refused here a second later.
        self._fresh_s = _FRESH_S if store.is_shared else 0.0
        self._read_at = -math.inf
        self._refreshing = threading.Lock()
        self._known: tuple[_Version, StoredTokens] | None = None

    def read(self) -> StoredTokens:
        """Return what is kept; it is opened only when it is another one than before.

        Raises:
            TokenStoreError: It is damaged.
            StoreError: It cannot be read.
        """
        known, age_s = self._known, time.monotonic() - self._read_at
        if known is not None and age_s < self._fresh_s:
            return known[1]
        if known is not None and self._fresh_s and age_s < _OLDEST_S:
            # Whoever asks is a server: it must not stand still while a store is asked over the network.
            self._refresh_later()
            return known[1]
        return self._refresh()

    def _refresh(self) -> StoredTokens:
        with contextlib.closing(self._store.read()) as objects:
            kept = self._read(objects)[0]
        self._read_at = time.monotonic()
        return kept

    def _refresh_later(self) -> None:
        if not self._refreshing.acquire(blocking=False):
            return

        def refresh() -> None:
            # A store that stays away ends every token, once the list is too old.
            with self._release(), contextlib.suppress(StackyardError):
                self._refresh()

        threading.Thread(target=refresh, name="tokens", daemon=True).start()

    @contextlib.contextmanager
    def _release(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._refreshing.release()

    def _read(self, objects: Objects) -> tuple[StoredTokens, Tag | None, float]:
        """Return what is kept, the version that was read, and when it was changed for the last time."""
        # In this order: whoever changes them writes the list first, so that it never looks older than it is.
        mark = objects.get(_MARK)
        changed_at = -math.inf if mark is None else _change_time(mark.data)
        stored = objects.get(_LIST)
        tag = None if stored is None else stored.tag
        version = (tag, None if mark is None else mark.tag)
        if self._known is not None and self._known[0] == version:
            return self._known[1], tag, changed_at
        kept, written_at = StoredTokens(), -math.inf
        if stored is not None:
            opened = open_sealed(self._store, objects).get(_LIST)
            if opened is not None:
                (kept, written_at), tag = _parse(opened.data), opened.tag
        if written_at < changed_at:
            kept = replace(kept, not_before=max(kept.not_before, math.nextafter(changed_at, math.inf)))
        self._known = ((tag, version[1]), kept)
        return kept, tag, changed_at

    def change(self, change: Change) -> StoredTokens:
        """Replace what is kept, no matter who else does at the same time.

        Raises:
            TokenStoreError: It is damaged.
            StoreError: It cannot be stored.
            ConflictError: Others kept changing it.
        """
        with contextlib.closing(self._store.open()) as objects:
            sealed = open_sealed(self._store, objects)
            for _ in range(_ATTEMPTS):
                before, tag, last = self._read(objects)
                if before.not_before == math.inf:
                    before = replace(before, not_before=self._clock())
                kept = change(before)
                # Never before the last one or a token of the list, whatever someone did to the clock.
                times = (last if last < math.inf else 0.0, *(one.issued_at for one in kept.issued))
                now = max(self._clock(), *times)
                document = {"format": _FORMAT, "written_at": now, **_document(kept)}
                try:
                    sealed.put(_LIST, orjson.dumps(document), expect=ABSENT if tag is None else tag)
                except ConflictError:
                    continue
                self._mark(objects, now)
                return kept
        raise ConflictError(_LIST)

    def _mark(self, objects: Objects, now: float) -> None:
        """Write down when the list was changed; it never goes back."""
        data = orjson.dumps({"format": _FORMAT, "changed_at": now})
        for _ in range(_ATTEMPTS):
            mark = objects.get(_MARK)
            if mark is not None and now <= _change_time(mark.data) < math.inf:
                return
            with contextlib.suppress(ConflictError):
                objects.put(_MARK, data, expect=ABSENT if mark is None else mark.tag)
                return
        raise ConflictError(_MARK)


def _change_time(data: bytes) -> float:
    """Return when a list was changed for the last time; what cannot be read is after all tokens."""
    try:
        found = float(parse_json(data)["changed_at"])
    except (JsonError, KeyError, TypeError, ValueError):
        return math.inf
    return found if math.isfinite(found) else math.inf


def _document(kept: StoredTokens) -> dict[str, Any]:
    return {"not_before": kept.not_before, "keys": list(kept.keys), "issued": list(kept.issued)}


def _parse(data: bytes) -> tuple[StoredTokens, float]:
    try:
        found = parse_json(data)
        kept = StoredTokens(
            keys=tuple(SigningKey(**row) for row in found["keys"]),
            issued=tuple(IssuedToken(**row) for row in found["issued"]),
            not_before=float(found.get("not_before", 0.0)),
        )
        return kept, float(found.get("written_at", 0.0))
    except (JsonError, AttributeError, KeyError, TypeError, ValueError) as err:
        raise TokenStoreError(f"{_LIST} is not valid.") from err
