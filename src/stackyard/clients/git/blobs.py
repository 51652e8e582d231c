"""The contents of objects, many at once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.git.run import GitError, read_git

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    from stackyard.base import process

    MakeCommand = Callable[[Sequence[str], bytes], process.Command]

__all__ = ["ObjectInfo", "describe_objects", "read_objects"]

# What is read at once.
_BATCH_BYTES = 16 * 2**20
_BATCH_OBJECTS = 2000


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object that is there: its number, its kind and its size in bytes."""

    number: str
    kind: str
    size: int


async def describe_objects(make: MakeCommand, numbers: Iterable[str]) -> list[ObjectInfo]:
    """Return what kind of object each number is, and how large.

    Raises:
        GitError: One of them is missing.
    """
    wanted = list(dict.fromkeys(numbers))
    if not wanted:
        return []
    asked = "".join(f"{number}\n" for number in wanted).encode()
    form = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    answer = (await read_git(make(("cat-file", form), asked))).decode()
    found = []
    for line in answer.splitlines():
        number, kind, *size = line.split(" ")
        if not size:
            raise GitError(f"The object {number} is missing.")
        found.append(ObjectInfo(number, kind, int(size[0])))
    return found


async def read_objects(
    make: MakeCommand, objects: Iterable[ObjectInfo], *, at_once: int = _BATCH_OBJECTS
) -> AsyncIterator[list[tuple[ObjectInfo, bytes]]]:
    """Yield objects with their contents, some at a time.

    Args:
        make: Makes a command of git.
        objects: Which.
        at_once: How many are read at a time, at most.

    Raises:
        GitError: One of them cannot be read.
    """
    for batch in _batches(objects, at_once):
        asked = "".join(f"{one.number}\n" for one in batch).encode()
        # Not the usual form: nothing of what git says can be taken for a part of what a file holds.
        mark = secrets.token_hex(16).encode()
        answer = await read_git(make(("cat-file", f"--batch={mark.decode()}"), asked))
        yield list(_split(batch, answer, mark))


def _split(batch: Sequence[ObjectInfo], answer: bytes, mark: bytes) -> Iterator[tuple[ObjectInfo, bytes]]:
    start = 0
    for one in batch:
        begin = start + len(mark) + 1
        end = begin + one.size
        if answer[start:begin] != mark + b"\n" or answer[end : end + 1] != b"\n":
            raise GitError(f"The object {one.number} cannot be read.")
        yield one, answer[begin:end]
        start = end + 1


def _batches(objects: Iterable[ObjectInfo], at_once: int) -> Iterator[list[ObjectInfo]]:
    batch: list[ObjectInfo] = []
    total = 0
    for one in objects:
        if batch and (total + one.size > _BATCH_BYTES or len(batch) >= at_once):
            yield batch
            batch, total = [], 0
        batch.append(one)
        total += one.size
    if batch:
        yield batch
