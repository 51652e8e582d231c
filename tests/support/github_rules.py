"""The part of the double of GitHub about the protection of branches, and about webhooks."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections.abc import Mapping
from typing import Any

from tests.support.forge_double import Call, RefusalError, Reply, route
from tests.support.forge_world import WorldComment
from tests.support.github_base import REPO, STATES, GithubBase

__all__ = ["GithubRules"]

JSON = "application/json"


class GithubRules(GithubBase):
    """Protection, rulesets and webhooks."""

    @route("GET", f"/v3{REPO}/rules/branches/{{branch}}")
    def list_rules(self, call: Call) -> Reply:
        self._check(call)
        return Reply(self.rules)

    @route("GET", f"/v3{REPO}/rulesets/{{ruleset_id}}")
    def get_ruleset(self, call: Call) -> Reply:
        self._check(call)
        return Reply(self._find(self.rulesets, call.number("ruleset_id")))

    @route("GET", f"/v3{REPO}/branches/{{branch}}/protection")
    def get_protection(self, call: Call) -> Reply:
        self._check(call)
        if self.world.levels[call.login] != "admin":
            raise RefusalError(404, "Not Found")
        if call.names["branch"] not in self.protections:
            raise RefusalError(404, "Branch not protected")
        return Reply(self.protections[call.names["branch"]])

    @route("PUT", f"/v3{REPO}/branches/{{branch}}/protection")
    def set_protection(self, call: Call) -> Reply:
        self._check(call)
        self._find(self.world.branches, call.names["branch"])
        self.protections[call.names["branch"]] = _show_protection(call.body)
        return Reply(
            {"url": self.url, "enforce_admins": {"url": self.url, "enabled": call.body["enforce_admins"]}}
        )

    @route("GET", f"/v3{REPO}/hooks")
    def list_hooks(self, call: Call) -> Reply:
        self._check(call)
        return Reply([_hide_secret(hook) for hook in self.world.hooks.values()])

    @route("POST", f"/v3{REPO}/hooks")
    def create_hook(self, call: Call) -> Reply:
        self._check(call)
        if any(hook["config"]["url"] == call.body["config"]["url"] for hook in self.world.hooks.values()):
            raise RefusalError(422, "Validation Failed: Hook already exists on this repository")
        hook = {**call.body, "id": self.world.new_id(), "type": "Repository", "name": "web"}
        self.world.hooks[hook["id"]] = hook
        self._send_event(hook, "ping", "ping", {"zen": "Keep it simple.", "hook_id": hook["id"]})
        return Reply(_hide_secret(hook), 201)

    @route("PATCH", f"/v3{REPO}/hooks/{{hook_id}}")
    def edit_hook(self, call: Call) -> Reply:
        self._check(call)
        hook = self._find(self.world.hooks, call.number("hook_id"))
        hook |= call.body
        return Reply(_hide_secret(hook))

    def tell(self, kind: str, action: str, subject: Any, who: str) -> None:
        event, name, document = self._describe_event(kind, action, subject)
        document |= {"sender": {"login": who}, "repository": self._repository()}
        for hook in self.world.hooks.values():
            if event in hook["events"]:
                self._send_event(hook, event, name, document)

    def _describe_event(self, kind: str, action: str, subject: Any) -> tuple[str, str, dict[str, Any]]:
        if kind == "push":
            ref = {"ref": f"refs/heads/{action}", "after": subject, "before": "0" * 40}
            return "push", "push", ref
        if kind == "comment":
            comment: WorldComment = subject
            document: dict[str, Any] = {
                "issue": {"number": comment.number},
                "comment": self._comment(comment),
            }
            return "issue_comment", "issue-comment-created", {**document, "action": "created"}
        if kind == "review":
            review = subject.reviews[-1]
            said = {"user": {"login": review.author}, "state": STATES[review.verdict].lower()}
            said |= {"commit_id": review.commit, "submitted_at": review.at, "id": review.id}
            document = {"action": "submitted", "review": said, "pull_request": self._pull(subject)}
            return "pull_request_review", "pull-request-review-submitted", document
        actions = {"open": "opened", "push": "synchronize", "merge": "closed"}
        document = {"action": actions[action], "number": subject.number, "pull_request": self._pull(subject)}
        return "pull_request", f"pull-request-{actions[action]}", document

    def _send_event(self, hook: Mapping[str, Any], event: str, name: str, document: Any) -> None:
        if self.webhooks is not None:
            described = self.webhooks.document["webhooks"][name]["post"]["requestBody"]["content"][JSON]
            document = self.webhooks.fill(described["schema"], document)
            try:
                self.webhooks.check(described["schema"], document, name)
            except AssertionError as err:
                self.violations.append(str(err))
        headers = {"X-GitHub-Event": event, "X-GitHub-Delivery": str(uuid.uuid4())}
        self.send(hook["config"]["url"], headers, document)

    def sign(self, headers: Mapping[str, str], data: bytes, url: str) -> Mapping[str, str]:
        hook = next(hook for hook in self.world.hooks.values() if hook["config"]["url"] == url)
        digest = hmac.new(hook["config"]["secret"].encode(), data, hashlib.sha256).hexdigest()
        return {**headers, "X-Hub-Signature-256": f"sha256={digest}"}


def _hide_secret(hook: Mapping[str, Any]) -> dict[str, Any]:
    return {**hook, "config": {**hook["config"], "secret": "********"}}


def _show_protection(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the protection of a branch as it is shown; it is set in another form."""
    shown: dict[str, Any] = {"enforce_admins": {"url": "", "enabled": bool(given["enforce_admins"])}}
    if checks := given["required_status_checks"]:
        names = [check["context"] for check in checks["checks"]] or checks["contexts"]
        listed = [{"context": check["context"], "app_id": check.get("app_id")} for check in checks["checks"]]
        shown["required_status_checks"] = {"strict": checks["strict"], "contexts": names, "checks": listed}
    if reviews := given["required_pull_request_reviews"]:
        shown["required_pull_request_reviews"] = {
            key: _show_actors(value) if isinstance(value, dict) else value for key, value in reviews.items()
        }
    if given["restrictions"]:
        shown["restrictions"] = _show_actors(given["restrictions"])
    for name, value in given.items():
        if isinstance(value, bool) and name != "enforce_admins":
            shown[name] = {"enabled": value}
    return shown


def _show_actors(given: Mapping[str, Any]) -> dict[str, Any]:
    keys = {"users": "login", "teams": "slug", "apps": "slug"}
    return {name: [{key: one} for one in given.get(name, ())] for name, key in keys.items()}
