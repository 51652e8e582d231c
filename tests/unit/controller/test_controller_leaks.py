"""What must not leave the machine does not, wherever in a repository it is and however it is asked for."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.controller import REPO_TOKEN, Asking, asking, make_site, running
from tests.support.repositories import all_objects, commit, git, new_repository

from stackyard.clients.git import GitError
from stackyard.clients.git.mirror import Mirror, MirrorSnapshot
from stackyard.controller import RunningController
from stackyard.controller.repositories.check import PublishedCheck

CANARY = "canary-7f3a9c"
# In a form that is recognised wherever it is.
TOKEN = "ghp_" + "Canary7f3a9cQ2w4E6r8T0y1U3i5O7p9A1" + "s2D4"  # stackyard:allow-secret
SECRETS = f"password: {CANARY}-{TOKEN[-6:]}\n"
RULES = "creation_rules:\n  - path_regex: ^vault/.*\\.yaml$\n    age: {age}\n".format(
    age="age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
)


def secret_in_first_commit(source: Path) -> None:
    commit(source, secrets__yaml=SECRETS)
    (source / "secrets.yaml").unlink()
    commit(source)


def secret_on_a_branch_that_was_merged(source: Path) -> None:
    git(source, "checkout", "--quiet", "-b", "side")
    secret_in_first_commit(source)
    git(source, "checkout", "--quiet", "main")
    commit(source, other__txt="other\n")
    git(source, "merge", "--quiet", "--no-edit", "side")
    git(source, "branch", "-D", "side")


def secret_in_a_merge_itself(source: Path) -> None:
    git(source, "checkout", "--quiet", "-b", "side")
    commit(source, side__txt="side\n")
    git(source, "checkout", "--quiet", "main")
    commit(source, other__txt="other\n")
    git(source, "merge", "--quiet", "--no-commit", "side")
    (source / "secrets.yaml").write_text(SECRETS)
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message", "merged")
    (source / "secrets.yaml").unlink()
    commit(source)


def secret_behind_a_tag_alone(source: Path) -> None:
    git(source, "checkout", "--quiet", "--detach")
    commit(source, secrets__yaml=SECRETS)
    git(source, "tag", "old")
    git(source, "checkout", "--quiet", "main")


def secret_in_the_text_of_a_commit(source: Path) -> None:
    git(source, "commit", "--quiet", "--allow-empty", "--message", f"log in with {TOKEN}")


def secret_in_the_text_of_a_tag(source: Path) -> None:
    git(source, "tag", "--annotate", "--message", f"log in with {TOKEN}", "v1")


def secret_in_the_target_of_a_link(source: Path) -> None:
    (source / "link").symlink_to(f"/run/{TOKEN}")
    commit(source)


def secret_in_a_large_file(source: Path) -> None:
    commit(source, large__txt="some text\n" * 300_000 + f"{TOKEN}\n")


def secret_by_a_rule_that_came_later(source: Path) -> None:
    (source / "vault").mkdir()
    (source / "vault" / "db.yaml").write_text(SECRETS)
    commit(source)
    (source / "vault" / "db.yaml").unlink()
    (source / ".sops.yaml").write_text(RULES)
    commit(source)


def secret_by_a_rule_that_is_gone(source: Path) -> None:
    (source / ".sops.yaml").write_text(RULES)
    (source / "vault").mkdir()
    (source / "vault" / "db.yaml").write_text(SECRETS)
    commit(source)
    (source / "vault" / "db.yaml").unlink()
    (source / ".sops.yaml").unlink()
    commit(source)


def secret_that_has_a_harmless_name_too(source: Path) -> None:
    commit(source, harmless__txt=SECRETS, secrets__yaml=SECRETS)


def folder_of_stackyard(source: Path) -> None:
    (source / ".stackyard").mkdir()
    (source / ".stackyard" / "id").write_text(SECRETS)
    commit(source)
    git(source, "rm", "-r", "--quiet", ".stackyard")
    commit_again = git(source, "commit", "--quiet", "--message", "removed")
    assert commit_again.returncode == 0


HISTORIES: dict[str, Callable[[Path], None]] = {
    name.replace("_", " "): make
    for name, make in list(globals().items())
    if name.startswith(("secret_", "folder_of"))
}


def refreshed(source: Path, bare: Path, *changes: Callable[[], object]) -> MirrorSnapshot:
    """Return the last state, after each of some changes."""

    async def run() -> MirrorSnapshot:
        check = PublishedCheck()
        try:
            mirror = Mirror(source, bare, check)
            found = await mirror.refresh()
            for change in changes:
                change()
                found = await mirror.refresh()
            return found
        finally:
            await check.close()

    return asyncio.run(run())


def base(tmp_path: Path) -> Path:
    source = new_repository(tmp_path / "source")
    commit(source, a__txt="a\n")
    return source


def stored(bare: Path) -> bytes:
    return all_objects(bare) if bare.exists() else b""


def holds_canary(bare: Path) -> bool:
    found = stored(bare)
    return CANARY.encode() in found or TOKEN.encode() in found


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("history", HISTORIES)
def test_a_secret_anywhere_in_the_history_keeps_all_of_it_back(
    tmp_path: Path, history: str, is_new: bool
) -> None:
    """Whether the history is there at the start, or comes while the repository is served."""
    source, bare = base(tmp_path), tmp_path / "copy.git"
    changes = () if is_new else (lambda: HISTORIES[history](source),)
    if is_new:
        HISTORIES[history](source)
    found = refreshed(source, bare, *changes)
    assert found.tainted
    assert not bare.exists()
    assert CANARY not in str(found.tainted)


def test_history_that_was_rewritten_is_served_without_what_was_in_it(tmp_path: Path) -> None:
    source, bare = base(tmp_path), tmp_path / "copy.git"
    secret_in_first_commit(source)
    found = refreshed(source, bare, lambda: git(source, "reset", "--quiet", "--hard", "HEAD~2"))
    assert found.tainted == ()
    assert set(found.files) == {"a.txt"}
    assert not holds_canary(bare)


def test_a_file_of_a_rule_that_was_there_before_is_held_back(tmp_path: Path) -> None:
    source, bare = base(tmp_path), tmp_path / "copy.git"
    commit(source, __sops__yaml="")
    (source / ".sops.yaml").write_text(RULES)
    commit(source)
    (source / "vault").mkdir()
    found = refreshed(source, bare, lambda: (source / "vault" / "db.yaml").write_text(SECRETS))
    assert found.held_back == ("vault/db.yaml",)
    assert "vault/db.yaml" not in found.files
    assert not holds_canary(bare)


@pytest.mark.parametrize("rules", ["creation_rules: [", "\0", "[" * 50_000, "- x\n"])
def test_rules_that_cannot_be_read_hold_back_everything_that_they_could_mean(
    tmp_path: Path, rules: str
) -> None:
    source, bare = base(tmp_path), tmp_path / "copy.git"
    (source / "vault").mkdir()
    (source / "vault" / ".sops.yaml").write_text(rules)
    (source / "vault" / "db.yaml").write_text(SECRETS)
    found = refreshed(source, bare)
    assert "vault/db.yaml" in found.held_back
    assert "a.txt" in found.files
    assert not holds_canary(bare)


def test_what_a_new_rule_holds_back_is_removed_from_what_was_served(tmp_path: Path) -> None:
    source, bare = base(tmp_path), tmp_path / "copy.git"
    (source / "vault").mkdir()
    (source / "vault" / "db.yaml").write_text(SECRETS)
    assert "vault/db.yaml" in refreshed(source, bare).files
    assert holds_canary(bare)
    found = refreshed(source, tmp_path / "other.git", lambda: (source / ".sops.yaml").write_text(RULES))
    assert found.held_back == ("vault/db.yaml",)
    assert not holds_canary(tmp_path / "other.git")


@pytest.mark.parametrize("kind", ["blob", "tree", "tag on a blob", "tag on a tag on a blob"])
def test_a_tag_that_leads_to_no_commit_is_left_out_with_what_it_leads_to(tmp_path: Path, kind: str) -> None:
    source, bare = base(tmp_path), tmp_path / "copy.git"
    (source / "leak.txt").write_text(SECRETS)
    blob = git(source, "hash-object", "-w", "leak.txt").stdout.strip()
    git(source, "update-index", "--add", "--cacheinfo", f"100644,{blob},leak.txt")
    tree = git(source, "write-tree").stdout.strip()
    git(source, "reset", "--quiet")
    (source / "leak.txt").unlink()
    target = tree if kind == "tree" else blob
    if kind.startswith("tag"):
        assert git(source, "tag", "--annotate", "--message", "inner", "inner", blob).returncode == 0
        target = git(source, "rev-parse", "refs/tags/inner").stdout.strip()
    if kind.startswith("tag on a tag"):
        assert git(source, "tag", "--annotate", "--message", "outer", "outer", target).returncode == 0
    assert git(source, "tag", "leak", target).returncode == 0
    found = refreshed(source, bare)
    assert "refs/tags/leak" in found.left_out
    assert git(bare, "for-each-ref", "--format=%(refname)").stdout.split() == [
        *("refs/heads/_working", "refs/heads/main")
    ]
    assert not holds_canary(bare)


def test_a_secret_file_is_held_back_whatever_bytes_its_name_has(tmp_path: Path) -> None:
    source, bare = base(tmp_path), tmp_path / "copy.git"
    for name in (b"key-\xff.txt", b"key-\xfe.txt", b"line\nbreak.txt", b'quote".txt', b" space .txt"):
        (source / os.fsdecode(name)).write_text(TOKEN)
    found = refreshed(source, bare)
    assert len(found.held_back) == 5
    assert set(found.files) == {"a.txt"}
    assert not holds_canary(bare)


def test_a_tree_that_names_a_file_twice_publishes_nothing(tmp_path: Path) -> None:
    """Commands of git differ in which of the two they see."""
    source, bare = base(tmp_path), tmp_path / "copy.git"
    blobs = []
    for text in ("harmless\n", f"{TOKEN}\n"):
        (source / "x").write_text(text)
        blobs.append(git(source, "hash-object", "-w", "x").stdout.strip())
    (source / "x").unlink()
    rows = b"".join(b"100644 x\0" + bytes.fromhex(blob) for blob in blobs)
    (tmp_path / "tree").write_bytes(rows)
    made = git(source, "hash-object", "-w", "-t", "tree", "--literally", str(tmp_path / "tree"))
    odd = git(source, "commit-tree", made.stdout.strip(), "-m", "odd").stdout.strip()
    git(source, "update-ref", "refs/heads/odd", odd)
    with contextlib.suppress(GitError):
        assert refreshed(source, bare).tainted
    assert not holds_canary(bare)


def test_data_and_links_are_served_and_large_texts_are_looked_through(tmp_path: Path) -> None:
    source, bare = base(tmp_path), tmp_path / "copy.git"
    (source / "data.bin").write_bytes(bytes(range(256)) * 20_000)
    (source / "large.txt").write_text("some text\n" * 300_000)
    (source / "link").symlink_to("a.txt")
    found = refreshed(source, bare)
    assert (found.held_back, set(found.files)) == ((), {"a.txt", "data.bin", "large.txt"})


# --- Over HTTPS


def framed(*texts: str) -> bytes:
    """Return lines as git frames them; `|` separates, and the end is added."""
    lines = ("0001" if text == "|" else f"{len(text) + 5:04x}{text}\n" for text in texts)
    return ("".join(lines) + "0000").encode()


async def attempts(client: Asking, number: str) -> bytes:
    """Ask for an object by its number in every way there is, and return all that comes."""
    pack = {"Content-Type": "application/x-git-upload-pack-request"}
    questions = [
        ({**pack, "Git-Protocol": "version=2"}, framed("command=fetch", "|", f"want {number}", "done")),
        (pack, framed(f"want {number} no-progress") + b"0009done\n"),
        ({**pack, "Git-Protocol": "version=1"}, framed(f"want {number} no-progress") + b"0009done\n"),
    ]
    got = b""
    for headers, asked in questions:
        answer = await client(
            "/bootstrap.git/git-upload-pack", REPO_TOKEN, method="POST", data=asked, headers=headers
        )
        got += answer.body if b"PACK" in answer.body else b""
    for path in (f"objects/{number[:2]}/{number[2:]}", f"../{number}", number):
        answer = await client(f"/bootstrap.git/{path}", REPO_TOKEN)
        got += answer.body if answer.status == 200 else b""
    return got


async def test_nothing_that_is_held_back_can_be_had_by_its_number(tmp_path: Path) -> None:
    site, source = make_site(tmp_path), new_repository(tmp_path / "bootstrap")
    commit(source, a__txt="a\n")
    (source / "secrets.yaml").write_text(SECRETS)
    held_back = git(source, "hash-object", "secrets.yaml").stdout.strip()
    (source / "leak.txt").write_text(SECRETS * 2)
    tagged = git(source, "hash-object", "-w", "leak.txt").stdout.strip()
    (source / "leak.txt").unlink()
    git(source, "tag", "leak", tagged)
    clean = git(source, "rev-parse", "HEAD").stdout.strip()

    async def questions(client: Asking) -> None:
        for path in ("info/refs?service=git-upload-pack", "info/refs", "HEAD", "a.txt"):
            assert (await client(f"/bootstrap.git/{path}", REPO_TOKEN)).status == 200
        assert b"PACK" in await attempts(client, clean)
        for number in (held_back, tagged):
            assert await attempts(client, number) == b""

    async with running(site, repos=True) as found, asking(found) as client:
        await questions(client)


async def test_a_check_that_cannot_be_made_serves_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked before is still served; the files that came since are not."""
    site, source = make_site(tmp_path), new_repository(tmp_path / "bootstrap")
    commit(source, a__txt="a\n")

    async def questions(client: Asking, found: RunningController) -> None:
        assert (await client("/bootstrap.git/a.txt", REPO_TOKEN)).status == 200
        monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
        assert found._library is not None
        await found._library._check.close()
        commit(source, secrets__yaml=SECRETS, b__txt="b\n")
        for path, status in (("b.txt", 404), ("secrets.yaml", 404), ("a.txt", 200)):
            assert (await client(f"/bootstrap.git/{path}", REPO_TOKEN)).status == status

    async with running(site, repos=True) as found, asking(found) as client:
        await questions(client, found)
