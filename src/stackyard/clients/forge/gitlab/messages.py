"""Notes, statuses and issues on GitLab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import as_object, read_flag, read_text
from stackyard.clients.forge.failures import ForgeNotFoundError, ForgeRefusedError
from stackyard.clients.forge.gitlab.documents import read_comment, read_issue, read_status, write_state
from stackyard.clients.forge.gitlab.quick_actions import disarm
from stackyard.clients.forge.gitlab.repository import GitlabRepository
from stackyard.clients.forge.once import create_comment_once, create_issue_once
from stackyard.clients.forge.texts import cut_text, quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.forge.model import Comment, CommitStatus, Issue

__all__ = ["GitlabMessages"]

_NO_CHANGE = "cannot transition"


class GitlabMessages(GitlabRepository):
    """The part of a project on GitLab that is about what people and programs say.

    Issues and merge requests have numbers of their own there: comments are those of merge requests.
    """

    async def comments(self, number: int, *, after: int = 0) -> Sequence[Comment]:
        """Return the notes of a merge request, in their order; only those with a higher id."""
        query = {"sort": "asc", "order_by": "created_at"}
        documents = await self._collect(f"{self._path}/merge_requests/{number}/notes", query)
        # GitLab itself writes what happened among them.
        notes = [self._read_note(number, one) for one in documents if not read_flag(one, "system")]
        return tuple(sorted((one for one in notes if one.id > after), key=lambda one: one.id))

    async def comment(self, number: int, id_: int) -> Comment | None:
        """Return a note; None where it was deleted."""
        return await self._ask_for_comment("GET", number, id_)

    async def create_comment(self, number: int, body: str) -> Comment:
        """Write a note."""
        body = disarm(body)

        async def create() -> Comment:
            path = f"{self._path}/merge_requests/{number}/notes"
            return self._read_note(number, await self._send("POST", path, {"body": body}))

        return await create_comment_once(self, number, body, create)

    async def edit_comment(self, number: int, id_: int, body: str) -> Comment | None:
        """Replace the text of a note; None where it was deleted."""
        return await self._ask_for_comment("PUT", number, id_, {"body": disarm(body)})

    async def statuses(self, commit: str) -> Sequence[CommitStatus]:
        """Return the last status of each name of a commit; jobs of pipelines have one, too."""
        path = f"{self._path}/repository/commits/{quote(commit)}/statuses"
        return tuple(map(read_status, await self._collect(path)))

    async def set_status(self, commit: str, status: CommitStatus) -> None:
        """Say something of a commit. Texts that are too long are cut."""
        document = {
            "name": cut_text(status.context, self.limits.context_chars),
            "state": write_state(status.state),
            "description": cut_text(status.description, self.limits.description_chars),
        }
        document |= {"target_url": status.url} if status.url else {}
        path = f"{self._path}/statuses/{quote(commit)}"
        try:
            # The last one counts: twice is the same.
            await self._transport.send("POST", path, document, is_repeatable=True)
        except ForgeRefusedError as err:
            # GitLab refuses to make pending what is pending.
            if _NO_CHANGE not in err.detail.casefold() or not await self._has_state(commit, document):
                raise

    async def find_issues(self, words: str, *, is_open: bool = True) -> Sequence[Issue]:
        """Return the issues of ours whose text has these words, the newest first."""
        query = {"scope": "created_by_me", "state": "opened" if is_open else "closed"}
        issues = map(read_issue, await self._collect(f"{self._path}/issues", query))
        found = [issue for issue in issues if words in f"{issue.title}\n{issue.body}"]
        return tuple(sorted(found, key=lambda issue: -issue.number))

    async def create_issue(self, title: str, body: str) -> Issue:
        """Open an issue."""
        body = disarm(body)

        async def create() -> Issue:
            document = {"title": title, "description": body}
            return read_issue(await self._send("POST", f"{self._path}/issues", document))

        return await create_issue_once(self, title, body, create)

    async def edit_issue(
        self, number: int, *, title: str | None = None, body: str | None = None, is_open: bool | None = None
    ) -> Issue:
        """Change an issue; what is None stays."""
        document = {
            "title": title,
            "description": None if body is None else disarm(body),
            "state_event": None if is_open is None else "reopen" if is_open else "close",
        }
        changes = {name: value for name, value in document.items() if value is not None}
        return read_issue(await self._send("PUT", f"{self._path}/issues/{number}", changes))

    async def _has_state(self, commit: str, document: Mapping[str, Any]) -> bool:
        path = f"{self._path}/repository/commits/{quote(commit)}/statuses"
        found = await self._collect(path, {"name": document["name"]})
        return any(read_text(one, "status") == document["state"] for one in found)

    async def _ask_for_comment(
        self, method: str, number: int, id_: int, body: Mapping[str, Any] | None = None
    ) -> Comment | None:
        path = f"{self._path}/merge_requests/{number}"
        try:
            answer = await self._transport.send(method, f"{path}/notes/{id_}", body)
        except ForgeNotFoundError:
            # It may be the merge request that is not there.
            await self._transport.get(path)
            return None
        return self._read_note(number, as_object(answer.document, "a note"))

    def _read_note(self, number: int, document: Mapping[str, Any]) -> Comment:
        return read_comment(document, f"{self._url}/{self._name}/-/merge_requests/{number}")
