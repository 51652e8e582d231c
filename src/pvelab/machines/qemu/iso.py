"""A CD image with a handful of files in its root folder, as cloud-init's NoCloud drive is.

It has ISO 9660 names for the standard's sake (level 1: eight capital letters and three more) and Joliet
names, which are the ones that Linux shows. Nothing but Python is needed to make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["write_iso"]

SECTOR = 2048

_SYSTEM_SECTORS = 16
# After the system area: two volume descriptors and their end, four path tables (two orders, two name spaces),
# two root folders.
_TABLES = (19, 20, 21, 22)
_PRIMARY_ROOT, _JOLIET_ROOT, _FIRST_FILE = 23, 24, 25
_JOLIET_ESCAPE = b"%/E"
# The 1st of January 2020; what is on the drive must follow from what it says alone.
_DATE = bytes((120, 1, 1, 0, 0, 0, 0))
_LONG_DATE = b"2020010100000000\0"
_NO_DATE = b"0" * 16 + b"\0"


def write_iso(label: str, files: Mapping[str, bytes]) -> bytes:
    """Return a CD image.

    Args:
        label: The name of the volume; cloud-init looks for `cidata`.
        files: The content of each file by its name, without folders; few enough for one sector of entries.

    Raises:
        ValueError: The names do not fit into the root folder.
    """
    placed, sector = [], _FIRST_FILE
    for number, (name, content) in enumerate(sorted(files.items())):
        placed.append((f"FILE{number:04d}.;1".encode(), name.encode("utf-16-be"), sector, content))
        sector += -(-len(content) // SECTOR)
    roots = [
        _folder(_PRIMARY_ROOT, [(plain, where, len(content)) for plain, _, where, content in placed]),
        _folder(_JOLIET_ROOT, [(joliet, where, len(content)) for _, joliet, where, content in placed]),
    ]
    tables = [
        _path_table(root, order) for root in (_PRIMARY_ROOT, _JOLIET_ROOT) for order in ("little", "big")
    ]
    head = [
        bytes(_SYSTEM_SECTORS * SECTOR),
        _descriptor(label.upper().encode().ljust(32), 1, _PRIMARY_ROOT, sector),
        _descriptor(label.encode("utf-16-be")[:32].ljust(32, b"\0"), 2, _JOLIET_ROOT, sector),
        _pad(b"\xffCD001\x01"),
        *map(_pad, tables),
        *roots,
    ]
    return b"".join([*head, *(_pad(content) for *_, content in placed)])


def _folder(own: int, entries: list[tuple[bytes, int, int]]) -> bytes:
    records = [_record(b"\0", own, SECTOR, folder=True), _record(b"\1", own, SECTOR, folder=True)]
    records += [_record(name, where, size) for name, where, size in sorted(entries)]
    content = b"".join(records)
    if len(content) > SECTOR:
        raise ValueError("too many files, or too long names, for one folder of a small CD image")
    return _pad(content)


def _record(name: bytes, where: int, size: int, *, folder: bool = False) -> bytes:
    body = (
        b"\0"
        + _both(where, 4)
        + _both(size, 4)
        + _DATE
        + (b"\2" if folder else b"\0")
        + b"\0\0"
        + _both(1, 2)
        + bytes([len(name)])
        + name
        + (b"" if len(name) % 2 else b"\0")
    )
    return bytes([len(body) + 1]) + body


def _path_table(root: int, order: str) -> bytes:
    return b"\1\0" + _number(root, 4, order) + _number(1, 2, order) + b"\0\0"


def _descriptor(label: bytes, kind: int, root: int, sectors: int) -> bytes:
    """Return a volume descriptor: the primary one (1), or the supplementary one of Joliet (2)."""
    tables = _TABLES[:2] if kind == 1 else _TABLES[2:]
    blank = b" " if kind == 1 else b"\0"
    return _pad(
        bytes([kind])
        + b"CD001\x01\0"
        + blank * 32
        + label
        + bytes(8)
        + _both(sectors, 4)
        + (_JOLIET_ESCAPE if kind == 2 else b"").ljust(32, b"\0")
        + _both(1, 2) * 2
        + _both(SECTOR, 2)
        + _both(10, 4)
        + _number(tables[0], 4, "little")
        + bytes(4)
        + _number(tables[1], 4, "big")
        + bytes(4)
        + _record(b"\0", root, SECTOR, folder=True)
        + blank * (128 * 4 + 37 * 3)
        + _LONG_DATE * 2
        + _NO_DATE * 2
        + b"\1\0"
    )


def _both(number: int, size: int) -> bytes:
    """Return a number as the standard has most of them: once in each order of bytes."""
    return _number(number, size, "little") + _number(number, size, "big")


def _number(number: int, size: int, order: str) -> bytes:
    return number.to_bytes(size, "little" if order == "little" else "big")


def _pad(content: bytes) -> bytes:
    return content + bytes(-len(content) % SECTOR)
