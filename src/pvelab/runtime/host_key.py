"""The SSH host key of the nodes: one, kept, so that clients trust it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from stackyard.base import directories
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.base.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HostKeyError", "openssh", "public_half", "read_or_create_host_key"]

KEY_FILE = "ssh_host_ed25519_key"


class HostKeyError(InvalidInputError):
    """The file with the lab's SSH host key is damaged."""

    code = "E-LAB-HOST-KEY"
    summary = "The lab's SSH host key cannot be used"
    default_remedy = "Remove the file; a new key is made at the next start, and clients must be told."


def read_or_create_host_key(folder: Path | None) -> bytes:
    """Return the host key of the nodes as OpenSSH keeps it in a folder; a new one each time without a folder.

    Raises:
        HostKeyError: What is kept there is no key.
        FileError: The folder cannot be read or written.
    """
    if folder is None:
        return openssh(ed25519.Ed25519PrivateKey.generate())
    path = folder / KEY_FILE
    try:
        kept = path.read_bytes()
    except FileNotFoundError:
        return _new_key(folder)
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    try:
        serialization.load_ssh_private_key(kept, password=None)
    except (ValueError, TypeError) as err:
        raise HostKeyError(f"{path} is no private key: {err}.", where=Location(str(path))) from err
    return kept


def openssh(key: ed25519.Ed25519PrivateKey) -> bytes:
    """Return a private key in OpenSSH's own form."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )


def public_half(private: bytes) -> str:
    """Return the public half of a private key in OpenSSH's form, as a line of known_hosts has it.

    Raises:
        ValueError: That is no key.
    """
    key = serialization.load_ssh_private_key(private, password=None).public_key()
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_bytes(*form).decode()


def _new_key(folder: Path) -> bytes:
    key = openssh(ed25519.Ed25519PrivateKey.generate())
    directories.ensure_private(folder)
    replace_file(folder / KEY_FILE, key)
    return key
