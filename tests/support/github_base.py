"""What the parts of the double of GitHub share: what it keeps, and how it shows that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from aiohttp import web
from tests.support.forge_double import Call, ForgeDouble, RefusalError, Reply
from tests.support.forge_world import WorldComment, WorldIssue, WorldPull, WorldStatus
from tests.support.openapi import OpenApi

__all__ = ["REPO", "STATES", "GithubBase"]

REPO = "/repos/{owner}/{repo}"
STATES = {"approve": "APPROVED", "reject": "CHANGES_REQUESTED", "comment": "COMMENTED"}
NOT_VALIDATED = frozenset({400, 401})


@dataclass
class GithubBase(ForgeDouble):
    """The server.

    Attributes:
        rest: The description of the REST interface; None where nothing is held against it.
        webhooks: The description of the webhooks.
        apps: The logins whose tokens are those of apps, which have no user.
        checks: The check runs of each commit.
        protections: The protection of each branch, as it is shown.
        rules: The rules of rulesets that hold for every branch.
        rulesets: The rulesets by their numbers.
        changes_shown: How many files of a pull request are listed at most.
    """

    rest: OpenApi | None = None
    webhooks: OpenApi | None = None
    apps: set[str] = field(default_factory=set)
    checks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    protections: dict[str, dict[str, Any]] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)
    rulesets: dict[int, dict[str, Any]] = field(default_factory=dict)
    changes_shown: int = 3000
    prefix: ClassVar[str] = "/api"
    _tried: set[tuple[int, str, str]] = field(default_factory=set)

    def find_login(self, request: web.Request) -> str:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.world.tokens.get(token, "") if kind == "Bearer" else ""

    def describe_error(self, status: int, message: str) -> Any:
        return {
            "message": message,
            "documentation_url": "https://docs.github.com/rest",
            "status": str(status),
        }

    def check_request(self, call: Call) -> None:
        if self.rest is not None and not call.path.endswith("/graphql"):
            path = call.path.removeprefix("/v3")
            self.rest.check_request(self.rest.find(call.method, path), call.query, call.body)

    def finish(self, call: Call, reply: Reply) -> Any:
        if self.rest is None or reply.status in NOT_VALIDATED or call.path.endswith("/graphql"):
            return reply.document
        operation = self.rest.find(call.method, call.path.removeprefix("/v3"))
        if reply.status >= 400 and str(reply.status) not in operation.document["responses"]:
            # Errors that every request can have are not described for each.
            return reply.document
        return self.rest.complete(operation, reply.status, reply.document)

    # --- Documents

    def _check(self, call: Call) -> None:
        if f"{call.names['owner']}/{call.names['repo']}" != self.world.repository:
            raise RefusalError(404, "Not Found")
        if self.world.levels.get(call.login, "none") == "none":
            raise RefusalError(404, "Not Found")

    def _find(self, known: Any, key: Any) -> Any:
        if key not in known:
            raise RefusalError(404, "Not Found")
        return known[key]

    def _find_pull(self, call: Call) -> WorldPull:
        self._check(call)
        found: WorldPull = self._find(self.world.pulls, call.number("pull_number"))
        return found

    def _repository(self, owner: str = "") -> dict[str, Any]:
        name = self.world.repository.rpartition("/")[2]
        whole = f"{owner or self.world.owner}/{name}"
        return {
            "full_name": whole,
            "name": name,
            "private": True,
            "default_branch": "main",
            "clone_url": f"{self.url}/{whole}.git",
            "html_url": f"{self.url}/{whole}",
        }

    def _pull(self, pull: WorldPull) -> dict[str, Any]:
        head, base = self.world.head_of(pull), self.world.base_of(pull)
        tried = (pull.number, head, base)
        # GitHub finds it out once somebody has asked.
        is_mergeable = self.world.is_mergeable(pull) if tried in self._tried else None
        self._tried.add(tried)
        return {
            "number": pull.number,
            "title": pull.title,
            "body": pull.body,
            "state": pull.state,
            "draft": pull.is_draft,
            "user": {"login": pull.author},
            "head": {
                "ref": pull.head_branch,
                "sha": head,
                "repo": self._repository(pull.head_owner),
            },
            "base": {"ref": pull.base_branch, "sha": base, "repo": self._repository()},
            "mergeable": is_mergeable if pull.state == "open" else None,
            "merged": pull.is_merged,
            "merged_at": pull.updated_at if pull.is_merged else None,
            "merged_by": {"login": pull.merged_by} if pull.is_merged else None,
            "merge_commit_sha": pull.merge_commit or "1" * 40,
            "changed_files": len(self.world.changes(pull)),
            "html_url": f"{self.url}/{self.world.repository}/pull/{pull.number}",
            "created_at": pull.created_at,
            "updated_at": pull.updated_at,
        }

    def _file(self, status: str, path: str, former: str) -> dict[str, Any]:
        document = {"filename": path, "status": status}
        return {**document, "previous_filename": former} if status == "renamed" else document

    def _comment(self, comment: WorldComment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "user": {"login": comment.author},
            "body": comment.body,
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
        }

    def _status(self, status: WorldStatus) -> dict[str, Any]:
        return {
            "id": status.id,
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": status.url,
        }

    def _issue(self, issue: WorldIssue) -> dict[str, Any]:
        return {
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "state": "open" if issue.is_open else "closed",
            "user": {"login": issue.author},
        }
