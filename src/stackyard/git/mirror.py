"""A bare copy of somebody's repository that also has their uncommitted work, as the branch `_working`.

Their index, refs and objects are only read: the work is staged in an index of our own, and every object that
comes of it is written to the copy. Ignored files are never in it. Objects stay in the copy, so that a client
that began with an older state can finish.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard import process
from stackyard.git.repository import GitError, Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WORKING", "Mirror", "Snapshot", "TreeFile"]

WORKING = "refs/heads/_working"
_HEAD = "refs/stackyard/head"
_TIMEOUT_S = 300.0
_REGULAR = ("100644", "100755")
_LARGEST_SIFTED_BYTES = 2 * 2**20
# Nothing of the user's settings may start programs of theirs, or keep notes in their repository.
_QUIETLY = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.addEmbeddedRepo=false"),
)
# What stackyard itself keeps in a site, keys among it, whether git ignores it or not.
_OWN_FOLDER = ".stackyard"
_EVERYTHING = (".", f":(exclude,glob)**/{_OWN_FOLDER}", f":(exclude,glob)**/{_OWN_FOLDER}/**")

# Given texts by path, returns the paths of those that must not leave the machine.
Sift = Callable[[Mapping[str, str]], Collection[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A regular file of a commit."""

    blob: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A state of a repository that can be served.

    Attributes:
        state: Differs whenever any ref differs.
        working: The commit of the branch `_working`.
        files: Its regular files by path: no link, no submodule.
        held_back: Files of the working tree that were left out because they hold secrets.
        tainted: Files of committed branches that hold secrets, as `branch:path`.
    """

    state: str
    working: str
    files: Mapping[str, TreeFile]
    held_back: tuple[str, ...] = ()
    tainted: tuple[str, ...] = ()


@dataclass(slots=True)
class Mirror:
    """A bare copy.

    Args:
        source: The top of the working tree of the repository.
        bare: Where the copy is; made by the first `refresh`.
        sift: Tells files that must not leave the machine.
    """

    source: Path
    bare: Path
    sift: Sift
    _git_dir: Path = field(default_factory=Path, init=False)
    _refs: dict[str, str] | None = field(default=None, init=False)
    _sifted: dict[tuple[str, str], bool] = field(default_factory=dict, init=False)
    _snapshot: Snapshot | None = field(default=None, init=False)
    _tree: str = field(default="", init=False)
    # The tree of everything, the one of what may leave the machine, and the difference.
    _staged: tuple[str, str, tuple[str, ...]] = field(default=("", "", ()), init=False)
    _taints: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)

    async def refresh(self) -> Snapshot:
        """Bring the copy up to date with the repository, and return its state. One call at a time.

        Raises:
            GitError: The repository is gone or damaged, or git does not trust it.
        """
        is_new = not (self.bare / "HEAD").exists()
        if is_new:
            await self._make()
        refs = await self._source_refs()
        are_new = refs != self._refs
        if are_new:
            await self._fetch(refs)
        tree, held_back = await self._stage(refs, is_new_head=are_new)
        known = self._snapshot
        if known is not None and not are_new and tree == self._tree and known.held_back == held_back:
            return known
        working = await self._commit(tree, refs.get("HEAD"))
        await self._publish(refs, working)
        if is_new:
            await self._bare_git("repack", "-a", "-d", "-q")
        await self._bare_git("update-server-info")
        self._refs, self._tree = refs, tree
        described = "\n".join(
            f"{name} {commit}" for name, commit in sorted({**refs, WORKING: working}.items())
        )
        self._snapshot = Snapshot(
            state=hashlib.sha256(described.encode()).hexdigest()[:16],
            working=working,
            files=await self._files(working),
            held_back=held_back,
            tainted=await self._tainted(refs),
        )
        return self._snapshot

    async def advertise(self, protocol: str) -> bytes:
        """Return what a client of the smart protocol is told first."""
        told = bytearray()
        await self._upload_pack(("--advertise-refs",), b"", protocol, told.extend)
        return bytes(told)

    async def upload_pack(self, asked: bytes, protocol: str, on_bytes: process.OnBytes) -> bool:
        """Answer a client of the smart protocol, and tell whether git was content with what it asked."""
        return await self._upload_pack((), asked, protocol, on_bytes)

    async def read_blob(self, blob: str, on_bytes: process.OnBytes) -> None:
        """Hand on the content of a file.

        Raises:
            GitError: There is none.
        """
        await self._bare_git("cat-file", "blob", blob, on_bytes=on_bytes)

    async def _upload_pack(
        self, options: Sequence[str], asked: bytes, protocol: str, on_bytes: process.OnBytes
    ) -> bool:
        command = process.Command(
            argv=("git", "upload-pack", "--stateless-rpc", "--strict", *options, str(self.bare)),
            env=_environment({"GIT_PROTOCOL": protocol} if protocol else {}),
            stdin=asked,
            timeout_s=_TIMEOUT_S,
            grace_s=0.5,
        )
        return (await process.run(command, on_bytes=on_bytes, check=False)).returncode == 0

    # --- The steps

    async def _make(self) -> None:
        self._refs, self._snapshot, self._staged = None, None, ("", "", ())
        asked = (
            "rev-parse",
            "--path-format=absolute",
            "--git-dir",
            "--show-toplevel",
            "--show-object-format",
        )
        answer = await _git(asked, self.source)
        git_dir, top, form = answer.splitlines()
        if not _is_same(Path(top), self.source):
            raise GitError(f"{self.source} is inside the repository {top}, and not one itself.")
        self._git_dir = Path(git_dir)
        self.bare.mkdir(mode=0o700, parents=True, exist_ok=True)
        init = ("init", "--bare", "--quiet", "--template=", f"--object-format={form}", str(self.bare))
        await _git(init, self.bare)
        for name, value in (("uploadpack.allowFilter", "true"), ("uploadpack.hideRefs", "refs/stackyard")):
            await self._bare_git("config", name, value)

    async def _source_refs(self) -> dict[str, str]:
        """Return the branches, the tags and HEAD of the repository; without a commit there is none."""
        command = _command(("show-ref", "--head", "--heads", "--tags"), self.source)
        ended = await process.run(command, check=False)
        if ended.returncode != 0 and ended.stderr.strip():
            raise GitError(ended.stderr.strip())
        found = {}
        for line in ended.stdout.splitlines():
            commit, _, name = line.partition(" ")
            if name == "HEAD" or name.startswith(("refs/heads/", "refs/tags/")):
                found[name] = commit
        # A branch of theirs that is called as ours would be taken for it.
        found.pop(WORKING, None)
        return found

    async def _fetch(self, refs: Mapping[str, str]) -> None:
        if not refs:
            return
        specs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", f"^{WORKING}"]
        if "HEAD" in refs:
            specs.append(f"+HEAD:{_HEAD}")
        await self._bare_git(
            *("-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"),
            *("--update-shallow", "--update-head-ok", str(self._git_dir), *specs),
        )

    async def _stage(self, refs: Mapping[str, str], *, is_new_head: bool) -> tuple[str, tuple[str, ...]]:
        """Put the working tree into an index of our own; return its tree, and what was held back."""
        if is_new_head:
            await self._own_index("read-tree", *(("--reset", "HEAD") if "HEAD" in refs else ("--empty",)))
        await self._own_index("add", "--all", "--ignore-errors", "--", *_EVERYTHING, check=False)
        staged = tree = (await self._own_index("write-tree")).strip()
        if staged == self._staged[0]:
            return self._staged[1:]
        held_back = await self._secret_files(tree)
        if held_back:
            paths = "".join(f"{path}\0" for path in held_back).encode()
            await self._own_index("update-index", "--force-remove", "-z", "--stdin", stdin=paths)
            tree = (await self._own_index("write-tree")).strip()
        self._staged = (staged, tree, held_back)
        return tree, held_back

    async def _commit(self, tree: str, head: str | None) -> str:
        if head is not None:
            committed = (await self._bare_git("rev-parse", f"{head}^{{tree}}")).strip()
            if committed == tree:
                return head
        who = {
            f"GIT_{role}_{part}": "stackyard"
            for role in ("AUTHOR", "COMMITTER")
            for part in ("NAME", "EMAIL")
        }
        parents = () if head is None else ("-p", head)
        message = ("-m", "The working tree, with what is not committed")
        return (await self._bare_git("commit-tree", tree, *parents, *message, extra=who)).strip()

    async def _publish(self, refs: Mapping[str, str], working: str) -> None:
        """Make the refs of the copy those of the repository, all at once."""
        there = (
            await self._bare_git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags")
        ).split()
        gone = [name for name in there if name not in refs and name != WORKING]
        changes = [f"update {WORKING} {working}", *(f"delete {name}" for name in gone)]
        await self._bare_git("update-ref", "--stdin", stdin="".join(f"{one}\n" for one in changes).encode())
        try:
            said = (self._git_dir / "HEAD").read_text().strip()
        except OSError:
            said = ""
        branch = said.removeprefix("ref: ")
        await self._bare_git("symbolic-ref", "HEAD", branch if branch in refs else WORKING)

    # --- What is in them

    async def _files(self, tree: str) -> dict[str, TreeFile]:
        found = {}
        for line in (await self._bare_git("ls-tree", "-r", "-z", "-l", "--full-tree", tree)).split("\0"):
            described, _, path = line.partition("\t")
            mode, kind, blob, size = (described.split() + [""] * 4)[:4]
            if kind == "blob" and mode in _REGULAR:
                found[path] = TreeFile(blob=blob, size=int(size))
        return found

    async def _secret_files(self, tree: str) -> tuple[str, ...]:
        """Return the files of a tree that must not leave the machine; each content is looked at once."""
        files = await self._files(tree)
        own = [path for path in files if _OWN_FOLDER in path.split("/")]
        new = {path: file for path, file in files.items() if (path, file.blob) not in self._sifted}
        if new:
            copy = Repository(root=self.bare, hooks=self.bare / "hooks")
            blobs = (file.blob for file in new.values())
            texts = await copy.contents(blobs, largest_bytes=_LARGEST_SIFTED_BYTES)
            kept_back = set(
                self.sift({path: texts[file.blob] for path, file in new.items() if file.blob in texts})
            )
            self._sifted |= {(path, file.blob): path in kept_back for path, file in new.items()}
        secret = [path for path, file in files.items() if self._sifted[path, file.blob]]
        return tuple(sorted({*own, *secret}))

    async def _tainted(self, refs: Mapping[str, str]) -> tuple[str, ...]:
        found = []
        for commit, name in {commit: name for name, commit in refs.items() if name != "HEAD"}.items():
            found += [
                f"{name.removeprefix('refs/heads/')}:{path}" for path in await self._secret_files(commit)
            ]
        return tuple(sorted(found))

    # --- Running git

    async def _own_index(self, *arguments: str, stdin: bytes | None = None, check: bool = True) -> str:
        """Run git in the repository, with an index and a place for new objects that are ours."""
        extra = {
            "GIT_DIR": str(self._git_dir),
            "GIT_WORK_TREE": str(self.source),
            "GIT_INDEX_FILE": str(self.bare / "stackyard-index"),
            "GIT_OBJECT_DIRECTORY": str(self.bare / "objects"),
        }
        return await _git(arguments, self.source, extra=extra, stdin=stdin, check=check)

    async def _bare_git(
        self,
        *arguments: str,
        extra: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        on_bytes: process.OnBytes | None = None,
    ) -> str:
        own = {"GIT_DIR": str(self.bare), **(extra or {})}
        return await _git(arguments, self.bare, extra=own, stdin=stdin, on_bytes=on_bytes)


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    return process.environment(
        {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", **extra}
    )


def _command(
    arguments: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None, stdin: bytes | None = None
) -> process.Command:
    return process.Command(
        argv=("git", *_QUIETLY, *arguments),
        env=_environment(extra or {}),
        cwd=folder,
        stdin=stdin,
        timeout_s=_TIMEOUT_S,
        output_limit_bytes=512 * 2**20,
        grace_s=0.5,
    )


async def _git(
    arguments: Sequence[str],
    folder: Path,
    *,
    extra: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    on_bytes: process.OnBytes | None = None,
    check: bool = True,
) -> str:
    try:
        command = _command(arguments, folder, extra, stdin)
        return (await process.run(command, on_bytes=on_bytes, check=check)).stdout
    except process.ProcessFailedError as err:
        raise GitError(err.detail) from err
