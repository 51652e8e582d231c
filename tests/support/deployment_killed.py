"""A writer that is killed (SIGKILL, by itself) before or after the nth thing that it asks of its store."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.deployment import SMALL, edited, place_in, text_of

from stackyard.clients.objects import SqliteObjects
from stackyard.sources.deployment.edit import format_object, set_values
from stackyard.sources.deployment.write import WriteRequest, write


class Killing:
    """Counts what is asked of stores of this process, and ends it at the chosen moment."""

    def __init__(self, moment: str, nth: int) -> None:
        self._moment = moment
        self._left = nth

    def wrapped(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            is_last = self._left == 0
            try:
                return method(*arguments, **named)
            finally:
                # Also after what was refused.
                if is_last:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call


def main(folder: Path, moment: str, nth: int, kind: str) -> None:
    killing = Killing(moment, nth)
    for name in ("get", "put", "list", "delete"):
        setattr(SqliteObjects, name, killing.wrapped(getattr(SqliteObjects, name)))
    place = place_in(folder, lease_ttl_s=1)
    if kind == "put":
        new = text_of(edited(SMALL, **{"containers__my-container__cpu_cores": 4})).encode()
        write(place, WriteRequest(kind="put", make=lambda current: new))
    else:
        path = "containers.my-container.cpu_cores=4"
        write(
            place,
            WriteRequest(
                kind="edit",
                make=lambda current: format_object(
                    set_values(current.document.data if current else {}, [path])
                ),
            ),
        )


def run() -> None:
    """Run it with the arguments of the process: FOLDER before|after NTH KIND."""
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
