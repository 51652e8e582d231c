"""The contract of a secrets file that was opened, for every sort of protection and format."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.support.secrets import keyring, seal_text

from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.secrets import Keyring, OpenedFile, SecretsKind
from stackyard.secrets.protected_file import detect, open_bytes
from stackyard.secrets.sops.text import FileFormat
from stackyard.secrets.vault.file import seal_inline, seal_whole


@dataclass(frozen=True, kw_only=True)
class Case:
    """A sort of file: what protects it, and a plain text before and after a change."""

    name: str
    kind: SecretsKind
    sealed: bytes
    plain: bytes
    changed: bytes
    broken: bytes | None
    secret: str = "hunter2-secret"


YAML = b"# note\nuser: me\npassword: hunter2-secret\nlist: [one, 2]\n"
YAML_CHANGED = YAML.replace(b"user: me", b"user: you")
BROKEN_YAML = b"user: [me\n"
JSON = b'{\n  "user": "me",\n  "password": "hunter2-secret"\n}\n'
ENV = b"# note\nUSER=me\nPASSWORD=hunter2-secret\n"
INLINE = b"user: me\npassword: !vault hunter2-secret\nother: !vault also secret\n"

CASES = [
    Case(
        name="secrets.yaml",
        kind=SecretsKind.SOPS,
        sealed=seal_text(YAML),
        plain=YAML,
        changed=YAML_CHANGED,
        broken=BROKEN_YAML,
    ),
    Case(
        name="secrets.json",
        kind=SecretsKind.SOPS,
        sealed=seal_text(JSON, FileFormat.JSON),
        plain=JSON,
        changed=JSON.replace(b'"me"', b'"you"'),
        broken=b'{"user": ',
    ),
    Case(
        name="secrets.env",
        kind=SecretsKind.SOPS,
        sealed=seal_text(ENV, FileFormat.DOTENV),
        plain=ENV,
        changed=ENV.replace(b"=me", b"=you"),
        broken=b"no equals sign\n",
    ),
    Case(
        name="secrets.bin",
        kind=SecretsKind.SOPS,
        sealed=seal_text(b"hunter2-secret\xff\x00", FileFormat.BINARY),
        plain=b"hunter2-secret\xff\x00",
        changed=b"\x00other",
        broken=None,
        secret="hunter2-secret\udcff\x00",
    ),
    Case(
        name="vault.yaml",
        kind=SecretsKind.VAULT,
        sealed=seal_whole(YAML, keyring()),
        plain=YAML,
        changed=YAML_CHANGED,
        broken=BROKEN_YAML,
    ),
    Case(
        name="secrets.tfvars",
        kind=SecretsKind.VAULT,
        sealed=seal_whole(b"hunter2-secret\n", keyring()),
        plain=b"hunter2-secret\n",
        changed=b"other\n",
        broken=None,
    ),
    Case(
        name="inline.yaml",
        kind=SecretsKind.VAULT_INLINE,
        sealed=seal_inline(INLINE, "inline.yaml", keyring()),
        plain=INLINE,
        changed=INLINE.replace(b"also", b"ALSO"),
        broken=BROKEN_YAML,
    ),
]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.name}")


def opened(case: Case, data: bytes | None = None) -> OpenedFile:
    return open_bytes(case.sealed if data is None else data, case.name, keyring())


@each_case
def test_what_protects_a_file_is_told_from_its_content(case: Case) -> None:
    assert detect(case.sealed, case.name).kind is case.kind
    assert opened(case).kind is case.kind


@each_case
def test_an_encrypted_file_holds_no_secret_in_clear(case: Case) -> None:
    assert b"hunter2" not in case.sealed


@each_case
def test_a_file_comes_back_as_it_was(case: Case) -> None:
    assert opened(case).plain == case.plain


@each_case
def test_without_a_change_the_very_same_bytes_are_sealed(case: Case) -> None:
    assert opened(case).seal(case.plain) == case.sealed


@each_case
def test_a_change_is_sealed_and_comes_back(case: Case) -> None:
    sealed = opened(case).seal(case.changed)
    assert sealed != case.sealed
    assert opened(case, sealed).plain == case.changed
    assert opened(case, sealed).seal(case.changed) == sealed


@each_case
def test_what_is_sealed_twice_is_encrypted_anew(case: Case) -> None:
    assert opened(case).seal(case.changed) != opened(case).seal(case.changed)


@each_case
def test_a_text_that_cannot_be_read_is_refused(case: Case) -> None:
    if case.broken is None:
        opened(case).check(b"anything")
        return
    with pytest.raises(InvalidInputError) as caught:
        opened(case).check(case.broken)
    with pytest.raises(InvalidInputError):
        opened(case).seal(case.broken)
    assert caught.value.where is not None


@each_case
def test_every_secret_is_named_for_redaction(case: Case) -> None:
    assert case.secret in opened(case).secrets()


@each_case
def test_a_file_without_its_key_is_an_error_and_not_an_absence_of_secrets(case: Case) -> None:
    with pytest.raises(StackyardError) as caught:
        open_bytes(case.sealed, case.name, Keyring(env={"HOME": "/nonexistent"}))
    assert caught.value.code == "E-SECRETS-LOCKED"


@each_case
def test_no_secret_is_in_the_representation_of_an_opened_file(case: Case) -> None:
    assert "hunter2" not in repr(opened(case))


@each_case
def test_a_file_that_is_cut_off_anywhere_is_an_error_or_has_lost_nothing(case: Case) -> None:
    for kept in range(0, len(case.sealed), max(1, len(case.sealed) // 60)):
        torn = case.sealed[:kept]
        try:
            found = open_bytes(torn, case.name, keyring())
        except StackyardError:
            continue
        # Values that Ansible Vault encrypted one by one do not know of each other.
        is_whole = found.plain.rstrip() == case.plain.rstrip() or case.kind is SecretsKind.VAULT_INLINE
        assert found.kind is SecretsKind.PLAIN or is_whole
        assert (
            b"ENC[AES256_GCM" not in torn or found.kind is not SecretsKind.PLAIN or case.name.endswith("bin")
        )
