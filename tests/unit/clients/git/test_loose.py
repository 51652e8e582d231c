"""Loose objects come over in one pack, and only those that are what their number says."""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.repositories import commit, git, new_repository

from stackyard.clients.git import GitError
from stackyard.clients.git.history import Candidate
from stackyard.clients.git.loose import make_pack
from stackyard.clients.git.mirror import Mirror


async def nothing_is_secret(candidates: Sequence[Candidate], rules: Mapping[str, bytes]) -> list[bool]:
    del rules
    return [False] * len(candidates)


def loose(source: Path) -> set[str]:
    objects = source / ".git" / "objects"
    return {
        folder.name + file.name
        for folder in objects.iterdir()
        if len(folder.name) == 2
        for file in folder.iterdir()
    }


def numbers_of(repository: Path) -> set[str]:
    listed = git(repository, "rev-list", "--objects", "--no-object-names", "main", "v1").stdout
    return set(listed.split())


def make_source(folder: Path, object_format: str = "sha1") -> Path:
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main", f"--object-format={object_format}")
    for number in range(3):
        commit(folder, **{f"file{one}__txt": f"{number} {one}\n" * 40 for one in range(20)})
    (folder / "large.bin").write_bytes(os.urandom(200_000))
    (folder / "zeros.txt").write_text("0" * 3_000_000)
    commit(folder, empty__txt="")
    git(folder, "tag", "--annotate", "--message", "a tag", "v1")
    return folder


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_git_reads_the_pack_and_finds_each_object_in_it(tmp_path: Path, object_format: str) -> None:
    source = make_source(tmp_path / "source", object_format)
    numbers = loose(source)
    content, packed = make_pack(source / ".git" / "objects", sorted(numbers), object_format)
    # All but the two that are large, as stored or as they are.
    assert len(numbers - packed) == 2
    target = tmp_path / "target"
    target.mkdir()
    git(target, "init", "--quiet", "--bare", f"--object-format={object_format}")
    pack = target / "objects" / "pack" / "pack-1.pack"
    pack.write_bytes(content)
    assert git(target, "index-pack", str(pack)).returncode == 0
    listed = git(target, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").stdout.split()
    assert set(listed) == packed


def test_a_mirror_of_many_loose_objects_has_all_of_them_in_few_files(tmp_path: Path) -> None:
    source = make_source(tmp_path / "source")
    bare = tmp_path / "copy.git"

    async def run() -> None:
        mirror = Mirror(source, bare, nothing_is_secret)
        await mirror.refresh()
        staging = tmp_path / "copy.git.staging" / "objects"
        assert len([one for one in staging.rglob("*") if one.is_file()]) < 10
        # What comes later comes too, and nothing that is there a second time.
        commit(source, **{f"more{one}__txt": f"{one}\n" for one in range(40)})
        await mirror.refresh()
        assert len(list((staging / "pack").glob("*.pack"))) == 2

    asyncio.run(run())
    assert git(bare, "fsck", "--strict").returncode == 0
    assert numbers_of(bare) == numbers_of(source)


@pytest.mark.parametrize("how", ["garbage", "empty", "another", "cut", "link"])
def test_an_object_that_is_not_what_its_number_says_is_not_packed(tmp_path: Path, how: str) -> None:
    source = make_source(tmp_path / "source")
    number = git(source, "rev-parse", "HEAD~1:file3.txt").stdout.strip()
    place = source / ".git" / "objects" / number[:2] / number[2:]
    stored = place.read_bytes()
    place.unlink()
    if how == "link":
        other = tmp_path / "elsewhere"
        other.write_bytes(stored)
        place.symlink_to(other)
    else:
        wrong = {
            "garbage": b"garbage",
            "empty": b"",
            "cut": stored[:-8],
            "another": zlib.compress(b"blob 3\0abc"),
        }
        place.write_bytes(wrong[how])
    numbers = loose(source)
    _, packed = make_pack(source / ".git" / "objects", sorted(numbers), "sha1")
    assert number not in packed
    if how != "link":
        mirror = Mirror(source, tmp_path / "copy.git", nothing_is_secret)
        with pytest.raises(GitError):
            asyncio.run(mirror.refresh())
        copy = tmp_path / "copy.git"
        assert not copy.exists() or not git(copy, "for-each-ref").stdout


def test_an_empty_repository_has_nothing_to_pack(tmp_path: Path) -> None:
    source = new_repository(tmp_path / "source")
    assert make_pack(source / ".git" / "objects", [], "sha1")[1] == set()
