"""Someone's repository, of which only data is taken: refs, objects, lists of patterns.

git says whether it trusts the repository, as its user and `safe.directory` want it. Of its settings a few
count that are plain values and decide how files are read. A repository whose refs or objects are those of
another one is refused: it would show what that one holds.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from stackyard.base import process
from stackyard.clients.git.run import GitError, git_command, run_git

__all__ = ["GitSource", "open_source"]

# Reading settings is quick, but they can include files that never end.
_TIMEOUT_S = 60.0
# Settings that say how files of the working tree are read. None of them names a program.
_PLAIN_SETTINGS = frozenset(
    "core.autocrlf core.eol core.safecrlf core.filemode core.ignorecase core.symlinks core.excludesfile "
    "core.precomposeunicode core.protecthfs core.protectntfs core.attributesfile".split()
)
_LONGEST_SETTING = 4096
# What `rev-parse` is asked for, and answers a line each.
_QUESTIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """A repository with a working tree.

    Attributes:
        root: The top of its working tree.
        git_dir: Its git folder, or that of a linked working tree.
        common_dir: The git folder that linked working trees share.
        object_format: The hash of its objects.
    """

    root: Path
    git_dir: Path
    common_dir: Path
    object_format: str

    @property
    def objects(self) -> Path:
        """The folder of its objects."""
        return self.common_dir / "objects"

    async def refs(self) -> dict[str, str]:
        """Return its branches, its tags and HEAD; without a commit there is none.

        Raises:
            GitError: It is gone or damaged, or holds refs or objects of another repository.
        """
        _require_own(self)
        command = git_command(("show-ref", "--head", "--heads", "--tags"), self.root, extra=self._here())
        ended = await process.run(command, check=False)
        if ended.returncode != 0 and ended.stderr.strip():
            raise GitError(ended.stderr.strip())
        found = {}
        for line in ended.stdout.splitlines():
            number, _, name = line.partition(" ")
            if name == "HEAD" or name.startswith(("refs/heads/", "refs/tags/")):
                found[name] = number
        return found

    def branch(self) -> str:
        """Return the ref that HEAD names, empty for a detached one."""
        try:
            said = (self.git_dir / "HEAD").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return said.removeprefix("ref: ") if said.startswith("ref: ") else ""

    async def settings(self) -> tuple[str, ...]:
        """Return the settings that decide how files are read, as options of git."""
        listed = await run_git(
            git_command(("config", "--list", "-z"), self.root, extra=self._here(), timeout_s=_TIMEOUT_S)
        )
        options: list[str] = []
        for one in listed.split("\0"):
            name, _, value = one.partition("\n")
            if name in _PLAIN_SETTINGS and len(value) < _LONGEST_SETTING:
                options += ["-c", f"{name}={value}"]
        return tuple(options)

    def _here(self) -> dict[str, str]:
        # Found by git itself, so that it looks each time whose it is; but never one further up.
        return {"GIT_CEILING_DIRECTORIES": str(self.root.parent)}


async def open_source(root: Path) -> GitSource:
    """Return the repository of a folder.

    Raises:
        GitError: There is none, git does not trust it, or the folder is not its top.
    """
    asked = ("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
    command = git_command((*asked, "--show-object-format"), root, timeout_s=_TIMEOUT_S)
    answer = (await run_git(command)).splitlines()
    if len(answer) != _QUESTIONS:
        raise GitError(f"The paths of {root} hold line breaks.")
    git_dir, common_dir, top, form = answer
    if not _is_same(Path(top), root):
        raise GitError(f"{root} is inside the repository {top}, and not one itself.")
    source = GitSource(root=root, git_dir=Path(git_dir), common_dir=Path(common_dir), object_format=form)
    _require_own_folder(source)
    return source


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _require_own_folder(source: GitSource) -> None:
    """Refuse a `.git` that leads to a git folder which does not belong to this working tree."""
    git_dir, root = source.git_dir.resolve(), source.root.resolve()
    if git_dir.is_relative_to(root):
        return
    try:
        # What `git worktree` writes.
        linked = Path((git_dir / "gitdir").read_text().strip())
        is_linked = (git_dir / linked).resolve() == root / ".git"
    except (OSError, UnicodeDecodeError):
        is_linked = False
    if not (is_linked or _worktree_of(git_dir) == root):
        raise GitError(
            f"{source.root / '.git'} leads to {git_dir}, which does not belong to this working tree.",
            remedy="Clone the repository to this place, or use `git worktree add`.",
        )


def _worktree_of(git_dir: Path) -> Path | None:
    """Return the working tree that a git folder names itself, as that of a submodule does."""
    try:
        text = (git_dir / "config").read_text(errors="replace")
    except OSError:
        return None
    named = re.search(r"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", text, re.MULTILINE)
    return None if named is None else (git_dir / named[1]).resolve()


def _require_own(source: GitSource) -> None:
    """Refuse refs and objects that are links to, or alternates in, other repositories."""
    alternates = source.objects / "info" / "alternates"
    if os.path.lexists(alternates):
        raise GitError(
            f"{source.root} takes objects from other repositories: {alternates}.",
            remedy="Copy them with `git repack -a -d`, and remove that file.",
        )
    for link in _links(source):
        raise GitError(
            f"{link} is a link, and could lead to the refs or objects of another repository.",
            remedy="Replace it by what it leads to.",
        )


def _links(source: GitSource) -> list[Path]:
    found = [one for one in (source.common_dir / "packed-refs", source.git_dir / "HEAD") if one.is_symlink()]
    folders = [source.common_dir / "refs", source.git_dir / "refs", source.objects]
    found += [one for one in folders if one.is_symlink()]
    for above in folders[:2]:
        for folder, names, files in os.walk(above):
            found += [path for name in (*names, *files) if (path := Path(folder, name)).is_symlink()]
    for place in (source.objects, source.objects / "pack", source.objects / "info"):
        try:
            with os.scandir(place) as entries:
                found += [Path(entry.path) for entry in entries if entry.is_symlink()]
        except FileNotFoundError:
            continue
        except OSError as err:
            raise GitError(f"{place} cannot be read: {err.strerror}.") from err
    return found
