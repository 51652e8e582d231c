"""What was found out about repositories is kept: nothing is checked twice, nothing unchecked is served."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.repositories import commit, git, new_repository

from stackyard.base import directories, events
from stackyard.clients.git.verdicts import Refusal, Verdicts
from stackyard.controller.refusals import RequestRefusedError
from stackyard.controller.repositories import stored_verdicts
from stackyard.controller.repositories.library import Library
from stackyard.controller.repositories.stored_verdicts import StoredVerdicts

_DASHES = "-" * 5
_NAME = "OPENSSH PRIVATE KEY"
KEY = f"{_DASHES}BEGIN {_NAME}{_DASHES}\n{'b3BlbnNz' * 8}\n{_DASHES}END {_NAME}{_DASHES}\n"
SIX = ("ansible", "bootstrap", "driver", "packer", "site-config", "tofu")


def make_repositories(
    folder: Path, names: tuple[str, ...] = SIX, *, commits: int = 3, files: int = 4
) -> Path:
    """Make repositories with some history, tags and work that is not committed."""
    for name in names:
        source = new_repository(folder / name)
        for number in range(commits):
            commit(source, **{f"file{one}__txt": f"{name} {number} {one}\n" for one in range(files)})
            git(source, "tag", "--annotate", "--message", f"version {number}", f"v{number}")
        (source / "new.txt").write_text("not committed\n")
    return folder


def start(folder: Path) -> tuple[list[events.Event], dict[str, bool]]:
    """Start with the repositories of a folder; return what was told, and which of them are served."""
    told: list[events.Event] = []

    async def run() -> dict[str, bool]:
        library = Library(folder, exclude=(), emit=told.append)
        try:
            await library.reload(required=True)
            served = {}
            for name in library.names:
                with contextlib.suppress(RequestRefusedError):
                    library.find(name).current()
                    served[name] = True
                served.setdefault(name, False)
            return served
        finally:
            await library.close()

    return told, asyncio.run(run())


def checked(told: list[events.Event]) -> set[str]:
    """Return the repositories of which something had to be checked."""
    steps = (event.step for event in told if isinstance(event, events.StepStarted))
    return {step.removeprefix("check-") for step in steps}


def test_the_second_start_checks_nothing_again(tmp_path: Path) -> None:
    folder = make_repositories(tmp_path / "repos")
    told, served = start(folder)
    assert checked(told) == set(SIX)
    assert served == dict.fromkeys(SIX, True)
    progress = [event for event in told if isinstance(event, events.StepProgressed)]
    assert {event.step for event in progress} == {f"check-{name}" for name in SIX}
    assert all(event.total is not None and event.done <= event.total for event in progress)
    again, served = start(folder)
    assert again == []
    assert served == dict.fromkeys(SIX, True)


def test_only_what_changed_since_is_checked(tmp_path: Path) -> None:
    names = ("ansible", "driver", "packer", "tofu")
    folder = make_repositories(tmp_path / "repos", names)
    start(folder)
    commit(folder / "packer", more__txt="more\n")
    (folder / "tofu" / "work.txt").write_text("uncommitted\n")
    commit(folder / "ansible", key=KEY)
    told, served = start(folder)
    assert checked(told) == {"packer", "tofu", "ansible"}
    assert served == {**dict.fromkeys(names, True), "ansible": False}
    # What was found tainted is known as well.
    told, served = start(folder)
    assert checked(told) == set()
    assert served["ansible"] is False


def test_a_secret_in_a_tag_or_a_commit_text_is_found_at_every_start(tmp_path: Path) -> None:
    folder = make_repositories(tmp_path / "repos", ("one", "two"))
    start(folder)
    git(folder / "one", "tag", "--annotate", "--message", KEY, "bad")
    git(folder / "two", "tag", "--annotate", "--message", "a tag of a tag", "nested", "v1")
    for _ in range(2):
        assert start(folder)[1] == {"one": False, "two": True}


def path_of(source: Path) -> Path:
    return StoredVerdicts(source)._path


def forge(source: Path, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put something there that says that all of a repository is clean, as somebody else could."""
    numbers = git(source, "rev-list", "--objects", "--all").stdout.split()
    lie = Verdicts(
        files={(frozenset(), ("key", number)): False for number in numbers},
        texts=dict.fromkeys(numbers, False),
        clean=frozenset(git(source, "rev-list", "--all").stdout.split()),
        clean_with=(frozenset(), ""),
    )
    if how == "other key":
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("XDG_DATA_HOME", str(tmp_path / "of-somebody-else"))
            theirs = StoredVerdicts(source)
            theirs.verdicts = lie
            theirs.save()
        return
    # With the right key, where the file itself is not to be trusted.
    ours = StoredVerdicts(source)
    ours.verdicts = lie
    ours.save()
    path = path_of(source)
    if how == "other repository":
        other = source.parent / "other"
        path.rename(path_of(other))
        source.rename(other)
    elif how == "readable by others":
        path.chmod(0o666)
    elif how == "a link":
        away = path.rename(tmp_path / "planted")
        path.symlink_to(away)
    elif how == "changed":
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    elif how == "other rules":
        monkeypatch.setattr(stored_verdicts, "_check_digest", lambda: "a later version")


