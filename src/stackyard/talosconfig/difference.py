"""The difference between two machine configurations, with no secret in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.redaction import MASK, NOTHING_SECRET
from stackyard.talosconfig.documents import MachineConfig, key_of, name_document
from stackyard.talosconfig.yamlform import PlainText

if TYPE_CHECKING:
    from stackyard.base.redaction import Redactor

__all__ = ["ConfigChange", "difference", "mask_config"]

# The names of values that are secret wherever they are.
_SECRET_NAMES = frozenset(
    "key token secret password passphrase auth identitytoken privatekey presharedkey apitoken clustersecret "
    "secretboxencryptionsecret aescbcencryptionsecret content contents env environment variables".split()
)
_SECRET_ENDS = ("secret", "password", "token", "passphrase", "privatekey")
_OCTAL = re.compile(r"0o?([0-7]+)")
_ABSENT: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One value that differs.

    Attributes:
        document: The words for its document.
        path: The keys to it, with points; empty for a whole document.
        before: The value of the first configuration as text; None if it has none. Secrets are masked.
        after: The same of the second.
    """

    document: str
    path: str
    before: str | None
    after: str | None


def difference(
    before: MachineConfig, after: MachineConfig, redactor: Redactor = NOTHING_SECRET
) -> tuple[ConfigChange, ...]:
    """Return what differs between two configurations, in the order of the first.

    What is absent, null and empty are the same, and so are a number and its text: Talos reads them so.
    Secrets are masked by the names of their keys, and by a redactor that knows values.
    """
    first = {key_of(one): one for one in before.documents}
    second = {key_of(one): one for one in after.documents}
    found: list[ConfigChange] = []
    for key in dict.fromkeys((*first, *second)):
        for path, old, new in _compare(first.get(key), second.get(key), ()):
            found.append(
                ConfigChange(
                    document=name_document(key),
                    path=".".join(path),
                    before=_show(old, path, redactor),
                    after=_show(new, path, redactor),
                )
            )
    return tuple(found)


def mask_config(config: MachineConfig) -> MachineConfig:
    """Return a configuration with secrets masked by the names of their keys: for people, not for Talos."""
    return MachineConfig(documents=tuple(_mask(one, "") for one in config.documents))


def _mask(value: Any, name: str) -> Any:
    if value in _ABSENT:
        return value
    if _is_secret(name) or (isinstance(value, str) and _has_key(value)):
        return MASK
    if isinstance(value, Mapping):
        return {key: _mask(one, str(key)) for key, one in value.items()}
    return [_mask(one, name) for one in value] if isinstance(value, list) else value


def _compare(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if _is_same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _compare(old.get(key), new.get(key), (*path, str(key)))
    else:
        yield path, old, new


def _is_same(old: Any, new: Any) -> bool:
    if old in _ABSENT and new in _ABSENT:
        return True
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return all(_is_same(old.get(key), new.get(key)) for key in {*old, *new})
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        return (
            all(_is_same(one, None) for one in (old or new).values())
            if old in _ABSENT or new in _ABSENT
            else False
        )
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_is_same, old, new))
    if isinstance(old, list) or isinstance(new, list):
        return False
    return _write(old) == _write(new) or (_number(old) is not None and _number(old) == _number(new))


def _number(value: Any) -> int | None:
    """Return the number that a value is; permissions of files are written as 0644 and as 0o644."""
    if isinstance(value, PlainText):
        octal = _OCTAL.fullmatch(value)
        return int(octal[1], 8) if octal else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _write(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _show(value: Any, path: tuple[str, ...], redactor: Redactor) -> str | None:
    if value is None:
        return None
    return redactor(_write_masked(value, path[-1] if path else ""))


def _write_masked(value: Any, name: str) -> str:
    if value in _ABSENT:
        return "[]" if isinstance(value, list) else "{}" if isinstance(value, Mapping) else '""'
    if _is_secret(name) or (isinstance(value, str) and _has_key(value)):
        return MASK
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key}: {_write_masked(one, str(key))}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_write_masked(one, name) for one in value)}]"
    return _write(value)


def _is_secret(name: str) -> bool:
    lowered = name.lower()
    return lowered in _SECRET_NAMES or lowered.endswith(_SECRET_ENDS)


def _has_key(text: str) -> bool:
    # The second is the first as base64.
    return "PRIVATE KEY-----" in text or ("LS0tLS1CRUdJTi" in text and "UFJJVkFURSBLRVkt" in text)
