"""Which settings of a backend must not be shown: passwords and keys, also inside of addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["list_secret_names", "list_secrets", "show_settings", "without_login"]

_SECRET = re.compile(
    r"secret_key|password|token|private_key|client_key|client_secret|sas_|credentials|kms_key"
)
_ALSO = frozenset(("access_key", "conn_str", "customer_encryption_key", "encryption_key", "sse_customer_key"))
_LOGIN = re.compile(r"(?<=://)(?P<user>[^/@:]*)(?::(?P<password>[^/@]*))?@")
# A key service, a file, or a database: what is secret of these is not in the setting, or is found inside.
_LEADS = re.compile(r"kms_|_files?$|_path$|_id$|credentials$|conn_str$")
_INSIDE = re.compile(r"-----BEGIN |\bpassword\s*=\s*\S|\"private_key\"")
_HIDDEN = "(hidden)"
_SHORTEST = 6


def without_login(text: str) -> str:
    """Return an address without the user and password that it may hold."""
    return _LOGIN.sub("", text)


def show_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as they may be shown."""
    return {name: _HIDDEN if _is_secret(name) else without_login(text) for name, text in settings.items()}


def list_secrets(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return every text of the settings that must be masked in what others say."""
    whole = [text for name, text in settings.items() if _is_secret(name)]
    inside = [found["password"] or "" for text in settings.values() for found in _LOGIN.finditer(text)]
    return tuple(text for text in (*whole, *inside) if len(text) >= _SHORTEST)


def list_secret_names(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the settings whose values are secrets, or hold one, and do not only lead to it."""
    return tuple(name for name, text in settings.items() if _holds_secret(name, text))


def _holds_secret(name: str, text: str) -> bool:
    if any(found["password"] for found in _LOGIN.finditer(text)) or _INSIDE.search(text):
        return True
    return _is_secret(name) and not _LEADS.search(name) and text != ""


def _is_secret(name: str) -> bool:
    first, _, last = name.rpartition(".")
    # Headers of requests may be anything, and are there to prove who asks.
    return first == "headers" or last in _ALSO or bool(_SECRET.search(last))
