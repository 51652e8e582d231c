"""A cluster gets the age keys of its repository, and no other of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackyard.bootstrap.kubernetes.identities import choose_identities
from stackyard.bootstrap.kubernetes.secrets import SecretValueError
from stackyard.secrets import Keyring, new_identity

OWN, OTHER, THIRD = new_identity(), new_identity(), new_identity()


def make_keyring(home: Path, *identities: str) -> Keyring:
    return Keyring(env={"HOME": str(home), "SOPS_AGE_KEY": "\n".join(identities)})


def test_only_keys_that_the_repository_is_encrypted_for_are_taken(tmp_path: Path) -> None:
    rules = f"creation_rules: [{{path_regex: talos/, age: '{OWN[0]}'}}, {{age: '{OWN[0]},{THIRD[0]}'}}]\n"
    (tmp_path / ".sops.yaml").write_text(rules)
    folder = tmp_path / "clusters" / "home"
    folder.mkdir(parents=True)
    keyring = make_keyring(tmp_path, OTHER[1], THIRD[1], OWN[1])
    assert choose_identities(folder, ["kubernetes"], keyring).splitlines() == [OWN[1], THIRD[1]]


def test_without_a_key_of_the_repository_nothing_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".sops.yaml").write_text(f"creation_rules: [{{age: '{OWN[0]}'}}]\n")
    with pytest.raises(SecretValueError, match=r"whose recipient .*\.sops\.yaml names") as caught:
        choose_identities(tmp_path, ["kubernetes"], make_keyring(tmp_path, OTHER[1]))
    assert OTHER[1] not in str(caught.value)


def test_without_rules_the_one_key_counts_that_the_secrets_of_the_cluster_are_encrypted_for(
    tmp_path: Path,
) -> None:
    assert choose_identities(tmp_path, ["kubernetes"], make_keyring(tmp_path, OWN[1], OTHER[1])) == OWN[1]
    with pytest.raises(SecretValueError, match="decrypt nothing"):
        choose_identities(tmp_path, ["kubernetes"], Keyring(env={"HOME": str(tmp_path)}))


def test_a_command_is_asked_for_the_keys_of_the_repository_alone(tmp_path: Path) -> None:
    (tmp_path / ".sops.yaml").write_text(f"creation_rules: [{{age: '{OWN[0]}'}}]\n")
    command = f"sh -c 'test $SOPS_AGE_RECIPIENT = {OWN[0]} && echo {OWN[1]}'"
    keyring = Keyring(env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "SOPS_AGE_KEY_CMD": command})
    assert choose_identities(tmp_path, ["kubernetes"], keyring) == OWN[1]


def test_a_key_of_its_own_for_the_software_keeps_the_key_of_the_machines_out(tmp_path: Path) -> None:
    rules = f"creation_rules: [{{path_regex: kubernetes/, age: '{THIRD[0]}'}}, {{age: '{OWN[0]}'}}]\n"
    (tmp_path / ".sops.yaml").write_text(rules)
    keyring = make_keyring(tmp_path, OWN[1], THIRD[1])
    assert choose_identities(tmp_path, ["kubernetes"], keyring) == THIRD[1]
    # Elsewhere, the rule of that folder counts.
    assert choose_identities(tmp_path, ["software"], keyring) == OWN[1]
