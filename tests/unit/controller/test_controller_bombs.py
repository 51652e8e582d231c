"""A controller answers while it checks a repository that is made to keep it busy, and serves none of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.bombs import merge_bomb
from tests.support.controller import REPO_TOKEN, asking, make_site, running
from tests.support.repositories import commit, git, new_repository

from stackyard.controller.repositories import check

AGE = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
# Python tries every way to split the name before it gives up: that takes longer than anybody lives.
ENDLESS = f"creation_rules:\n  - path_regex: ^(a+)+$\n    age: {AGE}\n"
RULES = {
    "brackets": "[" * 50_000,
    "merge keys of merge keys": merge_bomb(),
    "a pattern without end": ENDLESS,
}


@pytest.mark.parametrize("name", RULES)
async def test_health_is_answered_while_a_hostile_repository_is_checked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_TIMEOUT_S", 2.0)
    site, source = make_site(tmp_path), new_repository(tmp_path / "bootstrap")
    commit(source, first__txt="first\n")
    hostile = "a" * 60 + "!"

    async with running(site, repos=True) as found, asking(found) as client:
        (source / ".sops.yaml").write_text(RULES[name])
        (source / hostile).write_text("password: hunter2hunter2\n")
        git(source, "add", "--all")
        fetching = asyncio.create_task(client(f"/bootstrap.git/{hostile}", REPO_TOKEN))
        answered = 0
        while not fetching.done():
            assert (await client("/health")).status == 200
            answered += 1
        assert (await fetching).status in (403, 404)
        assert answered > 0
        assert (await client("/health")).status == 200


async def test_a_large_file_of_tokens_is_held_back_while_others_are_served(tmp_path: Path) -> None:
    site, source = make_site(tmp_path), new_repository(tmp_path / "bootstrap")
    commit(source, first__txt="first\n")
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
    (source / "tokens.txt").write_text(f"token = {token}\n" * 16_000)

    async with running(site, repos=True) as found, asking(found) as client:
        assert (await client("/bootstrap.git/tokens.txt", REPO_TOKEN)).status == 404
        assert (await client("/bootstrap.git/first.txt", REPO_TOKEN)).status == 200
