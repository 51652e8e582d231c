"""Ansible Vault, whole files and single values, as the real one writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.programs import write_program
from tests.support.secrets import DATA, VAULT_ENV, keyring

from stackyard.secrets import Keyring, SecretsKind, SecretsLockedError, open_file, read_secrets
from stackyard.secrets.keyring import KeyringError
from stackyard.secrets.layout import SecretsSyntaxError
from stackyard.secrets.vault.envelope import VaultFormatError, WrongPasswordError, parse_envelope, seal
from stackyard.secrets.vault.file import open_inline_vault, seal_inline, seal_whole, without_tags
from stackyard.secrets.vault.passwords import vault_passwords


def test_a_whole_file_of_the_real_program_comes_back() -> None:
    opened = open_file(DATA / "vault-full.yaml", keyring())
    assert opened.kind is SecretsKind.VAULT
    assert opened.plain == (DATA / "plain-full.yaml").read_bytes()


def test_single_values_of_the_real_program_are_shown_with_their_tag() -> None:
    opened = open_file(DATA / "vault-inline.yaml", keyring())
    assert opened.kind is SecretsKind.VAULT_INLINE
    assert read_secrets(DATA / "vault-inline.yaml", keyring()).data == {
        "plain": "value",
        "secret": "grüße 🔑",
        "nested": {"list": ["two\nlines"]},
    }


def test_a_value_that_did_not_change_keeps_its_text_and_a_new_one_is_encrypted() -> None:
    source = (DATA / "vault-inline.yaml").read_bytes()
    opened = open_file(DATA / "vault-inline.yaml", keyring())
    sealed = opened.seal(opened.plain + b"more: !vault other\n")
    kept = source.decode().rstrip("\n").splitlines()
    assert sealed.decode().splitlines()[: len(kept)] == kept
    assert open_inline_vault(sealed, "f.yaml", keyring()).layout() is not None
    assert b"other" not in sealed


def test_tags_are_taken_off_for_other_programs() -> None:
    assert without_tags(b"a: !vault x # c\nb: [!vault 'y: z']\n", "f") == b'a: x # c\nb: ["y: z"]\n'


def test_values_to_encrypt_are_those_with_the_tag() -> None:
    sealed = seal_inline(b"a: !vault one # c\nb: two\n", "f.yaml", keyring())
    assert b"$ANSIBLE_VAULT" in sealed
    assert b"b: two" in sealed
    assert open_inline_vault(sealed, "f.yaml", keyring()).plain == b"a: !vault one # c\nb: two\n"
    with pytest.raises(SecretsSyntaxError, match="no value with the tag"):
        seal_inline(b"a: one\n", "f.yaml", keyring())


def test_a_label_is_kept_and_chooses_the_password() -> None:
    opened = open_file(DATA / "vault-labelled.yaml", keyring())
    assert opened.seal(b"a: b\n").startswith(b"$ANSIBLE_VAULT;1.2;AES256;prod\n")


@settings(max_examples=10)
@given(st.binary(max_size=200), st.binary(min_size=1, max_size=20))
def test_anything_that_is_sealed_comes_back(plain: bytes, password: bytes) -> None:
    assert parse_envelope(seal(plain, password), "f").open(password) == plain


def test_another_password_opens_nothing() -> None:
    with pytest.raises(WrongPasswordError):
        parse_envelope(seal(b"text", b"one"), "f").open(b"two")


def test_every_changed_byte_is_noticed() -> None:
    sealed = seal(b"text", b"password")
    body = sealed.index("\n") + 1
    for at in range(body, len(sealed)):
        if sealed[at] == "\n":
            continue
        changed = sealed[:at] + ("0" if sealed[at] != "0" else "1") + sealed[at + 1 :]
        with pytest.raises((WrongPasswordError, VaultFormatError)):
            parse_envelope(changed, "f").open(b"password")


@pytest.mark.parametrize(
    "text",
    [
        "$ANSIBLE_VAULT;1.0;AES\n00",
        "$ANSIBLE_VAULT;1.1;AES256",
        "$ANSIBLE_VAULT;1.1;AES256\nzz",
        "$ANSIBLE_VAULT;1.1;AES256\n00",
        "$ANSIBLE_VAULT;",
    ],
)
def test_a_text_that_is_cut_off_is_refused(text: str) -> None:
    with pytest.raises(VaultFormatError):
        parse_envelope(text, "f")


def test_a_file_without_its_password_says_what_is_needed_and_was_tried() -> None:
    env = {key: value for key, value in VAULT_ENV.items() if key != "ANSIBLE_VAULT_IDENTITY_LIST"}
    with pytest.raises(SecretsLockedError) as caught:
        read_secrets(DATA / "vault-labelled.yaml", Keyring(env=env))
    assert "the password of the vault id `prod`" in caught.value.detail
    assert "vault-password.txt (ANSIBLE_VAULT_PASSWORD_FILE)" in caught.value.detail
    assert "throw-away" not in caught.value.detail


def test_a_script_gives_the_password_and_a_client_script_gets_the_label(tmp_path: Path) -> None:
    script = write_program(tmp_path / "my-client.sh", 'printf "for %s\\n" "$2"')
    (found,) = vault_passwords(Keyring(env=VAULT_PATH, vault_ids=(f"prod@{script}",)))
    assert (found.label, found.password) == ("prod", b"for prod")
    plain = write_program(tmp_path / "plain.sh", "echo '  secret  '")
    (found,) = vault_passwords(Keyring(env={**VAULT_PATH, "ANSIBLE_VAULT_PASSWORD_FILE": str(plain)}))
    assert (found.label, found.password) == ("default", b"secret")


VAULT_PATH = {"PATH": VAULT_ENV["PATH"], "HOME": "/nonexistent"}


def test_the_environment_gives_the_password() -> None:
    env = {**VAULT_PATH, "ANSIBLE_VAULT_PASSWORD": "secret", "ANSIBLE_VAULT_IDENTITY": "mine"}
    (found,) = vault_passwords(Keyring(env=env))
    assert (found.label, found.password) == ("mine", b"secret")


@pytest.mark.parametrize("script", ["exit 1", "true"])
def test_a_script_that_gives_nothing_is_an_error(tmp_path: Path, script: str) -> None:
    path = write_program(tmp_path / "fails.sh", script)
    with pytest.raises(KeyringError, match="the command line"):
        vault_passwords(Keyring(env=VAULT_PATH, vault_ids=(str(path),)))


@pytest.mark.parametrize("given", ["/nonexistent/file", "prod@prompt"])
def test_a_password_that_cannot_be_had_is_an_error(given: str) -> None:
    with pytest.raises(KeyringError):
        vault_passwords(Keyring(env=VAULT_PATH, vault_ids=(given,)))


def test_nothing_is_encrypted_without_a_password() -> None:
    with pytest.raises(SecretsLockedError, match="needs a vault password"):
        seal_whole(b"x", Keyring(env=VAULT_PATH))
