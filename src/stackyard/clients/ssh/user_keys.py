"""The user's own private keys."""

from __future__ import annotations

from pathlib import Path

__all__ = ["user_keys"]

# The files that OpenSSH tries where none is named. Keys in hardware (`_sk`) are for an agent.
_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")


def user_keys() -> tuple[Path, ...]:
    """Return the files of private keys that OpenSSH finds where none is named."""
    folder = Path("~").expanduser() / ".ssh"
    return tuple(path for name in _NAMES if (path := folder / name).is_file())
