"""What git would commit is read from its index."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.repositories import commit, git, new_repository

from stackyard.clients.git import GitError, find_repository, require_repository


def test_a_repository_is_found_from_any_folder_below(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "repo")
    (folder / "a" / "b").mkdir(parents=True)
    found = asyncio.run(require_repository(folder / "a" / "b"))
    assert found.root == folder
    assert found.hooks == folder / ".git" / "hooks"


def test_a_folder_outside_is_in_none(tmp_path: Path) -> None:
    assert asyncio.run(find_repository(tmp_path)) is None
    with pytest.raises(GitError, match="not inside a git repository"):
        asyncio.run(require_repository(tmp_path))


def test_the_index_is_read_and_not_the_working_tree(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    commit(folder, kept="one\n", changed="old\n")
    (folder / "changed").write_text("staged\n")
    (folder / "new name ü").write_text("new\n\n")
    git(folder, "add", "--all")
    (folder / "changed").write_text("not staged\n")
    (folder / "untracked").write_text("x")

    async def read() -> tuple[dict[str, str], list[str]]:
        repository = await require_repository(folder)
        index = await repository.index()
        texts = await repository.contents([entry.blob for entry in index], largest_bytes=1000)
        staged = [entry.path for entry in await repository.list_staged()]
        return {entry.path: texts[entry.blob] for entry in index}, staged

    texts, staged = asyncio.run(read())
    assert texts == {"kept": "one\n", "changed": "staged\n", "new name ü": "new\n\n"}
    assert staged == ["changed", "new name ü"]


def test_the_first_commit_has_everything_staged(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    (folder / "a").write_text("")
    git(folder, "add", "a")

    async def read() -> list[str]:
        return [entry.path for entry in await (await require_repository(folder)).list_staged()]

    assert asyncio.run(read()) == ["a"]


def test_blobs_that_are_large_or_binary_do_no_harm(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "large").write_text("x" * 5000)
    (folder / "empty").write_text("")
    git(folder, "add", "--all")

    async def read() -> dict[str, str | None]:
        repository = await require_repository(folder)
        index = await repository.index()
        texts = await repository.contents([entry.blob for entry in index], largest_bytes=1000)
        return {entry.path: texts.get(entry.blob) for entry in index}

    found = asyncio.run(read())
    assert found["large"] is None
    assert found["empty"] == ""
    assert found["binary"] is not None
    assert found["binary"].startswith("\0")


def test_the_folder_of_hooks_is_the_configured_one(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    git(folder, "config", "core.hooksPath", "own-hooks")
    assert asyncio.run(require_repository(folder)).hooks == folder / "own-hooks"
