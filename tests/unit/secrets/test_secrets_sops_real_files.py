"""What the real sops wrote is read as what was encrypted."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from tests.support.secrets import DATA, ENV, IDENTITY, RECIPIENT, SECOND_RECIPIENT, keyring

from stackyard.secrets import Keyring, SecretsLockedError, open_file, read_secrets
from stackyard.secrets.layout import plain_data
from stackyard.secrets.sops.file import OpenedSops

FULL: dict[str, object] = {
    "text": "plain text",
    "unicode": "grüße, 世界 🔑",
    "empty": "",
    "nothing": None,
    "tilde": None,
    "int": 42,
    "negative": -7,
    "octal": 15,
    "hex": 31,
    "float": 1.5,
    "exponent": 1000.0,
    "whole": 3.0,
    "yes_is_text": "yes",
    "bool": True,
    "date": datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC),
    "time": datetime.datetime.fromisoformat("2001-12-14T21:59:43.1-05:00"),
    "quoted_number": "8006",
    "nested": {
        "deeper": {"list": ["one", {"two": 2, "three": [3, 3.5, None, ""]}, ["inner", "list"]]},
        "colons": "a: b # c",
    },
    "multiline": "first line\n  second line\n\nlast line\n",
    "folded": "folded text\n",
    "strip": "no end",
    "key_unencrypted": "visible",
    "quoted key": "value",
    "empty_map": {},
    "empty_list": [],
}


@pytest.mark.parametrize(
    "name", ["plain-full.yaml", "sops-full.yaml", "vault-full.yaml", "vault-labelled.yaml"]
)
def test_a_file_means_the_same_however_it_is_protected(name: str) -> None:
    assert read_secrets(DATA / name, keyring()).data == FULL


def test_the_comments_of_a_sops_file_are_decrypted() -> None:
    plain = open_file(DATA / "sops-full.yaml", keyring()).plain.decode()
    comments = ["The first comment", "Before the nested", "behind one", "between", "The last comment"]
    assert [comment for comment in comments if f"# {comment}\n" not in plain] == []
    assert "ENC[" not in plain


def test_every_document_of_a_sops_file_is_read() -> None:
    layout = open_file(DATA / "sops-documents.yaml", keyring()).layout()
    assert layout is not None
    found = [plain_data(document.root) for document in layout.documents]
    assert found == [{"a": "first"}, {"b": "second", "c": [1, 2]}, {"d": "ENC in clear"}]


@pytest.mark.parametrize("name", ["partial.yaml", "bycomment.yaml"])
def test_a_partly_encrypted_file_is_read(name: str) -> None:
    assert read_secrets(DATA / f"sops-{name}", keyring()).data == read_secrets(DATA / f"plain-{name}").data


def test_json_of_sops_is_read() -> None:
    plain = {
        "text": "grüße",
        "int": 42,
        "float": 1.5,
        "bool": True,
        "none": None,
        "empty": "",
        "list": [1, {"deep": "er"}, []],
        "object": {},
        "key_unencrypted": 1,
    }
    assert read_secrets(DATA / "sops-full.json", keyring()).data == plain


@pytest.mark.parametrize("name", ["full.env", "full.bin"])
def test_dotenv_and_binary_files_of_sops_come_back_byte_for_byte(name: str) -> None:
    assert open_file(DATA / f"sops-{name}", keyring()).plain == (DATA / f"plain-{name}").read_bytes()


def test_a_key_shared_between_groups_needs_one_of_each() -> None:
    assert read_secrets(DATA / "sops-groups.yaml", keyring()).data == {"two": "groups"}
    with pytest.raises(SecretsLockedError, match="needs keys of 2 of its 2 groups, and yours open 1"):
        read_secrets(DATA / "sops-groups.yaml", Keyring(env={**ENV, "SOPS_AGE_KEY": IDENTITY}))


def test_an_ssh_key_opens_what_was_encrypted_for_it(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes((DATA / "ssh-test-key").read_bytes())
    env = {"SOPS_AGE_SSH_PRIVATE_KEY_FILE": str(key), "HOME": "/nonexistent"}
    assert read_secrets(DATA / "sops-ssh.yaml", Keyring(env=env)).data == {"for": "ssh"}


def test_the_usual_ssh_key_is_found(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_bytes((DATA / "ssh-test-key").read_bytes())
    assert read_secrets(DATA / "sops-ssh.yaml", Keyring(env={"HOME": str(tmp_path)})).data == {"for": "ssh"}


def test_who_can_open_a_file_is_known() -> None:
    opened = open_file(DATA / "sops-full.yaml", keyring())
    assert isinstance(opened, OpenedSops)
    assert opened.metadata.recipients == (RECIPIENT, SECOND_RECIPIENT)


@pytest.mark.parametrize(
    "name", sorted(path.name for path in DATA.glob("sops-*.*") if "config" not in path.name)
)
def test_a_file_that_nobody_changed_is_sealed_to_the_very_same_bytes(name: str, tmp_path: Path) -> None:
    env = {**ENV, "SOPS_AGE_SSH_PRIVATE_KEY_FILE": str(DATA / "ssh-test-key")}
    opened = open_file(DATA / name, Keyring(env=env))
    assert opened.seal(opened.plain) == (DATA / name).read_bytes()


def test_a_changed_value_changes_its_line_the_mac_and_the_time_alone() -> None:
    opened = open_file(DATA / "sops-full.yaml", keyring())
    sealed = opened.seal(opened.plain.replace(b"text: plain text", b"text: other text"))
    before, after = opened_lines((DATA / "sops-full.yaml").read_bytes()), opened_lines(sealed)
    changed = [old.split(":")[0].strip() for old, new in zip(before, after, strict=True) if old != new]
    assert changed == ["text", "lastmodified", "mac"]


def test_a_changed_comment_changes_its_line_alone() -> None:
    opened = open_file(DATA / "sops-full.yaml", keyring())
    sealed = opened.seal(opened.plain.replace(b"# Before the nested", b"# Now different"))
    before, after = opened_lines((DATA / "sops-full.yaml").read_bytes()), opened_lines(sealed)
    assert len([old for old, new in zip(before, after, strict=True) if old != new]) == 1


def opened_lines(data: bytes) -> list[str]:
    return data.decode().splitlines()
