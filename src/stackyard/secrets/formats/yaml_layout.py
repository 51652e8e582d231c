"""Reading YAML with libyaml into a layout: every value, key and comment with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from stackyard.base.documents.limits import DocumentLimits
from stackyard.base.documents.lines import LineIndex
from stackyard.base.documents.yamltext import parse_events
from stackyard.base.errors import Location
from stackyard.secrets.formats.yaml_comments import attach_comments
from stackyard.secrets.layout import (
    Branch,
    Comment,
    Item,
    Layout,
    LayoutDocument,
    LayoutEntry,
    Leaf,
    Listing,
    Node,
    Position,
    SecretsSyntaxError,
)
from stackyard.secrets.values import UnknownTypeError, resolve_plain, resolve_tagged

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OpenCollection", "OpenEntry", "parse_yaml"]

# Deeper and larger than anything that a person keeps; an alias bomb must not be.
_DEEPEST = 100
_MOST_VALUES = 200_000
_LIMITS = DocumentLimits(size=16 * 2**20, depth=_DEEPEST, values=_MOST_VALUES)


@dataclass(slots=True)
class OpenEntry:
    """A place in a mapping or list: its key, if it has one, and what is there."""

    start: int
    place: Position
    node: OpenCollection | Leaf
    key: str | None = None
    remarks: list[Comment] = field(default_factory=list)


@dataclass(slots=True)
class OpenCollection:
    """A mapping or list that is being read."""

    path: tuple[str, ...]
    is_mapping: bool
    is_flow: bool
    start: int
    place: Position
    column: int
    end: int = 0
    height: int = 1
    slots: list[OpenEntry] = field(default_factory=list)
    remarks: list[Comment] = field(default_factory=list)


def parse_yaml(text: str, path: str) -> Layout:
    """Read YAML as SOPS does: one or more documents, each a mapping with keys that are strings.

    Args:
        text: What to read.
        path: The file that errors name.

    Raises:
        SecretsSyntaxError: It is not YAML, or YAML that cannot be encrypted value by value.
    """
    try:
        reader = _Reader(text, path)
        return reader.read()
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        where = Location(path) if mark is None else Location(path, mark.line + 1, mark.column + 1)
        raise SecretsSyntaxError(
            f"{path} is not valid YAML: {err.problem or err.context}.", where=where
        ) from err
    except yaml.YAMLError as err:
        # The reader's own error: a character that YAML does not allow.
        position = getattr(err, "position", 0)
        raise SecretsSyntaxError(
            f"{path} is not valid YAML: it holds a character that YAML does not allow.",
            where=Location(path, *LineIndex(text).find(position)),
        ) from err


class _Reader:
    """Turns libyaml's events into boxes."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._events: Iterator[Any] = parse_events(text, _LIMITS)
        self._anchors: dict[str, OpenCollection | Leaf] = {}
        self._aliases: list[tuple[int, int, OpenCollection | Leaf]] = []
        self._count = 0

    def read(self) -> Layout:
        documents: list[LayoutDocument] = []
        scalars: list[tuple[int, int]] = []
        self._spans = scalars
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                documents.append(self._document(documents[-1].end if documents else 0))
        if not documents:
            documents.append(self._without_content())
        aliases = tuple((start, end, _freeze(node)) for start, end, node in self._aliases)
        return Layout(text=self._text, documents=tuple(documents), aliases=aliases)

    def _without_content(self) -> LayoutDocument:
        """Return the one document of a file that holds nothing, or nothing but comments."""
        end = len(self._text)
        root = OpenCollection((), True, False, end, Position(1, 1), 0, end=end)
        return self._close_document(root, 0, end, [])

    def _document(self, began: int) -> LayoutDocument:
        first_span = len(self._spans)
        node = self._node(next(self._events), (), depth=0, indent=0)
        ended = next(self._events)
        return self._close_document(self._root(node), began, ended.start_mark.index, self._spans[first_span:])

    def _close_document(
        self, root: OpenCollection, start: int, end: int, scalars: list[tuple[int, int]]
    ) -> LayoutDocument:
        try:
            attach_comments(self._text, (start, end), scalars, root)
        except SecretsSyntaxError as err:
            raise SecretsSyntaxError(
                f"{self._path} cannot be read: {err.detail}", where=Location(self._path)
            ) from err
        frozen = _freeze(root)
        if not isinstance(frozen, Branch):
            raise TypeError("the root of a document is a mapping")
        return LayoutDocument(root=frozen, end=end)

    def _root(self, node: OpenCollection | Leaf) -> OpenCollection:
        if isinstance(node, OpenCollection) and node.is_mapping:
            return node
        if isinstance(node, Leaf) and node.value is None:
            # An empty document, or one that only holds comments.
            return OpenCollection((), True, False, node.start, node.place, 0, end=node.end)
        raise SecretsSyntaxError(
            f"{self._path} is not a mapping at its top, and only mappings can be secrets files.",
            where=node.place.location(self._path),
        )

    def _node(
        self, event: Any, path: tuple[str, ...], *, depth: int, indent: int, is_flow: bool = False
    ) -> OpenCollection | Leaf:
        place = Position(event.start_mark.line + 1, event.start_mark.column + 1)
        if depth > _DEEPEST:
            raise self._make_error(f"it is nested deeper than {_DEEPEST} levels", place)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, place, depth)
        if isinstance(event, yaml.ScalarEvent):
            made: OpenCollection | Leaf = self._leaf(event, place, indent=indent, is_flow=is_flow)
        else:
            made = self._box(event, path, place, depth=depth)
        if event.anchor:
            self._anchors[event.anchor] = made
        return made

    def _leaf(self, event: Any, place: Position, *, indent: int, is_flow: bool) -> Leaf:
        self._spans.append((event.start_mark.index, event.end_mark.index))
        is_plain = event.implicit[0]
        try:
            if event.tag and not any(event.implicit):
                value = resolve_tagged(event.tag, event.value)
            else:
                value = resolve_plain(event.value) if is_plain else event.value
        except UnknownTypeError as err:
            raise self._make_error(str(err), place) from err
        return Leaf(
            value=value,
            start=event.start_mark.index,
            end=self._end(event),
            place=place,
            indent=indent,
            is_flow=is_flow,
            tag=event.tag if not any(event.implicit) else None,
        )

    def _end(self, event: Any) -> int:
        """Return where a scalar ends: that of a block scalar is said to be where the next thing begins."""
        start: int = event.start_mark.index
        end: int = event.end_mark.index
        return start + len(self._text[start:end].rstrip(" \t\r\n")) if event.style in ("|", ">") else end

    def _alias(self, event: Any, place: Position, depth: int) -> OpenCollection | Leaf:
        made = self._anchors.get(event.anchor)
        if made is None:
            raise self._make_error(f"the alias `*{event.anchor}` comes before its anchor", place)
        if depth + _height(made) > _DEEPEST:
            raise self._make_error(f"its aliases are nested deeper than {_DEEPEST} levels", place)
        self._count += _size(made)
        if self._count > _MOST_VALUES:
            raise self._make_error("its aliases repeat too much", place)
        self._spans.append((event.start_mark.index, event.end_mark.index))
        self._aliases.append((event.start_mark.index, event.end_mark.index, made))
        return made

    def _box(self, event: Any, path: tuple[str, ...], place: Position, *, depth: int) -> OpenCollection:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        start = event.start_mark.index
        box = OpenCollection(path, is_mapping, bool(event.flow_style), start, place, place.column - 1)
        seen: dict[str, Position] = {}
        for child in self._events:
            ended: int = child.end_mark.index
            if isinstance(child, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                box.end = ended if box.is_flow else max((slot.node.end for slot in box.slots), default=start)
                box.height = 1 + max((_height(slot.node) for slot in box.slots), default=0)
                return box
            if is_mapping:
                self._entry(box, child, seen, depth)
            else:
                self._item(box, child, depth)
        raise self._make_error("it ends too early", place)

    def _entry(self, box: OpenCollection, event: Any, seen: dict[str, Position], depth: int) -> None:
        place = Position(event.start_mark.line + 1, event.start_mark.column + 1)
        if not box.slots and not box.is_flow:
            # An anchor or a tag may be before the first key, on a line of its own.
            box.column = place.column - 1
        key = self._key(event, place)
        if key in seen:
            raise self._make_error(f"the key {key!r} is there twice, first in line {seen[key].line}", place)
        seen[key] = place
        child = next(self._events)
        node = self._node(child, (*box.path, key), depth=depth + 1, indent=box.column, is_flow=box.is_flow)
        box.slots.append(OpenEntry(event.start_mark.index, place, node, key))

    def _key(self, event: Any, place: Position) -> str:
        if isinstance(event, yaml.ScalarEvent):
            leaf = self._leaf(event, place, indent=0, is_flow=True)
            if event.anchor:
                self._anchors[event.anchor] = leaf
            if isinstance(leaf.value, str):
                return leaf.value
        elif isinstance(event, yaml.AliasEvent):
            aliased = self._alias(event, place, 0)
            if isinstance(aliased, Leaf) and isinstance(aliased.value, str):
                return aliased.value
        raise self._make_error("a key is not a string; put it in quotes", place)

    def _item(self, box: OpenCollection, event: Any, depth: int) -> None:
        place = Position(event.start_mark.line + 1, event.start_mark.column + 1)
        node = self._node(event, box.path, depth=depth + 1, indent=box.column, is_flow=box.is_flow)
        start = event.start_mark.index
        if not box.is_flow:
            # The dash belongs to the item: a comment before it belongs to the list.
            start = max(self._text.rfind("-", 0, start), box.start)
        box.slots.append(OpenEntry(start, place, node))

    def _make_error(self, why: str, place: Position) -> SecretsSyntaxError:
        return SecretsSyntaxError(f"{self._path} cannot be read: {why}.", where=place.location(self._path))


def _height(node: OpenCollection | Leaf) -> int:
    return 0 if isinstance(node, Leaf) else node.height


def _size(node: OpenCollection | Leaf) -> int:
    return 1 if isinstance(node, Leaf) else 1 + sum(_size(slot.node) for slot in node.slots)


def _freeze(node: OpenCollection | Leaf) -> Node:
    if isinstance(node, Leaf):
        return node
    if node.is_mapping:
        entries = tuple(
            LayoutEntry(
                key=slot.key or "",
                node=_freeze(slot.node),
                start=slot.start,
                place=slot.place,
                remarks=tuple(slot.remarks),
            )
            for slot in node.slots
        )
        return Branch(
            entries=entries,
            start=node.start,
            end=node.end,
            place=node.place,
            is_flow=node.is_flow,
            remarks=tuple(node.remarks),
        )
    items = tuple(
        Item(node=_freeze(slot.node), start=slot.start, remarks=tuple(slot.remarks)) for slot in node.slots
    )
    return Listing(items=items, start=node.start, end=node.end, place=node.place, remarks=tuple(node.remarks))
