"""Pull requests on Gitea, who reviewed them, and who may."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff
from stackyard.clients.forge.answers import as_object, read_number, read_text
from stackyard.clients.forge.failures import ForgeConflictError, ForgeNotFoundError, ForgeRefusedError
from stackyard.clients.forge.gitea.documents import PERMISSIONS, read_changed_file, read_pull, read_review
from stackyard.clients.forge.gitea.repository import GiteaRepository
from stackyard.clients.forge.model import MergeMethod, Permission, PullState
from stackyard.clients.forge.once import create_once
from stackyard.clients.forge.reviewing import find_last_verdicts
from stackyard.clients.forge.texts import quote, read_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.clients.forge.model import ChangedFile, PullRequest, Review

__all__ = ["GiteaPulls"]

# Gitea finds out some time after a push whether there are conflicts, and merges nothing before.
_CHECKS = Backoff(first_s=0.1, longest_s=1.0)
_LONGEST_CHECK_S = 15.0
_CHECKING = "try again later"


class GiteaPulls(GiteaRepository):
    """The part of a repository on Gitea that is about pull requests."""

    async def branch_tip(self, branch: str) -> str | None:
        """Return the last commit of a branch; None where there is no such branch."""
        try:
            document = await self._object(f"{self._path}/branches/{quote(branch)}", "a branch")
        except ForgeNotFoundError:
            # It may be the repository that is not there.
            await self.repository()
            return None
        return read_text(document, "commit", "id")

    async def pull(self, number: int) -> PullRequest:
        """Return a pull request."""
        return read_pull(await self._object(f"{self._path}/pulls/{number}", "a pull request"))

    async def pulls(
        self, state: PullState = PullState.OPEN, *, base: str = "", updated_after: str = ""
    ) -> Sequence[PullRequest]:
        """Return the pull requests of a state, the last changed first."""
        query = {"state": "open" if state is PullState.OPEN else "closed", "sort": "recentupdate"}
        query |= {"base_branch": base} if base else {}
        since = read_time(updated_after) if updated_after else None
        found: list[PullRequest] = []
        async for page in self._transport.pages(f"{self._path}/pulls", query):
            pulls = [read_pull(document) for document in page]
            new = [pull for pull in pulls if since is None or read_time(pull.updated_at) > since]
            found += [pull for pull in new if pull.state is state and base in ("", pull.base_branch)]
            if len(new) < len(pulls):
                break
        return tuple(found)

    async def open_pull(self, title: str, body: str, head_branch: str, base_branch: str) -> PullRequest:
        """Open a pull request; the open one of the same branches, edited, where there is one."""
        document = {"title": title, "body": body, "head": head_branch, "base": base_branch}
        try:
            answer = await self._transport.send("POST", f"{self._path}/pulls", document, is_repeatable=True)
        except ForgeConflictError:
            number = await self._find_pull(head_branch, base_branch)
            if not number:
                raise
            edit = {"title": title, "body": body}
            answer = await self._transport.send("PATCH", f"{self._path}/pulls/{number}", edit)
        return read_pull(as_object(answer.document, "a pull request"))

    async def merge(self, number: int, head: str, method: MergeMethod = MergeMethod.MERGE) -> str:
        """Merge a pull request if its head is still this commit, and return the commit on the base branch."""
        pull = await self._check_head(number, head)
        if pull.state is not PullState.MERGED:
            pull = await create_once(
                lambda: self._merge(number, head, method), lambda: self._find_merged(number, head)
            )
        return pull.merge_commit

    async def merged_pull(self, commit: str) -> PullRequest | None:
        """Return the merged pull request that a commit of the base branch came with, None for none."""
        try:
            answer = await self._transport.get(f"{self._path}/commits/{quote(commit)}/pull")
        except ForgeNotFoundError:
            await self.repository()
            return None
        return read_pull(as_object(answer.document, "a pull request"))

    async def changed_files(self, number: int) -> Sequence[ChangedFile]:
        """Return the files that a pull request changes."""
        documents = await self._transport.collect(f"{self._path}/pulls/{number}/files")
        return tuple(map(read_changed_file, documents))

    async def reviews(self, number: int) -> Sequence[Review]:
        """Return of each reviewer what counts: the last review that says yes or no, or was dismissed."""
        documents = await self._transport.collect(f"{self._path}/pulls/{number}/reviews")
        documents.sort(key=lambda document: read_number(document, "id"))
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
        """Return whether somebody is in a team (`ORG/TEAM`)."""
        organization, slash, name = team.rpartition("/")
        organization = organization if slash else self._name.partition("/")[0]
        found = await self._find_team(organization, name)
        try:
            await self._transport.get(f"/teams/{found}/members/{quote(login)}")
        except ForgeNotFoundError:
            return False
        return True

    async def _find_pull(self, head_branch: str, base_branch: str) -> int:
        """Return the open pull request of two branches of the repository; 0 for none."""
        pulls = await self.pulls(base=base_branch)
        ours = [pull for pull in pulls if pull.head_branch == head_branch and not pull.is_fork]
        return ours[0].number if ours else 0

    async def _check_head(self, number: int, head: str) -> PullRequest:
        pull = await self.pull(number)
        if pull.head != head:
            raise ForgeConflictError(f"The head of pull request {number} is {pull.head}, no longer {head}.")
        return pull

    async def _merge(self, number: int, head: str, method: MergeMethod) -> PullRequest:
        document = {"Do": method.value, "head_commit_id": head}
        loop = asyncio.get_running_loop()
        until = loop.time() + _LONGEST_CHECK_S
        for pause_s in _CHECKS:
            try:
                await self._transport.send("POST", f"{self._path}/pulls/{number}/merge", document)
            except ForgeRefusedError as err:
                if _CHECKING not in err.detail or loop.time() > until:
                    raise
                # Asking for it makes Gitea find out.
                await self.pull(number)
                await asyncio.sleep(pause_s)
            else:
                break
        return await self.pull(number)

    async def _find_merged(self, number: int, head: str) -> PullRequest | None:
        pull = await self._check_head(number, head)
        return pull if pull.state is PullState.MERGED else None

    async def _find_team(self, organization: str, name: str) -> int:
        # The search for teams finds only those that the owner of the token is in.
        for team in await self._transport.collect(f"/orgs/{quote(organization)}/teams"):
            if read_text(team, "name").casefold() == name.casefold():
                return read_number(team, "id")
        raise ForgeNotFoundError(f"The forge has no team {organization}/{name}.")
