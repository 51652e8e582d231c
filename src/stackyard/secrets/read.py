"""Reading a secrets file for the rest of stackyard: what it holds, and where each value stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import files, locks
from stackyard.base.errors import Location
from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.secrets.base import SecretsKind
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.layout import Branch, Leaf, Node, Position, SecretsSyntaxError, plain_data
from stackyard.secrets.protected_file import open_bytes, open_file, read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stackyard.base import yamledit

__all__ = ["Secrets", "change_secrets", "read_secrets"]

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What a secrets file holds.

    Attributes:
        kind: How it is protected, or that there is none.
        path: Where it is.
        data: Its values, decrypted.
    """

    kind: SecretsKind
    path: Path
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    _values: Mapping[Keys, Position] = field(default_factory=dict, repr=False)
    _keys: Mapping[Keys, Position] = field(default_factory=dict, repr=False)
    _secrets: frozenset[str] = field(default_factory=frozenset, repr=False)

    def place(self, *keys: str | int) -> Location:
        """Return where the value of some keys and indexes stands, or the nearest thing around it.

        In a file that Ansible Vault encrypted as a whole, lines are those of the decrypted text.
        """
        return self._nearest(self._values, keys)

    def key_place(self, *keys: str | int) -> Location:
        """Return where the last of some keys stands, or the nearest thing around it."""
        return self._nearest({**self._values, **self._keys}, keys)

    def _nearest(self, places: Mapping[Keys, Position], keys: Keys) -> Location:
        for length in range(len(keys), -1, -1):
            if (place := places.get(keys[:length])) is not None:
                return place.location(str(self.path))
        return Location(str(self.path))

    def redactor(self, base: Redactor = NOTHING_SECRET) -> Redactor:
        """Return a redactor that hides every secret of the file, and what another one hides."""
        return base.with_secrets(self._secrets)


def read_secrets(path: Path, keyring: Keyring | None = None) -> Secrets:
    """Read a secrets file: YAML or JSON, in clear, of SOPS or of Ansible Vault.

    Args:
        path: Where it is; that it is missing is an answer, not an error.
        keyring: The keys of the user; those of the environment when absent.

    Raises:
        SecretsLockedError: It is encrypted, and not for the keys of the user; it says for which.
        SecretsSyntaxError: It is not valid, or is not one mapping.
        InvalidInputError: It was cut off or changed; the errors of each sort say more.
        FileError: It is there and cannot be read.
    """
    if not path.exists() and not path.is_symlink():
        return Secrets(kind=SecretsKind.ABSENT, path=path)
    opened = open_file(path, keyring or Keyring())
    layout = opened.layout()
    if layout is None or len(layout.documents) > 1:
        what = "more than one document" if layout is not None else "no values with names"
        raise SecretsSyntaxError(f"{path} has {what}.", where=Location(str(path)))
    values: dict[Keys, Position] = {}
    keys: dict[Keys, Position] = {}
    data: object = {}
    for document in layout.documents:
        data = plain_data(document.root)
        _collect(document.root, (), values, keys)
    return Secrets(
        kind=opened.kind,
        path=path,
        data=data if isinstance(data, dict) else {},
        _values=values,
        _keys=keys,
        _secrets=opened.secrets(),
    )


def _collect(node: Node, path: Keys, values: dict[Keys, Position], keys: dict[Keys, Position]) -> None:
    values[path] = node.place
    if isinstance(node, Leaf):
        return
    if isinstance(node, Branch):
        for entry in node.entries:
            keys[*path, entry.key] = entry.place
            _collect(entry.node, (*path, entry.key), values, keys)
    else:
        for index, item in enumerate(node.items):
            _collect(item.node, (*path, index), values, keys)


def change_secrets(path: Path, changes: Sequence[yamledit.Change], keyring: Keyring | None = None) -> bool:
    """Change values of a YAML secrets file, keeping its comments, its order and all that is encrypted.

    Args:
        path: Where it is.
        changes: What to change in the decrypted text.
        keyring: The keys of the user; those of the environment when absent.

    Returns:
        Whether anything was changed.

    Raises:
        SecretsLockedError: It is encrypted, and not for the keys of the user.
        UnfaithfulEditError: It is written so that a change would disturb more than asked for.
        InvalidInputError: It was cut off or changed; the errors of each sort say more.
        FileError: It cannot be read or written.
    """
    from stackyard.base import yamledit  # lazy: its library, only to change a file

    with locks.hold_folder(path.parent):
        data = read_bytes(path)
        opened = open_bytes(data, str(path), keyring or Keyring())
        text = opened.plain.decode()
        sealed = opened.seal(yamledit.edit_text(text, changes, str(path)).encode())
        if sealed == data:
            return False
        files.replace_file(path, sealed, mode=path.stat().st_mode & 0o777)
    return True
