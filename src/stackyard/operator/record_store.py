"""Where records are kept: a folder for each manifest and host, which one run at a time holds."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import orjson

from stackyard.base import directories, files, locks
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import BusyError, FileError
from stackyard.operator.record import RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["RecordBrokenError", "RecordStore", "RunBusyError"]

_RECORD = "record.json"
_LOCK = "lock"
_HISTORY = "history"
_KEPT = 50
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


class RunBusyError(BusyError):
    """Another run works on the same manifest and host."""

    code = "E-OPERATOR-BUSY"
    summary = "Another run works on this manifest and host"
    default_remedy = "Wait for the other run to end, then run the command again."


class RecordBrokenError(FileError):
    """The record of a manifest on a host cannot be read."""

    code = "E-OPERATOR-RECORD"
    summary = "A record is not readable"
    default_remedy = "Remove the file: what is there is found again in the state and by its tag."


class RecordStore:
    """The record of one manifest on one host, with its history.

    Args:
        base: The folder for what runs leave for the next.
        manifest: The manifest.
        host: The host.
    """

    def __init__(self, base: Path, manifest: str, host: str) -> None:
        self.manifest = manifest
        self.host = host
        self.folder = base / "operator" / f"{_escape(manifest)}@{_escape(host)}"

    @property
    def path(self) -> Path:
        """The record."""
        return self.folder / _RECORD

    @contextlib.contextmanager
    def hold(self, holder: str) -> Iterator[None]:
        """Hold the record for the length of the block; a holder that is killed lets go.

        Args:
            holder: Who holds it, for other runs.

        Raises:
            RunBusyError: Another run holds it.
            FileError: The folder cannot be written.
        """
        directories.ensure_private(self.folder)
        with locks.open_file_lock(self.folder / _LOCK) as lock:
            if not lock.try_acquire():
                who = lock.read_note() or "another process"
                raise RunBusyError(f"{self.manifest} on {self.host} is held by {who}.")
            lock.write_note(holder)
            yield
            lock.write_note("")

    def read(self) -> RunRecord | None:
        """Return the record, nothing where there is none yet.

        Raises:
            RecordBrokenError: It is something else.
        """
        return _read(self.path) if self.path.exists() else None

    def write(self, record: RunRecord) -> None:
        """Write the record so that it is the old one or the new one, whatever happens.

        Raises:
            FileError: It cannot be written.
        """
        directories.ensure_private(self.folder)
        files.replace_file(self.path, _encode(record))

    def close(self, record: RunRecord) -> None:
        """Write the record of a run that has ended, and keep it in the history.

        Raises:
            FileError: It cannot be written.
        """
        self.write(record)
        folder = directories.ensure_private(self.folder / _HISTORY)
        stamp = record.started_at.replace(":", "").replace("-", "")
        files.replace_file(folder / f"{stamp}-{record.verb}.json", _encode(record))
        for old in self._history()[:-_KEPT]:
            old.unlink(missing_ok=True)

    def history(self) -> tuple[RunRecord, ...]:
        """Return the records of runs that have ended, the last one last.

        Raises:
            RecordBrokenError: One of them is something else.
        """
        return tuple(_read(path) for path in self._history())

    def _history(self) -> list[Path]:
        return sorted((self.folder / _HISTORY).glob("*.json"))


def _encode(record: RunRecord) -> bytes:
    return orjson.dumps(record.as_json(), option=orjson.OPT_INDENT_2) + b"\n"


def _read(path: Path) -> RunRecord:
    text = files.read_text(path)
    try:
        return RunRecord.from_json(parse_json(text))
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise RecordBrokenError(f"{path} is not a record: {err}.") from err


def _escape(part: str) -> str:
    """Return a part of the name of a folder: never the same for two, and never a way out of it."""
    if _PLAIN.fullmatch(part) and part.strip("."):
        return part
    return "".join(c if _PLAIN.fullmatch(c) and c != "." else f"~{ord(c):x}~" for c in part) or "~"
