"""Looking through everything that would be published: each version of each file, commits and tags.

What a file may hold depends on its path, and on rules that are in the same tree (`.sops.yaml`). Each version
of a file is therefore checked under each of its paths, with the rules of the commit that brought it and with
those of today. What was checked is remembered by number, so that a change costs what it changes. At the end,
every content that can be reached must be one that was checked: a tree that hides a file from one command of
git and shows it to another one publishes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.git.blobs import ObjectInfo, describe_objects, read_objects
from stackyard.clients.git.run import GitError, run_git, stream_git
from stackyard.clients.git.staging import OWN_FOLDER
from stackyard.clients.git.verdicts import Pair, Rules, Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.base import process
    from stackyard.clients.git.staging import Staging, TreeFile

__all__ = ["Candidate", "HistoryCheck", "HistoryTips", "OnChecked", "Sift", "Taint"]

# Larger contents are not read: data is published, and a text of this size is not.
_LARGEST_BYTES = 64 * 2**20
# How much of a content says whether it is data, as git itself decides it.
_HEAD_BYTES = 8000
_MODULE = "160000"
# How many contents are checked between two reports of how far the check is.
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may hold a secret: a version of a file, or with no path the text of a commit or tag."""

    path: str
    content: bytes


# Given candidates and the texts of rules by their paths, tells of each whether it must stay on the machine.
Sift = Callable[[Sequence[Candidate], Mapping[str, bytes]], Awaitable[Sequence[bool]]]

# Told how many of how many contents were checked.
OnChecked = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryTips:
    """Where everything that would be published begins.

    Attributes:
        commits: Commits by the refs that lead to them.
        tags: The numbers of tag objects on the way.
    """

    commits: Mapping[str, str]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Taint:
    """What of a history must not leave the machine.

    Attributes:
        names: Each place, as `branch:path`; none for a clean history.
        is_lasting: Whether it must not whatever the rules of the working tree are.
    """

    names: tuple[str, ...] = ()
    is_lasting: bool = False


@dataclass(slots=True)
class _WalkResult:
    """What a walk over commits has found, before anything is checked.

    Attributes:
        pairs: Versions of files by the rules that hold for them.
        brought: The commit that brought each.
        commits: All commits.
    """

    pairs: dict[Rules, set[Pair]] = field(default_factory=dict)
    brought: dict[Pair, str] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)

    def add(self, rules: Rules, pair: Pair, commit: str) -> None:
        self.pairs.setdefault(rules, set()).add(pair)
        self.brought.setdefault(pair, commit)


