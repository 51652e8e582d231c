"""What was found out about the contents of a repository, in a form that can be kept for the next start.

Every entry is about something that its number names: a content under a path with the rules that held for it,
the text of a commit or a tag. So an entry stays true whatever happens to the repository, as long as the check
itself is the same.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pair", "Refusal", "Rules", "Verdicts"]

# The rules of a tree: paths and numbers of their texts.
Rules = frozenset[tuple[str, str]]
# A path, and the number of the content there.
Pair = tuple[str, str]

_FORM = 1
# More is not kept: such a repository is checked again at the next start.
_LARGEST_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a repository was not served, and of which state of it that is known.

    Attributes:
        state: Names the refs and the end of the history; for a damaged one also the files of its objects.
        tainted: What of the history holds secrets, as `branch:path`.
        rules: The rules of the working tree by which it does; None where it does whatever they are.
        damage: What of it cannot be read.
    """

    state: str
    tainted: tuple[str, ...] = ()
    rules: Rules | None = None
    damage: str = ""


@dataclass(slots=True)
class Verdicts:
    """What is known.

    Attributes:
        files: Of versions of files with the rules that they were checked with, whether they must stay here.
        texts: The same of commits and tags, by number.
        rules_at: The rules of commits.
        clean: Commits of which everything was found clean.
        clean_with: With which rules of the working tree, and where the history ended then: behind the end of
            a shallow one there is more, which no one has checked.
        refusal: Why nothing of it was served the last time, where that was so.
    """

    files: dict[tuple[Rules, Pair], bool] = field(default_factory=dict)
    texts: dict[str, bool] = field(default_factory=dict)
    rules_at: dict[str, Rules] = field(default_factory=dict)
    clean: frozenset[str] = frozenset()
    clean_with: tuple[Rules, str] | None = None
    refusal: Refusal | None = None

    @property
    def count(self) -> int:
        """How much is known; it only grows."""
        return len(self.files) + len(self.texts) + len(self.rules_at)

    def dump(self) -> bytes:
        """Return all of it as bytes; nothing where that is more than should be kept."""
        table: dict[Rules, int] = {}

        def number(rules: Rules) -> int:
            return table.setdefault(rules, len(table))

        held = self.clean_with
        document = {
            "form": _FORM,
            "files": [
                [number(rules), _text(path), blob, verdict]
                for (rules, (path, blob)), verdict in self.files.items()
            ],
            "texts": list(self.texts.items()),
            "rules_at": [[commit, number(rules)] for commit, rules in self.rules_at.items()],
            "clean": sorted(self.clean),
            "clean_with": None if held is None else [number(held[0]), held[1]],
            "refusal": _refusal_row(self.refusal, number),
            # The last, because all others add to the table.
            "rules": [[[_text(path), blob] for path, blob in sorted(rules)] for rules in table],
        }
        data = zlib.compress(orjson.dumps(document), 1)
        return data if len(data) <= _LARGEST_BYTES else b""

    @classmethod
    def load(cls, data: bytes) -> Verdicts:
        """Return what was kept; nothing is known where it cannot be read."""
        try:
            unpacker = zlib.decompressobj()
            plain = unpacker.decompress(data, _LARGEST_BYTES)
            document = parse_json(plain, LARGE)
            return cls._read(document) if document["form"] == _FORM and unpacker.eof else cls()
        except (zlib.error, JsonError, LookupError, TypeError, ValueError):
            return cls()

    @classmethod
    def _read(cls, document: dict[str, Any]) -> Verdicts:
        table = [frozenset((_path(path), str(blob)) for path, blob in row) for row in document["rules"]]
        held = document["clean_with"]
        return cls(
            files={
                (table[rules], (_path(path), str(blob))): verdict is not False
                for rules, path, blob, verdict in document["files"]
            },
            texts={str(number): verdict is not False for number, verdict in document["texts"]},
            rules_at={str(commit): table[rules] for commit, rules in document["rules_at"]},
            clean=frozenset(map(str, document["clean"])),
            clean_with=None if held is None else (table[held[0]], str(held[1])),
            refusal=_read_refusal(document.get("refusal"), table),
        )


def _refusal_row(refusal: Refusal | None, number: Callable[[Rules], int]) -> dict[str, Any] | None:
    if refusal is None:
        return None
    return {
        "state": refusal.state,
        "tainted": list(refusal.tainted),
        "rules": None if refusal.rules is None else number(refusal.rules),
        "damage": refusal.damage,
    }


def _read_refusal(row: dict[str, Any] | None, table: list[Rules]) -> Refusal | None:
    if row is None:
        return None
    return Refusal(
        state=str(row["state"]),
        tainted=tuple(map(str, row["tainted"])),
        rules=None if row["rules"] is None else table[row["rules"]],
        damage=str(row["damage"]),
    )


def _text(path: str) -> str:
    """Return a path as a text that JSON can hold, whatever bytes it has."""
    return path.encode("utf-8", "surrogateescape").decode("latin-1")


def _path(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "surrogateescape")