@pytest.mark.parametrize(
    "how", ["other key", "other repository", "readable by others", "a link", "changed", "other rules"]
)
def test_what_somebody_else_could_have_written_counts_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    source = new_repository(tmp_path / "repos" / "one")
    commit(source, key=KEY)
    forge(source, how, monkeypatch, tmp_path)
    _, served = start(tmp_path / "repos")
    assert list(served.values()) == [False]


def test_files_and_key_are_for_the_owner_alone(tmp_path: Path) -> None:
    folder = make_repositories(tmp_path / "repos", ("one",))
    start(folder)
    key = directories.data_folder() / "checked-repositories.key"
    for path in (path_of(folder / "one"), key):
        assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o600, os.geteuid())
    # A key that others can read seals nothing.
    key.chmod(0o644)
    assert checked(start(folder)[0]) == {"one"}
    assert start(folder)[1] == {"one": True}


def test_history_behind_the_end_of_a_shallow_one_is_checked_when_it_comes(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "origin")
    commit(origin, key=KEY)
    git(origin, "rm", "--quiet", "key")
    commit(origin, clean__txt="nothing to hide\n")
    folder = tmp_path / "repos"
    folder.mkdir()
    git(folder, "clone", "--quiet", "--depth=1", f"file://{origin}", "one")
    assert start(folder)[1] == {"one": True}
    assert git(folder / "one", "fetch", "--quiet", "--unshallow").returncode == 0
    assert start(folder)[1] == {"one": False}


def test_a_repository_that_cannot_be_checked_is_named(tmp_path: Path) -> None:
    folder = make_repositories(tmp_path / "repos", ("one", "two"))
    blob = git(folder / "one", "rev-parse", "HEAD:file0.txt").stdout.strip()
    (folder / "one" / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (folder / "one" / "file0.txt").unlink()
    told, served = start(folder)
    assert served == {"one": False, "two": True}
    assert any("one is not served" in event.text for event in told if isinstance(event, events.LogLine))


@pytest.fixture
def git_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], list[str]]:
    """Return what tells how often git was started about a repository, and forgets it then."""
    real, log = shutil.which("git"), tmp_path / "git.log"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nprintf "%s: %s\\n" "$PWD" "$1" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")

    def take(source: Path) -> list[str]:
        lines = log.read_text().splitlines()
        log.write_text("")
        asked = (line.split(": ") for line in lines)
        return [verb for folder, verb in asked if Path(folder).name.split(".")[0] == source.name]

    return take


def test_a_repository_with_secrets_that_did_not_change_is_refused_without_looking_through_it(
    tmp_path: Path, git_runs: Callable[[Path], list[str]]
) -> None:
    folder = make_repositories(tmp_path / "repos", ("one", "two"))
    commit(folder / "one", key=KEY)
    first, _ = start(folder)
    assert len(git_runs(folder / "one")) > 10
    again, served = start(folder)
    assert served == {"one": False, "two": True}
    assert git_runs(folder / "one") == ["rev-parse", "show-ref"]
    assert not checked(again)
    # It is said as before, and looked at as soon as a ref leads elsewhere.
    assert [one for one in first if isinstance(one, events.LogLine)] == again
    git(folder / "one", "reset", "--quiet", "--hard", "HEAD~1")
    assert start(folder)[1] == {"one": True, "two": True}


