"""Writing parts as a piece of a compressed archive: the same parts give the same bytes, on any day.

Pieces are gzip members that can stand one after the other, so that one which did not change is used again.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import marshal
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from stackyard.operator.delegation.parts import Part

__all__ = ["END", "write_piece"]

# Level 6 takes more than twice as long for five percent.
_LEVEL = 3
# What an archive ends with: two blocks of nothing.
END = gzip.compress(bytes(2 * tarfile.BLOCKSIZE), mtime=0)
# Marks bytecode that is never compared with its source: nobody edits what was unpacked.
_UNCHECKED = 1
# Later forms of bytecode depend on what else the process that writes them has in memory.
_STABLE_FORM = 2


def write_piece(parts: Iterable[Part], path: Path) -> None:
    """Write parts, with the bytecode of those that are Python, as a gzip member.

    Raises:
        OSError: Something cannot be read or written.
    """
    with path.open("wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as stream:
        for part in parts:
            content = part.read()
            _add(stream, part.path, content, part.mode)
            for compiled, bytecode in _bytecode(part.path, content):
                _add(stream, compiled, bytecode, part.mode)


def _add(stream: BinaryIO | gzip.GzipFile, path: PurePosixPath, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(str(path))
    info.size, info.mode = len(content), mode
    stream.write(info.tobuf(tarfile.GNU_FORMAT))
    stream.write(content)
    stream.write(bytes(-len(content) % tarfile.BLOCKSIZE))


def _bytecode(path: PurePosixPath, source: bytes) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Return where the bytecode of a module goes and what it is; nothing for what is none."""
    if path.suffix != ".py":
        return
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        # Some packages carry modules for other versions of Python, which nobody imports here.
        return
    header = io.BytesIO()
    header.write(importlib.util.MAGIC_NUMBER)
    header.write(_UNCHECKED.to_bytes(4, "little"))
    header.write(importlib.util.source_hash(source))
    yield (
        PurePosixPath(importlib.util.cache_from_source(str(path))),
        header.getvalue() + marshal.dumps(code, _STABLE_FORM),
    )
