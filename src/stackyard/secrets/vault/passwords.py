"""Passwords of Ansible Vault: from files, scripts and the environment, each with its vault id."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, files, locks
from stackyard.base.errors import FileError
from stackyard.secrets.base import SecretsLockedError
from stackyard.secrets.keyring import Keyring, KeyringError, run_key_command
from stackyard.secrets.vault.envelope import DEFAULT_LABEL, VaultEnvelope, WrongPasswordError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "VaultPassword",
    "encryption_password",
    "make_own_password",
    "open_envelope",
    "own_password_file",
    "vault_passwords",
]

_PASSWORD_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultPassword:
    """A password, the label of its vault id, and where it came from."""

    label: str
    place: str
    password: bytes = field(repr=False)


def vault_passwords(keyring: Keyring) -> Sequence[VaultPassword]:
    """Return every password that was named, in the order in which they are tried; found once.

    Raises:
        KeyringError: A file or script that was named gives no password.
    """
    if "vault" not in keyring.cache:
        keyring.cache["vault"] = [*_find_passwords(keyring)]
    found: Sequence[VaultPassword] = keyring.cache["vault"]
    return found


def _find_passwords(keyring: Keyring) -> Iterator[VaultPassword]:
    for given in keyring.vault_ids:
        yield _read_labelled(given, "the command line", keyring)
    for given in _split_list(keyring.env.get("ANSIBLE_VAULT_IDENTITY_LIST", "")):
        yield _read_labelled(given, "ANSIBLE_VAULT_IDENTITY_LIST", keyring)
    if name := keyring.env.get("ANSIBLE_VAULT_PASSWORD_FILE"):
        yield _of_file(name, _default_label(keyring), "ANSIBLE_VAULT_PASSWORD_FILE", keyring)
    else:
        keyring.note("ANSIBLE_VAULT_PASSWORD_FILE is not set")
    if password := keyring.env.get("ANSIBLE_VAULT_PASSWORD"):
        label = _default_label(keyring)
        keyring.note("ANSIBLE_VAULT_PASSWORD is set")
        yield VaultPassword(label=label, place="ANSIBLE_VAULT_PASSWORD", password=password.strip().encode())
    else:
        keyring.note("ANSIBLE_VAULT_PASSWORD is not set")
    own = own_password_file(keyring)
    if own.is_file():
        yield _of_file(str(own), _default_label(keyring), "the password file of stackyard", keyring)


def own_password_file(keyring: Keyring) -> Path:
    """Return the file with the password that stackyard makes for a user who has none."""
    return keyring.config_home / "stackyard" / "vault-password"


def make_own_password(keyring: Keyring) -> Path:
    """Make a password for a user who has none, in a file that only the user can read; return the file.

    Raises:
        FileError: It cannot be written.
    """
    path = own_password_file(keyring)
    directories.ensure_private(path.parent)
    # Another process may make it at the same moment; neither password may be lost.
    with locks.hold_folder(path.parent):
        if not path.exists():
            files.make_file(path, f"{secrets.token_urlsafe(_PASSWORD_BYTES)}\n".encode())
    keyring.cache.pop("vault", None)
    return path


def _split_list(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _default_label(keyring: Keyring) -> str:
    return keyring.env.get("ANSIBLE_VAULT_IDENTITY") or DEFAULT_LABEL


def _read_labelled(given: str, named: str, keyring: Keyring) -> VaultPassword:
    """Read `LABEL@FILE` or `FILE`."""
    label, at, name = given.rpartition("@")
    if name in ("prompt", "prompt_ask_vault_pass") and at:
        raise KeyringError(f"{named} has the vault id `{given}`, and passwords are not asked for here.")
    return _of_file(name, label or _default_label(keyring), named, keyring)


def _of_file(name: str, label: str, named: str, keyring: Keyring) -> VaultPassword:
    path = Path(name).expanduser()
    if not path.is_file():
        raise KeyringError(f"{named} names the password file {path}, which does not exist.")
    if os.access(path, os.X_OK):
        # A script that asks a keyring gets the label, which Ansible passes to those with such a name.
        is_client = path.stem.endswith("-client")
        words = (str(path.absolute()), *(("--vault-id", label) if is_client else ()))
        text = run_key_command(words, keyring.env, named=named).encode()
    else:
        try:
            text = path.read_bytes()
        except OSError as err:
            raise KeyringError(FileError.from_os_error(err, "read", path).detail) from err
    password = text.strip()
    if not password:
        raise KeyringError(f"The password file {path} of {named} is empty.")
    keyring.note(f"{path} ({named}) has a password for the vault id `{label}`")
    return VaultPassword(label=label, place=str(path), password=password)


def open_envelope(envelope: VaultEnvelope, keyring: Keyring, named: str) -> tuple[bytes, VaultPassword]:
    """Decrypt a text with whichever password opens it, those of its label first.

    Raises:
        SecretsLockedError: None does.
        KeyringError: A password that was named cannot be had.
    """
    label = envelope.label or DEFAULT_LABEL
    passwords = sorted(vault_passwords(keyring), key=lambda one: one.label != label)
    if keyring.env.get("ANSIBLE_VAULT_ID_MATCH", "").lower() in ("1", "true", "yes", "on"):
        passwords = [one for one in passwords if one.label == label]
    for one in passwords:
        try:
            return envelope.open(one.password), one
        except WrongPasswordError:
            continue
    needed = f"the password of the vault id `{envelope.label}`" if envelope.label else "a vault password"
    tried = [f"  {note}" for note in keyring.notes]
    raise SecretsLockedError(
        "\n".join(
            [f"{named} needs {needed}, and none of {len(passwords)} opens it, or it was changed.", *tried]
        ),
        remedy=(
            "Set ANSIBLE_VAULT_PASSWORD_FILE to a file (or a script) with the password, or name it with "
            "--vault-id LABEL@FILE."
        ),
    )


def encryption_password(keyring: Keyring, label: str | None = None) -> VaultPassword:
    """Return the password to encrypt something new with.

    Raises:
        SecretsLockedError: There is none, or none with the label.
        KeyringError: A password that was named cannot be had.
    """
    wanted = label or keyring.env.get("ANSIBLE_VAULT_ENCRYPT_IDENTITY")
    passwords = [one for one in vault_passwords(keyring) if wanted is None or one.label == wanted]
    if not passwords:
        needed = f"a password for the vault id `{wanted}`" if wanted else "a vault password"
        raise SecretsLockedError(
            "\n".join([f"Encrypting needs {needed}.", *(f"  {note}" for note in keyring.notes)]),
            remedy="Set ANSIBLE_VAULT_PASSWORD_FILE to a file with it, or name one with --vault-id.",
        )
    return passwords[0]
