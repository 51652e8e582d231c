"""The seam that every sort of secrets file is behind: opened to plain text, and sealed again.

An implementation keeps what it was opened from. `seal` gives back the very same bytes when nothing was
changed, and otherwise keeps the encrypted form of every value that is still the same, so that a diff shows
what changed and nothing else. Whatever cannot be trusted or cannot be opened is an error, never an absence
of secrets.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.secrets.layout import Layout
    from stackyard.secrets.values import Scalar

__all__ = ["OpenedFile", "SecretsKind", "SecretsLockedError", "secret_texts"]


class SecretsKind(enum.StrEnum):
    """How a secrets file is protected."""

    PLAIN = "plain"
    SOPS = "sops"
    VAULT = "vault"
    VAULT_INLINE = "vault-inline"
    ABSENT = "absent"


class SecretsLockedError(StackyardError):
    """A secrets file is encrypted for keys or passwords that were not found; it says which are needed."""

    code = "E-SECRETS-LOCKED"
    summary = "A secrets file cannot be decrypted"
    default_remedy = "Get one of the keys named and say where it is, or have a colleague add yours."


class OpenedFile(Protocol):
    """A secrets file that was decrypted."""

    @property
    def kind(self) -> SecretsKind:
        """How it is protected."""

    @property
    def plain(self) -> bytes:
        """The decrypted file, as an editor shows it."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be said about it although it could be opened."""

    def secrets(self) -> frozenset[str]:
        """Return every text that must not be shown."""

    def layout(self) -> Layout | None:
        """Return the decrypted values with their places in the file, if it has any structure."""

    def check(self, plain: bytes) -> None:
        """Refuse plain text that `seal` could not seal.

        Raises:
            SecretsSyntaxError: It can no longer be read.
        """

    def seal(self, plain: bytes) -> bytes:
        """Encrypt changed plain text, keeping what is encrypted of all that did not change.

        Raises:
            SecretsSyntaxError: It can no longer be read.
        """


# Numbers as short as a port would blank out ordinary text.
_SHORTEST_NUMBER = 6


def secret_texts(values: Iterable[Scalar]) -> frozenset[str]:
    """Return what to hide of some values: all text, and numbers that are long enough to tell anything."""
    found = set()
    for value in values:
        if isinstance(value, bytes):
            found.add(value.decode(errors="surrogateescape"))
        elif isinstance(value, str) or (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and len(str(value)) >= _SHORTEST_NUMBER
        ):
            found.add(str(value))
    return frozenset(found)
