"""SOPS files are sealed, opened and never trusted when they were changed."""

from __future__ import annotations

import re

import pytest
from tests.support.secrets import (
    ENV,
    IDENTITY,
    RECIPIENT,
    SECOND_IDENTITY,
    SECOND_RECIPIENT,
    keyring,
    open_sealed,
    seal_text,
)

from stackyard.base.errors import Location
from stackyard.secrets import Keyring, SecretsLockedError
from stackyard.secrets.layout import SecretsSyntaxError
from stackyard.secrets.sops.config import CreationRule
from stackyard.secrets.sops.file import SopsDamagedError, open_sops, seal_new
from stackyard.secrets.sops.metadata import SopsMetadataError
from stackyard.secrets.sops.rules import PathRule, RuleKind, SopsRuleError, rule_from
from stackyard.secrets.sops.text import FileFormat, format_of_name

PLAIN = "# top\na: secret text  # behind\nb:\n  - 1\n  - {c: two words}\nopen_unencrypted: 5\n"


def test_what_is_sealed_comes_back_in_its_layout() -> None:
    sealed = seal_text(PLAIN)
    assert open_sealed(sealed).plain.decode() == PLAIN
    assert b"secret text" not in sealed
    assert b"behind" not in sealed
    assert b"open_unencrypted: 5" in sealed


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "{}",
        "{a: b}\n",
        "{a: [1, 2],\n b: c}\n",
        "---\na: b\n...\n",
        "# only a comment\n",
        "",
        "a: b\r\nc: |\r\n  d\r\n",
        "a: b\n---\nc: d\n",
        "a: \"x\"\nb: 'y'\nc: !!str 5\nd: >-\n  folded\n",
        "big: " + "x" * 100_000 + "\n",
    ],
    ids=range(11),
)
def test_every_layout_of_yaml_can_be_sealed_and_means_the_same(text: str) -> None:
    first = open_sealed(seal_text(text))
    again = open_sealed(seal_text(first.plain))
    assert again.plain == first.plain
    assert "ENC[" not in first.plain.decode()


def test_an_alias_is_written_out_because_a_value_is_bound_to_its_place() -> None:
    opened = open_sealed(seal_text("a: &x {k: v}\nb: *x\nc: &s text\nd: *s\n"))
    assert re.sub(r"&\w+ ", "", opened.plain.decode()) == "a: {k: v}\nb: {k: v}\nc: text\nd: text\n"


def test_a_text_with_a_sops_part_is_not_sealed_again() -> None:
    with pytest.raises(SecretsSyntaxError, match="sops"):
        seal_text("a: b\nsops: {}\n")


def test_a_number_that_sops_would_round_is_refused() -> None:
    with pytest.raises(SecretsSyntaxError, match="64 bits"):
        seal_text('{"a": 18446744073709551616}', FileFormat.JSON)


def test_bytes_that_are_no_text_are_kept_in_yaml() -> None:
    assert open_sealed(seal_text("a: !!binary /w==\n")).plain == b'a: !!binary "/w=="\n'


# --- Changes by somebody else


def test_every_changed_character_of_an_encrypted_value_is_noticed() -> None:
    sealed = seal_text("a: secret\n").decode()
    token = re.search(r"ENC\[[^\]]+\]", sealed)
    assert token is not None
    start = sealed.index("data:")
    for at in range(start, token.end() - len(",type:str]")):
        changed = sealed[:at] + ("A" if sealed[at] != "A" else "B") + sealed[at + 1 :]
        with pytest.raises(SopsDamagedError) as caught:
            open_sealed(changed.encode())
        assert caught.value.where == Location("secrets.yaml", 1, 4)