class HistoryCheck:
    """Checks a repository, and remembers what was checked.

    Args:
        staging: The store that holds all objects.
        sift: Tells what must not leave the machine.
        rules_name: How files with rules are called.
        verdicts: What is known from before; all that is found out is added to it.
        on_checked: Told how far the check is, whenever something was found out that was not known.
    """

    def __init__(
        self,
        staging: Staging,
        sift: Sift,
        rules_name: str,
        verdicts: Verdicts | None = None,
        on_checked: OnChecked = lambda done, total: None,
    ) -> None:
        self._staging = staging
        self._sift = sift
        self._rules_name = rules_name
        self.verdicts = verdicts or Verdicts()
        self._verdicts, self._texts = self.verdicts.files, self.verdicts.texts
        self._rules_at = self.verdicts.rules_at
        self._on_checked = on_checked
        self._blobs = {blob for _, (_, blob) in self._verdicts}

    async def secret_files(self, files: Mapping[str, TreeFile]) -> tuple[str, ...]:
        """Return the files of a tree that must not leave the machine."""
        rules = self.rules_of(files)
        pairs = {(path, file.blob) for path, file in files.items()}
        await self._judge(rules, pairs)
        return tuple(sorted(path for path, blob in pairs if self._verdicts[rules, (path, blob)]))

    def rules_of(self, files: Mapping[str, TreeFile]) -> Rules:
        """Return the rules of a tree."""
        return frozenset((path, file.blob) for path, file in files.items() if self._is_rules(path))

    async def find_taint(self, tips: HistoryTips, today: Rules) -> Taint:
        """Return what must not leave the machine of all that can be reached.

        Args:
            tips: Where to begin.
            today: The rules of the working tree, which hold for all that was ever committed.

        Raises:
            GitError: An object is missing or damaged, or is reached in a way that cannot be checked.
        """
        ends = self._staging.history_ends()
        before = frozenset[str]()
        if self.verdicts.clean_with == (today, ends):
            if self._is_known_clean(tips):
                return Taint()
            before = await self._list_present(self.verdicts.clean)
        found = await self._walk(set(tips.commits.values()), before)
        everything = set(found.brought)
        for rules, pairs in [*found.pairs.items(), (today, everything)]:
            await self._judge(rules, pairs)
        await self._judge_texts([*found.commits, *tips.tags])
        bad = {pair for rules, pairs in found.pairs.items() for pair in pairs if self._verdicts[rules, pair]}
        texts = [number for number in (*found.commits, *tips.tags) if self._texts[number]]
        is_lasting = bool(bad or texts)
        bad |= {pair for pair in everything if self._verdicts[today, pair]}
        if bad or texts:
            return Taint(await self._name_findings(tips, bad, found, texts), is_lasting)
        await self._require_checked(set(tips.commits.values()), before)
        self.verdicts.clean = frozenset(tips.commits.values())
        self.verdicts.clean_with = (today, ends)
        return Taint()

    def _is_known_clean(self, tips: HistoryTips) -> bool:
        is_clean = self.verdicts.clean.issuperset(tips.commits.values())
        return is_clean and all(self._texts.get(tag) is False for tag in tips.tags)

    async def _list_present(self, commits: frozenset[str]) -> frozenset[str]:
        """Return those of some commits that the store has: a branch may be gone since they were checked."""
        if not commits:
            return commits
        asked = "".join(f"{one}\n" for one in sorted(commits))
        listed = await self._git(("cat-file", "--batch-check=%(objectname) %(objecttype)"), asked)
        return frozenset(line.split(" ")[0] for line in listed.splitlines() if line.endswith(" commit"))

    # --- What there is

    async def _walk(self, tips: set[str], clean: frozenset[str]) -> _WalkResult:
        """Return every version of every file in commits that are not known to be clean."""
        found = _WalkResult()
        listed = await self._git(
            ("rev-list", "--topo-order", "--reverse", "--parents", "--stdin"), _revisions(tips, clean)
        )
        rows = [line.split(" ")[:2] for line in listed.splitlines()]
        if not rows:
            return found
        found.commits = [row[0] for row in rows]
        parents = {row[0]: row[1] for row in rows if len(row) > 1}
        asked = "".join(f"{' '.join(row)}\n" for row in rows)
        command = ("diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--raw")
        changes = _changes(await self._git(command, asked))
        for commit in found.commits:
            await self._add_commit(found, commit, parents.get(commit), changes.get(commit, {}))
        return found

    async def _add_commit(
        self, found: _WalkResult, commit: str, parent: str | None, changed: Mapping[str, str | None]
    ) -> None:
        before = frozenset() if parent is None else self._rules_at.get(parent)
        if before is None:
            # A parent that was never walked, such as one behind the end of a shallow history.
            before = self.rules_of(await self._staging.files(commit))
        own = {path: blob for path, blob in changed.items() if self._is_rules(path)}
        kept = {(path, blob) for path, blob in before if path not in own}
        rules = frozenset(kept | {(path, blob) for path, blob in own.items() if blob is not None})
        self._rules_at[commit] = rules
        for path, blob in changed.items():
            if blob is not None:
                found.add(rules, (path, blob), commit)
        if rules != before:
            for path, file in (await self._staging.files(commit)).items():
                found.add(rules, (path, file.blob), commit)

    async def _require_checked(self, tips: set[str], clean: frozenset[str]) -> None:
        """Refuse what can be reached and was not among the files that were checked."""
        kinds = ("--objects", "--no-object-names", "--filter=object:type=blob", "--filter-provided-objects")
        listed = await self._git(("rev-list", *kinds, "--stdin"), _revisions(tips, clean))
        missed = set(listed.split()) - self._blobs
        if missed:
            raise GitError(f"{len(missed)} contents cannot be checked, such as {min(missed)}.")

    async def _name_findings(
        self, tips: HistoryTips, bad: set[Pair], found: _WalkResult, texts: Iterable[str]
    ) -> tuple[str, ...]:
        """Return names for what was found: by a branch that has it now, or the commit that brought it."""
        names = [f"{number[:12]} (its text)" for number in texts]
        left = set(bad)
        for commit, ref in {commit: ref for ref, commit in tips.commits.items() if ref != "HEAD"}.items():
            files = await self._staging.files(commit)
            here = {(path, file.blob) for path, file in files.items()} & bad
            names += [f"{ref.removeprefix('refs/heads/')}:{path}" for path, _ in here]
            left -= here
        names += [f"{found.brought[pair][:12]}:{pair[0]}" for pair in left]
        return tuple(sorted(names))

    def _is_rules(self, path: str) -> bool:
        return path.rpartition("/")[2] == self._rules_name

    # --- What is in it

    async def _judge(self, rules: Rules, pairs: set[Pair]) -> None:
        """Check versions of files that were not checked with these rules."""
        self._blobs |= {blob for _, blob in pairs}
        paths: dict[str, list[str]] = {}
        for path, blob in pairs:
            if OWN_FOLDER in path.split("/"):
                self._verdicts[rules, (path, blob)] = True
            elif (rules, (path, blob)) not in self._verdicts:
                paths.setdefault(blob, []).append(path)
        if not paths:
            return
        texts = await self._rule_texts(rules)
        objects = await describe_objects(self._command, paths)
        for one in objects:
            if one.size > _LARGEST_BYTES:
                is_data = await self._is_data(one)
                self._verdicts |= {(rules, (path, one.number)): not is_data for path in paths[one.number]}
        small = [one for one in objects if one.size <= _LARGEST_BYTES]
        done, total = 0, len(small)
        async for batch in read_objects(self._command, small, at_once=_AT_ONCE):
            asked = [(path, one, content) for one, content in batch for path in paths[one.number]]
            verdicts = await self._sift([Candidate(path, content) for path, _, content in asked], texts)
            for (path, one, _), verdict in zip(asked, verdicts, strict=True):
                self._verdicts[rules, (path, one.number)] = verdict
            done += len(batch)
            self._on_checked(done, total)

    async def _judge_texts(self, numbers: Iterable[str]) -> None:
        """Check what commits and tags themselves say."""
        new = [number for number in numbers if number not in self._texts]
        objects = await describe_objects(self._command, new)
        self._texts |= {one.number: True for one in objects if one.size > _LARGEST_BYTES}
        small = (one for one in objects if one.size <= _LARGEST_BYTES)
        async for batch in read_objects(self._command, small):
            verdicts = await self._sift([Candidate("", content) for _, content in batch], {})
            for (one, _), verdict in zip(batch, verdicts, strict=True):
                self._texts[one.number] = verdict
            self._on_checked(len(batch), len(objects))

    async def _rule_texts(self, rules: Rules) -> dict[str, bytes]:
        wanted = {blob: path for path, blob in rules}
        objects = await describe_objects(self._command, wanted)
        # No text in place of one that no one writes by hand: rules that cannot be read.
        texts = {one.number: b"\0" for one in objects}
        small = (one for one in objects if one.size <= 2**20)
        async for batch in read_objects(self._command, small):
            texts |= {one.number: content for one, content in batch}
        return {path: texts[blob] for path, blob in rules}

    async def _is_data(self, one: ObjectInfo) -> bool:
        head = bytearray()

        def add(chunk: bytes) -> None:
            head.extend(chunk)
            if len(head) >= _HEAD_BYTES:
                raise _PrefixReadError

        with contextlib.suppress(_PrefixReadError):
            await stream_git(self._command(("cat-file", "blob", one.number), b""), add)
        return b"\0" in head[:_HEAD_BYTES]

    def _command(self, arguments: Sequence[str], stdin: bytes) -> process.Command:
        return self._staging.command(*arguments, stdin=stdin)

    async def _git(self, arguments: Sequence[str], stdin: str) -> str:
        return await run_git(self._command(arguments, stdin.encode()))


class _PrefixReadError(Exception):
    """The beginning of a content was read."""


def _revisions(tips: Iterable[str], clean: Iterable[str]) -> str:
    return "".join([*(f"{one}\n" for one in tips), *(f"^{one}\n" for one in clean)])


def _changes(listed: str) -> dict[str, dict[str, str | None]]:
    """Return what each commit changed: the new content by path, nothing for a file that is gone."""
    found: dict[str, dict[str, str | None]] = {}
    current: dict[str, str | None] = {}
    words: Iterator[str] = iter(listed.split("\0"))
    for word in words:
        if word.startswith(":"):
            _, mode, _, blob, _ = word.split(" ")
            path = next(words)
            is_file = mode not in ("000000", _MODULE)
            if is_file or path not in current:
                current[path] = blob if is_file else None
        elif word:
            current = found.setdefault(word, {})
    return found
