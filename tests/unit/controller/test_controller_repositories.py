"""Repositories over HTTPS: what is served, to whom, and what never is."""

from __future__ import annotations

import asyncio
import io
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.controller import REPO_TOKEN, Asking, asking, make_site, repository, running
from tests.support.repositories import commit, git, new_repository

from stackyard.controller import RunningController
from stackyard.controller.repositories.library import NoRepositoriesError


def ask(
    tmp_path: Path, questions: Callable[[Asking, RunningController], Awaitable[Any]], **options: Any
) -> Any:
    """Run a controller that serves the repositories of a folder, and ask it."""
    site = make_site(tmp_path)

    async def run() -> Any:
        async with running(site, repos=True, **options) as found, asking(found) as client:
            return await questions(client, found)

    return asyncio.run(run())


def test_single_files_come_from_the_working_tree(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap")

    async def questions(client: Asking, found: RunningController) -> None:
        assert found.repositories == ["bootstrap"]
        changed = await client("/bootstrap.git/install.sh", REPO_TOKEN)
        assert (changed.status, changed.body) == (200, b"#!/bin/sh\necho changed\n")
        assert changed.headers["Content-Type"].startswith("text/plain")
        assert (await client("/bootstrap.git/new.txt", REPO_TOKEN)).body == b"not committed\n"
        assert (await client("/bootstrap.git/deep/er/a%20file.txt", REPO_TOKEN)).body == b"with a space\n"
        head = await client("/bootstrap.git/new.txt", REPO_TOKEN, method="HEAD")
        assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", "14")

    ask(tmp_path, questions)


NOT_SERVED = [
    *(
        "debug.log",
        "secrets.yaml",
        "nowhere.txt",
        "deep",
        "deep/er",
        "install.sh/x",
        ".git/config",
        "config",
    ),
    *(
        "objects",
        "objects/info",
        "objects/pack",
        "objects/info/alternates",
        "objects/info/http-alternates",
    ),
    *("objects/pack/pack-x.pack", "objects/zz/" + "0" * 38, "refs/heads/main", "info/exclude", "hooks/x"),
    *("stackyard-index", "link.txt", "outside/outside.txt", "objects/%2e%2e%2f", ".stackyard/key"),
]


def test_nothing_else_of_a_repository_is_served(tmp_path: Path) -> None:
    source = repository(tmp_path / "bootstrap")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "outside.txt").write_text("OUTSIDE")
    (source / "link.txt").symlink_to(outside / "outside.txt")
    (source / "outside").symlink_to(outside)
    (source / ".stackyard").mkdir()
    (source / ".stackyard" / "key").write_text("PRIVATE")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        for path in NOT_SERVED:
            answer = await client(f"/bootstrap.git/{path}", REPO_TOKEN)
            assert answer.status in (400, 404), path
            assert not [word for word in (b"OUTSIDE", b"PRIVATE", b"hunter2") if word in answer.body]

    ask(tmp_path, questions)


PATHS = ("info/refs", "info/refs?service=git-upload-pack", "HEAD", "install.sh", "objects/info/packs")


