"""The rules of pull requests: those of the base branch, and an approval for nothing but what was shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.gitops_repo import PullRepository

from stackyard.clients.forge.model import (
    CommitState,
    CommitStatus,
    Permission,
    PullRequest,
    PullState,
    Review,
    ReviewVerdict,
)
from stackyard.clients.objects import ConflictError
from stackyard.gitops.approval import PullFacts, find_needs, list_approvers, name_approvals
from stackyard.gitops.context import CredentialFiles, CredentialsFileError, OwnEnvironment
from stackyard.gitops.forge_place import find_place
from stackyard.gitops.locks import TargetLock, TargetLocks
from stackyard.gitops.model import CodeFinding, CodeRisk, Credentials, PullPlan, TargetPlan, TargetState
from stackyard.gitops.plan import fingerprint_of, permit_words
from stackyard.gitops.record import Acknowledgement, CommentApproval, PullRecord, PullRecords, ShownTarget
from stackyard.gitops.settings import GitopsSettings, GitopsSettingsError, Requirements, read_settings
from stackyard.sources.store import ChosenStore

HEAD = "a" * 40


async def settings_of(folder: Path, text: str) -> GitopsSettings:
    pull = PullRepository(folder)
    base = pull.commit({"stackyard.yaml": text})
    checkouts = await pull.fetched("main")
    return await read_settings(checkouts, base)


async def test_rules_are_those_of_the_base_branch_and_later_ones_win(tmp_path: Path) -> None:
    text = """
gitops:
  approvals: 2
  checks: [lint]
  allow_code: write
  targets:
    - {match: "stack:prod/*", owners: [alice, org/keepers], up_to_date: true}
    - {match: "stack:prod/dns", approvals: 3}
