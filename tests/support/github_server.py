"""A GitHub for tests: it keeps one repository, and holds both sides to the OpenAPI that GitHub publishes."""

from __future__ import annotations

from tests.support.forge_double import Call, RefusalError, Reply, route
from tests.support.forge_world import WorldIssue
from tests.support.github_base import REPO, STATES
from tests.support.github_rules import GithubRules

__all__ = ["GithubServer"]


class GithubServer(GithubRules):
    """The server."""

    # --- Users, the repository, branches

    @route("GET", "/v3/user")
    def get_user(self, call: Call) -> Reply:
        if call.login in self.apps:
            raise RefusalError(403, "Resource not accessible by integration")
        return Reply({"login": call.login})

    @route("POST", "/graphql")
    def query(self, call: Call) -> Reply:
        assert "viewer" in call.body["query"]
        return Reply({"data": {"viewer": {"login": call.login}}})

    @route("GET", f"/v3{REPO}")
    def get_repository(self, call: Call) -> Reply:
        self._check(call)
        return Reply(self._repository())

    @route("GET", f"/v3{REPO}/git/ref/{{ref:.+}}")
    def get_ref(self, call: Call) -> Reply:
        self._check(call)
        name = call.names["ref"].removeprefix("heads/")
        sha = self._find(self.world.branches, name)
        return Reply({"ref": f"refs/heads/{name}", "object": {"sha": sha, "type": "commit"}})

    @route("GET", f"/v3{REPO}/branches/{{branch}}")
    def get_branch(self, call: Call) -> Reply:
        self._check(call)
        self._find(self.world.branches, call.names["branch"])
        return Reply({"name": call.names["branch"], "protected": call.names["branch"] in self.protections})

    # --- Pull requests

    @route("GET", f"/v3{REPO}/pulls")
    def list_pulls(self, call: Call) -> Reply:
        self._check(call)
        query = call.query
        _, _, head = query.get("head", "").partition(":")
        found = [
            pull
            for pull in self.world.pulls.values()
            if query.get("state", "open") in (pull.state, "all")
            and query.get("base", pull.base_branch) == pull.base_branch
            and head in ("", pull.head_branch)
        ]
        found.sort(key=lambda pull: pull.updated_at if query.get("sort") == "updated" else pull.created_at)
        if query.get("direction", "desc") == "desc":
            found.reverse()
        hidden = ("mergeable", "merged", "merged_by", "changed_files")
        return Reply(
            [{key: value for key, value in self._pull(pull).items() if key not in hidden} for pull in found]
        )

    @route("POST", f"/v3{REPO}/pulls")
    def create_pull(self, call: Call) -> Reply:
        self._check(call)
        body = call.body
        if self.world.find_open(body["head"], body["base"]):
            raise RefusalError(422, "Validation Failed: A pull request already exists")
        if body["head"] not in self.world.branches or body["base"] not in self.world.branches:
            raise RefusalError(422, "Validation Failed: invalid head or base")
        pull = self.world.open_pull(
            body["title"], body.get("body", ""), body["head"], body["base"], call.login
        )
        return Reply(self._pull(pull), 201)

    @route("GET", f"/v3{REPO}/pulls/{{pull_number}}")
    def get_pull(self, call: Call) -> Reply:
        return Reply(self._pull(self._find_pull(call)))

    @route("PATCH", f"/v3{REPO}/pulls/{{pull_number}}")
    def edit_pull(self, call: Call) -> Reply:
        pull = self._find_pull(call)
        pull.title, pull.body = call.body.get("title", pull.title), call.body.get("body", pull.body)
        pull.updated_at = self.world.now()
        return Reply(self._pull(pull))

    @route("PUT", f"/v3{REPO}/pulls/{{pull_number}}/merge")
    def merge_pull(self, call: Call) -> Reply:
        pull = self._find_pull(call)
        if pull.state != "open" or pull.is_draft or not self.world.is_mergeable(pull):
            raise RefusalError(405, "Pull Request is not mergeable")
        if call.body.get("sha", self.world.head_of(pull)) != self.world.head_of(pull):
            raise RefusalError(409, "Head branch was modified. Review and try the merge again.")
        is_squash = call.body.get("merge_method") == "squash"
        sha = self.world.merge(pull, call.login, squash=is_squash)
        return Reply({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})

    @route("GET", f"/v3{REPO}/pulls/{{pull_number}}/files")
    def list_files(self, call: Call) -> Reply:
        return Reply(
            [
                self._file(*change)
                for change in self.world.changes(self._find_pull(call))[: self.changes_shown]
            ]
        )

    @route("GET", f"/v3{REPO}/pulls/{{pull_number}}/reviews")
    def list_reviews(self, call: Call) -> Reply:
        return Reply(
            [
                {
                    "id": review.id,
                    "user": {"login": review.author},
                    "state": "DISMISSED" if review.is_dismissed else STATES[review.verdict],
                    "commit_id": review.commit,
                    "submitted_at": review.at,
                    "body": "",
                }
                for review in self._find_pull(call).reviews
            ]
        )

    @route("GET", f"/v3{REPO}/commits/{{commit_sha}}/pulls")
    def list_pulls_of_commit(self, call: Call) -> Reply:
        self._check(call)
        sha = call.names["commit_sha"]
        if sha not in self.world.commits:
            raise RefusalError(422, f"No commit found for SHA: {sha}")
        found = [
            pull for pull in self.world.pulls.values() if sha in (pull.merge_commit, self.world.head_of(pull))
        ]
        return Reply([self._pull(pull) for pull in found])

    @route("GET", f"/v3{REPO}/collaborators/{{username}}/permission")
    def get_permission(self, call: Call) -> Reply:
        self._check(call)
        login = call.names["username"]
        if login not in self.world.tokens.values():
            raise RefusalError(404, f"{login} is not a user")
        level = self.world.levels.get(login, "none")
        return Reply({"permission": level, "role_name": level, "user": {"login": login}})

    @route("GET", "/v3/orgs/{org}/teams/{team_slug}")
    def get_team(self, call: Call) -> Reply:
        self._find(self.world.teams, f"{call.names['org']}/{call.names['team_slug']}")
        return Reply({"slug": call.names["team_slug"], "permission": "push", "privacy": "closed"})

    @route("GET", "/v3/orgs/{org}/teams/{team_slug}/memberships/{username}")
    def get_membership(self, call: Call) -> Reply:
        members = self._find(self.world.teams, f"{call.names['org']}/{call.names['team_slug']}")
        if call.names["username"] not in members:
            raise RefusalError(404, "Not Found")
        return Reply({"state": "active", "role": "member", "url": "https://api.github.com"})

    # --- Comments, statuses, issues

    @route("GET", f"/v3{REPO}/issues/{{issue_number}}/comments")
    def list_comments(self, call: Call) -> Reply:
        self._check(call)
        number = call.number("issue_number")
        found = [one for one in self.world.comments.values() if one.number == number]
        return Reply([self._comment(one) for one in found])

    @route("POST", f"/v3{REPO}/issues/{{issue_number}}/comments")
    def create_comment(self, call: Call) -> Reply:
        self._check(call)
        if len(call.body["body"]) > 65_536:
            raise RefusalError(422, "body is too long (maximum is 65536 characters)")
        return Reply(
            self._comment(self.world.say(call.login, call.number("issue_number"), call.body["body"])), 201
        )

    @route("GET", f"/v3{REPO}/issues/comments/{{comment_id}}")
    def get_comment(self, call: Call) -> Reply:
        self._check(call)
        return Reply(self._comment(self._find(self.world.comments, call.number("comment_id"))))

    @route("PATCH", f"/v3{REPO}/issues/comments/{{comment_id}}")
    def edit_comment(self, call: Call) -> Reply:
        self._check(call)
        if call.number("comment_id") not in self.world.comments:
            raise RefusalError(404, "Not Found")
        comment = self.world.comments[call.number("comment_id")]
        comment.body, comment.updated_at = call.body["body"], self.world.now()
        return Reply(self._comment(comment))

    @route("GET", f"/v3{REPO}/commits/{{ref:[^/]+}}/status")
    def get_statuses(self, call: Call) -> Reply:
        self._check(call)
        statuses = [self._status(one) for one in self.world.last_statuses(call.names["ref"])]
        document = {"statuses": statuses, "state": "pending", "total_count": len(statuses)}
        return Reply({**document, "sha": call.names["ref"]}, key="statuses")

    @route("GET", f"/v3{REPO}/commits/{{ref:[^/]+}}/check-runs")
    def list_checks(self, call: Call) -> Reply:
        self._check(call)
        found = self.checks.get(call.names["ref"], [])
        return Reply({"total_count": len(found), "check_runs": found}, key="check_runs")

    @route("POST", f"/v3{REPO}/statuses/{{sha}}")
    def create_status(self, call: Call) -> Reply:
        self._check(call)
        has = call.body
        if len(has.get("context", "")) > 255 or len(has.get("description") or "") > 140:
            raise RefusalError(422, "Validation Failed: too long")
        made = self.world.set_status(
            call.names["sha"],
            has["context"],
            has["state"],
            has.get("description") or "",
            has.get("target_url"),
        )
        return Reply(self._status(made), 201)

    @route("GET", f"/v3{REPO}/issues")
    def list_issues(self, call: Call) -> Reply:
        self._check(call)
        wanted = call.query.get("state", "open") == "open"
        issues = [
            self._issue(issue)
            for issue in self.world.issues.values()
            if issue.is_open == wanted and call.query.get("creator", issue.author) == issue.author
        ]
        # Pull requests are in this list, too.
        link = {"pull_request": {"url": None, "html_url": None, "diff_url": None, "patch_url": None}}
        pulls = [
            {"number": pull.number, "title": pull.title, "body": pull.body, "user": {"login": pull.author}}
            | {"state": pull.state, **link}
            for pull in self.world.pulls.values()
            if (pull.state == "open") == wanted
        ]
        return Reply([*issues, *pulls])

    @route("POST", f"/v3{REPO}/issues")
    def create_issue(self, call: Call) -> Reply:
        self._check(call)
        number = self.world.new_number()
        issue = WorldIssue(number, call.body["title"], call.body["body"], call.login, True, self.world.now())
        self.world.issues[number] = issue
        return Reply(self._issue(issue), 201)

    @route("PATCH", f"/v3{REPO}/issues/{{issue_number}}")
    def edit_issue(self, call: Call) -> Reply:
        self._check(call)
        issue = self._find(self.world.issues, call.number("issue_number"))
        issue.title, issue.body = call.body.get("title", issue.title), call.body.get("body", issue.body)
        issue.is_open = call.body.get("state", "open" if issue.is_open else "closed") == "open"
        return Reply(self._issue(issue))
