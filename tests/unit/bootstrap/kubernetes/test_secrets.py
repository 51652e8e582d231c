from __future__ import annotations

import base64
from pathlib import Path

import pytest

from stackyard.bootstrap.kubernetes import (
    SecretValues,
    make_cloudflare,
    make_sops_age,
    make_truenas,
    read_secrets_file,
)
from stackyard.bootstrap.kubernetes.secrets import SecretValueError
from stackyard.clients.kubernetes import ManifestError
from stackyard.secrets import Keyring, SecretsLockedError, create_sops_file, new_identity
from stackyard.secrets.sops.rules import PathRule, RuleKind

RECIPIENT, IDENTITY = new_identity()
RULE = PathRule(RuleKind.ENCRYPTED_REGEX, "^(data|stringData)$")
SECRET = (
    b"apiVersion: v1\nkind: Secret\nmetadata: {name: own, namespace: apps}\nstringData: {key: hunter22}\n"
)


def test_the_age_key_file_becomes_the_secret_that_flux_decrypts_with() -> None:
    made = make_sops_age(f"# created: today\n# public key: {RECIPIENT}\n{IDENTITY}\n")
    assert (made.namespace, made.name) == ("flux-system", "sops-age")
    data = made.make_object()["data"]["age.agekey"]
    assert base64.b64decode(data).decode() == f"{IDENTITY}\n"
    assert IDENTITY not in repr(made)


@pytest.mark.parametrize("text", ["", "\n", "# public key: age1\n", "age1notasecret"])
def test_a_missing_age_key_is_refused_instead_of_an_empty_secret(text: str) -> None:
    with pytest.raises(SecretValueError, match="decrypt nothing"):
        make_sops_age(text)


def test_tokens_go_where_their_programs_look() -> None:
    truenas, cloudflare = make_truenas("1-key"), make_cloudflare("token", namespace="external-dns")
    assert (truenas.namespace, truenas.name) == ("kube-system", "truenas-api")
    assert cloudflare.make_object()["metadata"]["namespace"] == "external-dns"


def test_an_empty_value_is_refused_by_its_key() -> None:
    with pytest.raises(SecretValueError, match="no value for token"):
        SecretValues(namespace="a", name="b", values={"user": "x", "token": " "}).make_object()


def test_secrets_of_the_user_come_from_files_that_sops_has_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "own.sops.yaml"
    create_sops_file(path, SECRET, (RECIPIENT,), rule=RULE)
    (found,) = read_secrets_file(path, Keyring(env={"SOPS_AGE_KEY": IDENTITY}))
    assert base64.b64decode(found["data"]["key"]) == b"hunter22"
    assert "sops" not in found
    assert "hunter22" not in path.read_text()
    with pytest.raises(SecretsLockedError):
        read_secrets_file(path, Keyring(env={"HOME": str(tmp_path)}))


def test_a_file_of_secrets_holds_secrets_only(tmp_path: Path) -> None:
    path = tmp_path / "own.sops.yaml"
    create_sops_file(path, SECRET.replace(b"kind: Secret", b"kind: Deployment"), (RECIPIENT,), rule=RULE)
    with pytest.raises(ManifestError, match="may have Secrets only"):
        read_secrets_file(path, Keyring(env={"SOPS_AGE_KEY": IDENTITY}))
