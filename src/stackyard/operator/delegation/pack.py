"""Writing parts as a piece of a compressed archive: the same parts give the same bytes, on any day.

Pieces are gzip members that can stand one after the other, so that one which did not change is used again.
"""

from __future__ import annotations

import gzip
import importlib.util
import marshal
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path, PurePosixPath

    from stackyard.operator.delegation.parts import Part

__all__ = ["END", "write_piece"]

# Level 6 takes more than twice as long for five percent.
_LEVEL = 3
# What an archive ends with: two blocks of nothing.
END = gzip.compress(bytes(2 * tarfile.BLOCKSIZE), mtime=0)
# What bytecode goes in place of its source for: half the files, and nothing to compile on the first start.
_PYTHON = "python"
# Marks bytecode that is never compared with a source.
_UNCHECKED = 1
# Later forms of bytecode depend on what else the process that writes them has in memory.
_STABLE_FORM = 2


def write_piece(parts: Iterable[Part], path: Path) -> None:
    """Write parts as a gzip member; of Python modules the bytecode goes in place of the source.

    Raises:
        OSError: Something cannot be read or written.
    """
    with path.open("wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as stream:
        for part in parts:
            target, content = part.path, part.read()
            if target.suffix == ".py" and target.parts[0] == _PYTHON:
                target, content = _compile(target, content)
            info = tarfile.TarInfo(str(target))
            info.size, info.mode = len(content), part.mode
            stream.write(info.tobuf(tarfile.GNU_FORMAT))
            stream.write(content)
            stream.write(bytes(-len(content) % tarfile.BLOCKSIZE))


def _compile(path: PurePosixPath, source: bytes) -> tuple[PurePosixPath, bytes]:
    """Return the bytecode of a module and where it goes; the source where it is none of this Python's."""
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        # Some packages carry modules for other versions of Python, which no one imports here.
        return path, source
    header = (
        importlib.util.MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little") + importlib.util.source_hash(source)
    )
    return path.with_suffix(".pyc"), header + marshal.dumps(code, _STABLE_FORM)
