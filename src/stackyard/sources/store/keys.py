"""The key of a site: it opens saved plans, and seals the private keys that are kept in the store.

It is in the site's secrets (`site_key`), in a file that STACKYARD_SITE_KEY_FILE names, or in a file that was
made for it at its first use, and never in the store. Several keys may be given during a rotation: the first
seals, all open.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.clients.objects.sealed import KeyRing, MasterKey, MasterKeyError, make_master_key
from stackyard.sources.store.identity import StoreIdentity, change_identity, read_identity

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects
    from stackyard.sources.store.chosen import ChosenStore

__all__ = [
    "KEY_FILE_VARIABLE",
    "KEY_WORD",
    "OtherSiteError",
    "SiteKeyMissingError",
    "SiteKeys",
    "derive_ring",
    "made_key_file",
    "read_keys",
    "require_own",
    "ring_text",
    "site_keys",
]

KEY_FILE_VARIABLE = "STACKYARD_SITE_KEY_FILE"
# Where the secrets of a site hold it.
KEY_WORD = "site_key"
_FOLDER = "site-keys"
_EMBEDDED_FILE = "site.key"
_INNER = b"stackyard inner store "


class SiteKeyMissingError(InvalidInputError):
    """The store belongs to a site whose key this machine does not have."""

    code = "E-SITE-KEY-MISSING"
    summary = "The site key is missing"
    default_remedy = (
        f"Add the key to the site's secrets as `{KEY_WORD}`, or set {KEY_FILE_VARIABLE} to its file."
        " `stackyard store key show` prints it on a machine that has it. On a new site, the first run creates"
        " the key."
    )


class OtherSiteError(InvalidInputError):
    """The store belongs to a site with another key."""

    code = "E-STORE-OTHER-SITE"
    summary = "The store belongs to another site"
    default_remedy = (
        "Use another bucket, prefix or schema for this site. If it is the same site, use the same site key."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteKeys:
    """The keys of a site.

    Attributes:
        ring: The keys.
        where: Where they were found, for a person.
        path: Their file, where they are in a file of their own.
        is_new: Whether they were made just now.
    """

    ring: KeyRing
    where: str
    path: Path | None = None
    is_new: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the keys, the one that seals first."""
        return tuple(key.id for key in self.ring.keys)

    def text(self) -> str:
        """Return the keys as they are written down."""
        return ring_text(self.ring)


def ring_text(ring: KeyRing) -> str:
    """Return keys as they are written down."""
    return ",".join(base64.b64encode(key.secret).decode() for key in ring.keys)


def made_key_file(store: ChosenStore) -> Path:
    """Return the file for a key that is made at its first use.

    An embedded store has it beside itself: who copies the folder copies both. The key of a store that other
    machines reach is with the user, so that nothing of the site has to stay on this machine but that.
    """
    if store.address is None:
        return store.base / _EMBEDDED_FILE
    # Of the store too: one folder may hold one site after another, as on a CI server.
    whose = f"{store.base.resolve().parent}\n{store.address}"
    name = hashlib.sha256(whose.encode("utf-8", "surrogateescape")).hexdigest()
    return directories.data_folder() / _FOLDER / f"{name[:16]}.key"


def site_keys(store: ChosenStore, objects: Objects, *, create: bool = True) -> SiteKeys:
    """Return the keys of a site that fit its store.

    Args:
        store: The store that was chosen.
        objects: The store, open.
        create: Whether a key is made, and the store marked as this site's, where neither is there yet.

    Raises:
        SiteKeyMissingError: The store was used with a key that is not here.
        OtherSiteError: The store was used with other keys than those of this site.
        MasterKeyError: What should be a key is none.
        FileError: A key cannot be read or written, or others could read it.
        StoreError: The store cannot be used.
    """
    # In this order: whoever makes a key has it before the store knows it.
    identity = read_identity(objects)
    found = read_keys(store)
    known = () if identity is None else identity.keys
    if found is None:
        if known or not create:
            raise _missing(known)
        found = _make(made_key_file(store))
    if known:
        _require_known(known, found)
        if found.ids[0] not in known and create:
            change_identity(objects, lambda now: _with_keys(now, found))
    elif create:
        identity = change_identity(objects, lambda now: now if now.keys else _with_keys(now, found))
        # Another machine may have been first, with a key of its own.
        _require_known(identity.keys, found)
    return found


