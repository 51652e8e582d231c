"""One stack of a user's own code: planned, guarded, applied, bound and recorded as every target is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.stack_repo import StackRepo, make_repo

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

_MAIN = """
    variable "greeting" { type = string }
    resource "terraform_data" "x" { input = var.greeting }
    resource "terraform_data" "y" { input = file("${path.module}/motd.txt") }
    output "said" { value = terraform_data.x.output }
"""
_OURS = 'terraform {\n  backend "http" {}\n}\n'


def _repo(folder: Path, *, backend: str = _OURS) -> StackRepo:
    files = {
        "stacks/onprem/a/main.tf": _MAIN,
        "stacks/onprem/a/vms.tfvars": 'greeting = "hello"\n',
        "stacks/onprem/a/motd.txt": "welcome\n",
    }
    if backend:
        files["stacks/onprem/a/backend.tf"] = backend
    return make_repo(folder, files)


def test_a_stack_is_planned_applied_and_destroyed_with_each_resource_by_name(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    assert repo.actions("stack:onprem/a") == {"terraform_data.x": "create", "terraform_data.y": "create"}
    applied = repo.json("apply", "stack:onprem/a")
    assert applied["applied"] == {"add": 2, "change": 0, "remove": 0}
    assert repo.json("output", "stack:onprem/a")["outputs"]["said"]["value"] == "hello"
    assert repo.run("output", "stack:onprem/a", "--raw", "said").stdout == "hello"
    assert repo.actions("stack:onprem/a") == {}
    # Nothing of ours is left beside the code.
    assert sorted(path.name for path in (repo.root / "stacks/onprem/a").iterdir()) == [
        "backend.tf",
        "main.tf",
        "motd.txt",
        "vms.tfvars",
    ]
    refused = repo.json("destroy", "stack:onprem/a", status=1)["error"]
    assert refused["code"] == "E-GUARD-REFUSED"
    assert "terraform_data.x" in json.dumps(refused)
    repo.run("destroy", "stack:onprem/a", "--allow-destroy", "terraform_data.x", status=1)
    gone = repo.json("destroy", "stack:onprem/a", "--allow-destroy", "terraform_data.x,terraform_data.y")
    assert gone["applied"]["remove"] == 2
    runs = repo.json("runs", "list")["runs"]
    assert {(run["verb"], run["target"]) for run in runs} >= {
        ("apply", "stack:onprem/a"),
        ("destroy", "stack:onprem/a"),
        ("plan", "stack:onprem/a"),
    }


def test_a_value_that_is_passed_on_wins_over_that_of_a_file_when_the_plan_is_applied(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    repo.run("apply", "stack:onprem/a", "--", "-var=greeting=good day")
    assert repo.run("output", "stack:onprem/a", "--raw", "said").stdout == "good day"
    repo.run("plan", "stack:onprem/a", "--out", "plan.bin", "--", "-var=greeting=good night")
    repo.run("apply", "stack:onprem/a", "--plan", "plan.bin")
    assert repo.run("output", "stack:onprem/a", "--raw", "said").stdout == "good night"


@pytest.mark.parametrize(
    "backend",
    [
        _OURS,
        pytest.param("", marks=pytest.mark.soak),
        'terraform {\n  backend "local" { path = "own.tfstate" }\n}\n',
    ],
)
def test_a_saved_plan_is_applied_only_while_all_that_it_read_is_the_same(
    tmp_path: Path, backend: str
) -> None:
    repo = _repo(tmp_path, backend=backend)
    repo.run("plan", "stack:onprem/a", "--out", "plan.bin")
    repo.write({"stacks/onprem/a/motd.txt": "something else\n"})
    repo.commit()
    moved = repo.json("apply", "stack:onprem/a", "--plan", "plan.bin", status=65)["error"]
    assert moved["code"] == "E-PLAN-MOVED"
    assert "the input was" in moved["detail"]
    repo.run("plan", "stack:onprem/a", "--out", "plan.bin")
    assert repo.json("apply", "stack:onprem/a", "--plan", "plan.bin")["applied"]["add"] == 2
    again = repo.json("apply", "stack:onprem/a", "--plan", "plan.bin", status=65)["error"]
    assert "the state was" in again["detail"]


def test_files_that_are_not_committed_are_planned_and_not_applied(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    repo.write({"stacks/onprem/a/vms.tfvars": 'greeting = "changed"\n'})
    assert len(repo.actions("stack:onprem/a")) == 2
    dirty = repo.json("apply", "stack:onprem/a", status=65)["error"]
    assert dirty["code"] == "E-STACK-DIRTY"
    assert "stacks/onprem/a/vms.tfvars" in dirty["detail"]
    repo.run("apply", "stack:onprem/a", "--allow-dirty")
    # A file that the stack does not read is no reason.
    repo.commit()
    repo.write({"README.md": "text\n"})
    repo.run("apply", "stack:onprem/a")


@pytest.mark.parametrize(
    "word",
    [
        "-lock=false",
        "-state=x",
        "-state-out=x",
        "-backup=x",
        "-out=x",
        "-auto-approve",
        "-destroy",
        "-chdir=x",
        "--lock=false",
        "-json",
    ],
)
def test_arguments_that_get_round_lock_store_or_guard_are_refused_by_name(tmp_path: Path, word: str) -> None:
    repo = _repo(tmp_path)
    error = repo.json("plan", "stack:onprem/a", "--", word, status=64)["error"]
    assert error["code"] == "E-STACK-ARGUMENT"
    assert word.lstrip("-").partition("=")[0] in error["detail"]


def test_targets_and_a_missing_refresh_are_shown_in_the_plan_and_the_record(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    planned = repo.json("plan", "stack:onprem/a", "--", "-target=terraform_data.x", "-refresh=false")
    assert [change["address"] for change in planned["changes"]] == ["terraform_data.x"]
    assert len(planned["notes"]) == 2
    assert "-target=terraform_data.x" in repo.run("runs", "list").stdout
    repo.run("apply", "stack:onprem/a", "--", "-target", "terraform_data.x")
    assert repo.actions("stack:onprem/a") == {"terraform_data.y": "create"}


def test_each_workspace_has_a_state_of_its_own(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    repo.run("apply", "stack:onprem/a@blue")
    assert len(repo.actions("stack:onprem/a")) == 2
    assert repo.actions("stack:onprem/a@blue") == {}
    repo.write({"stacks/onprem/a/ws.tf": 'output "ws" { value = terraform.workspace }\n'})
    error = repo.json("plan", "stack:onprem/a@blue", status=65)["error"]
    assert error["code"] == "E-STACK-WORKSPACE"
    assert error["where"]["file"].endswith("ws.tf")


def test_code_that_declares_nothing_never_destroys_what_there_is(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    repo.run("apply", "stack:onprem/a")
    repo.write({"stacks/onprem/a/main.tf": "# emptied by accident\n"})
    (repo.root / "stacks/onprem/a/vms.tfvars").unlink()
    assert repo.json("plan", "stack:onprem/a", status=65)["error"]["code"] == "E-INPUT-EMPTY"


def test_a_resource_is_imported_at_the_address_of_its_block(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    repo.run("import", "stack:onprem/a", "terraform_data.x", "some-id")
    assert set(repo.actions("stack:onprem/a")) == {"terraform_data.x", "terraform_data.y"}
    assert repo.actions("stack:onprem/a")["terraform_data.x"] != "create"


def test_broken_code_is_reported_with_its_file_and_line(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    repo.write({"stacks/onprem/a/main.tf": 'resource "terraform_data" "x" {\n  input = \n}\n'})
    ended = repo.run("plan", "stack:onprem/a", status=None)
    assert ended.status != 0
    assert "main.tf:2" in ended.stderr


def test_a_stack_with_the_state_of_another_one_is_not_worked_on(tmp_path: Path) -> None:
    shared = 'terraform {\n  backend "local" { path = "../shared.tfstate" }\n}\n'
    repo = make_repo(
        tmp_path, {"stacks/a/main.tf": shared, "stacks/b/main.tf": shared, "stacks/c/main.tf": _OURS}
    )
    for verb in ("plan", "apply", "destroy"):
        refused = repo.json(verb, "stack:b", status=65)["error"]
        (finding,) = refused["diagnostics"]
        assert finding["code"] == "E-STACK-SHARED-STATE"
        assert "`a` (stacks/a/main.tf:2) and `b` (stacks/b/main.tf:2)" in finding["detail"]
    repo.run("plan", "stack:c")


@pytest.mark.parametrize("workspace", ["", "../../x", "a b", "-x"])
def test_a_workspace_whose_name_is_no_name_is_refused(tmp_path: Path, workspace: str) -> None:
    repo = _repo(tmp_path, backend="")
    assert repo.json("plan", f"stack:onprem/a@{workspace}", status=64)["error"]["code"] == "E-USAGE"


def test_a_store_that_is_part_of_the_repository_is_not_used(tmp_path: Path) -> None:
    repo = _repo(tmp_path / "repo")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (repo.root / ".stackyard").symlink_to(elsewhere)
    repo.git("add", "-f", ".stackyard")
    repo.commit()
    refused = repo.json("apply", "stack:onprem/a", status=65)["error"]
    assert refused["code"] == "E-STACK-STORE-COMMITTED"
    repo.run("stack", "list")
    assert not list(elsewhere.iterdir())
