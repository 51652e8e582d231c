"""A secrets file as a tree whose every value and comment knows its place in the text.

Whatever is done to a file is a list of `Splice`s of its text, so that whatever is not touched stays as it is,
byte for byte: order, quotes, indentation, blank lines. The tree is that of SOPS: a mapping or a list holds
its items and the comments between them, and the comment behind a value comes before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.values import Scalar, to_python

__all__ = [
    "Branch",
    "Comment",
    "Item",
    "Layout",
    "LayoutDocument",
    "LayoutEntry",
    "Leaf",
    "Listing",
    "Node",
    "Position",
    "SecretsSyntaxError",
    "Splice",
    "apply_splices",
    "find",
    "is_one_line",
    "leaves",
    "plain_data",
]


class SecretsSyntaxError(InvalidInputError):
    """A secrets file, or the text that would become one, is not valid YAML, JSON or dotenv."""

    code = "E-SECRETS-SYNTAX"
    summary = "A secrets file is not valid"
    default_remedy = "Correct the place named; nothing was changed."


@dataclass(frozen=True, slots=True)
class Position:
    """A line and a column, both from one."""

    line: int
    column: int

    def location(self, path: str) -> Location:
        """Return the place in a file."""
        return Location(path, self.line, self.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One value.

    Attributes:
        value: What it is.
        start: Where its text begins, tag and quotes included.
        end: Where it ends.
        place: The same for people.
        indent: The column of the mapping or list that holds it, from zero.
        is_flow: Whether it stands between brackets, where some characters need quotes.
        tag: The tag that it carries in the text, if it does.
    """

    value: Scalar
    start: int
    end: int
    place: Position
    indent: int = 0
    is_flow: bool = False
    tag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One line of a comment, without its mark.

    Attributes:
        text: What it says.
        start: Where its mark stands.
        end: Where its line ends.
        place: The same for people.
        guesses: The paths of all collections that it may belong to, for want of a rule that always holds.
    """

    text: str
    start: int
    end: int
    place: Position
    guesses: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutEntry:
    """A key of a mapping, what it names, and the comments that come before it."""

    key: str
    node: Node
    start: int
    place: Position
    remarks: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of a list, where it or its dash begins, and the comments that come before it."""

    node: Node
    start: int
    remarks: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A mapping; `remarks` are the comments behind its last entry."""

    entries: tuple[LayoutEntry, ...]
    start: int
    end: int
    place: Position
    is_flow: bool = False
    remarks: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list; `remarks` are the comments behind its last item."""

    items: tuple[Item, ...]
    start: int
    end: int
    place: Position
    remarks: tuple[Comment, ...] = ()


Node = Leaf | Branch | Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutDocument:
    """One document of a file: its mapping, and where it ends in the text."""

    root: Branch
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A whole file."""

    text: str
    documents: tuple[LayoutDocument, ...]
    aliases: tuple[tuple[int, int, Node], ...] = ()


@dataclass(frozen=True, slots=True)
class Splice:
    """A piece of text to put in the place of another."""

    start: int
    end: int
    text: str


def apply_splices(text: str, splices: Iterable[Splice]) -> str:
    """Return a text with pieces of it replaced; no two may overlap."""
    parts: list[str] = []
    done = 0
    for splice in sorted(splices, key=lambda one: (one.start, one.end)):
        if splice.start < done:
            raise ValueError("two changes of the same text overlap")
        parts += (text[done : splice.start], splice.text)
        done = splice.end
    return "".join([*parts, text[done:]])


def leaves(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Leaf]]:
    """Yield every value below a node, in order, with its keys and indexes."""
    match node:
        case Leaf():
            yield path, node
        case Branch():
            for entry in node.entries:
                yield from leaves(entry.node, (*path, entry.key))
        case Listing():
            for index, item in enumerate(node.items):
                yield from leaves(item.node, (*path, index))


def find(branch: Branch, key: str) -> LayoutEntry | None:
    """Return the entry of a key."""
    return next((entry for entry in branch.entries if entry.key == key), None)


def is_one_line(leaf: Leaf, text: str) -> bool:
    """Tell whether a value must stay on its line: text of several lines would swallow a comment behind it."""
    end = text.find("\n", leaf.end)
    return leaf.is_flow or bool(text[leaf.end : end if end >= 0 else len(text)].strip())


def plain_data(node: Node) -> object:
    """Return what a node means: dicts, lists and values; merge keys are applied."""
    match node:
        case Leaf():
            return to_python(node.value)
        case Listing():
            return [plain_data(item.node) for item in node.items]
        case Branch():
            data = {entry.key: plain_data(entry.node) for entry in node.entries}
            return _merge(data) if "<<" in data else data


def _merge(data: dict[str, object]) -> dict[str, object]:
    """Apply a merge key: what is written out wins, then the first of several mappings."""
    sources = data["<<"] if isinstance(data["<<"], list) else [data["<<"]]
    if not all(isinstance(source, Mapping) for source in sources):
        return data
    merged: dict[str, object] = {}
    for source in reversed(sources):
        merged |= source
    own = {key: value for key, value in data.items() if key != "<<"}
    return merged | own
