"""The real ansible-vault reads what we write, and we read what it writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.judges import find_judge
from tests.support.secrets import DATA, VAULT_ENV, keyring

from stackyard.secrets import open_file, read_secrets
from stackyard.secrets.vault.file import seal_inline, seal_whole

pytestmark = pytest.mark.judges("ansible-vault")

PASSWORD = str(DATA / "vault-password.txt")
PROD = f"prod@{DATA / 'vault-password-prod.txt'}"
TEXTS = [b"a: b\n", "grüße 🔑\n".encode(), b"", b"x" * 50_000, b"a\r\nb\r\n", b"no end"]


@pytest.fixture(scope="module")
def vault() -> str:
    return str(find_judge("ansible-vault"))


def run(vault: str, *arguments: str, cwd: Path) -> bytes:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    done = subprocess.run(
        [vault, *arguments], cwd=cwd, env=env, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_ansible_vault_opens_what_we_seal(vault: str, tmp_path: Path) -> None:
    names = []
    for number, text in enumerate(TEXTS):
        names.append(f"file{number}")
        (tmp_path / names[-1]).write_bytes(seal_whole(text, keyring(), "default"))
    run(vault, "decrypt", "--vault-password-file", PASSWORD, *names, cwd=tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == TEXTS


def test_we_open_what_ansible_vault_seals(vault: str, tmp_path: Path) -> None:
    names = []
    for number, text in enumerate(TEXTS):
        if text:
            names.append((f"file{number}", text))
            (tmp_path / names[-1][0]).write_bytes(text)
    run(vault, "encrypt", "--vault-id", PROD, *(name for name, _ in names), cwd=tmp_path)
    assert [open_file(tmp_path / name, keyring()).plain for name, _ in names] == [text for _, text in names]


def test_ansible_vault_opens_a_labelled_file_of_ours(vault: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(seal_whole(b"a: b\n", keyring(), "prod"))
    assert run(vault, "view", "--vault-id", PROD, "file", cwd=tmp_path) == b"a: b\n"


def test_single_values_of_the_real_program_are_read(vault: str, tmp_path: Path) -> None:
    made = run(
        vault, "encrypt_string", "--vault-password-file", PASSWORD, "s3cret: ü", "--name", "pw", cwd=tmp_path
    )
    (tmp_path / "vars.yaml").write_bytes(b"plain: 1\n" + made.rstrip() + b"\n")
    assert read_secrets(tmp_path / "vars.yaml", keyring()).data == {"plain": 1, "pw": "s3cret: ü"}


def test_ansible_reads_single_values_of_ours(vault: str, tmp_path: Path) -> None:
    ansible = Path(vault).with_name("ansible")
    if not ansible.exists():
        pytest.skip("ansible is not beside ansible-vault")
    text = "one: !vault first\ntwo: [!vault 'second: x']\nthree:\n  deep: !vault |\n    several\n    lines\n"
    (tmp_path / "vars.yaml").write_bytes(seal_inline(text.encode(), "vars.yaml", keyring(), "default"))
    env = {
        **os.environ,
        "HOME": str(tmp_path),
        "ANSIBLE_VAULT_PASSWORD_FILE": VAULT_ENV["ANSIBLE_VAULT_PASSWORD_FILE"],
    }
    done = subprocess.run(
        [
            str(ansible),
            "localhost",
            "-e",
            "@vars.yaml",
            "-m",
            "debug",
            "-a",
            "msg={{one}}|{{two[0]}}|{{three.deep}}",
        ],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "first|second: x|several\\nlines" in done.stdout, done.stderr