def test_secrets_by_a_rule_that_is_not_committed_are_none_without_the_rule(tmp_path: Path) -> None:
    folder = make_repositories(tmp_path / "repos", ("one",))
    commit(folder / "one", vault__yaml="password: plain\n")
    rules = folder / "one" / ".sops.yaml"
    rules.write_text("creation_rules:\n  - path_regex: vault.*\n    age: age1none\n")
    for _ in range(2):
        told, served = start(folder)
        assert served == {"one": False}
        assert any("main:vault.yaml" in one.text for one in told if isinstance(one, events.LogLine))
    rules.unlink()
    assert start(folder)[1] == {"one": True}


def damage(source: Path) -> tuple[Path, bytes]:
    """Remove a content of an older commit; return its place and what was there."""
    blob = git(source, "rev-parse", "HEAD~1:file0.txt").stdout.strip()
    place = source / ".git" / "objects" / blob[:2] / blob[2:]
    stored = place.read_bytes()
    place.unlink()
    return place, stored


def test_a_damaged_repository_that_did_not_change_is_refused_without_reading_it(
    tmp_path: Path, git_runs: Callable[[Path], list[str]]
) -> None:
    folder = make_repositories(tmp_path / "repos", ("one", "two"))
    place, stored = damage(folder / "one")
    first, _ = start(folder)
    git_runs(folder / "one")
    again, served = start(folder)
    assert served == {"one": False, "two": True}
    assert git_runs(folder / "one") == ["rev-parse", "show-ref"]
    said = [one.text for one in again if isinstance(one, events.LogLine)]
    assert said
    assert said == [one.text for one in first if isinstance(one, events.LogLine)]
    # A restored object changes no ref.
    place.write_bytes(stored)
    assert start(folder)[1] == {"one": True, "two": True}


def test_a_damaged_repository_is_read_again_when_somebody_asks_for_it(tmp_path: Path) -> None:
    folder = make_repositories(tmp_path / "repos", ("one",))
    damage(folder / "one")
    start(folder)

    async def run() -> None:
        library = Library(folder, exclude=(), emit=events.ignore)
        try:
            await library.reload(required=True)
            one = library.find("one")
            staging = one.mirror.bare.with_name(f"{one.mirror.bare.name}.staging")
            assert not staging.exists()
            with pytest.raises(RequestRefusedError):
                await one.refresh()
            assert staging.exists()
        finally:
            await library.close()

    asyncio.run(run())


KILLED = """
import asyncio, sys
from pathlib import Path
from stackyard.base import events
from stackyard.controller.repositories.library import Library

def emit(event):
    if isinstance(event, events.StepProgressed):
        print("checking", flush=True)

async def main():
    library = Library(Path(sys.argv[1]), exclude=(), emit=emit)
    await library.reload(required=True)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_first_check_that_is_killed_leaves_nothing_that_is_served_unchecked(tmp_path: Path) -> None:
    folder = make_repositories(tmp_path / "repos", ("one",), commits=2, files=250)
    commit(folder / "one", key=KEY)
    src = Path(__file__).parents[3] / "src"
    command = [sys.executable, "-c", KILLED, str(folder)]
    for after in (1, 3):
        env = {**os.environ, "PYTHONPATH": str(src)}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as started:
            assert started.stdout is not None
            said = [started.stdout.readline() for _ in range(after)]
            started.send_signal(signal.SIGKILL)
        assert said[0] == "checking\n"
    _, served = start(folder)
    assert served == {"one": False}
    git(folder / "one", "reset", "--quiet", "--hard", "HEAD~1")
    git(folder / "one", "tag", "--delete", "v1")
    assert start(folder)[1] == {"one": True}
    assert checked(start(folder)[0]) == set()


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 100])
def test_what_cannot_be_read_is_nothing(data: bytes) -> None:
    assert Verdicts.load(data) == Verdicts()


def test_what_was_kept_comes_back_whatever_the_names(tmp_path: Path) -> None:
    del tmp_path
    rules = frozenset({("deep/.sops.yaml", "1" * 40)})
    known = Verdicts(
        files={(rules, ("a\udcff b", "2" * 40)): True, (frozenset(), ("ä", "3" * 40)): False},
        texts={"4" * 40: False},
        rules_at={"5" * 40: rules},
        clean=frozenset({"5" * 40}),
        clean_with=(rules, "end"),
        refusal=Refusal(state="state", tainted=("main:a", "b"), rules=rules, damage="The object is missing."),
    )
    assert Verdicts.load(known.dump()) == known
