"""YAML to plain values with libyaml, and every way in which a file can be wrong as a finding with its place.

The nodes that libyaml makes carry the place of each value. They are turned into plain values and let go:
anyone who needs a place later has the text parsed once more, because most files have nothing wrong with them.

Values mean what YAML 1.2 says, with `yes`, `no`, `on` and `off` as booleans on top, as the files of such
sites have always been read. So `0755`, `1:30` and `2026-01-31` are texts, and a field that needs a number
says so. A key that begins with an underscore is a comment of the user's: sound YAML, and left out.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import yaml
from yaml import MappingNode, ScalarNode, SequenceNode

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.documents.limits import DocumentLimits
from stackyard.base.documents.yamltext import Limit, LimitedParser, YamlLimitError
from stackyard.base.errors import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yaml import Mark, Node

__all__ = ["compose", "entries", "location", "plain"]

BAD_SYNTAX = Kind(
    code="E-YAML-SYNTAX",
    summary="The file is not YAML",
    remedy="Correct this place: indent with spaces, and quote texts that hold `: ` or begin with a mark.",
)
DUPLICATE_KEY = Kind(
    code="E-YAML-DUPLICATE-KEY",
    summary="A key is given twice",
    remedy="Keep one of the two: YAML has no rule which of them counts.",
)
BAD_KEY = Kind(
    code="E-YAML-KEY",
    summary="A key is not a text",
    remedy="Put the key in quotes.",
)
UNKNOWN_TAG = Kind(
    code="E-YAML-TAG",
    summary="A tag is not known here",
    remedy="Remove the tag (the word that begins with `!`) and write a plain value.",
)
BAD_MERGE = Kind(
    code="E-YAML-MERGE",
    summary="`<<` is not followed by a mapping",
    remedy="Let `<<` name an anchor of a mapping, or a list of such.",
)
TOO_DEEP = Kind(
    code="E-YAML-DEPTH",
    summary="Values are nested too deeply",
    remedy="No file of a site needs a hundred levels; look for an alias inside its own anchor.",
)
TOO_LARGE = Kind(
    code="E-YAML-SIZE",
    summary="The file is too large, or aliases make it so",
    remedy="Split the file, or write fewer aliases of aliases: it would grow to more than a million values.",
)

_DEEPEST = 100
_MOST_VALUES = 1_000_000
_LIMITS = DocumentLimits(size=64 * 2**20, depth=_DEEPEST, values=_MOST_VALUES)
# Anyone who has more wrong in a file corrects what made it.
_MOST_FINDINGS = 1_000

_STR = "tag:yaml.org,2002:str"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_BOOL = "tag:yaml.org,2002:bool"
_NULL = "tag:yaml.org,2002:null"
_MERGE = "tag:yaml.org,2002:merge"
_MAP = "tag:yaml.org,2002:map"
_SEQ = "tag:yaml.org,2002:seq"

_TRUE = frozenset(word for base in ("true", "yes", "on") for word in (base, base.title(), base.upper()))
_FALSE = frozenset(word for base in ("false", "no", "off") for word in (base, base.title(), base.upper()))
_WORDS = {
    **dict.fromkeys(_TRUE | _FALSE, _BOOL),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), _NULL),
    "<<": _MERGE,
}
# Longer ones are no numbers that anyone means, and Python takes its time over them.
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
# Only with a point: `12e34` is the end of someone's checksum.
_BROKEN = re.compile(
    r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}\.[0-9]{0,30})(?:[eE][-+][0-9]{1,4})?|[-+]?\.(?:inf|Inf|INF)"
)
_NUMBER_STARTS = frozenset("0123456789-+.")
_NOT_A_NUMBER = frozenset((".nan", ".NaN", ".NAN"))


class _AbandonedError(Exception):
    """Ends the reading of a file that would take forever."""


class _Parser(LimitedParser):
    """libyaml's parser within the limits; what it asks while it makes nodes is answered here."""

    def resolve(self, kind: type[Node], value: str, implicit: Any) -> str:
        """Say what a value without a tag is."""
        if kind is ScalarNode:
            return _plain_tag(value) if implicit[0] else _STR
        return _MAP if kind is MappingNode else _SEQ


@functools.lru_cache(maxsize=4096)
def _plain_tag(text: str) -> str:
    known = _WORDS.get(text)
    if known is not None:
        return known
    if text[0] in _NUMBER_STARTS:
        if _WHOLE.fullmatch(text):
            return _INT
        if text in _NOT_A_NUMBER or _BROKEN.fullmatch(text):
            return _FLOAT
    return _STR


def compose(text: str, path: str, found: Diagnostics) -> Node | None:
    """Parse a text to nodes; nothing when it is empty, or is not YAML, and then there is a finding."""
    parser: _Parser | None = None
    try:
        parser = _Parser(text, _LIMITS)
        root: Node | None = parser.get_single_node()
    except YamlLimitError as err:
        _refuse_limit(err, path, found)
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        where = Location(path) if mark is None else location(path, mark)
        found.add(BAD_SYNTAX, _syntax_detail(err, text), where)
    except yaml.reader.ReaderError as err:
        found.add(
            BAD_SYNTAX,
            f"The file holds a character that YAML does not allow: {err.reason}.",
            _offset(path, text, err),
        )
    else:
        return root
    finally:
        if parser is not None:
            parser.dispose()
    return None


def _refuse_limit(err: YamlLimitError, path: str, found: Diagnostics) -> None:
    where = Location(path) if err.problem_mark is None else location(path, err.problem_mark)
    if err.limit is Limit.DEPTH:
        found.add(TOO_DEEP, f"The nesting goes deeper than {_DEEPEST} levels.", where)
    else:
        found.add(TOO_LARGE, f"The file is not read: {err.problem}.", where)


