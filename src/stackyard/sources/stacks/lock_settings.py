"""The locks that an S3 backend names in code, `dynamodb_table` and `use_lockfile`; edited byte by byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.documents.byte_edits import Edit, apply_edits
from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.base.errors import Location
from stackyard.sources.stacks.backend_block import BackendEditError
from stackyard.sources.stacks.hcl import list_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.documents.hcltree import Node

__all__ = ["LockSettings", "add_lockfile", "drop_table", "list_settings", "read_lock_settings"]

_TABLE = "dynamodb_table"
_LOCKFILE = "use_lockfile"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSettings:
    """The locks that a file names.

    Attributes:
        table: The DynamoDB table; None where there is none, empty where it is no plain text.
        has_lockfile: Whether the lock object in the bucket is used.
    """

    table: str | None = None
    has_lockfile: bool = False


def read_lock_settings(data: bytes) -> LockSettings:
    """Return the locks that a file names: code with a backend block, or a backend config file."""
    found = _find(data)
    table, lockfile = found.get(_TABLE), found.get(_LOCKFILE)
    return LockSettings(
        table=None if table is None else _plain(table),
        has_lockfile=lockfile is not None and _value(lockfile) == b"true",
    )


def list_settings(data: bytes) -> frozenset[str]:
    """Return the names of all settings of the S3 backend in a file, whatever their values."""
    return frozenset(_find(data))


def add_lockfile(data: bytes, path: str) -> bytes:
    """Return a file in which `use_lockfile = true` stands behind the table.

    Raises:
        BackendEditError: The file names no table.
    """
    found = _find(data)
    lockfile, table = found.get(_LOCKFILE), found.get(_TABLE)
    if lockfile is not None:
        value = lockfile.named_children[-1]
        return apply_edits(data, [Edit(value.start_byte, value.end_byte, "true")])
    if table is None:
        raise BackendEditError(f"{path} names no {_TABLE} in OpenTofu's own syntax.", where=Location(path))
    line = data.rfind(b"\n", 0, table.start_byte) + 1
    indent = data[line : table.start_byte]
    # Beside another setting on the same line there is no place for it.
    if indent.strip():
        raise BackendEditError(f"{_TABLE} shares its line with something else.", where=_where(table, path))
    end = _line_end(data, table.end_byte)
    newline = "\r\n" if data[end - 2 : end] == b"\r\n" else "\n"
    gap = "" if data[:end].endswith(b"\n") else newline
    return apply_edits(data, [Edit(end, end, f"{gap}{indent.decode()}{_LOCKFILE} = true{newline}")])


def drop_table(data: bytes, path: str) -> bytes:
    """Return a file without the table.

    Raises:
        BackendEditError: The file names no table, or it is not alone on its line.
    """
    table = _find(data).get(_TABLE)
    if table is None:
        raise BackendEditError(f"{path} names no {_TABLE} in OpenTofu's own syntax.", where=Location(path))
    start, end = data.rfind(b"\n", 0, table.start_byte) + 1, _line_end(data, table.end_byte)
    rest = data[table.end_byte : end].strip()
    if data[start : table.start_byte].strip() or (rest and not rest.startswith((b"#", b"//"))):
        raise BackendEditError(f"{_TABLE} shares its line with something else.", where=_where(table, path))
    return apply_edits(data, [Edit(start, end, "")])


def _find(data: bytes) -> dict[str, Node]:
    """Return the attributes of the S3 backend block by name; of a file without blocks, its own."""
    root = parse_tree(data)
    found = {}
    for holder in _holders(root):
        for body in holder.named_children:
            if body.type == "body":
                for one in body.named_children:
                    if one.type == "attribute":
                        found[(one.named_children[0].text or b"").decode()] = one
    return found


def _holders(root: Node) -> Iterator[Node]:
    blocks = list(list_blocks(root))
    if not blocks:
        yield root
    for kind, _, block in blocks:
        for inner, labels, found in list_blocks(block) if kind == "terraform" else ():
            if inner == "backend" and labels[:1] == ["s3"]:
                yield found


def _value(attribute: Node) -> bytes:
    return (attribute.named_children[-1].text or b"").strip()


def _plain(attribute: Node) -> str:
    value = _value(attribute).decode()
    is_plain = value.startswith('"') and value.endswith('"') and "${" not in value and "\\" not in value
    return value[1:-1] if is_plain else ""


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end + 1


def _where(node: Node, path: str) -> Location:
    return Location(path, line=line_of(node))
