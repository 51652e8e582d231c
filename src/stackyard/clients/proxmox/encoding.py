"""How parameters and path segments travel."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence

__all__ = ["Params", "Value", "encode", "quote"]

Value = str | int | float | bool | Sequence[str] | None
Params = Mapping[str, Value]


def quote(segment: str | int) -> str:
    """Return a path segment as Proxmox takes it: everything escaped but what its ids are made of."""
    return urllib.parse.quote(str(segment), safe=":@")


def encode(params: Params) -> str:
    """Return parameters as a form: True and False as 1 and 0, None left out, a list as a repeated key."""
    pairs: list[tuple[str, str]] = []
    for name, value in params.items():
        if value is None:
            continue
        if isinstance(value, str) or not isinstance(value, Sequence):
            pairs.append((name, _text(value)))
        else:
            pairs.extend((name, _text(one)) for one in value)
    return urllib.parse.urlencode(pairs)


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
