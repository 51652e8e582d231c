"""New stacks in repositories that would lead them astray: links, secrets in clear, odd files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.stacks import git, write

from stackyard.base.errors import StackyardError
from stackyard.recipes.backend_choice import NewBackendError
from stackyard.recipes.new_stack import NewStack, NewStackRequest, make_stack
from stackyard.recipes.placement import NewNameError, StackExistsError

BACKEND = """terraform {{
  backend "{0}" {{
    {1}
  }}
}}
"""
PASSWORD = "Tr0ub4dor-and-3"


@pytest.fixture(autouse=True)
def _without_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACKYARD_TOFU", str(tmp_path / "no-engine"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def new(root: Path, name: str, origin: str = "empty", **more: object) -> NewStack:
    return asyncio.run(make_stack(NewStackRequest(name=name, origin=origin, **more), root))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("link", "origin"),
    [("tofu/stacks", "empty"), ("tofu/stacks/onprem", "empty"), ("tofu/modules", "proxmox")],
)
def test_nothing_is_written_where_a_link_leads_out_of_the_repository(
    root: Path, outside: Path, link: str, origin: str
) -> None:
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(outside)
    with pytest.raises(NewNameError, match="outside of the repository"):
        new(root, "onprem/a", origin)
    assert not list(outside.iterdir())
    assert not (root / "tofu/stacks/onprem/a").exists()


def test_a_gitignore_that_is_a_link_is_not_followed(root: Path, outside: Path) -> None:
    (outside / "mine").write_text("keep\n")
    (root / ".gitignore").symlink_to(outside / "mine")
    made = new(root, "a")
    assert (outside / "mine").read_text() == "keep\n"
    assert any("link" in note for note in made.notes)


def test_a_name_that_differs_only_in_case_is_taken(root: Path) -> None:
    new(root, "onprem/web")
    with pytest.raises(StackExistsError, match="ignore case"):
        new(root, "onprem/Web")


SECRETS = [
    ("s3", f'bucket = "b"\n    key = "a.tfstate"\n    secret_key = "{PASSWORD}"'),
    ("pg", f'conn_str = "postgres://me:{PASSWORD}@db/x"\n    schema_name = "a"'),
    ("pg", f'conn_str = "host=db password={PASSWORD}"\n    schema_name = "a"'),
    ("http", f'address = "https://me:{PASSWORD}@states.example.org/a"'),
]


@pytest.mark.parametrize(("kind", "settings"), SECRETS)
def test_a_secret_in_the_backend_of_another_stack_gets_into_no_second_file(
    root: Path, kind: str, settings: str
) -> None:
    write(root, {"stacks/a/main.tf": BACKEND.format(kind, settings)})
    made = new(root, "b")
    assert PASSWORD not in made.backend.block
    assert "secret" in made.backend.reason
    with pytest.raises(NewBackendError, match="secret in clear") as caught:
        new(root, "c", "a")
    assert PASSWORD not in str(caught.value)
    assert not (root / "stacks/c").exists()
    new(root, "c", "a", backend="http")
    for file in (*(root / "stacks/b").iterdir(), *(root / "stacks/c").iterdir()):
        assert PASSWORD not in file.read_text(), file


@pytest.mark.parametrize(
    "setting",
    ['kms_key_id = "arn:aws:kms:eu-west-1:111122223333:key/abcd"', 'shared_credentials_file = "/etc/aws"'],
)
def test_a_setting_that_only_leads_to_a_secret_is_shared(root: Path, setting: str) -> None:
    settings = f'bucket = "b"\n    key = "a.tfstate"\n    {setting}'
    write(root, {"stacks/a/main.tf": BACKEND.format("s3", settings)})
    assert setting in new(root, "b").backend.block


def test_a_copy_keeps_what_can_be_run_and_leaves_pipes_and_keys(root: Path) -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE" * 4 + "\n"
    write(
        root,
        {
            "stacks/a/main.tf": BACKEND.format("local", ""),
            "stacks/a/run.sh": "#!/bin/sh\n",
            "stacks/a/id_ed25519": key,
            "stacks/a/.vault-pass": "x",
            "stacks/a/.env": f"DB_PASSWORD={PASSWORD}\n",
        },
    )
    (root / "stacks/a/run.sh").chmod(0o755)
    os.mkfifo(root / "stacks/a/pipe")
    made = new(root, "b", "a")
    assert set(made.files) == {"main.tf", "run.sh", "secrets.tfvars", ".terraform.lock.hcl"}
    assert os.access(root / "stacks/b/run.sh", os.X_OK)
    assert not os.access(root / "stacks/b/main.tf", os.X_OK)
    left = {note.partition(" ")[0] for note in made.notes}
    assert {"pipe", "id_ed25519", ".vault-pass", ".env"} <= left


def test_the_secrets_that_a_link_leads_to_are_not_shared(root: Path) -> None:
    write(root, {"stacks/a/main.tf": BACKEND.format("local", "")})
    (root / "stacks/a/secrets.tfvars").symlink_to("../shared.secret")
    new(root, "b", "a")
    assert (root / "stacks/b/secrets.tfvars").read_text().startswith("$ANSIBLE_VAULT")
    assert not (root / "stacks/b/secrets.tfvars").is_symlink()


def test_a_repository_that_no_one_may_write_to_stays_as_it_is(root: Path) -> None:
    (root / "tofu").write_text("a file where a folder has to be\n")
    with pytest.raises(StackyardError):
        new(root, "a")
    assert sorted(one.name for one in root.iterdir()) == [".git", "tofu"]
