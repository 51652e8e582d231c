"""Changes of a stack's state: proposed on a copy, approved by a second person, made once, with a way back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Ended
from tests.support.seaweed import ACCESS_KEY, BUCKET, SECRET_KEY, Seaweed, new_prefix, seaweed
from tests.support.stack_repo import StackRepo, make_repo

from stackyard.path.stacks.source import make_target
from stackyard.path.stacks.state_change.approval import approve
from stackyard.path.stacks.state_change.records import ChangeRecords
from stackyard.sources.stacks.repository import find_stacks
from stackyard.sources.stacks.store import store_of
from stackyard.state import StateService
from stackyard.state.inside import read_view

__all__ = ["seaweed"]

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

TARGET = "stack:onprem/a"
FOLDER = "stacks/onprem/a"
SECRET = "correct-horse-battery"
_MAIN = """
    variable "password" {
      type      = string
      sensitive = true
    }
    resource "terraform_data" "x" { input = "hello" }
    resource "terraform_data" "k" {
      for_each = toset(["plain", "with \\"quotes\\" and spaces"])
      input    = each.key
    }
    resource "terraform_data" "hidden" { input = var.password }
    module "m" {
      source = "./m"
    }
    output "said" { value = terraform_data.x.output }
"""
_MODULE = 'resource "terraform_data" "in" { input = 1 }\n'
_STORE = 'terraform {\n  backend "http" {}\n}\n'


def _repo(folder: Path, backend: str = _STORE, **env: str) -> StackRepo:
    files = {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/m/main.tf": _MODULE}
    if backend:
        files[f"{FOLDER}/backend.tf"] = backend
    repo = make_repo(folder, files, env={"TF_VAR_password": SECRET, **env})
    repo.run("apply", TARGET, "--yes")
    return repo


def _as(repo: StackRepo, user: str, *words: str, status: int | None = 0) -> Ended:
    """Run a command by the same user, who says to be another one."""
    return StackRepo(root=repo.root, env={**repo.env, "LOGNAME": user, "USER": user}).run(
        *words, status=status
    )


def _approve_by(repo: StackRepo, person: str, which: str) -> None:
    """Approve a change as a user of another machine that uses the same store."""
    with _records(repo) as records:
        records.put(approve(records.find(which), person, is_alone=False, is_protected=True))


def _share(repo: StackRepo) -> None:
    """Give the repository a remote that has its default branch."""
    remote = repo.root.parent / f"{repo.root.name}.git"
    repo.git("init", "-q", "--bare", str(remote))
    repo.git("remote", "add", "origin", str(remote))
    repo.git("push", "-q", "origin", "main")


def _change(repo: StackRepo, verb: str, *words: str) -> dict[str, Any]:
    return repo.json("stack", "state", verb, TARGET, *words)


def _edit(repo: StackRepo, before: str, after: str) -> None:
    path = repo.root / FOLDER / "main.tf"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def _addresses(repo: StackRepo) -> set[str]:
    """Return what the state has, in the file beside the code or in the store."""
    path = repo.root / FOLDER / "terraform.tfstate"
    if path.exists():
        return set(read_view(path.read_bytes()).instances)
    with contextlib.closing(store_of(find_stacks(repo.root)).open()) as objects:
        content = StateService(objects).contents.read(make_target("onprem/a").state_name)
    assert content is not None
    return set(read_view(content.body.data).instances)


@contextlib.contextmanager
def _records(repo: StackRepo) -> Iterator[ChangeRecords]:
    store = store_of(find_stacks(repo.root))
    with contextlib.closing(store.open()) as objects:
        yield ChangeRecords(store, objects)


def test_a_move_is_proposed_approved_by_a_second_person_made_once_and_taken_back(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    _edit(repo, 'terraform_data" "x"', 'terraform_data" "y"')
    _edit(repo, "terraform_data.x.output", "terraform_data.y.output")
    made = _change(repo, "mv", "terraform_data.x", "terraform_data.y")
    which = made["id"]
    assert made["moved"] == [{"from": "terraform_data.x", "to": "terraform_data.y"}]
    assert made["plan"]["changes"] == []
    assert made["status"] == "proposed"
    assert "terraform_data.x" in _addresses(repo)

    alone = repo.run("stack", "state", "approve", which, status=1)
    assert "E-STATE-CHANGE-SAME-PERSON" in alone.stderr
    early = repo.run("stack", "state", "apply", which, status=1)
    assert "E-STATE-CHANGE-NOT-APPROVED" in early.stderr
    # Whoever says to be another one is the same user.
    renamed = _as(repo, "bob", "stack", "state", "approve", which, status=1)
    assert "E-STATE-CHANGE-SAME-PERSON" in renamed.stderr
    _approve_by(repo, "bob@desk", which)
    done = repo.json("stack", "state", "apply", which)
    assert (done["was_done"], done["is_as_reviewed"], done["kept"]) == (False, True, "1")
    assert done["approval"]["by"].startswith("bob@")

    # Killed between the write and its record: the same command finds that it is done.
    with _records(repo) as records:
        records.put(replace(records.find(which), applied_at="", applied_by=""))
    again = repo.json("stack", "state", "apply", which)
    assert (again["was_done"], again["status"]) == (True, "applied")
    verbs = [run["verb"] for run in repo.json("runs", "list")["runs"]]
    assert verbs == ["state", "state", "propose", "apply"]

    back = _change(repo, "rollback", "1")
    assert {change["address"] for change in back["plan"]["changes"]} == {
        "terraform_data.x",
        "terraform_data.y",
    }
    repo.run("stack", "state", "approve", back["id"], "--alone")
    # The plan differs from none: the code has the new name, and the document says so.
    assert repo.json("stack", "state", "apply", back["id"])["is_as_reviewed"]
    assert "terraform_data.x" in _addresses(repo)
    # The first change is of a state that has gone on since.
    late = repo.run("stack", "state", "apply", which, status=65)
    assert "E-STATE-CHANGE-STALE" in late.stderr


def test_a_local_state_is_changed_whole_and_a_kept_copy_brings_it_back(tmp_path: Path) -> None:
    repo = _repo(tmp_path, backend="")
    path = repo.root / FOLDER / "terraform.tfstate"
    before = path.read_bytes()
    quoted = 'terraform_data.k["with \\"quotes\\" and spaces"]'
    made = _change(repo, "rm", quoted, "module.m")
    assert made["removed"] == ["module.m.terraform_data.in", quoted]
    assert {one["action"] for one in made["plan"]["changes"]} == {"create"}
    text = repo.run("stack", "state", "show", made["id"]).stdout
    assert "nothing manages them any more" in text
    assert path.read_bytes() == before

    repo.run("stack", "state", "approve", made["id"], "--alone")
    done = repo.json("stack", "state", "apply", made["id"])
    state = json.loads(path.read_text())
    assert state["serial"] == json.loads(before)["serial"] + 1
    assert {row["type"] + "." + row["name"] for row in state["resources"]} == {
        "terraform_data.x",
        "terraform_data.k",
        "terraform_data.hidden",
    }
    assert done["approval"]["is_alone"] is True

    back = _change(repo, "rollback", done["kept"])
    repo.run("stack", "state", "approve", back["id"], "--alone")
    repo.run("stack", "state", "apply", back["id"])
    assert json.loads(path.read_text())["resources"] == json.loads(before)["resources"]
    assert repo.actions(TARGET) == {}

    # What another provider managed before is managed by this one after it.
    mine = "terraform.io/builtin/terraform"
    path.write_text(path.read_text().replace(mine, "example.org/old/terraform"))
    replaced = _change(repo, "replace-provider", "example.org/old/terraform", mine)
    assert replaced["plan"]["changes"] == []
    assert replaced["result"] != ""
    # Neither a copy of the state nor its secret is left anywhere.
    assert not list((repo.root / ".stackyard").rglob("state-copy-*"))
    stored = (repo.root / ".stackyard").rglob("*")
    assert not [one for one in stored if one.is_file() and SECRET.encode() in one.read_bytes()]


def test_a_merged_file_counts_as_approved_and_an_edited_one_does_not(tmp_path: Path) -> None:
    repo = _repo(tmp_path / "repo")
    _share(repo)
    repo.git("checkout", "-q", "-b", "rename")
    _edit(repo, 'module "m"', 'module "n"')
    made = _change(repo, "mv", "module.m", "module.n", "--out", "change.yaml")
    assert made["moved"] == [{"from": "module.m.terraform_data.in", "to": "module.n.terraform_data.in"}]
    text = (repo.root / "change.yaml").read_text()
    assert SECRET not in text
    repo.commit("Rename the module")
    refused = repo.run("stack", "state", "apply", "change.yaml", status=1)
    assert "E-STATE-CHANGE-NOT-APPROVED" in refused.stderr
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "rename")
    # A branch of this clone shows no review.
    local = repo.run("stack", "state", "apply", "change.yaml", status=1)
    assert "E-STATE-CHANGE-NOT-APPROVED" in local.stderr
    repo.git("push", "-q", "origin", "main")

    # An edited file is neither what is merged nor what was proposed.
    for edited in (text.replace("to: module.n", "to: module.other"), text.replace("serial: 1", "serial: 9")):
        (repo.root / "change.yaml").write_text(edited)
        assert "E-STATE-CHANGE-OTHER" in repo.run("stack", "state", "apply", "change.yaml", status=65).stderr
    (repo.root / "change.yaml").write_text(text + "# a comment\n")
    assert "NOT-APPROVED" in repo.run("stack", "state", "apply", "change.yaml", status=1).stderr
    (repo.root / "change.yaml").write_text(text)
    # A merged one whose operation is not the one that its addresses and its plan show does nothing.
    forged = text.replace(made["id"], "20200101T000000Z-000000").replace(
        "  to: module.n\n", "  to: module.z\n"
    )
    assert forged.count("module.z") == 1
    repo.write({"forged.yaml": forged})
    repo.commit("Forge")
    repo.git("push", "-q", "origin", "main")
    # Nor can one approve it by a file of one's own that names another proposer.
    repo.write({"other.yaml": forged.replace("proposed_by: ", "proposed_by: not-")})
    unknown = repo.run("stack", "state", "approve", "other.yaml", status=65)
    assert "E-STATE-CHANGE-UNKNOWN" in unknown.stderr
    assert "E-STATE-CHANGE-RESULT" in repo.run("stack", "state", "apply", "forged.yaml", status=1).stderr
    done = repo.json("stack", "state", "apply", "change.yaml")
    assert done["approval"]["by"] == "branch origin/main"
    assert done["plan_now"]["changes"] == []


def test_imports_and_providers_are_proposed_on_a_copy_and_refusals_change_nothing(tmp_path: Path) -> None:
    repo = _repo(tmp_path)
    _edit(
        repo,
        'resource "terraform_data" "x"',
        'resource "terraform_data" "found" {}\nresource "terraform_data" "x"',
    )
    made = _change(repo, "import", "terraform_data.found", "some-id")
    assert made["added"] == ["terraform_data.found"]
    assert made["result"] == ""
    missing = repo.run("stack", "state", "mv", TARGET, "terraform_data.none", "terraform_data.z", status=None)
    assert missing.status != 0
    secret = repo.run("stack", "state", "import", TARGET, "terraform_data.found", SECRET, status=None)
    assert secret.status == 64
    assert SECRET not in secret.stdout + secret.stderr
    dashed = repo.run("stack", "state", "mv", TARGET, "--", "-state=/tmp/x", "terraform_data.z", status=64)
    assert "begin with no dash" in dashed.stderr
    provider = repo.run(
        "stack", "state", "replace-provider", TARGET, "registry.terraform.io/a/b", "a/c", status=None
    )
    assert provider.status != 0
    none = repo.run("stack", "state", "rollback", TARGET, "77", status=None)
    assert none.status != 0
    assert [one["id"] for one in repo.json("stack", "state", "list")["changes"]] == [made["id"]]

    # A protected stack needs a second person, whatever one says, and whenever one said it.
    repo.run("stack", "state", "approve", made["id"], "--alone")
    repo.write({f"{FOLDER}/stack.yaml": "protected: true\n"})
    alone = repo.run("stack", "state", "approve", made["id"], "--alone", status=1)
    assert "is protected" in alone.stderr
    early = repo.run("stack", "state", "apply", made["id"], status=1)
    assert "E-STATE-CHANGE-NOT-APPROVED" in early.stderr
    _approve_by(repo, "bob@desk", made["id"])
    # Somebody applies something in between: the approval is worth nothing then.
    repo.run("apply", TARGET, "--yes", "--allow-dirty")
    assert "E-STATE-CHANGE-STALE" in repo.run("stack", "state", "apply", made["id"], status=65).stderr
    repo.run("stack", "state", "discard", made["id"])


def test_a_state_in_a_bucket_is_changed_through_its_own_backend(tmp_path: Path, seaweed: Seaweed) -> None:
    key = f"{new_prefix()}/a.tfstate"
    backend = f"""
        terraform {{
          backend "s3" {{
            bucket = "{BUCKET}"
            key = "{key}"
            region = "us-east-1"
            endpoints = {{ s3 = "{seaweed.endpoint}" }}
            use_path_style = true
            use_lockfile = true
            skip_credentials_validation = true
            skip_metadata_api_check = true
            skip_region_validation = true
            skip_requesting_account_id = true
            skip_s3_checksum = true
          }}
        }}
    """
    repo = _repo(tmp_path, backend, AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY)
    _edit(repo, 'terraform_data" "hidden"', 'terraform_data" "shown"')
    made = _change(repo, "mv", "terraform_data.hidden", "terraform_data.shown")
    assert made["plan"]["changes"] == []
    repo.run("stack", "state", "approve", made["id"], "--alone")
    done = repo.json("stack", "state", "apply", made["id"])
    assert (done["is_as_reviewed"], done["kept"]) == (True, made["id"])
    assert repo.actions(TARGET) == {}
    assert _change(repo, "rollback", made["id"])["added"] == ["terraform_data.hidden"]


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["store", "local"])
def test_a_killed_change_leaves_the_old_or_the_new_state_and_can_be_repeated(
    tmp_path: Path, backend: str
) -> None:
    repo = _repo(tmp_path, _STORE if backend == "store" else "")
    for round_number in range(12):
        here, there = ("x", "z") if round_number % 2 == 0 else ("z", "x")
        _edit(repo, f'terraform_data" "{here}"', f'terraform_data" "{there}"')
        _edit(repo, f"terraform_data.{here}.output", f"terraform_data.{there}.output")
        made = _change(repo, "mv", f"terraform_data.{here}", f"terraform_data.{there}")
        repo.run("stack", "state", "approve", made["id"], "--alone")
        program = subprocess.Popen(
            [sys.executable, "-m", "stackyard", "stack", "state", "apply", made["id"]],
            cwd=repo.root,
            env={**os.environ, **repo.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(0.6 + 0.25 * round_number)
        program.send_signal(signal.SIGKILL)
        program.wait()
        held = _addresses(repo)
        assert (f"terraform_data.{here}" in held) != (f"terraform_data.{there}" in held)
        done = repo.json("stack", "state", "apply", made["id"])
        assert done["status"] == "applied"
        assert repo.actions(TARGET) == {}
