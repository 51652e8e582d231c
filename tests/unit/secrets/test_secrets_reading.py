"""The rest of stackyard reads secrets with their places, whatever protects them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.programs import write_program
from tests.support.secrets import DATA, ENV, IDENTITY, RECIPIENT, keyring, open_sealed, seal_text

from stackyard.base.errors import FileError, InvalidInputError
from stackyard.base.redaction import MASK
from stackyard.base.yamledit import Append, Change, Remove, Set
from stackyard.secrets import (
    Keyring,
    SecretsKind,
    change_secrets,
    create_sops_file,
    read_secrets,
    user_recipient,
)
from stackyard.secrets.keyring import KeyringError
from stackyard.secrets.layout import SecretsSyntaxError
from stackyard.secrets.sops.metadata import SopsMetadataError

PLAIN = "# tokens\napi_tokens:\n  pve1: root@pam!x=1\nssh_keys:\n  - ssh-ed25519 AAAA\nport: 8006\n"


def test_a_file_that_is_missing_is_an_answer(tmp_path: Path) -> None:
    found = read_secrets(tmp_path / "secrets.yaml", keyring())
    assert (found.kind, found.data) == (SecretsKind.ABSENT, {})


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "secrets.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileError):
        read_secrets(tmp_path / "secrets.yaml", keyring())


@pytest.mark.parametrize("is_sealed", [False, True])
def test_places_are_those_in_the_file_as_it_is(tmp_path: Path, is_sealed: bool) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN) if is_sealed else PLAIN.encode())
    found = read_secrets(path, keyring())
    assert found.kind is (SecretsKind.SOPS if is_sealed else SecretsKind.PLAIN)
    assert found.data["api_tokens"] == {"pve1": "root@pam!x=1"}
    assert str(found.place("api_tokens", "pve1")) == f"{path}:3:9"
    assert str(found.key_place("api_tokens", "pve1")) == f"{path}:3:3"
    assert str(found.place("ssh_keys", 0)) == f"{path}:5:5"
    assert str(found.place("api_tokens", "missing")) == f"{path}:3:3"


def test_every_secret_is_handed_to_redaction(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN))
    redact = read_secrets(path, keyring()).redactor()
    assert redact("the token root@pam!x=1 and ssh-ed25519 AAAA") == f"the token {MASK} and {MASK}"
    assert redact("port 8006 stays") == "port 8006 stays"


def test_no_secret_is_in_the_text_of_a_value(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN))
    assert "root@pam" not in repr(read_secrets(path, keyring()))
    assert "root@pam" not in repr(open_sealed(path.read_bytes()).metadata)
    assert IDENTITY not in repr(keyring())


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: 1\n---\nb: 2\n", SecretsSyntaxError),
        ("a: 1\na: 2\n", SecretsSyntaxError),
        ("- a\n", SecretsSyntaxError),
        ("a: ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\n", SopsMetadataError),
    ],
)
def test_what_is_not_one_mapping_is_an_error_with_a_place(
    tmp_path: Path, text: str, error: type[InvalidInputError]
) -> None:
    (tmp_path / "secrets.yaml").write_text(text)
    with pytest.raises(error) as caught:
        read_secrets(tmp_path / "secrets.yaml", keyring())
    assert caught.value.where is not None


def test_a_file_cut_off_at_any_line_is_an_error_and_never_plain(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    lines = seal_text(PLAIN).decode().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if "ENC[" in line and ": " in line)
    for kept in range(first + 1, len(lines) - 2):
        path.write_text("".join(lines[:kept]))
        with pytest.raises(InvalidInputError):
            read_secrets(path, keyring())


@pytest.mark.parametrize("is_sealed", [False, True])
def test_single_values_are_changed_and_nothing_else(tmp_path: Path, is_sealed: bool) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN) if is_sealed else PLAIN.encode())
    path.chmod(0o640)
    before = path.read_text().splitlines()
    changes: list[Change] = [
        Set(("api_tokens", "pve2"), "new"),
        Append(("ssh_keys",), "ssh-ed25519 BBBB"),
        Remove(("port",)),
    ]
    assert change_secrets(path, changes, keyring())
    found = read_secrets(path, keyring())
    assert found.data == {
        "api_tokens": {"pve1": "root@pam!x=1", "pve2": "new"},
        "ssh_keys": ["ssh-ed25519 AAAA", "ssh-ed25519 BBBB"],
    }
    kept = [line for line in before if not line.startswith(("port", "    mac", "    lastmodified"))]
    assert [line for line in kept if line not in path.read_text().splitlines()] == []
    assert path.stat().st_mode & 0o777 == 0o640
    assert not change_secrets(path, [Set(("api_tokens", "pve2"), "new")], keyring())


def test_a_whole_vault_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes((DATA / "vault-full.yaml").read_bytes())
    assert change_secrets(path, [Set(("int",), 43)], keyring())
    assert path.read_text().startswith("$ANSIBLE_VAULT;1.1;AES256\n")
    assert read_secrets(path, keyring()).data["int"] == 43


# --- Keys


def test_keys_come_from_every_place_that_sops_looks_at(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN))
    keys = tmp_path / ".config" / "sops" / "age" / "keys.txt"
    keys.parent.mkdir(parents=True)
    keys.write_text(f"# mine\n{IDENTITY}\n")
    command = write_program(tmp_path / "key", f'[ "$SOPS_AGE_RECIPIENT" = {RECIPIENT} ] && echo {IDENTITY}')
    base = {"HOME": "/nonexistent", "PATH": ENV["PATH"]}
    for env in (
        {"SOPS_AGE_KEY": IDENTITY},
        {"SOPS_AGE_KEY_FILE": str(keys)},
        {"SOPS_AGE_KEY_CMD": str(command)},
        {"HOME": str(tmp_path)},
        {"XDG_CONFIG_HOME": str(tmp_path / ".config")},
    ):
        assert read_secrets(path, Keyring(env={**base, **env})).data["port"] == 8006


def test_a_key_command_can_be_used_inside_a_running_loop(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN))
    command = write_program(tmp_path / "key", f"echo {IDENTITY}")
    env = {"HOME": "/nonexistent", "PATH": ENV["PATH"], "SOPS_AGE_KEY_CMD": str(command)}

    async def read() -> object:
        return read_secrets(path, Keyring(env=env)).data["port"]

    assert asyncio.run(read()) == 8006


@pytest.mark.parametrize(
    "env",
    [
        {"SOPS_AGE_KEY": "nonsense"},
        {"SOPS_AGE_KEY": "AGE-SECRET-KEY-1NONSENSE"},
        {"SOPS_AGE_KEY": "AGE-PLUGIN-YUBIKEY-1XX"},
        {"SOPS_AGE_KEY_FILE": "/nonexistent/keys.txt"},
        {"SOPS_AGE_KEY_CMD": "/nonexistent/program"},
        {"SOPS_AGE_KEY": "-----BEGIN AGE ENCRYPTED FILE-----\nx"},
    ],
)
def test_a_key_that_was_named_and_cannot_be_used_is_an_error_that_does_not_show_it(
    tmp_path: Path, env: dict[str, str]
) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN))
    with pytest.raises(KeyringError) as caught:
        read_secrets(path, Keyring(env={"HOME": "/nonexistent", "PATH": ENV["PATH"], **env}))
    assert next(iter(env)) in caught.value.detail or next(iter(env.values())) in caught.value.detail
    assert "NONSENSE" not in caught.value.detail


def test_a_user_without_a_key_gets_one_and_keeps_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    public, made = user_recipient(Keyring(env=env))
    assert made is not None
    assert made.stat().st_mode & 0o077 == 0
    assert user_recipient(Keyring(env=env)) == (public, None)
    create_sops_file(tmp_path / "secrets.yaml", PLAIN.encode(), [public])
    assert read_secrets(tmp_path / "secrets.yaml", Keyring(env=env)).data["port"] == 8006
