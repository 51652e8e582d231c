"""Whatever a repository names in its settings, nothing of it is run, and no other one is read."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.repositories import all_objects, commit, git, new_repository

from stackyard.base.errors import StackyardError
from stackyard.clients.git import GitError, find_repository, run
from stackyard.clients.git.history import Candidate
from stackyard.clients.git.mirror import Mirror
from stackyard.secrets.check.scan import check_repository

HOOKS = (
    *(
        "pre-commit",
        "post-checkout",
        "post-index-change",
        "pre-auto-gc",
        "post-rewrite",
        "reference-transaction",
    ),
    *("fsmonitor-watchman", "pre-receive", "update", "post-update", "post-merge", "proc-receive", "pre-push"),
)
# Settings that name a program; `RUN` stands for one that leaves a trace.
SETTINGS: dict[str, dict[str, str]] = {
    "a clean filter": {"filter.evil.clean": "RUN", "filter.evil.required": "true"},
    "a smudge filter": {"filter.evil.smudge": "RUN"},
    "a filter that stays": {"filter.evil.process": "RUN"},
    "a monitor of files": {"core.fsmonitor": "RUN"},
    "an external diff": {"diff.external": "RUN"},
    "a diff of its own": {"diff.evil.command": "RUN"},
    "a diff of texts": {"diff.evil.textconv": "RUN", "diff.evil.cachetextconv": "false"},
    "a merge of its own": {"merge.evil.driver": "RUN"},
    "a pager": {"core.pager": "RUN", "pager.diff": "RUN", "pager.ls-files": "RUN"},
    "an editor": {"core.editor": "RUN", "sequence.editor": "RUN"},
    "a helper for credentials": {"credential.helper": "!RUN", "core.askPass": "RUN"},
    "a program for SSH": {"core.sshCommand": "RUN", "core.gitProxy": "RUN"},
    "refs of alternates": {"core.alternateRefsCommand": "RUN"},
    "a program for packs": {"uploadpack.packObjectsHook": "RUN"},
    "a program for signatures": {"gpg.program": "RUN", "commit.gpgSign": "true", "log.showSignature": "true"},
    "other names of commands": {
        f"alias.{name}": "!RUN" for name in ("ls-files", "cat-file", "config", "diff")
    },
}


def base(tmp_path: Path) -> Path:
    source = new_repository(tmp_path / "source")
    (source / "inner").mkdir()
    (source / "inner" / "b.txt").write_text("b\n")
    commit(source, a__txt="a\n")
    (source / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (source / "a.txt").write_text("changed\n")
    (source / "new.txt").write_text("new\n")
    return source


def use_everything(source: Path, place: Path, *, is_refused: bool = False) -> None:
    """Do all that is ever done to a repository of somebody else."""

    async def sift(candidates: Sequence[Candidate], rules: Mapping[str, bytes]) -> list[bool]:
        del rules
        return [False] * len(candidates)

    async def mirrored() -> None:
        mirror = Mirror(source, place / "copy.git", sift)
        await mirror.refresh()
        (source / "new.txt").write_text("newer\n")
        found = await mirror.refresh()
        await mirror.advertise("version=2")
        await mirror.upload_pack(b"", "", lambda chunk: None)
        for file in found.files.values():
            await mirror.read_blob(file.blob, lambda chunk: None)

    async def looked_through() -> None:
        found = await find_repository(source)
        assert found is not None
        entries = [*await found.index(), *await found.list_staged()]
        await found.contents([one.blob for one in entries], largest_bytes=1000)
        await check_repository(source)
        await check_repository(source, is_staged_only=True)

    with contextlib.suppress(StackyardError) if is_refused else contextlib.nullcontext():
        asyncio.run(mirrored())
    with contextlib.suppress(StackyardError) if is_refused else contextlib.nullcontext():
        asyncio.run(looked_through())


def traps(tmp_path: Path) -> tuple[str, Callable[[], list[str]]]:
    """Return a command that leaves a trace, and what tells whether it did."""
    program, trace = tmp_path / "trap", tmp_path / "trace"
    program.write_text(f"#!/bin/sh\necho ran >> {trace}\ncat\n")
    program.chmod(0o755)
    return str(program), lambda: trace.read_text().split() if trace.exists() else []


@pytest.mark.parametrize("is_included", [False, True])
@pytest.mark.parametrize("kind", SETTINGS)
def test_no_program_of_the_settings_is_run(tmp_path: Path, kind: str, is_included: bool) -> None:
    source, (program, traces) = base(tmp_path), traps(tmp_path)
    place = tmp_path / "included" if is_included else source / ".git" / "config"
    for name, value in SETTINGS[kind].items():
        assert (
            git(source, "config", "--file", str(place), name, value.replace("RUN", program)).returncode == 0
        )
    if is_included:
        git(source, "config", "include.path", str(place))
    use_everything(source, tmp_path)
    assert traces() == []


@pytest.mark.parametrize("where", [".git/hooks", "own-hooks"])
def test_no_hook_is_run(tmp_path: Path, where: str) -> None:
    source, (program, traces) = base(tmp_path), traps(tmp_path)
    (source / where).mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy(program, source / where / name)
    if where != ".git/hooks":
        git(source, "config", "core.hooksPath", where)
    use_everything(source, tmp_path)
    assert traces() == []


def test_nothing_is_run_in_a_repository_inside(tmp_path: Path) -> None:
    source, (program, traces) = base(tmp_path), traps(tmp_path)
    for name in ("module", "untracked"):
        inner = new_repository(source / name)
        commit(inner, x__txt="x\n")
        for setting in ("core.fsmonitor", "filter.evil.clean"):
            git(inner, "config", setting, program)
        (inner / ".gitattributes").write_text("* filter=evil\n")
        (inner / "x.txt").write_text("changed\n")
    git(source, "-c", "advice.addEmbeddedRepo=false", "add", "module")
    git(source, "commit", "--quiet", "--message", "a module", "--", "module")
    use_everything(source, tmp_path)
    assert traces() == []


@pytest.mark.parametrize("protocol", ["ext", "ssh", "path"])
def test_an_object_that_is_missing_is_fetched_from_nowhere(tmp_path: Path, protocol: str) -> None:
    source, (program, traces) = base(tmp_path), traps(tmp_path)
    (source / ".gitattributes").unlink()
    urls = {"ext": f"ext::{program}", "ssh": "ssh://nowhere.invalid/x", "path": str(tmp_path / "elsewhere")}
    new_repository(tmp_path / "elsewhere")
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.url": urls[protocol],
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": program,
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
        "core.sshCommand": program,
    }
    for name, value in settings.items():
        assert git(source, "config", name, value).returncode == 0
    blob = git(source, "rev-parse", "HEAD:a.txt").stdout.strip()
    (source / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    use_everything(source, tmp_path, is_refused=True)
    assert traces() == []


# --- What is of another repository


def private(tmp_path: Path) -> Path:
    other = new_repository(tmp_path / "private")
    commit(other, plans__txt="private plans\n")
    return other


def borrow_objects(source: Path, other: Path) -> None:
    (source / ".git/objects/info").mkdir(exist_ok=True)
    (source / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
    head = git(other, "rev-parse", "HEAD").stdout.strip()
    (source / ".git/refs/heads/theirs").write_text(f"{head}\n")


def link_refs(source: Path, other: Path) -> None:
    (source / ".git/refs/heads/theirs").symlink_to(other / ".git/refs/heads/main")
    shutil.rmtree(source / ".git/objects")
    (source / ".git/objects").symlink_to(other / ".git/objects")


def link_packs(source: Path, other: Path) -> None:
    git(other, "repack", "-a", "-d", "--quiet")
    shutil.rmtree(source / ".git/objects/pack")
    (source / ".git/objects/pack").symlink_to(other / ".git/objects/pack")
    (source / ".git/refs/heads/theirs").write_text(git(other, "rev-parse", "HEAD").stdout)


def lead_elsewhere(source: Path, other: Path) -> None:
    shutil.rmtree(source / ".git")
    (source / ".git").write_text(f"gitdir: {other}/.git\n")


def link_elsewhere(source: Path, other: Path) -> None:
    shutil.rmtree(source / ".git")
    (source / ".git").symlink_to(other / ".git")


@pytest.mark.parametrize("take", [borrow_objects, link_refs, link_packs, lead_elsewhere, link_elsewhere])
def test_what_another_repository_holds_is_not_served(
    tmp_path: Path, take: Callable[[Path, Path], None]
) -> None:
    source = base(tmp_path)
    take(source, private(tmp_path))

    async def sift(candidates: Sequence[Candidate], rules: Mapping[str, bytes]) -> list[bool]:
        del rules
        return [False] * len(candidates)

    with pytest.raises(GitError):
        asyncio.run(Mirror(source, tmp_path / "copy.git", sift).refresh())
    bare = tmp_path / "copy.git"
    assert b"private plans" not in (all_objects(bare) if bare.exists() else b"")


def test_a_linked_working_tree_is_served(tmp_path: Path) -> None:
    source = base(tmp_path)
    linked = tmp_path / "linked"
    assert git(source, "worktree", "add", "--quiet", "-b", "side", str(linked)).returncode == 0
    use_everything(linked, tmp_path)
    assert git(tmp_path / "copy.git", "show", "_working:a.txt").stdout == "a\n"


def test_a_repository_of_somebody_else_is_read_only_where_git_is_told_to_trust_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = base(tmp_path)
    # git's own switch for its tests: the owner of everything is somebody else.
    monkeypatch.setitem(run._ALWAYS, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(GitError, match="dubious ownership"):
        use_everything(source, tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setitem(run._ALWAYS, "GIT_CONFIG_GLOBAL", str(home / "settings"))
    git(source, "config", "--file", str(home / "settings"), "safe.directory", str(source))
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", raising=False)
    asyncio.run(_opened(source))


async def _opened(source: Path) -> None:
    assert await find_repository(source) is not None


def test_git_is_started_in_one_place_alone() -> None:
    """What is switched off there is switched off everywhere."""
    source = Path(run.__file__).parents[1]
    starts = re.compile(r"[\[(]\s*\"git\"\s*,\s*(?!\"--version\")")
    found = [path for path in source.rglob("*.py") if starts.search(path.read_text())]
    # These list words, and start nothing.
    words = {"engine/tools/catalogue.py", "lab/params/firewall_formats.py", "lab/seeds/big.py"}
    assert {path.relative_to(source).as_posix() for path in found} - words == {"git/run.py"}
