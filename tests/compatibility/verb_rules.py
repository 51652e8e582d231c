"""What is different in every run of the program, and the words that stand for it."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["FIELDS", "PATTERNS", "is_unstable", "without_machine"]

# Texts, and parts of them. A place in a file stays: only the folder before it goes.
PATTERNS: dict[str, re.Pattern[str]] = {
    "time": re.compile(r"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
    "token": re.compile(r"\beyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]+|\bsyt_[A-Za-z0-9_-]+"),
    "recipient": re.compile(r"\bage1[a-z0-9]{58}\b"),
    "id": re.compile(r"\b(?:[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{32})\b"),
    "version": re.compile(r"(?<=Python )\d+\.\d+\.\d+\w*|(?<=OpenTofu )\d+\.\d+\.\d+"),
    "port": re.compile(r"(?<=127\.0\.0\.1:)\d{2,5}\b|(?<=localhost:)\d{2,5}\b|(?<=\[::1\]:)\d{2,5}\b"),
}
# Whole values, by the name of their field.
FIELDS: dict[str, str] = {
    "pid": "pid",
    "port": "port",
    "ports": "ports",
    "ssh_port": "port",
    "ssh_ports": "ports",
    "pin": "pin",
    "bytes": "bytes",
    "password": "password",
    "host_key": "key",
}

# What a machine has, or which release this is, by the beginning of the command line.
MACHINE = {
    "tools list": ("health", "version", "path", "where_found", "reason"),
    "--version": ("version",),
}


def without_machine(line: str, value: Any) -> Any:
    """Return an answer without what depends on the machine or the release; the fields themselves stay."""
    names = next((names for start, names in MACHINE.items() if line.startswith(start)), ())
    if isinstance(value, dict):
        return {
            key: "<machine>" if key in names else without_machine(line, inner) for key, inner in value.items()
        }
    return [without_machine(line, inner) for inner in value] if isinstance(value, list) else value


def is_unstable(name: str, value: Any) -> str | None:
    """Return the word for a value that a clock made, by the name of its field."""
    if isinstance(value, float) and name.endswith(("_s", "seconds", "duration", "elapsed")):
        return "seconds"
    if name == "duration":
        return "seconds"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and name.endswith(("_at", "time", "until", "expires")) and value > 1_000_000_000:
        return "time"
    return None
