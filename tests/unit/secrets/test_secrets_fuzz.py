"""Whatever becomes of a real file, it is an error with a code or the same meaning; never a traceback."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.secrets import DATA, keyring, open_sealed, seal_text

from stackyard.base.errors import StackyardError
from stackyard.secrets.base import OpenedFile
from stackyard.secrets.formats.yaml_scalar import yaml_flow
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.layout import plain_data
from stackyard.secrets.protected_file import open_bytes
from stackyard.secrets.sops.text import FileFormat

FILES = sorted(
    path.name for path in DATA.glob("*-*.*") if path.name.startswith(("sops-", "vault-", "plain-"))
)
MUTATIONS = 300
PIECES = [
    b"",
    b"\x00",
    b"\xff",
    b"\n",
    b"\r",
    b"\t",
    b"- ",
    b": ",
    b"#",
    b"[",
    b"}",
    b'"',
    b"'",
    b"&a ",
    b"*a",
    b"!!int ",
]
PIECES += [
    b"ENC[AES256_GCM,",
    b"sops:\n",
    b"---\n",
    b"...\n",
    b"!vault |\n",
    b"$ANSIBLE_VAULT;1.1;AES256\n",
    b"0",
    b"A",
]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the data with one to three small changes."""
    for _ in range(chance.randint(1, 3)):
        at, length = chance.randrange(len(data) + 1), chance.choice([0, 0, 1, 1, 5, 80])
        data = data[:at] + chance.choice(PIECES) + data[at + length :]
    return data


@pytest.fixture(scope="module")
def keys() -> Keyring:
    return keyring()


@pytest.mark.parametrize("name", FILES)
def test_a_mutated_file_is_an_error_or_means_something(name: str, keys: Keyring) -> None:
    source = (DATA / name).read_bytes()
    chance = random.Random(name)
    refused: list[StackyardError] = []
    for _ in range(MUTATIONS if not name.startswith("vault") else MUTATIONS // 10):
        try:
            opened = open_bytes(mutated(source, chance), name, keys)
            opened.seal(opened.plain)
            opened.secrets()
        except StackyardError as err:
            refused.append(err)
    assert [err for err in refused if not err.detail or not err.code.startswith(("E-S", "E-V"))] == []


@pytest.mark.parametrize("name", ["sops-full.yaml", "sops-full.json", "sops-full.env"])
def test_a_mutated_sops_file_that_opens_holds_what_it_held(name: str, keys: Keyring) -> None:
    source = (DATA / name).read_bytes()
    honest = open_bytes(source, name, keys)
    values = data(honest)
    chance = random.Random(1)
    opened = 0
    for _ in range(MUTATIONS):
        try:
            found = open_bytes(mutated(source, chance), name, keys)
        except StackyardError:
            continue
        opened += 1
        if found.kind is honest.kind and not found.warnings:
            assert data(found) == values
    assert opened


def data(opened: OpenedFile) -> list[object]:
    layout = opened.layout()
    return [] if layout is None else [plain_data(document.root) for document in layout.documents]


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
)
KEYS = st.text(alphabet="abcdefgh_", min_size=1, max_size=6)
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=60)
@given(TREES)
def test_any_document_comes_back_from_json_and_yaml(tree: dict[str, object]) -> None:
    for format, text in ((FileFormat.JSON, json.dumps(tree)), (FileFormat.YAML, yaml_flow(tree))):
        opened = open_sealed(seal_text(text, format), format)
        layout = opened.layout()
        assert layout is not None
        assert plain_data(layout.documents[0].root) == tree


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_come_back_from_a_binary_file(data: bytes) -> None:
    assert open_sealed(seal_text(data, FileFormat.BINARY), FileFormat.BINARY).plain == data


@settings(max_examples=100)
@given(st.text(alphabet="ab:-[]{}#\n '\"|>&*!?, \t", max_size=40))
def test_any_text_is_sealed_and_comes_back_or_is_refused(text: str) -> None:
    try:
        sealed = seal_text(text)
    except StackyardError:
        return
    plain = open_sealed(sealed).plain
    assert open_sealed(seal_text(plain)).plain == plain
