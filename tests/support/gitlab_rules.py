"""The part of the double of GitLab about the protection of branches, approvals and webhooks."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from tests.support.forge_double import Call, RefusalError, Reply, route
from tests.support.gitlab_base import OURS, PROJECT, GitlabBase

__all__ = ["GitlabRules"]

RULE_WORDS = frozenset(
    "name push_access_level merge_access_level unprotect_access_level allow_force_push allowed_to_push "
    "allowed_to_merge allowed_to_unprotect code_owner_approval_required".split()
)
SETTINGS = frozenset({"merge_method", "only_allow_merge_if_pipeline_succeeds"})
HOOK_WORDS = frozenset(
    {"url", "token", "push_events", "merge_requests_events", "note_events", "enable_ssl_verification"}
)


class GitlabRules(GitlabBase):
    """Protection and webhooks."""

    @route("PUT", PROJECT)
    def edit_project(self, call: Call) -> Reply:
        self.check(call)
        assert call.body.keys() <= SETTINGS, call.body
        assert call.body.get("merge_method", "merge") in ("merge", "rebase_merge", "ff")
        self.settings |= call.body
        return Reply(self.project())

    @route("GET", f"{PROJECT}/protected_branches")
    def list_rules(self, call: Call) -> Reply:
        self.check(call)
        return Reply(list(self.rules.values()))

    @route("POST", f"{PROJECT}/protected_branches")
    def create_rule(self, call: Call) -> Reply:
        self.check(call)
        has = call.body
        assert has.keys() <= RULE_WORDS, has
        if has["name"] in self.rules:
            raise RefusalError(409, f"Protected branch '{has['name']}' already exists")
        self.rules[has["name"]] = {
            "id": self.world.new_id(),
            "name": has["name"],
            "push_access_levels": [{"access_level": has.get("push_access_level", 40)}],
            "merge_access_levels": has.get("allowed_to_merge")
            or [{"access_level": has.get("merge_access_level", 40)}],
            "unprotect_access_levels": has.get("allowed_to_unprotect")
            or [{"access_level": has.get("unprotect_access_level", 40)}],
            "allow_force_push": has.get("allow_force_push", False),
            "code_owner_approval_required": has.get("code_owner_approval_required", False),
        }
        return Reply(self.rules[has["name"]], 201)

    @route("DELETE", f"{PROJECT}/protected_branches/{{name}}")
    def remove_rule(self, call: Call) -> Reply:
        self.check(call)
        self.find(self.rules, call.names["name"])
        del self.rules[call.names["name"]]
        return Reply(None, 204)

    @route("GET", f"{PROJECT}/approvals")
    def get_approvals(self, call: Call) -> Reply:
        self._check_edition(call)
        return Reply({"reset_approvals_on_push": self.resets})

    @route("POST", f"{PROJECT}/approvals")
    def set_approvals(self, call: Call) -> Reply:
        self._check_edition(call)
        assert call.body.keys() == {"reset_approvals_on_push"}
        self.resets = call.body["reset_approvals_on_push"]
        return Reply({"reset_approvals_on_push": self.resets}, 201)

    @route("GET", f"{PROJECT}/approval_rules")
    def list_approval_rules(self, call: Call) -> Reply:
        return Reply(list(self._check_edition(call).values()))

    @route("POST", f"{PROJECT}/approval_rules")
    def create_approval_rule(self, call: Call) -> Reply:
        rules = self._check_edition(call)
        assert call.body.keys() == {"name", "rule_type", "approvals_required"}
        if any(rule["rule_type"] == "any_approver" for rule in rules.values()):
            raise RefusalError(400, "any-approver for the project already exists")
        rule = {**call.body, "id": self.world.new_id(), "protected_branches": []}
        rules[rule["id"]] = rule
        return Reply(rule, 201)

    @route("PUT", f"{PROJECT}/approval_rules/{{rule}}")
    def edit_approval_rule(self, call: Call) -> Reply:
        rule = self.find(self._check_edition(call), call.number("rule"))
        rule |= call.body
        return Reply(rule)

    def _check_edition(self, call: Call) -> dict[int, dict[str, Any]]:
        self.check(call)
        if self.approval_rules is None:
            raise RefusalError(404, "Not Found")
        return self.approval_rules

    # --- Webhooks

    @route("GET", f"{PROJECT}/hooks")
    def list_hooks(self, call: Call) -> Reply:
        self.check(call)
        hidden = {"token"}
        hooks = self.world.hooks.values()
        return Reply([{key: value for key, value in hook.items() if key not in hidden} for hook in hooks])

    @route("POST", f"{PROJECT}/hooks")
    def create_hook(self, call: Call) -> Reply:
        self.check(call)
        assert call.body.keys() <= HOOK_WORDS, call.body
        hook = {"push_events": True, "note_events": False, "merge_requests_events": False, **call.body}
        hook["id"] = self.world.new_id()
        self.world.hooks[hook["id"]] = hook
        return Reply({"id": hook["id"], "url": hook["url"]}, 201)

    @route("PUT", f"{PROJECT}/hooks/{{hook}}")
    def edit_hook(self, call: Call) -> Reply:
        self.check(call)
        assert call.body.keys() <= HOOK_WORDS, call.body
        hook = self.find(self.world.hooks, call.number("hook"))
        hook |= call.body
        return Reply({"id": hook["id"], "url": hook["url"]})

    @route("DELETE", f"{PROJECT}/hooks/{{hook}}")
    def remove_hook(self, call: Call) -> Reply:
        self.check(call)
        self.find(self.world.hooks, call.number("hook"))
        del self.world.hooks[call.number("hook")]
        return Reply(None, 204)

    def tell(self, kind: str, action: str, subject: Any, who: str) -> None:
        event, switch, document = self._describe_event(kind, action, subject, who)
        document |= {"project": {"id": OURS, "path_with_namespace": self.world.repository}}
        for hook in self.world.hooks.values():
            if hook[switch]:
                headers = {"X-Gitlab-Event": event, "Idempotency-Key": str(uuid.uuid4())}
                self.send(hook["url"], headers, document)

    def _describe_event(
        self, kind: str, action: str, subject: Any, who: str
    ) -> tuple[str, str, dict[str, Any]]:
        user = {"user": {"username": who}}
        if kind == "push":
            document = {"object_kind": "push", "ref": f"refs/heads/{action}", "after": subject}
            return "Push Hook", "push_events", {**document, "user_username": who}
        if kind == "comment":
            said = {
                "id": subject.id,
                "note": subject.body,
                "noteable_type": "MergeRequest",
                "action": "create",
            }
            document = {"object_kind": "note", "object_attributes": said, **user}
            return "Note Hook", "note_events", {**document, "merge_request": {"iid": subject.number}}
        actions = {"open": "open", "push": "update", "merge": "merge", "approve": "approved"}
        about = {"iid": subject.number, "action": actions.get(action, "update")}
        about["last_commit"] = {"id": self.world.head_of(subject)}
        document = {"object_kind": "merge_request", "object_attributes": about, **user}
        return "Merge Request Hook", "merge_requests_events", document

    def sign(self, headers: Mapping[str, str], data: bytes, url: str) -> Mapping[str, str]:
        hook = next(hook for hook in self.world.hooks.values() if hook["url"] == url)
        return {**headers, "X-Gitlab-Token": hook["token"]}
