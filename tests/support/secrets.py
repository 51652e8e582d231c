"""Keys, passwords and files for tests of secrets; those in `data/secrets` were made by the real programs."""

from __future__ import annotations

import os
import re
from pathlib import Path

from stackyard.secrets.keyring import Keyring
from stackyard.secrets.sops.config import CreationRule
from stackyard.secrets.sops.file import OpenedSops, open_sops, seal_new
from stackyard.secrets.sops.rules import DEFAULT_RULE, PathRule
from stackyard.secrets.sops.text import FileFormat

DATA = Path(__file__).parent / "data" / "secrets"


def _key(name: str) -> tuple[str, str]:
    text = (DATA / name).read_text()
    public, secret = re.search(r"age1\w+", text), re.search(r"AGE-SECRET-KEY-1\w+", text)
    assert public is not None
    assert secret is not None
    return public[0], secret[0]


RECIPIENT, IDENTITY = _key("age-keys.txt")
SECOND_RECIPIENT, SECOND_IDENTITY = _key("age-second-key.txt")
ENV = {"SOPS_AGE_KEY": f"{IDENTITY} {SECOND_IDENTITY}", "HOME": "/nonexistent", "PATH": os.environ["PATH"]}
VAULT_ENV = {
    "ANSIBLE_VAULT_PASSWORD_FILE": str(DATA / "vault-password.txt"),
    "ANSIBLE_VAULT_IDENTITY_LIST": f"prod@{DATA / 'vault-password-prod.txt'}",
    "HOME": "/nonexistent",
    "PATH": os.environ["PATH"],
}


def keyring() -> Keyring:
    """Return a keyring with every key and password of these tests."""
    return Keyring(env={**ENV, **VAULT_ENV})


def seal_text(
    text: str | bytes, format: FileFormat = FileFormat.YAML, rule: PathRule = DEFAULT_RULE
) -> bytes:
    """Encrypt something for the key of these tests."""
    plain = text.encode() if isinstance(text, str) else text
    return seal_new(plain, f"secrets.{format}", format, CreationRule(groups=((RECIPIENT,),), rule=rule))


def open_sealed(sealed: bytes, format: FileFormat = FileFormat.YAML) -> OpenedSops:
    """Decrypt it."""
    return open_sops(sealed, f"secrets.{format}", keyring(), format)
