"""Labs of this user that run now, by name: who holds the name, and how to reach and stop it.

A lab holds `<state folder>/labs/<name>` for as long as its process lives. There it writes `lab.json` (for the
owner only: it has the password), which is what `read` returns.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import directories
from stackyard.base.errors import BusyError, StackyardError, UnreachableError, UsageError
from stackyard.cli.background import RecordFile
from stackyard.cli.commands.lab.view import DEFAULT_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "Instance",
    "LabDownError",
    "LabRecord",
    "LabRunningError",
    "LabUnstoppableError",
    "list_running_names",
]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class LabRunningError(BusyError):
    """A lab of the same name runs already, with other options than the ones asked for."""

    code = "E-LAB-RUNNING"
    summary = "A lab of this name is already running"
    default_remedy = "Stop it with `stackyard lab down`, or give the new one another --name."


class LabDownError(UnreachableError):
    """No lab of this name is running."""

    code = "E-LAB-DOWN"
    summary = "The lab is not running"
    default_remedy = "Start it with `stackyard lab up`."


class LabUnstoppableError(StackyardError):
    """A lab was asked to stop and did not, and the system does not let us kill it."""

    code = "E-LAB-UNSTOPPABLE"
    summary = "The lab could not be stopped"
    default_remedy = "Stop the process as the user that it runs as."


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRecord:
    """A running lab.

    Attributes:
        name: The name that it was started under.
        pid: Its process.
        ready: What it said when it was ready: `url`, `api_token` and so on.
        options: What it was started with.
    """

    name: str
    pid: int
    ready: Mapping[str, Any] = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the JSON view: what the ready line has, and where to look further."""
        return {**self.ready, "name": self.name, "pid": self.pid, "data": self.options.get("data")}


class Instance:
    """The place of one name, whether a lab runs there or not.

    Args:
        name: Lower-case letters, digits, dashes and underscores.

    Raises:
        UsageError: That is no name for a lab.
    """

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"'{name}' is no name for a lab: use lower-case letters, digits, dashes and underscores."
            )
        self.name = name
        self.folder = _labs() / name
        self.log = self.folder / "lab.log"
        self._record = RecordFile(self.folder, "lab.json")

    def prepare(self) -> None:
        """Make the folder of this name.

        Raises:
            FileError: The state folder cannot be written.
        """
        directories.ensure_private(self.folder)

    def claim(self) -> None:
        """Hold the name until this process ends: it is free again when nothing of the lab is left.

        Raises:
            LabRunningError: Another lab holds it.
            FileError: The state folder cannot be written.
        """
        if not self._record.claim():
            raise LabRunningError(f"The lab '{self.name}' is already running.")
        self.withdraw()

    def withdraw(self) -> None:
        """Take back what `publish` told: nothing answers any more."""
        self._record.withdraw()

    def publish(self, ready: Mapping[str, Any], options: Mapping[str, Any]) -> LabRecord:
        """Tell others of this user how to reach the lab of this process, which holds the name."""
        record = LabRecord(name=self.name, pid=os.getpid(), ready=ready, options=options)
        self._record.write(
            {"name": self.name, "pid": record.pid, "ready": dict(ready), "options": dict(options)}
        )
        return record

    def read(self) -> LabRecord | None:
        """Return the lab that runs under this name, None if there is none or it is not ready yet."""
        found = self._record.read()
        if found is None:
            return None
        return LabRecord(
            name=self.name,
            pid=int(found["pid"]),
            ready=dict(found["ready"]),
            options=dict(found["options"]),
        )

    def require(self) -> LabRecord:
        """Return the lab that runs under this name.

        Raises:
            LabDownError: There is none.
        """
        record = self.read()
        if record is None:
            other = "" if self.name == DEFAULT_NAME else f" --name {self.name}"
            raise LabDownError(
                f"No lab '{self.name}' is running.", remedy=f"Start it with `stackyard lab up{other}`."
            )
        return record

    async def stop(self, record: LabRecord, *, grace_s: float = 10.0) -> None:
        """Ask a lab to stop, wait for its end, and kill it if that takes too long.

        Raises:
            LabUnstoppableError: The system does not let us.
        """
        await self._record.stop(record.pid, grace_s=grace_s, failure=LabUnstoppableError)


def list_running_names() -> list[str]:
    """Return the names under which a lab runs now."""
    try:
        found = sorted(path.name for path in _labs().iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []
    return [name for name in found if Instance(name).read() is not None]


def _labs() -> Path:
    return directories.state_folder() / "labs"
