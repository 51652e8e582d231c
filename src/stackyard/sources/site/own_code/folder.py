"""A folder of own code: its files, what they declare, and the local modules that they call."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, Location
from stackyard.sources.site.own_code.blocks import is_code, read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.site.own_code.blocks import CodeBlock

__all__ = ["CodeFolder", "CodeOutput", "CodeVariable", "list_files", "read_code_folder"]

# What engines and version control leave in a folder.
_NOT_INPUT = frozenset({".terraform", ".git"})
_LOCAL = ("./", "../")
# Blocks that make something, or show something.
_DECLARING = frozenset({"resource", "data", "module", "output", "check", "removed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeVariable:
    """A variable that the code declares."""

    name: str
    has_default: bool
    where: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOutput:
    """An output that the code declares."""

    name: str
    is_sensitive: bool
    where: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFolder:
    """Own code that joins a configuration as a module.

    Attributes:
        label: The name of the module, `own` or `extra`.
        folder: The folder, absolute.
        shown: The folder as it is shown to the user.
        files: The files that are read as code, by their names in the folder.
        variables: What can be passed to it.
        outputs: What it returns.
        declares: Whether anything is in it that an engine would make or show.
        modules: The folder, and those of the local modules that its code calls.
        needs: What has to be installed for it, as lines that change when that does.
    """

    label: str
    folder: Path
    shown: str
    files: tuple[str, ...] = ()
    variables: tuple[CodeVariable, ...] = ()
    outputs: tuple[CodeOutput, ...] = ()
    declares: bool = False
    modules: tuple[Path, ...] = ()
    needs: frozenset[str] = frozenset()

    def digest(self) -> str:
        """Return the fingerprint of every file of the code as it is now: templates and local modules too.

        Raises:
            FileError: A file cannot be read.
        """
        digest = hashlib.sha256()
        for folder in self.modules:
            place = os.path.relpath(folder, self.folder)
            for path in list_files(folder):
                content = _read(path)
                name = f"{place}/{path.relative_to(folder)}\0{len(content)}\0"
                digest.update(name.encode(errors="surrogateescape") + content)
        return digest.hexdigest()


def list_files(folder: Path) -> list[Path]:
    """Return every file below a folder, in order, without what engines leave there."""
    found = []
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_INPUT]
        found += [Path(above, name) for name in names]
    return sorted(found)


def read_code_folder(label: str, folder: Path, shown: str) -> CodeFolder:
    """Read a folder of code.

    Raises:
        FileError: A file of it cannot be read.
    """
    real = Path(os.path.realpath(folder))
    names = _list_code(real)
    blocks = [(name, block) for name in names for block in _blocks(real / name)]
    modules = tuple(_find_modules(real))
    return CodeFolder(
        label=label,
        folder=real,
        shown=shown,
        files=names,
        variables=tuple(
            CodeVariable(
                name=block.name,
                has_default="default" in block.attributes,
                where=Location(f"{shown}/{name}", block.line),
            )
            for name, block in blocks
            if block.type == "variable"
        ),
        outputs=tuple(
            CodeOutput(
                name=block.name,
                is_sensitive=block.attributes.get("sensitive") == "true",
                where=Location(f"{shown}/{name}", block.line),
            )
            for name, block in blocks
            if block.type == "output"
        ),
        declares=any(block.type in _DECLARING for _, block in blocks),
        modules=modules,
        needs=frozenset(need for module in modules for need in _needs(module)),
    )


def _list_code(folder: Path) -> tuple[str, ...]:
    try:
        with os.scandir(folder) as entries:
            return tuple(sorted(one.name for one in entries if is_code(one.name) and not one.is_dir()))
    except OSError as err:
        raise FileError.from_os_error(err, "read the folder", folder) from err


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err


def _blocks(path: Path) -> list[CodeBlock]:
    return read_blocks(path.name, _read(path))


def _find_modules(folder: Path) -> Iterator[Path]:
    """Return a folder and those of the local modules that it calls, each once; the engine misses others."""
    known, waiting = {folder}, [folder]
    while waiting:
        current = waiting.pop()
        yield current
        for name in _list_code(current):
            for block in _blocks(current / name):
                source = block.attributes.get("source", "") if block.type == "module" else ""
                called = Path(os.path.realpath(current / source))
                if source.startswith(_LOCAL) and called not in known and called.is_dir():
                    known.add(called)
                    waiting.append(called)


def _needs(folder: Path) -> Iterator[str]:
    """Return what decides which providers and modules an engine installs for a folder."""
    yield str(folder)
    for name in _list_code(folder):
        for block in _blocks(folder / name):
            if block.type in ("resource", "data", "ephemeral"):
                yield f"type {block.labels[0] if block.labels else ''} {block.attributes.get('provider', '')}"
            elif block.type in ("terraform", "provider", "module"):
                yield f"{folder.name} {block.text}"
