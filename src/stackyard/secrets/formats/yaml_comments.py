"""Finding the comments of a YAML document, and the mapping or list that each belongs to.

SOPS encrypts a comment together with the path of what it belongs to, as Go's yaml.v3 decides that. Here it is
decided by columns, which agrees with it for comments that stand where people put them; the other candidates
are kept for reading.
"""

from __future__ import annotations

import bisect
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.documents.lines import LineIndex
from stackyard.secrets.layout import Comment, Leaf, Position, SecretsSyntaxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.secrets.formats.yaml_layout import OpenCollection, OpenEntry

__all__ = ["attach_comments"]

# More than any file has that a person keeps: each takes its time.
_MOST_COMMENTS = 50_000
_COMMENT = re.compile(r"(?:(?<=[ \t\r\n])|\A)#[^\r\n]*")
_NEXT_COMMENT = re.compile(r"\r?\n[ \t]*#[^\r\n]*")
_BLOCK_HEADER = re.compile(r"(?:[!&]\S+[ \t]+)*[|>][-+0-9]*[ \t]+(#[^\r\n]*)")


def attach_comments(
    text: str, span: tuple[int, int], scalars: Sequence[tuple[int, int]], root: OpenCollection
) -> None:
    """Find all comments of a document and hang each before the entry or item that it belongs to.

    Args:
        text: The whole file.
        span: Where the document begins and ends in it.
        scalars: Where its scalars are, in order; comments are never in these.
        root: What was read of it; gets the comments.

    Raises:
        SecretsSyntaxError: There are too many.
    """
    found = list(itertools.islice(_comments(text, span, scalars), _MOST_COMMENTS + 1))
    if not found:
        return
    if len(found) > _MOST_COMMENTS:
        raise SecretsSyntaxError(f"There are more than {_MOST_COMMENTS} comments in a document.")
    slots = list(_slots(root, (root,)))
    starts = [slot.start for slot, _ in slots]
    lines = _Lines(text)
    slot_starts: dict[int, list[int]] = {}
    for start, end in found:
        following = bisect.bisect_right(starts, start)
        around = _CommentContext(
            previous=slots[following - 1] if following else None,
            coming=slots[following] if following < len(slots) else None,
            root=root,
        )
        place = lines.place(start)
        line_start = start - place.column + 1
        is_inline = bool(text[line_start:start].strip()) and around.previous is not None
        if is_inline:
            box = around.of_line(start, is_going_on=_NEXT_COMMENT.match(text, end) is not None)
        else:
            box = around.of_own_line(place.column - 1, is_foot=lines.is_foot(place))
        guesses = tuple(dict.fromkeys([box.path, *around.paths()]))
        remark = Comment(text=text[start + 1 : end], start=start, end=end, place=place, guesses=guesses)
        if id(box) not in slot_starts:
            slot_starts[id(box)] = [slot.start for slot in box.slots]
        _hang(box, slot_starts[id(box)], remark, is_inline=is_inline)


class _Lines:
    """The lines of a text, and which of them are one comment of several lines.

    A text may be one long comment: each run of lines is therefore followed once, not for each of its lines.
    """

    def __init__(self, text: str) -> None:
        self._index = LineIndex(text)
        self._lines = text.split("\n")
        # The run that was followed last: its column, its first line and the one behind it, from zero.
        self._run = (-1, 0, 0)

    def place(self, index: int) -> Position:
        return Position(*self._index.find(index))

    def is_foot(self, place: Position) -> bool:
        """Return whether a comment stands right below something, with an empty line below itself.

        Further lines of the same comment are in the same column.
        """
        line, column = place.line - 1, place.column - 1
        if not (self._run[0] == column and self._run[1] <= line < self._run[2]):
            self._run = (column, *self._follow(line, " " * column + "#"))
        _, first, behind = self._run
        is_after_empty = first > 0 and not self._lines[first - 1].strip(" \t\r")
        # An empty line below is one that ends; the last line of a text does not.
        is_before_empty = behind < len(self._lines) - 1 and not self._lines[behind].strip(" \t\r")
        return not is_after_empty and is_before_empty

    def _follow(self, line: int, beginning: str) -> tuple[int, int]:
        first, behind = line, line + 1
        while first > 0 and self._lines[first - 1].startswith(beginning):
            first -= 1
        while behind < len(self._lines) and self._lines[behind].startswith(beginning):
            behind += 1
        return first, behind


def _comments(
    text: str, span: tuple[int, int], scalars: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    done = span[0]
    for start, end in scalars:
        for match in _COMMENT.finditer(text, done, start):
            yield match.span()
        if header := _BLOCK_HEADER.match(text, start, end):
            yield header.span(1)
        done = max(done, end)
    for match in _COMMENT.finditer(text, done, span[1]):
        yield match.span()


Chained = tuple["OpenEntry", tuple["OpenCollection", ...]]


def _slots(box: OpenCollection, chain: tuple[OpenCollection, ...]) -> Iterator[Chained]:
    """Yield every entry and item in order, with the collections around it, the nearest last."""
    for slot in box.slots:
        yield slot, chain
        # What an alias represents was read where its anchor is.
        if not isinstance(slot.node, Leaf) and slot.node.start >= slot.start:
            yield from _slots(slot.node, (*chain, slot.node))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommentContext:
    """What is before and after a comment."""

    previous: Chained | None
    coming: Chained | None
    root: OpenCollection

    def of_line(self, start: int, *, is_going_on: bool) -> OpenCollection:
        """Return what a comment behind something on its line belongs to.

        One behind a key whose value is on the next lines belongs to that value, unless a comment follows.
        """
        if self.previous is None:
            return self.root
        slot, chain = self.previous
        for box in chain:
            if box.is_flow and start >= box.end:
                return box
        return chain[-1] if isinstance(slot.node, Leaf) or is_going_on else slot.node

    def of_own_line(self, column: int, *, is_foot: bool) -> OpenCollection:
        """Return what a comment on a line of its own belongs to.

        One in the column of what follows belongs to that. One that is set off otherwise belongs to what was
        before, the innermost of it; unless it is a foot of something further out.
        """
        chain = self.coming[1] if self.coming else (self.root,)
        if any(box.is_flow for box in chain):
            return chain[-1]
        deepest = self._deepest()
        if chain[-1].column == column or deepest in chain:
            is_below_list = is_foot and not deepest.is_mapping and deepest.column == column
            return deepest if is_below_list and deepest not in chain else chain[-1]
        if is_foot and column < deepest.column and self.previous is not None:
            fitting = [box for box in self.previous[1] if box.column <= column and not box.is_flow]
            return fitting[-1] if fitting else self.root
        return deepest

    def _deepest(self) -> OpenCollection:
        chain = self.previous[1] if self.previous else (self.root,)
        return next((box for box in reversed(chain) if not box.is_flow), self.root)

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths of everything around, the nearest first."""
        for chained in (self.previous, self.coming):
            if chained is not None:
                slot, chain = chained
                if not isinstance(slot.node, Leaf):
                    yield slot.node.path
                yield from (box.path for box in reversed(chain))
        yield self.root.path


def _hang(box: OpenCollection, starts: list[int], remark: Comment, *, is_inline: bool) -> None:
    following = bisect.bisect_right(starts, remark.start)
    # A comment behind a value comes before it in the tree of SOPS.
    if is_inline and following and box.slots[following - 1].node.end <= remark.start:
        following -= 1
    if following < len(box.slots):
        box.slots[following].remarks.append(remark)
    else:
        box.remarks.append(remark)
