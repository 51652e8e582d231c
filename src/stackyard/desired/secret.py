"""Secrets by name in the model, their values beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.redaction import Redactor
from stackyard.desired.values import Line, Many, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Secret", "Secrets", "Text"]


class Secret(Value):
    """A secret where it is used: its name, as `passwords.vm_root`, never its value."""

    secret: Line
    # Inside a quoted string of JSON or YAML: the value is escaped for it.
    is_escaped: bool = False


# A text, or the parts of one that has secrets in it.
Text = str | Many[str | Secret]


class Secrets:
    """The values of the secrets that a model names; it shows none of them in its own text."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)} values)"

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def reveal(self, secret: Secret) -> str:
        """Return the value of a secret.

        Raises:
            KeyError: The source that named this secret did not give its value.
        """
        return self._values[secret.secret]

    def with_values(self, values: Mapping[str, str]) -> Secrets:
        """Return these and more."""
        return Secrets({**self._values, **values})

    def redactor(self) -> Redactor:
        """Return what masks these values in any text."""
        return Redactor(self._values.values())
