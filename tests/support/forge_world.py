"""What a forge keeps, in memory: commits, pull requests, comments. The doubles of GitHub and GitLab show it.

Commits are whole trees of files; a merge takes what either side changed since their last common commit.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["Commit", "ForgeWorld", "WorldComment", "WorldIssue", "WorldPull", "WorldReview", "WorldStatus"]


@dataclass
class Commit:
    sha: str
    files: dict[str, str]
    parents: tuple[str, ...]


@dataclass
class WorldReview:
    id: int
    author: str
    verdict: str
    commit: str
    at: str
    is_dismissed: bool = False


@dataclass
class WorldPull:
    number: int
    title: str
    body: str
    author: str
    head_branch: str
    base_branch: str
    created_at: str
    updated_at: str
    head_owner: str = ""
    state: str = "open"
    is_draft: bool = False
    merge_commit: str = ""
    merged_by: str = ""
    head: str = ""
    base: str = ""
    reviews: list[WorldReview] = field(default_factory=list)

    @property
    def is_merged(self) -> bool:
        return bool(self.merge_commit)


@dataclass
class WorldComment:
    id: int
    number: int
    author: str
    body: str
    created_at: str
    updated_at: str


@dataclass
class WorldStatus:
    id: int
    context: str
    state: str
    description: str
    url: str | None
    at: str


@dataclass
class WorldIssue:
    number: int
    title: str
    body: str
    author: str
    is_open: bool
    created_at: str


@dataclass
class ForgeWorld:
    """One repository, its people, and what happened.

    Attributes:
        repository: `owner/name`.
        tokens: The login of each token.
        levels: What each login may do, in the words of the forge.
        teams: The members of each team.
        tell: What is called with a kind, an action, a subject and who did it, when something happens.
    """

    repository: str
    tokens: dict[str, str] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    teams: dict[str, set[str]] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    # The branches of forks are here as `owner:branch`.
    branches: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, WorldPull] = field(default_factory=dict)
    comments: dict[int, WorldComment] = field(default_factory=dict)
    statuses: dict[str, list[WorldStatus]] = field(default_factory=dict)
    issues: dict[int, WorldIssue] = field(default_factory=dict)
    hooks: dict[int, dict[str, Any]] = field(default_factory=dict)
    tell: Callable[[str, str, Any, str], None] = lambda *_: None
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1001))
    _now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    @property
    def owner(self) -> str:
        return self.repository.rpartition("/")[0]

    def new_number(self) -> int:
        return next(self._numbers)

    def new_id(self) -> int:
        return next(self._ids)

    def now(self) -> str:
        """Return a time that is later than all before."""
        self._now += timedelta(seconds=1)
        return self._now.strftime("%Y-%m-%dT%H:%M:%SZ")

    # --- Commits

    def add_commit(self, files: Mapping[str, str], parents: tuple[str, ...]) -> Commit:
        sha = hashlib.sha1(secrets.token_bytes(16)).hexdigest()
        self.commits[sha] = Commit(sha, dict(files), parents)
        return self.commits[sha]

    def commit(self, branch: str, files: Mapping[str, str | None], *, moved: str = "", who: str = "") -> str:
        """Commit to a branch, which is made from `main` where it is new."""
        start = self.branches.get(branch) or self.branches.get("main", "")
        tree = dict(self.commits[start].files) if start else {}
        for path, text in files.items():
            if text is None:
                tree.pop(path)
            else:
                tree[path] = text
        tree.pop(moved, None)
        made = self.add_commit(tree, (start,) if start else ())
        self.branches[branch] = made.sha
        for pull in self.pulls.values():
            if pull.state == "open" and self.head_ref(pull) == branch:
                pull.updated_at = self.now()
                self.tell("pull", "push", pull, who)
        if ":" not in branch:
            self.tell("push", branch, made.sha, who)
        return made.sha

    def ancestors(self, sha: str) -> list[str]:
        """Return a commit and all before it, the nearest first."""
        found: dict[str, None] = {}
        waiting = [sha]
        while waiting:
            one = waiting.pop(0)
            if one not in found:
                found[one] = None
                waiting += self.commits[one].parents
        return list(found)

    def merge_base(self, one: str, other: str) -> str:
        known = set(self.ancestors(other))
        return next(sha for sha in self.ancestors(one) if sha in known)

    def merge_trees(self, base: str, head: str) -> dict[str, str] | None:
        """Return the files of the merge; None for conflicts."""
        root = self.commits[self.merge_base(base, head)].files
        ours, theirs = self.commits[base].files, self.commits[head].files
        found: dict[str, str] = {}
        for path in root.keys() | ours.keys() | theirs.keys():
            was, left, right = (tree.get(path) for tree in (root, ours, theirs))
            if left not in (was, right) and right not in (was, left):
                return None
            if (chosen := right if left == was else left) is not None:
                found[path] = chosen
        return found

    # --- Pull requests

    def head_ref(self, pull: WorldPull) -> str:
        return f"{pull.head_owner}:{pull.head_branch}" if pull.head_owner else pull.head_branch

    def head_of(self, pull: WorldPull) -> str:
        return pull.head or self.branches[self.head_ref(pull)]

    def base_of(self, pull: WorldPull) -> str:
        return pull.base or self.branches[pull.base_branch]

    def open_pull(
        self, title: str, body: str, head: str, base: str, author: str, *, head_owner: str = ""
    ) -> WorldPull:
        now = self.now()
        pull = WorldPull(self.new_number(), title, body, author, head, base, now, now, head_owner)
        self.pulls[pull.number] = pull
        self.tell("pull", "open", pull, author)
        return pull

    def find_open(self, head: str, base: str) -> WorldPull | None:
        return next(
            (
                pull
                for pull in self.pulls.values()
                if (pull.state, pull.head_branch, pull.base_branch, pull.head_owner)
                == ("open", head, base, "")
            ),
            None,
        )

    def is_mergeable(self, pull: WorldPull) -> bool:
        return self.merge_trees(self.base_of(pull), self.head_of(pull)) is not None

    def merge(self, pull: WorldPull, who: str, *, squash: bool) -> str:
        base, head = self.base_of(pull), self.head_of(pull)
        tree = self.merge_trees(base, head)
        assert tree is not None
        made = self.add_commit(tree, (base,) if squash else (base, head))
        pull.head, pull.base = head, base
        pull.state, pull.merge_commit, pull.merged_by = "closed", made.sha, who
        pull.updated_at = self.now()
        self.branches[pull.base_branch] = made.sha
        self.tell("pull", "merge", pull, who)
        self.tell("push", pull.base_branch, made.sha, who)
        return made.sha

    def changes(self, pull: WorldPull) -> list[tuple[str, str, str]]:
        """Return the status, the path and the path before of each changed file."""
        head = self.head_of(pull)
        before = self.commits[self.merge_base(self.base_of(pull), head)].files
        after = self.commits[head].files
        removed = {path: text for path, text in before.items() if path not in after}
        found = []
        for path, text in after.items():
            if path in before:
                if before[path] != text:
                    found.append(("modified", path, path))
                continue
            former = next((old for old, was in removed.items() if was == text), "")
            if former:
                del removed[former]
            found.append(("renamed" if former else "added", path, former or path))
        found += [("removed", path, path) for path in removed]
        return sorted(found, key=lambda change: change[1])

    def review(self, who: str, number: int, verdict: str, commit: str) -> None:
        pull = self.pulls[number]
        pull.reviews.append(WorldReview(self.new_id(), who, verdict, commit, self.now()))
        self.tell("review", verdict, pull, who)

    # --- What is said

    def say(self, who: str, number: int, text: str) -> WorldComment:
        now = self.now()
        comment = WorldComment(self.new_id(), number, who, text, now, now)
        self.comments[comment.id] = comment
        if number in self.pulls:
            self.pulls[number].updated_at = now
        self.tell("comment", "created", comment, who)
        return comment

    def set_status(
        self, sha: str, context: str, state: str, description: str, url: str | None
    ) -> WorldStatus:
        status = WorldStatus(self.new_id(), context, state, description, url, self.now())
        self.statuses.setdefault(sha, []).append(status)
        return status

    def last_statuses(self, sha: str) -> list[WorldStatus]:
        return list({status.context: status for status in self.statuses.get(sha, ())}.values())
