"""A copy of a repository with its uncommitted work, which leaves the repository untouched."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.controller import repository
from tests.support.repositories import all_objects, commit, git, new_repository

from stackyard.clients.git import GitError
from stackyard.clients.git.history import Candidate
from stackyard.clients.git.mirror import Mirror, MirrorSnapshot


async def is_secret(candidates: Sequence[Candidate], rules: Mapping[str, bytes]) -> list[bool]:
    del rules
    return [b"hunter2" in one.content for one in candidates]


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return everything that can be told of the files below a folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            path.lstat().st_ino,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def snapshots(source: Path, bare: Path, *changes: object) -> list[MirrorSnapshot]:
    """Return the first state, and one more after each change."""

    async def run() -> list[MirrorSnapshot]:
        mirror = Mirror(source, bare, is_secret)
        found = [await mirror.refresh()]
        for change in changes:
            assert callable(change)
            change()
            found.append(await mirror.refresh())
        return found

    return asyncio.run(run())


def test_the_working_branch_has_changed_and_untracked_files_and_no_ignored_or_secret_ones(
    tmp_path: Path,
) -> None:
    source = repository(tmp_path / "source")
    (found,) = snapshots(source, tmp_path / "copy.git")
    assert set(found.files) == {
        *(".gitignore", "file0.txt", "file1.txt", "file2.txt"),
        *("install.sh", "new.txt", "deep/er/a file.txt"),
    }
    shown = git(tmp_path / "copy.git", "show", "_working:install.sh").stdout
    assert shown == "#!/bin/sh\necho changed\n"
    assert git(tmp_path / "copy.git", "show", "main:install.sh").stdout == "#!/bin/sh\necho installed\n"
    assert found.held_back == ("secrets.yaml",)
    assert git(tmp_path / "copy.git", "fsck", "--strict").returncode == 0


def test_the_repository_is_not_touched(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    # Staged, but in no commit: the object is in the repository and nowhere else.
    (source / "staged.txt").write_text("staged\n")
    git(source, "add", "staged.txt")
    before = fingerprint(source)
    (found,) = snapshots(source, tmp_path / "copy.git")
    assert fingerprint(source) == before
    assert "staged.txt" in found.files
    assert git(tmp_path / "copy.git", "cat-file", "blob", found.files["staged.txt"].blob).stdout == "staged\n"


def test_a_clean_repository_is_served_as_it_was_committed(tmp_path: Path) -> None:
    source = new_repository(tmp_path / "source")
    commit(source, a__txt="a")
    (found,) = snapshots(source, tmp_path / "copy.git")
    assert found.working == git(source, "rev-parse", "HEAD").stdout.strip()


def test_each_change_is_seen_and_nothing_else_changes_the_state(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    # A later change commits everything, and nothing is published of a repository with secrets in it.
    (source / "secrets.yaml").unlink()
    changes = (
        lambda: None,
        lambda: (source / "new.txt").write_text("changed again\n"),
        lambda: (source / "install.sh").unlink(),
        lambda: commit(source, committed__txt="x"),
        lambda: git(source, "branch", "topic"),
        lambda: git(source, "branch", "-D", "topic"),
        lambda: git(source, "tag", "v1"),
        lambda: (source / "debug.log").write_text("more of what is ignored"),
    )
    found = snapshots(source, tmp_path / "copy.git", *changes)
    differ = [one.state != other.state for one, other in itertools.pairwise(found)]
    assert differ == [False, True, True, True, True, True, True, False]
    assert "install.sh" not in found[3].files
    assert "committed.txt" in found[-1].files
    branches = git(tmp_path / "copy.git", "for-each-ref", "--format=%(refname)", "refs/heads").stdout.split()
    assert branches == ["refs/heads/_working", "refs/heads/main"]


def test_a_client_that_began_with_an_older_state_can_finish(tmp_path: Path) -> None:
    source, bare = repository(tmp_path / "source"), tmp_path / "copy.git"
    first, second = snapshots(source, bare, lambda: (source / "new.txt").write_text("other\n"))
    assert first.working != second.working
    for one in (first, second):
        assert git(bare, "rev-list", "--objects", one.working).returncode == 0


def test_an_empty_repository_has_its_files_on_the_working_branch(tmp_path: Path) -> None:
    source = new_repository(tmp_path / "source")
    (source / "a.txt").write_text("a")
    (found,) = snapshots(source, tmp_path / "copy.git")
    assert set(found.files) == {"a.txt"}


def test_a_detached_head_is_served_with_the_work_on_top_of_it(tmp_path: Path) -> None:
    source, bare = repository(tmp_path / "source"), tmp_path / "copy.git"
    git(source, "checkout", "--quiet", "--detach")
    git(source, "commit", "--quiet", "--all", "--message", "on no branch")
    (found,) = snapshots(source, bare)
    head = git(source, "rev-parse", "HEAD").stdout.strip()
    assert git(bare, "rev-parse", f"{found.working}^").stdout.strip() == head


def test_a_branch_of_theirs_called_as_ours_is_not_taken_for_it(tmp_path: Path) -> None:
    source, bare = repository(tmp_path / "source"), tmp_path / "copy.git"
    git(source, "branch", "_working", "HEAD~1")
    (found,) = snapshots(source, bare)
    assert git(bare, "rev-parse", "_working").stdout.strip() == found.working
    assert "new.txt" in found.files


def test_links_and_folders_of_stackyard_are_never_among_the_files(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    outside = tmp_path / "outside.txt"
    outside.write_text("outside")
    (source / "link.txt").symlink_to(outside)
    (source / "folder").symlink_to(tmp_path)
    for place in (source / ".stackyard", source / "deep" / ".stackyard"):
        place.mkdir()
        (place / "key.pem").write_text("private")
    (found,) = snapshots(source, tmp_path / "copy.git")
    assert not [path for path in found.files if "link" in path or "folder" in path or "stackyard" in path]


def test_hooks_of_the_repository_are_not_run(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    hook = source / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
    hook.chmod(0o755)
    snapshots(source, tmp_path / "copy.git")
    assert not (tmp_path / "hook-ran").exists()


@pytest.mark.parametrize("place", [".gitattributes", ".git/info/attributes"])
def test_the_clear_text_of_an_encrypting_filter_is_never_staged(tmp_path: Path, place: str) -> None:
    """A filter such as that of git-crypt is set up by the repository, and nothing of it is run."""
    source, bare = repository(tmp_path / "source"), tmp_path / "copy.git"
    (source / "secrets.yaml").unlink()
    git(source, "config", "filter.crypt.clean", f"touch {tmp_path}/ran; tr a-z n-za-m")
    (source / place).parent.mkdir(exist_ok=True)
    (source / place).write_text("*.crypt filter=crypt\n")
    (source / "a.crypt").write_text("clear\n")
    commit(source)
    (tmp_path / "ran").unlink()
    (source / "a.crypt").write_text("clear and changed\n")
    (source / "new.crypt").write_text("clear and new\n")
    (found,) = snapshots(source, bare)
    assert not (tmp_path / "ran").exists()
    assert git(bare, "show", "_working:a.crypt").stdout == "pyrne\n"
    assert "new.crypt" not in found.files
    assert found.filtered == ("a.crypt", "new.crypt")
    assert b"clear and" not in all_objects(bare)


def test_secrets_that_are_committed_are_named(tmp_path: Path) -> None:
    source = new_repository(tmp_path / "source")
    commit(source, secrets__yaml="password: hunter2\n")
    (found,) = snapshots(source, tmp_path / "copy.git")
    assert found.tainted == ("main:secrets.yaml",)


def test_a_copy_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    source, bare = repository(tmp_path / "source"), tmp_path / "copy.git"
    first, second = snapshots(source, bare, lambda: shutil.rmtree(bare))
    assert set(first.files) == set(second.files)


def test_a_repository_that_is_gone_is_an_error_and_no_empty_copy(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    with pytest.raises(GitError):
        snapshots(source, tmp_path / "copy.git", lambda: shutil.rmtree(source / ".git"))


def test_a_folder_inside_a_repository_is_none_itself(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    with pytest.raises(GitError, match="not one itself"):
        snapshots(source / "deep", tmp_path / "copy.git")