def require_own(store: ChosenStore, identity: StoreIdentity, *, is_key_needed: bool) -> None:
    """Refuse a store that belongs to another site.

    Args:
        store: The store that was chosen.
        identity: Whose it is.
        is_key_needed: Whether a machine without any key is refused too.

    Raises:
        SiteKeyMissingError: The store was used with a key that is not here.
        OtherSiteError: The store was used with other keys than those of this site.
    """
    found = read_keys(store)
    if found is not None:
        _require_known(identity.keys, found)
    elif is_key_needed:
        raise _missing(identity.keys)


def _require_known(known: tuple[str, ...], found: SiteKeys) -> None:
    if not set(known) & set(found.ids):
        raise OtherSiteError(
            f"The store needs the site key {known[0]}."
            f" The key of this site is {found.ids[0]}, from {found.where}."
        )


def derive_ring(ring: KeyRing, scope: str) -> KeyRing:
    """Return the keys for a part of the store; of each key of the site one, with which nothing else opens.

    Args:
        ring: The keys of the site.
        scope: What the names of the part begin with.
    """
    purpose = _INNER + scope.encode()
    return KeyRing(tuple(MasterKey(hmac.digest(key.secret, purpose, hashlib.sha256)) for key in ring.keys))


def _with_keys(now: StoreIdentity, found: SiteKeys) -> StoreIdentity:
    return dataclasses.replace(now, keys=tuple(dict.fromkeys((*found.ids, *now.keys))))


def read_keys(store: ChosenStore) -> SiteKeys | None:
    """Return the keys that this machine has for a site; None where it has none.

    Raises:
        MasterKeyError: What should be a key is none.
        FileError: A key cannot be read, or others could read it.
    """
    named = os.environ.get(KEY_FILE_VARIABLE)
    if named:
        return _read(Path(named), f"{named} ({KEY_FILE_VARIABLE})")
    if store.site_key:
        return SiteKeys(
            ring=_parse(store.site_key, KEY_WORD, None), where=f"`{KEY_WORD}` in the site's secrets"
        )
    made = made_key_file(store)
    return _read(made, str(made)) if made.exists() else None


def _make(path: Path) -> SiteKeys:
    directories.ensure_private(path.parent)
    try:
        files.make_file(path, make_master_key().encode() + b"\n")
    except FileError:
        # Another process may have made it in between; then both use that one.
        if not path.exists():
            raise
    return dataclasses.replace(_read(path, str(path)), is_new=True)


def _read(path: Path, where: str) -> SiteKeys:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    if mode & 0o077:
        raise FileError(
            f"Other users can read {path}, which holds the site key.",
            where=Location(str(path)),
            remedy=f"Remove their access: chmod 600 {path}",
        )
    return SiteKeys(ring=_parse(files.read_text(path), where, path), where=where, path=path)


def _parse(text: str, where: str, path: Path | None) -> KeyRing:
    try:
        return KeyRing.from_text(text)
    except MasterKeyError as err:
        raise MasterKeyError(
            f"{where} is not a site key: {err.detail}",
            where=None if path is None else Location(str(path)),
            remedy="Restore the key from a copy. For a new site, `stackyard store key new` prints a key.",
        ) from err


def _missing(known: tuple[str, ...]) -> SiteKeyMissingError:
    if not known:
        return SiteKeyMissingError("This site has no key yet.")
    return SiteKeyMissingError(f"The store needs the site key {known[0]}. This machine has no site key.")
