"""`stackyard state move` and `state backend` with real engines: what was moved plans no change."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import stackyard
from tests.support.engine import engine
from tests.support.seaweed import BUCKET, Seaweed, new_prefix, seaweed
from tests.support.state_documents import state_document
from tests.support.state_places import running_daemon
from tests.support.state_store import NAME, Filled, contents, filled

from stackyard.engine.version import Engine

__all__ = ["engine", "filled", "seaweed"]

ROOT = """
resource "terraform_data" "kept" {
  input = "one"
}
output "kept" {
  value = terraform_data.kept.output
}
"""


class Project:
    """A folder with a configuration, in which an engine runs."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.environment: dict[str, str] = {}
        folder.mkdir()
        (folder / "main.tf").write_text(ROOT)

    def run(self, *arguments: str, status: int = 0) -> str:
        done = subprocess.run(
            [str(self.engine.path), *arguments],
            cwd=self.folder,
            env={**os.environ, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def use_backend(self, kind: str, text: str = "") -> None:
        (self.folder / "backend.tf").write_text(f'terraform {{\n  backend "{kind}" {{\n{text}  }}\n}}\n')
        self.run("init", "-input=false", "-no-color", "-reconfigure")

    def has_no_changes(self) -> bool:
        return "No changes" in self.run("plan", "-no-color", "-input=false")


@pytest.fixture
def project(engine: Engine, tmp_path: Path) -> Project:
    """Give a project that was applied with the local backend."""
    made = Project(engine, tmp_path / "project")
    made.run("init", "-input=false")
    made.run("apply", "-auto-approve", "-no-color")
    return made


def move(
    source: str, destination: str, *options: str, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    ended = stackyard("state", "move", source, destination, *options, "--json", env=dict(env or {}))
    assert ended.status == 0, ended.stdout + ended.stderr
    [moved] = ended.document["moved"]
    assert isinstance(moved, dict)
    return moved


def test_from_the_local_backend_to_a_daemon_plans_no_change(project: Project, tmp_path: Path) -> None:
    local = project.folder / "terraform.tfstate"
    serial = json.loads(local.read_bytes())["serial"]
    with running_daemon(tmp_path / "served") as running:
        address = f"{running.url}/states/prod/network"
        login = {"TF_HTTP_USERNAME": running.username, "TF_HTTP_PASSWORD": running.password}
        moved = move(str(local), address, env=login)
        assert (moved["serial"], moved["was_written"]) == (serial, True)
        # Whoever goes on with the old backend is stopped, and does not create everything again.
        assert "version" in project.run("plan", "-no-color", status=1)
        local.unlink()
        addresses = ("TF_HTTP_ADDRESS", "TF_HTTP_LOCK_ADDRESS", "TF_HTTP_UNLOCK_ADDRESS")
        project.environment = {**login, **dict.fromkeys(addresses, address)}
        project.use_backend("http")
        assert project.has_no_changes()
        project.run("apply", "-auto-approve", "-replace=terraform_data.kept")
        back = move(address, str(tmp_path / "back.tfstate"), env=project.environment)
        assert back["serial"] > serial
        assert back["source_outcome"] is None
    assert json.loads((tmp_path / "back.tfstate").read_bytes())["serial"] == back["serial"]


def test_a_local_state_that_an_engine_has_locked_is_not_moved(project: Project, tmp_path: Path) -> None:
    (project.folder / "slow.tf").write_text(
        'resource "terraform_data" "slow" {\n  provisioner "local-exec" {\n'
        '    command = "touch begun; while [ ! -e go ]; do sleep 0.1; done"\n  }\n}\n'
    )
    arguments = [str(project.engine.path), "apply", "-auto-approve", "-no-color"]
    with subprocess.Popen(arguments, cwd=project.folder, stdout=subprocess.PIPE) as applying:
        assert applying.stdout is not None
        for line in applying.stdout:
            if b"Provisioning with" in line:
                break
        ended = stackyard(
            *("state", "move", str(project.folder / "terraform.tfstate"), "state:a"),
            *("--data", str(tmp_path / "store"), "--json"),
        )
        (project.folder / "go").touch()
        applying.stdout.read()
    assert (ended.status, ended.document["error"]["code"]) == (75, "E-STATE-MOVE-LOCKED")
    assert "OperationTypeApply" in ended.document["error"]["detail"]
    assert project.has_no_changes()


def test_to_the_engines_own_s3_backend_and_back_plans_no_change(
    project: Project, seaweed: Seaweed, tmp_path: Path
) -> None:
    local, key = project.folder / "terraform.tfstate", f"{new_prefix()}/terraform.tfstate"
    place = f"s3://{BUCKET}/{key}?endpoint={seaweed.endpoint}"
    move(str(local), place)
    local.unlink()
    options = ("--bucket", BUCKET, "--key", key, "--endpoint", seaweed.endpoint)
    file = project.folder / "backend.tf"
    ended = stackyard("state", "backend", "render", *options, "--output", str(file), "--json")
    assert ended.document["settings"]["use_lockfile"] is True
    project.run("init", "-input=false", "-no-color")
    assert project.has_no_changes()
    project.run("apply", "-auto-approve", "-replace=terraform_data.kept")
    moved = move(place, "state:prod/network", "--data", str(tmp_path / "store"))
    assert "moved-" in moved["source_outcome"]
    # The object is no state any more, and not missing either.
    assert "version" in project.run("plan", "-no-color", status=1)


def test_what_an_engine_has_locked_in_a_bucket_is_not_moved(
    project: Project, seaweed: Seaweed, tmp_path: Path
) -> None:
    key = f"{new_prefix()}/terraform.tfstate"
    options = ("--bucket", BUCKET, "--key", key, "--endpoint", seaweed.endpoint)
    (project.folder / "terraform.tfstate").unlink()
    stackyard("state", "backend", "render", *options, "--output", str(project.folder / "backend.tf.json"))
    project.run("init", "-input=false", "-no-color")
    (project.folder / "slow.tf").write_text(
        'resource "terraform_data" "slow" {\n  provisioner "local-exec" {\n'
        '    command = "while [ ! -e go ]; do sleep 0.1; done"\n  }\n}\n'
    )
    project.run("apply", "-auto-approve", "-target=terraform_data.kept")
    arguments = [str(project.engine.path), "apply", "-auto-approve", "-no-color"]
    with subprocess.Popen(arguments, cwd=project.folder, stdout=subprocess.PIPE) as applying:
        assert applying.stdout is not None
        for line in applying.stdout:
            if b"Provisioning with" in line:
                break
        ended = stackyard(
            *("state", "move", f"s3://{BUCKET}/{key}?endpoint={seaweed.endpoint}", "state:a"),
            *("--data", str(tmp_path / "store"), "--json"),
        )
        (project.folder / "go").touch()
        applying.stdout.read()
    assert (ended.status, ended.document["error"]["code"]) == (75, "E-STATE-MOVE-LOCKED")
    assert project.has_no_changes()


def test_dropping_the_table_is_a_step_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "backend.tf"
    options = ("--bucket", "b", "--key", "k/terraform.tfstate", "--dynamodb-table", "locks")
    stackyard("state", "backend", "render", *options, "--output", str(file))
    assert "dynamodb_table" in file.read_text()
    assert stackyard("state", "backend", "drop-dynamodb", str(file), "--json").status == 0
    assert "dynamodb" not in file.read_text()
    assert "use_lockfile" in file.read_text()
    again = stackyard("state", "backend", "drop-dynamodb", str(file), "--json")
    assert (again.status, again.document["error"]["code"]) == (65, "E-STATE-BACKEND")


def test_a_whole_store_moves_to_a_bucket(filled: Filled, seaweed: Seaweed) -> None:
    filled.write(state_document(4), "env/prod/pve1")
    filled.write(state_document(9), "shared")
    target = ("--to-store", seaweed.address(new_prefix()))
    ended = filled.run("move", "state:env/", "state:home/", *target, "--json")
    assert [one["serial"] for one in ended.document["moved"]] == [3, 4]
    listed = stackyard("state", "list", "--store", target[1], "--json").document["states"]
    assert [(one["name"], one["serial"]) for one in listed] == [("home/dev/pve1", 3), ("home/prod/pve1", 4)]
    [left] = filled.run("list", "--json").document["states"]
    assert left["name"] == "shared"
    assert "moved" in ended.stdout
    assert filled.run("move", "state:env/", "state:home/", *target, "--json").document == {"moved": []}
    gone = filled.run("list", "env", "--deleted", "--json").document["states"]
    assert "s3://" in gone[0]["deleted"]


def test_a_state_moves_within_its_store(filled: Filled) -> None:
    [moved] = filled.run("move", f"state:{NAME}", "state:renamed", "--json").document["moved"]
    assert moved["serial"] == 3
    names = [one["name"] for one in filled.run("list", "--json").document["states"]]
    assert names == ["renamed"]
    assert filled.run("move", "state:renamed", "state:renamed", "--json").status == 64


@pytest.mark.parametrize(
    ("source", "destination", "status", "code"),
    [
        (f"state:{NAME}", "state:env/", 64, "E-USAGE"),
        ("nonsense", "state:a", 64, "E-USAGE"),
        ("state:typo", "./here.tfstate", 65, "E-STATE-MOVE-EMPTY"),
        ("./missing.tfstate", "state:a", 65, "E-STATE-MOVE-EMPTY"),
        (f"state:{NAME}", "./missing/folder.tfstate", 65, "E-FILE"),
        (f"state:{NAME}", "http://127.0.0.1:1/x", 69, "E-STATE-MOVE-PLACE"),
        (f"state:{NAME}", "http://me:secret@127.0.0.1:1/x", 64, "E-USAGE"),
        (f"state:{NAME}", "s3://bucket", 64, "E-USAGE"),
    ],
)
def test_a_move_that_cannot_be_says_why_and_leaves_the_state(
    filled: Filled, source: str, destination: str, status: int, code: str
) -> None:
    ended = filled.run("move", source, destination, "--json", "--chdir", str(filled.folder))
    assert (ended.status, ended.document["error"]["code"]) == (status, code)
    assert "secret" not in ended.stdout
    listed = filled.run("list", "--json").document["states"]
    assert [(one["name"], one["lock_id"]) for one in listed] == [(NAME, None)]
    assert not (filled.folder / "here.tfstate").exists()


def test_a_foreign_file_is_no_state(filled: Filled, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a state")
    ended = filled.run("move", str(tmp_path / "notes.txt"), "state:a", "--json")
    assert (ended.status, ended.document["error"]["code"]) == (65, "E-STATE-BODY")
    assert (tmp_path / "notes.txt").read_text() == "not a state"


def test_a_newer_destination_is_refused_with_both_serials(filled: Filled, tmp_path: Path) -> None:
    (tmp_path / "old.tfstate").write_bytes(contents(2, 2))
    ended = filled.run("move", str(tmp_path / "old.tfstate"), f"state:{NAME}", "--json")
    assert (ended.status, ended.document["error"]["code"]) == (1, "E-STATE-MOVE")
    assert "serial 3" in ended.document["error"]["detail"]
    assert "serial 2" in ended.document["error"]["detail"]
