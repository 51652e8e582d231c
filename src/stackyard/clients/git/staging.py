"""Our own store beside a repository: it has all objects of it, and stages its working tree. Never served.

Its git folder is ours, with settings of ours. The objects are copied as data, so that nothing runs in the
repository and nothing there is touched. Filters that the repository or the user sets up do not run here: a
file that has one is staged as it was committed, for it might be the clear text of something encrypted.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.git.loose import make_pack
from stackyard.clients.git.run import OWN_SETTINGS, GitError, git_command, run_git

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from stackyard.base import process
    from stackyard.clients.git.source import GitSource

__all__ = ["OWN_FOLDER", "Staged", "Staging", "TreeFile", "make_bare", "read_history_ends"]

# What stackyard itself keeps in a site, keys among it, whether git ignores it or not.
OWN_FOLDER = ".stackyard"
# Files of the index, where they are asked for, and new ones, each with a letter before it.
_LISTED = ("-z", "-t", "--others", "--exclude-standard")
_NEW = "? "
_MODULE = "160000 "
# Single objects are in folders of two characters.
_FAN_OUT = 2
# Fewer are copied each for itself: git takes a while to start.
_FEWEST_PACKED = 32
_AUTHOR = {
    f"GIT_{role}_{part}": "stackyard" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
}
_MESSAGE = "The working tree, with what is not committed"
# Lists of the repository that say what is ignored, and which files have filters; and where its history ends.
_COPIED = ("info/exclude", "info/attributes", "shallow")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A file of a tree.

    Attributes:
        blob: The number of its content.
        size: How many bytes it has.
        mode: What git calls its kind, such as `100644`.
    """

    blob: str
    size: int
    mode: str = "100644"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The working tree as it was staged.

    Attributes:
        tree: The number of its tree.
        filtered: Files that would have to pass a filter: as committed, or left out where they are new.
    """

    tree: str
    filtered: tuple[str, ...]


@dataclass(slots=True)
class Staging:
    """A store with the objects of a repository.

    Args:
        source: The repository.
        folder: Where the store is.
    """

    source: GitSource
    folder: Path
    _head: str | None = field(default="", init=False)
    # The files of the index, and the tree that was made of it, while the index is the same.
    _tracked: list[str] | None = field(default=None, init=False)
    _written: tuple[tuple[int, int, int], str] | None = field(default=None, init=False)
    # Loose objects of the repository that are in packs here.
    _packed: set[str] = field(default_factory=set, init=False)

    def make(self) -> None:
        """Make the store, in place of one that was there."""
        shutil.rmtree(self.folder, ignore_errors=True)
        make_bare(self.folder, self.source.object_format)
        self._head, self._tracked, self._written = "", None, None
        self._packed.clear()

    async def bring_objects(self) -> None:
        """Copy the objects that the repository has and the store has not.

        Raises:
            GitError: They cannot be read or written.
        """
        target = self.folder / "objects"
        try:
            while numbers := await asyncio.to_thread(self._list_many_loose):
                pack, packed = await asyncio.to_thread(self._write_pack, numbers)
                if pack is not None:
                    await self.git("index-pack", str(pack))
                    self._packed |= packed
                if len(packed) < _FEWEST_PACKED:
                    break
            await asyncio.to_thread(copy_objects, self.source.objects, target, self._packed)
        except OSError as err:
            raise GitError(f"The objects of {self.source.root} cannot be copied: {err}.") from err

    def _list_many_loose(self) -> list[str]:
        """Return the loose objects that the store has not, where they are many."""
        objects, target = self.source.objects, self.folder / "objects"
        found = [
            number
            for name in _fan_out(objects)
            for file in os.listdir(objects / name)
            if (number := name + file) not in self._packed and not (target / name / file).exists()
        ]
        return sorted(found) if len(found) >= _FEWEST_PACKED else []

    def _write_pack(self, numbers: Sequence[str]) -> tuple[Path | None, set[str]]:
        content, packed = make_pack(self.source.objects, numbers, self.source.object_format)
        if not packed:
            return None, packed
        folder = self.folder / "objects" / "pack"
        folder.mkdir(exist_ok=True)
        pack = folder / f"pack-{hashlib.sha256(content).hexdigest()[:40]}.pack"
        pack.write_bytes(content)
        return pack, packed

    async def stage(self, head: str | None) -> Staged:
        """Stage the working tree on top of a commit, None for none.

        Raises:
            GitError: git failed.
        """
        self._copy_lists()
        options = await self.source.settings()
        if head != self._head:
            await self._tree_git("read-tree", *(("--reset", head) if head is not None else ("--empty",)))
            self._head, self._tracked = head, None
        listed = await self._tree_git("ls-files", *_LISTED, *self._with_tracked(), options=options)
        tracked, new = _read_listing(listed)
        if self._tracked is None:
            self._tracked = tracked
        paths = [*self._tracked, *new]
        paths = [path for path in paths if OWN_FOLDER not in path.split("/")]
        filtered = await self._list_filtered(paths, options)
        await self._update(sorted({*paths} - {*filtered}), options)
        return Staged(tree=await self._tree(), filtered=tuple(sorted(filtered)))

    def _with_tracked(self) -> tuple[str, ...]:
        return ("--stage",) if self._tracked is None else ()

    async def _tree(self) -> str:
        """Return the tree of the index; git leaves the file as it is where nothing has changed."""
        if self._written is None or self._written[0] != _version(self.folder / "index"):
            self._tracked = None
            tree = (await self._tree_git("write-tree")).strip()
            # After it: git notes the tree in the index.
            self._written = (_version(self.folder / "index"), tree)
        return self._written[1]

    async def without(self, tree: str, paths: Sequence[str]) -> str:
        """Return a tree without some of its files."""
        # Only the index is used, but git wants a working tree for it.
        own = {"GIT_INDEX_FILE": str(self.folder / "index-without"), "GIT_WORK_TREE": str(self.folder)}
        await self.git("read-tree", tree, extra=own)
        names = _join_paths(paths)
        await self.git("update-index", "--force-remove", "-z", "--stdin", stdin=names, extra=own)
        return (await self.git("write-tree", extra=own)).strip()

    async def commit(self, tree: str, head: str | None) -> str:
        """Return a commit of a tree on top of another one; that one, where it has this tree."""
        if head is not None:
            committed = (await self.git("rev-parse", f"{head}^{{tree}}")).strip()
            if committed == tree:
                return head
        parents = () if head is None else ("-p", head)
        return (await self.git("commit-tree", tree, *parents, "-m", _MESSAGE, extra=_AUTHOR)).strip()

    def history_ends(self) -> str:
        """Return where the history of the repository ends: nothing where it is all there."""
        return read_history_ends(self.folder)

    async def files(self, tree: str) -> dict[str, TreeFile]:
        """Return every file of a tree or commit by its path, links too and submodules not.

        Raises:
            GitError: One of them is missing or damaged.
        """
        found = {}
        for line in (await self.git("ls-tree", "-r", "-z", "-l", "--full-tree", tree)).split("\0"):
            described, _, path = line.partition("\t")
            mode, kind, blob, size = (described.split() + [""] * 4)[:4]
            if kind == "blob" and not size.isdigit():
                raise GitError(f"The object {blob} cannot be read.")
            if kind == "blob":
                found[path] = TreeFile(blob=blob, size=int(size), mode=mode)
        return found

    async def git(
        self,
        *arguments: str,
        extra: dict[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> str:
        """Run git on the store.

        Raises:
            GitError: It failed.
        """
        return await run_git(self.command(*arguments, extra=extra, stdin=stdin))

    def command(
        self, *arguments: str, extra: dict[str, str] | None = None, stdin: bytes | None = None
    ) -> process.Command:
        """Return a command on the store."""
        own = {**OWN_SETTINGS, "GIT_DIR": str(self.folder), **(extra or {})}
        return git_command(arguments, self.folder, extra=own, stdin=stdin)

    async def _tree_git(
        self, *arguments: str, options: tuple[str, ...] = (), stdin: bytes | None = None
    ) -> str:
        """Run git on the working tree, with the store for its git folder."""
        own = {**OWN_SETTINGS, "GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self.source.root)}
        command = git_command((*options, *arguments), self.source.root, extra=own, stdin=stdin)
        return await run_git(command)

    def _copy_lists(self) -> None:
        for name in _COPIED:
            place = self.folder / name
            place.parent.mkdir(exist_ok=True)
            try:
                place.write_bytes((self.source.common_dir / name).read_bytes())
            except FileNotFoundError:
                place.unlink(missing_ok=True)
            except OSError as err:
                raise GitError(f"{self.source.common_dir / name} cannot be read: {err.strerror}.") from err

    async def _list_filtered(self, paths: Sequence[str], options: tuple[str, ...]) -> set[str]:
        """Return the files that have a filter, whether anyone has set it up or not."""
        asked = _join_paths(paths)
        said = await self._tree_git("check-attr", "-z", "--stdin", "filter", options=options, stdin=asked)
        fields = said.split("\0")
        return {
            path
            for path, value in zip(fields[0::3], fields[2::3], strict=False)
            if value not in ("unspecified", "unset", "set")
        }

    async def _update(self, paths: Sequence[str], options: tuple[str, ...]) -> None:
        asked = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        try:
            await self._tree_git(*asked, options=options, stdin=_join_paths(paths))
        except GitError:
            # git stops at the first file that it cannot read; such files stay as they were committed.
            usable = await asyncio.to_thread(self._usable, paths)
            if len(usable) == len(paths):
                raise
            await self._tree_git(*asked, options=options, stdin=_join_paths(usable))

    def _usable(self, paths: Sequence[str]) -> list[str]:
        return [path for path in paths if _can_be_read(self.source.root / path)]


def read_history_ends(git_dir: Path) -> str:
    """Return where the history of a git folder ends: nothing where it is all there."""
    try:
        return hashlib.sha256((git_dir / "shallow").read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
    except OSError as err:
        raise GitError(f"{git_dir / 'shallow'} cannot be read: {err.strerror}.") from err


def make_bare(folder: Path, object_format: str, *, more: str = "", head: str = "refs/heads/main") -> None:
    """Make an empty bare repository of our own, with the files that `git init` would write.

    Args:
        folder: Where.
        object_format: The hash of its objects.
        more: More of its settings.
        head: The ref that its HEAD names.
    """
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        os.makedirs(folder / name, mode=0o700, exist_ok=True)
    is_sha1 = object_format == "sha1"
    extension = "" if is_sha1 else f"[extensions]\n\tobjectformat = {object_format}\n"
    core = f"[core]\n\trepositoryformatversion = {0 if is_sha1 else 1}\n\tbare = true\n"
    (folder / "config").write_text(core + extension + more)
    (folder / "HEAD").write_bytes(f"ref: {head}\n".encode("utf-8", "surrogateescape"))


def _version(file: Path) -> tuple[int, int, int]:
    """Return what differs whenever git has written a file."""
    found = file.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def copy_objects(source: Path, target: Path, packed: Collection[str] = ()) -> None:
    """Copy the files of a store of objects that another one has not, nor among its packed ones.

    Objects never change, and files of objects have the name of what they hold. What git writes at this moment
    has another name, and what it removes at this moment is in another file by then.
    """
    for name in (*_fan_out(source), "pack"):
        place = source / name
        if not place.is_dir():
            continue
        there = target / name
        known = set(os.listdir(there)) if there.is_dir() else set()
        new = {file for file in os.listdir(place) if file not in known and name + file not in packed}
        if new:
            there.mkdir(exist_ok=True)
        # An index goes last: without its pack, git would complain of it.
        for file in sorted(new, key=lambda one: (one.endswith(".idx"), one)):
            is_wanted = (
                file.startswith("pack-") and file.endswith((".pack", ".idx")) if name == "pack" else True
            )
            if is_wanted and not file.startswith("tmp_"):
                _copy(place / file, there)


def _fan_out(objects: Path) -> list[str]:
    """Return the names of the folders that hold loose objects."""
    return sorted(name for name in os.listdir(objects) if len(name) == _FAN_OUT)


def _copy(file: Path, folder: Path) -> None:
    half = folder / f"tmp_{file.name}"
    try:
        shutil.copyfile(file, half, follow_symlinks=False)
    except FileNotFoundError:
        return
    os.replace(half, folder / file.name)


def _read_listing(listed: str) -> tuple[list[str], list[str]]:
    """Return the files of an index, without submodules, and the new files that are not in it."""
    tracked, new = [], []
    for line in listed.split("\0"):
        # git itself says which is which: a new file can have any name.
        if line.startswith(_NEW):
            new.append(line.removeprefix(_NEW))
        elif line and not line[len(_NEW) :].startswith(_MODULE):
            tracked.append(line.partition("\t")[2])
    return tracked, [path for path in new if path[-1] != "/"]


def _join_paths(paths: Iterable[str]) -> bytes:
    return "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")


def _can_be_read(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and os.access(path, os.R_OK))
