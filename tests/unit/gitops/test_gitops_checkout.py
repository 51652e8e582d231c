"""Folders with the merge of a pull request: the files of its tree, and nothing that they name is run."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.gitops_repo import PullRepository
from tests.support.repositories import git

from stackyard.clients.forge.model import CloneAccess
from stackyard.clients.git import GitError
from stackyard.clients.git.fetch import FetchAddressError, GitRefError, RemoteHead
from stackyard.clients.git.merge import GitTooOldError, MergeConflictError
from stackyard.clients.git.remote import GitRefusedError, GitUnreachableError
from stackyard.gitops.checkout import open_checkouts
from stackyard.path.stacks.checkout import read_checkout
from stackyard.sources.stacks.repository import find_stacks

STACK = 'resource "terraform_data" "x" {}\n'


@pytest.fixture
def pull(tmp_path: Path) -> PullRepository:
    made = PullRepository(tmp_path)
    made.commit({"stacks/web/main.tf": STACK, "stacks/db/main.tf": STACK, "README.md": "one\n"})
    return made


async def test_a_merge_has_the_files_of_both_sides_and_is_the_same_commit_again(pull: PullRepository) -> None:
    head = pull.commit({"stacks/web/more.tf": STACK}, branch="work")
    base = pull.commit({"stacks/db/more.tf": STACK})
    checkouts = await pull.fetched()
    async with checkouts.merge_result(base, head) as one:
        folder = one.folder
        names = sorted(str(path.relative_to(folder)) for path in folder.glob("stacks/*/*"))
        assert names == [f"stacks/{stack}/{name}.tf" for stack in ("db", "web") for name in ("main", "more")]
        assert git(folder, "rev-parse", "HEAD^{tree}").stdout.strip() == one.tree
        assert git(folder, "status", "--porcelain").stdout == ""
        assert git(folder, "rev-parse", "HEAD^1", "HEAD^2").stdout.split() == [base, head]
    assert not folder.exists()
    async with checkouts.merge_result(base, head) as again:
        assert (again.commit, again.tree, again.folder) == (one.commit, one.tree, folder)
    assert await checkouts.find_merge_tree(base, head) == one.tree
    assert (
        await checkouts.find_merge_base(base, head) == git(pull.work, "merge-base", base, head).stdout.strip()
    )


async def test_stacks_see_a_clean_checkout_that_is_not_behind(pull: PullRepository) -> None:
    head = pull.commit({"stacks/web/more.tf": STACK}, branch="work")
    base = pull.commit({"stacks/db/more.tf": STACK})
    checkouts = await pull.fetched()
    async with checkouts.merge_result(base, head, branch="main") as one:
        repository = find_stacks(one.folder)
        seen = await read_checkout(repository.tree, repository.cache)
        assert (seen.commit, seen.changed, seen.missing, seen.branch) == (one.commit, (), (), "origin/main")
    first = git(pull.work, "rev-parse", "main^").stdout.strip()
    async with checkouts.at(first, tip=base) as old:
        repository = find_stacks(old.folder)
        seen = await read_checkout(repository.tree, repository.cache)
        assert seen.missing == ("stacks/db/more.tf",)


async def test_applying_has_the_files_where_they_were_planned(pull: PullRepository) -> None:
    head = pull.commit({"stacks/web/more.tf": STACK}, branch="work")
    base = git(pull.work, "rev-parse", "main").stdout.strip()
    checkouts = await pull.fetched()
    async with checkouts.merge_result(base, head) as planned:
        pass
    git(pull.work, "checkout", "--quiet", "main")
    git(pull.work, "merge", "--squash", "--quiet", "work")
    merged = pull.commit({})
    await checkouts.fetch(pull.access, ["refs/heads/main"])
    async with checkouts.at(merged) as applied:
        assert (applied.folder, applied.tree) == (planned.folder, planned.tree)
        assert applied.commit != planned.commit


async def test_conflicts_are_named_by_their_files(pull: PullRepository) -> None:
    head = pull.commit({"README.md": "mine\n", "stacks/web/main.tf": "# mine\n"}, branch="work")
    base = pull.commit({"README.md": "theirs\n", "stacks/web/main.tf": "# theirs\n"})
    checkouts = await pull.fetched()
    with pytest.raises(MergeConflictError, match=r"README\.md, stacks/web/main\.tf") as caught:
        await checkouts.find_merge_tree(base, head)
    assert caught.value.files == ("README.md", "stacks/web/main.tf")


async def test_histories_without_a_common_commit_are_refused(pull: PullRepository) -> None:
    git(pull.work, "checkout", "--quiet", "--orphan", "work")
    head = pull.commit({"other.txt": "x"}, branch="work")
    base = git(pull.work, "rev-parse", "main").stdout.strip()
    checkouts = await pull.fetched()
    with pytest.raises(GitError, match="unrelated histories"):
        await checkouts.find_merge_tree(base, head)


async def test_an_old_git_is_said_to_be_old(
    pull: PullRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head = pull.commit({"more.txt": "x"}, branch="work")
    base = git(pull.work, "rev-parse", "main").stdout.strip()
    checkouts = await pull.fetched()
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo git version 2.30.2 && exit 0\necho usage >&2; exit 129\n'
    )
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    with pytest.raises(GitTooOldError, match=r"git version 2\.30\.2"):
        await checkouts.find_merge_tree(base, head)


def _add_attributes(pull: PullRepository, text: str) -> str:
    """Commit attributes without having them work on the files here."""
    (pull.work.parent / "attributes").write_text(text)
    blob = git(pull.work, "hash-object", "-w", "--no-filters", "../attributes").stdout.strip()
    git(pull.work, "update-index", "--add", "--cacheinfo", f"100644,{blob},.gitattributes")
    assert git(pull.work, "commit", "--quiet", "--message", "attributes").returncode == 0
    head = git(pull.work, "rev-parse", "HEAD").stdout.strip()
    git(pull.work, "checkout", "--quiet", "--force", "main")
    return head


async def test_files_are_what_was_committed_and_no_program_of_anyone_runs(
    pull: PullRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n\tfsmonitor = touch {ran}\n"
        f'[filter "lfs"]\n\tsmudge = touch {ran}\n\tprocess = touch {ran}\n\trequired = true\n'
        f'[merge "mine"]\n\tdriver = touch {ran}\n'
    )
    pull.commit(
        {
            "a.txt": "one\n$Id$\n",
            "big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            ".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = {tmp_path}\n\tupdate = !touch {ran}\n',
            ".lfsconfig": f"[lfs]\n\turl = {tmp_path}\n",
        },
        branch="work",
    )
    head = _add_attributes(pull, "* text eol=crlf ident filter=lfs merge=mine working-tree-encoding=UTF-16\n")
    base = pull.commit({"b.txt": "two\n"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "none"))
    checkouts = await pull.fetched()
    async with checkouts.merge_result(base, head) as one:
        assert (one.folder / "a.txt").read_bytes() == b"one\n$Id$\n"
        assert (one.folder / "big.bin").read_bytes().startswith(b"version https://git-lfs")
        monkeypatch.delenv("HOME")
        listed = git(one.folder, "config", "--local", "--list").stdout
    assert "remote." not in listed
    assert "filter" not in listed
    assert not ran.exists()


async def test_a_submodule_is_an_empty_folder_and_a_link_stays_a_link(pull: PullRepository) -> None:
    pull.commit({"link": "-> /etc/passwd"}, branch="work")
    number = git(pull.work, "rev-parse", "HEAD").stdout.strip()
    git(pull.work, "update-index", "--add", "--cacheinfo", f"160000,{number},module")
    git(pull.work, "commit", "--quiet", "--message", "module")
    head = git(pull.work, "rev-parse", "HEAD").stdout.strip()
    checkouts = await pull.fetched("work")
    async with checkouts.at(head) as one:
        assert (one.folder / "link").readlink() == Path("/etc/passwd")
        assert list((one.folder / "module").iterdir()) == []


async def test_two_that_work_on_one_tree_have_a_folder_each(pull: PullRepository) -> None:
    head = git(pull.work, "rev-parse", "main").stdout.strip()
    checkouts = await pull.fetched("main")
    async with checkouts.at(head) as one, pull.checkouts().at(head) as other:
        assert one.folder != other.folder
        assert (one.folder / "README.md").read_text() == (other.folder / "README.md").read_text()
    assert not one.folder.exists()
    assert not other.folder.exists()


async def test_a_folder_is_removed_whatever_its_permissions_are(pull: PullRepository) -> None:
    head = git(pull.work, "rev-parse", "main").stdout.strip()
    checkouts = await pull.fetched("main")
    async with checkouts.at(head) as one:
        (one.folder / "stacks/web").chmod(0o500)
        (one.folder / "stacks").chmod(0)
    assert not one.folder.exists()


_HOLDER = """
import asyncio, sys, time
from pathlib import Path
from stackyard.gitops.checkout import open_checkouts

