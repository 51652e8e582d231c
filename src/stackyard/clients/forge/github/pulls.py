"""Pull requests on GitHub, who reviewed them, and who may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.forge.answers import as_list, as_object, read_number, read_text
from stackyard.clients.forge.failures import (
    ForgeConflictError,
    ForgeNotFoundError,
    ForgeRefusedError,
)
from stackyard.clients.forge.github.documents import PERMISSIONS, read_changed_file, read_pull, read_review
from stackyard.clients.forge.github.repository import PAGE, SIZE_NAME, GithubRepository
from stackyard.clients.forge.model import MergeMethod, Permission, PullState
from stackyard.clients.forge.once import create_once
from stackyard.clients.forge.reviewing import find_last_verdicts
from stackyard.clients.forge.texts import quote, read_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.clients.forge.model import ChangedFile, PullRequest, Review

__all__ = ["GithubPulls"]

_NO_COMMIT = 422


class GithubPulls(GithubRepository):
    """The part of a repository on GitHub that is about pull requests."""

    async def branch_tip(self, branch: str) -> str | None:
        """Return the last commit of a branch; None where there is no such branch."""
        # `branches/NAME` would lead on to the new name of a branch that was renamed.
        path = f"{self._path}/git/ref/heads/" + "/".join(map(quote, branch.split("/")))
        try:
            document = await self._object(path, "a branch")
        except ForgeConflictError:
            # Nothing was committed to the repository yet.
            return None
        except ForgeNotFoundError:
            # It may be the repository that is not there.
            await self.repository()
            return None
        return read_text(document, "object", "sha")

    async def pull(self, number: int) -> PullRequest:
        """Return a pull request."""
        return read_pull(await self._object(f"{self._path}/pulls/{number}", "a pull request"))

    async def pulls(
        self, state: PullState = PullState.OPEN, *, base: str = "", updated_after: str = ""
    ) -> Sequence[PullRequest]:
        """Return the pull requests of a state, the last changed first."""
        query = {"state": "open" if state is PullState.OPEN else "closed", "sort": "updated"}
        query |= {"direction": "desc"} | ({"base": base} if base else {})
        since = read_time(updated_after) if updated_after else None
        found: list[PullRequest] = []
        async for page in self._transport.pages(f"{self._path}/pulls", query, size=PAGE, size_name=SIZE_NAME):
            pulls = [read_pull(document) for document in page]
            new = [pull for pull in pulls if since is None or read_time(pull.updated_at) > since]
            found += [pull for pull in new if pull.state is state]
            if len(new) < len(pulls):
                break
        return tuple(found)

    async def open_pull(self, title: str, body: str, head_branch: str, base_branch: str) -> PullRequest:
        """Open a pull request; the open one of the same branches, edited, where there is one."""
        document = {"title": title, "body": body, "head": head_branch, "base": base_branch}
        try:
            # A second one of the same branches is refused: it is found below.
            answer = await self._transport.send("POST", f"{self._path}/pulls", document, is_repeatable=True)
        except ForgeRefusedError:
            number = await self._find_pull(head_branch, base_branch)
            if not number:
                raise
            edit = {"title": title, "body": body}
            answer = await self._transport.send("PATCH", f"{self._path}/pulls/{number}", edit)
        return read_pull(as_object(answer.document, "a pull request"))

    async def merge(self, number: int, head: str, method: MergeMethod = MergeMethod.MERGE) -> str:
        """Merge a pull request if its head is still this commit, and return the commit on the base branch."""
        merged = await self._find_merged(number, head)
        if merged is None:
            merged = await create_once(
                lambda: self._merge(number, head, method), lambda: self._find_merged(number, head)
            )
        return merged

    async def merged_pull(self, commit: str) -> PullRequest | None:
        """Return the merged pull request that a commit of the base branch came with, None for none."""
        path = f"{self._path}/commits/{quote(commit)}/pulls"
        try:
            pulls = [read_pull(document) for document in await self._collect(path)]
        except ForgeNotFoundError:
            await self.repository()
            return None
        except ForgeRefusedError as err:
            # It says this of a commit that it does not have.
            if err.status != _NO_COMMIT:
                raise
            return None
        merged = [pull for pull in pulls if pull.state is PullState.MERGED]
        # Commits of a rebase came with one, too; those before the merge came with it as well.
        merged.sort(key=lambda pull: pull.merge_commit != commit)
        return merged[0] if merged else None

    async def changed_files(self, number: int) -> Sequence[ChangedFile]:
        """Return the files that a pull request changes."""
        pull = await self._object(f"{self._path}/pulls/{number}", "a pull request")
        documents = await self._collect(f"{self._path}/pulls/{number}/files")
        if (count := read_number(pull, "changed_files")) > len(documents):
            raise ForgeRefusedError(
                f"Pull request {number} changes {count} files, and GitHub lists {len(documents)} of them.",
                remedy="Split the pull request, or compare its commits with git.",
            )
        return tuple(map(read_changed_file, documents))

    async def reviews(self, number: int) -> Sequence[Review]:
        """Return of each reviewer what counts: the last review that says yes or no, or was dismissed."""
        documents = await self._collect(f"{self._path}/pulls/{number}/reviews")
        return find_last_verdicts(filter(None, map(read_review, documents)))

    async def permission(self, login: str) -> Permission:
        """Return what somebody may do in the repository."""
        path = f"{self._path}/collaborators/{quote(login)}/permission"
        try:
            document = await self._object(path, "a permission")
        except ForgeNotFoundError:
            await self.repository()
            return Permission.NONE
        return PERMISSIONS.get(read_text(document, "permission"), Permission.NONE)

    async def is_member(self, team: str, login: str) -> bool:
        """Return whether somebody is in a team (`ORG/TEAM`, the team as it is spelled in its address)."""
        organization, slash, name = team.rpartition("/")
        path = f"{self._rest}/orgs/{quote(organization if slash else self._owner)}/teams/{quote(name)}"
        try:
            document = await self._object(f"{path}/memberships/{quote(login)}", "a membership")
        except ForgeNotFoundError:
            # It may be the team that is not there.
            await self._transport.get(path)
            return False
        return read_text(document, "state") == "active"

    async def _find_pull(self, head_branch: str, base_branch: str) -> int:
        """Return the open pull request of two branches of the repository; 0 for none."""
        query = {"state": "open", "head": f"{self._owner}:{head_branch}", "base": base_branch}
        answer = await self._transport.get(f"{self._path}/pulls", query)
        pulls = as_list(answer.document, "pull requests")
        return read_number(pulls[0], "number") if pulls else 0

    async def _merge(self, number: int, head: str, method: MergeMethod) -> str:
        document = {"sha": head, "merge_method": method.value}
        path = f"{self._path}/pulls/{number}/merge"
        # A second time would be refused: it is merged already.
        answer = await self._transport.send("PUT", path, document, is_repeatable=False)
        return read_text(as_object(answer.document, "a merge"), "sha")

    async def _find_merged(self, number: int, head: str) -> str | None:
        pull = await self.pull(number)
        if pull.head != head:
            raise ForgeConflictError(f"The head of pull request {number} is {pull.head}, no longer {head}.")
        return pull.merge_commit if pull.state is PullState.MERGED else None
