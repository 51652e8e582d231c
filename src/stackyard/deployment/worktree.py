"""The working tree beside the object: what must not be in it, and the hook that keeps it out.

`deployment.json` never belongs in git: a copy there drifts from the object. `terraform.tfvars` never belongs
anywhere: by its precedence it would silently override what the object says.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stackyard import files, git
from stackyard.errors import FileError, InvalidInputError, Location

if TYPE_CHECKING:
    from stackyard.deployment.settings import Place

__all__ = ["InstalledHook", "TrackedObjectError", "VariablesFileError", "install_hook", "require_clean"]

_OBJECT_FILE = "deployment.json"
_VARIABLES_FILES = ("terraform.tfvars", "terraform.tfvars.json")
_MARK = "# Written by `stackyard deployment hook --install`."
_KEPT = "pre-commit.before-stackyard-deployment"
_SCRIPT = """#!/bin/sh
{mark}
folder=$(dirname -- "$0")
if [ -x "$folder/{kept}" ]; then
    "$folder/{kept}" "$@" || exit $?
fi
if command -v stackyard >/dev/null 2>&1; then
    exec stackyard deployment hook
fi
exec {python} -m stackyard deployment hook
"""


class TrackedObjectError(InvalidInputError):
    """A `deployment.json` is tracked or staged in git, where it would drift from the object in the store."""

    code = "E-DEPLOYMENT-TRACKED"
    summary = "A deployment.json is in git"
    default_remedy = "Take it out: git rm --cached FILE; keep a deployment.json.example to show the shape."


class VariablesFileError(InvalidInputError):
    """A `terraform.tfvars` is in the working tree; it would silently override what the object says."""

    code = "E-DEPLOYMENT-TFVARS"
    summary = "There is a terraform.tfvars in the working tree"
    default_remedy = "Put what is in it into the object, and delete it."


async def require_clean(place: Place) -> None:
    """Refuse a working tree that holds what must not be in it.

    Raises:
        TrackedObjectError: A `deployment.json` is tracked or staged.
        VariablesFileError: A `terraform.tfvars` is there, ignored by git or not.
        GitError: git cannot be asked.
    """
    repository = await git.find_repository(place.root)
    if repository is None:
        _require_no_variables(place.root, [name for name in _VARIABLES_FILES if (place.root / name).exists()])
        return
    tracked = [entry.path for entry in await repository.index() if _name(entry.path) == _OBJECT_FILE]
    if tracked:
        raise TrackedObjectError(
            f"git tracks {', '.join(tracked)} in {repository.root}.",
            where=Location(str(repository.root / tracked[0])),
            remedy=f"Take it out: git rm --cached {shlex.join(tracked)}; keep a deployment.json.example.",
        )
    _require_no_variables(repository.root, await repository.named(_VARIABLES_FILES))


def _require_no_variables(root: Path, found: list[str]) -> None:
    if found:
        raise VariablesFileError(
            f"{', '.join(found)} is in {root}: by its precedence it would override the object.",
            where=Location(str(root / found[0])),
        )


def _name(path: str) -> str:
    return PurePosixPath(path).name


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledHook:
    """Where the hook is, and the one that was there before and still runs first."""

    path: Path
    kept: Path | None


async def install_hook(folder: Path) -> InstalledHook:
    """Have git refuse commits with a `deployment.json`; a hook that is there is kept and runs first.

    Raises:
        GitError: There is no repository.
        FileError: The hook cannot be written.
    """
    repository = await git.require_repository(folder)
    hook, kept = repository.hooks / "pre-commit", repository.hooks / _KEPT
    try:
        repository.hooks.mkdir(parents=True, exist_ok=True)
        is_ours = hook.exists() and _MARK in hook.read_text(errors="replace")
        if (hook.exists() or hook.is_symlink()) and not is_ours:
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
    return InstalledHook(path=hook, kept=kept if kept.exists() else None)
