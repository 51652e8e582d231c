"""A forge that is away, slow, or loses answers: nothing is done twice, and what went wrong is said."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from tests.support.forge_double_rig import open_github_rig, open_gitlab_rig
from tests.support.forge_faults import Fault, FaultyForge, open_faulty
from tests.support.forges import ForgeRig
from tests.support.gitea_rig import open_gitea_rig

from stackyard.clients.forge.failures import (
    ForgeAnswerError,
    ForgeRateLimitedError,
    ForgeRefusedError,
    ForgeUnreachableError,
)
from stackyard.clients.forge.model import CommitState, CommitStatus, PullRequest
from stackyard.clients.forge.open_forge import open_forge
from stackyard.clients.forge.protocol import Forge
from stackyard.clients.forge.transport import Patience

Opener = Callable[[], AbstractAsyncContextManager[ForgeRig]]
OPENERS: dict[str, Opener] = {
    "gitea": open_gitea_rig,
    "github": open_github_rig,
    "gitlab": open_gitlab_rig,
}
MARKS = {"gitea": [pytest.mark.judges("gitea")]}
OPEN = pytest.mark.parametrize(
    "open_rig", [pytest.param(opener, id=name, marks=MARKS.get(name, ())) for name, opener in OPENERS.items()]
)
pytestmark = pytest.mark.timeout(300)
SHORT = Patience(answer_s=10.0, away_s=1.5)
# What a note is on GitLab is a comment of an issue elsewhere.
WRITES = r"^POST .*/(comments|notes)$"
EDITS = r"^(PATCH|PUT) .*/(comments|notes)/\d+$"


@contextlib.asynccontextmanager
async def open_badly(
    open_rig: Opener, patience: Patience = SHORT
) -> AsyncIterator[tuple[ForgeRig, Forge, FaultyForge, PullRequest]]:
    """Open a forge behind a proxy that fails, with one pull request."""
    async with open_rig() as rig, open_faulty(rig.url) as proxy:
        await rig.commit("feature", {"a": "1"})
        forge = open_forge(rig.kind, proxy.url, rig.repository, rig.token, patience=patience)
        async with forge:
            yield rig, forge, proxy, await forge.open_pull("Add a", "", "feature", "main")


@OPEN
@pytest.mark.parametrize("status", [500, 502, 0])
async def test_edit_whose_answer_is_lost_is_made_again_on_the_same_comment(
    open_rig: Opener, status: int
) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        comment = await forge.create_comment(pull.number, "planning")
        proxy.faults.append(Fault(EDITS, status=status, is_done=True))
        edited = await forge.edit_comment(pull.number, comment.id, "2 to add")
        assert edited is not None
        assert (edited.id, edited.body) == (comment.id, "2 to add")
        assert [one.body for one in await forge.comments(pull.number)] == ["2 to add"]
        assert proxy.count(EDITS) == 2


@OPEN
async def test_comment_whose_answer_is_lost_is_found_and_not_written_again(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        proxy.faults.append(Fault(WRITES, status=502, is_done=True))
        comment = await forge.create_comment(pull.number, "planning\n\n- a\n")
        assert [one.id for one in await forge.comments(pull.number)] == [comment.id]
        assert proxy.count(WRITES) == 1


@OPEN
async def test_comment_that_was_not_written_is_said_not_to_be(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        proxy.faults.append(Fault(WRITES, status=503))
        with pytest.raises(ForgeUnreachableError):
            await forge.create_comment(pull.number, "planning")
        assert not await forge.comments(pull.number)
        assert proxy.count(WRITES) == 1


@OPEN
async def test_issue_whose_answer_is_lost_is_opened_once(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, _pull):
        proxy.faults.append(Fault(r"^POST .*/issues$", status=0, is_done=True))
        issue = await forge.create_issue("Drift of stack:web", "<!-- drift stack:web -->")
        assert [one.number for one in await forge.find_issues("drift stack:web")] == [issue.number]


@OPEN
async def test_merge_whose_answer_is_lost_is_not_made_again(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        proxy.faults.append(Fault(r"/merge$", status=504, is_done=True))
        commit = await forge.merge(pull.number, pull.head)
        assert commit == await forge.branch_tip("main")
        assert proxy.count(r"/merge$") == 1


@OPEN
async def test_pull_request_whose_answer_is_lost_is_opened_once(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (rig, forge, proxy, first):
        await rig.commit("other", {"b": "1"})
        proxy.faults.append(Fault(r"^POST .*/(pulls|merge_requests)$", status=502, is_done=True))
        second = await forge.open_pull("Add b", "", "other", "main")
        assert {pull.number for pull in await forge.pulls()} == {first.number, second.number}


@OPEN
async def test_forge_that_is_away_for_a_moment_is_asked_again(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        proxy.faults.append(Fault(rf"^GET .*/{pull.number}$", times=2, status=503))
        assert (await forge.pull(pull.number)).number == pull.number
        status = CommitStatus(context="stackyard", state=CommitState.SUCCESS)
        proxy.faults.append(Fault(r"^POST .*/statuses/", status=502, is_done=True))
        await forge.set_status(pull.head, status)
        assert [one.state for one in await forge.statuses(pull.head)] == [CommitState.SUCCESS]


@OPEN
async def test_rate_limit_is_waited_for_where_it_is_short(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        proxy.faults.append(Fault(WRITES, status=429, headers={"Retry-After": "1"}))
        began = time.monotonic()
        await forge.create_comment(pull.number, "planning")
        assert time.monotonic() - began >= 1.0
        assert len(await forge.comments(pull.number)) == 1


@OPEN
async def test_long_rate_limit_is_said_with_its_end(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        reset = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 600)}
        body = '{"message": "API rate limit exceeded"}'
        proxy.faults.append(Fault(WRITES, status=403, headers=reset, body=body))
        with pytest.raises(ForgeRateLimitedError) as caught:
            await forge.create_comment(pull.number, "planning")
        assert 500 < caught.value.retry_after_s <= 600
        assert proxy.count(WRITES) == 1


@OPEN
async def test_slow_forge_is_given_up_after_the_time_for_it(open_rig: Opener) -> None:
    patience = Patience(answer_s=5.0, away_s=0.0)
    async with open_badly(open_rig, patience) as (rig, _, proxy, pull):
        hasty = Patience(answer_s=0.3, away_s=0.0)
        proxy.faults.append(Fault(rf"^GET .*/{pull.number}$", slow_s=3.0))
        async with open_forge(rig.kind, proxy.url, rig.repository, rig.token, patience=hasty) as forge:
            began = time.monotonic()
            with pytest.raises(ForgeUnreachableError):
                await forge.pull(pull.number)
            assert time.monotonic() - began < 2.5


@OPEN
async def test_redirect_to_another_host_is_refused_with_the_token_kept(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull), open_faulty(proxy.url) as thief:
        location = {"Location": f"{thief.url}/login"}
        proxy.faults.append(Fault(rf"^GET .*/{pull.number}$", status=302, headers=location))
        with pytest.raises(ForgeRefusedError, match="redirected"):
            await forge.pull(pull.number)
        proxy.faults.append(Fault(WRITES, status=307, headers={"Location": "/elsewhere"}))
        with pytest.raises(ForgeRefusedError, match="redirected"):
            await forge.create_comment(pull.number, "planning")
        assert not thief.requests


@OPEN
async def test_login_page_is_not_taken_for_an_answer(open_rig: Opener) -> None:
    async with open_badly(open_rig) as (_, forge, proxy, pull):
        page = "<html><form>Sign in</form></html>"
        proxy.faults.append(Fault(rf"^GET .*/{pull.number}$", status=200, body=page))
        with pytest.raises(ForgeAnswerError):
            await forge.pull(pull.number)