def test_every_path_of_a_repository_needs_its_token(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap")
    repository(tmp_path / "other")

    async def questions(client: Asking, found: RunningController) -> None:
        for path in PATHS:
            url = f"/bootstrap.git/{path}"
            missing = await client(url)
            assert missing.refusal == (401, "E300")
            assert missing.headers["WWW-Authenticate"].startswith("Basic")
            of_other, _ = found.tokens.issue(repo="other")
            of_node, _ = found.tokens.issue(node="web1")
            mine, issued = found.tokens.issue(repo="bootstrap")
            statuses = [
                (await client(url, token)).status for token in ("wrong", of_other, of_node, mine, REPO_TOKEN)
            ]
            assert statuses == [403, 403, 403, 200, 200]
            found.tokens.revoke(issued.id)
            assert (await client(url, mine)).refusal == (403, "E301")

    ask(tmp_path, questions, run_tokens=True)


def test_who_may_not_have_a_repository_does_not_learn_whether_it_is_there(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        for token in (None, "wrong"):
            there, not_there = [await client(f"/{name}.git/HEAD", token) for name in ("bootstrap", "nowhere")]
            assert there.refusal == not_there.refusal
        assert (await client("/nowhere.git/HEAD", REPO_TOKEN)).refusal == (404, "E200")

    ask(tmp_path, questions)


def test_a_change_is_served_to_the_next_who_asks(tmp_path: Path) -> None:
    source = repository(tmp_path / "bootstrap")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        for number in range(3):
            (source / "new.txt").write_text(f"version {number}\n")
            assert (await client("/bootstrap.git/new.txt", REPO_TOKEN)).body == f"version {number}\n".encode()
        (source / "new.txt").unlink()
        assert (await client("/bootstrap.git/new.txt", REPO_TOKEN)).status == 404

    ask(tmp_path, questions)


def test_a_repository_that_is_deleted_is_not_found_and_the_others_stay(tmp_path: Path) -> None:
    source = repository(tmp_path / "bootstrap")
    repository(tmp_path / "other")

    async def questions(client: Asking, found: RunningController) -> None:
        shutil.rmtree(source)
        for path in ("info/refs", "info/refs?service=git-upload-pack", "install.sh"):
            assert (await client(f"/bootstrap.git/{path}", REPO_TOKEN)).refusal == (404, "E200")
        assert found.repositories == ["other"]
        assert (await client("/other.git/install.sh", REPO_TOKEN)).status == 200

    ask(tmp_path, questions)


def test_a_damaged_repository_is_served_as_it_was(tmp_path: Path) -> None:
    source = repository(tmp_path / "bootstrap")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        (source / ".git" / "HEAD").write_text("nonsense\n")
        assert (await client("/bootstrap.git/install.sh", REPO_TOKEN)).status == 200

    ask(tmp_path, questions)


def test_a_repository_with_committed_secrets_is_not_served(tmp_path: Path) -> None:
    commit(new_repository(tmp_path / "bootstrap"), secrets__yaml="password: hunter2hunter2\n", a__txt="a")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        for path in ("info/refs", "info/refs?service=git-upload-pack", "a.txt", "HEAD"):
            assert (await client(f"/bootstrap.git/{path}", REPO_TOKEN)).refusal == (403, "E301")

    ask(tmp_path, questions)


def test_a_reload_finds_what_came_and_forgets_what_went(tmp_path: Path) -> None:
    source = repository(tmp_path / "bootstrap")
    repository(tmp_path / "unwanted")

    async def questions(client: Asking, found: RunningController) -> None:
        repository(tmp_path / "later")
        shutil.rmtree(source)
        await found.reload()
        assert found.repositories == ["later"]
        assert (await client("/later.git/install.sh", REPO_TOKEN)).status == 200
        assert (await client("/unwanted.git/install.sh", REPO_TOKEN)).status == 404

    ask(tmp_path, questions, exclude=("unwanted",))


def test_the_secrets_of_the_site_are_never_served_with_its_repository(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    new_repository(site)
    (site / ".gitignore").write_text("nothing\n")
    git(site, "add", ".gitignore")
    git(site, "commit", "--quiet", "--message", "first")

    async def questions(client: Asking, found: RunningController) -> None:
        assert found.repositories == ["site-config"]
        assert (await client("/site-config.git/site.yaml", REPO_TOKEN)).status == 200
        for path in (
            "secrets.yaml",
            ".stackyard/controller/certificate/server.pem",
            ".stackyard/controller/tokens.json",
        ):
            assert (await client(f"/site-config.git/{path}", REPO_TOKEN)).status == 404

    ask(tmp_path, questions)


def test_without_a_repository_it_does_not_start(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del client, found

    with pytest.raises(NoRepositoriesError):
        ask(tmp_path, questions, repos_dir=tmp_path / "site-config")


def test_copies_are_removed_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "bootstrap")
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    # What a killed controller left, and what one that lives has.
    for name in ("dead", "alive"):
        (place / f"stackyard-repositories-{name}").mkdir()
    (place / "stackyard-repositories-dead" / "lock").touch()

    async def questions(client: Asking, found: RunningController) -> int:
        del client, found
        return len(list(place.glob("stackyard-repositories-*")))

    assert ask(tmp_path, questions) == 2
    assert [path.name for path in place.glob("stackyard-*")] == ["stackyard-repositories-alive"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 415),
        (b"", {"Content-Type": "application/x-git-upload-pack-request"}, 400),
        (b"garbage", {"Content-Type": "application/x-git-upload-pack-request"}, 400),
        (io.BytesIO(b"0" * (5 * 2**20)), {"Content-Type": "application/x-git-upload-pack-request"}, 413),
        (b"x", {"Content-Type": "application/x-git-upload-pack-request", "Content-Encoding": "gzip"}, 400),
        (b"x", {"Content-Type": "application/x-git-upload-pack-request", "Content-Encoding": "br"}, 415),
    ],
)
def test_a_body_that_is_no_question_of_git_is_refused(
    tmp_path: Path, body: bytes | io.BytesIO, headers: dict[str, str], status: int
) -> None:
    repository(tmp_path / "bootstrap")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        answer = await client(
            "/bootstrap.git/git-upload-pack", REPO_TOKEN, method="POST", data=body, headers=headers
        )
        assert answer.status == status
        assert answer.document["error"]["message"]

    ask(tmp_path, questions)


def test_pushing_is_refused(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        refused = await client("/bootstrap.git/info/refs?service=git-receive-pack", REPO_TOKEN)
        assert refused.refusal == (403, "E301")
        pushed = await client("/bootstrap.git/git-receive-pack", REPO_TOKEN, method="POST")
        assert pushed.refusal == (405, "E102")

    ask(tmp_path, questions)


def test_a_part_of_a_pack_can_be_asked_for(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap")

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        packs = (await client("/bootstrap.git/objects/info/packs", REPO_TOKEN)).body.split()
        path = f"/bootstrap.git/objects/pack/{packs[1].decode()}"
        whole = await client(path, REPO_TOKEN)
        part = await client(path, REPO_TOKEN, headers={"Range": "bytes=10-"})
        assert (part.status, part.body) == (206, whole.body[10:])
        beyond = await client(path, REPO_TOKEN, headers={"Range": f"bytes={len(whole.body)}-"})
        assert (beyond.status, beyond.body) == (200, whole.body)

    ask(tmp_path, questions)
