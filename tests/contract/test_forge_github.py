"""What only GitHub has; and that its double lets nothing pass that GitHub does not know."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.forge_double_rig import GithubRig, open_described_github_rig, open_github_rig
from tests.support.github_base import GithubBase
from tests.support.openapi import OpenApi, find_openapi, find_webhooks, require

from stackyard.clients.forge.failures import ForgeRefusedError, ForgeUnauthorizedError
from stackyard.clients.forge.model import CommitState, Protection

pytestmark = pytest.mark.timeout(300)
JUDGED = pytest.mark.judges("github-openapi", "github-webhooks")
OPEN = pytest.mark.parametrize(
    "open_rig", [open_github_rig, pytest.param(open_described_github_rig, marks=JUDGED)]
)


def keep(rig: GithubRig) -> GithubBase:
    assert isinstance(rig.server, GithubBase)
    return rig.server


@OPEN
async def test_token_of_an_app_has_a_login(open_rig: Any) -> None:
    async with open_rig() as rig, rig.open() as forge:
        keep(rig).apps.add(rig.bot)
        assert await forge.login() == rig.bot


@OPEN
async def test_checks_are_told_beside_statuses(open_rig: Any) -> None:
    async with open_rig() as rig, rig.open() as forge:
        head = await rig.commit("feature", {"a": "1"})
        runs = [
            ("lint", "completed", "success"),
            ("docs", "completed", "skipped"),
            ("test", "in_progress", None),
        ]
        runs += [("types", "completed", "cancelled")]
        keep(rig).checks[head] = [
            {"name": name, "status": status, "conclusion": conclusion} for name, status, conclusion in runs
        ]
        assert {one.context: one.state for one in await forge.statuses(head)} == {
            "lint": CommitState.SUCCESS,
            "docs": CommitState.SUCCESS,
            "test": CommitState.PENDING,
            "types": CommitState.FAILURE,
        }


OWN: dict[str, Any] = {
    "required_status_checks": {
        "strict": False,
        "contexts": ["stackyard"],
        "checks": [{"context": "stackyard", "app_id": 17}],
    },
    "enforce_admins": {"url": "https://example.org", "enabled": False},
    "required_pull_request_reviews": {
        "dismiss_stale_reviews": False,
        "require_code_owner_reviews": True,
        "required_approving_review_count": 1,
        "require_last_push_approval": True,
        "dismissal_restrictions": {
            "users": [{"login": "author"}],
            "teams": [{"slug": "keepers"}],
            "apps": [],
        },
    },
    "restrictions": {"users": [], "teams": [{"slug": "keepers"}], "apps": [{"slug": "robot"}]},
    "required_linear_history": {"enabled": True},
    "allow_force_pushes": {"enabled": False},
}


@OPEN
async def test_protection_keeps_what_it_has_besides(open_rig: Any) -> None:
    async with open_rig() as rig, rig.open() as forge:
        shown = keep(rig).protections
        shown["main"] = OWN
        wanted = Protection(
            branch="main", blocks_pushes=True, binds_admins=True, checks=("stackyard", "lint"), approvals=2
        )
        await forge.protect(wanted)
        assert await forge.protection("main") == wanted
        now = shown["main"]
        assert now["required_status_checks"]["checks"] == [
            {"context": "stackyard", "app_id": 17},
            {"context": "lint", "app_id": None},
        ]
        reviews = now["required_pull_request_reviews"]
        assert reviews["require_code_owner_reviews"] is reviews["require_last_push_approval"] is True
        assert (
            reviews["dismissal_restrictions"]
            == OWN["required_pull_request_reviews"]["dismissal_restrictions"]
        )
        assert now["restrictions"] == OWN["restrictions"]
        assert now["required_linear_history"] == {"enabled": True}


@OPEN
@pytest.mark.parametrize(("bypass", "binds"), [([], True), ([{"actor_type": "OrganizationAdmin"}], False)])
async def test_rulesets_count_beside_the_protection_of_the_branch(
    open_rig: Any, bypass: list[dict[str, Any]], binds: bool
) -> None:
    async with open_rig() as rig, rig.open() as forge:
        server = keep(rig)
        source = {"ruleset_source_type": "Repository", "ruleset_source": rig.repository, "ruleset_id": 5}
        reviews = {
            "required_approving_review_count": 1,
            "dismiss_stale_reviews_on_push": True,
            "require_code_owner_review": False,
            "require_last_push_approval": False,
            "required_review_thread_resolution": False,
        }
        checks = {
            "required_status_checks": [{"context": "stackyard"}],
            "strict_required_status_checks_policy": True,
        }
        server.rules = [
            {"type": "pull_request", "parameters": reviews, **source},
            {"type": "required_status_checks", "parameters": checks, **source},
            {"type": "deletion", **source},
        ]
        server.rulesets[5] = {"id": 5, "name": "main", "enforcement": "active", "bypass_actors": bypass}
        assert await forge.protection("main") == Protection(
            branch="main",
            blocks_pushes=True,
            binds_admins=binds,
            checks=("stackyard",),
            approvals=1,
            dismisses_stale=True,
            requires_up_to_date=True,
        )


@OPEN
async def test_protection_that_the_token_may_not_see_is_not_taken_for_none(open_rig: Any) -> None:
    async with open_rig() as rig, rig.open(token="token-of-author") as forge:
        assert await forge.protection("main") is None
        keep(rig).protections["main"] = OWN
        with pytest.raises(ForgeUnauthorizedError, match="may not see"):
            await forge.protection("main")
        with pytest.raises(ForgeUnauthorizedError, match="may not see"):
            await forge.protect(Protection(branch="main", blocks_pushes=True))
        assert keep(rig).protections["main"] == OWN


@OPEN
async def test_checks_are_required_by_name(open_rig: Any) -> None:
    async with open_rig() as rig, rig.open() as forge:
        with pytest.raises(ForgeRefusedError, match="names"):
            await forge.protect(Protection(branch="main", requires_all_checks=True))
        assert not keep(rig).protections


async def test_list_of_files_that_is_cut_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_github_rig() as rig, rig.open() as forge:
        await rig.commit("many", {f"{number}.tf": "#" for number in range(5)})
        pull = await forge.open_pull("Add many", "", "many", "main")
        monkeypatch.setattr(rig.server, "changes_shown", 3)
        with pytest.raises(ForgeRefusedError, match="5 files"):
            await forge.changed_files(pull.number)


@pytest.fixture
def rest() -> OpenApi:
    return require(find_openapi())


@JUDGED
@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("GET", "/repos/a/b/pulls", {"limit": "50"}, None),
        ("GET", "/repos/a/b/pulls", {"state": "opened"}, None),
        ("GET", "/repos/a/b/pulls", {"per_page": "no"}, None),
        ("GET", "/repos/a/b/commits/c/pull", {}, None),
        ("POST", "/repos/a/b/statuses/c", {}, {"state": "failed", "context": "x"}),
        ("POST", "/repos/a/b/statuses/c", {}, {"state": "success", "name": "x"}),
        ("POST", "/repos/a/b/issues/1/comments", {}, {}),
        ("POST", "/repos/a/b/issues/1/comments", {}, None),
        ("PUT", "/repos/a/b/pulls/1/merge", {}, {"merge_method": "fast-forward"}),
        ("PUT", "/repos/a/b/branches/main/protection", {}, {"enforce_admins": True}),
    ],
)
def test_request_that_github_does_not_know_is_found(
    rest: OpenApi, method: str, path: str, query: dict[str, str], body: Any
) -> None:
    with pytest.raises((AssertionError, ValueError)):
        rest.check_request(rest.find(method, path), query, body)


@JUDGED
def test_answer_that_github_does_not_give_is_found(rest: OpenApi) -> None:
    operation = rest.find("GET", "/repos/a/b/pulls/1")
    rest.complete(operation, 200, {"number": 1, "draft": False})
    for wrong in ({"number": "1"}, {"state": "merged"}, {"user": {"login": 5}}, {"mergeable": "yes"}):
        with pytest.raises(AssertionError):
            rest.complete(operation, 200, wrong)
    with pytest.raises(AssertionError):
        rest.complete(operation, 201, {"number": 1})


@JUDGED
def test_webhook_that_github_does_not_send_is_found() -> None:
    webhooks = require(find_webhooks())
    described = webhooks.document["webhooks"]["pull-request-opened"]["post"]["requestBody"]["content"]
    schema = described["application/json"]["schema"]
    webhooks.check(schema, webhooks.fill(schema, {"action": "opened", "number": 1}), "opened")
    for wrong in ({"action": "closed"}, {"number": "1"}, {"pull_request": {"head": {"sha": 5}}}):
        with pytest.raises(AssertionError):
            webhooks.check(schema, webhooks.fill(schema, wrong), "opened")
