"""The secret fields of a cluster: in clear beside the others, or encrypted in a file of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.errors import Location
from stackyard.base.suggestions import did_you_mean
from stackyard.secrets import SecretsKind, SecretsLockedError, read_secrets
from stackyard.sources.cluster.fields import list_secret_names, secret_model
from stackyard.sources.cluster.shape import UNKNOWN, keep_valid
from stackyard.sources.site.document import format_path, read_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.input import InputPlaces
    from stackyard.sources.site.document import Key

__all__ = ["SecretFields", "read_secret_fields"]

NOT_ENCRYPTED = Kind(
    code="E-CLUSTER-SECRETS-CLEAR",
    summary="The file for encrypted secrets is not encrypted",
    remedy="Encrypt it before it is committed: `stackyard secrets encrypt cluster.sops.yaml`.",
)
NOT_SECRET = Kind(
    code="E-CLUSTER-NOT-SECRET",
    summary="A field does not belong in the encrypted file",
    remedy="Move it to the file with the other fields, where everyone can read it.",
)
SECRET_TWICE = Kind(
    code="E-CLUSTER-SECRET-TWICE",
    summary="A secret is in two files",
    remedy="Keep it in cluster.sops.yaml, and remove it from the other file.",
)
LOCKED = Kind(
    code="W-CLUSTER-SECRETS-LOCKED",
    summary="The secrets of the cluster cannot be decrypted here",
    remedy="Commands that need them will refuse: get one of the keys, or have a colleague add yours.",
    severity=Severity.WARNING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFields:
    """The secret fields that a cluster has.

    Attributes:
        values: Their values, by name.
        names: The names of all, also of those that could not be decrypted.
        places: Where those are that are encrypted.
        files: The encrypted file, where there is one.
    """

    values: dict[str, str] = field(default_factory=dict, repr=False)
    names: frozenset[str] = frozenset()
    places: Mapping[str, Location] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Some secret fields, and where they are."""

    path: str
    data: dict[str, Any] = field(repr=False)
    where: Mapping[str, Location]

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a value is."""
        return self.where.get(str(keys[0]), Location(self.path)) if keys else Location(self.path)

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where the key of a value is."""
        return self.place(keys)


def read_secret_fields(
    path: Path,
    clear: dict[str, Any],
    places: InputPlaces,
    found: Diagnostics,
    *,
    keyring: Keyring | None,
    is_needed: bool,
) -> SecretFields:
    """Return the secret fields: those in clear, and those of the encrypted file.

    Args:
        path: The encrypted file.
        clear: The secret fields that were in the other file.
        places: Where those are.
        found: Takes the findings.
        keyring: The keys of the user.
        is_needed: Whether it is an error that the file cannot be decrypted.

    Raises:
        SecretsLockedError: They are needed, and encrypted for others.
        InvalidInputError: The file was cut off or changed.
    """
    given = {name: value for name, value in clear.items() if value not in ("", None)}
    where = {name: places.key_place(name) for name in given}
    values = _check(_Places(path=places.main.path, data=given, where=where), found)
    names = frozenset(given)
    if not path.exists() and not path.is_symlink():
        return SecretFields(values=values, names=names)
    encrypted = _open(path, found, keyring, is_needed=is_needed)
    for name in sorted(names & set(encrypted.where)):
        detail = f"`{name}` is in {places.main.path} and in {encrypted.path}."
        found.add(SECRET_TWICE, detail, where[name], also=(encrypted.where[name],))
    return SecretFields(
        values={**values, **_check(encrypted, found)},
        names=names | frozenset(encrypted.where),
        places=encrypted.where,
        files=(path,),
    )


def _open(path: Path, found: Diagnostics, keyring: Keyring | None, *, is_needed: bool) -> _Places:
    shown = format_path(path)
    try:
        secrets = read_secrets(path, keyring)
    except SecretsLockedError as err:
        if is_needed:
            raise
        found.add(LOCKED, err.detail, Location(shown))
        return _read_names(path, found)
    if secrets.kind is not SecretsKind.SOPS:
        found.add(NOT_ENCRYPTED, f"{shown} is {secrets.kind.value}.", Location(shown, 1, 1))
    data = {name: value for name, value in secrets.data.items() if value not in ("", None)}
    where = {str(name): _shown(secrets.key_place(name), shown) for name in data}
    return _only_secrets(_Places(path=shown, data=data, where=where), found)


def _read_names(path: Path, found: Diagnostics) -> _Places:
    """Return the names of what is encrypted, which SOPS keeps in clear, without values."""
    document = read_document(path, found)
    data = {} if document is None else document.data
    names = [name for name, value in data.items() if name != "sops" and value not in ("", None)]
    where = {} if document is None else {name: document.key_place([name]) for name in names}
    return _only_secrets(_Places(path=format_path(path), data={}, where=where), found)


def _only_secrets(encrypted: _Places, found: Diagnostics) -> _Places:
    """Refuse fields that are not secret: a reader of the repository has to see them."""
    known = list_secret_names()
    for name in sorted(set(encrypted.where) - known):
        from stackyard.sources.cluster.fields import cluster_model  # lazy: for a mistake

        if name in cluster_model().model_fields:
            found.add(NOT_SECRET, f"`{name}` is not secret.", encrypted.where[name])
        else:
            hint = did_you_mean(name, known)
            found.add(UNKNOWN, f"`{name}` is not known here.{hint}", encrypted.where[name])
    kept = set(encrypted.where) & known
    return _Places(
        path=encrypted.path,
        data={name: value for name, value in encrypted.data.items() if name in kept},
        where={name: place for name, place in encrypted.where.items() if name in kept},
    )


def _check(places: _Places, found: Diagnostics) -> dict[str, str]:
    _, valid = keep_valid(secret_model(), places, found, is_secret=True)
    return {name: value for name, value in valid.items() if isinstance(value, str)}


def _shown(place: Location, path: str) -> Location:
    return Location(path, place.line, place.column)
