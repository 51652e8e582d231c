"""Where a merged pull request comes from, and which commit has the rules that it is judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.git.compare import Comparison

if TYPE_CHECKING:
    from stackyard.clients.forge.model import PullRequest
    from stackyard.gitops.checkout import Checkouts
    from stackyard.gitops.record import PullRecord

__all__ = ["find_before", "find_fork_point", "find_rules"]


async def find_rules(checkouts: Checkouts, pull: PullRequest, known: PullRecord | None) -> str:
    """Return the commit with the rules for what was merged: it cannot loosen what it is judged by.

    Args:
        checkouts: The commits of the repository.
        pull: The pull request, which is merged.
        known: What is known of it; None where it was merged before anybody planned it.

    Raises:
        GitError: git cannot say.
    """
    return known.plan.base if known is not None else await find_before(checkouts, pull)


async def find_before(checkouts: Checkouts, pull: PullRequest) -> str:
    """Return the commit that the base branch was at before a pull request was merged into it.

    Args:
        checkouts: The commits of the repository.
        pull: The pull request, which is merged.

    Raises:
        GitError: git cannot say.
    """
    git = Comparison(top=checkouts.mirror)
    before = await git.find_commit(f"{pull.merge_commit}^1")
    if before and await git.find_commit(f"{pull.merge_commit}^2"):
        return before
    # The commit before may be of the pull request too: it was rebased.
    return await find_fork_point(checkouts, pull)


async def find_fork_point(checkouts: Checkouts, pull: PullRequest) -> str:
    """Return where the branch of a merged pull request began, however it was merged.

    Args:
        checkouts: The commits of the repository.
        pull: The pull request, which is merged.

    Raises:
        GitError: git cannot say.
    """
    if pull.merge_commit == pull.head:
        # The branch was only moved on: no commit says which of them were there before.
        said = pull.merge_base or pull.base
        if said != pull.head and await checkouts.find_merge_base(said, pull.head) == said:
            return said
    before = await Comparison(top=checkouts.mirror).find_commit(f"{pull.merge_commit}^1")
    return await checkouts.find_merge_base(before or pull.merge_commit, pull.head) or pull.merge_commit