"""
    found = await settings_of(tmp_path, text)
    assert found.find_requirements("stack:dev/web") == Requirements(approvals=2, checks=("lint",))
    dns = found.find_requirements("stack:prod/dns")
    assert (dns.approvals, dns.owners, dns.is_up_to_date) == (3, ("alice", "org/keepers"), True)
    assert (found.allow_destroy, found.allow_code) == (Permission.WRITE, Permission.WRITE)


@pytest.mark.parametrize("text", ["", "# nothing\n", "roots: [x]\n"])
async def test_without_rules_one_other_person_has_to_approve(tmp_path: Path, text: str) -> None:
    assert await settings_of(tmp_path, text) == GitopsSettings()
    assert GitopsSettings().find_requirements("env:x").approvals == 1


@pytest.mark.parametrize(
    "text",
    ["gitops: {aprovals: 0}\n", "gitops: {approvals: -1}\n", "gitops: [x\n", "gitops: {forks: maybe}\n"],
)
async def test_rules_that_are_not_valid_stop_everything(tmp_path: Path, text: str) -> None:
    with pytest.raises(GitopsSettingsError):
        await settings_of(tmp_path, text)


def record(**more: Any) -> PullRecord:
    target = TargetPlan(
        target="stack:a", state=TargetState.CHANGES, document={"changes": [], "bound_to": {"state": "l/3"}}
    )
    plan = PullPlan(
        repository="yard/infra",
        number=7,
        head=HEAD,
        base_branch="main",
        base="b" * 40,
        tree="c" * 40,
        targets=(target,),
    )
    shown = {"stack:a": ShownTarget(fingerprint=fingerprint_of(plan, target), stale=("old t0 ",))}
    return PullRecord(**{"plan": plan, "shown": shown, **more})


def review(author: str, **more: Any) -> Review:
    said = {"verdict": ReviewVerdict.APPROVED, "commit": HEAD, "submitted_at": "t1", **more}
    return Review(author=author, **said)


def facts(*reviews: Review, **more: Any) -> PullFacts:
    pull = PullRequest(
        number=7,
        title="x",
        author="author",
        state=PullState.OPEN,
        is_draft=False,
        head=HEAD,
        head_branch="x",
        head_repository="yard/infra",
        base_branch="main",
        base="b" * 40,
        repository="yard/infra",
    )
    rights = {name: Permission.WRITE for name in ("author", "writer", "other", "old")} | {
        "reader": Permission.READ
    }
    return PullFacts(**{"pull": pull, "reviews": reviews, "rights": rights, **more})


def approvers(known: PullRecord, said: PullFacts) -> tuple[str, ...]:
    return list_approvers(known, said, known.plan.targets[0])


def test_only_approvals_of_what_is_shown_by_others_who_may_write_count() -> None:
    known = record()
    assert approvers(known, facts(review("writer"))) == ("writer",)
    # A forge that keeps no commit takes approvals back when somebody pushes.
    assert approvers(known, facts(review("writer", commit=""))) == ("writer",)
    for other in (
        review("author"),
        review("reader"),
        review("stranger"),
        review("writer", commit="d" * 40),
        review("old", commit="", submitted_at="t0"),
        review("writer", verdict=ReviewVerdict.COMMENTED),
        review("writer", verdict=ReviewVerdict.DISMISSED),
    ):
        assert approvers(known, facts(other)) == (), other


def test_a_new_commit_a_moved_base_and_a_moved_state_ask_again() -> None:
    known = record()
    target = known.plan.targets[0]
    said = facts(review("writer", commit=""))
    moved_state = replace(target, document={**target.document, "bound_to": {"state": "l/4"}})
    for other in (
        replace(known, plan=replace(known.plan, head="d" * 40)),
        replace(known, plan=replace(known.plan, tree="d" * 40)),
        replace(known, plan=replace(known.plan, targets=(moved_state,))),
    ):
        assert approvers(other, said) == ()
        # Also where no approval is required, nothing is applied that was not shown.
        free = GitopsSettings(requirements=Requirements(approvals=0))
        assert find_needs(free, other, said, other.plan.targets[0]) == ("this plan to be shown",)


def test_an_approval_by_comment_counts_for_what_was_shown_then() -> None:
    known = record()
    fingerprint = known.shown["stack:a"].fingerprint
    for login, prints, expected in (
        ("writer", (fingerprint,), ("writer",)),
        ("writer", ("another",), ()),
        ("author", (fingerprint,), ()),
        ("reader", (fingerprint,), ()),
    ):
        said = (CommentApproval(login=login, comment=1, fingerprints=prints),)
        assert approvers(replace(known, approved=said), facts()) == expected


def test_each_requirement_is_named_until_it_is_there() -> None:
    known = record()
    needed = Requirements(approvals=2, owners=("yard/keepers",), checks=("lint",), is_up_to_date=True)
    settings = GitopsSettings(requirements=needed)
    target = known.plan.targets[0]
    against = review("other", verdict=ReviewVerdict.CHANGES_REQUESTED)
    found = find_needs(settings, known, facts(review("writer"), against, is_up_to_date=False), target)
    words = " / ".join(found)
    for word in ("1 more approval", "yard/keepers", "`lint`", "last commit of the base", "asks for changes"):
        assert word in words
    well = facts(
        review("writer"),
        review("other"),
        statuses=(CommitStatus(context="lint", state=CommitState.SUCCESS),),
        teams={"yard/keepers": frozenset(("other",))},
    )
    assert find_needs(settings, known, well, target) == ()
    draft = replace(well, pull=replace(well.pull, is_draft=True))
    assert any("draft" in one for one in find_needs(settings, known, draft, target))
    assert name_approvals(well.reviews) == (f"other t1 {HEAD}", f"writer t1 {HEAD}")


def test_a_record_comes_back_as_it_was_stored_and_is_replaced_by_one_at_a_time(tmp_path: Path) -> None:
    records = PullRecords(ChosenStore(base=tmp_path / ".stackyard"), "yard/infra")
    assert records.get(7) is None
    finding = CodeFinding(risk=CodeRisk.PATH, path="x", line=1, detail="y")
    known = record(
        acknowledged=(Acknowledgement(what="destroy", name="web", login="writer", comment=3),),
        approved=(CommentApproval(login="writer", comment=4, fingerprints=("f",)),),
        comment=9,
        read_comments=5,
    )
    target = replace(
        known.plan.targets[0], findings=(finding,), after=("stack:b",), state=TargetState.APPLIED
    )
    stored = records.put(known.with_target(target))
    assert records.get(7) == stored
    records.put(replace(stored, comment=10))
    with pytest.raises(ConflictError):
        records.put(replace(stored, comment=11))
    assert records.numbers() == (7,)
    data = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"yard/infra" not in data.replace(b"gitops/yard", b"")
    assert b"bound_to" not in data


def test_a_target_has_one_holder_and_those_that_wait_come_in_their_order(tmp_path: Path) -> None:
    locks = TargetLocks(ChosenStore(base=tmp_path / ".stackyard"), "yard/infra")
    assert locks.take("stack:a/b", 1) == TargetLock(holder=1)
    for number in (2, 3, 2, 1):
        assert locks.take("stack:a/b", number).holder == 1
    assert locks.read(["stack:a/b", "stack:x"]) == {"stack:a/b": TargetLock(holder=1, waiting=(2, 3))}
    assert locks.release(4) == ()
    assert locks.release(1) == ("stack:a/b",)
    assert locks.release(3) == ()
    assert locks.read(["stack:a/b"]) == {"stack:a/b": TargetLock(holder=2)}


def test_permits_become_options_that_no_name_can_turn_into_another() -> None:
    said = [
        Acknowledgement(what="destroy", name="web", login="w"),
        Acknowledgement(what="destroy", name="db", login="w"),
        Acknowledgement(what="disk-loss", name="web", login="w"),
        Acknowledgement(what="code", name="abc1234", login="w"),
    ]
    assert permit_words(said) == ("--allow-destroy", "db,web", "--allow-disk-loss", "web")


def test_each_run_has_the_credentials_of_its_target_and_no_others(tmp_path: Path) -> None:
    for name, text in {
        "plan.env": "# all\nTOKEN=read\n",
        "apply.env": "TOKEN=write\n",
        "stack/onprem/web/apply.env": "TOKEN=web\nMORE=a=b\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
    source = CredentialFiles(tmp_path)
    assert source.environment("stack:onprem/web", Credentials.PLAN) == {"TOKEN": "read"}
    assert source.environment("stack:onprem/web", Credentials.APPLY) == {"TOKEN": "web", "MORE": "a=b"}
    assert source.environment("stack:db", Credentials.APPLY) == {"TOKEN": "write"}
    assert source.environment("stack:db", Credentials.NONE) == {}
    (tmp_path / "plan.env").chmod(0o644)
    with pytest.raises(CredentialsFileError, match="Other users can read"):
        source.environment("stack:db", Credentials.PLAN)


def test_a_run_never_gets_the_token_of_the_forge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACKYARD_FORGE_TOKEN", "x")
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    monkeypatch.setenv("PROXMOX_VE_API_TOKEN", "y")
    given = OwnEnvironment().environment("stack:a", Credentials.APPLY)
    assert given["PROXMOX_VE_API_TOKEN"] == "y"
    assert not {"STACKYARD_FORGE_TOKEN", "GITHUB_TOKEN"} & given.keys()
    assert OwnEnvironment().environment("stack:a", Credentials.NONE) == {}


def test_the_forge_is_that_of_the_job_unless_it_is_said() -> None:
    gitea = {
        "GITHUB_ACTIONS": "true",
        "GITEA_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://git.example.org",
        "GITHUB_REPOSITORY": "yard/infra",
    }
    place = find_place(None, None, None, gitea)
    assert (place.kind, place.url, place.repository) == ("gitea", "https://git.example.org", "yard/infra")
    assert find_place(None, None, "yard/other", gitea).repository == "yard/other"
    gitlab = {"GITLAB_CI": "1", "CI_SERVER_URL": "https://gitlab.example.org", "CI_PROJECT_PATH": "a/b/c"}
    assert find_place(None, None, None, gitlab).repository == "a/b/c"
