"""age identities and recipients: finding private keys, wrapping and unwrapping data keys."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyrage  # type: ignore[import-untyped]

from stackyard.base import directories, files, locks
from stackyard.base.errors import FileError, InvalidInputError
from stackyard.secrets.keyring import AgeIdentity, Keyring, KeyringError, run_key_command
from stackyard.secrets.sops.metadata import AgeKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "RecipientError",
    "check_recipient",
    "decrypt_whole",
    "encrypt_whole",
    "find_identities",
    "new_identity",
    "recipient_of",
    "unwrap",
    "user_recipient",
    "wrap",
]

_SSH = "ssh-"
_IDENTITY = "AGE-SECRET-KEY-1"


class RecipientError(InvalidInputError):
    """A public key that a file should be encrypted for is not one of age or SSH."""

    code = "E-SOPS-RECIPIENT"
    summary = "A recipient cannot be used"
    default_remedy = "Give a public key such as age1..., or that of an SSH key (ssh-ed25519 or ssh-rsa)."


def check_recipient(text: str) -> str:
    """Return a recipient without the space around it.

    Raises:
        RecipientError: It is none that we can encrypt for.
    """
    _parse_recipient(text.strip())
    return text.strip()


def _parse_recipient(recipient: str) -> Any:
    try:
        if recipient.startswith(_SSH):
            return pyrage.ssh.Recipient.from_str(recipient)
        return pyrage.x25519.Recipient.from_str(recipient)
    except pyrage.RecipientError as err:
        kind = "a post-quantum key" if recipient.startswith("age1pq1") else "not the public key of age or SSH"
        # Whoever gives the wrong half of a pair must not find it in a log.
        shown = f"`{recipient}`" if recipient.startswith(("age1", "ssh-")) else "A recipient"
        raise RecipientError(f"{shown} is {kind}, and nothing can be encrypted for it here.") from err


def wrap(key: bytes, recipients: Iterable[str]) -> tuple[AgeKey, ...]:
    """Wrap a data key for each recipient.

    Raises:
        RecipientError: One of them cannot be used.
    """
    return tuple(
        AgeKey(
            recipient=recipient,
            wrapped=pyrage.encrypt(key, [_parse_recipient(recipient)], armored=True).decode(),
        )
        for recipient in recipients
    )


def encrypt_whole(data: bytes, recipients: Iterable[str]) -> bytes:
    """Return data as a file of age, which the program `age` opens too.

    Raises:
        RecipientError: One of them cannot be used.
    """
    sealed: bytes = pyrage.encrypt(data, [_parse_recipient(recipient) for recipient in recipients])
    return sealed


def decrypt_whole(data: bytes, keyring: Keyring) -> bytes | None:
    """Return what is in a file of age; None if no private key of the user opens it, or it is damaged.

    Raises:
        KeyringError: A key was named that cannot be used.
    """
    for identities in (_identities(keyring), _ssh_identities(keyring)):
        if identities:
            with contextlib.suppress(pyrage.DecryptError, ValueError):
                opened: bytes = pyrage.decrypt(data, [one.identity for one in identities])
                return opened
    return None


def unwrap(keys: Sequence[AgeKey], keyring: Keyring) -> bytes | None:
    """Return the data key that one of the private keys of the user gives, or none.

    Raises:
        KeyringError: A key was named that cannot be used.
    """
    has_ssh = any(key.recipient.startswith(_SSH) for key in keys)
    opened = _unwrap(keys, _identities(keyring))
    if opened is None and has_ssh:
        opened = _unwrap(keys, _ssh_identities(keyring))
    if opened is None and "SOPS_AGE_KEY_CMD" in keyring.env:
        for key in keys:
            opened = opened or _unwrap([key], _identities_of_command(keyring, key.recipient))
    return opened


def _unwrap(keys: Sequence[AgeKey], identities: Sequence[AgeIdentity]) -> bytes | None:
    if not identities:
        return None
    given = [one.identity for one in identities]
    for key in keys:
        try:
            opened: bytes = pyrage.decrypt(key.wrapped.strip().encode(), given)
        except (pyrage.DecryptError, ValueError):
            continue
        return opened
    return None


def _identities(keyring: Keyring) -> Sequence[AgeIdentity]:
    """Return the keys of the environment and of the usual file; found once."""
    if "age" not in keyring.cache:
        keyring.cache["age"] = [*_find_identities(keyring)]
    found: Sequence[AgeIdentity] = keyring.cache["age"]
    return found


def _find_identities(keyring: Keyring) -> Iterator[AgeIdentity]:
    if text := keyring.env.get("SOPS_AGE_KEY"):
        yield from _read(text, "SOPS_AGE_KEY", keyring)
    else:
        keyring.note("SOPS_AGE_KEY is not set")
    if name := keyring.env.get("SOPS_AGE_KEY_FILE"):
        yield from _read(_text_of(Path(name), "SOPS_AGE_KEY_FILE"), name, keyring)
    else:
        keyring.note("SOPS_AGE_KEY_FILE is not set")
    usual = keyring.age_keys_file
    if usual.exists():
        yield from _read(_text_of(usual, "the usual file of age keys"), str(usual), keyring)
    else:
        keyring.note(f"{usual} does not exist")


def _text_of(path: Path, named: str) -> str:
    try:
        return files.read_text(path)
    except FileError as err:
        raise KeyringError(f"{named}: {err.detail}", where=err.where) from err


def _read(text: str, place: str, keyring: Keyring) -> Iterator[AgeIdentity]:
    if text.lstrip().startswith("-----BEGIN AGE ENCRYPTED FILE-----"):
        raise KeyringError(
            f"The keys in {place} are locked with a passphrase, which cannot be asked for here."
        )
    names = []
    for word in (word for line in text.splitlines() if not line.startswith("#") for word in line.split()):
        found = _identity(word, place)
        names.append(found.name)
        yield found
    keyring.note(f"{place} has the private key of {', '.join(names)}" if names else f"{place} holds no key")


def _identity(word: str, place: str) -> AgeIdentity:
    if not word.startswith(_IDENTITY):
        kind = word.partition("1")[0] if word.startswith(("AGE-PLUGIN-", "AGE-SECRET-KEY-")) else "a word"
        raise KeyringError(f"{place} holds {kind} where only keys of the form {_IDENTITY}... can be used.")
    try:
        identity = pyrage.x25519.Identity.from_str(word)
    except pyrage.IdentityError as err:
        raise KeyringError(f"{place} holds an age key that is cut off or mistyped.") from err
    return AgeIdentity(name=str(identity.to_public()), place=place, identity=identity)


def _identities_of_command(keyring: Keyring, recipient: str) -> Sequence[AgeIdentity]:
    known = f"SOPS_AGE_KEY_CMD {recipient}"
    if known not in keyring.cache:
        words = tuple(shlex.split(keyring.env["SOPS_AGE_KEY_CMD"]))
        env = {**keyring.env, "SOPS_AGE_RECIPIENT": recipient}
        text = run_key_command(words, env, named="SOPS_AGE_KEY_CMD")
        keyring.cache[known] = [*_read(text, "SOPS_AGE_KEY_CMD", keyring)]
    found: Sequence[AgeIdentity] = keyring.cache[known]
    return found


def _ssh_identities(keyring: Keyring) -> Sequence[AgeIdentity]:
    if "ssh" not in keyring.cache:
        keyring.cache["ssh"] = [*_find_ssh_identities(keyring)]
    found: Sequence[AgeIdentity] = keyring.cache["ssh"]
    return found


def _find_ssh_identities(keyring: Keyring) -> Iterator[AgeIdentity]:
    if name := keyring.env.get("SOPS_AGE_SSH_PRIVATE_KEY_FILE"):
        yield _ssh_identity(_text_of(Path(name), "SOPS_AGE_SSH_PRIVATE_KEY_FILE"), name, keyring)
    if command := keyring.env.get("SOPS_AGE_SSH_PRIVATE_KEY_CMD"):
        text = run_key_command(tuple(shlex.split(command)), keyring.env, named="SOPS_AGE_SSH_PRIVATE_KEY_CMD")
        yield _ssh_identity(text, "SOPS_AGE_SSH_PRIVATE_KEY_CMD", keyring)
    for usual in (keyring.home / ".ssh" / "id_ed25519", keyring.home / ".ssh" / "id_rsa"):
        if not usual.exists():
            keyring.note(f"{usual} does not exist")
            continue
        try:
            yield _ssh_identity(_text_of(usual, "The usual SSH key"), str(usual), keyring)
        except KeyringError as err:
            # No one named this key for the purpose: that it has a passphrase is no fault.
            keyring.note(err.detail)


def _ssh_identity(text: str, place: str, keyring: Keyring) -> AgeIdentity:
    try:
        identity = pyrage.ssh.Identity.from_buffer(text.encode())
    except pyrage.IdentityError as err:
        raise KeyringError(f"{place} is no SSH key that can be used: a passphrase, or another sort.") from err
    keyring.note(f"{place} is an SSH key")
    return AgeIdentity(name=place, place=place, identity=identity)


def new_identity() -> tuple[str, str]:
    """Make a private key; return its public half and itself."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity.to_public()), str(identity)


