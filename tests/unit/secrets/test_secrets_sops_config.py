"""`.sops.yaml` says for whom a new file is encrypted, and which of its values."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.secrets import DATA, RECIPIENT, SECOND_RECIPIENT

from stackyard.secrets.create import creation_rule
from stackyard.secrets.sops.age import RecipientError, check_recipient, new_identity
from stackyard.secrets.sops.config import SopsConfigError, find_config, parse_config, read_config
from stackyard.secrets.sops.rules import RuleKind, SopsRuleError


def test_the_first_rule_that_fits_counts() -> None:
    config = read_config(DATA / "sops-config.yaml")
    partial = config.creation_rule(DATA / "partial.yaml")
    assert (partial.rule.kind, partial.rule.pattern) == (RuleKind.ENCRYPTED_REGEX, "^(data|stringData)$")
    assert partial.is_mac_only_encrypted
    assert partial.groups == ((RECIPIENT,),)
    assert config.creation_rule(DATA / "other.yaml").groups == ((RECIPIENT, SECOND_RECIPIENT),)


def test_key_groups_are_read() -> None:
    rule = read_config(DATA / "sops-config.yaml").creation_rule(DATA / "groups.yaml")
    assert (rule.groups, rule.threshold) == (((RECIPIENT,), (SECOND_RECIPIENT,)), 2)


def test_paths_are_seen_from_the_folder_of_the_config(tmp_path: Path) -> None:
    text = f"creation_rules:\n  - path_regex: ^infra/.*\\.sops\\.ya?ml$\n    age: {RECIPIENT}\n"
    (tmp_path / ".sops.yaml").write_text(text)
    (tmp_path / "infra").mkdir()
    found = find_config(tmp_path / "infra" / "a.sops.yaml")
    assert found == tmp_path / ".sops.yaml"
    assert creation_rule(tmp_path / "infra" / "a.sops.yaml", ()).groups == ((RECIPIENT,),)
    with pytest.raises(SopsConfigError, match="No creation rule"):
        creation_rule(tmp_path / "a.sops.yaml", ())


def test_anchors_lists_and_merged_groups_are_read() -> None:
    text = f"""
keys: [&one {RECIPIENT}, &two {SECOND_RECIPIENT}]
creation_rules:
  - path_regex: list
    age: [*one, *two]
  - key_groups:
      - age: [*one]
        merge:
          - age: [*two, *one]
stores: {{yaml: {{indent: 2}}}}
"""
    config = parse_config(text, Path("/x/.sops.yaml"))
    assert config.creation_rule(Path("/x/list")).groups == ((RECIPIENT, SECOND_RECIPIENT),)
    merged = config.creation_rule(Path("/x/other"))
    assert (merged.groups, merged.yaml_indent) == (((RECIPIENT, SECOND_RECIPIENT),), 2)


def test_keys_of_other_services_are_never_left_out_silently() -> None:
    config = parse_config(
        f"creation_rules: [{{age: {RECIPIENT}, pgp: ABC, kms: arn}}]", Path("/x/.sops.yaml")
    )
    with pytest.raises(SopsConfigError, match="kms, pgp"):
        config.creation_rule(Path("/x/a.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "creation_rules: [",
        "creation_rules: 5",
        "creation_rules: [5]",
        "- a",
        "creation_rules: [{age: 5}]",
        "creation_rules: [{key_groups: 5}]",
        f"creation_rules: [{{shamir_threshold: 3, key_groups: [{{age: [{RECIPIENT}]}}]}}]",
    ],
)
def test_a_config_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(SopsConfigError) as caught:
        parse_config(text, Path("/x/.sops.yaml")).creation_rule(Path("/x/a"))
    assert caught.value.where is not None


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(SopsRuleError):
        parse_config("creation_rules: [{path_regex: '('}]", Path("/x/.sops.yaml"))


@pytest.mark.parametrize("recipient", ["age1nonsense", "AGE-SECRET-KEY-1", "ssh-dss AAAA", "age1pq1xyz", ""])
def test_a_recipient_that_is_none_is_refused(recipient: str) -> None:
    with pytest.raises(RecipientError):
        creation_rule(Path("/x"), [recipient])


def test_a_private_key_given_as_a_recipient_is_not_shown() -> None:
    _, secret = new_identity()

    with pytest.raises(RecipientError) as caught:
        check_recipient(secret)

    assert secret not in caught.value.detail
