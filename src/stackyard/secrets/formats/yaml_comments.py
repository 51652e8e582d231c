"""Finding the comments of a YAML document, and the mapping or list that each belongs to.

SOPS encrypts a comment together with the path of what it belongs to, as Go's yaml.v3 decides that. Here it is
decided by columns, which agrees with it for comments that stand where people put them; the other candidates
are kept for reading.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.secrets.layout import Leaf, Place, Remark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.secrets.formats.yaml_layout import Box, Slot

__all__ = ["attach_comments"]

_COMMENT = re.compile(r"(?:(?<=[ \t\r\n])|\A)#[^\r\n]*")
_NEXT_COMMENT = re.compile(r"\r?\n[ \t]*#[^\r\n]*")
_ENDS_EMPTY = re.compile(r"(\A|\n)[ \t]*\r?\n\Z")
_BEGINS_EMPTY = re.compile(r"\r?\n[ \t]*\r?\n")
_BLOCK_HEADER = re.compile(r"(?:[!&]\S+[ \t]+)*[|>][-+0-9]*[ \t]+(#[^\r\n]*)")


def attach_comments(text: str, span: tuple[int, int], scalars: Sequence[tuple[int, int]], root: Box) -> None:
    """Find all comments of a document and hang each before the entry or item that it belongs to.

    Args:
        text: The whole file.
        span: Where the document begins and ends in it.
        scalars: Where its scalars are, in order; comments are never in these.
        root: What was read of it; gets the comments.
    """
    found = list(_comments(text, span, scalars))
    if not found:
        return
    slots = list(_slots(root, (root,)))
    starts = [slot.start for slot, _ in slots]
    for start, end in found:
        following = bisect.bisect_right(starts, start)
        around = _Around(
            previous=slots[following - 1] if following else None,
            coming=slots[following] if following < len(slots) else None,
            root=root,
        )
        line_start = text.rfind("\n", 0, start) + 1
        place = Place(text.count("\n", 0, start) + 1, start - line_start + 1)
        is_inline = bool(text[line_start:start].strip()) and around.previous is not None
        if is_inline:
            box = around.of_line(start, is_going_on=_NEXT_COMMENT.match(text, end) is not None)
        else:
            is_foot = _is_foot(text, line_start, end, place.column - 1)
            box = around.of_own_line(place.column - 1, is_foot=is_foot)
        guesses = tuple(dict.fromkeys([box.path, *around.paths()]))
        remark = Remark(text=text[start + 1 : end], start=start, end=end, place=place, guesses=guesses)
        _hang(box, remark, is_inline=is_inline)


def _is_foot(text: str, line_start: int, end: int, column: int) -> bool:
    """Tell whether a comment stands right below something, with an empty line below itself.

    Further lines of the same comment are in the same column.
    """
    before, after = text[:line_start], text[end:]
    more = " " * column + "#"
    while (last := before.removesuffix("\n").rpartition("\n")[2]).startswith(more):
        before = before[: before.rindex(last)]
    while (lines := after.split("\n", 2))[1:] and lines[1].startswith(more):
        after = after[len(lines[0]) + 1 + len(lines[1]) :]
    return not _ENDS_EMPTY.search(before) and _BEGINS_EMPTY.match(after) is not None


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


Chained = tuple["Slot", tuple["Box", ...]]


def _slots(box: Box, chain: tuple[Box, ...]) -> Iterator[Chained]:
    """Yield every entry and item in order, with the collections around it, the nearest last."""
    for slot in box.slots:
        yield slot, chain
        # What an alias stands for was read where its anchor is.
        if not isinstance(slot.node, Leaf) and slot.node.start >= slot.start:
            yield from _slots(slot.node, (*chain, slot.node))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What stands before and after a comment."""

    previous: Chained | None
    coming: Chained | None
    root: Box

    def of_line(self, start: int, *, is_going_on: bool) -> Box:
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

    def of_own_line(self, column: int, *, is_foot: bool) -> Box:
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

    def _deepest(self) -> Box:
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


def _hang(box: Box, remark: Remark, *, is_inline: bool) -> None:
    for slot in box.slots:
        # A comment behind a value comes before it in the tree of SOPS.
        if slot.start > remark.start or (
            is_inline and slot.node.end <= remark.start and _is_last_before(box, slot, remark)
        ):
            slot.remarks.append(remark)
            return
    box.remarks.append(remark)


def _is_last_before(box: Box, slot: Slot, remark: Remark) -> bool:
    later = (other for other in box.slots if other.start > slot.start)
    return all(other.start > remark.start for other in later)
