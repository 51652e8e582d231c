"""What GitLab has and other forges do not: editions, rules with stars, quick actions, states of statuses."""

from __future__ import annotations

import pytest
from tests.support.forge_double import Call, RefusalError, Reply
from tests.support.forge_double_rig import GitlabRig, open_gitlab_rig
from tests.support.gitlab_server import GitlabServer

from stackyard.clients.forge.failures import ForgeRefusedError
from stackyard.clients.forge.model import (
    CommitState,
    CommitStatus,
    MergeMethod,
    Permission,
    Protection,
)


def keep(rig: GitlabRig) -> GitlabServer:
    assert isinstance(rig.server, GitlabServer)
    return rig.server


async def test_no_line_of_ours_is_a_command_to_gitlab() -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        await rig.commit("feature", {"a": "1"})
        for _ in range(2):
            pull = await forge.open_pull("Add a", "/merge\n", "feature", "main")
            assert keep(rig).world.pulls[pull.number].body == "\\/merge\n"
        comment = await forge.create_comment(pull.number, "plan\n/merge\n  /approve\n/etc is not one\na/b\n")
        assert comment.body == "plan\n\\/merge\n  \\/approve\n\\/etc is not one\na/b\n"
        edited = await forge.edit_comment(pull.number, comment.id, "/close")
        assert edited is not None
        assert edited.body == "\\/close"
        issue = await forge.create_issue("Drift", "/close")
        assert (await forge.edit_issue(issue.number, body="/assign @root")).body == "\\/assign @root"


async def test_pending_is_told_again_and_everything_after_it() -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        head = await rig.commit("feature", {"a": "1"})
        states = [CommitState.PENDING, CommitState.PENDING, CommitState.ERROR, CommitState.PENDING]
        for state in states:
            await forge.set_status(head, CommitStatus(context="stackyard", state=state))
        assert [one.state for one in await forge.statuses(head)] == [CommitState.PENDING]
        keep(rig).world.set_status(head, "lint", "running", "", None)
        with pytest.raises(ForgeRefusedError, match="transition"):
            await forge.set_status(head, CommitStatus(context="lint", state=CommitState.PENDING))


async def test_free_edition_protects_without_approvals() -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        keep(rig).approval_rules = None
        wanted = Protection(branch="main", blocks_pushes=True, binds_admins=True)
        await forge.protect(wanted)
        assert await forge.protection("main") == wanted
        with pytest.raises(ForgeRefusedError) as caught:
            await forge.protect(Protection(branch="main", blocks_pushes=True, approvals=1))
        assert "free edition" in caught.value.remedy


async def test_rule_that_is_made_again_keeps_who_may_merge() -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        merging = [{"access_level": 30}]
        keep(rig).rules["main"] = {
            "name": "main",
            "push_access_levels": [{"access_level": 40}],
            "merge_access_levels": merging,
            "unprotect_access_levels": [{"access_level": None, "user_id": 5}, {"access_level": 40}],
            "allow_force_push": False,
            "code_owner_approval_required": True,
        }
        found = await forge.protection("main")
        assert found is not None
        assert not found.blocks_pushes
        await forge.protect(Protection(branch="main", blocks_pushes=True))
        rule = keep(rig).rules["main"]
        assert rule["push_access_levels"] == [{"access_level": 0}]
        assert rule["merge_access_levels"] == merging
        assert rule["unprotect_access_levels"] == [{"user_id": 5}, {"access_level": 40}]
        assert rule["code_owner_approval_required"] is True


async def test_branch_left_without_its_rule_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        level = {"access_level": 40}
        keep(rig).rules["main"] = {
            "name": "main",
            "push_access_levels": [level],
            "merge_access_levels": [level],
        }

        def refuse(_server: GitlabServer, _call: Call) -> Reply:
            raise RefusalError(422, "no more rules")

        routes = [
            row
            if (row[0], row[2].__name__) != ("POST", "create_rule")
            else (row[0], row[1], lambda call: refuse(keep(rig), call))
            for row in keep(rig)._routes
        ]
        monkeypatch.setattr(rig.server, "_routes", routes)
        with pytest.raises(ForgeRefusedError, match="not protected now"):
            await forge.protect(Protection(branch="main", blocks_pushes=True))


@pytest.mark.parametrize(
    ("names", "is_closed"),
    [(["*"], True), (["m*", "release-*"], True), (["release-*"], None), (["m*", "open"], False)],
)
async def test_rule_with_a_star_holds_and_the_one_that_lets_more_pass_counts(
    names: list[str], is_closed: bool | None
) -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        for name in names:
            push = 40 if name == "open" else 0
            pattern = "main" if name == "open" else name
            keep(rig).rules[pattern] = {"name": pattern, "push_access_levels": [{"access_level": push}]}
        found = await forge.protection("main")
        assert (None if found is None else found.blocks_pushes) is is_closed


async def test_person_who_may_push_is_not_overlooked() -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        levels = [{"access_level": 0}, {"access_level": None, "user_id": 5}]
        keep(rig).rules["main"] = {"name": "main", "push_access_levels": levels}
        found = await forge.protection("main")
        assert found is not None
        assert not found.blocks_pushes


async def test_project_that_makes_merge_commits_is_not_rebased() -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        await rig.commit("feature", {"a": "1"})
        pull = await forge.open_pull("Add a", "", "feature", "main")
        with pytest.raises(ForgeRefusedError, match="merge commits"):
            await forge.merge(pull.number, pull.head, MergeMethod.REBASE)
        keep(rig).settings["merge_method"] = "ff"
        assert await forge.merge(pull.number, pull.head, MergeMethod.REBASE) == await forge.branch_tip("main")


async def test_list_of_files_that_is_cut_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        await rig.commit("feature", {"a": "1"})
        pull = await forge.open_pull("Add a", "", "feature", "main")
        whole = keep(rig).pull
        monkeypatch.setattr(rig.server, "pull", lambda one: {**whole(one), "changes_count": "1000+"})
        with pytest.raises(ForgeRefusedError, match=r"1000\+"):
            await forge.changed_files(pull.number)


async def test_fork_that_is_gone_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        number = await rig.fork_pull("patch", {"a": "1"})
        whole = keep(rig).pull
        for project in (None, 99):
            monkeypatch.setattr(
                rig.server, "pull", lambda one, project=project: {**whole(one), "source_project_id": project}
            )
            pull = await forge.pull(number)
            assert (pull.head_repository, pull.is_fork) == ("", True)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("guest", Permission.NONE),
        ("reporter", Permission.READ),
        ("developer", Permission.WRITE),
        ("maintainer", Permission.ADMIN),
        ("owner", Permission.ADMIN),
    ],
)
async def test_levels_of_members_are_permissions(level: str, expected: Permission) -> None:
    async with open_gitlab_rig() as rig, rig.open() as forge:
        rig.world.levels["somebody"] = level
        assert await forge.permission("somebody") is expected
        # A longer name that has this one in it is somebody else.
        rig.world.levels = {"bot": "maintainer", "somebody-else": level}
        assert await forge.permission("somebody") is Permission.NONE
