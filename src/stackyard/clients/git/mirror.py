"""A bare copy of someone's repository that also has their uncommitted work, as the branch `_working`.

Their index, refs and objects are only read. The work is staged in a store of our own that is never served
(`staging`), and everything that can be reached is checked there (`history`). Only what was found clean goes
to the copy, so that nothing else can be had from it, by whatever name or number. Ignored files are never in
it. Objects stay in the copy, so that a client that began with an older state can finish; they go as soon as
something has to be held back that was not before.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.clients.git.blobs import describe_objects, read_objects
from stackyard.clients.git.history import HistoryCheck, HistoryTips
from stackyard.clients.git.refusal import describe_damage, object_files_state, refs_state
from stackyard.clients.git.run import (
    FILE_PROTOCOL,
    OWN_SETTINGS,
    GitError,
    git_command,
    run_git,
    stream_git,
)
from stackyard.clients.git.source import open_source
from stackyard.clients.git.staging import Staging, TreeFile, make_bare, read_history_ends
from stackyard.clients.git.verdicts import Refusal, Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from stackyard.clients.git.history import OnChecked, Sift, Taint
    from stackyard.clients.git.source import GitSource
    from stackyard.clients.git.staging import Staged

__all__ = ["WORKING", "Mirror", "MirrorSnapshot", "TreeFile"]

WORKING = "refs/heads/_working"
_REGULAR = ("100644", "100755")
_PUBLISHED = "refs/publish/"
_SETTINGS = """[uploadpack]
\tallowFilter = true
\tallowTipSHA1InWant = false
\tallowReachableSHA1InWant = false
\tallowAnySHA1InWant = false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSnapshot:
    """A state of a repository that can be served.

    Attributes:
        state: Differs whenever any ref differs.
        working: The commit of the branch `_working`.
        files: Its regular files by path: no link, no submodule.
        held_back: Files of the working tree that were left out because they hold secrets.
        tainted: What of the history holds secrets, as `branch:path`; nothing is served then.
        filtered: Files that git would have to pass through a filter: as committed, or left out.
        left_out: Refs that lead to something else than a commit, which cannot be checked.
    """

    state: str
    working: str
    files: Mapping[str, TreeFile]
    held_back: tuple[str, ...] = ()
    tainted: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class Mirror:
    """A bare copy.

    Args:
        source: The top of the working tree of the repository.
        bare: Where the copy is; made by the first `refresh`. The store that is not served is beside it.
        sift: Tells what must not leave the machine.
        rules_name: How files are called that have rules for it.
        verdicts: What is known from an earlier copy of it.
        on_checked: Told how far the check is, whenever something was found out that was not known.
    """

    source: Path
    bare: Path
    sift: Sift
    rules_name: str = ".sops.yaml"
    verdicts: Verdicts = field(default_factory=Verdicts)
    on_checked: OnChecked = lambda done, total: None
    _source: GitSource | None = field(default=None, init=False)
    _trusts_damage: bool = field(default=True, init=False)
    _staging: Staging | None = field(default=None, init=False)
    _check: HistoryCheck | None = field(default=None, init=False)
    _seen: tuple[Mapping[str, str], Staged, str] | None = field(default=None, init=False)
    _snapshot: MirrorSnapshot | None = field(default=None, init=False)

    async def refresh(self) -> MirrorSnapshot:
        """Bring the copy up to date with the repository, and return its state. One call at a time.

        Raises:
            GitError: The repository is gone or damaged, git does not trust it, or it cannot be checked.
        """
        if self._source is None:
            self._source = await open_source(self.source)
        source = self._source
        refs = await source.refs()
        # A branch of theirs that is called as ours would be taken for it.
        refs.pop(WORKING, None)
        state = refs_state(refs, read_history_ends(source.common_dir))
        refusal = self.verdicts.refusal
        if refusal is not None and refusal.tainted and refusal.rules is None and refusal.state == state:
            return self._make_refused_snapshot(refs, refusal)
        files_state = await self._require_undamaged(source, refs, state)
        try:
            return await self._refresh(refs)
        except GitError as err:
            damage = describe_damage(err, source, self._staging_folder)
            # What git changed meanwhile may be all that was wrong.
            if damage and files_state == await asyncio.to_thread(object_files_state, source, state):
                self.verdicts.refusal = Refusal(state=files_state, damage=damage)
            raise

    async def _require_undamaged(self, source: GitSource, refs: Mapping[str, str], state: str) -> str:
        """Return what names the files of its objects, where they are about to be read.

        Raises:
            GitError: An earlier process could not read these same files.
        """
        # Only once: the caller again later has it checked, whatever made it fail then.
        trusts_damage, self._trusts_damage = self._trusts_damage, False
        if self._seen is not None and refs == self._seen[0]:
            return ""
        files_state = await asyncio.to_thread(object_files_state, source, state)
        refusal = self.verdicts.refusal
        if trusts_damage and refusal is not None and refusal.damage and refusal.state == files_state:
            raise GitError(refusal.damage)
        return files_state

    async def _refresh(self, refs: Mapping[str, str]) -> MirrorSnapshot:
        staging, check = await self._open_staging()
        if self._seen is None or refs != self._seen[0]:
            await staging.bring_objects()
        staged = await staging.stage(refs.get("HEAD"))
        known = self._snapshot
        is_there = (self.bare / "HEAD").exists() or (known is not None and bool(known.tainted))
        seen = (refs, staged, staging.history_ends())
        if known is not None and is_there and self._seen == seen:
            return known
        if self._seen is not None and self._seen[2] != seen[2]:
            await staging.bring_objects()
        files = await staging.files(staged.tree)
        today = check.rules_of(files)
        held_back = await check.secret_files(files)
        state, refusal = refs_state(refs, seen[2]), self.verdicts.refusal
        if refusal is not None and refusal.tainted and (refusal.state, refusal.rules) == (state, today):
            return self._make_refused_snapshot(refs, refusal, held_back)
        taint, snapshot = await self._publish(refs, staged, files, held_back)
        rules = None if taint.is_lasting else today
        self.verdicts.refusal = (
            Refusal(state=state, tainted=snapshot.tainted, rules=rules) if snapshot.tainted else None
        )
        self._seen, self._snapshot = seen, snapshot
        return snapshot

    async def _publish(
        self, refs: Mapping[str, str], staged: Staged, files: Mapping[str, TreeFile], held_back: Sequence[str]
    ) -> tuple[Taint, MirrorSnapshot]:
        """Check the history, and bring to the copy what is clean."""
        staging, check = await self._open_staging()
        tree = await staging.without(staged.tree, held_back) if held_back else staged.tree
        working = await staging.commit(tree, refs.get("HEAD"))
        tips, left_out = await self._tips(staging, refs)
        taint = await check.find_taint(tips, check.rules_of(files))
        snapshot = MirrorSnapshot(
            state=_state({**refs, WORKING: working}),
            working=working,
            files=_regular(files, held_back),
            held_back=_format_names(held_back),
            tainted=_format_names(taint.names),
            filtered=_format_names(staged.filtered),
            left_out=left_out,
        )
        await self._bring(staging, snapshot, {**_only(refs, tips), WORKING: working})
        return taint, snapshot

    def _make_refused_snapshot(
        self, refs: Mapping[str, str], refusal: Refusal, held_back: Sequence[str] = ()
    ) -> MirrorSnapshot:
        """Return the state of a repository of which it is known that nothing may be served."""
        shutil.rmtree(self.bare, ignore_errors=True)
        self._seen = None
        self._snapshot = MirrorSnapshot(
            state=_state(refs),
            working="",
            files={},
            held_back=_format_names(held_back),
            tainted=refusal.tainted,
        )
        return self._snapshot

    async def advertise(self, protocol: str) -> bytes:
        """Return the first answer to a client of the smart protocol."""
        told = bytearray()
        await self._upload_pack(("--advertise-refs",), b"", protocol, told.extend)
        return bytes(told)

    async def upload_pack(self, asked: bytes, protocol: str, on_bytes: process.OnBytes) -> bool:
        """Answer a client of the smart protocol, and return whether git was content with what it asked."""
        return await self._upload_pack((), asked, protocol, on_bytes)

    async def read_blob(self, blob: str, on_bytes: process.OnBytes) -> None:
        """Pass on the content of a file.

        Raises:
            GitError: There is none.
        """
        await stream_git(self._command("cat-file", "blob", blob), on_bytes)

    async def _upload_pack(
        self, options: Sequence[str], asked: bytes, protocol: str, on_bytes: process.OnBytes
    ) -> bool:
        command = self._command(
            *("upload-pack", "--stateless-rpc", "--strict", *options, str(self.bare)),
            extra={"GIT_PROTOCOL": protocol} if protocol else {},
            stdin=asked,
        )
        return (await process.run(command, on_bytes=on_bytes, check=False)).returncode == 0

    # --- The steps

    @property
    def _staging_folder(self) -> Path:
        return self.bare.with_name(f"{self.bare.name}.staging")

    async def _open_staging(self) -> tuple[Staging, HistoryCheck]:
        """Return the store that is not served, made where it is not there, and what checks it."""
        folder = self._staging_folder
        if self._staging is None or self._check is None or not (folder / "HEAD").exists():
            self._source = self._source or await open_source(self.source)
            staging = Staging(self._source, folder)
            staging.make()
            check = HistoryCheck(staging, self.sift, self.rules_name, self.verdicts, self.on_checked)
            self._staging, self._check = staging, check
            self._seen = None
        return self._staging, self._check

    async def _tips(self, staging: Staging, refs: Mapping[str, str]) -> tuple[HistoryTips, tuple[str, ...]]:
        """Return the commits that refs lead to, and the refs that lead to none."""
        kinds, targets = await _follow_tags(staging, refs.values())
        commits, tags, left_out = {}, [], []
        for name, number in refs.items():
            target, chain = number, []
            while kinds[target] == "tag":
                chain.append(target)
                target = targets[target]
            if kinds[target] == "commit":
                commits[name] = target
                tags += chain
            else:
                left_out.append(name)
        return HistoryTips(commits=commits, tags=tuple(dict.fromkeys(tags))), tuple(sorted(left_out))

    async def _bring(self, staging: Staging, snapshot: MirrorSnapshot, refs: Mapping[str, str]) -> None:
        """Bring what was found clean to the copy; nothing, where something was not."""
        before = self._snapshot
        is_less = before is not None and set(snapshot.held_back) - set(before.held_back)
        if snapshot.tainted or is_less:
            # What was clean yesterday may not be by the rules of today.
            shutil.rmtree(self.bare, ignore_errors=True)
        if snapshot.tainted:
            return
        branch = staging.source.branch()
        head = branch if branch in refs else WORKING
        if (self.bare / "HEAD").exists():
            try:
                await self._fetch(staging, refs, head)
                return
            except GitError:
                # Such as a branch `a` in place of `a/b`; a new copy has nothing in its way.
                shutil.rmtree(self.bare, ignore_errors=True)
        await self._make_copy(staging, refs, head)

    async def _make_copy(self, staging: Staging, refs: Mapping[str, str], head: str) -> None:
        """Make the copy: all that the refs lead to in one pack, and the refs in one file."""
        half = self.bare.with_name(f"{self.bare.name}.half")
        shutil.rmtree(half, ignore_errors=True)
        make_bare(half, staging.source.object_format, more=_SETTINGS, head=head)
        wanted = "".join(f"{number}\n" for number in sorted(set(refs.values()))).encode()
        pack = half / "objects" / "pack" / "pack"
        options = ("--revs", "--delta-base-offset", "--quiet", str(pack))
        number = (await staging.git("pack-objects", *options, stdin=wanted)).strip()
        try:
            # Objects are packed without a look whether they are what their numbers say.
            await staging.git("verify-pack", f"{pack}-{number}.idx")
        except GitError as err:
            raise GitError(f"An object of {self.source} is not what its number says.") from err
        if staging.history_ends():
            shutil.copyfile(staging.folder / "shallow", half / "shallow")
        rows = "".join(f"{number} {name}\n" for name, number in sorted(refs.items()))
        (half / "packed-refs").write_bytes(rows.encode("utf-8", "surrogateescape"))
        await self._bare_git("update-server-info", folder=half)
        os.replace(half, self.bare)

    async def _fetch(self, staging: Staging, refs: Mapping[str, str], head: str) -> None:
        """Bring what is new to the copy, all refs at once."""
        await _set_refs(staging, refs)
        await self._bare_git(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--atomic", "--prune"),
            *("--update-shallow", "--update-head-ok", str(staging.folder), f"+{_PUBLISHED}*:refs/*"),
            extra=FILE_PROTOCOL,
        )
        await self._bare_git("symbolic-ref", "HEAD", head)
        await self._bare_git("update-server-info")

    def _command(
        self,
        *arguments: str,
        folder: Path | None = None,
        extra: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> process.Command:
        folder = folder or self.bare
        own = {**OWN_SETTINGS, "GIT_DIR": str(folder), **(extra or {})}
        return git_command(arguments, folder, extra=own, stdin=stdin)

    async def _bare_git(
        self, *arguments: str, folder: Path | None = None, extra: Mapping[str, str] | None = None
    ) -> str:
        return await run_git(self._command(*arguments, folder=folder, extra=extra))


async def _follow_tags(staging: Staging, numbers: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kind of objects and of all that tags among them name, and what each tag names.

    However many tags there are, git is asked twice for each step from a tag to a tag.
    """
    make = lambda arguments, stdin: staging.command(*arguments, stdin=stdin)  # noqa: E731 - as it is called
    kinds: dict[str, str] = {}
    targets: dict[str, str] = {}
    asked = set(numbers)
    while asked:
        # The kind that an object itself has, and not the one that a tag gives it.
        found = await describe_objects(make, sorted(asked))
        kinds |= {one.number: one.kind for one in found}
        tags = [one for one in found if one.kind == "tag"]
        async for batch in read_objects(make, tags):
            targets |= {one.number: _read_tag_target(content) for one, content in batch}
        asked = {targets[one.number] for one in tags} - kinds.keys()
    return kinds, targets


def _regular(files: Mapping[str, TreeFile], held_back: Sequence[str]) -> dict[str, TreeFile]:
    kept = files.keys() - set(held_back)
    return {path: file for path, file in files.items() if path in kept and file.mode in _REGULAR}


def _read_tag_target(tag: bytes) -> str:
    """Return the number of what a tag object names."""
    word, _, number = tag.partition(b"\n")[0].partition(b" ")
    if word != b"object":
        raise GitError("A tag names no object.")
    return number.decode("ascii", "replace")


async def _set_refs(staging: Staging, refs: Mapping[str, str]) -> None:
    """Make the refs that are to be published the only ones of the store."""
    listed = await staging.git("for-each-ref", "--format=%(refname)", _PUBLISHED)
    wanted = {name.replace("refs/", _PUBLISHED, 1): number for name, number in refs.items()}
    gone = [f"delete {name}\n" for name in listed.splitlines() if name not in wanted]
    new = [f"update {name} {number}\n" for name, number in wanted.items()]
    # One after the other: `a` may go and `a/b` come.
    for changes in (gone, new):
        if changes:
            stdin = "".join(changes).encode("utf-8", "surrogateescape")
            await staging.git("update-ref", "--stdin", stdin=stdin)


def _only(refs: Mapping[str, str], tips: HistoryTips) -> dict[str, str]:
    return {name: number for name, number in refs.items() if name in tips.commits and name != "HEAD"}


def _state(refs: Mapping[str, str]) -> str:
    described = "\n".join(f"{name} {number}" for name, number in sorted(refs.items()))
    return hashlib.sha256(described.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _format_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as anyone can print them."""
    return tuple(name.encode("utf-8", "surrogateescape").decode(errors="replace") for name in names)
