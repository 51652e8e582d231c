"""Which guests of a cluster are meant.

A filter is a property (`tag=web`, `pool=lab`, `type=ct`, `node=pve1`), a vm id (`104`), a range of them
(`100-199`), or the name of a guest, with `*` and `?`. Commas separate alternatives of one filter; several
filters all have to hold.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import UsageError
from stackyard.fields.guest import split_tags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Filter", "choose", "parse_filter"]

_RANGE = re.compile(r"(\d+)-(\d+)")
_TYPES = {"vm": "qemu", "ct": "lxc"}
_PROPERTIES = ("tag", "pool", "type", "node")

MATCHES_NOTHING = Kind(
    code="E-IMPORT-FILTER",
    summary="A filter matches no guest",
    remedy="Correct it; without a filter, every guest that nothing manages is meant.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """One alternative of a filter."""

    text: str
    about: str | None
    wanted: str

    def holds(self, row: Mapping[str, Any]) -> bool:
        if self.about == "tag":
            return any(fnmatch.fnmatchcase(tag, self.wanted) for tag in split_tags(row.get("tags")))
        if self.about == "type":
            return bool(row["type"] == _TYPES[self.wanted])
        if self.about is not None:
            return fnmatch.fnmatchcase(str(row.get(self.about) or ""), self.wanted)
        ids = _RANGE.fullmatch(self.wanted)
        if ids is not None:
            return int(ids[1]) <= int(row["vmid"]) <= int(ids[2])
        if self.wanted.isdigit():
            return int(row["vmid"]) == int(self.wanted)
        return fnmatch.fnmatchcase(str(row.get("name") or ""), self.wanted)

    @property
    def names_one(self) -> bool:
        """Whether it names a single guest, which is then certainly meant."""
        is_open = self.about is not None or _RANGE.fullmatch(self.wanted) is not None
        return not is_open and not set("*?[") & set(self.wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a guest has to be: one of several alternatives."""

    tests: tuple[_Test, ...]

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a guest is meant."""
        return any(test.holds(row) for test in self.tests)

    def names(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a guest is meant by its own name or id."""
        return any(test.names_one and test.holds(row) for test in self.tests)


def parse_filter(text: str) -> Filter:
    """Read a filter.

    Raises:
        UsageError: It is none.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"The filter `{text}` has nothing between its commas.")
    return Filter(tests=tuple(_test(word) for word in words))


def _test(word: str) -> _Test:
    name, equals, wanted = word.partition("=")
    if not equals:
        return _Test(text=word, about=None, wanted=word)
    if name not in _PROPERTIES:
        known = ", ".join(f"`{one}=`" for one in _PROPERTIES)
        raise UsageError(f"There is no filter `{name}=`; there is {known}, a vm id, a range, or a name.")
    if name == "type" and wanted not in _TYPES:
        raise UsageError(f"`{word}` is no type of guest: say `type=vm` or `type=ct`.")
    return _Test(text=word, about=name, wanted=wanted)


def choose(rows: Sequence[Mapping[str, Any]], filters: Sequence[Filter]) -> list[Mapping[str, Any]]:
    """Return the guests that all filters mean, in the order of their ids.

    Raises:
        InvalidInputError: A filter, or one of its alternatives, means no guest at all; with every such.
    """
    found = Diagnostics()
    for one in filters:
        for test in one.tests:
            if not any(test.holds(row) for row in rows):
                found.add(MATCHES_NOTHING, f"No guest of the cluster is meant by `{test.text}`.")
    found.raise_errors("The filters")
    meant = [row for row in rows if all(one.holds(row) for one in filters)]
    return sorted(meant, key=lambda row: int(row["vmid"]))