def location(path: str, mark: Mark) -> Location:
    """Return a mark of libyaml as a place."""
    return Location(path, mark.line + 1, mark.column + 1)


def _syntax_detail(err: yaml.MarkedYAMLError, text: str) -> str:
    said = ", ".join(part for part in (err.context, err.problem) if part)
    mark = err.problem_mark
    if mark is not None and "\t" in _line(text, mark.line)[: mark.column + 1]:
        return f"YAML says: {said}. There is a tab before this place, and YAML is indented with spaces."
    return f"YAML says: {said}."


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number] if number < len(lines) else ""


def _offset(path: str, text: str, err: yaml.reader.ReaderError) -> Location:
    # libyaml counts bytes of what it was given, which is UTF-8.
    position = err.position if isinstance(err.position, int) else 0
    before = text.encode()[:position].decode(errors="ignore")
    return Location(path, before.count("\n") + 1, len(before) - before.rfind("\n"))


def plain(node: Node, path: str, found: Diagnostics) -> Any:
    """Turn nodes into plain values; what is wrong with them becomes findings, and is left out."""
    try:
        return _Conversion(path, found).value(node, 0)
    except _AbandonedError:
        return None


@dataclass(slots=True)
class _Conversion:
    """One file on its way from nodes to plain values."""

    path: str
    found: Diagnostics
    values_left: int = _MOST_VALUES
    findings_left: int = _MOST_FINDINGS

    def value(self, node: Node, depth: int) -> Any:
        kind = type(node)
        if kind is ScalarNode:
            return node.value if node.tag == _STR else self.scalar(node)
        if depth >= _DEEPEST:
            self.abandon(TOO_DEEP, "An alias leads back into its own anchor, or nesting is too deep.", node)
        self.values_left -= len(node.value) + 1
        if self.values_left < 0:
            self.abandon(TOO_LARGE, f"The aliases expand to more than {_MOST_VALUES} values.", node)
        if node.tag != (_MAP if kind is MappingNode else _SEQ):
            return self.refuse(UNKNOWN_TAG, f"The tag `{_format_tag(node.tag)}` is not known here.", node)
        if kind is MappingNode:
            return self.convert_mapping(node, depth + 1)
        return [self.value(item, depth + 1) for item in node.value]

    def scalar(self, node: Node) -> Any:
        text = node.value
        if node.tag == _INT and _WHOLE.fullmatch(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if node.tag == _BOOL and (text in _TRUE or text in _FALSE):
            return text in _TRUE
        if node.tag == _NULL:
            return None
        if node.tag == _FLOAT and (_BROKEN.fullmatch(text) or text in _NOT_A_NUMBER):
            return _to_float(text)
        if node.tag == _MERGE:
            return text
        # The value is not quoted: it may be a secret.
        return self.refuse(
            UNKNOWN_TAG, f"A value cannot be read with the tag `{_format_tag(node.tag)}`.", node
        )

    def convert_mapping(self, node: Node, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merges: list[Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merges.append(value_node)
                if len(merges) > 1:
                    self.refuse(
                        DUPLICATE_KEY, "`<<` is given twice in one mapping; give it a list.", key_node
                    )
                continue
            key = self.key(key_node)
            if key is None:
                continue
            if key in result:
                self.refuse(DUPLICATE_KEY, f"`{key}` is given twice in one mapping.", key_node)
            result[key] = self.value(value_node, depth)
        for merge in merges:
            self.merge(result, merge, depth)
        for comment in [key for key in result if key[:1] == "_"]:
            del result[comment]
        return result

    def key(self, node: Node) -> str | None:
        if type(node) is ScalarNode and node.tag == _STR:
            return str(node.value)
        shown = f"`{node.value}`" if type(node) is ScalarNode else "A list or mapping"
        self.refuse(BAD_KEY, f"{shown} is a key that YAML does not read as text.", node)
        return None

    def merge(self, result: dict[str, Any], node: Node, depth: int) -> None:
        """Take over what an anchor says and the mapping does not."""
        for source in node.value if type(node) is SequenceNode else [node]:
            if type(source) is not MappingNode:
                self.refuse(BAD_MERGE, "The value of `<<` is not a mapping.", source)
                continue
            taken = self.value(source, depth)
            if isinstance(taken, dict):
                for key, value in taken.items():
                    result.setdefault(key, value)

    def refuse(self, kind: Kind, detail: str, node: Node) -> None:
        self.found.add(kind, detail, location(self.path, node.start_mark))
        self.findings_left -= 1
        if self.findings_left < 0:
            raise _AbandonedError

    def abandon(self, kind: Kind, detail: str, node: Node) -> NoReturn:
        self.refuse(kind, detail, node)
        raise _AbandonedError


def _to_float(text: str) -> float:
    # YAML writes a point before what is no ordinary number.
    return float(text.replace(".", "", 1) if text[-1].isalpha() else text)


def _format_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def entries(node: Node, depth: int = 0) -> Iterator[tuple[str, Node, Node]]:
    """Return key, key node and value node of a mapping, what is merged into it last."""
    if type(node) is not MappingNode or depth > _DEEPEST:
        return
    merged: list[Node] = []
    for key_node, value_node in node.value:
        if key_node.tag == _MERGE:
            merged.extend(value_node.value if type(value_node) is SequenceNode else [value_node])
        elif type(key_node) is ScalarNode:
            yield str(key_node.value), key_node, value_node
    for source in merged:
        yield from entries(source, depth + 1)
