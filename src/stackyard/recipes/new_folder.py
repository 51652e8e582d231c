"""Folders that appear whole or not at all: written beside their place, then moved there in one step."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError
from stackyard.base.files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["move_folder", "open_workshop", "write_tree"]

# Begins with a dot: no stack is looked for in it. The number is that of the process.
_PREFIX = ".stackyard-new-"


@contextlib.contextmanager
def open_workshop(top: Path) -> Iterator[Path]:
    """Give a hidden folder to prepare others in, which git does not see; it is removed at the end.

    What a killed process left of its own is removed too.

    Raises:
        FileError: The folder cannot be made.
    """
    _remove_leftovers(top)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=top))
        (folder / ".gitignore").write_text("*\n")
    except OSError as err:
        raise FileError.from_os_error(err, "make a folder in", top) from err
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers(top: Path) -> None:
    for path in top.glob(f"{_PREFIX}*"):
        number = path.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdigit() and not _is_running(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_tree(
    folder: Path,
    files: Mapping[str, bytes],
    links: Mapping[str, str] | None = None,
    executable: Collection[str] = (),
) -> None:
    """Write files and links into a new folder.

    Args:
        folder: The folder.
        files: Files by their paths.
        links: Links by their paths, with what they lead to.
        executable: The files that can be run.

    Raises:
        FileError: Something cannot be written.
    """
    try:
        folder.mkdir()
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                if name in executable:
                    # Whoever may read it may run it.
                    mode = os.fstat(file.fileno()).st_mode & 0o777
                    os.fchmod(file.fileno(), mode | (mode & 0o444) >> 2)
        for name, target in (links or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(target)
    except OSError as err:
        raise FileError.from_os_error(err, "write", folder) from err


def move_folder(prepared: Path, target: Path) -> None:
    """Move a folder to its place in one step; what is in the way stays.

    Raises:
        FileError: It cannot be moved, or something appeared there meanwhile.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(prepared, target)
        sync_folder(target.parent)
    except OSError as err:
        raise FileError.from_os_error(err, "make", target) from err
