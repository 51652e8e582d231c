"""The real sops reads what we write, and we read what it writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.judges import find_judge
from tests.support.secrets import (
    DATA,
    ENV,
    RECIPIENT,
    SECOND_RECIPIENT,
    keyring,
    open_sealed,
    seal_text,
)

from stackyard.secrets import open_file, read_secrets
from stackyard.secrets.sops.config import CreationRule
from stackyard.secrets.sops.file import OpenedSops, seal_new
from stackyard.secrets.sops.rules import PathRule, RuleKind
from stackyard.secrets.sops.text import FileFormat, format_of_name

pytestmark = pytest.mark.judges("sops")

FILES = ["full.yaml", "documents.yaml", "partial.yaml", "bycomment.yaml", "full.json", "full.env", "full.bin"]
ODD = {
    "crlf.yaml": b"a: b\r\nc: |\r\n  d\r\n  e\r\nf: [1, 2]\r\n",
    "flow.yaml": b'{a: b, "c": [1, {d: e}]}\n',
    "aliases.yaml": b"a: &x {k: v}\nb: *x\nc: &s text\nd: *s\n",
    "big.yaml": b"big: " + b"x" * 50_000 + b"\n",
    "numbers.yaml": b"a: 017\nb: 08\nc: 1_000\nd: .5\ne: 1e400\nf: -0.0\ng: 1:30\nh: 0x1F\n",
    "strings.yaml": "a: '  '\nb: \"\\t\\x7f\\u2028\"\nc: 'no'\nd: \"null\"\ne: '@'\nf: 世界 🔑\n".encode(),
    "times.yaml": b"a: 2020-01-02\nb: 2020-01-02T03:04:05Z\nc: 2020-01-02 03:04:05.5\n",
    "zones.yaml": b"d: 2020-01-02T03:04:05+01:00\n",
    "keys.yaml": b'"a b": 1\n"c:d": {e: 2}\n? f\n: 3\n',
    "deep.yaml": b"a:\n- - - x: 1\n    # inner\n    - y\n-\n  z: 2\n",
    "empty.json": b"{}",
    "tabs.json": b'{\n\t"a": [\n\t\t1\n\t]\n}',
    "quotes.env": b"A='x'\nB=\"y\"\nC=a#b\nD==\n",
    "empty.bin": b"",
}


@pytest.fixture(scope="module")
def sops() -> str:
    return str(find_judge("sops"))


def run(sops: str, *arguments: str, cwd: Path) -> bytes:
    done = subprocess.run(
        [sops, *arguments], cwd=cwd, env={**os.environ, **ENV}, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def sources() -> list[tuple[str, bytes]]:
    return [(name, (DATA / f"plain-{name}").read_bytes()) for name in FILES] + list(ODD.items())


@pytest.mark.parametrize(("name", "plain"), sources(), ids=lambda part: part if isinstance(part, str) else "")
def test_sops_opens_what_we_seal(sops: str, name: str, plain: bytes, tmp_path: Path) -> None:
    rule = CreationRule(groups=((RECIPIENT,),))
    (tmp_path / name).write_bytes(seal_new(plain, name, format_of_name(name), rule))
    theirs = run(sops, "decrypt", name, cwd=tmp_path)
    (tmp_path / name).write_bytes(theirs)
    again = seal_new(theirs, name, format_of_name(name), rule)
    ours = open_sealed(seal_new(plain, name, format_of_name(name), rule), format_of_name(name))
    if format_of_name(name) in (FileFormat.BINARY, FileFormat.DOTENV):
        assert theirs.replace(b"\n\n", b"\n") == plain.replace(b"\n\n", b"\n")
    assert values(open_sealed(again, format_of_name(name))) == values(ours)


@pytest.mark.parametrize(("name", "plain"), sources(), ids=lambda part: part if isinstance(part, str) else "")
def test_we_open_what_sops_seals(sops: str, name: str, plain: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(plain)
    sealed = run(sops, "encrypt", "--age", RECIPIENT, name, cwd=tmp_path)
    (tmp_path / name).write_bytes(sealed)
    opened = open_file(tmp_path / name, keyring())
    assert isinstance(opened, OpenedSops)
    assert opened.warnings == ()
    mine = open_sealed(
        seal_new(plain, name, format_of_name(name), CreationRule(groups=((RECIPIENT,),))), opened.format
    )
    assert values(opened) == values(mine)
    assert opened.seal(opened.plain) == sealed


def values(opened: OpenedSops) -> object:
    """Return every value with its keys and its type, whole floats as the integers that sops makes of them."""
    from stackyard.secrets.layout import leaves

    layout = opened.layout()
    if layout is None:
        return opened.plain
    found = [(keys, leaf.value) for one in layout.documents for keys, leaf in leaves(one.root)]
    return [
        (keys, int(value) if isinstance(value, float) and value.is_integer() else value)
        for keys, value in found
    ]


@pytest.mark.parametrize("name", ["full.yaml", "full.json", "full.env", "partial.yaml", "bycomment.yaml"])
def test_sops_opens_its_own_file_after_we_changed_it(sops: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((DATA / f"sops-{name}").read_bytes())
    opened = open_file(path, keyring())
    changed = opened.plain.replace(b"hidden", b"changed").replace(b"hunter2", b"changed")
    changed = changed.replace(b"plain text", b"changed").replace("grüße".encode(), b"changed")
    changed = changed.replace(b"USER=me", b"USER=changed")
    assert changed != opened.plain
    path.write_bytes(opened.seal(changed))
    assert b"changed" in run(sops, "decrypt", name, cwd=tmp_path)


def test_sops_edits_our_file_and_we_read_its_change(sops: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(seal_text("# c\na: one\nb: two\n"))
    run(sops, "set", "a.yaml", '["b"]', '"three"', cwd=tmp_path)
    assert read_secrets(tmp_path / "a.yaml", keyring()).data == {"a": "one", "b": "three"}


def test_sops_opens_a_file_of_key_groups_of_ours(sops: str, tmp_path: Path) -> None:
    rule = CreationRule(groups=((RECIPIENT,), (SECOND_RECIPIENT,)), threshold=2)
    (tmp_path / "a.yaml").write_bytes(seal_new(b"a: one\n", "a.yaml", FileFormat.YAML, rule))
    assert run(sops, "decrypt", "a.yaml", cwd=tmp_path) == b"a: one\n"


@pytest.mark.parametrize("kind", list(RuleKind))
def test_sops_agrees_on_what_is_encrypted(sops: str, kind: RuleKind, tmp_path: Path) -> None:
    pattern = "secret"
    text = "a_secret: one\nb:\n  # secret below\n  c: two\n  d: three\nsecret_e: four\n"
    (tmp_path / ".sops.yaml").write_text(f"creation_rules: [{{{kind.value}: {pattern}, age: {RECIPIENT}}}]")
    (tmp_path / "a.yaml").write_text(text)
    theirs = run(sops, "encrypt", "a.yaml", cwd=tmp_path).decode()
    ours = seal_text(text, rule=PathRule(kind, pattern)).decode()
    assert shape(ours) == shape(theirs)
    (tmp_path / "a.yaml").write_text(ours)
    assert b"three" in run(sops, "decrypt", "a.yaml", cwd=tmp_path)


def shape(sealed: str) -> list[tuple[str, bool]]:
    lines = sealed.split("\nsops:")[0].splitlines()
    return [(line.split(":")[0].strip().split("ENC[")[0], "ENC[" in line) for line in lines]


def test_the_comments_of_our_file_are_decrypted_by_sops(sops: str, tmp_path: Path) -> None:
    text = "# top\na: 1 # behind\nb:\n  # inner\n  c: 2\n  # foot\n\n# before d\nd:\n"
    text += "  - x # item\n  # between\n  - y\n# end\n"
    (tmp_path / "a.yaml").write_bytes(seal_text(text))
    plain = run(sops, "decrypt", "a.yaml", cwd=tmp_path).decode()
    assert "ENC[" not in plain
    comments = ["top", "behind", "inner", "foot", "before d", "item", "between", "end"]
    assert [comment for comment in comments if f"# {comment}\n" not in plain] == []
