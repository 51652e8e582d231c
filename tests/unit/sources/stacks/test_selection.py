"""What stacks are compared with, on branches and on the default branch, and what is not believed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.support.stacks import commit, git, make_repository, select, write

from stackyard.sources.stacks.changes import BaseNotFoundError
from stackyard.sources.stacks.repository import find_stacks
from stackyard.sources.stacks.selection import ReasonKind, select_known
from stackyard.sources.stacks.selection import select as select_with_base

FILES: dict[str, str | None] = {
    "stacks/a/main.tf": "locals { a = 1 }\n",
    "stacks/b/main.tf": 'locals { b = file("${path.module}/data.txt") }\n',
    "stacks/b/data.txt": "b\n",
}


def test_on_the_default_branch_each_stack_is_compared_with_what_was_applied(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    git(root, "checkout", "--quiet", "main")
    first = git(root, "rev-parse", "HEAD").strip()
    assert {one.reasons[0].kind for one in select(root).values()} == {ReasonKind.NEVER_APPLIED}
    write(root, {"stacks/a/main.tf": "locals {}\n"})
    second = commit(root)
    assert set(select(root, applied={"a": first, "b": first})) == {"a"}
    assert set(select(root, applied={"a": second, "b": first})) == set()
    write(root, {"stacks/b/data.txt": "not committed\n"})
    assert set(select(root, applied={"a": second, "b": second})) == {"b"}
    found = select(root, applied={"a": second, "b": "0" * 39 + "1", "gone": second})
    assert found["b"].reasons[0].kind is ReasonKind.UNRESOLVED
    assert found["gone"].stack is None
    assert set(found) == {"b", "gone"}


def test_a_stack_that_is_gone_since_it_was_applied_is_removed(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    git(root, "checkout", "--quiet", "main")
    first = git(root, "rev-parse", "HEAD").strip()
    write(root, {"stacks/a": None})
    commit(root)
    found = select(root, applied={"a": first, "b": first})
    assert {name: one.stack for name, one in found.items()} == {"a": None}
    assert found["a"].path == "stacks/a"


def test_what_cannot_be_compared_is_a_clear_error(tmp_path: Path) -> None:
    write(tmp_path / "plain", FILES)
    with pytest.raises(BaseNotFoundError, match="not a git repository"):
        select(tmp_path / "plain")
    write(tmp_path / "empty", FILES)
    git(tmp_path / "empty", "init", "--quiet", "--initial-branch", "main")
    with pytest.raises(BaseNotFoundError, match="no commit yet"):
        select(tmp_path / "empty")
    root = make_repository(tmp_path / "full", FILES)
    with pytest.raises(BaseNotFoundError, match="no commit `nowhere`"):
        select(root, base="nowhere")
    with pytest.raises(BaseNotFoundError, match="no commit `--output=x`"):
        select(root, base="--output=x")
    git(root, "branch", "--delete", "main")
    with pytest.raises(BaseNotFoundError, match="no default branch"):
        select(root)


def test_a_shallow_clone_without_the_base_is_a_clear_error(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "full", FILES)
    write(root, {"stacks/a/main.tf": "locals { feature = 1 }\n"})
    commit(root)
    git(root, "checkout", "--quiet", "main")
    write(root, {"stacks/a/main.tf": "locals { main = 1 }\n"})
    commit(root)
    options = ("--quiet", "--depth", "1", "--no-single-branch", "--branch", "feature")
    git(tmp_path, "clone", *options, f"file://{root}", "shallow")
    with pytest.raises(BaseNotFoundError, match="no commit in common"):
        select(tmp_path / "shallow")


def test_a_changed_default_selects_the_stacks_that_it_holds_for(tmp_path: Path) -> None:
    files = {**FILES, "stackyard.yaml": "defaults: {engine: tofu}\n", "stacks/b/stack.yaml": "engine: tofu\n"}
    root = make_repository(tmp_path, files)
    write(root, {"stackyard.yaml": "layers: [a, b]\ndefaults: {engine: tofu}\n"})
    assert set(select(root)) == set()
    write(root, {"stackyard.yaml": "defaults: {engine: terraform}\n"})
    assert set(select(root)) == {"a"}


def test_a_stack_that_no_root_holds_any_more_is_not_lost(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {**FILES, "stackyard.yaml": "roots: [live]\n", "live/x/main.tf": "\n"})
    write(root, {"live": None, "stackyard.yaml": "roots: [stacks]\n"})
    found = select(root)
    assert found["x"].stack is None


def test_unresolved_code_is_always_selected_with_its_line(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {**FILES, "stacks/c/main.tf": "locals { c = file(data.x.y.z) }\n"})
    [reason] = select(root)["c"].reasons
    expected = "cannot prove unchanged: stacks/c/main.tf:1 -> stacks/c (file(data.x.y.z))"
    assert str(reason) == expected


def test_filters_of_a_repository_do_not_run(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {**FILES, ".gitattributes": "* filter=evil\n"})
    mark = tmp_path / "ran"
    for kind in ("clean", "smudge", "process"):
        git(root, "config", f"filter.evil.{kind}", f"touch {mark}; cat")
    git(root, "config", "core.fsmonitor", f"touch {mark}")
    write(root, {"stacks/a/main.tf": "locals { changed = 1 }\n"})
    assert set(select(root)) == {"a"}
    assert not mark.exists()


def test_the_same_is_selected_without_git_as_with_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    write(root, {"stacks/b/data.txt": "c\n"})
    commit(root)
    asked = asyncio.run(select_with_base(find_stacks(root)))
    assert select_known(find_stacks(root)) == asked
    # An edit after it is seen; a new file of code, which only git can judge, is left to git.
    write(root, {"stacks/a/main.tf": "locals { a = 3 }\n"})
    known = select_known(find_stacks(root))
    assert known is not None
    assert [one.name for one in known.stacks] == ["a", "b"]
    write(root, {"stacks/a/new.tf": "\n"})
    assert select_known(find_stacks(root)) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": "1", "rows": {}}', b"\xff" * 100])
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage: bytes) -> None:
    root = make_repository(tmp_path, FILES)
    write(root, {"stacks/b/data.txt": "c\n"})
    expected = select(root)
    for path in (root / ".stackyard/cache").iterdir():
        path.write_bytes(damage)
    assert select(root) == expected


def test_a_cache_with_wrong_rows_is_not_believed(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    write(root, {"stacks/b/data.txt": "c\n"})
    expected = select(root)
    for path in (root / ".stackyard/cache").glob("*.json"):
        text = path.read_text()
        head = text.partition('"rows":')[0]
        rows = json.loads(text)["rows"]
        path.write_text(f'{head}"rows":{json.dumps({key: [1, {"x": 2}] for key in rows})}}}')
    assert select(root) == expected


def test_a_cache_that_was_committed_does_not_count(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    write(root, {"stacks/b/data.txt": "c\n"})
    select(root)
    commit(root)
    repository = find_stacks(root)
    assert repository.cache.reads.load() == {}
    assert set(select(root)) == {"b"}


def test_a_repository_below_the_top_of_git_reads_modules_above_it(tmp_path: Path) -> None:
    call = 'module "m" { source = "../../../modules/m" }\n'
    files = {
        "infra/stackyard.yaml": "layers: []\n",
        "infra/stacks/a/main.tf": call,
        "modules/m/main.tf": "\n",
    }
    root = make_repository(tmp_path, files)
    write(root, {"modules/m/main.tf": "locals {}\n"})
    [reason] = select(root / "infra")["a"].reasons
    assert reason.chain == ("modules/m/main.tf", "modules/m", "infra/stacks/a")


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_the_index_is_read(tmp_path: Path, version: str) -> None:
    root = make_repository(tmp_path, {**FILES, "x" * 200 + "/" + "y" * 200: "long\n"})
    git(root, "update-index", "--index-version", version)
    write(root, {"stacks/a/main.tf": "locals { n = 1 }\n"})
    assert set(select(root)) == {"a"}
    git(root, "add", "--all")
    assert set(select(root)) == {"a"}


def test_an_index_that_is_split_is_left_to_git(tmp_path: Path) -> None:
    root = make_repository(tmp_path, FILES)
    git(root, "update-index", "--split-index")
    write(root, {"stacks/a/main.tf": "locals { n = 1 }\n"})
    assert set(select(root)) == {"a"}
