"""What only a real Gitea can prove: git over HTTP, protection that holds, and a server that dies."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.forges import HOOK_SECRET, Inbox, open_inbox
from tests.support.gitea import Gitea, start_gitea
from tests.support.gitea_rig import GiteaRig, open_gitea_rig

from stackyard.clients.forge.failures import ForgeConflictError, ForgeRefusedError, ForgeUnreachableError
from stackyard.clients.forge.model import (
    CloneAccess,
    CommitState,
    CommitStatus,
    ForgeKind,
    MergeMethod,
    Protection,
    PullRequest,
    WebhookEvent,
)
from stackyard.clients.forge.protocol import Forge
from stackyard.clients.forge.transport import Patience
from stackyard.clients.forge.webhooks import read_webhook

pytestmark = [pytest.mark.judges("gitea"), pytest.mark.timeout(300)]


async def git(*arguments: str, cwd: Path, access: CloneAccess | None = None) -> tuple[int, str]:
    """Run git with what the forge says that it needs; the token is in no argument."""
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_TERMINAL_PROMPT": "0", "LANG": "C.UTF-8"}
    env |= {
        f"GIT_{who}_{what}": "someone@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    if access is not None:
        ((name, value),) = access.headers.items()
        env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader"}
        env["GIT_CONFIG_VALUE_0"] = f"{name}: {value}"
    done = await asyncio.to_thread(
        subprocess.run, ["git", *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


async def open_pull(rig: GiteaRig, forge: Forge) -> PullRequest:
    await rig.commit("feature", {"a.tf": "# more\n"})
    return await forge.open_pull("Add a", "", "feature", "main")


async def test_git_fetches_with_the_access_and_not_without(tmp_path: Path) -> None:
    async with open_gitea_rig() as rig, rig.open() as forge:
        access = forge.clone_access
        status, said = await git("clone", access.url, "clone", cwd=tmp_path, access=access)
        assert status == 0, said
        assert (tmp_path / "clone/README.md").read_text() == "A yard.\n"
        assert rig.token not in (tmp_path / "clone/.git/config").read_text()
        status, _ = await git("clone", access.url, "stolen", cwd=tmp_path)
        assert status != 0


async def test_protected_branch_takes_no_push_and_merges_only_what_passes(tmp_path: Path) -> None:
    async with open_gitea_rig() as rig, rig.open() as forge:
        pull = await open_pull(rig, forge)
        await forge.protect(
            Protection(
                branch="main", blocks_pushes=True, binds_admins=True, checks=("stackyard",), approvals=1
            )
        )
        access = forge.clone_access
        await git("clone", access.url, "clone", cwd=tmp_path, access=access)
        clone = tmp_path / "clone"
        (clone / "direct.tf").write_text("# past the review\n")
        await git("add", "-A", cwd=clone)
        await git("commit", "-m", "Push directly", cwd=clone)
        status, said = await git("push", "origin", "main", cwd=clone, access=access)
        assert status != 0
        assert "protected branch" in said
        with pytest.raises(ForgeRefusedError):
            await forge.merge(pull.number, pull.head)
        await forge.set_status(pull.head, CommitStatus(context="stackyard", state=CommitState.SUCCESS))
        with pytest.raises(ForgeRefusedError):
            await forge.merge(pull.number, pull.head)
        await rig.review(rig.reviewer, pull.number, "approve", pull.head)
        assert await forge.merge(pull.number, pull.head) == await forge.branch_tip("main")


async def test_rule_with_a_pattern_that_holds_is_changed_and_keeps_the_rest() -> None:
    async with open_gitea_rig() as rig, rig.open() as forge:
        path = f"/repos/{rig.repository}/branch_protections"
        rule = {
            "rule_name": "m*",
            "enable_push": True,
            "require_signed_commits": True,
            "protected_file_patterns": "LICENSE",
        }
        await asyncio.to_thread(rig.server.call, "POST", path, rule)
        found = await forge.protection("main")
        assert found is not None
        assert not found.blocks_pushes
        wanted = Protection(branch="main", blocks_pushes=True, approvals=1)
        await forge.protect(wanted)
        assert await forge.protection("main") == wanted
        rules = await asyncio.to_thread(rig.server.call, "GET", path)
        assert [(one["rule_name"], one["require_signed_commits"]) for one in rules] == [("m*", True)]
        assert rules[0]["protected_file_patterns"] == "LICENSE"


async def test_every_status_is_required_where_none_is_named() -> None:
    async with open_gitea_rig() as rig, rig.open() as forge:
        wanted = Protection(branch="main", blocks_pushes=True, requires_all_checks=True)
        await forge.protect(wanted)
        assert await forge.protection("main") == wanted


async def test_draft_and_clash_are_not_merged() -> None:
    async with open_gitea_rig() as rig, rig.open() as forge:
        pull = await open_pull(rig, forge)
        await rig.set_draft(pull.number, True)
        with pytest.raises(ForgeRefusedError, match="progress"):
            await forge.merge(pull.number, pull.head)
        await rig.set_draft(pull.number, False)
        await rig.commit("main", {"a.tf": "# theirs\n"})
        with pytest.raises((ForgeRefusedError, ForgeConflictError)):
            await forge.merge(pull.number, pull.head)


async def test_rebased_pull_request_is_found_by_its_last_commit() -> None:
    async with open_gitea_rig() as rig, rig.open() as forge:
        await rig.commit("feature", {"a.tf": "# one\n"})
        await rig.commit("feature", {"b.tf": "# two\n"})
        pull = await forge.open_pull("Add two", "", "feature", "main")
        await rig.commit("main", {"c.tf": "# meanwhile\n"})
        commit = await forge.merge(pull.number, pull.head, MergeMethod.REBASE)
        assert commit == await forge.branch_tip("main") != pull.head
        found = await forge.merged_pull(commit)
        assert found is not None
        assert found.number == pull.number


async def wait_for(inbox: Inbox, *expected: tuple[str, str]) -> list[tuple[str, WebhookEvent]]:
    """Return the name and the event of each delivery, once all of these are there."""
    events: list[tuple[str, WebhookEvent]] = []
    try:
        async with asyncio.timeout(60), inbox.arrived:
            while True:
                events = [
                    (headers["X-Gitea-Event"], read_webhook(ForgeKind.GITEA, headers, body, HOOK_SECRET))
                    for headers, body in inbox.deliveries
                ]
                if set(expected) <= {(name, event.action) for name, event in events}:
                    return events
                await inbox.arrived.wait()
    except TimeoutError:
        raise AssertionError(f"{expected} did not all come: {events}") from None


async def test_webhooks_have_the_names_that_gitea_gives_them() -> None:
    async with open_gitea_rig() as rig, rig.open() as forge, open_inbox() as inbox:
        await forge.ensure_webhook(inbox.url, HOOK_SECRET)
        pull = await open_pull(rig, forge)
        head = await rig.commit("feature", {"b.tf": "# more\n"})
        # What is merged before Gitea has told of a new commit, it does not tell of.
        await wait_for(inbox, ("pull_request", "synchronized"))
        for verdict in ("reject", "comment", "approve"):
            await rig.review(rig.reviewer, pull.number, verdict, head)
        await forge.create_comment(pull.number, "planned")
        await forge.merge(pull.number, head)
        events = await wait_for(
            inbox,
            ("push", ""),
            ("pull_request", "opened"),
            ("pull_request", "closed"),
            ("pull_request_rejected", "reviewed"),
            ("pull_request_comment", "reviewed"),
            ("pull_request_approved", "reviewed"),
            ("issue_comment", "created"),
        )
        assert len({event.delivery for _, event in events}) == len(events)
        assert all(event.number == pull.number for name, event in events if name != "push")


@pytest.fixture
def own_gitea() -> Iterator[Gitea]:
    with tempfile.TemporaryDirectory(prefix="stackyard-gitea-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = start_gitea(folder)
        yield server
        server.kill()


async def test_killed_server_is_waited_for_and_a_stopped_one_given_up(own_gitea: Gitea) -> None:
    rig = await asyncio.to_thread(GiteaRig, own_gitea)
    await rig.commit("main", {"README.md": "A yard.\n"})
    patient = Patience(answer_s=20.0, away_s=60.0)
    hasty = Patience(answer_s=0.5, away_s=0.0)
    async with rig.open(patience=patient) as forge, rig.open(patience=hasty) as other:
        tip = await forge.branch_tip("main")
        own_gitea.kill()
        with pytest.raises(ForgeUnreachableError):
            await other.branch_tip("main")
        asking = asyncio.create_task(forge.branch_tip("main"))
        # The request is tried again while it starts.
        await asyncio.to_thread(own_gitea.start)
        assert await asking == tip
        own_gitea.pause()
        try:
            with pytest.raises(ForgeUnreachableError):
                await other.branch_tip("main")
        finally:
            own_gitea.resume()
