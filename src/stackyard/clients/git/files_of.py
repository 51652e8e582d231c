"""The files of a commit in a folder that is a working tree of its own, byte for byte as they were committed.

The folder has a git folder of ours: no hook, no filter, no settings of anyone, and no address to fetch from.
Its objects stay where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.clients.git.run import OWN_SETTINGS, git_command, run_git, stream_git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["OversizedTreeError", "write_files"]

_MOST_FILES = 500_000
_MOST_BYTES = 8 * 2**30
_SETTINGS = """[core]
\trepositoryformatversion = {version}
\tbare = false
\tfilemode = true
\tsymlinks = true
\tlogallrefupdates = false
\tautocrlf = false
\tfsmonitor = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
[gc]
\tauto = 0
"""
# Before those of the tree: no line end, no word and no content changes on the way to the disk.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"
_IGNORED = ".terraform/\n.stackyard/\n"


class OversizedTreeError(InvalidInputError):
    """A commit has far more files than a repository of infrastructure has any reason to."""

    code = "E-GIT-TREE-SIZE"
    summary = "A commit is too large to be checked out"
    default_remedy = "Remove what is no infrastructure code from the branch."


async def write_files(bare: Path, commit: str, folder: Path, branches: Mapping[str, str]) -> None:
    """Write the files of a commit into a new folder.

    Args:
        bare: The repository that has it.
        commit: The commit.
        folder: The folder, which is not there yet or empty.
        branches: Branches of the remote `origin` with their commits; the first one is its default.

    Raises:
        OversizedTreeError: There are far too many files, or they are far too large.
        GitError: git cannot read or write them.
    """
    await _require_size(bare, commit)
    own = folder / ".git"
    _make_git_folder(own, bare, commit, branches)
    env = {**OWN_SETTINGS, "GIT_DIR": str(own), "GIT_WORK_TREE": str(folder), "GIT_ATTR_NOSYSTEM": "1"}
    await run_git(
        git_command(("read-tree", "--reset", "-u", "--no-recurse-submodules", commit), folder, extra=env)
    )


def _make_git_folder(own: Path, bare: Path, commit: str, branches: Mapping[str, str]) -> None:
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/remotes/origin", "info"):
        (own / name).mkdir(parents=True, mode=0o700, exist_ok=True)
    is_sha1 = len(commit) == 40
    extension = "" if is_sha1 else "[extensions]\n\tobjectformat = sha256\n"
    (own / "config").write_text(_SETTINGS.format(version=0 if is_sha1 else 1) + extension)
    (own / "objects/info/alternates").write_text(f"{bare / 'objects'}\n")
    (own / "info/attributes").write_text(_ATTRIBUTES)
    (own / "info/exclude").write_text(_IGNORED)
    (own / "HEAD").write_text(f"{commit}\n")
    rows = "".join(f"{number} refs/remotes/origin/{name}\n" for name, number in sorted(branches.items()))
    (own / "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted \n{rows}", encoding="utf-8"
    )
    default = next(iter(branches), "")
    if default:
        (own / "refs/remotes/origin/HEAD").write_text(
            f"ref: refs/remotes/origin/{default}\n", encoding="utf-8"
        )


async def _require_size(bare: Path, commit: str) -> None:
    """Refuse a tree that would fill the disk, which a small pack can hold."""
    files, size, rest = 0, 0, b""

    def count(chunk: bytes) -> None:
        nonlocal files, size, rest
        *rows, rest = (rest + chunk).split(b"\0")
        files += len(rows)
        size += sum(int(found) for row in rows if (found := row.split(b"\t", 1)[0].split()[-1]).isdigit())
        if files > _MOST_FILES or size > _MOST_BYTES:
            raise OversizedTreeError(
                f"{commit[:12]} has more than {_MOST_FILES} files, or more than {_MOST_BYTES // 2**30} GiB."
            )

    own = {**OWN_SETTINGS, "GIT_DIR": str(bare)}
    await stream_git(
        git_command(("ls-tree", "-r", "-l", "-z", "--full-tree", commit), bare, extra=own), count
    )
