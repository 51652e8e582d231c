"""What `cluster configure` wrote: fingerprints, so that a change by hand is seen and never overwritten.

For an encrypted value the fingerprint is that of its encrypted form, which says nothing of the value. The
encrypted form stays as long as the value does, so that another one means that somebody edited it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeGuard

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import FileError, InvalidInputError, Location

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["RECORD_NAME", "GenerationRecord", "RecordError", "read_record", "take_fingerprint"]

RECORD_NAME = ".stackyard-generated.json"
# What every generated file is, or is below of.
_PLACES = ("infrastructure", "kubernetes", ".taskfiles", "Taskfile.yaml")
_NOTE = "Fingerprints of what `stackyard cluster configure` wrote. Commit this file; do not edit it."


class RecordError(InvalidInputError):
    """The list of generated files cannot be read: it was edited, or has the marks of a merge conflict."""

    code = "E-CLUSTER-RECORD"
    summary = "The record of generated files is not valid"
    default_remedy = (
        "Restore it from git. After a merge conflict, remove it and run the command with --overwrite for the "
        "files that it lists."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRecord:
    """Fingerprints of generated files and encrypted values.

    Attributes:
        files: By path from the folder of the cluster; `PATH#KEY` is an encrypted value.
        pending: What a run that did not end was writing.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, str] = field(default_factory=dict)

    def is_ours(self, name: str, fingerprint: str) -> bool:
        """Return whether this is what was written."""
        return fingerprint in (self.files.get(name), self.pending.get(name))

    def knows(self, name: str) -> bool:
        """Return whether a file or value was written."""
        return name in self.files or name in self.pending

    def dump(self) -> bytes:
        """Return the file."""
        document = {"note": _NOTE, "files": dict(sorted(self.files.items()))}
        if self.pending:
            document["pending"] = dict(sorted(self.pending.items()))
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def take_fingerprint(data: bytes) -> str:
    """Return the fingerprint of some bytes."""
    return hashlib.sha256(data).hexdigest()


def read_record(path: Path) -> GenerationRecord:
    """Read a record; an absent one is empty.

    Raises:
        RecordError: It is not valid.
        FileError: It cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return GenerationRecord()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    try:
        found = parse_json(data)
    except JsonError as err:
        raise RecordError(f"{path} is not valid JSON.", where=Location(str(path))) from err
    known, pending = (
        (found.get("files"), found.get("pending", {})) if isinstance(found, dict) else (None, None)
    )
    if not _is_map_of_texts(known) or not _is_map_of_texts(pending):
        raise RecordError(f"{path} is not a map of fingerprints.", where=Location(str(path)))
    strange = [name for name in (*known, *pending) if not _is_generated(name)]
    if strange:
        # What is in the record and no longer generated is removed: it must not name files of the user.
        raise RecordError(f"{path} names {strange[0]}, which is never generated.", where=Location(str(path)))
    return GenerationRecord(files=known, pending=pending)


def _is_generated(name: str) -> bool:
    parts = PurePosixPath(name.partition("#")[0]).parts
    return bool(parts) and parts[0] in _PLACES and ".." not in parts


def _is_map_of_texts(part: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(part, dict) and all(isinstance(value, str) for value in part.values())
