"""A lab whose answers are forged on their way out, as a hostile guest or a hostile cluster would."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
import pytest

from pvelab.server.dispatch import Answer, Dispatcher, Request

__all__ = ["Forgery", "deep", "forged"]

# Takes what the lab answers, and returns what is answered in its place.
Forgery = Callable[[Any], Any]


@contextlib.contextmanager
def forged(forgeries: Mapping[str, Forgery], *, refused: bool = False) -> Iterator[list[str]]:
    """Forge answers of every lab of this process for the length of a block.

    Args:
        forgeries: What to answer, by method and pattern of a path: `GET /nodes/*/lxc/*/interfaces`.
        refused: Whether calls that the lab refuses are answered, too.

    Yields:
        The calls whose answers were forged.
    """
    perform = Dispatcher.perform
    done: list[str] = []

    async def forge(self: Dispatcher, request: Request) -> Answer:
        answer = await perform(self, request)
        call = f"{request.method} {request.path}"
        for pattern, forgery in forgeries.items():
            if (refused or answer.status == 200) and fnmatch.fnmatchcase(call, pattern):
                done.append(call)
                return Answer(data=forgery(answer.data))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "perform", forge)
        yield done


def deep(levels: int) -> orjson.Fragment:
    """Return lists inside of each other, deeper than most readers follow."""
    return orjson.Fragment(b"[" * levels + b"]" * levels)
