"""The key of who owns a lab: it opens every guest of the lab, whatever users and keys the guest has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import ed25519

from pvelab.runtime.host_key import openssh, public_half
from stackyard.base import directories, files
from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OwnerKey", "read_or_create_owner_key"]

_FILE = "owner_ed25519_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerKey:
    """A private key in a file, and its public half as a line of authorized_keys."""

    path: Path
    public: str


def read_or_create_owner_key(folder: Path) -> OwnerKey:
    """Return the key that is kept in a folder; a new one at the first time, and in place of a damaged one.

    Raises:
        FileError: The folder cannot be read or written.
    """
    directories.ensure_private(folder)
    path = folder / _FILE
    if not path.exists():
        files.make_file(path, openssh(ed25519.Ed25519PrivateKey.generate()))
    try:
        public = _public_half(path.read_bytes())
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    except (ValueError, TypeError):
        # The lab learns the public half whenever it is used, so a new key is as good as the old one.
        key = ed25519.Ed25519PrivateKey.generate()
        files.replace_file(path, openssh(key))
        public = _public_half(openssh(key))
    return OwnerKey(path=path, public=public)


def _public_half(private: bytes) -> str:
    return f"{public_half(private)} owner of the lab"