async def main():
    checkouts = open_checkouts(sys.argv[1], cache=Path(sys.argv[2]), may_be_local=True)
    async with checkouts.at(sys.argv[3]) as one:
        extra = {}
        if sys.argv[4] == "child":
            import subprocess
            child = subprocess.Popen(["sleep", "60"], pass_fds=(one.hold,))
            extra = child.pid
        print(one.folder, extra or 0, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def _hold(pull: PullRepository, commit: str, how: str) -> tuple[subprocess.Popen[str], Path, int]:
    words = [sys.executable, "-c", _HOLDER, pull.access.url, str(pull.cache), commit, how]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder.stdout as said:
        folder, _, child = said.readline().strip().rpartition(" ")
    return holder, Path(folder), int(child)


async def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(pull: PullRepository) -> None:
    head = git(pull.work, "rev-parse", "main").stdout.strip()
    await pull.fetched("main")
    dead, left, _ = _hold(pull, head, "alone")
    lives, used, _ = _hold(pull, head, "alone")
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait(10)
        assert left.is_dir()
        pull.checkouts().clean()
        assert not left.exists()
        assert (used / "README.md").exists()
    finally:
        for one in (dead, lives):
            one.kill()
            one.wait(10)
    async with pull.checkouts().at(head) as fresh:
        assert fresh.folder == left
        assert not used.exists()


async def test_a_folder_stays_while_a_program_of_a_killed_process_works_there(pull: PullRepository) -> None:
    head = git(pull.work, "rev-parse", "main").stdout.strip()
    await pull.fetched("main")
    holder, used, child = _hold(pull, head, "child")
    holder.kill()
    holder.wait(10)
    try:
        pull.checkouts().clean()
        assert (used / "README.md").exists()
    finally:
        os.kill(child, signal.SIGKILL)
    for _ in range(100):
        pull.checkouts().clean()
        if not used.exists():
            break
        await asyncio.sleep(0.05)
    assert not used.exists()


async def test_force_pushes_and_branches_inside_others_are_fetched(pull: PullRepository) -> None:
    pull.commit({"x.txt": "1"}, branch="a")
    checkouts = await pull.fetched("a")
    git(pull.work, "checkout", "--quiet", "main")
    git(pull.work, "branch", "-D", "a")
    inner = pull.commit({"x.txt": "2"}, branch="a/b")
    found = await checkouts.fetch(pull.access, ["refs/heads/a/b", inner])
    assert found == {"refs/heads/a/b": inner, inner: inner}
    git(pull.work, "commit", "--quiet", "--amend", "--message", "other")
    amended = git(pull.work, "rev-parse", "HEAD").stdout.strip()
    assert await checkouts.fetch(pull.access, ["refs/heads/a/b"]) == {"refs/heads/a/b": amended}


async def test_a_fetch_that_was_killed_does_not_stop_the_next_one(pull: PullRepository) -> None:
    checkouts = await pull.fetched("main")
    (checkouts.mirror / "packed-refs.lock").touch()
    (checkouts.mirror / "objects/pack/tmp_pack_abc").write_text("half")
    for path in (checkouts.mirror / "refs/fetched").iterdir():
        path.with_name(f"{path.name}.lock").touch()
    head = pull.commit({"more.txt": "x"})
    assert await checkouts.fetch(pull.access, ["refs/heads/main"]) == {"refs/heads/main": head}
    assert not list(checkouts.mirror.glob("objects/pack/tmp_*"))


@pytest.mark.parametrize(
    "name",
    ["main", "--upload-pack=touch x", "refs/heads/../x", "refs/heads/a b", "refs/heads/a:refs/heads/b",
     "refs/heads/x.lock", "refs/heads/*", "refs/heads/a\nb", "0" * 39, "refs/heads/.x", "refs/heads/x@{1}",
     "+refs/x", ""],
)  # fmt: skip
async def test_names_that_are_no_refs_never_reach_git(pull: PullRepository, name: str) -> None:
    with pytest.raises(GitRefError):
        await pull.checkouts().fetch(pull.access, [name])


@pytest.mark.parametrize(
    "url",
    ["http://forge.example.org/a.git", "ext::sh -c 'touch x'", "ssh://git@forge/a.git", "/etc", "file:///etc",
     "https://user:secret@forge.example.org/a.git", "--upload-pack=x", "git://forge/a", "https:///a"],
)  # fmt: skip
def test_addresses_that_a_token_must_not_go_to_are_refused(url: str) -> None:
    with pytest.raises(FetchAddressError) as caught:
        RemoteHead(url)
    assert "secret" not in str(caught.value)


async def test_the_token_is_in_the_environment_of_git_and_in_no_argument_or_file(
    pull: PullRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    log = tmp_path / "log"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\nenv | grep -c hunter2 >> {log}.env\nexec /usr/bin/git "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    access = CloneAccess(url=str(pull.work), headers={"Authorization": "Bearer hunter2"})
    checkouts = pull.checkouts()
    await checkouts.fetch(access, ["refs/heads/main"])
    assert "fetch" in log.read_text()
    assert "hunter2" not in log.read_text()
    assert "1\n" in Path(f"{log}.env").read_text()
    everything = b"".join(path.read_bytes() for path in checkouts.folder.rglob("*") if path.is_file())
    assert b"hunter2" not in everything
    assert stat.S_IMODE(checkouts.folder.stat().st_mode) == 0o700


def test_a_header_cannot_add_another_one() -> None:
    with pytest.raises(FetchAddressError):
        RemoteHead("https://forge.example.org/a.git", {"Authorization": "x\r\nCookie: y"})


async def test_a_host_that_is_away_or_has_no_such_branch_is_told_apart(
    pull: PullRepository, tmp_path: Path
) -> None:
    away = open_checkouts("http://127.0.0.1:9/a.git", cache=tmp_path / "other")
    with pytest.raises(GitUnreachableError):
        await away.fetch(CloneAccess(url="http://127.0.0.1:9/a.git", headers={}), ["refs/heads/main"])
    with pytest.raises(GitRefusedError, match="refs/heads/none"):
        await pull.checkouts().fetch(pull.access, ["refs/heads/none"])


async def test_nothing_fetched_is_said_so(pull: PullRepository) -> None:
    with pytest.raises(GitError, match="Nothing of the repository was fetched"):
        await pull.checkouts().find_tree("0" * 40)
