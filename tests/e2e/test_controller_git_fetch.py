"""Real git fetches into a clone that it has: what is new alone comes over, by every protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.e2e.test_controller_git import PROTOCOLS, commit_file, serving
from tests.support.controller import git_clone, git_fetch
from tests.support.repositories import git


async def told(place: Path, *words: str) -> str:
    ended = await asyncio.to_thread(git, place, *words)
    assert ended.returncode == 0, ended
    return ended.stdout.strip()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_git_fetches_commits_and_uncommitted_work_into_a_clone(tmp_path: Path, protocol: str) -> None:
    async with serving(tmp_path) as (found, source):
        place, variables = tmp_path / "clone", PROTOCOLS[protocol]
        assert await git_clone(found, place, **variables) == (0, "")
        before = await told(place, "rev-parse", "origin/HEAD")
        await asyncio.to_thread(commit_file, source, "later.txt", "later")
        (source / "new.txt").write_text("changed again\n")
        assert await git_fetch(found, place, **variables) == (0, "")
        assert await told(place, "show", "origin/HEAD:later.txt") == "later"
        assert await told(place, "rev-parse", "origin/HEAD~1") == before
        assert await told(place, "show", "origin/_working:new.txt") == "changed again"
        # What was not committed and is gone, is gone from the branch too.
        (source / "new.txt").unlink()
        assert await git_fetch(found, place, **variables) == (0, "")
        names = await told(place, "ls-tree", "-r", "--name-only", "origin/_working")
        assert {"later.txt", "install.sh"} <= set(names.splitlines())
        assert "new.txt" not in names.splitlines()
        assert await told(place, "fsck", "--strict") == ""
        heads = await told(place, "rev-parse", "origin/HEAD", "origin/_working")
        assert await git_fetch(found, place, **variables) == (0, "")
        assert await told(place, "rev-parse", "origin/HEAD", "origin/_working") == heads


@pytest.mark.parametrize("protocol", ["version 2", "dumb"])
async def test_a_fetch_without_the_right_token_changes_nothing(tmp_path: Path, protocol: str) -> None:
    async with serving(tmp_path) as (found, source):
        place, variables = tmp_path / "clone", PROTOCOLS[protocol]
        assert await git_clone(found, place, **variables) == (0, "")
        before = await told(place, "rev-parse", "origin/_working")
        await asyncio.to_thread(commit_file, source, "later.txt", "later")
        status, errors = await git_fetch(found, place, token="wrong", **variables)
        assert (status != 0, "403" in errors) == (True, True)
        assert await told(place, "rev-parse", "origin/_working") == before
