"""One suite for every forge: a real Gitea, and servers that hold GitHub and GitLab to what they publish."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest
from tests.support.forge_double_rig import open_described_github_rig, open_github_rig, open_gitlab_rig
from tests.support.forges import HOOK_SECRET, ForgeRig, open_inbox
from tests.support.gitea_rig import open_gitea_rig

from stackyard.base.backoff import Backoff
from stackyard.clients.forge.failures import (
    ForgeConflictError,
    ForgeNotFoundError,
    ForgeUnauthorizedError,
)
from stackyard.clients.forge.model import (
    ChangedFile,
    CommitState,
    CommitStatus,
    EventKind,
    Mergeability,
    MergeMethod,
    Permission,
    Protection,
    PullRequest,
    PullState,
    Review,
    ReviewVerdict,
)
from stackyard.clients.forge.protocol import Forge

OPENERS: dict[str, Callable[[], AbstractAsyncContextManager[ForgeRig]]] = {
    "gitea": open_gitea_rig,
    "github": open_github_rig,
    "github-openapi": open_described_github_rig,
    "gitlab": open_gitlab_rig,
}
MARKS = {
    "gitea": [pytest.mark.judges("gitea")],
    "github-openapi": [pytest.mark.judges("github-openapi", "github-webhooks")],
}
OPEN = pytest.mark.parametrize(
    "open_rig", [pytest.param(opener, id=name, marks=MARKS.get(name, ())) for name, opener in OPENERS.items()]
)
pytestmark = [pytest.mark.timeout(300)]
Opener = Callable[[], AbstractAsyncContextManager[ForgeRig]]
NO_COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextlib.asynccontextmanager
async def open_both(open_rig: Opener) -> AsyncIterator[tuple[ForgeRig, Forge]]:
    async with open_rig() as rig, rig.open() as forge:
        yield rig, forge


async def open_pull(rig: ForgeRig, forge: Forge, branch: str = "feature/more") -> PullRequest:
    await rig.commit(branch, {f"{branch}/main.tf": "# something\n"})
    return await forge.open_pull(f"Add {branch}", "It is needed.", branch, "main")


async def wait_until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        for pause_s in Backoff(first_s=0.05, longest_s=0.5):
            if await is_so():
                return
            await asyncio.sleep(pause_s)


@OPEN
async def test_repository_and_login_are_those_of_the_token(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        repository = await forge.repository()
        assert (repository.name, repository.default_branch) == (rig.repository, "main")
        assert repository.is_private
        assert await forge.login() == rig.bot
        assert forge.kind is rig.kind


@OPEN
async def test_branches_are_found_by_their_whole_name(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        commit = await rig.commit("feature/a", {"a": "1"})
        assert await forge.branch_tip("feature/a") == commit
        assert await forge.branch_tip("feature") is None
        assert await forge.branch_tip("no-such") is None


@OPEN
async def test_what_is_missing_and_what_is_not_allowed_are_told_apart(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        with pytest.raises(ForgeNotFoundError):
            await forge.pull(4711)
        async with rig.open(repository=f"{rig.repository}-none") as other:
            with pytest.raises(ForgeNotFoundError):
                await other.branch_tip("main")
            with pytest.raises(ForgeNotFoundError):
                await other.comment(1, 1)
        async with rig.open(token="0" * 40) as other:
            with pytest.raises(ForgeUnauthorizedError):
                await other.branch_tip("main")


@OPEN
async def test_revoked_token_is_refused_and_not_shown(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        await rig.revoke()
        with pytest.raises(ForgeUnauthorizedError) as caught:
            await forge.create_comment(pull.number, "too late")
        assert rig.token not in str(caught.value)


@OPEN
async def test_pull_request_is_opened_once_and_found_again(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        commit = await rig.commit("feature/a", {"web/main.tf": "# more\n"})
        pull = await forge.open_pull("Add more", "It is needed.", "feature/a", "main")
        assert (pull.title, pull.author, pull.state) == ("Add more", rig.bot, PullState.OPEN)
        assert (pull.head, pull.head_branch, pull.base_branch) == (commit, "feature/a", "main")
        assert pull.base == await forge.branch_tip("main")
        assert (pull.repository, pull.is_fork, pull.is_draft) == (rig.repository, False, False)
        assert (pull.merge_commit, pull.merged_by) == ("", "")
        again = await forge.open_pull("Add all", "It is needed more.", "feature/a", "main")
        assert (again.number, again.title) == (pull.number, "Add all")
        assert await forge.pull(pull.number) == again


@OPEN
async def test_new_commit_is_the_head_of_its_pull_request(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        commit = await rig.commit(pull.head_branch, {"b": "2"})

        async def has_moved() -> bool:
            return (await forge.pull(pull.number)).head == commit

        await wait_until(has_moved)


@OPEN
async def test_pull_requests_are_listed_by_state_and_base_the_last_changed_first(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        first = await open_pull(rig, forge, "a")
        await rig.commit("stable", {"s": "1"})
        await rig.commit("b", {"b": "1"})
        second = await forge.open_pull("Into stable", "", "b", "stable")
        assert {pull.number for pull in await forge.pulls()} == {first.number, second.number}
        assert [pull.number for pull in await forge.pulls(base="stable")] == [second.number]
        assert not await forge.pulls(PullState.MERGED)
        await asyncio.sleep(1.1)
        since = max(pull.updated_at for pull in await forge.pulls())
        await forge.create_comment(first.number, "still needed")
        found = await forge.pulls(updated_after=since)
        assert [pull.number for pull in found] == [first.number]
        assert (await forge.pulls())[0].number == first.number


@OPEN
async def test_all_pages_of_a_long_list_are_read(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        files: dict[str, str | None] = {f"many/{number}.tf": "#\n" for number in range(130)}
        await rig.commit("many", files)
        pull = await forge.open_pull("Add many", "", "many", "main")
        assert {file.path for file in await forge.changed_files(pull.number)} == set(files)
        for number in range(60):
            await forge.set_status(
                pull.head, CommitStatus(context=f"stackyard/{number}", state=CommitState.PENDING)
            )
        assert len(await forge.statuses(pull.head)) == 60


@OPEN
async def test_changed_files_say_what_became_of_them(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        text = "".join(f"# line {number}\n" for number in range(30))
        await rig.commit("main", {"old name.tf": text, "gone.tf": "gone\n", "ä/ö.tf": "#\n"})
        await rig.commit("change", {"new name.tf": text}, moved="old name.tf")
        await rig.commit("change", {"gone.tf": None, "ä/ö.tf": "# more\n", "made.tf": "made {}\n"})
        pull = await forge.open_pull("Change", "", "change", "main")
        files = await forge.changed_files(pull.number)
        assert sorted(files, key=lambda file: file.path) == [
            ChangedFile(path="gone.tf", is_removed=True),
            ChangedFile(path="made.tf"),
            ChangedFile(path="new name.tf", former_path="old name.tf"),
            ChangedFile(path="ä/ö.tf"),
        ]


@OPEN
async def test_mergeable_says_whether_there_are_conflicts(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        await rig.commit("clash", {"README.md": "Ours.\n"})
        clash = await forge.open_pull("Clash", "", "clash", "main")
        await rig.commit("main", {"README.md": "Theirs.\n"})

        async def is_known() -> bool:
            found = [(await forge.pull(number)).mergeable for number in (pull.number, clash.number)]
            return found == [Mergeability.YES, Mergeability.NO]

        await wait_until(is_known)


@OPEN
async def test_draft_and_fork_are_told(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        await rig.set_draft(pull.number, True)
        assert (await forge.pull(pull.number)).is_draft
        await rig.set_draft(pull.number, False)
        assert not (await forge.pull(pull.number)).is_draft
        found = await forge.pull(await rig.fork_pull("patch", {"web/main.tf": "# from outside\n"}))
        assert (found.is_fork, found.author, found.head_branch) == (True, rig.stranger, "patch")
        assert found.head_repository != rig.repository


@OPEN
async def test_merge_needs_the_head_that_was_seen(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        await rig.commit(pull.head_branch, {"b": "2"})

        async def has_moved() -> bool:
            return (await forge.pull(pull.number)).head != pull.head

        await wait_until(has_moved)
        with pytest.raises(ForgeConflictError):
            await forge.merge(pull.number, pull.head)
        assert (await forge.pull(pull.number)).state is PullState.OPEN


@OPEN
@pytest.mark.parametrize("method", [MergeMethod.MERGE, MergeMethod.SQUASH])
async def test_merged_pull_request_is_found_by_its_commit(open_rig: Opener, method: MergeMethod) -> None:
    async with open_both(open_rig) as (rig, forge):
        before = await forge.branch_tip("main")
        assert before is not None
        pull = await open_pull(rig, forge)
        commit = await forge.merge(pull.number, pull.head, method)
        assert commit == await forge.branch_tip("main") != before
        merged = await forge.pull(pull.number)
        assert (merged.state, merged.merge_commit, merged.merged_by) == (PullState.MERGED, commit, rig.bot)
        assert merged.head == pull.head
        found = await forge.merged_pull(commit)
        assert found is not None
        assert found.number == pull.number
        assert await forge.merged_pull(before) is None
        assert await forge.merged_pull(NO_COMMIT) is None
        assert [one.number for one in await forge.pulls(PullState.MERGED)] == [pull.number]
        assert await forge.merge(pull.number, pull.head, method) == commit


async def read_verdicts(forge: Forge, number: int) -> Sequence[Review]:
    return sorted(await forge.reviews(number), key=lambda review: review.author)


@OPEN
async def test_last_verdict_of_each_reviewer_counts(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        assert not await forge.reviews(pull.number)
        await rig.review(rig.author, pull.number, "approve", pull.head)
        await rig.review(rig.reviewer, pull.number, "reject", pull.head)
        found = {review.author: review for review in await forge.reviews(pull.number)}
        assert {name: review.verdict for name, review in found.items()} == {
            rig.author: ReviewVerdict.APPROVED,
            rig.reviewer: ReviewVerdict.CHANGES_REQUESTED,
        }
        assert {review.commit for review in found.values()} <= {pull.head, ""}
        await rig.review(rig.reviewer, pull.number, "approve", pull.head)
        await rig.review(rig.reviewer, pull.number, "comment", pull.head)
        found = {review.author: review for review in await forge.reviews(pull.number)}
        assert found[rig.reviewer].verdict is ReviewVerdict.APPROVED
        await rig.take_back(rig.author, pull.number)
        found = {review.author: review for review in await forge.reviews(pull.number)}
        assert rig.author not in found or found[rig.author].verdict is ReviewVerdict.DISMISSED


@OPEN
async def test_permission_and_teams_say_who_may_what(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        names = (rig.bot, rig.reviewer, rig.reader, rig.stranger, "no-such-user")
        assert [await forge.permission(name) for name in names] == [
            Permission.ADMIN,
            Permission.WRITE,
            Permission.READ,
            Permission.NONE,
            Permission.NONE,
        ]
        assert await forge.is_member(rig.team, rig.reviewer)
        assert not await forge.is_member(rig.team, rig.author)
        assert not await forge.is_member(rig.team, "no-such-user")
        with pytest.raises(ForgeNotFoundError):
            await forge.is_member(f"{rig.team}-none", rig.reviewer)


@OPEN
async def test_comment_is_written_edited_and_missed_when_it_is_gone(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        text = "**2 to add** & `<details>`\n\n| a | b |\n|---|---|\n| 1 | ä |\n"
        ours = await forge.create_comment(pull.number, text)
        assert (ours.author, ours.body.split()) == (rig.bot, text.split())
        theirs = await rig.say(rig.author, pull.number, "stackyard plan")
        assert [one.id for one in await forge.comments(pull.number)] == [ours.id, theirs]
        assert [one.id for one in await forge.comments(pull.number, after=ours.id)] == [theirs]
        edited = await forge.edit_comment(pull.number, ours.id, "nothing to do")
        assert edited is not None
        assert (edited.id, edited.body) == (ours.id, "nothing to do")
        assert await forge.comment(pull.number, ours.id) == edited
        await rig.remove_comment(pull.number, ours.id)
        assert await forge.comment(pull.number, ours.id) is None
        assert await forge.edit_comment(pull.number, ours.id, "again") is None
        assert [one.id for one in await forge.comments(pull.number)] == [theirs]


@OPEN
async def test_longest_comment_is_taken(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        line = "ä line of a plan, with an emoji \N{ROCKET}\n"
        text = (line * (forge.limits.comment_chars // len(line)))[: forge.limits.comment_chars]
        written = await forge.create_comment(pull.number, text)
        read = await forge.comment(pull.number, written.id)
        assert read is not None
        assert read.body.split() == text.split()


@OPEN
async def test_last_status_of_a_context_counts_and_long_texts_are_cut(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        pull = await open_pull(rig, forge)
        assert not await forge.statuses(pull.head)
        for state in (CommitState.PENDING, CommitState.PENDING, CommitState.FAILURE, CommitState.SUCCESS):
            status = CommitStatus(
                context="stackyard", state=state, description=state.value, url="https://example.org/run"
            )
            await forge.set_status(pull.head, status)
        assert list(await forge.statuses(pull.head)) == [status]
        await forge.set_status(
            pull.head, CommitStatus(context="c" * 300, state=CommitState.FAILURE, description="d" * 2000)
        )
        long = [one for one in await forge.statuses(pull.head) if one.context != "stackyard"]
        assert [len(one.context) for one in long] == [forge.limits.context_chars]
        assert [len(one.description) for one in long] == [forge.limits.description_chars]


@OPEN
async def test_branch_requires_what_it_is_told_to(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        assert await forge.protection("main") is None
        whole = Protection(branch="main", **rig.can_require)
        await forge.protect(whole)
        assert await forge.protection("main") == whole
        less = Protection(branch="main", **{**rig.can_require, "approvals": 1})
        await forge.protect(less)
        assert await forge.protection("main") == less


@OPEN
async def test_issue_is_opened_changed_closed_and_found(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge):
        first = await forge.create_issue("Drift of stack:web", "<!-- stackyard drift stack:web -->\nmore")
        other = await forge.create_issue("Drift of stack:db", "<!-- stackyard drift stack:db -->")
        assert (first.author, first.is_open) == (rig.bot, True)
        assert [one.number for one in await forge.find_issues("drift stack:web -->")] == [first.number]
        assert [one.number for one in await forge.find_issues("stackyard drift")] == [
            other.number,
            first.number,
        ]
        changed = await forge.edit_issue(first.number, body="<!-- stackyard drift stack:web -->\nless")
        assert (changed.title, changed.is_open) == (first.title, True)
        closed = await forge.edit_issue(first.number, title="No drift of stack:web", is_open=False)
        assert (closed.title, closed.is_open) == ("No drift of stack:web", False)
        assert closed.body.split() == changed.body.split()
        assert not await forge.find_issues("stack:web")
        assert [one.number for one in await forge.find_issues("stack:web", is_open=False)] == [first.number]
        assert (await forge.edit_issue(first.number, is_open=True)).is_open


@OPEN
async def test_webhook_tells_of_what_happens_and_is_one(open_rig: Opener) -> None:
    async with open_both(open_rig) as (rig, forge), open_inbox() as inbox:
        assert await forge.ensure_webhook(inbox.url, "another secret")
        assert not await forge.ensure_webhook(inbox.url, HOOK_SECRET)
        commit = await rig.commit("feature/a", {"a": "1"})
        push = await inbox.wait_for(rig.kind, EventKind.PUSH, "feature/a")
        assert (push.repository, push.branch, push.commit) == (rig.repository, "feature/a", commit)
        assert push.author == rig.author
        pull = await forge.open_pull("Add a", "", "feature/a", "main")
        opened = await inbox.wait_for(rig.kind, EventKind.PULL_REQUEST)
        assert (opened.number, opened.commit, opened.author) == (pull.number, commit, rig.bot)
        said = await rig.say(rig.reviewer, pull.number, "stackyard plan")
        comment = await inbox.wait_for(rig.kind, EventKind.COMMENT)
        assert (comment.number, comment.comment, comment.author) == (pull.number, said, rig.reviewer)
        await rig.review(rig.reviewer, pull.number, "approve", commit)
        review = await inbox.wait_for(rig.kind, EventKind.REVIEW)
        assert (review.number, review.author) == (pull.number, rig.reviewer)
        names = [dict(headers) for headers, _ in inbox.deliveries]
        assert len({event.delivery for event in (push, opened, comment, review)}) == 4, names
