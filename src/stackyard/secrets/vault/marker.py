"""How a text of Ansible Vault begins, known without its cryptography."""

from __future__ import annotations

__all__ = ["START", "is_vault"]

START = "$ANSIBLE_VAULT;"


def is_vault(text: str) -> bool:
    """Return whether a text is, or was, encrypted by Ansible Vault."""
    return text.lstrip().startswith(START)
