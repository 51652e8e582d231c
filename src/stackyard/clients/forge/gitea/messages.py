"""Comments, statuses and issues on Gitea."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.answers import as_list, as_object
from stackyard.clients.forge.common_documents import read_comment, read_issue
from stackyard.clients.forge.failures import ForgeNotFoundError
from stackyard.clients.forge.gitea.documents import read_status
from stackyard.clients.forge.gitea.repository import GiteaRepository
from stackyard.clients.forge.once import create_comment_once, create_issue_once
from stackyard.clients.forge.texts import cut_text, quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.forge.model import Comment, CommitStatus, Issue

__all__ = ["GiteaMessages"]


class GiteaMessages(GiteaRepository):
    """The part of a repository on Gitea that is about what people and programs say."""

    async def comments(self, number: int, *, after: int = 0) -> Sequence[Comment]:
        """Return the comments of a pull request or an issue, in their order; only those with a higher id."""
        # Gitea gives all of them at once.
        answer = await self._transport.get(f"{self._path}/issues/{number}/comments")
        comments = map(read_comment, as_list(answer.document, "comments"))
        return tuple(sorted((one for one in comments if one.id > after), key=lambda one: one.id))

    async def comment(self, number: int, id_: int) -> Comment | None:
        """Return a comment; None where it was deleted."""
        return await self._ask_for_comment("GET", id_)

    async def create_comment(self, number: int, body: str) -> Comment:
        """Write a comment."""
        path = f"{self._path}/issues/{number}/comments"

        async def create() -> Comment:
            answer = await self._transport.send("POST", path, {"body": body})
            return read_comment(as_object(answer.document, "a comment"))

        return await create_comment_once(self, number, body, create)

    async def edit_comment(self, number: int, id_: int, body: str) -> Comment | None:
        """Replace the text of a comment; None where it was deleted."""
        return await self._ask_for_comment("PATCH", id_, {"body": body})

    async def statuses(self, commit: str) -> Sequence[CommitStatus]:
        """Return the last status of each context of a commit."""
        path = f"{self._path}/commits/{quote(commit)}/status"
        return tuple(map(read_status, await self._transport.collect(path, key="statuses")))

    async def set_status(self, commit: str, status: CommitStatus) -> None:
        """Say something of a commit. Texts that are too long are cut."""
        document = {
            "context": cut_text(status.context, self.limits.context_chars),
            "state": status.state.value,
            "description": cut_text(status.description, self.limits.description_chars),
            "target_url": status.url,
        }
        path = f"{self._path}/statuses/{quote(commit)}"
        # The last one counts: twice is the same.
        await self._transport.send("POST", path, document, is_repeatable=True)

    async def find_issues(self, words: str, *, is_open: bool = True) -> Sequence[Issue]:
        """Return the issues of ours whose text has these words, the newest first."""
        login = await self.login()
        # Its search knows an issue only some time after it was opened.
        query = {"type": "issues", "state": "open" if is_open else "closed", "created_by": login}
        documents = await self._transport.collect(f"{self._path}/issues", query)
        issues = [issue for issue in map(read_issue, documents) if words in f"{issue.title}\n{issue.body}"]
        return tuple(sorted(issues, key=lambda issue: -issue.number))

    async def create_issue(self, title: str, body: str) -> Issue:
        """Open an issue."""

        async def create() -> Issue:
            answer = await self._transport.send(
                "POST", f"{self._path}/issues", {"title": title, "body": body}
            )
            return read_issue(as_object(answer.document, "an issue"))

        return await create_issue_once(self, title, body, create)

    async def edit_issue(
        self, number: int, *, title: str | None = None, body: str | None = None, is_open: bool | None = None
    ) -> Issue:
        """Change an issue; what is None stays."""
        state = None if is_open is None else "open" if is_open else "closed"
        document = {"title": title, "body": body, "state": state}
        changes = {name: value for name, value in document.items() if value is not None}
        answer = await self._transport.send("PATCH", f"{self._path}/issues/{number}", changes)
        return read_issue(as_object(answer.document, "an issue"))

    async def _ask_for_comment(
        self, method: str, id_: int, body: Mapping[str, Any] | None = None
    ) -> Comment | None:
        try:
            answer = await self._transport.send(method, f"{self._path}/issues/comments/{id_}", body)
        except ForgeNotFoundError:
            # It may be the repository that is not there.
            await self.repository()
            return None
        # Gitea has no content for what is in the list of comments and is none.
        return None if answer.document is None else read_comment(as_object(answer.document, "a comment"))
