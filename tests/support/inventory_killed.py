"""The program, killed (SIGKILL, by itself) just before the nth change that it makes in a place.

A change is what the system is asked for: a file made or written, renamed, linked or removed below a folder;
or a part of a request that is sent to a server, its answer being waited for, or its answer having come.
"""

from __future__ import annotations

import http.client
import os
import signal
import sys
from typing import Any

from stackyard.cli.main import main

CHANGES = frozenset(
    ("os.mkdir", "os.rename", "os.symlink", "os.remove", "os.rmdir", "os.chmod", "tempfile.mkstemp", "open")
)
SENDS = frozenset(("http.client.connect", "http.client.send"))


class Killing:
    """Counts changes below a folder, or what is said to servers where there is none."""

    def __init__(self, nth: int, folder: str) -> None:
        self._nth = nth
        self._folder = folder
        self.seen = 0

    def saw(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_sent = event in SENDS and not self._folder
        if is_sent or (event in CHANGES and self._folder and self._is_inside(event, arguments)):
            self.strike()

    def _is_inside(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event == "open" and not (arguments[1] is None and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return False
        if any(self._folder in place for one in arguments for place in _places(one)):
            return True
        # A file that is opened from a folder that is held open: the system does not say which.
        return event == "open" and os.sep not in str(_text(arguments[0]))

    def strike(self) -> None:
        self.seen += 1
        if self.seen == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)


def _places(argument: Any) -> list[str]:
    """Return the paths that an argument may stand for: a text, or the number of an open folder."""
    text = _text(argument)
    if isinstance(text, str):
        return [text]
    if isinstance(text, int) and text > 0:
        try:
            return [os.readlink(f"/proc/self/fd/{text}")]
        except OSError:
            # It is a mode, and no number of a folder.
            return []
    return []


def _text(argument: Any) -> Any:
    return os.fspath(argument) if isinstance(argument, os.PathLike) else argument


def run() -> None:
    """Run it with the arguments of the process: NTH FOLDER ARGUMENT..., with FOLDER empty for servers.

    One that was not killed says last on its error output how many changes there were.
    """
    killing = Killing(int(sys.argv[1]), sys.argv[2])
    sys.addaudithook(killing.saw)
    answer = http.client.HTTPConnection.getresponse

    def getresponse(*arguments: Any, **named: Any) -> Any:
        if killing._folder:
            return answer(*arguments, **named)
        killing.strike()
        answered = answer(*arguments, **named)
        killing.strike()
        return answered

    http.client.HTTPConnection.getresponse = getresponse  # type: ignore[method-assign]
    status = main(sys.argv[3:])
    sys.stderr.write(f"{killing.seen}\n")
    sys.exit(status)
