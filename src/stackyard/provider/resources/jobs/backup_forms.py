"""How backup jobs spell lists, retention and nested settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackyard.fields.properties import flag, number, parse, render
from stackyard.provider.fields import Form
from stackyard.provider.values import UNKNOWN

__all__ = ["FLEECING", "LIST", "PATHS", "PERFORMANCE", "RETENTION", "as_sent", "keep_empty"]


def as_sent(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a job with its objects as the texts that they were sent as."""
    return {name: render(value) if isinstance(value, Mapping) else value for name, value in row.items()}


def keep_empty(known: Any) -> Any:
    """Return an attribute that is configured without content, for which Proxmox keeps nothing.

    Returns:
        The attribute with nothing unknown in it; None where it has content.
    """
    if known == [] or known == {}:
        return known
    if isinstance(known, Mapping) and all(value in (None, UNKNOWN) for value in known.values()):
        return dict.fromkeys(known)
    return None


def _write_properties(names: Mapping[str, str], value: Mapping[str, Any]) -> str | None:
    sent = {
        key: value.get(attribute) for attribute, key in names.items() if value.get(attribute) is not UNKNOWN
    }
    return render(sent) or None


def _read_paths(value: Any) -> list[str]:
    return [str(path) for path in value] if isinstance(value, list) else str(value).split(",")


def _read_fleecing(text: Any) -> dict[str, Any]:
    found = parse(text, "enabled")
    enabled = found.get("enabled")
    return {"enabled": None if enabled is None else flag(enabled), "storage": found.get("storage")}


_PERFORMANCE = {"max_workers": "max-workers", "pbs_entries_max": "pbs-entries-max"}


def _read_performance(text: Any) -> dict[str, Any]:
    found = parse(text, "")
    return {
        attribute: None if found.get(key) is None else number(found[key])
        for attribute, key in _PERFORMANCE.items()
    }


# The order of a list is part of it: Proxmox keeps it, and so does a configuration.
LIST = Form(
    write=lambda value: ",".join(map(str, value)),
    read=lambda text: [part.strip() for part in str(text).split(",") if part.strip()],
)
PATHS = Form(write=lambda value: [str(path) for path in value], read=_read_paths)
RETENTION = Form(write=lambda value: render(dict(sorted(value.items()))), read=lambda text: parse(text, ""))
FLEECING = Form(
    write=lambda value: _write_properties({"enabled": "enabled", "storage": "storage"}, value),
    read=_read_fleecing,
)
PERFORMANCE = Form(write=lambda value: _write_properties(_PERFORMANCE, value), read=_read_performance)
