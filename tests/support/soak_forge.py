"""A forge in memory whose commits are in a real repository, and which remembers what was to be seen when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.memory_forge import BOT, MemoryForge
from tests.support.repositories import git, new_repository

from stackyard.clients.forge.failures import ForgeUnreachableError
from stackyard.clients.forge.model import (
    CloneAccess,
    Comment,
    MergeMethod,
    Permission,
    PullRequest,
    PullState,
    Review,
    ReviewVerdict,
)
from stackyard.gitops.comment import MARK

__all__ = ["Approval", "Killed", "SoakForge"]


class Killed(BaseException):
    """A worker ends in the middle of what it does; nothing catches it."""


@dataclass
class Approval:
    """Somebody agreed to what was shown then.

    Attributes:
        body: What the comment with the plan said at that time.
        target: The only target that it is about; empty for all.
        head: The commit that was reviewed; empty for what was said in a comment.
        is_taken_back: Whether it counts no more.
    """

    number: int
    login: str
    body: str
    target: str = ""
    head: str = ""
    is_taken_back: bool = False


@dataclass
class SoakForge(MemoryForge):
    """One repository, with what people did.

    Attributes:
        folder: Where its commits are.
        kill_in: After how many calls of ours the worker is killed; 0 for never.
        away_in: After how many calls it does not answer once.
        approvals: Who agreed to what.
        allowed: By pull request, what may be destroyed.
    """

    folder: Path = Path()
    kill_in: int = 0
    away_in: int = 0
    was_killed: bool = False
    next_comment: int = 0
    approvals: list[Approval] = field(default_factory=list)
    allowed: dict[int, set[str]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)

    @property
    def clone_access(self) -> CloneAccess:
        return CloneAccess(url=str(self.folder), headers={})

    def begin(self, files: Mapping[str, str | None]) -> None:
        new_repository(self.folder)
        self.rights = {"ann": Permission.WRITE, "bob": Permission.WRITE, "eve": Permission.READ}
        self.rights[BOT] = Permission.WRITE
        self._write(files)
        self.tips["main"] = self.run("rev-parse", "HEAD")

    def run(self, *words: str) -> str:
        done = git(self.folder, *words)
        assert done.returncode == 0, (words, done.stderr, done.stdout)
        return done.stdout.strip()

    def _write(self, files: Mapping[str, str | None]) -> str:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(text)
        self.run("add", "--all")
        self.run("commit", "--quiet", "--allow-empty", "--message", "change")
        return self.run("rev-parse", "HEAD")

    # --- What people do

    def push(self, number: int, files: Mapping[str, str | None], *, is_forced: bool) -> PullRequest:
        """Open a pull request, add a commit to it, or replace all of it by one on the newest base."""
        known = self.all_pulls.get(number)
        base = self.tips["main"] if known is None or is_forced else known.head
        self.run("checkout", "--quiet", "--detach", base)
        head = self._write(files)
        self.run("update-ref", f"refs/pull/{number}/head", head)
        return self.add_pull(number, head=head) if known is None else self.change(number, head=head)

    def move_base(self, files: Mapping[str, str | None]) -> None:
        self.run("checkout", "--quiet", "main")
        self.tips["main"] = self._write(files)

    def join(self, number: int, method: MergeMethod) -> bool:
        """Merge it as a person does; return whether it could be."""
        pull = self.all_pulls[number]
        self.run("checkout", "--quiet", "main")
        done = self._join(pull.head, method)
        if not done:
            self.run("reset", "--quiet", "--hard", self.tips["main"])
            return False
        self.tips["main"] = self.run("rev-parse", "HEAD")
        self.change(number, state=PullState.MERGED, merge_commit=self.tips["main"])
        return True

    def _join(self, head: str, method: MergeMethod) -> bool:
        if method is MergeMethod.SQUASH:
            is_well = git(self.folder, "merge", "--quiet", "--squash", head).returncode == 0
            if is_well:
                self.run("commit", "--quiet", "--allow-empty", "--message", "squashed")
            return is_well
        if method is MergeMethod.REBASE:
            words = ("cherry-pick", "--allow-empty", "--keep-redundant-commits", f"main..{head}")
            return git(self.folder, *words).returncode == 0 or self._give_up()
        return git(self.folder, "merge", "--quiet", "--no-ff", "-m", "merged", head).returncode == 0

    def _give_up(self) -> bool:
        git(self.folder, "cherry-pick", "--abort")
        return False

    def approve(self, number: int, login: str) -> None:
        pull = self.all_pulls[number]
        self.take_back(number, login)
        review = Review(
            author=login, verdict=ReviewVerdict.APPROVED, commit=pull.head, submitted_at=self.tick()
        )
        self.all_reviews.setdefault(number, []).append(review)
        self.change(number)
        self.approvals.append(Approval(number=number, login=login, body=self.shown(number), head=pull.head))

    def take_back(self, number: int, login: str) -> None:
        """Dismiss what somebody said of a pull request."""
        kept = [one for one in self.all_reviews.get(number, []) if one.author != login]
        self.all_reviews[number] = kept
        self.change(number)
        for one in self.approvals:
            if (one.number, one.login) == (number, login) and one.head:
                one.is_taken_back = True

    def say(self, number: int, author: str, body: str, *, is_edited: bool = False) -> Comment:
        said = super().say(number, author, body, is_edited=is_edited)
        self.next_comment += 1
        comment = replace(said, id=self.next_comment)
        self.all_comments[number][-1] = comment
        words = body.split()
        if words[:2] == ["stackyard", "apply"]:
            target = words[2] if len(words) > 2 else ""
            found = Approval(number=number, login=author, body=self.shown(number), target=target)
            self.approvals.append(found)
        if words[:3] == ["stackyard", "allow", "destroy"] and self.rights[author] >= Permission.WRITE:
            self.allowed.setdefault(number, set()).update(words[3].split(","))
        return comment

    def shown(self, number: int) -> str:
        """Return what the comment with the plan says, or said when somebody deleted it."""
        found = [
            one.body
            for one in self.all_comments.get(number, [])
            if one.author == BOT and one.body.startswith(MARK)
        ]
        return found[-1] if found else self.lost.get(number, "")

    def lose_comment(self, number: int) -> None:
        self.lost[number] = self.shown(number)
        kept = [one for one in self.all_comments.get(number, []) if one.author != BOT]
        self.all_comments[number] = kept
        self.change(number)

    # --- What goes wrong

    def maybe_die(self) -> None:
        """Kill the worker where its time has come; one that is dead does nothing more."""
        if self.was_killed:
            raise Killed
        if self.kill_in:
            self.kill_in -= 1
            if not self.kill_in:
                self.was_killed = True
                raise Killed

    async def _asked(self, what: str) -> None:
        self.maybe_die()
        if self.away_in:
            self.away_in -= 1
            if not self.away_in:
                raise ForgeUnreachableError("The forge does not answer.")
        await super()._asked(what)
