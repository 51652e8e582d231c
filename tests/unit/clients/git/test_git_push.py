"""A commit of a checkout, and its push: nothing of others is overwritten, and no argument has the token."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from tests.support.gitops_repo import PullRepository
from tests.support.repositories import git

from stackyard.clients.git.fetch import RemoteHead
from stackyard.clients.git.push import commit_all, push, read_committer
from stackyard.clients.git.remote import GitRefusedError, GitUnreachableError

BRANCH = "refs/heads/stackyard/upgrade/web"


def tip_of(origin: PullRepository) -> str:
    return git(origin.work, "rev-parse", BRANCH).stdout.strip()


async def test_a_commit_is_pushed_where_the_branch_is_as_it_was_seen(tmp_path: Path) -> None:
    origin = PullRepository(tmp_path)
    base = origin.commit({"a.tf": "a\n", "link": "-> a.tf"})
    checkouts = await origin.fetched("main")
    remote = RemoteHead(origin.access.url, may_be_local=True)
    async with checkouts.at(base) as place:
        assert await commit_all(place.folder, base, "Nothing") is None
        (place.folder / "a.tf").write_text("b\n")
        (place.folder / "left").write_text("no part of it\n")
        first = await commit_all(place.folder, base, "Change a", leave=("left",))
        assert first is not None
        assert await commit_all(place.folder, base, "Change a", leave=("left",)) == first
        await push(remote, place.folder, first, BRANCH, expect=None)
        assert tip_of(origin) == first
        assert git(origin.work, "diff", "--name-only", base, first).stdout == "a.tf\n"
        (place.folder / "a.tf").write_text("c\n")
        second = await commit_all(place.folder, base, "Change a", leave=("left",))
        assert second not in (None, first)
        for seen in (None, base):
            with pytest.raises(GitRefusedError):
                await push(remote, place.folder, str(second), BRANCH, expect=seen)
        assert tip_of(origin) == first
        await push(remote, place.folder, str(second), BRANCH, expect=first)
        assert tip_of(origin) == second
    assert await read_committer(origin.work / ".git", str(second)) == "stackyard"
    assert await read_committer(origin.work / ".git", base) != "stackyard"


async def test_the_token_is_in_no_argument_of_a_push(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = PullRepository(tmp_path)
    base = origin.commit({"a.tf": "a\n"})
    checkouts = await origin.fetched("main")
    told, program = tmp_path / "told", tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >> {told}\nenv > {told}.env\nexec {shutil.which("git")} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    remote = RemoteHead("http://127.0.0.1:9/yard/infra.git", {"Authorization": "token s3cret-word"})
    async with checkouts.at(base) as place:
        with pytest.raises(GitUnreachableError) as caught:
            await push(remote, place.folder, base, BRANCH, expect=None)
        kept = (place.folder / ".git" / "config").read_text()
    assert "push --quiet" in told.read_text()
    assert "s3cret-word" in told.with_name("told.env").read_text()
    for text in (told.read_text(), kept, str(caught.value), caught.value.detail):
        assert "s3cret-word" not in text
