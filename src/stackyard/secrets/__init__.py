"""Secrets that live in files: SOPS with age keys, and Ansible Vault, read and written natively.

`read_secrets` gives the rest of stackyard the values with their places; `change_secrets` changes single
values; `open_file` is behind the commands. A file that cannot be opened is an error that names the keys,
never a file without secrets. Decrypted values stay in memory; whoever passes them on takes the redactor
along.

Nothing here prints or asks, and importing this package loads no cryptography: the names below do, when used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.secrets.base import OpenedFile, SecretsKind, SecretsLockedError
    from stackyard.secrets.creating import create_sops_file
    from stackyard.secrets.keyring import Keyring
    from stackyard.secrets.opening import open_file
    from stackyard.secrets.reading import Secrets, change_secrets, read_secrets
    from stackyard.secrets.sops.age import new_identity, user_recipient

__all__ = [
    "Keyring",
    "OpenedFile",
    "Secrets",
    "SecretsKind",
    "SecretsLockedError",
    "change_secrets",
    "create_sops_file",
    "new_identity",
    "open_file",
    "read_secrets",
    "user_recipient",
]

_HOMES = {
    "Keyring": "keyring",
    "OpenedFile": "base",
    "Secrets": "reading",
    "SecretsKind": "base",
    "SecretsLockedError": "base",
    "change_secrets": "reading",
    "create_sops_file": "creating",
    "new_identity": "sops.age",
    "open_file": "opening",
    "read_secrets": "reading",
    "user_recipient": "sops.age",
}


def __getattr__(name: str) -> object:
    """Load a name when it is first used: reading secrets needs libraries that most commands do not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
