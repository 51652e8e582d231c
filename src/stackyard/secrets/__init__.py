"""Secrets in files: SOPS with age keys, and Ansible Vault, read and written natively.

`read_secrets` returns the values with their places; `change_secrets` changes single values; the commands
use `open_file`. If a file cannot be opened, the error names the keys; the file is never treated as empty.
Decrypted values stay in memory. A caller that passes them on also passes the redactor.

Nothing here prints or asks. Importing this package loads no cryptography: the names below load it when
used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.secrets.base import OpenedFile, SecretsKind, SecretsLockedError
    from stackyard.secrets.create import create_sops_file
    from stackyard.secrets.keyring import Keyring
    from stackyard.secrets.protected_file import open_file
    from stackyard.secrets.read import Secrets, change_secrets, read_secrets
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
    "Secrets": "read",
    "SecretsKind": "base",
    "SecretsLockedError": "base",
    "change_secrets": "read",
    "create_sops_file": "create",
    "new_identity": "sops.age",
    "open_file": "protected_file",
    "read_secrets": "read",
    "user_recipient": "sops.age",
}


def __getattr__(name: str) -> object:
    """Load a name when it is first used: reading secrets needs libraries that most commands do not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
