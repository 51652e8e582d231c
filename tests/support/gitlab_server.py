"""A GitLab for tests: a double of ours, made after what its documentation says of its interface.

GitLab publishes no description of it as a package, so that nothing but this double judges the adapter.
"""

from __future__ import annotations

from tests.support.forge_double import Call, RefusalError, Reply, route
from tests.support.forge_world import WorldIssue
from tests.support.gitlab_base import FORK, LEVELS, PROJECT
from tests.support.gitlab_rules import GitlabRules

__all__ = ["GitlabServer"]

STATES = {"opened": "open", "closed": "closed", "merged": "closed"}
PENDING = frozenset({"pending", "running"})


class GitlabServer(GitlabRules):
    """The server."""

    @route("GET", "/user")
    def get_user(self, call: Call) -> Reply:
        return Reply({"username": call.login})

    @route("GET", PROJECT)
    def get_project(self, call: Call) -> Reply:
        if call.names["id"] == str(FORK):
            return Reply({"id": FORK, "path_with_namespace": "stranger/infra", "visibility": "public"})
        self.check(call)
        return Reply(self.project())

    @route("GET", f"{PROJECT}/repository/branches/{{branch}}")
    def get_branch(self, call: Call) -> Reply:
        self.check(call)
        sha = self.find(self.world.branches, call.names["branch"])
        return Reply({"name": call.names["branch"], "commit": {"id": sha}})

    # --- Merge requests

    @route("GET", f"{PROJECT}/merge_requests")
    def list_pulls(self, call: Call) -> Reply:
        self.check(call)
        query = call.query
        assert query.keys() <= set(
            "state scope order_by sort target_branch source_branch updated_after page per_page".split()
        ), query
        found = [
            pull
            for pull in self.world.pulls.values()
            if STATES[query["state"]] == pull.state
            and (query["state"] == "merged") == pull.is_merged
            and query.get("target_branch", pull.base_branch) == pull.base_branch
            and query.get("source_branch", pull.head_branch) == pull.head_branch
            and pull.updated_at >= query.get("updated_after", "")
        ]
        found.sort(key=lambda pull: pull.updated_at, reverse=query.get("sort", "desc") == "desc")
        return Reply([self.pull(pull) for pull in found])

    @route("POST", f"{PROJECT}/merge_requests")
    def create_pull(self, call: Call) -> Reply:
        self.check(call)
        has = call.body
        assert has.keys() == {"source_branch", "target_branch", "title", "description"}
        self._obey(has["description"])
        if other := self.world.find_open(has["source_branch"], has["target_branch"]):
            raise RefusalError(409, f"Another open merge request already exists: !{other.number}")
        self.find(self.world.branches, has["source_branch"])
        pull = self.world.open_pull(
            has["title"], has["description"], has["source_branch"], has["target_branch"], call.login
        )
        return Reply(self.pull(pull), 201)

    @route("GET", f"{PROJECT}/merge_requests/{{iid}}")
    def get_pull(self, call: Call) -> Reply:
        return Reply(self.pull(self.find_pull(call)))

    @route("PUT", f"{PROJECT}/merge_requests/{{iid}}")
    def edit_pull(self, call: Call) -> Reply:
        pull = self.find_pull(call)
        self._obey(call.body.get("description", ""))
        pull.title, pull.body = call.body.get("title", pull.title), call.body.get("description", pull.body)
        pull.updated_at = self.world.now()
        return Reply(self.pull(pull))

    @route("PUT", f"{PROJECT}/merge_requests/{{iid}}/merge")
    def merge_pull(self, call: Call) -> Reply:
        pull = self.find_pull(call)
        assert call.body.keys() == {"sha", "squash"}
        if pull.state != "open" or pull.is_draft:
            raise RefusalError(405, "Method Not Allowed")
        if call.body["sha"] != self.world.head_of(pull):
            raise RefusalError(409, "SHA does not match HEAD of source branch")
        if not self.world.is_mergeable(pull):
            raise RefusalError(422, "Branch cannot be merged")
        self.world.merge(pull, call.login, squash=call.body["squash"])
        return Reply(self.pull(pull))

    @route("GET", f"{PROJECT}/merge_requests/{{iid}}/diffs")
    def list_diffs(self, call: Call) -> Reply:
        return Reply(
            [
                {
                    "old_path": former,
                    "new_path": path,
                    "new_file": status == "added",
                    "renamed_file": status == "renamed",
                    "deleted_file": status == "removed",
                }
                for status, path, former in self.world.changes(self.find_pull(call))
            ]
        )

    @route("GET", f"{PROJECT}/repository/commits/{{sha}}/merge_requests")
    def list_pulls_of_commit(self, call: Call) -> Reply:
        self.check(call)
        sha = call.names["sha"]
        self.find(self.world.commits, sha)
        pulls = self.world.pulls.values()
        return Reply(
            [self.pull(pull) for pull in pulls if sha in (pull.merge_commit, self.world.head_of(pull))]
        )

    @route("GET", f"{PROJECT}/merge_requests/{{iid}}/approvals")
    def get_approvals_of_pull(self, call: Call) -> Reply:
        last = {
            review.author: review for review in self.find_pull(call).reviews if review.verdict != "comment"
        }
        approvals = [
            {"user": {"username": review.author}, "approved_at": review.at}
            for review in last.values()
            if review.verdict == "approve" and not review.is_dismissed
        ]
        return Reply({"approved": bool(approvals), "approved_by": approvals})

    @route("GET", f"{PROJECT}/merge_requests/{{iid}}/reviewers")
    def list_reviewers(self, call: Call) -> Reply:
        last = {
            review.author: review for review in self.find_pull(call).reviews if review.verdict != "comment"
        }
        states = {"approve": "approved", "reject": "requested_changes"}
        return Reply(
            [
                {"user": {"username": review.author}, "state": states[review.verdict]}
                for review in last.values()
                if not review.is_dismissed
            ]
        )

    @route("GET", f"{PROJECT}/members/all")
    def list_members(self, call: Call) -> Reply:
        self.check(call)
        wanted = call.query["query"]
        return Reply(
            [
                {"username": login, "access_level": LEVELS[level], "state": "active"}
                for login, level in self.world.levels.items()
                if wanted in login
            ]
        )

    @route("GET", "/groups/{group}/members/all")
    def list_group(self, call: Call) -> Reply:
        members = self.find(self.world.teams, call.names["group"])
        return Reply(
            [{"username": login, "access_level": 30, "state": "active"} for login in sorted(members)]
        )

    # --- Notes, statuses, issues

    @route("GET", f"{PROJECT}/merge_requests/{{iid}}/notes")
    def list_notes(self, call: Call) -> Reply:
        number = self.find_pull(call).number
        notes = [self.note(one) for one in self.world.comments.values() if one.number == number]
        # What GitLab itself writes is between them.
        written = {"id": 1, "author": {"username": "author"}, "body": "added 1 commit", "system": True}
        return Reply([written, *notes])

    @route("POST", f"{PROJECT}/merge_requests/{{iid}}/notes")
    def create_note(self, call: Call) -> Reply:
        number = self.find_pull(call).number
        if len(call.body["body"]) > 1_000_000:
            raise RefusalError(400, "Note is too long")
        self._obey(call.body["body"])
        return Reply(self.note(self.world.say(call.login, number, call.body["body"])), 201)

    @route("GET", f"{PROJECT}/merge_requests/{{iid}}/notes/{{note}}")
    def get_note(self, call: Call) -> Reply:
        self.find_pull(call)
        return Reply(self.note(self.find(self.world.comments, call.number("note"))))

    @route("PUT", f"{PROJECT}/merge_requests/{{iid}}/notes/{{note}}")
    def edit_note(self, call: Call) -> Reply:
        self.find_pull(call)
        comment = self.find(self.world.comments, call.number("note"))
        self._obey(call.body["body"])
        comment.body, comment.updated_at = call.body["body"], self.world.now()
        return Reply(self.note(comment))

    def _obey(self, text: str) -> None:
        """Refuse what GitLab would take for a command."""
        assert not any(line.lstrip().startswith("/") for line in text.splitlines()), "a quick action"

    @route("GET", f"{PROJECT}/repository/commits/{{sha}}/statuses")
    def list_statuses(self, call: Call) -> Reply:
        self.check(call)
        found = self.world.last_statuses(call.names["sha"])
        wanted = call.query.get("name", "")
        return Reply([self.status(one) for one in found if wanted in ("", one.context)])

    @route("POST", f"{PROJECT}/statuses/{{sha}}")
    def create_status(self, call: Call) -> Reply:
        self.check(call)
        has = call.body
        assert has.keys() <= {"name", "state", "description", "target_url"}, has
        assert has["state"] in ("pending", "running", "success", "failed", "canceled", "skipped"), has
        last = {one.context: one.state for one in self.world.last_statuses(call.names["sha"])}
        if has["state"] == "pending" and last.get(has["name"]) in PENDING:
            raise RefusalError(400, f"Cannot transition status via :enqueue from :{last[has['name']]}")
        if len(has["name"]) > 255 or len(has["description"]) > 255:
            raise RefusalError(400, "name or description is too long")
        made = self.world.set_status(
            call.names["sha"], has["name"], has["state"], has["description"], has.get("target_url")
        )
        return Reply(self.status(made), 201)

    @route("GET", f"{PROJECT}/issues")
    def list_issues(self, call: Call) -> Reply:
        self.check(call)
        assert call.query["scope"] == "created_by_me"
        wanted = call.query["state"] == "opened"
        issues = self.world.issues.values()
        return Reply(
            [self.issue(one) for one in issues if one.is_open == wanted and one.author == call.login]
        )

    @route("POST", f"{PROJECT}/issues")
    def create_issue(self, call: Call) -> Reply:
        self.check(call)
        assert call.body.keys() == {"title", "description"}
        self._obey(call.body["description"])
        number = self.world.new_number()
        issue = WorldIssue(
            number, call.body["title"], call.body["description"], call.login, True, self.world.now()
        )
        self.world.issues[number] = issue
        return Reply(self.issue(issue), 201)

    @route("PUT", f"{PROJECT}/issues/{{iid}}")
    def edit_issue(self, call: Call) -> Reply:
        self.check(call)
        assert call.body.keys() <= {"title", "description", "state_event"}
        issue = self.find(self.world.issues, call.number("iid"))
        self._obey(call.body.get("description", ""))
        issue.title = call.body.get("title", issue.title)
        issue.body = call.body.get("description", issue.body)
        if event := call.body.get("state_event"):
            issue.is_open = event == "reopen"
        return Reply(self.issue(issue))
