"""Having git check for secrets before each commit."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard import files, git
from stackyard.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Installed", "install_hook"]

_MARK = "# Written by `stackyard secrets check --install-hook`."
_KEPT = "pre-commit.before-stackyard"
_SCRIPT = """#!/bin/sh
{mark}
folder=$(dirname -- "$0")
if [ -x "$folder/{kept}" ]; then
    "$folder/{kept}" "$@" || exit $?
fi
if command -v stackyard >/dev/null 2>&1; then
    exec stackyard secrets check --staged
fi
exec {python} -m stackyard secrets check --staged
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Where the hook is, and the one that was there before and still runs first."""

    path: Path
    kept: Path | None
    was_there: bool


async def install_hook(folder: Path) -> Installed:
    """Install the check as the pre-commit hook of a repository; one that is there is kept and runs first.

    Raises:
        GitError: There is no repository.
        FileError: The hook cannot be written.
    """
    repository = await git.require_repository(folder)
    hook, kept = repository.hooks / "pre-commit", repository.hooks / _KEPT
    try:
        repository.hooks.mkdir(parents=True, exist_ok=True)
        was_there = hook.exists() and _MARK in hook.read_text(errors="replace")
        if (hook.exists() or hook.is_symlink()) and not was_there:
            if kept.exists():
                raise FileError(
                    f"{hook} is not ours, and {kept} is already there from an earlier time.",
                    remedy="Remove or join one of the two, and install the hook again.",
                )
            os.rename(hook, kept)
    except OSError as err:
        raise FileError.from_os_error(err, "install the hook", hook) from err
    script = _SCRIPT.format(mark=_MARK, kept=_KEPT, python=shlex.quote(sys.executable))
    files.replace_file(hook, script.encode(), mode=0o755)
    return Installed(path=hook, kept=kept if kept.exists() else None, was_there=was_there)
