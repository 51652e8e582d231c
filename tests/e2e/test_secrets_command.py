"""`stackyard secrets` from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.programs import write_program
from tests.support.repositories import git, new_repository
from tests.support.secrets import DATA, IDENTITY, RECIPIENT, SECOND_IDENTITY, SECOND_RECIPIENT

KEY = {"SOPS_AGE_KEY": IDENTITY}
PLAIN = "# note\nuser: me\npassword: hunter2\n"


@pytest.fixture
def plain_file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.yaml"
    path.write_text(PLAIN)
    return path


def test_a_file_is_encrypted_viewed_edited_rotated_and_decrypted(plain_file: Path, tmp_path: Path) -> None:
    done = stackyard("secrets", "encrypt", str(plain_file), "--age", RECIPIENT, "--json")
    assert done.document["recipients"] == [RECIPIENT]
    assert "hunter2" not in plain_file.read_text()
    assert stackyard("secrets", "view", str(plain_file), env=KEY).stdout == PLAIN
    viewed = stackyard("secrets", "view", str(plain_file), "--json", env=KEY).document
    assert (viewed["kind"], viewed["values"]) == ("sops", {"user": "me", "password": "hunter2"})
    editor = write_program(tmp_path / "editor", 'echo "more: x" >> "$1"; echo "editor speaks"')
    edited = stackyard("secrets", "edit", str(plain_file), "--json", env={**KEY, "EDITOR": str(editor)})
    assert edited.document["is_changed"] is True
    rotated = stackyard(
        "secrets", "rotate", str(plain_file), "--add", SECOND_RECIPIENT, "--remove", RECIPIENT, env=KEY
    )
    assert rotated.status == 0, rotated.stderr
    second = {"SOPS_AGE_KEY": SECOND_IDENTITY}
    assert stackyard("secrets", "view", str(plain_file), "--key", "more", env=second).stdout == "x\n"
    assert stackyard("secrets", "view", str(plain_file), env=KEY).status == 1
    out = tmp_path / "clear.yaml"
    assert stackyard("secrets", "decrypt", str(plain_file), "--output", str(out), env=second).status == 0
    assert out.read_text() == f"{PLAIN}more: x\n"
    assert out.stat().st_mode & 0o777 == 0o600


def test_a_user_without_a_key_gets_one(plain_file: Path, home: Path) -> None:
    done = stackyard("secrets", "encrypt", str(plain_file), "--age", "self", "--json")
    keys = Path(done.document["new_key_file"])
    assert keys.is_relative_to(home)
    assert stackyard("secrets", "view", str(plain_file)).stdout == PLAIN


def test_vault_files_go_through_all_verbs(tmp_path: Path) -> None:
    path = tmp_path / "secrets.tfvars"
    path.write_text('password = "hunter2"\n')
    password = {"ANSIBLE_VAULT_PASSWORD_FILE": str(DATA / "vault-password.txt")}
    assert stackyard("secrets", "encrypt", str(path), "--vault", env=password).status == 0
    assert path.read_text().startswith("$ANSIBLE_VAULT;1.1;AES256\n")
    assert stackyard("secrets", "view", str(path), env=password).stdout == 'password = "hunter2"\n'
    new = f"prod@{DATA / 'vault-password-prod.txt'}"
    assert stackyard("secrets", "rotate", str(path), "--new-vault-id", new, env=password).status == 0
    assert stackyard("secrets", "view", str(path), env=password).status == 1
    assert stackyard("secrets", "view", str(path), "--vault-id", new).status == 0


def test_a_variables_file_of_sops_goes_through_all_verbs(tmp_path: Path) -> None:
    path = tmp_path / "secrets.tfvars"
    path.write_text('password = "hunter2"\n')
    assert stackyard("secrets", "encrypt", str(path), "--age", RECIPIENT).status == 0
    assert "hunter2" not in path.read_text()
    assert stackyard("secrets", "view", str(path), env=KEY).stdout == 'password = "hunter2"\n'
    editor = write_program(tmp_path / "editor", 'echo "more = 1" >> "$1"')
    edited = stackyard("secrets", "edit", str(path), "--json", env={**KEY, "EDITOR": str(editor)})
    assert edited.document["is_changed"] is True
    assert stackyard("secrets", "view", str(path), env=KEY).stdout == 'password = "hunter2"\nmore = 1\n'


def test_a_variables_file_of_ansible_vault_is_edited(tmp_path: Path) -> None:
    path = tmp_path / "secrets.tfvars"
    path.write_text('password = "hunter2"\n')
    env = {"ANSIBLE_VAULT_PASSWORD": "one word"}
    assert stackyard("secrets", "encrypt", str(path), "--vault", env=env).status == 0
    editor = write_program(tmp_path / "editor", 'echo "more = 1" >> "$1"')
    edited = stackyard("secrets", "edit", str(path), env={**env, "EDITOR": str(editor)})
    assert edited.status == 0, edited.stderr
    assert stackyard("secrets", "view", str(path), env=env).stdout == 'password = "hunter2"\nmore = 1\n'


@pytest.mark.parametrize("name", ["secrets.tfvars", "my vms.secret.tfvars", "secrets.tfvars.json"])
def test_the_hook_refuses_a_staged_variables_file_in_clear(tmp_path: Path, name: str) -> None:
    folder = new_repository(tmp_path / "repository")
    assert stackyard("secrets", "check", "--install-hook", cwd=folder).status == 0
    path = folder / name
    path.write_text('{"password": "hunter2"}')
    git(folder, "add", "--all")
    # The working tree is right by now; what would be committed is not.
    path.write_text("$ANSIBLE_VAULT;1.1;AES256\n6162\n")
    refused = git(folder, "commit", "-m", "secrets")
    assert refused.returncode != 0
    assert f"{name}:1" in refused.stderr
    git(folder, "add", "--all")
    assert git(folder, "commit", "-m", "secrets").returncode == 0


def test_a_locked_file_says_which_keys_are_needed(plain_file: Path) -> None:
    stackyard("secrets", "encrypt", str(plain_file), "--age", RECIPIENT)
    ended = stackyard("secrets", "view", str(plain_file), "--json")
    error = ended.document["error"]
    assert (ended.status, error["code"]) == (1, "E-SECRETS-LOCKED")
    assert RECIPIENT in error["detail"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("view", "missing.yaml"), 65),
        (("decrypt", "secrets.yaml"), 64),
        (("decrypt", "secrets.yaml", "--in-place"), 64),
        (("encrypt", "secrets.yaml"), 65),
        (("encrypt", "secrets.yaml", "--age", "nonsense"), 65),
        (("encrypt", "secrets.yaml", "--vault", "--age", RECIPIENT), 64),
        (("encrypt", "secrets.yaml", "--vault"), 1),
        (("rotate", "secrets.yaml"), 65),
        (("rotate", "secrets.yaml", "--from-config", "--add", RECIPIENT), 64),
        (("view", "secrets.yaml", "--key", "nowhere.here"), 65),
        (("check",), 1),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_status(
    plain_file: Path, arguments: tuple[str, ...], status: int
) -> None:
    ended = stackyard("secrets", *arguments, "--json", cwd=plain_file.parent)
    assert ended.status == status, ended
    assert ended.document["error"]["detail"]
    assert plain_file.read_text() == PLAIN


def test_an_encrypted_file_is_not_encrypted_again(plain_file: Path) -> None:
    stackyard("secrets", "encrypt", str(plain_file), "--age", RECIPIENT)
    before = plain_file.read_bytes()
    assert stackyard("secrets", "encrypt", str(plain_file), "--age", RECIPIENT).status == 64
    assert plain_file.read_bytes() == before


def test_the_check_names_every_place_and_ends_with_one(plain_file: Path) -> None:
    folder = new_repository(plain_file.parent)
    git(folder, "add", "--all")
    ended = stackyard("secrets", "check", cwd=folder)
    assert ended.status == 1
    assert "secrets.yaml:1: " in ended.stderr
    stackyard("secrets", "encrypt", str(plain_file), "--age", RECIPIENT)
    assert stackyard("secrets", "check", cwd=folder).status == 1, "what counts is the index"
    git(folder, "add", "--all")
    assert stackyard("secrets", "check", "--json", cwd=folder).document == {"files": 1, "findings": []}


def test_help_loads_no_cryptography() -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom stackyard.cli.main import main\nmain(['secrets', '--help'])\n"
        "print([m for m in ('pyrage', 'cryptography', 'ruamel.yaml', 'yaml', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