def find_identities(keyring: Keyring, recipients: Iterable[str]) -> tuple[str, ...]:
    """Return the user's private age keys of some recipients, as their file has them: each is a secret.

    Raises:
        KeyringError: A key was named that cannot be used.
    """
    found = dict[str, str]()
    known = {one.name: one for one in _identities(keyring)}
    for recipient in recipients:
        one = known.get(recipient)
        if one is None and recipient.startswith("age1") and "SOPS_AGE_KEY_CMD" in keyring.env:
            made = _identities_of_command(keyring, recipient)
            one = next((each for each in made if each.name == recipient), None)
        if one is not None:
            found[recipient] = str(one.identity)
    return tuple(found.values())


def recipient_of(keyring: Keyring) -> str | None:
    """Return the public half of the user's first age key, if there is one."""
    found = _identities(keyring)
    return found[0].name if found else None


def user_recipient(keyring: Keyring) -> tuple[str, Path | None]:
    """Return the public key of the user, and the file where a private key was created because there was none.

    Raises:
        KeyringError: A key was named that cannot be used.
        FileError: The new key cannot be written.
    """
    known = recipient_of(keyring)
    if known is not None:
        return known, None
    path = keyring.age_keys_file
    directories.ensure_private(path.parent)
    # Another process may make the first key at the same moment; neither key may be lost.
    with locks.hold_folder(path.parent):
        keyring.cache.pop("age", None)
        known = recipient_of(keyring)
        if known is not None:
            return known, None
        public, secret = new_identity()
        before = path.read_bytes() if path.exists() else b""
        text = f"# public key: {public}\n{secret}\n"
        files.replace_file(path, before + text.encode())
    keyring.cache.pop("age", None)
    return public, path
