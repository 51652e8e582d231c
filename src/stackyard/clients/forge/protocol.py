"""What every forge can be asked, whichever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.clients.forge.model import (
        ChangedFile,
        CloneAccess,
        Comment,
        CommitStatus,
        ForgeKind,
        ForgeLimits,
        ForgeRepository,
        Issue,
        MergeMethod,
        Permission,
        Protection,
        PullRequest,
        PullState,
        Review,
    )

__all__ = ["Forge"]


class Forge(Protocol):
    """One repository on a forge; used in an `async with` block.

    Every method raises `ForgeError` or one of its kinds: the forge cannot be reached, does not accept the
    token, does not know what is asked for, wants fewer requests, or answers with something else. Reads are
    tried again where the forge is away for a moment; what writes is tried again only where that cannot do it
    twice.
    """

    async def __aenter__(self) -> Self:
        """Open the connections."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        ...

    @property
    def kind(self) -> ForgeKind:
        """Which forge it is."""
        ...

    @property
    def limits(self) -> ForgeLimits:
        """How long texts may be."""
        ...

    @property
    def clone_access(self) -> CloneAccess:
        """How git fetches the repository."""
        ...

    async def login(self) -> str:
        """Return whose token it is: the author of the comments that are written with it."""
        ...

    async def repository(self) -> ForgeRepository:
        """Return what is known of the repository."""
        ...

    async def branch_tip(self, branch: str) -> str | None:
        """Return the last commit of a branch; None where there is no such branch."""
        ...

    # --- Pull requests

    async def pull(self, number: int) -> PullRequest:
        """Return a pull request."""
        ...

    async def pulls(
        self, state: PullState = ..., *, base: str = "", updated_after: str = ""
    ) -> Sequence[PullRequest]:
        """Return the pull requests of a state, the last changed first.

        Args:
            state: How far they are.
            base: Only those into this branch.
            updated_after: Only those that changed later than this, as the forge writes it.
        """
        ...

    async def open_pull(self, title: str, body: str, head_branch: str, base_branch: str) -> PullRequest:
        """Open a pull request; the open one of the same branches, edited, where there is one."""
        ...

    async def merge(self, number: int, head: str, method: MergeMethod = ...) -> str:
        """Merge a pull request if its head is still this commit, and return the commit on the base branch."""
        ...

    async def merged_pull(self, commit: str) -> PullRequest | None:
        """Return the merged pull request that a commit of the base branch came with, None for none."""
        ...

    async def changed_files(self, number: int) -> Sequence[ChangedFile]:
        """Return the files that a pull request changes."""
        ...

    async def reviews(self, number: int) -> Sequence[Review]:
        """Return of each reviewer what counts: the last review that says yes or no, or was dismissed."""
        ...

    async def permission(self, login: str) -> Permission:
        """Return what somebody may do in the repository."""
        ...

    async def is_member(self, team: str, login: str) -> bool:
        """Return whether somebody is in a team of the owner (`ORG/TEAM`); on GitLab a group."""
        ...

    # --- Comments and statuses

    async def comments(self, number: int, *, after: int = 0) -> Sequence[Comment]:
        """Return the comments of a pull request or an issue, in their order; only those with a higher id.

        On GitLab, where issues have numbers of their own, the number is that of a merge request, here and in
        the other methods about comments.
        """
        ...

    async def comment(self, number: int, id_: int) -> Comment | None:
        """Return a comment; None where it was deleted."""
        ...

    async def create_comment(self, number: int, body: str) -> Comment:
        """Write a comment."""
        ...

    async def edit_comment(self, number: int, id_: int, body: str) -> Comment | None:
        """Replace the text of a comment; None where it was deleted."""
        ...

    async def statuses(self, commit: str) -> Sequence[CommitStatus]:
        """Return the last status of each context of a commit; those of checks too, where there are both."""
        ...

    async def set_status(self, commit: str, status: CommitStatus) -> None:
        """Say something of a commit. Texts that are too long are cut."""
        ...

    # --- Protection, issues, webhooks

    async def protection(self, branch: str) -> Protection | None:
        """Return what a branch requires; None where it is not protected."""
        ...

    async def protect(self, protection: Protection) -> None:
        """Have a branch require this, and leave everything else of its protection as it is."""
        ...

    async def find_issues(self, words: str, *, is_open: bool = True) -> Sequence[Issue]:
        """Return the issues of ours whose text has these words, the newest first."""
        ...

    async def create_issue(self, title: str, body: str) -> Issue:
        """Open an issue."""
        ...

    async def edit_issue(
        self, number: int, *, title: str | None = None, body: str | None = None, is_open: bool | None = None
    ) -> Issue:
        """Change an issue; what is None stays."""
        ...

    async def ensure_webhook(self, url: str, secret: str) -> bool:
        """Have the forge tell an address of what happens, and return whether it had to be changed.

        The secret is set again in any case: no forge shows it.
        """
        ...
