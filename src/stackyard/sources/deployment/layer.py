"""The SOPS layer: values that are kept encrypted in git and merged under the object, never stored in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets import SecretsKind, read_secrets
from stackyard.sources.deployment.text import strip_comments

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.redaction import Redactor
    from stackyard.secrets import Secrets

__all__ = ["Layer", "LayerPlainError", "read_layer"]


class LayerPlainError(InvalidInputError):
    """The file that should hold encrypted values is missing, or holds them in clear."""

    code = "E-DEPLOYMENT-LAYER"
    summary = "The secrets beside the object are not encrypted"
    default_remedy = "Encrypt the file: `stackyard secrets encrypt FILE`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Values that are secret.

    Attributes:
        path: Their file.
    """

    path: Path
    _secrets: Secrets = field(repr=False)
    _data: dict[str, Any] = field(default_factory=dict, repr=False)

    def redactor(self, base: Redactor) -> Redactor:
        """Return what masks them in any text, and what another one masks."""
        return self._secrets.redactor(base)

    def merge_under(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return an object with these values where it has none of its own."""
        merged: dict[str, Any] = _merge(self._data, data)
        return merged


def read_layer(path: Path) -> Layer:
    """Read the encrypted values.

    Raises:
        LayerPlainError: The file is missing, or in clear.
        SecretsLockedError: It is not for the keys of the user.
        InvalidInputError: It is not valid.
    """
    secrets = read_secrets(path)
    if secrets.kind in (SecretsKind.ABSENT, SecretsKind.PLAIN):
        what = "is not there" if secrets.kind is SecretsKind.ABSENT else "holds its values in clear"
        raise LayerPlainError(f"{path} {what}.", where=Location(str(path)))
    return Layer(path=path, _secrets=secrets, _data=strip_comments(secrets.data))


def _merge(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        both = {key: _merge(value, above[key]) if key in above else value for key, value in below.items()}
        return {**above, **both}
    return above
