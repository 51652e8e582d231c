"""A commit of what was changed in a checkout of our own, and its way to the repository elsewhere.

The token goes to git in its environment, as for a fetch. Nothing of somebody else is overwritten.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.clients.git.fetch import require_refs
from stackyard.clients.git.remote import describe_refusal
from stackyard.clients.git.run import OWN_SETTINGS, GitError, git_command, run_git

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.git.fetch import RemoteHead

__all__ = ["OUR_NAME", "commit_all", "push", "read_committer"]

# The name and the address of whoever made a commit of ours.
OUR_NAME = "stackyard"
_PUSHED_S = 300.0
_WHO = {f"GIT_{role}_{part}": OUR_NAME for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


async def commit_all(folder: Path, base: str, message: str, *, leave: tuple[str, ...] = ()) -> str | None:
    """Return a commit of everything that differs in a checkout; None where nothing does.

    It is the same commit whenever the files, the base and the message are.

    Args:
        folder: A checkout that `files_of` made.
        base: The commit that it was made of.
        message: What the commit says.
        leave: Names at its top that are no part of it.

    Raises:
        GitError: git cannot make it.
    """
    await _run(folder, "add", "--all", "--", ".", *(f":(top,exclude,literal){name}" for name in leave))
    tree = (await _run(folder, "write-tree")).strip()
    if tree == (await _run(folder, "rev-parse", "--verify", f"{base}^{{tree}}")).strip():
        return None
    date = int(await _run(folder, "show", "-s", "--format=%ct", base))
    dates = {f"GIT_{role}_DATE": f"{date} +0000" for role in ("AUTHOR", "COMMITTER")}
    return (await _run(folder, "commit-tree", "-m", message, "-p", base, tree, extra=_WHO | dates)).strip()


async def read_committer(bare: Path, commit: str) -> str:
    """Return the address of whoever made a commit.

    Raises:
        GitError: It is not here.
    """
    require_refs((commit,))
    own = {**OWN_SETTINGS, "GIT_DIR": str(bare)}
    return (await run_git(git_command(("show", "-s", "--format=%ce", commit), bare, extra=own))).strip()


async def push(remote: RemoteHead, folder: Path, commit: str, ref: str, *, expect: str | None) -> None:
    """Set a branch elsewhere to a commit of a checkout, if it is still where it was seen.

    Args:
        remote: Where.
        folder: The checkout.
        commit: The commit.
        ref: The whole ref, such as `refs/heads/main`.
        expect: The commit that the branch is at; None where it is not there yet.

    Raises:
        GitRefError: The ref has no name that git allows.
        GitUnreachableError: The host does not answer.
        GitRefusedError: The host refuses, or somebody else changed the branch.
    """
    require_refs((commit, ref, *filter(None, (expect,))))
    lease = f"--force-with-lease={ref}:{expect or ''}"
    words = ("push", "--quiet", "--no-verify", "--no-recurse-submodules", lease, "--end-of-options")
    command = remote.command((*words, remote.url, f"{commit}:{ref}"), folder, _PUSHED_S)
    command = replace(command, env={**command.env, "GIT_DIR": str(folder / ".git")})
    try:
        await run_git(command)
    except (process.ProcessTimeoutError, GitError) as err:
        raise describe_refusal(remote.url, err, _PUSHED_S) from err


async def _run(folder: Path, *arguments: str, extra: dict[str, str] | None = None) -> str:
    place = {"GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder), "GIT_ATTR_NOSYSTEM": "1"}
    return await run_git(git_command(arguments, folder, extra={**OWN_SETTINGS, **place, **(extra or {})}))
