"""What the parts of the double of GitLab share: what it keeps, and how it shows that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from aiohttp import web
from tests.support.forge_double import Call, ForgeDouble, RefusalError
from tests.support.forge_world import WorldComment, WorldIssue, WorldPull, WorldStatus

__all__ = ["PROJECT", "GitlabBase"]

PROJECT = "/projects/{id}"
# The numbers of projects: ours, and the fork.
OURS, FORK = 7, 8
LEVELS = {"none": 0, "guest": 10, "reporter": 20, "developer": 30, "maintainer": 40, "owner": 50}


@dataclass
class GitlabBase(ForgeDouble):
    """The server.

    Attributes:
        settings: The settings of the project.
        rules: The rules of protected branches by their names.
        approval_rules: The rules for approvals by their numbers; None for the free edition.
        resets: Whether a push takes approvals back.
        asked_for: The query of each list, to hold it against what is published.
    """

    settings: dict[str, Any] = field(
        default_factory=lambda: {"merge_method": "merge", "only_allow_merge_if_pipeline_succeeds": False}
    )
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    approval_rules: dict[int, dict[str, Any]] | None = field(default_factory=dict)
    resets: bool = False
    prefix: ClassVar[str] = "/api/v4"
    _checked: set[tuple[int, str, str]] = field(default_factory=set)

    def find_login(self, request: web.Request) -> str:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.world.tokens.get(token, "") if kind == "Bearer" else ""

    def describe_error(self, status: int, message: str) -> Any:
        return {"message": f"{status} {message}"}

    # --- Documents

    def check(self, call: Call) -> None:
        """Refuse who may not see the project, and another project."""
        if call.names["id"] not in (self.world.repository, str(OURS)):
            raise RefusalError(404, "Project Not Found")
        if LEVELS[self.world.levels.get(call.login, "none")] < LEVELS["reporter"]:
            raise RefusalError(404, "Project Not Found")

    def find(self, known: Any, key: Any) -> Any:
        if key not in known:
            raise RefusalError(404, "Not found")
        return known[key]

    def find_pull(self, call: Call) -> WorldPull:
        self.check(call)
        found: WorldPull = self.find(self.world.pulls, call.number("iid"))
        return found

    def project(self) -> dict[str, Any]:
        name = self.world.repository
        return {
            "id": OURS,
            "path_with_namespace": name,
            "default_branch": "main",
            "http_url_to_repo": f"{self.url}/{name}.git",
            "web_url": f"{self.url}/{name}",
            "visibility": "private",
            **self.settings,
        }

    def pull(self, pull: WorldPull) -> dict[str, Any]:
        head, base = self.world.head_of(pull), self.world.base_of(pull)
        seen = (pull.number, head, base)
        # GitLab checks it once somebody has asked.
        status = "unchecked" if seen not in self._checked else "mergeable"
        has_conflicts = status != "unchecked" and not self.world.is_mergeable(pull)
        self._checked.add(seen)
        squash = len(self.world.commits[pull.merge_commit].parents) == 1 if pull.merge_commit else False
        return {
            "iid": pull.number,
            "title": pull.title,
            "description": pull.body,
            "author": {"username": pull.author},
            "state": "merged" if pull.is_merged else "opened" if pull.state == "open" else "closed",
            "draft": pull.is_draft,
            "sha": head,
            "source_branch": pull.head_branch,
            "target_branch": pull.base_branch,
            "source_project_id": FORK if pull.head_owner else OURS,
            "target_project_id": OURS,
            "diff_refs": {"start_sha": base, "head_sha": head, "base_sha": self.world.merge_base(base, head)},
            "has_conflicts": has_conflicts,
            "detailed_merge_status": "conflict" if has_conflicts else status,
            # A squash on a project that merges without merge commits has only that one.
            "merge_commit_sha": None if squash or not pull.is_merged else pull.merge_commit,
            "squash_commit_sha": pull.merge_commit if squash else None,
            "merge_user": {"username": pull.merged_by} if pull.is_merged else None,
            "changes_count": str(len(self.world.changes(pull))),
            "web_url": f"{self.url}/{self.world.repository}/-/merge_requests/{pull.number}",
            "updated_at": pull.updated_at,
        }

    def note(self, comment: WorldComment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "author": {"username": comment.author},
            "body": comment.body,
            "system": False,
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
        }

    def status(self, status: WorldStatus) -> dict[str, Any]:
        return {
            "id": status.id,
            "name": status.context,
            "status": status.state,
            "description": status.description,
            "target_url": status.url,
        }

    def issue(self, issue: WorldIssue) -> dict[str, Any]:
        return {
            "iid": issue.number,
            "title": issue.title,
            "description": issue.body,
            "state": "opened" if issue.is_open else "closed",
            "author": {"username": issue.author},
            "web_url": f"{self.url}/{self.world.repository}/-/issues/{issue.number}",
        }
