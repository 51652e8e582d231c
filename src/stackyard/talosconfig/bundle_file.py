"""The file with the secrets of a cluster: beside it, encrypted with SOPS, never on a disk in clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import FileError, InvalidInputError, Location, StackyardError
from stackyard.secrets.base import SecretsKind
from stackyard.secrets.create import creation_rule
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.protected_file import open_bytes
from stackyard.secrets.read import read_secrets
from stackyard.secrets.sops.file import seal_new
from stackyard.secrets.sops.text import FileFormat
from stackyard.talosconfig.bundle import SecretsBundle, make_bundle, write_bundle
from stackyard.talosconfig.bundle_checks import build_bundle

if TYPE_CHECKING:
    import datetime
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.secrets.sops.config import CreationRule

__all__ = [
    "BUNDLE_FILES",
    "BundleExistsError",
    "BundleInClearError",
    "BundleMissingError",
    "check_key",
    "create_bundle",
    "find_bundle",
    "import_bundle",
    "load_bundle",
]

# The name that talhelper's users have, then the one of topf's.
BUNDLE_FILES = ("talos/talsecret.sops.yaml", "talos/secrets.sops.yaml")


class BundleMissingError(StackyardError):
    """A cluster has no secrets yet, or its secrets are in a folder that was not given."""

    code = "E-TALOS-SECRETS-ABSENT"
    summary = "The cluster has no secrets bundle"
    default_remedy = "Restore talos/talsecret.sops.yaml from git; for a new cluster, create one."


class BundleExistsError(StackyardError):
    """A new bundle would replace the secrets of an existing cluster, or two files claim to be its secrets."""

    code = "E-TALOS-SECRETS-EXIST"
    summary = "The cluster has a secrets bundle already"
    default_remedy = "Use the existing bundle. To begin a new cluster, move the file away first."


class BundleInClearError(InvalidInputError):
    """The secrets of a cluster are on disk in clear."""

    code = "E-TALOS-SECRETS-CLEAR"
    summary = "The secrets bundle is not encrypted"
    default_remedy = (
        "Encrypt it with `stackyard secrets encrypt`; if it was in git, replace the cluster's secrets."
    )


def find_bundle(folder: Path) -> Path | None:
    """Return the file with the secrets of the cluster in a folder, if there is one.

    Raises:
        BundleExistsError: There are two.
    """
    found = [folder / name for name in BUNDLE_FILES if (folder / name).exists()]
    if len(found) > 1:
        raise BundleExistsError(
            f"Both {found[0]} and {found[1]} are there, and only one of them can be the cluster's.",
            where=Location(str(found[1])),
            remedy="Remove the one that does not belong to the cluster.",
        )
    return found[0] if found else None


def load_bundle(
    folder: Path, keyring: Keyring | None = None, *, now: datetime.datetime | None = None
) -> SecretsBundle:
    """Return the secrets of the cluster in a folder.

    Raises:
        BundleMissingError: It has none.
        BundleInClearError: They are not encrypted.
        SecretsLockedError: They are encrypted, and not for the keys of the user.
        InvalidInputError: They are not what Talos needs; every problem is named.
    """
    path = find_bundle(folder)
    if path is None:
        raise BundleMissingError(f"There is no {folder / BUNDLE_FILES[0]}.", where=Location(str(folder)))
    return _read(path, keyring or Keyring(), now, is_encrypted=True)


def check_key(folder: Path, keyring: Keyring | None = None, recipients: Sequence[str] = ()) -> None:
    """Make sure that a bundle in a folder can be read back; do this before anything is created.

    Raises:
        SecretsLockedError: The user has none of the keys that the bundle is, or would be, encrypted for.
        SopsConfigError: `.sops.yaml` has no rule for the bundle.
        RecipientError: There is no one to encrypt for.
    """
    keys, path = keyring or Keyring(), find_bundle(folder)
    if path is not None:
        read_secrets(path, keys)
        return
    target = folder / BUNDLE_FILES[0]
    _seal(target, "probe: readable\n", creation_rule(target, recipients), keys)


def create_bundle(
    folder: Path,
    keyring: Keyring | None = None,
    recipients: Sequence[str] = (),
    *,
    now: datetime.datetime | None = None,
) -> SecretsBundle:
    """Make the secrets of a new cluster and keep them encrypted in its folder; nothing else is replaced.

    Args:
        folder: The folder of the cluster.
        keyring: The keys of the user, who must be able to read the file back.
        recipients: For whom it is encrypted; as the nearest `.sops.yaml` says when absent.
        now: The present time.

    Raises:
        BundleExistsError: It has secrets already.
        SecretsLockedError: The user could not read the file back; nothing was written.
        SopsConfigError: `.sops.yaml` has no rule for the file.
        RecipientError: There is no one to encrypt for.
        FileError: It cannot be written.
    """
    keys = keyring or Keyring()
    _require_absent(folder)
    check_key(folder, keys, recipients)
    return _keep(folder, make_bundle(now), keys, recipients)


def import_bundle(
    source: Path,
    folder: Path,
    keyring: Keyring | None = None,
    recipients: Sequence[str] = (),
    *,
    now: datetime.datetime | None = None,
) -> SecretsBundle:
    """Keep the secrets that talosctl, talhelper or topf made, encrypted in the folder of a cluster.

    Args:
        source: Their file, in clear or encrypted; it is not changed.
        folder: The folder of the cluster.
        keyring: The keys of the user.
        recipients: For whom it is encrypted; as the nearest `.sops.yaml` says when absent.
        now: The present time.

    Raises:
        BundleMissingError: There is no such file.
        BundleExistsError: The cluster has secrets already.
        SecretsLockedError: The source cannot be decrypted, or the new file could not be read back.
        InvalidInputError: The source is not what Talos needs; every problem is named.
        FileError: The new file cannot be written.
    """
    keys = keyring or Keyring()
    _require_absent(folder)
    if not source.exists():
        raise BundleMissingError(f"There is no {source}.", where=Location(str(source)))
    bundle = _read(source, keys, now, is_encrypted=False)
    return _keep(folder, bundle, keys, recipients)


def _require_absent(folder: Path) -> None:
    existing = find_bundle(folder)
    if existing is not None:
        raise BundleExistsError(f"{existing} is there.", where=Location(str(existing)))


def _read(
    path: Path, keyring: Keyring, now: datetime.datetime | None, *, is_encrypted: bool
) -> SecretsBundle:
    found = read_secrets(path, keyring)
    if is_encrypted and found.kind is SecretsKind.PLAIN:
        raise BundleInClearError(
            f"{path} has the secrets of the cluster in clear.", where=Location(str(path))
        )
    problems = Diagnostics()
    bundle = build_bundle(found.data, found.place, problems, now=now)
    problems.raise_errors(f"The secrets bundle {path}")
    return bundle


def _keep(folder: Path, bundle: SecretsBundle, keyring: Keyring, recipients: Sequence[str]) -> SecretsBundle:
    path = folder / BUNDLE_FILES[0]
    sealed = _seal(path, write_bundle(bundle), creation_rule(path, recipients), keyring)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise FileError.from_os_error(err, "make", path.parent) from err
    files.make_file(path, sealed)
    # Of two runs at once, the first one wins; both continue with its secrets.
    return _read(path, keyring, None, is_encrypted=True)


def _seal(path: Path, text: str, rule: CreationRule, keyring: Keyring) -> bytes:
    """Encrypt a text, and refuse to if the user could not decrypt it."""
    sealed = seal_new(text.encode(), str(path), FileFormat.YAML, rule)
    open_bytes(sealed, str(path), keyring)
    return sealed
