"""The pre-commit hook that stackyard manages: one file with a list of checks.

Each check is a command of stackyard. The user's own hook is kept beside ours and runs first, once. Ours
cannot run it a second time within one commit, whatever that hook calls, so that no two hooks call each other
without end. Hooks of older versions, one file per check, are recognised and replaced by the managed one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import files, locks
from stackyard.base.errors import FileError
from stackyard.clients.git.repository import require_repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stackyard.clients.git.repository import Repository

__all__ = ["InstalledHook", "install_check", "remove_check", "upgrade_hook"]

_HOOK = "pre-commit"
_KEPT = "pre-commit.before-stackyard"
_MARK = "# The pre-commit hook of stackyard, format 1. stackyard writes this file: edits in it are lost."
# What older versions wrote: the line that marks the file, the check it runs, the hook that it calls first.
_LEGACY = (
    ("# Written by `stackyard secrets check --install-hook`.", "secrets check --staged", _KEPT),
    (
        "# Written by `stackyard deployment hook --install`.",
        "deployment hook",
        "pre-commit.before-stackyard-deployment",
    ),
)
# The interpreter is named in full, so that no environment has to be activated; -P keeps Python from loading
# modules out of the working tree. A hook that is called by the hook it calls runs its checks, and no chain.
_SCRIPT = """#!/bin/sh
{mark}
# Your own hook: {kept} beside this file. It runs first.
folder=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
case "$STACKYARD_HOOKS:" in
*":$folder:"*) ;;
*)
    STACKYARD_HOOKS="$STACKYARD_HOOKS:$folder"
    export STACKYARD_HOOKS
    if [ -x "$folder/{kept}" ]; then
        "$folder/{kept}" "$@" || exit $?
    fi
    ;;
esac
run_check() {{
    if [ -x {python} ]; then
        {python} -P -m stackyard "$@"
    elif command -v stackyard >/dev/null 2>&1; then
        stackyard "$@"
    else
        echo "The pre-commit hook cannot run stackyard: there is no" {python} "and none in PATH." >&2
        echo "Install stackyard and install the hook again, or remove" "$0" >&2
        return 1
    fi
}}
{checks}
"""
_CHECK_LINE = re.compile(r"^run_check (.+) \|\| exit \$\?$", re.MULTILINE)
_KEPT_LINE = re.compile(r"^# Your own hook: (\S+) beside this file\.", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledHook:
    """The hook of a repository after a change.

    Attributes:
        path: Where it is.
        kept: The user's own hook, which runs first; None where there is none.
        checks: The commands of stackyard that it runs, in this order.
        was_there: Whether nothing had to be changed.
    """

    path: Path
    kept: Path | None
    checks: tuple[str, ...]
    was_there: bool


@dataclass(frozen=True, slots=True)
class _HookFiles:
    """What the folder of hooks holds now.

    Attributes:
        checks: The checks of every hook of ours that a commit reaches.
        kept: The name of the user's own hook, if there is one beside ours.
        legacy: The names of files that older versions wrote, apart from the hook itself.
        is_ours: Whether the hook that git calls is one of ours.
        is_current: Whether that one has today's form.
    """

    checks: tuple[str, ...] = ()
    kept: str | None = None
    legacy: tuple[str, ...] = ()
    is_ours: bool = False
    is_current: bool = False


async def install_check(folder: Path, check: str) -> InstalledHook:
    """Have git run a check before each commit; a hook of the user's own is kept and runs first.

    Args:
        folder: A folder of the repository. `core.hooksPath` decides where its hooks are.
        check: The arguments of the command, such as `secrets check --staged`.

    Raises:
        GitError: There is no repository.
        FileError: The hook cannot be written, or two hooks of the user's own are in the way.
    """
    repository = await require_repository(folder)
    with _lock_hooks(repository):
        found = _find(repository.hooks)
        return _write(repository.hooks, found, tuple(dict.fromkeys((*found.checks, check))))


async def remove_check(folder: Path, check: str) -> InstalledHook:
    """Take a check out of the hook; after the last one the user's own hook is back in its place.

    Raises:
        GitError: There is no repository.
        FileError: The hook cannot be written.
    """
    repository = await require_repository(folder)
    with _lock_hooks(repository):
        found = _find(repository.hooks)
        left = tuple(one for one in found.checks if one != check)
        if not found.is_ours or (found.is_current and left == found.checks):
            return _make_installed_hook(repository.hooks, found, was_there=True)
        if left:
            return _write(repository.hooks, found, left)
        hook = repository.hooks / _HOOK
        if found.kept is None:
            hook.unlink()
        else:
            os.replace(repository.hooks / found.kept, hook)
        _remove(repository.hooks, found.legacy)
        files.sync_folder(repository.hooks)
        return InstalledHook(path=hook, kept=None, checks=(), was_there=False)


def upgrade_hook(repository: Repository) -> bool:
    """Replace what older versions installed by the managed hook; return whether there was anything.

    Two of those could call each other without end. A folder that we may not write is left as it is.
    """
    if not (repository.hooks / _HOOK).is_file():
        return False
    with contextlib.suppress(FileError):
        found = _find(repository.hooks)
        if not found.legacy and (found.is_current or not found.is_ours):
            return False
        with _lock_hooks(repository):
            found = _find(repository.hooks)
            if found.is_ours:
                _write(repository.hooks, found, found.checks)
                return True
    return False


def _find(hooks: Path) -> _HookFiles:
    """Follow the hooks as a commit would, from the one that git calls to the user's own."""
    name: str | None = _HOOK
    checks: list[str] = []
    ours: list[str] = []
    is_current = False
    while name is not None and name not in ours:
        text = _text(hooks / name)
        known = None if text is None else _read(text)
        if known is None:
            break
        ours.append(name)
        # A hook that is called first runs its checks first.
        checks = [*known[0], *checks]
        is_current = is_current or (name == _HOOK and text is not None and _MARK in text)
        name = known[1]
    is_users = name is not None and name not in ours and name != _HOOK and os.path.lexists(hooks / name)
    return _HookFiles(
        checks=tuple(dict.fromkeys(checks)),
        kept=name if is_users else None,
        legacy=tuple(one for one in ours if one != _HOOK),
        is_ours=bool(ours),
        is_current=is_current,
    )


