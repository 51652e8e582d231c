"""Datasets: the properties that can be set, and how they read in an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from stackyard.base.visible import on_one_line

__all__ = ["Dataset", "DatasetProperties"]

_LONGEST = 200
# What our names are in the API, where that has another.
_NAMES = {"comment": "comments"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetProperties:
    """Properties of a dataset; None where nothing is said of one.

    Attributes:
        quota: The most bytes of the dataset with all in it; 0 for no limit.
        compression: `LZ4`, `ZSTD`, `OFF`, ...
        sync: `STANDARD`, `ALWAYS` or `DISABLED`.
        recordsize: `128K`, `1M`, ...
        atime: `ON` or `OFF`.
        comment: A text for people.
    """

    quota: int | None = None
    compression: str | None = None
    sync: str | None = None
    recordsize: str | None = None
    atime: str | None = None
    comment: str | None = None

    def document(self) -> dict[str, Any]:
        """Return those that are said, by their names in the API."""
        values = {_NAMES.get(one.name, one.name): getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def differences_of(self, found: DatasetProperties) -> dict[str, tuple[str, str]]:
        """Return what is said here and other there: for each name, what is there and what is said here."""
        differing = {}
        for one in fields(self):
            wanted, there = getattr(self, one.name), getattr(found, one.name)
            if wanted is not None and wanted != there:
                differing[one.name] = (str("nothing" if there is None else there), str(wanted))
        return differing


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset that is there.

    Attributes:
        name: Its full name, `tank/k8s`.
        is_volume: Whether it is a volume, and holds no files.
        is_locked: Whether it is encrypted and its key is not loaded.
        properties: Its properties, its own and inherited ones.
    """

    name: str
    is_volume: bool = False
    is_locked: bool = False
    properties: DatasetProperties

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Dataset:
        """Return a dataset from an answer; what is missing or has another form is absent."""
        return cls(
            name=str(entry.get("id", "")),
            is_volume=entry.get("type") == "VOLUME",
            is_locked=entry.get("locked") is True,
            properties=DatasetProperties(
                quota=_read_size(entry, "quota"),
                compression=_read_word(entry, "compression"),
                sync=_read_word(entry, "sync"),
                recordsize=_read_word(entry, "recordsize"),
                atime=_read_word(entry, "atime"),
                comment=_read(entry, "comments", "value"),
            ),
        )


def _read(entry: Mapping[str, Any], name: str, part: str) -> str | None:
    found = entry.get(name)
    value = found.get(part) if isinstance(found, Mapping) else None
    return on_one_line(value)[:_LONGEST] if isinstance(value, str) else None


def _read_word(entry: Mapping[str, Any], name: str) -> str | None:
    found = _read(entry, name, "value")
    return None if found is None else found.upper()


def _read_size(entry: Mapping[str, Any], name: str) -> int | None:
    # Only the raw value is a number of bytes; the others are for people.
    found = _read(entry, name, "rawvalue")
    return int(found) if found is not None and found.isdecimal() else None