def test_every_changed_character_of_the_mac_and_its_time_is_noticed() -> None:
    sealed = seal_text("a: secret\n").decode()
    for name in ("mac: ", 'lastmodified: "'):
        start = sealed.index(name) + len(name)
        end = sealed.index("type:str]" if name == "mac: " else '"', start)
        for at in range(start, end):
            changed = sealed[:at] + ("A" if sealed[at] != "A" else "B") + sealed[at + 1 :]
            with pytest.raises((SopsDamagedError, SopsMetadataError)):
                open_sealed(changed.encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[1:],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: ["x_unencrypted: new", *lines],
        lambda lines: [line.replace("c_unencrypted: 1", "c_unencrypted: 2") for line in lines],
        lambda lines: [lines[0].replace("a:", "z:"), *lines[1:]],
        lambda lines: [f"a: {lines[1].partition(': ')[2]}", *lines[1:]],
        lambda lines: ["a: in clear", *lines[1:]],
        lambda lines: ["a: 5", *lines[1:]],
    ],
    ids=["removed", "reordered", "added", "clear", "renamed", "moved", "in-clear", "number"],
)
def test_a_value_that_was_added_removed_moved_or_changed_is_noticed(change: object) -> None:
    lines = seal_text("a: one\nb: two\nc_unencrypted: 1\n").decode().splitlines()
    assert callable(change)
    with pytest.raises(SopsDamagedError):
        open_sealed("\n".join(change(lines)).encode())


def test_a_mac_over_encrypted_values_only_lets_others_change() -> None:
    rule = CreationRule(groups=((RECIPIENT,),), is_mac_only_encrypted=True)
    sealed = seal_new(b"a: one\nb_unencrypted: 1\n", "f.yaml", FileFormat.YAML, rule)
    assert open_sealed(sealed.replace(b"b_unencrypted: 1", b"b_unencrypted: 2")).plain.endswith(b": 2\n")
    with pytest.raises(SopsDamagedError):
        open_sealed(b"c: " + sealed[3:])


@pytest.mark.parametrize("name", ["mac", "lastmodified"])
def test_a_file_without_its_mac_is_refused(name: str) -> None:
    sealed = seal_text("a: one\n").decode()
    torn = "\n".join(line for line in sealed.splitlines() if not line.strip().startswith(name))
    with pytest.raises(SopsMetadataError):
        open_sealed(torn.encode())


def test_a_comment_that_was_changed_stays_and_is_said() -> None:
    sealed = seal_text("a:\n  # inner\n  b: 1\nc: 2\n").decode()
    stuck = open_sealed(sealed.replace("data:", "data:AAAA", 1).encode())
    assert [warning for warning in stuck.warnings if "line 2" in warning] == list(stuck.warnings)
    assert len(stuck.warnings) == 1


# --- Keys


def test_a_file_for_others_says_which_keys_are_needed_and_which_were_tried() -> None:
    sealed = seal_text("a: one\n")
    with pytest.raises(SecretsLockedError) as caught:
        open_sops(sealed, "f.yaml", Keyring(env={**ENV, "SOPS_AGE_KEY": SECOND_IDENTITY}), FileFormat.YAML)
    assert RECIPIENT in caught.value.detail
    assert f"SOPS_AGE_KEY has the private key of {SECOND_RECIPIENT}" in caught.value.detail
    assert "/nonexistent/.config/sops/age/keys.txt does not exist" in caught.value.detail
    assert IDENTITY not in caught.value.detail + caught.value.remedy


def test_keys_of_other_services_are_named_and_kept() -> None:
    sealed = seal_text("a: one\n").decode()
    pgp = "    pgp:\n        - created_at: '2020-01-01T00:00:00Z'\n          enc: x\n          fp: ABCDEF\n"
    both = sealed.replace("    unencrypted_suffix", f"{pgp}    unencrypted_suffix")
    with pytest.raises(SecretsLockedError, match="only sops itself can use:\n  pgp ABCDEF"):
        open_sops(both.encode(), "f.yaml", Keyring(env={"HOME": "/nonexistent"}), FileFormat.YAML)
    resealed = open_sealed(both.encode()).seal(b"a: two\n").decode()
    assert pgp in resealed
    assert open_sealed(resealed.encode()).plain == b"a: two\n"


def test_a_file_is_sealed_for_every_recipient() -> None:
    rule = CreationRule(groups=((RECIPIENT, SECOND_RECIPIENT),))
    sealed = seal_new(b"a: one\n", "f.yaml", FileFormat.YAML, rule)
    for identity in (IDENTITY, SECOND_IDENTITY):
        opened = open_sops(sealed, "f.yaml", Keyring(env={**ENV, "SOPS_AGE_KEY": identity}), FileFormat.YAML)
        assert opened.plain == b"a: one\n"


