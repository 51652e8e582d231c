"""Host keys, and the keys that people log in with."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncssh
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from stackyard.errors import FileError, InvalidInputError, Location
from stackyard.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["HostKeyError", "Keys", "guest_host_key", "is_authorized", "kept_host_key"]

KEY_FILE = "ssh_host_ed25519_key"
_SECRET = ("secrets", "guest_keys")


class HostKeyError(InvalidInputError):
    """The file with the lab's SSH host key is damaged."""

    code = "E-LAB-HOST-KEY"
    summary = "The lab's SSH host key cannot be used"
    default_remedy = "Remove the file; a new key is made at the next start, and clients must be told."


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of an SSH side: the folder of the host key, and who may log in as root with a key."""

    folder: Path | None = None
    authorized: tuple[str, ...] = ()


def kept_host_key(folder: Path | None) -> asyncssh.SSHKey:
    """Return the host key of the nodes, kept in a folder; a new one each time without a folder.

    Raises:
        HostKeyError: What is kept there is no key.
        FileError: The folder cannot be read or written.
    """
    if folder is None:
        return asyncssh.generate_private_key("ssh-ed25519")
    path = folder / KEY_FILE
    try:
        return asyncssh.import_private_key(path.read_bytes())
    except FileNotFoundError:
        pass
    except asyncssh.KeyImportError as err:
        raise HostKeyError(f"{path} is no private key: {err}.", where=Location(str(path))) from err
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    key = asyncssh.generate_private_key("ssh-ed25519")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as err:
        raise FileError.from_os_error(err, "make the folder", folder) from err
    replace_file(path, key.export_private_key())
    return key


def guest_host_key(world: World, guest: Document) -> asyncssh.SSHKey:
    """Return the host key of a guest: always the same one, until another guest has its number.

    It follows from a secret of the lab and from what makes this guest a different one from every other.
    """
    kept = world.store.get(*_SECRET)
    if kept is None:
        kept = {"hex": secrets.token_hex(32)}
        with world.store.transaction():
            world.store.put(*_SECRET, kept)
    config = guest["config"]
    born = config.get("smbios1") or config.get("rootfs") or ""
    identity = f"{guest['vmid']}|{guest['type']}|{str(born).partition(',size=')[0]}"
    seed = hmac.digest(bytes.fromhex(kept["hex"]), identity.encode(), hashlib.sha256)
    key = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return asyncssh.import_private_key(pem)


def is_authorized(key: asyncssh.SSHKey, lines: Iterable[str]) -> bool:
    """Tell whether a public key is among the lines of an authorized_keys file."""
    try:
        found = asyncssh.import_authorized_keys("".join(f"{line}\n" for line in lines))
    except ValueError:
        # None of the lines is a key.
        return False
    return found.validate(key, "", "", None) is not None
