"""The configuration of a guest as the lines of its file."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["comment_lines", "config_lines"]


def config_lines(config: Mapping[str, Any]) -> list[str]:
    """Return the lines of one section of a guest's file: its description, its options, its raw LXC lines."""
    lines = comment_lines(config)
    lines += [f"{key}: {config[key]}" for key in sorted(config) if key not in ("lxc", "description")]
    return lines + [f"{key}: {value}" for key, value in config.get("lxc", ())]


def comment_lines(config: Mapping[str, Any]) -> list[str]:
    """Return the description of a guest as the comment at the top of its file."""
    text = str(config.get("description", ""))
    return [f"#{urllib.parse.quote(line, safe=' !()*,-./:;<=>?@[]_~')}" for line in text.splitlines()]
