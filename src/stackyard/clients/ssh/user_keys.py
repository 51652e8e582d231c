"""The user's own keys."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["user_keys", "user_public_keys"]

# The files that OpenSSH tries where none is named. Keys in hardware (`_sk`) are for an agent.
_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")
_PUBLIC_LINE = re.compile(r"(ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/=]+( .*)?")


def user_keys() -> tuple[Path, ...]:
    """Return the files of private keys that OpenSSH finds where none is named."""
    folder = Path("~").expanduser() / ".ssh"
    return tuple(path for name in _NAMES if (path := folder / name).is_file())


def user_public_keys() -> tuple[tuple[str, str], ...]:
    """Return the public keys of the user by the names of their files; a file of another form is left out."""
    found = []
    for name in _NAMES:
        path = Path("~").expanduser() / ".ssh" / f"{name}.pub"
        if path.is_file():
            lines = path.read_text(errors="replace").strip().splitlines()
            if len(lines) == 1 and _PUBLIC_LINE.fullmatch(lines[0]):
                found.append((name, lines[0]))
    return tuple(found)