def _read(text: str) -> tuple[list[str], str] | None:
    """Return the checks of a hook of ours and the name of the one it calls first; None for any other hook."""
    if _MARK in text:
        named = _KEPT_LINE.search(text)
        return _CHECK_LINE.findall(text), _KEPT if named is None else named[1]
    return next((([check], kept) for mark, check, kept in _LEGACY if mark in text), None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as err:
        raise FileError.from_os_error(err, "read the hook", path) from err


def _write(hooks: Path, found: _HookFiles, checks: tuple[str, ...]) -> InstalledHook:
    hook = hooks / _HOOK
    kept = found.kept
    if not found.is_ours and os.path.lexists(hook):
        _keep(hook, hooks / _KEPT)
        kept = _KEPT
    script = _SCRIPT.format(
        mark=_MARK,
        kept=kept or _KEPT,
        python=shlex.quote(sys.executable),
        checks="\n".join(f"run_check {check} || exit $?" for check in checks),
    )
    is_same = found.is_current and not found.legacy and _text(hook) == script
    if not is_same:
        if hook.is_symlink():
            # A link to a file of another place, which is kept by now: it is replaced, not what it names.
            hook.unlink()
        files.replace_file(hook, script.encode(), mode=0o755)
        _remove(hooks, found.legacy)
    return InstalledHook(
        path=hook,
        kept=None if kept is None else hooks / kept,
        checks=checks,
        was_there=is_same,
    )


def _keep(hook: Path, kept: Path) -> None:
    """Give the user's hook its second name; it keeps the first until ours is whole."""
    try:
        if os.path.lexists(kept) and not _is_same(hook, kept):
            text = _text(kept)
            if text is None or _read(text) is None:
                raise FileError(
                    f"{hook} is not ours, and {kept} is already there from an earlier time.",
                    remedy="Remove or join one of the two, and install the hook again.",
                )
            kept.unlink()
        if not os.path.lexists(kept):
            try:
                os.link(hook, kept, follow_symlinks=False)
            except OSError:
                # Not every file system has hard links.
                os.rename(hook, kept)
    except OSError as err:
        raise FileError.from_os_error(err, "keep the hook", hook) from err


def _is_same(hook: Path, kept: Path) -> bool:
    return os.path.samestat(hook.lstat(), kept.lstat())


def _remove(hooks: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (hooks / name).unlink(missing_ok=True)


def _make_installed_hook(hooks: Path, found: _HookFiles, *, was_there: bool) -> InstalledHook:
    return InstalledHook(
        path=hooks / _HOOK,
        kept=None if found.kept is None else hooks / found.kept,
        checks=found.checks,
        was_there=was_there,
    )


@contextlib.contextmanager
def _lock_hooks(repository: Repository) -> Iterator[None]:
    """Keep others from changing the hooks meanwhile."""
    try:
        repository.hooks.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise FileError.from_os_error(err, "open the folder of hooks", repository.hooks) from err
    with locks.hold_folder(repository.hooks):
        try:
            yield
        except OSError as err:
            raise FileError.from_os_error(err, "change the hook", repository.hooks / _HOOK) from err
