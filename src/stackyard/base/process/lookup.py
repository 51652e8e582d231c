"""Finding the file of a program on PATH, as a shell does: a folder that may not be read is passed over.

The system's own search (`execvp`, and Python's after it) reports such a folder in place of what is wrong:
every missing program is then "Permission denied", and so is a command line that is too long.
"""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.base.process.command import Command

__all__ = ["find_executable"]


def find_executable(command: Command) -> str:
    """Return the file that a command starts; a name with a slash is that file itself.

    Raises:
        FileNotFoundError: No folder of PATH that we may read holds such a program.
        PermissionError: A folder of PATH holds a file of that name, which we may not execute.
    """
    program = command.argv[0]
    if "/" in program:
        return program
    path = command.env.get("PATH", os.defpath)
    if found := shutil.which(program, path=path):
        # A relative folder of PATH is meant from where we are, not from where the program will run.
        return os.path.abspath(found)
    is_there = any(os.path.isfile(os.path.join(folder, program)) for folder in path.split(os.pathsep))
    number = errno.EACCES if is_there else errno.ENOENT
    raise OSError(number, os.strerror(number), program)