def test_a_file_is_sealed_for_groups_of_which_some_are_enough() -> None:
    rule = CreationRule(groups=((RECIPIENT,), (SECOND_RECIPIENT,), (RECIPIENT,)), threshold=2)
    sealed = seal_new(b"a: one\n", "f.yaml", FileFormat.YAML, rule)
    one = Keyring(env={**ENV, "SOPS_AGE_KEY": IDENTITY})
    assert open_sops(sealed, "f.yaml", one, FileFormat.YAML).plain == b"a: one\n"
    with pytest.raises(SecretsLockedError):
        open_sops(sealed, "f", Keyring(env={**ENV, "SOPS_AGE_KEY": SECOND_IDENTITY}), FileFormat.YAML)


def test_a_new_data_key_changes_every_value_and_recipient() -> None:
    opened = open_sealed(seal_text(PLAIN))
    rekeyed = opened.rekey([[SECOND_RECIPIENT]])
    assert open_sops(rekeyed, "f", keyring(), FileFormat.YAML).plain.decode() == PLAIN
    old = set(re.findall(r"ENC\[[^\]]+\]", opened.source.decode()))
    assert not old & set(re.findall(r"ENC\[[^\]]+\]", rekeyed.decode()))
    with pytest.raises(SecretsLockedError):
        open_sops(rekeyed, "f", Keyring(env={**ENV, "SOPS_AGE_KEY": IDENTITY}), FileFormat.YAML)


# --- Rules


@pytest.mark.parametrize(
    ("kind", "pattern", "encrypted"),
    [
        (RuleKind.UNENCRYPTED_SUFFIX, "_open", ["data.x", "data.y", "plain"]),
        (RuleKind.ENCRYPTED_SUFFIX, "ta", ["data.x", "data.y"]),
        (RuleKind.ENCRYPTED_REGEX, "^(x|plain)$", ["data.x", "plain"]),
        (RuleKind.UNENCRYPTED_REGEX, "^da", ["plain", "z_open"]),
        (RuleKind.ENCRYPTED_COMMENT_REGEX, "secret", ["data.y"]),
        (RuleKind.UNENCRYPTED_COMMENT_REGEX, "secret", ["data.x", "plain", "z_open"]),
    ],
)
def test_a_rule_says_what_is_encrypted(kind: RuleKind, pattern: str, encrypted: list[str]) -> None:
    text = "data:\n  x: one\n  # secret\n  y: two\nplain: three\nz_open: four\n"
    sealed = seal_text(text, rule=PathRule(kind, pattern)).decode()
    lines = [line for line in sealed.split("sops:")[0].splitlines() if ": ENC[" in line]
    found = [("data." if line.startswith(" ") else "") + line.split(":")[0].strip() for line in lines]
    assert found == encrypted
    assert open_sealed(sealed.encode()).plain.decode() == text
    assert f"{kind.value}: " in sealed


@pytest.mark.parametrize("pattern", ["(", "[[:alpha:]]", "\\p{L}", "a(?i)b"])
def test_a_pattern_that_python_would_read_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(SopsRuleError):
        rule_from({"encrypted_regex": pattern}, Location("f"))


def test_two_rules_at_once_are_refused() -> None:
    with pytest.raises(SopsRuleError, match="one of them"):
        rule_from({"encrypted_regex": "a", "unencrypted_suffix": "b"}, Location("f"))


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.yaml", FileFormat.YAML),
        ("a.sops.yml", FileFormat.YAML),
        ("secrets.yaml.enc", FileFormat.YAML),
        ("a.json", FileFormat.JSON),
        (".env", FileFormat.DOTENV),
        ("prod.env", FileFormat.DOTENV),
        ("id_rsa", FileFormat.BINARY),
        ("a.ini", FileFormat.BINARY),
    ],
)
def test_a_name_says_what_is_inside(name: str, format: FileFormat) -> None:
    assert format_of_name(name) is format
