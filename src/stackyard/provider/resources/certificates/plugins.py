"""The data of ACME plugins: lines of names and values, which travel encoded."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import Form
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DATA", "PATH", "check_data"]

PATH = "/cluster/acme/plugins"


def _write(data: Mapping[str, Any]) -> str:
    lines = "\n".join(f"{name}={value}" for name, value in sorted(data.items()))
    return base64.b64encode(lines.encode()).decode()


def _read(text: Any) -> dict[str, str]:
    parts = (line.partition("=") for line in str(text).split("\n") if line)
    return {name: value for name, _, value in parts}


DATA = Form(write=_write, read=_read)


def check_data(data: Mapping[str, Any]) -> str | None:
    """Check that data can be written as lines, without showing any of it."""
    if not data:
        return "must not be empty; leave it out where a plugin needs none"
    if any(not name or set(name) & set("=\r\n") for name in data):
        return "must have names without line breaks and equals signs"
    if any(set(str(value)) & set("\r\n") for value in data.values() if value is not UNKNOWN):
        return "must have values of one line each"
    return None
