"""Merge requests on GitLab, who approved them, and who may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import as_list, read_number, read_text
from stackyard.clients.forge.failures import (
    ForgeConflictError,
    ForgeNotFoundError,
    ForgeRefusedError,
)
from stackyard.clients.forge.gitlab.documents import read_changed_file, read_permission, read_pull
from stackyard.clients.forge.gitlab.quick_actions import disarm
from stackyard.clients.forge.gitlab.repository import GitlabRepository
from stackyard.clients.forge.model import (
    MergeMethod,
    Permission,
    PullState,
    Review,
    ReviewVerdict,
)
from stackyard.clients.forge.once import create_once
from stackyard.clients.forge.texts import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.forge.model import ChangedFile, PullRequest

__all__ = ["GitlabPulls"]

_STATES = {PullState.OPEN: "opened", PullState.CLOSED: "closed", PullState.MERGED: "merged"}


class GitlabPulls(GitlabRepository):
    """The part of a project on GitLab that is about merge requests."""

    async def branch_tip(self, branch: str) -> str | None:
        """Return the last commit of a branch; None where there is no such branch."""
        path = f"{self._path}/repository/branches/{quote(branch)}"
        try:
            document = await self._object(path, "a branch")
        except ForgeNotFoundError:
            # It may be the project that is not there.
            await self.repository()
            return None
        return read_text(document, "commit", "id")

    async def pull(self, number: int) -> PullRequest:
        """Return a merge request."""
        return await self._read(
            await self._object(f"{self._path}/merge_requests/{number}", "a merge request")
        )

    async def pulls(
        self, state: PullState = PullState.OPEN, *, base: str = "", updated_after: str = ""
    ) -> Sequence[PullRequest]:
        """Return the merge requests of a state, the last changed first."""
        query = {"state": _STATES[state], "order_by": "updated_at", "sort": "desc", "scope": "all"}
        query |= {"target_branch": base} if base else {}
        query |= {"updated_after": updated_after} if updated_after else {}
        names: dict[int, str] = {}
        documents = await self._collect(f"{self._path}/merge_requests", query)
        pulls = [await self._read(document, names) for document in documents]
        # GitLab takes one of the same second, too.
        return tuple(pull for pull in pulls if pull.updated_at != updated_after)

    async def open_pull(self, title: str, body: str, head_branch: str, base_branch: str) -> PullRequest:
        """Open a merge request; the open one of the same branches, edited, where there is one."""
        document = {"source_branch": head_branch, "target_branch": base_branch}
        text = {"title": title, "description": disarm(body)}
        path = f"{self._path}/merge_requests"
        try:
            # A second one of the same branches is refused: it is found below.
            answer = await self._transport.send("POST", path, {**document, **text}, is_repeatable=True)
        except ForgeConflictError:
            found = await self._transport.get(path, {**document, "state": "opened"})
            pulls = as_list(found.document, "merge requests")
            if not pulls:
                raise
            answer = await self._transport.send("PUT", f"{path}/{read_number(pulls[0], 'iid')}", text)
        return await self._read(answer.document)

    async def merge(self, number: int, head: str, method: MergeMethod = MergeMethod.MERGE) -> str:
        """Merge a merge request if its head is still this commit, and return the commit on the base branch.

        A rebase makes other commits than those that were seen: GitLab does it where the project moves
        branches forward without a merge commit, and then nothing is left to rebase.
        """
        if method is MergeMethod.REBASE:
            await self._check_fast_forward()
        merged = await self._find_merged(number, head)
        if merged is None:
            merged = await create_once(
                lambda: self._merge(number, head, method), lambda: self._find_merged(number, head)
            )
        return merged

    async def merged_pull(self, commit: str) -> PullRequest | None:
        """Return the merged merge request that a commit of the base branch came with, None for none."""
        try:
            documents = await self._collect(f"{self._path}/repository/commits/{quote(commit)}/merge_requests")
        except ForgeNotFoundError:
            await self.repository()
            return None
        merged = [one for one in documents if read_text(one, "state") == "merged"]
        # The list leaves out by whom, and which commit of the base branch it began with.
        return await self.pull(read_number(merged[0], "iid")) if merged else None

    async def changed_files(self, number: int) -> Sequence[ChangedFile]:
        """Return the files that a merge request changes."""
        pull = await self._object(f"{self._path}/merge_requests/{number}", "a merge request")
        documents = await self._collect(f"{self._path}/merge_requests/{number}/diffs")
        count = read_text(pull, "changes_count")
        if count.endswith("+") or (count.isdecimal() and int(count) > len(documents)):
            raise ForgeRefusedError(
                f"Merge request {number} changes {count} files, and GitLab lists {len(documents)} of them.",
                remedy="Split the merge request, or compare its commits with git.",
            )
        return tuple(map(read_changed_file, documents))

    async def reviews(self, number: int) -> Sequence[Review]:
        """Return who approves, and who asks for changes; GitLab does not keep of which commit."""
        path = f"{self._path}/merge_requests/{number}"
        approvals = await self._object(f"{path}/approvals", "approvals")
        reviewers = await self._collect(f"{path}/reviewers")
        found: dict[str, Review] = {}
        for approval in as_list(approvals.get("approved_by"), "approvals"):
            author, at = read_text(approval, "user", "username"), read_text(approval, "approved_at")
            found[author] = Review(author=author, verdict=ReviewVerdict.APPROVED, submitted_at=at)
        for reviewer in reviewers:
            if read_text(reviewer, "state") == "requested_changes":
                author = read_text(reviewer, "user", "username")
                found[author] = Review(author=author, verdict=ReviewVerdict.CHANGES_REQUESTED)
        return tuple(found.values())

    async def permission(self, login: str) -> Permission:
        """Return what somebody may do in the project; everybody may read a public one."""
        for member in await self._collect(f"{self._path}/members/all", {"query": login}):
            if read_text(member, "username").casefold() == login.casefold():
                return read_permission(member)
        return Permission.NONE if (await self.repository()).is_private else Permission.READ

    async def is_member(self, team: str, login: str) -> bool:
        """Return whether somebody is in a group, or in one above it."""
        members = await self._collect(f"/groups/{quote(team)}/members/all", {"query": login})
        names = {read_text(one, "username").casefold() for one in members if _is_active(one)}
        return login.casefold() in names

    async def _read(self, document: Mapping[str, Any], names: dict[int, str] | None = None) -> PullRequest:
        names = {} if names is None else names
        source, target = (
            read_number(document, "source_project_id"),
            read_number(document, "target_project_id"),
        )
        if source == target:
            return read_pull(document, self._name, self._name)
        if source not in names:
            names[source] = await self._find_name(source)
        return read_pull(document, self._name, names[source])

    async def _find_name(self, project: int) -> str:
        """Return the name of a fork; empty where it was deleted or the token may not see it."""
        if not project:
            return ""
        try:
            return read_text(await self._object(f"/projects/{project}", "a project"), "path_with_namespace")
        except ForgeNotFoundError:
            return ""

    async def _merge(self, number: int, head: str, method: MergeMethod) -> str:
        document = {"sha": head, "squash": method is MergeMethod.SQUASH}
        path = f"{self._path}/merge_requests/{number}/merge"
        # A second time would be refused: it is merged already.
        answer = await self._transport.send("PUT", path, document, is_repeatable=False)
        return (await self._read(answer.document)).merge_commit

    async def _find_merged(self, number: int, head: str) -> str | None:
        pull = await self.pull(number)
        if pull.head != head:
            raise ForgeConflictError(f"The head of merge request {number} is {pull.head}, no longer {head}.")
        return pull.merge_commit if pull.state is PullState.MERGED else None

    async def _check_fast_forward(self) -> None:
        project = await self._object(self._path, "a project")
        if read_text(project, "merge_method") != "ff":
            raise ForgeRefusedError(
                "This project of GitLab does not merge without merge commits.",
                remedy="Choose `Fast-forward merge` in the settings of the project, or another way to merge.",
            )


def _is_active(member: Mapping[str, Any]) -> bool:
    return read_text(member, "state") in ("", "active")
